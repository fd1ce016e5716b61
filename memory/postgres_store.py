"""One store for many machines: the answers and claims of :mod:`.verdict_store` in a PostgreSQL database (psycopg 3)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from time import monotonic, sleep
from typing import Any, TypeVar

from ..models.base import Answer, StoreAwayError, ThinkingFacts
from ..prompts.errors import AskanceError, InputError, import_optional
from .answer_rows import COLUMNS, UNKNOWN, KeptAnswers, ReadableStore, Row, is_empty, left_of, row_of, storable
from .claims import LEASE, Claimant

Result = TypeVar("Result")
SCHEMA_VERSION = 1
_SCHEMA = f"""
SELECT pg_advisory_xact_lock(hashtext('askance_store'));
CREATE TABLE IF NOT EXISTS askance_answers (
    key bytea PRIMARY KEY,
    text bytea NOT NULL,
    logprobs bytea,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cost_usd double precision,
    finish bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS askance_claims (key bytea PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS askance_store (version integer NOT NULL);
INSERT INTO askance_store SELECT {SCHEMA_VERSION} WHERE NOT EXISTS (SELECT FROM askance_store);
"""
"""Texts are stored as bytes (UTF-8), because a PostgreSQL text allows neither NUL nor half a surrogate pair."""
_PUT = f"""
WITH bought AS (DELETE FROM askance_claims WHERE key = %b AND owner = %s)
INSERT INTO askance_answers ({COLUMNS})
SELECT %b, %b, %b::bytea, %s, %s, %s::float8, %b FROM set_config('synchronous_commit', 'off', true)
ON CONFLICT (key) DO NOTHING
"""
"""Statement that keeps an answer and does not wait for the disk, which can sync only some hundred times a second.

The server writes within 0.6 s. If it crashes before, the store puts the lost answers again.
"""
_RECENT = 5.0
"""Seconds for which the store remembers an answer, to put it again after a crash of the server."""
_CLAIM = f"""
INSERT INTO askance_claims AS held (key, owner, until)
SELECT %(key)b, %(owner)s, clock_timestamp() + interval '{LEASE} s'
FROM set_config('synchronous_commit', 'off', true)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE held.owner IN (excluded.owner, %(gone)s)
    OR held.until NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '{2 * LEASE} s'
"""
"""Statement that claims an answer. The lease is measured by the database's clock."""
_RENEW = f"""
UPDATE askance_claims SET until = clock_timestamp() + interval '{LEASE} s' WHERE key = ANY(%b) AND owner = %s
"""
_LET_GO = """
DELETE FROM askance_claims USING set_config('synchronous_commit', 'off', true) WHERE key = ANY(%b) AND owner = %s
"""
_MODELS = """
CREATE TABLE IF NOT EXISTS askance_models (
    identity text PRIMARY KEY, room bigint NOT NULL, answers bigint NOT NULL, tokens bigint NOT NULL
)
"""
"""Created with the first facts about a model, because databases of earlier versions lack this table."""
_LEARN = """
INSERT INTO askance_models AS known VALUES (%s, %s, %s, %s) ON CONFLICT (identity) DO UPDATE SET
    room = greatest(known.room, excluded.room), answers = known.answers + excluded.answers,
    tokens = known.tokens + excluded.tokens
"""
_SESSION = {
    "connect_timeout": "5",
    "tcp_user_timeout": "15000",
    "client_encoding": "utf8",
    "application_name": "askance",
}
"""Defaults of the connection, which the address may override. A server that stops answering is given up after 15 s."""
_AGAIN = ("40001", "40P01", "55P03")
"""SQL states of conflicts with another session, after which the same statement may succeed."""
_CONFLICTS = 20
"""Most repeats of a statement after such conflicts."""
_CONNECTED = 3
"""Connections on which a statement is tried before it fails: a connection may be cut as soon as it is made."""
_OPENING = 3.0
"""Seconds for which opening a store is tried again if the server breaks off or restarts."""
_REFUSED = re.compile("authentication|no password|does not exist|no pg_hba|not translate host|invalid|not permitted")


@dataclass(frozen=True)
class PostgresAddress:
    """Address ``postgresql://NAME@HOST:PORT/DATABASE``. Its ``str`` and ``repr`` hide the password."""

    text: str = field(repr=False)

    @cached_property
    def parts(self) -> dict[str, str]:
        """The parts of the address, by libpq's names. Raises InputError if the address is not valid, and
        MissingExtraError if psycopg is not installed."""
        conninfo = import_optional("psycopg.conninfo", "postgres", "psycopg")
        try:
            parts = {name: str(value) for name, value in conninfo.conninfo_to_dict(self.text).items()}
        except Exception:  # not raised further, because its message may hold the whole address with the password
            parts = {}
        port, places = parts.get("port", "0"), "".join(parts.get(name, "") for name in ("host", "hostaddr", "dbname"))
        if (not parts and not self.text.endswith("://")) or "@" in places or not port.replace(",", "").isdecimal():
            raise InputError(
                "store postgresql://…: this is no address of a database. Write it like "
                "postgresql://NAME@HOST:5432/DATABASE, "
                "and signs such as @ : / ? # % in a name or password as %40 %3A %2F %3F %23 %25."
            )
        return parts

    def __str__(self) -> str:
        try:
            parts = self.parts
        except AskanceError:
            return "postgresql://…"
        user = f"{parts['user']}@" if parts.get("user") else ""
        port = f":{parts['port']}" if parts.get("port") else ""
        return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


class PostgresStore:
    """Answers by request key for many machines, like :class:`~askance.memory.verdict_store.VerdictStore` for one.

    Each answer is committed when it arrives. If the connection was cut, the store connects again and repeats the
    statement; each statement can be executed twice without harm. Tables are created with the first claim or answer. A
    crash of the server loses the answers of its last 0.6 s only if the process that bought them ends at the same time.
    Each method raises :class:`StoreAwayError` if the server does not answer now; the call can then be repeated. Each
    method raises :class:`AskanceError` if the store cannot be used, e.g. because the disk is full.
    """

    def __init__(self, address: PostgresAddress, beside: ReadableStore | None = None) -> None:
        """Connect. The store ``beside`` is asked for answers that this one lacks, and closed with this one.

        Raises:
            InputError: The address is not valid, the database refuses the user or does not exist, or a newer askance
                made its tables.
            MissingExtraError: psycopg is not installed.
            AskanceError: The server does not answer.
        """
        self.address = address
        self._parts = _SESSION | address.parts
        self._psycopg = import_optional("psycopg", "postgres", "psycopg")
        self._beside = beside
        self._claimant = Claimant()
        self._held: set[bytes] = set()
        """Keys claimed by this store. They are claimed again on each new connection, as a crash may lose the claims."""
        self._lock = RLock()
        self._db: Any = None
        self._recent: deque[tuple[float, tuple[Any, ...]]] = deque()
        """Rows put in the last seconds, each with its time (monotonic clock)."""
        self._not_before = 0.0
        """Earliest time (monotonic clock) for the next connection. Until then calls fail at once and do not wait."""
        self._is_there = self._open()
        self._has_models = False

    def claim(self, key: bytes) -> bool:
        """Claim an answer before it is bought. Returns False if another process that shares the store is buying it."""
        values = self._signed(key)

        def take(db: Any) -> bool:
            if db.execute(_CLAIM, values).rowcount > 0:
                return True
            holder = db.execute("SELECT owner FROM askance_claims WHERE key = %b", (key,)).fetchone()
            if holder is None or self._claimant.has_ended(holder[0]):
                return bool(db.execute(_CLAIM, values | {"gone": holder[0] if holder else ""}).rowcount > 0)
            return False

        with self._lock:
            is_taken = self._write(take)
            (self._held.add if is_taken else self._held.discard)(key)
        return is_taken

    def renew(self, keys: Sequence[bytes]) -> None:
        """Extend claims while their answers are still being bought."""
        self._write(lambda db: db.execute(_RENEW, (list(keys), self._claimant.name)))

    def let_go(self, keys: Sequence[bytes]) -> None:
        """End claims whose answers have arrived, or will not be bought."""
        self._held.difference_update(keys)
        self._write(lambda db: db.execute(_LET_GO, (list(keys), self._claimant.name)))

    def get_many(self, keys: Sequence[bytes]) -> KeptAnswers:
        """Return the stored answers to these keys."""
        rows = self.rows(keys)
        if self._beside is not None and (missing := left_of(keys, rows)):
            rows += self._beside.rows(missing)
        return KeptAnswers(rows)

    def rows(self, keys: Sequence[bytes]) -> list[Row]:
        """Return the rows of the stored answers to these keys (:mod:`.answer_rows`)."""
        if not self._is_there:
            self._is_there = self._do(_version) > 0
        if not self._is_there or not keys:
            return []
        sql = f"SELECT {COLUMNS} FROM askance_answers WHERE key = ANY(%b)"
        found = self._do(lambda db: db.execute(sql, (list(keys),), binary=True).fetchall())
        return [row for row in map(_row, found) if not is_empty(row)]

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer and end its claim. The answer is committed before this returns."""
        _, text, logprobs, sent, written, cost, finish = row_of(key, answer)
        row = (key, _bytes(text), None if logprobs is None else _bytes(logprobs), sent, written)
        values = (key, self._claimant.name, *row, None if cost == UNKNOWN else cost, _bytes(finish))
        with self._lock:  # otherwise another thread could reconnect in between and claim the key again
            self._write(lambda db: db.execute(_PUT, values))
            self._held.discard(key)
            now = monotonic()
            self._recent.append((now, values))
            while self._recent[0][0] < now - _RECENT:
                self._recent.popleft()

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Return facts about a model that thinks, from this store or the store beside; else None."""

        def look(db: Any) -> Any:
            if db.execute("SELECT to_regclass('askance_models')").fetchone()[0] is None:
                return None
            said = "SELECT room, answers, tokens FROM askance_models WHERE identity = %s"
            return db.execute(said, (identity,)).fetchone()

        if found := self._do(look) if self._is_there else None:
            return ThinkingFacts(*found)
        return None if self._beside is None else self._beside.learned(identity)

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        """Add facts about a model that thinks."""

        def write(db: Any) -> None:
            if not self._has_models:
                db.execute(_MODELS)
            db.execute(_LEARN, (identity, *facts))

        self._write(write)
        self._has_models = True

    def forget(self, keys: Sequence[bytes]) -> None:
        """Delete answers that cannot be used, so that they are asked for again."""
        with self._lock:
            self._recent = deque((at, values) for at, values in self._recent if values[0] not in keys)
        self._write(lambda db: db.execute("DELETE FROM askance_answers WHERE key = ANY(%b)", (list(keys),)))

    def __len__(self) -> int:
        if not self._is_there:
            return 0
        return int(self._do(lambda db: db.execute("SELECT count(*) FROM askance_answers").fetchone()[0]))

    def close(self) -> None:
        """End the remaining claims and close the connection."""
        if self._held and self._is_there:
            with suppress(AskanceError):
                self.let_go([*self._held])
        with self._lock:
            self._drop()
        if self._beside is not None:
            self._beside.close()

    def __enter__(self) -> PostgresStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> bool:
        """Connect, and return whether the tables exist. Raises InputError if the server refuses the connection, and
        AskanceError if it does not answer for :data:`_OPENING` seconds."""
        deadline = monotonic() + _OPENING
        while True:
            try:
                return self._do(_version) > 0
            except StoreAwayError as error:
                is_refused = _REFUSED.search(str(error)) is not None
                if is_refused or monotonic() > deadline:
                    raise (InputError if is_refused else AskanceError)(str(error)) from None
            sleep(max(0.1, self._not_before - monotonic()))

    def _signed(self, key: bytes) -> dict[str, Any]:
        return {"key": key, "owner": self._claimant.name, "gone": ""}

    def _write(self, work: Callable[[Any], Result]) -> Result:
        if not self._is_there:
            self._do(_make)
            self._is_there = True
        return self._do(work)

    def _do(self, work: Callable[[Any], Result]) -> Result:
        """Do work on the connection, again after a conflict or on a new connection if the old one was cut."""
        with self._lock:
            conflicts = connected = 0
            while True:
                if self._db is None:
                    self._connect()
                    connected += 1
                try:
                    return work(self._db)
                except self._psycopg.Error as error:
                    if error.sqlstate in _AGAIN and conflicts < _CONFLICTS and not self._db.closed:
                        conflicts += 1
                        sleep(0.01 * conflicts)
                        continue
                    is_cut = self._db.closed or self._db.broken or (error.sqlstate or "").startswith(("08", "57P"))
                    if is_cut:
                        self._drop()
                    if is_cut and connected == _CONNECTED:
                        raise StoreAwayError(f"{self.address} broke off ({_said(error)}).") from None
                    if not is_cut:
                        raise self._explain(error) from None

    def _connect(self) -> None:
        began = monotonic()
        if began < self._not_before:
            raise StoreAwayError(f"{self.address} does not answer.")
        try:
            self._db = self._psycopg.connect(**self._parts, autocommit=True, prepare_threshold=None)
            for _, values in self._recent:
                self._db.execute(_PUT, values)
            for key in [*self._held]:
                self._db.execute(_CLAIM, self._signed(key))
        except self._psycopg.Error as error:
            self._drop()
            self._not_before = monotonic() + max(0.5, 2 * (monotonic() - began))
            raise StoreAwayError(f"{self.address} cannot be reached ({_said(error)}).") from None

    def _drop(self) -> None:
        if self._db is not None:
            with suppress(self._psycopg.Error):
                self._db.close()
        self._db = None

    def _explain(self, error: Any) -> AskanceError:
        problem = f"the store cannot be used ({_said(error)})"
        if error.sqlstate == "53100":
            problem = "the disk of the database is full. "
            problem += "Everything bought before is kept; free some space and run the command again"
        elif error.sqlstate == "42501":
            problem = f"the user may not do what a store needs ({_said(error)}). "
            problem += "Grant it, or let its owner begin the store"
        return AskanceError(f"{self.address}: {problem}.")


def _version(db: Any) -> int:
    """Return the version of the tables; 0 if there are none. Raises InputError if a newer askance made them."""
    if db.execute("SELECT to_regclass('askance_store')").fetchone()[0] is None:
        return 0
    version = db.execute("SELECT max(version) FROM askance_store").fetchone()[0] or 0
    if version > SCHEMA_VERSION:
        raise InputError(f"The tables askance_… are written by a newer askance (schema {version}); update askance.")
    return int(version)


def _make(db: Any) -> None:
    with db.transaction():
        db.execute(_SCHEMA)


def _row(found: tuple[bytes, bytes, bytes | None, int, int, float | None, bytes]) -> Row:
    key, text, logprobs, sent, written, cost, finish = found
    kept = None if logprobs is None else _text(logprobs)
    return key, _text(text), kept, sent, written, UNKNOWN if cost is None else cost, finish.decode()


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _text(kept: bytes) -> str | bytes:
    return storable(kept.decode("utf-8", "surrogatepass"))


def _said(error: Exception) -> str:
    """Return the error's message, from the server or libpq, on one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
