"""Claims: marks of answers that a process is buying, so that other processes wait and do not pay for the same answer.

A claim is a row with the key, the owner and the end of the lease. The owner renews its claim while it is buying.
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
"""Seconds after which another process may take a claim that was not renewed, because its owner may be gone.

A claim that ends more than two leases in the future counts as lapsed too: it comes from a wrong clock.
"""

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
    """Identity of an open store as the owner of claims: the machine, a number and the process."""

    def __init__(self) -> None:
        self.machine = _machine()
        self._number = next(_NUMBERS)

    @property
    def name(self) -> str:
        """The owner's name in a claim: ``machine/number/process``."""
        return f"{self.machine}/{self._number}/{os.getpid()}"

    def has_ended(self, owner: str) -> bool:
        """Return whether an owner is an ended process of this machine. Owners elsewhere never count as ended."""
        return self._runs(owner) is False

    def is_there(self, owner: str) -> bool:
        """Return whether an owner is a running process of this machine, judged by its process id alone."""
        return self._runs(owner) is True

    def _runs(self, owner: str) -> bool | None:
        """Return whether the owner's process runs; None if that cannot be known."""
        machine, _, process = owner.rpartition("/")
        machine = machine.rpartition("/")[0]
        if machine != self.machine or os.name == "nt":  # on Windows, os.kill below would end the process
            return None
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # the process runs, but belongs to another user
            return True
        except (OSError, ValueError, OverflowError):
            return None
        return True


class Claims:
    """Claims in an SQLite store; each owner is the name of a :class:`Claimant`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """``db`` must have the table of :data:`SCHEMA`."""
        self._db = db
        self.claimant = Claimant()
        self._lapsed: dict[tuple[bytes, str, float], float] = {}
        """Lapsed claims of owners that still run, each with the time (monotonic clock) at which this was first seen."""

    def claim(self, key: bytes) -> bool:
        """Claim an answer. Returns whether this store may buy it now.

        The claim holds until it is let go or lapses. The claim of an ended process of this machine is taken over at
        once, the claim of another machine after its lease. A running process of this machine renews its claims, so its
        lapsed claim is taken over only if it stays lapsed for 1.5 renewal periods.
        """
        moment = time.time()
        values = {"key": key, "owner": self.claimant.name, "until": moment + LEASE, "gone": None, "lapsed": None}
        if self._db.execute(_CLAIM, values).rowcount > 0:
            return True
        holder = self._db.execute("SELECT owner, until FROM claims WHERE key = ?", (key,)).fetchone()
        if holder is None:
            return self._db.execute(_CLAIM, values).rowcount > 0
        owner, expiry = holder
        may_be_had = not moment <= expiry <= moment + 2 * LEASE and self._stays_lapsed(key, owner, expiry)
        if not may_be_had and not self.claimant.has_ended(owner):
            return False
        return self._db.execute(_CLAIM, values | {"gone": owner, "lapsed": expiry}).rowcount > 0

    def _stays_lapsed(self, key: bytes, owner: str, until: float) -> bool:
        if not self.claimant.is_there(owner):
            return True
        now = time.monotonic()
        return now - self._lapsed.setdefault((key, owner, until), now) > 1.5 * RENEWS_EVERY

    def renew(self, keys: Sequence[bytes]) -> None:
        """Extend claims by another lease, because the answers are still being bought."""
        until, owner = time.time() + LEASE, self.claimant.name
        change = "UPDATE claims SET until = ? WHERE key = ? AND owner = ?"
        self._db.executemany(change, [(until, key, owner) for key in keys])

    def let_all_go(self) -> None:
        """End all claims of this store."""
        self._db.execute("DELETE FROM claims WHERE owner = ?", (self.claimant.name,))

    def let_go(self, keys: Sequence[bytes]) -> None:
        """End claims. Other processes may then buy the answers that are not in the store yet."""
        owner = self.claimant.name
        self._db.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", [(key, owner) for key in keys])


@cache
def _machine() -> str:
    """Name this machine: the host name, on Linux with a hash that is new after each boot and in each container."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        container = str(Path("/proc/self/ns/pid").readlink())
    except (OSError, ValueError):  # no Linux
        return socket.gethostname()
    return f"{socket.gethostname()}-{sha256(f'{start}{container}'.encode()).hexdigest()[:12]}"
