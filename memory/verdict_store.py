"""Every answer that was bought, once: SQLite in WAL mode, keyed by the hash of the whole request."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.base import Answer
from ..models.files import cache_directory
from ..prompts.errors import AskanceError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    text TEXT NOT NULL,
    logprobs TEXT,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    finish TEXT NOT NULL
) WITHOUT ROWID;
"""
_COLUMNS = "key, text, logprobs, prompt_tokens, completion_tokens, cost_usd, finish"
_INSERT = f"INSERT OR IGNORE INTO answers ({_COLUMNS}) VALUES (?,?,?,?,?,?,?)"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


def store_path(cache: str | Path | None = None) -> Path:
    """The file of a store: the one named, or ``verdicts.db`` in the user's cache directory."""
    return Path(cache or cache_directory() / "verdicts.db")


def open_store(cache: str | Path | None = None, *, no_cache: bool = False) -> VerdictStore:
    """The store of a command that buys answers.

    Args:
        cache: Its file; by default as :func:`store_path`.
        no_cache: Reuse no answer of an earlier command, and keep none for a later one.

    Raises:
        InputError: The file is no store, or one of a newer askance.
        AskanceError: The disk is full or the folder cannot be written.
    """
    return VerdictStore(":memory:" if no_cache else store_path(cache))


class VerdictStore:
    """Answers by request key. Only answers are kept: a failure is never written, so it is asked again.

    Each answer is committed when it arrives. In WAL mode without a sync on every commit that costs some 20 µs and
    survives the process being killed; a power failure may lose the last answers, never the file.
    """

    def __init__(self, path: str | Path) -> None:
        """Open or create the store; ``:memory:`` is one that is gone when it is closed.

        Raises:
            InputError: The file is no store, or one of a newer askance.
            AskanceError: The disk is full or the folder cannot be written.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise InputError(f"{self.path}: written by a newer askance (schema {version}); update askance.")
            self._db.executescript(_SCHEMA)
            self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.DatabaseError as error:
            raise _explain(self.path, error) from None
        except OSError as error:
            raise AskanceError(f"{self.path}: cannot be written ({error.strerror}).") from None

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Those of the answers that are there.

        Raises:
            InputError: The file is damaged.
        """
        found: dict[bytes, Answer] = {}
        for start in range(0, len(keys), 500):
            block = keys[start : start + 500]
            marks = ",".join("?" * len(block))
            try:
                rows = self._db.execute(f"SELECT {_COLUMNS} FROM answers WHERE key IN ({marks})", block).fetchall()
            except sqlite3.DatabaseError as error:
                raise _explain(self.path, error) from None
            for key, *columns in rows:
                found[key] = _answer(*columns)
        return found

    def get(self, key: bytes) -> Answer | None:
        """One answer, or None."""
        return self.get_many([key]).get(key)

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer; it is on disk when this returns.

        Raises:
            AskanceError: It could not be written, e.g. because the disk is full.
        """
        logprobs = None
        if answer.logprobs is not None:
            flat = [
                [token, [part for name, logprob in alternatives for part in (name, logprob)]]
                for token, alternatives in answer.logprobs
            ]
            logprobs = _encode(flat)
        text = _storable(answer.text)
        row = (key, text, _storable(logprobs), answer.prompt_tokens, answer.completion_tokens)
        try:
            self._db.execute(_INSERT, (*row, answer.cost_usd, answer.finish))
        except sqlite3.DatabaseError as error:
            raise _explain(self.path, error) from None

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers that turned out to be of no use, so that they are asked again.

        Raises:
            AskanceError: The store cannot be written.
        """
        try:
            self._db.executemany("DELETE FROM answers WHERE key = ?", [(key,) for key in keys])
        except sqlite3.DatabaseError as error:
            raise _explain(self.path, error) from None

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file; the write-ahead log is folded in."""
        self._db.close()

    def __enter__(self) -> VerdictStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _storable(text: str | None) -> str | bytes | None:
    """The text, or its bytes where it holds half a surrogate pair, which SQLite takes for no text."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _stored(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")


def _answer(text: str | bytes, logprobs: str | bytes | None, *rest: Any) -> Answer:
    tokens = None
    if logprobs is not None:
        decoded, _ = _decode(_stored(logprobs))
        tokens = tuple([(token, tuple(zip(flat[::2], flat[1::2], strict=True))) for token, flat in decoded])
    return Answer(_stored(text), tokens, *rest)


def _explain(path: Path, error: sqlite3.DatabaseError) -> AskanceError:
    text = str(error)
    if "full" in text:
        return AskanceError(
            f"{path}: the disk is full. Everything bought before is kept; free some space and run the command again."
        )
    if "locked" in text:
        return AskanceError(f"{path}: another process is using this store; wait until it is done.")
    if "not a database" in text or "malformed" in text:
        return InputError(f"{path}: this file is damaged or no verdict store ({text}). Move it away to start afresh.")
    return AskanceError(f"{path}: the verdict store cannot be used ({text}).")
