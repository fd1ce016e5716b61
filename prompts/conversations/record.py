"""Texts of an example as they are given: a plain text, or messages, a list or an object, which stay beside the text.

Many of them are held as bytes, most of which are in a temporary file.
"""

from __future__ import annotations

import logging
import tempfile
import weakref
from collections.abc import Mapping
from io import FileIO
from os import pread
from typing import Annotated, Any

from pydantic import ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from ..messages import StructuredText, told
from ..tables import plain
from ..text import sendable
from .chat import images_of


def _text(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if type(value) is str:  # as most are, and there may be many
        return sendable(value)
    if isinstance(value, (list, tuple, Mapping)):
        value = told(plain(value), passages=info.field_name == "context")
    if isinstance(value, StructuredText):  # a usual check would make a plain text of it
        images_of(value)
        return StructuredText(sendable(value), value.original)
    return sendable(check(value))


Text = Annotated[str, WrapValidator(_text)]
"""A text. One that was given as messages, a list or an object is a :class:`~askance.prompts.messages.StructuredText`,
which holds them."""


def packed(texts: tuple[str | None, ...]) -> Any:
    """Texts in a form that ``marshal`` takes: a tuple, or a list where some were made of something else.

    In a list these are pairs, of the text and what it was made of.
    """
    if not any(type(each) is StructuredText for each in texts):
        return texts
    return [(str(each), each.original) if isinstance(each, StructuredText) else each for each in texts]


def unpacked(texts: Any) -> tuple[str | None, ...]:
    """The texts that :func:`packed` was given."""
    if type(texts) is tuple:
        return texts
    return tuple(StructuredText(*each) if type(each) is tuple else each for each in texts)


logger = logging.getLogger(__name__)

IN_MEMORY = 4 * 2**20
"""Bytes of texts that are held before they go to a file: those of some three thousand examples."""


class SpilledBytes:
    """A run of bytes that only grows; most of a long one is in a temporary file that nobody else sees.

    Where that file cannot be written, as on a full disk, all of it stays in memory.
    """

    def __init__(self, in_memory: int) -> None:
        """There is nothing in it; ``in_memory``: bytes that are held before they are written."""
        self._held = bytearray()
        self._written = 0
        self._file: FileIO | None = None
        self._most = in_memory

    def append(self, more: bytes) -> int:
        """Take more; returns where it begins."""
        start = self._written + len(self._held)
        self._held += more
        if len(self._held) >= self._most:
            self._spill()
        return start

    def read(self, start: int, length: int) -> bytes:
        """The bytes at a place, from any thread."""
        if start >= self._written:
            return bytes(self._held[start - self._written : start - self._written + length])
        assert self._file is not None
        return pread(self._file.fileno(), length, start)  # a place of its own: a forked process shares that of the file

    def __reduce__(self) -> tuple[Any, ...]:
        places = range(0, self._written, IN_MEMORY)
        parts = [self.read(start, min(IN_MEMORY, self._written - start)) for start in places]
        return _spilled, (b"".join([*parts, self._held]),)

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 -- it goes with this object
                weakref.finalize(self, self._file.close)
            self._file.seek(self._written)
            left = memoryview(self._held)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            logger.debug("Texts stay in memory: %s", error)
            self._most *= 2
            return
        self._written += len(self._held)
        self._held = bytearray()


def _spilled(content: bytes) -> SpilledBytes:
    """A run of bytes as it was in another process."""
    made = SpilledBytes(IN_MEMORY)
    made.append(content)
    return made
