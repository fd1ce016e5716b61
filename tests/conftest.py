"""What all tests share: worlds in which everything can be foretold, the command line, and a cache for each test."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from askance.cli import main
from askance.testing import StandInServer

from .facts import Facts
from .letters import Letters
from .ran_somewhere import FOLDER, Recorder
from .worlds import World, example_ids

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs, and what they start
    signal.signal(signal.SIGINT, signal.default_int_handler)

CACHES = itertools.count()
LONGEST = (
    "tests/models/reading/test_readers.py",
    "tests/test_docs.py",
    "tests/optimizer/test_killed_processes.py",
    "tests/optimizer/questions/test_together.py",
    "tests/measured/test_simulated_world.py",
    "tests/measured/test_migration_decision.py",
    "tests/measured/test_endurance.py",
    "tests/test_typed.py",
    "tests/commands/test_batch_engine.py",
    "tests/optimizer/test_resume.py",
    "tests/bridges/test_exports.py",
    "tests/bridges/test_replies.py",
    "tests/test_damaged_files.py",
    "tests/measured/test_million.py",
    "tests/test_ran_somewhere.py",
    "tests/measured/test_overhead.py",
    "tests/test_pinned_sentences.py",
)
"""Files that take ten seconds and more, the longest first: they begin first, so that no process is left alone with one."""


def pytest_configure(config: pytest.Config) -> None:
    """Where CI asks for it, write down which tests ran; one process of those side by side is told of all."""
    if FOLDER in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(os.environ[FOLDER])))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


def judge_at(url: str, limit: int) -> list[str]:
    """Arguments of a command that asks a stand-in server about some of the examples, four calls at a time."""
    judge = ["--model", "openai/judge", "--api-base", url, "--max-concurrency", "4"]
    return [*judge, "--limit", str(limit), "--json"]


class Askance:
    """Runs the command line in a process of its own and keeps an eye on what it writes."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def start(self, *arguments: str | Path, before: str = "", **options: Any) -> subprocess.Popen[str]:
        """Start it; ``before`` is code that its process runs first."""
        program = ["-c", f"{before}\nfrom askance.cli import main\nmain()"] if before else ["-m", "askance"]
        command = [sys.executable, *program, *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": self.home}
        return subprocess.Popen(command, **(pipes | options))

    def finish(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def __call__(self, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.finish(self.start(*arguments, **options))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache, or that of another test; the folder is made only where it is used."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.getbasetemp() / "caches" / str(next(CACHES))))
    monkeypatch.delenv("ASKANCE_STORE", raising=False)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_world() -> type[World]:
    return World


@pytest.fixture
def letters() -> Letters:
    return Letters()


@pytest.fixture
def make_letters() -> type[Letters]:
    return Letters


@pytest.fixture
def ids_in() -> Callable[..., set[str]]:
    return example_ids


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of one's own, with a cache in it and no key in the environment."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def askance_command(sandbox: Path) -> Askance:
    return Askance(sandbox)


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command line in this process."""

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def server(world: Any) -> Iterator[StandInServer]:
    with StandInServer(world.serve) as one:
        yield one


@pytest.fixture
def inputs(world: Any, sandbox: Path, server: StandInServer) -> list[str]:
    """The arguments of a migration."""
    arguments: list[str] = [*world.write(sandbox / "files"), "--api-base", server.url]
    return arguments


@pytest.fixture
def facts() -> Facts:
    return Facts()
