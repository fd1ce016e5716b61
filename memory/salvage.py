"""Check whether a verdict store was cut off, and rescue the rows that can still be read, e.g. after a broken copy."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ..prompts.errors import AskanceError

logger = logging.getLogger(__name__)

_MAGIC, _HEADER = b"SQLite format 3\0", 100
"""First bytes of an SQLite file, and the length of its header (SQLite's file format, 1.3)."""
_BESIDE = ("-wal", "-shm")


def is_cut_off(path: Path) -> bool:
    """Check whether a file is shorter than its header says. SQLite itself notices this only at a missing page."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
        if len(header) < _HEADER or not header.startswith(_MAGIC):
            return False
        whole = _page_size(header) * int.from_bytes(header[28:32], "big")
        if path.stat().st_size >= whole:
            return False
        # Another process may be writing: the missing pages are then in the log. If the log is gone by now, they have
        # reached the file, so its size is read again.
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            return False
        return path.stat().st_size < whole
    except OSError:  # the file does not exist yet, or SQLite gives a better error
        return False


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return 65_536 if size == 1 else size


def salvage(path: Path, schema: str, columns: str, version: int) -> bool:
    """Replace a damaged store with a new one that has its readable rows. The damaged file is kept beside it.

    Returns False, and changes nothing, if no answer can be read or the file has another ``version``. Raises
    AskanceError if the new file cannot be written. ``schema`` creates the tables ``answers``, with these ``columns``,
    and ``brought``. The key of both is a hash.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}.salvaged")
    copy = path.with_name(f"{path.name}.{os.getpid()}.pages")
    try:
        if not _copy_whole_pages(path, copy):
            return False
        count = _write_anew(copy, new, schema, columns, version)
        if not count:
            return False
        damaged_file = _free_name(path)
        for end in _BESIDE:  # these files belong to the damaged file
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).rename(damaged_file.with_name(damaged_file.name + end))
        path.rename(damaged_file)
        new.rename(path)
    except (OSError, sqlite3.OperationalError) as error:
        raise AskanceError(
            f"{path}: this file is damaged, and its answers cannot be written to a new one ({error})."
        ) from None
    finally:
        for made in (new, *(copy.with_name(copy.name + end) for end in ("", *_BESIDE))):
            made.unlink(missing_ok=True)
    kept = f"The {count} answers that could be read are kept; missing ones are asked again"
    logger.warning("%s was damaged. %s. The damaged file is %s.", path, kept, damaged_file.name)
    return True


def _write_anew(damaged: Path, new: Path, schema: str, columns: str, version: int) -> int:
    """Write the readable rows to a new store. Returns the number of answers."""
    with closing(sqlite3.connect(damaged, timeout=30)) as old, closing(sqlite3.connect(new)) as kept:
        if not _is_readable(old, version):
            return 0
        kept.executescript(schema)
        for table, names in (("answers", columns), ("brought", "key")):
            marks = ",".join("?" * len(names.split(",")))
            for row in _rows(old, table, names):
                if table == "answers" and not _is_whole(dict(zip(names.split(", "), row, strict=True))):
                    continue
                kept.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", row)
        kept.execute(f"PRAGMA user_version={version}")
        kept.commit()
        return int(kept.execute("SELECT count(*) FROM answers").fetchone()[0])


def _copy_whole_pages(path: Path, copy: Path) -> bool:
    """Copy a database without an incomplete last page. Returns False if the file is not a database."""
    with path.open("rb") as file:
        head = file.read(18)
    if not head.startswith(_MAGIC) or len(head) < 18 or (page := _page_size(head)) < 512:
        return False
    shutil.copyfile(path, copy)
    # SQLite reads the missing part of a page as zeros, so the end of an answer would be lost without an error.
    os.truncate(copy, path.stat().st_size // page * page)
    with suppress(FileNotFoundError):
        shutil.copyfile(path.with_name(f"{path.name}-wal"), copy.with_name(f"{copy.name}-wal"))
    return True


def _is_whole(row: dict[str, Any]) -> bool:
    """Check that a row holds a whole answer, without zeros from a lost page."""
    text, logprobs = row["text"], row["logprobs"]
    if not isinstance(text, str) or "\0" in text or not isinstance(row["finish"], str) or "\0" in row["finish"]:
        return False
    try:
        return logprobs is None or isinstance(json.loads(logprobs), list)
    except (TypeError, ValueError, RecursionError):
        return False


def _is_readable(old: sqlite3.Connection, version: int) -> bool:
    """Check that the table of answers can be opened and has this version, even if pages are missing."""
    try:
        old.execute("PRAGMA writable_schema=ON")
        old.execute("SELECT key FROM answers WHERE 0")
        return bool(old.execute("PRAGMA user_version").fetchone()[0] == version)
    except sqlite3.DatabaseError:
        return False


def _rows(old: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows, grouped by the first byte of the key. Each group is read from both ends up to a hole."""
    for first in range(256):
        bounds = bytes([first]), bytes([first + 1]) if first < 255 else b"\xff" * 64
        for order in ("ASC", "DESC"):
            query = f"SELECT {columns} FROM {table} WHERE key >= ? AND key < ? ORDER BY key {order}"
            read = 0
            try:
                for row in old.execute(query, bounds):
                    read += 1
                    yield row
                break
            except sqlite3.DatabaseError:
                # Python reads one row ahead, so the error also loses the last row before the hole: read it alone.
                with suppress(sqlite3.DatabaseError):
                    yield from old.execute(f"{query} LIMIT 1 OFFSET {read}", bounds)


def _free_name(path: Path) -> Path:
    ends = ("", *(f"-{number}" for number in range(2, 1000)))
    return next(name for end in ends if not (name := path.with_name(f"{path.name}.damaged{end}")).exists())
