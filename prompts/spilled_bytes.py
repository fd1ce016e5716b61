"""Bytes of which most are in a temporary file."""

from __future__ import annotations

import logging
import tempfile
import weakref
from io import FileIO
from os import pread
from typing import Any

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
