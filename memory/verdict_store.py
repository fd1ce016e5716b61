"""Store of every answer that was bought: SQLite in WAL mode, keyed by the hash of the whole request."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, Self

from ..models.base import Answer, AnswerStore, ThinkingFacts
from ..models.files import cache_directory
from ..prompts.errors import AskanceError, InputError
from . import claims
from .answer_rows import COLUMNS, KeptAnswers, ReadableStore, Row, is_empty, left_of, row_of
from .postgres_store import PostgresAddress, PostgresStore
from .salvage import is_cut_off, salvage

SCHEMA_VERSION = 1
WAITS, LONG = 0.05, 5.0
"""``WAITS``: seconds before another try to open a store that another process is creating. ``LONG``: if SQLite itself
has waited so many seconds, the store is not tried again."""

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
CREATE TABLE IF NOT EXISTS brought (key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS models (
    identity TEXT PRIMARY KEY, room INTEGER NOT NULL, answers INTEGER NOT NULL, tokens INTEGER NOT NULL
) WITHOUT ROWID;
"""
"""Tables: ``brought`` lists the answers copied from another store, ``models`` the facts about models that think."""
_LEARN = """
INSERT INTO models VALUES (?,?,?,?) ON CONFLICT (identity) DO UPDATE SET
    room = max(room, excluded.room), answers = answers + excluded.answers, tokens = tokens + excluded.tokens
"""
_INSERT = f"INSERT OR IGNORE INTO answers ({COLUMNS}) VALUES (?,?,?,?,?,?,?)"
_REPLACE = _INSERT.replace("IGNORE", "REPLACE")
"""Statement that overwrites an empty row, which :func:`_select` ignores."""
Place = Path | PostgresAddress
"""Place of a store: a file, or a PostgreSQL database."""


class SharedStore(AnswerStore, ReadableStore, Protocol):
    """An open store that many commands share: :class:`VerdictStore` or :class:`.PostgresStore`."""

    def __len__(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def place_of(named: str | Place) -> Place:
    """Return the place of a store from its name: a PostgreSQL address if it begins with ``postgresql:``, else a file.
    Raises InputError for an address of another kind."""
    text = str(named) if isinstance(named, str) else ""
    if text.startswith(("postgresql:", "postgres:")):
        return PostgresAddress(text)
    if "://" in text:
        raise InputError(
            f"store {text.partition('://')[0]}://…: answers are kept in a file or in PostgreSQL (postgresql://…)."
        )
    return named if isinstance(named, PostgresAddress) else Path(named)


def store_path(store: str | Place | None = None) -> Place:
    """Return the place of the store of all commands: ``store``, else ``ASKANCE_STORE``, else a file in the user's cache
    directory. Raises InputError for an address that is not a PostgreSQL address."""
    return place_of(store or os.environ.get("ASKANCE_STORE") or cache_directory() / "verdicts.db")


def open_store(store: str | Place | None = None, *, no_cache: bool = False, beside: Path | None = None) -> SharedStore:
    """Open the store of a command that buys answers. Its default place is :func:`store_path`.

    Args:
        no_cache: Reuse no answer of an earlier command, and keep no answer for a later command.
        beside: Another store, e.g. a run's, whose answers are reused too. Nothing is written to it.

    Raises:
        InputError: The file is not a store, or a newer askance wrote it; the address is not valid, or the database
            refuses the user.
        AskanceError: The disk is full, the folder cannot be written, or the database does not answer.
    """
    if no_cache:
        return VerdictStore(":memory:", is_ours=True)
    place = store_path(store)
    if isinstance(place, PostgresAddress):
        return PostgresStore(place, None if beside is None else _ReadOnly(beside))
    return VerdictStore(place, beside)


class VerdictStore:
    """Answers by request key. Failures are never written, so a failed request is asked again.

    Each answer is committed when it arrives. A commit takes about 20 µs, because WAL mode does not sync on each commit.
    Committed answers survive when the process is killed. A power failure may lose the last answers, but not the file.
    Each method raises :class:`InputError` if the file is damaged, and :class:`AskanceError` if it cannot be written,
    e.g. because the disk is full.
    """

    def __init__(
        self,
        path: str | Path,
        beside: Path | None = None,
        shared: Place | SharedStore | None = None,
        *,
        is_ours: bool = False,
    ) -> None:
        """Open or create the store. ``:memory:`` makes a store that is lost when it is closed.

        If the file was cut off, its readable answers are saved into a new file, with a warning; the old file is kept
        beside it. Raises InputError if the file is not a store, comes from a newer askance, or is a database of another
        program. Raises AskanceError if the disk is full or the folder cannot be written.

        Args:
            beside: Another store that is asked for answers that this one lacks. It is never written to.
            shared: The place of a store that many commands share, or such a store that is open. It is closed with this
                one. Answers found there are copied to this file, so that this file is complete and can be moved. New
                answers are kept in both stores and claimed in the shared one.
            is_ours: No other process writes to this file, so answers need not be claimed in it.
        """
        self.path = Path(path)
        try:
            self._db, self._brought = self._open()
        except InputError:  # of a damaged file, the readable rows are saved
            if not self.path.is_file() or not salvage(self.path, _SCHEMA, COLUMNS, SCHEMA_VERSION):
                raise
            self._db, self._brought = self._open()
        self._beside = None if beside is None else _ReadOnly(beside)
        self._shared = _open_shared(shared) if isinstance(shared, (Path, PostgresAddress)) else shared
        own = None if is_ours else claims.Claims(self._db)
        self._claims: claims.Claims | SharedStore | None = own if self._shared is None else self._shared

    def _open(self, again: int = 20) -> tuple[sqlite3.Connection, set[bytes]]:
        """Open the file and create its tables. Returns the connection and the keys of the copied answers."""
        # If several processes create the same file together, SQLite fails immediately and does not wait: we try again.
        # If SQLite did wait, the file is really in use, and another try would not help.
        began = time.monotonic()
        db = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            if is_cut_off(self.path):
                raise sqlite3.DatabaseError("malformed: pages are missing at its end")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise InputError(f"{self.path}: written by a newer askance (schema {version}); update askance.")
            _refuse_other_tables(db, self.path)
            db.execute("PRAGMA journal_mode=WAL")  # the first write: the checks above must come before it
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA cache_size=-8000")  # kB: the inner pages of a million answers
            db.executescript(_SCHEMA + claims.SCHEMA)
            db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            return db, {key for (key,) in db.execute("SELECT key FROM brought")}
        except BaseException as error:
            if db is not None:
                db.close()
            was_at_once = time.monotonic() - began < LONG
            if again and was_at_once and isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                time.sleep(WAITS)
                return self._open(again - 1)
            if isinstance(error, sqlite3.DatabaseError):
                raise _explain(self.path, error) from None
            if isinstance(error, OSError):
                raise AskanceError(f"{self.path}: cannot be written ({error.strerror}).") from None
            raise

    def claim(self, key: bytes) -> bool:
        """Claim an answer before it is bought. Returns False if another process that shares the store is buying it."""
        with _explained(self.path):
            return self._claims is None or self._claims.claim(key)

    def renew(self, keys: Sequence[bytes]) -> None:
        """Extend claims while their answers are still being bought."""
        with _explained(self.path):
            if self._claims is not None:
                self._claims.renew(keys)

    def let_go(self, keys: Sequence[bytes]) -> None:
        """End claims whose answers have arrived, or will not be bought."""
        with _explained(self.path):
            if self._claims is not None:
                self._claims.let_go(keys)

    def get_many(self, keys: Sequence[bytes]) -> KeptAnswers:
        """Return the stored answers to these keys."""
        rows = self.rows(keys)
        if self._beside is not None and (missing := left_of(keys, rows)):
            rows += self._beside.rows(missing)
        return KeptAnswers(rows)

    def get(self, key: bytes) -> Answer | None:
        """Return the stored answer to a key, or None."""
        return self.get_many([key]).get(key)

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, also in the shared store, and end its claim. It is committed before this returns."""
        row = row_of(key, answer)
        with _explained(self.path):
            if not self._db.execute(_INSERT, row).rowcount and not _select(self._db, [key]):
                self._db.execute(_REPLACE, row)
            if isinstance(self._claims, claims.Claims):
                self._claims.let_go([key])
        if self._shared is not None:
            self._shared.put(key, answer)

    def forget(self, keys: Sequence[bytes]) -> None:
        """Delete answers that cannot be used, here and in the shared store, so that they are asked for again."""
        with _explained(self.path):
            self._db.executemany("DELETE FROM answers WHERE key = ?", [(key,) for key in keys])
            self._db.executemany("DELETE FROM brought WHERE key = ?", [(key,) for key in keys])
        self._brought.difference_update(keys)
        if self._shared is not None:
            self._shared.forget(keys)

    def bring(self, path: Path) -> None:
        """Copy all answers of another store, in one transaction. Their keys join :attr:`brought`."""
        source = _ReadOnly(path)
        try:
            self._take(source.all_rows())
        finally:
            source.close()

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Return facts about a model that thinks, from this store, the shared store or the store beside; else None."""
        with _explained(self.path):
            facts = _facts(self._db, identity)
        for other in (self._shared, self._beside):
            facts = facts or (None if other is None else other.learned(identity))
        return facts

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        """Add facts about a model that thinks, also to the shared store."""
        with _explained(self.path):
            self._db.execute(_LEARN, (identity, *facts))
        if self._shared is not None:
            self._shared.learn(identity, facts)

    def rows(self, keys: Sequence[bytes]) -> list[Row]:
        """Return the rows of these keys from this store and the shared store."""
        with _explained(self.path):
            rows = _select(self._db, keys)
        if self._shared is not None and (missing := left_of(keys, rows)):
            theirs = self._shared.rows(missing)
            self._take(theirs, _REPLACE)
            rows += theirs
        return rows

    def _take(self, rows: Iterable[Row], write: str = _INSERT) -> None:
        """Write rows of another store in one transaction, and note their keys as brought."""
        taken = []
        with _explained(self.path):
            try:
                for row in rows:
                    if not self._db.in_transaction:
                        self._db.execute("BEGIN IMMEDIATE")
                    if not is_empty(row) and self._db.execute(write, row).rowcount:
                        self._db.execute("INSERT OR IGNORE INTO brought VALUES (?)", row[:1])
                        taken.append(row[0])
                if self._db.in_transaction:
                    self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        self._brought.update(taken)

    @property
    def brought(self) -> Set[bytes]:
        """Keys of the answers that were copied from another store. The set grows as more answers are copied."""
        return self._brought

    def __len__(self) -> int:
        with _explained(self.path):
            return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """End the remaining claims and close the file. SQLite then merges the write-ahead log into it."""
        if isinstance(self._claims, claims.Claims):
            with suppress(sqlite3.Error):  # e.g. a full disk: the claims lapse
                self._claims.let_all_go()
        self._db.close()
        for other in (self._beside, self._shared):
            if other is not None:
                other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _ReadOnly:
    """Answers of another store, opened so that nothing is written to it or beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # A store that a process has open has a write-ahead log. Without one we read the store as an immutable file, as
        # SQLite would otherwise create a log beside it.
        how = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
        self._db = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, check_same_thread=False, timeout=30)

    def rows(self, keys: Sequence[bytes]) -> list[Row]:
        with _explained(self._path):
            return _select(self._db, keys)

    def learned(self, identity: str) -> ThinkingFacts | None:
        with suppress(sqlite3.OperationalError):  # a store of an earlier version has no such table
            return _facts(self._db, identity)
        return None

    def all_rows(self) -> Iterator[Row]:
        with _explained(self._path):
            yield from self._db.execute(f"SELECT {COLUMNS} FROM answers")

    def close(self) -> None:
        self._db.close()


def _open_shared(place: Place) -> SharedStore:
    try:
        return open_store(place)
    except AskanceError as error:
        if isinstance(place, PostgresAddress):
            raise
        raise type(error)(
            f"{error} It holds the answers of all commands; ASKANCE_CACHE names another folder for it, and --no-cache "
            "goes without."
        ) from None


def _refuse_other_tables(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of another program, before anything is written to it.

    A database without tables passes, because a process may have been killed while it created the store. The table of
    answers is created first. Raises InputError if there are tables, but no table with askance's answers.
    """
    if db.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        return
    try:
        db.execute(f"SELECT {COLUMNS} FROM answers WHERE 0")
    except sqlite3.OperationalError as error:
        if not str(error).startswith("no such"):
            raise
        raise InputError(
            f"{path}: this is a database of another program and no verdict store. Name another file for the answers."
        ) from None


def _facts(db: sqlite3.Connection, identity: str) -> ThinkingFacts | None:
    found = db.execute("SELECT room, answers, tokens FROM models WHERE identity = ?", (identity,)).fetchone()
    return None if found is None else ThinkingFacts(*found)


def _select(db: sqlite3.Connection, keys: Sequence[bytes]) -> list[Row]:
    """Read the rows of the keys, without empty rows."""
    keys, rows = sorted(keys), []  # sorted as in the file, so that rows of the same page are read together
    for start in range(0, len(keys), 500):
        block = keys[start : start + 500]
        marks = ",".join("?" * len(block))
        rows += db.execute(f"SELECT {COLUMNS} FROM answers WHERE key IN ({marks})", block).fetchall()
    return [row for row in rows if not is_empty(row)]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about a file into sentences for the user."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _explain(path, error) from None


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
