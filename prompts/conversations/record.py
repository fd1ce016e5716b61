"""Texts of an example: a plain text, or a text made of messages, a list or an object that is kept beside it.

The texts of many examples are held as bytes, most of them in a temporary file.
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
    if isinstance(value, StructuredText):  # pydantic's own check would make a plain text of it
        images_of(value)
        return StructuredText(sendable(value), value.original)
    return sendable(check(value))


Text = Annotated[str, WrapValidator(_text)]
"""A text. Messages, a list or an object become a :class:`~askance.prompts.messages.StructuredText` and stay in it."""


def packed(texts: tuple[str | None, ...]) -> Any:
    """Pack texts in a form that ``marshal`` takes: a tuple of plain texts, or a list if some are structured.

    In the list, a structured text is a pair of the text and its original.
    """
    if not any(type(each) is StructuredText for each in texts):
        return texts
    return [(str(each), each.original) if isinstance(each, StructuredText) else each for each in texts]


def unpacked(texts: Any) -> tuple[str | None, ...]:
    """Return the texts that :func:`packed` was given."""
    if type(texts) is tuple:
        return texts
    return tuple(StructuredText(*each) if type(each) is tuple else each for each in texts)


logger = logging.getLogger(__name__)

IN_MEMORY = 4 * 2**20
"""Bytes of texts that are held in memory before they go to a file: about three thousand examples."""


class SpilledBytes:
    """A sequence of bytes that only grows; most of a long one is in an unnamed temporary file.

    If that file cannot be written, as on a full disk, all bytes stay in memory.
    """

    def __init__(self, in_memory: int) -> None:
        """Begin empty; ``in_memory`` is the number of bytes that are held before they are written."""
        self._held = bytearray()
        self._written = 0
        self._file: FileIO | None = None
        self._most = in_memory

    def append(self, more: bytes) -> int:
        """Append bytes; returns the position at which they begin."""
        start = self._written + len(self._held)
        self._held += more
        if len(self._held) >= self._most:
            self._spill()
        return start

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes at a place. May be called from any thread."""
        if start >= self._written:
            return bytes(self._held[start - self._written : start - self._written + length])
        assert self._file is not None
        return pread(self._file.fileno(), length, start)  # not seek and read: a forked process shares their position

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
    """Make the bytes again that another process pickled."""
    made = SpilledBytes(IN_MEMORY)
    made.append(content)
    return made
