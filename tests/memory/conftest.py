"""A PostgreSQL of the tests' own, where Debian's packages (or others') have put one; it is gone after them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

NOBODY = 65534
"""PostgreSQL refuses to be started by root, so that root starts it as this user."""


class Cluster:
    """A server on a socket in a directory of its own, that is stopped and started again."""

    def __init__(self, programs: Path) -> None:
        self.folder = Path(mkdtemp(prefix="askance-pg-"))
        self._programs = programs
        self._user: dict[str, Any] = {}
        if os.getuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
            self._user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self._run("initdb", "-U", "askance", "-A", "trust", "-N", "-D", self.folder / "data")
        (self.folder / "data" / "pg_hba.conf").write_text(
            "local all askance trust\nlocal all all scram-sha-256\n", encoding="utf-8"
        )
        self.start()
        self._databases = 0

    def _run(self, program: str, *arguments: object) -> None:
        log = self.folder / "log"
        command = [str(self._programs / program), *map(str, arguments)]
        with log.open("a", encoding="utf-8") as out:
            ended = subprocess.run(command, stdout=out, stderr=out, cwd=self.folder, timeout=120, **self._user)
        assert ended.returncode == 0, log.read_text(encoding="utf-8")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c shared_buffers=16MB -c fsync=off"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "server", "-w", "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        """``fast`` ends sessions in good order, ``immediate`` is a crash."""
        self._run("pg_ctl", "-D", self.folder / "data", "-m", how, "-w", "stop")

    @contextmanager
    def lost_in_a_crash(self) -> Iterator[None]:
        """What commits asynchronously meanwhile is lost: the server's log writer stands still, and at the end it crashes.

        A long ``wal_writer_delay`` is not enough, as the writer is also woken when a page of the log is full.
        """
        [[writer]] = self.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        os.kill(writer, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(writer, signal.SIGQUIT)  # this is what it sees first when it goes on
            os.kill(writer, signal.SIGCONT)
            self.stop("immediate")

    def address(self, database: str = "postgres", user: str = "askance") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty one."""
        self._databases += 1
        self.sql(f"CREATE DATABASE d{self._databases}")
        return self.address(f"d{self._databases}")

    def sql(self, text: str, address: str | None = None) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(address or self.address(), autocommit=True) as db:
            cursor = db.execute(text)
            return cursor.fetchall() if cursor.description else []

    def cut_connections(self) -> int:
        """End all sessions of stores, as a network or an administrator does; how many there were."""
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'askance'"
        return len(self.sql(ended))


def _programs() -> Path | None:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: each.parent.name)
    found = shutil.which("initdb")
    there = Path(found).resolve().parent if found else debian[-1] if debian else None
    return there if there and (there / "postgres").exists() else None


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: make test-postgres")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt install postgresql)")
    made = Cluster(programs)
    try:
        yield made
    finally:
        made.stop("immediate")
        shutil.rmtree(made.folder)


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    return _cluster


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "verdicts.db")
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.new_database()


@pytest.fixture
def claims_sql(place: str, request: pytest.FixtureRequest) -> Callable[[str], list[tuple[Any, ...]]]:
    """Looks into, and changes, the claims of the store at ``place``; ``{claims}`` is their table, ``{now}`` the time."""
    if place.startswith("postgresql"):
        cluster: Cluster = request.getfixturevalue("cluster")
        names = {"claims": "askance_claims", "now": "clock_timestamp()", "second": "interval '1 s'"}
        return lambda text: cluster.sql(text.format(**names), place)

    def run(text: str) -> list[tuple[Any, ...]]:
        import sqlite3

        with sqlite3.connect(place) as db:
            return db.execute(
                text.format(claims="claims", now="(julianday('now') - 2440587.5) * 86400.0", second="1")
            ).fetchall()

    return run
