"""The answers that a process is about to buy: another one that shares the store waits instead of paying, too.

A claim is a row: the key, who has it, and until when. It is held no longer than its lease; who buys renews it
meanwhile.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path

from ..models.gateway import RENEWS_EVERY

LEASE = 120.0
"""Seconds after which what was claimed and not renewed may be bought by another, as nobody knows whether its owner is
still there. One that ends more than twice as far ahead is taken for the mark of a clock that was wrong."""

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;"
)
_CLAIM = """
INSERT INTO claims VALUES (:key, :owner, :until)
ON CONFLICT (key) DO UPDATE SET owner = :owner, until = :until
WHERE owner = :owner OR (owner = :gone AND until = :lapsed)
"""
_NUMBERS = count(1)


class Claimant:
    """One opened store, as it signs its claims: the machine, a number, the process."""

    def __init__(self) -> None:
        self.machine = _machine()
        self._number = next(_NUMBERS)

    @property
    def name(self) -> str:
        """The name that stands in a claim."""
        return f"{self.machine}/{self._number}/{os.getpid()}"

    def has_ended(self, owner: str) -> bool:
        """Whether an owner is a process of this machine that is gone. Owners on other machines never count as gone."""
        return self._runs(owner) is False

    def is_there(self, owner: str) -> bool:
        """Whether an owner is a process of this machine that runs, as far as its number says."""
        return self._runs(owner) is True

    def _runs(self, owner: str) -> bool | None:
        """None where nobody can say."""
        machine, _, process = owner.rpartition("/")
        machine = machine.rpartition("/")[0]
        if machine != self.machine or os.name == "nt":  # where asking whether a process is there would end it
            return None
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # it is somebody else's
            return True
        except (OSError, ValueError, OverflowError):
            return None
        return True


class Claims:
    """The claims in a store that is a SQLite file; an owner is a :class:`Claimant`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """``db`` has the table of :data:`SCHEMA`."""
        self._db = db
        self.claimant = Claimant()
        self._lapsed: dict[tuple[bytes, str, float], float] = {}
        """Claims that have lapsed and whose owner is still there, each with when that was first seen, of the monotonic
        clock."""

    def claim(self, key: bytes) -> bool:
        """Whether this process is the one to buy an answer now. It stays true until the claim is let go.

        A claim of a process that has ended is taken at once; a claim from another machine is taken after its lease. A
        process that still runs renews its claims, whatever the clock says. Its lapsed claim is taken only if it stays
        lapsed.
        """
        now = time.time()
        values = {"key": key, "owner": self.claimant.name, "until": now + LEASE, "gone": None, "lapsed": None}
        if self._db.execute(_CLAIM, values).rowcount > 0:
            return True
        holder = self._db.execute("SELECT owner, until FROM claims WHERE key = ?", (key,)).fetchone()
        if holder is None:
            return self._db.execute(_CLAIM, values).rowcount > 0
        owner, until = holder
        may_be_had = not now <= until <= now + 2 * LEASE and self._stays_lapsed(key, owner, until)
        if not may_be_had and not self.claimant.has_ended(owner):
            return False
        return self._db.execute(_CLAIM, values | {"gone": owner, "lapsed": until}).rowcount > 0

    def _stays_lapsed(self, key: bytes, owner: str, until: float) -> bool:
        if not self.claimant.is_there(owner):
            return True
        now = time.monotonic()
        return now - self._lapsed.setdefault((key, owner, until), now) > 1.5 * RENEWS_EVERY

    def renew(self, keys: Sequence[bytes]) -> None:
        """Hold for another lease: it is still being bought."""
        until, owner = time.time() + LEASE, self.claimant.name
        change = "UPDATE claims SET until = ? WHERE key = ? AND owner = ?"
        self._db.executemany(change, [(until, key, owner) for key in keys])

    def let_all_go(self) -> None:
        """None is to be bought any more."""
        self._db.execute("DELETE FROM claims WHERE owner = ?", (self.claimant.name,))

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Let others buy these answers, where they are not in the store by now."""
        owner = self.claimant.name
        self._db.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", [(key, owner) for key in keys])


@cache
def _machine() -> str:
    """Name this machine: the host, with a part that is new at each start or in each container."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        container = str(Path("/proc/self/ns/pid").readlink())
    except (OSError, ValueError):  # no Linux
        return socket.gethostname()
    return f"{socket.gethostname()}-{sha256(f'{start}{container}'.encode()).hexdigest()[:12]}"
