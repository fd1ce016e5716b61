"""Which answers a process is about to buy, so that another one that shares the store waits for them instead of paying, too."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

LEASE = 300.0
"""Seconds after which what a process has claimed may be bought by another, as nobody knows whether it is still there."""

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;"
)
_CLAIM = """
INSERT INTO claims VALUES (:key, :owner, :until)
ON CONFLICT (key) DO UPDATE SET owner = :owner, until = :until
WHERE owner = :owner OR until < :now OR owner = :gone
"""


class Claims:
    """The claims in one store; an owner is a process of a machine."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """``db`` has the table of :data:`SCHEMA`."""
        self._db = db
        self._host = socket.gethostname()

    def take(self, key: bytes) -> bool:
        """Whether this process is the one to buy an answer now; again and again true until it is let go.

        What a process that has ended had claimed is taken at once, what one on another machine had, after a while.
        """
        now = time.time()
        values = {"key": key, "owner": self._owner(os.getpid()), "until": now + LEASE, "now": now, "gone": ""}
        if self._db.execute(_CLAIM, values).rowcount > 0:
            return True
        holder = self._db.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
        if holder is None:
            return self._db.execute(_CLAIM, values).rowcount > 0
        if self._has_ended(holder[0]):
            return self._db.execute(_CLAIM, values | {"gone": holder[0]}).rowcount > 0
        return False

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Others may buy these answers, where they are not in the store by now."""
        owner = self._owner(os.getpid())
        self._db.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", [(key, owner) for key in keys])

    def _owner(self, process: int) -> str:
        return f"{self._host}/{process}"

    def _has_ended(self, owner: str) -> bool:
        host, _, process = owner.rpartition("/")
        if host != self._host or os.name == "nt":  # where asking whether a process is there would end it
            return False
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except (OSError, ValueError):
            return False
        return False
