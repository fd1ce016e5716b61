"""Every answer that was bought, once: SQLite in WAL mode, keyed by the hash of the whole request."""

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
"""Seconds before a store that another process is just making is opened again, and seconds that SQLite itself waited."""

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
"""Tables: ``brought`` has the keys of answers copied from another store, ``models`` facts about models that think."""
_LEARN = """
INSERT INTO models VALUES (?,?,?,?) ON CONFLICT (identity) DO UPDATE SET
    room = max(room, excluded.room), answers = answers + excluded.answers, tokens = tokens + excluded.tokens
"""
_INSERT = f"INSERT OR IGNORE INTO answers ({COLUMNS}) VALUES (?,?,?,?,?,?,?)"
_REPLACE = _INSERT.replace("IGNORE", "REPLACE")
"""Statement that overwrites a row which :func:`_select` passes over."""
Place = Path | PostgresAddress
"""Place of a store: a file, or a PostgreSQL database."""


class SharedStore(AnswerStore, ReadableStore, Protocol):
    """A store that many commands share, opened: :class:`VerdictStore` or :class:`.PostgresStore`."""

    def __len__(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def place_of(named: str | Place) -> Place:
    """Place of a store from its name: an address that begins with ``postgresql:``, else a file. Raises InputError for
    an address of another kind, or one that PostgreSQL does not take."""
    text = str(named) if isinstance(named, str) else ""
    if text.startswith(("postgresql:", "postgres:")):
        return PostgresAddress(text)
    if "://" in text:
        raise InputError(
            f"store {text.partition('://')[0]}://…: answers are kept in a file or in PostgreSQL (postgresql://…)."
        )
    return named if isinstance(named, PostgresAddress) else Path(named)


def store_path(store: str | Place | None = None) -> Place:
    """Place of the answers of all commands: as named, as ``ASKANCE_STORE`` says, or in the user's cache directory.
    Raises InputError as :func:`place_of`."""
    return place_of(store or os.environ.get("ASKANCE_STORE") or cache_directory() / "verdicts.db")


def open_store(store: str | Place | None = None, *, no_cache: bool = False, beside: Path | None = None) -> SharedStore:
    """Open the store of a command that buys answers; by default that of :func:`store_path`.

    Args:
        no_cache: Reuse no answer of an earlier command, and keep none for a later one.
        beside: Another store, e.g. a run's, whose answers are reused too; nothing is written to it.

    Raises:
        InputError: The file is no store, or a newer askance wrote it; the address is none, or the database refuses.
        AskanceError: The disk is full, the folder cannot be written, or the database is not there.
    """
    if no_cache:
        return VerdictStore(":memory:", is_ours=True)
    place = store_path(store)
    if isinstance(place, PostgresAddress):
        return PostgresStore(place, None if beside is None else _ReadOnly(beside))
    return VerdictStore(place, beside)


class VerdictStore:
    """Answers by request key. Only answers are kept: a failure is never written, so it is asked again.

    Each answer is committed when it arrives. In WAL mode without a sync on every commit that costs some 20 µs and
    survives the process being killed; a power failure may lose the last answers, never the file. Each method raises
    :class:`InputError` where the file is damaged, and :class:`AskanceError` where it cannot be written, e.g. because
    the disk is full.
    """

    def __init__(
        self,
        path: str | Path,
        beside: Path | None = None,
        shared: Place | SharedStore | None = None,
        *,
        is_ours: bool = False,
    ) -> None:
        """Open or create the store; ``:memory:`` is one that is gone when it is closed.

        A store that was cut off is replaced by what can be read of it, which is said; the file is kept beside it.
        Raises InputError where the file is no store, one of a newer askance, or a database of another program. Raises
        AskanceError where the disk is full or the folder cannot be written.

        Args:
            beside: Another store, which is looked into where an answer is not here, and never written to.
            shared: A store of many commands, or one that is open, which is closed with this one. An answer that is
                there and not here is copied, so that this file has all that was asked of it and can be moved; a new
                answer is kept in both, and claimed there.
            is_ours: No other process writes to this file, so that nothing is claimed in it.
        """
        self.path = Path(path)
        try:
            self._db, self._brought = self._open()
        except InputError:  # a file that cannot be read as a whole is read as far as it goes
            if not self.path.is_file() or not salvage(self.path, _SCHEMA, COLUMNS, SCHEMA_VERSION):
                raise
            self._db, self._brought = self._open()
        self._beside = None if beside is None else _ReadOnly(beside)
        self._shared = _open_shared(shared) if isinstance(shared, (Path, PostgresAddress)) else shared
        own = None if is_ours else claims.Claims(self._db)
        self._claims: claims.Claims | SharedStore | None = own if self._shared is None else self._shared

    def _open(self, again: int = 20) -> tuple[sqlite3.Connection, set[bytes]]:
        """The file with its tables, and the keys that were brought."""
        # SQLite does not wait where several processes make the same file at once, so it is tried again; where it has
        # waited, that is it.
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
            db.execute("PRAGMA journal_mode=WAL")  # the first thing that is written
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
        """Whether an answer may be bought now. If not, another process that shares the store is buying it."""
        with _explained(self.path):
            return self._claims is None or self._claims.claim(key)

    def renew(self, keys: Sequence[bytes]) -> None:
        """Hold claims for longer: their answers are still being bought."""
        with _explained(self.path):
            if self._claims is not None:
                self._claims.renew(keys)

    def let_go(self, keys: Sequence[bytes]) -> None:
        """End claims: their answers are there, or are not to be bought."""
        with _explained(self.path):
            if self._claims is not None:
                self._claims.let_go(keys)

    def get_many(self, keys: Sequence[bytes]) -> KeptAnswers:
        """The answers that are there."""
        rows = self.rows(keys)
        if self._beside is not None and (missing := left_of(keys, rows)):
            rows += self._beside.rows(missing)
        return KeptAnswers(rows)

    def get(self, key: bytes) -> Answer | None:
        """One answer, or None."""
        return self.get_many([key]).get(key)

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, which is then no longer claimed; it is on disk when this returns, also in the shared store
        where there is one."""
        row = row_of(key, answer)
        with _explained(self.path):
            if not self._db.execute(_INSERT, row).rowcount and not _select(self._db, [key]):
                self._db.execute(_REPLACE, row)
            if isinstance(self._claims, claims.Claims):
                self._claims.let_go([key])
        if self._shared is not None:
            self._shared.put(key, answer)

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers that turned out to be of no use, here and in the shared store, so that they are asked again."""
        with _explained(self.path):
            self._db.executemany("DELETE FROM answers WHERE key = ?", [(key,) for key in keys])
            self._db.executemany("DELETE FROM brought WHERE key = ?", [(key,) for key in keys])
        self._brought.difference_update(keys)
        if self._shared is not None:
            self._shared.forget(keys)

    def bring(self, path: Path) -> None:
        """Copy the answers of another store, all or none; they are :attr:`brought` from then on."""
        other = _ReadOnly(path)
        try:
            self._take(other.all_rows())
        finally:
            other.close()

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Facts about a model that thinks, from here, the shared store, or the one beside."""
        with _explained(self.path):
            facts = _facts(self._db, identity)
        for other in (self._shared, self._beside):
            facts = facts or (None if other is None else other.learned(identity))
        return facts

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        """Keep what was learned of a model, also in the shared store."""
        with _explained(self.path):
            self._db.execute(_LEARN, (identity, *facts))
        if self._shared is not None:
            self._shared.learn(identity, facts)

    def rows(self, keys: Sequence[bytes]) -> list[Row]:
        """The answers that are here or in the shared store, as they are written down."""
        with _explained(self.path):
            rows = _select(self._db, keys)
        if self._shared is not None and (missing := left_of(keys, rows)):
            theirs = self._shared.rows(missing)
            self._take(theirs, _REPLACE)
            rows += theirs
        return rows

    def _take(self, rows: Iterable[Row], write: str = _INSERT) -> None:
        """Write rows of another store, all or none, and note which of them are brought."""
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
        """Keys of the answers that were copied from another store; it grows as more are."""
        return self._brought

    def __len__(self) -> int:
        with _explained(self.path):
            return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file, letting go of what is still claimed; the write-ahead log is folded in."""
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
    """The answers of a store that belongs to somebody else: not one byte of it, or beside it, is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # a store that somebody has open has a write-ahead log; one at rest is read as a plain file, which makes none
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

    A store may have no table yet: its process was killed while making it. The table of answers is made first. Raises
    InputError where there are tables, and none with askance's answers.
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
    """Read rows in the order of the keys, which is the file's order: neighbours share its pages."""
    keys, rows = sorted(keys), []
    for start in range(0, len(keys), 500):
        block = keys[start : start + 500]
        marks = ",".join("?" * len(block))
        rows += db.execute(f"SELECT {COLUMNS} FROM answers WHERE key IN ({marks})", block).fetchall()
    return [row for row in rows if not is_empty(row)]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """A sentence for SQLite's error about a file."""
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
