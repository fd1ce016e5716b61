"""Processes that are killed, interrupted, out of disk or out of budget in the midst of a run, and going on with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.run_directory import RunDirectory
from askance.optimizer.run_result import RunResult
from askance.testing import StandInServer
from tests.said import says


class Killer:
    """A stand-in server that kills its client when a certain request arrives."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.process: subprocess.Popen[str] | None = None
        self.kill_at: int | None = None
        self.signal = signal.SIGKILL
        self.arrived = 0
        self.answered: list[str] = []

    def script(self, body: Mapping[str, Any]) -> Any:
        number, self.arrived = self.arrived, self.arrived + 1
        if self.kill_at is not None and number >= self.kill_at:
            assert self.process is not None
            if number == self.kill_at or self.signal == signal.SIGKILL:
                self.process.send_signal(self.signal)
            if self.signal == signal.SIGKILL:
                return 500, "gone"
        self.answered.append(json.dumps(body, sort_keys=True))
        return self.world.serve(body)

    @property
    def repeats(self) -> int:
        return sum(count - 1 for count in Counter(self.answered).values())


class Victim:
    """The command line, with the server that may kill it."""

    def __init__(self, command: Any, killer: Killer, arguments: list[str]) -> None:
        self.command = command
        self.killer = killer
        self.arguments = arguments

    def go(self, *arguments: str, kill_at: int | None = None) -> subprocess.CompletedProcess[str]:
        self.killer.kill_at = None if kill_at is None else self.killer.arrived + kill_at
        process = self.command.start(*arguments)
        self.killer.process = process
        return self.command.finish(process)

    def migrate(self, run: str, *more: str, kill_at: int | None = None) -> subprocess.CompletedProcess[str]:
        return self.go("migrate", *self.arguments, "--run", run, *more, kill_at=kill_at)

    def resume(self, run: str, *more: str, kill_at: int | None = None) -> subprocess.CompletedProcess[str]:
        return self.go("resume", run, *more, kill_at=kill_at)


@pytest.fixture
def victim(askance_command: Any, make_world: Any) -> Iterator[Victim]:
    world = make_world(32)
    killer = Killer(world)
    with StandInServer(killer.script) as server:
        yield Victim(askance_command, killer, [*world.write(askance_command.home), "--api-base", server.url])


def phases(bodies: list[str]) -> dict[str, int]:
    """The first request of each kind."""
    marks = {"note": "answer_no_if", "edit": '"part"', "candidate": "gives a wrong name."}
    return {name: next(i for i, body in enumerate(bodies) if mark in body) for name, mark in marks.items()}


def test_killed_processes_resume_to_the_same_result_and_repeat_no_answered_request(
    victim: Victim, fingerprint: Callable[[Path], dict[str, Any]]
) -> None:
    killer, home = victim.killer, victim.command.home
    one = ("--max-concurrency", "1")
    assert victim.migrate("whole", *one).returncode == 0
    whole, requests = fingerprint(home / "whole"), list(killer.answered)
    assert len(requests) == json.loads("".join(whole["result.json"]))["calls"]

    points = sorted({0, *phases(requests).values(), len(requests) - 1})
    killer.answered.clear()
    for number, point in enumerate(points):
        go_on = victim.resume if number % 2 else victim.migrate
        died = go_on("killed", *one, kill_at=point - len(killer.answered))
        assert died.returncode == -signal.SIGKILL
        assert killer.answered == requests[:point], f"killed at request {point}"
    assert victim.resume("killed", *one).returncode == 0
    assert fingerprint(home / "killed") == whole
    assert killer.answered == requests

    killer.answered.clear()
    eight = ("--max-concurrency", "8")
    for point in (17, 90):
        assert victim.migrate("eight", *eight, kill_at=point).returncode == -signal.SIGKILL
    assert victim.resume("eight", *eight).returncode == 0
    assert fingerprint(home / "eight") == whole
    assert set(killer.answered) == set(requests)
    assert killer.repeats <= 2 * 8


def test_an_interrupt_ends_with_a_sentence_and_code_130_and_the_run_can_be_resumed(victim: Victim) -> None:
    killer, home = victim.killer, victim.command.home
    killer.signal = signal.SIGINT
    stopped = victim.migrate("run", kill_at=100)
    assert stopped.returncode == 130
    assert says(stopped.stderr, "Interrupted.", "kept")
    assert not (home / "run" / "result.json").exists()
    asked_before = len(killer.answered)
    finished = victim.resume("run")
    assert finished.returncode == 0
    assert killer.repeats <= 16
    result = json.loads((home / "run" / "result.json").read_text())
    assert result["calls"] == len(set(killer.answered))
    assert asked_before < len(killer.answered)


ALONE = "ASKANCE_TEST_ALONE"
"""Set in the process in which the next test interrupts itself: after thousands of tests in one process, what they have left is hit, too."""


def test_an_interrupt_ends_a_run_that_was_started_inside_a_running_event_loop(
    world: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As in a notebook: the work runs in a thread, which must be over before the store is closed."""
    if ALONE not in os.environ:
        command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", f"{__file__}::{request.node.name}"]
        done = subprocess.run(
            command, env=os.environ | {ALONE: "1"}, cwd=request.config.rootpath, capture_output=True, text=True
        )
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
        return
    model = world.model(
        "world/target", lambda request: os.kill(os.getpid(), signal.SIGINT) if count(model) == 20 else None
    )

    def count(asked: Any) -> int:
        return len(asked.requests)

    async def cell() -> None:
        askance.migrate(
            world.rows,
            checklist=world.checklist,
            source=world.model("world/source"),
            target=model,
            source_prompt=world.source_prompt,
            run=tmp_path / "run",
            **world.options,
        )

    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    asked = len(model.requests)
    with RunDirectory(tmp_path / "run").lock(), RunDirectory(tmp_path / "run").store() as store:
        assert len(store) >= 20
    assert len(model.requests) == asked


def test_a_file_that_cannot_grow_ends_the_run_with_a_sentence_and_loses_nothing(victim: Victim) -> None:
    resource = pytest.importorskip("resource")
    killer, home = victim.killer, victim.command.home
    one = ("--max-concurrency", "1")
    process = victim.command.start(
        *("migrate", *victim.arguments, "--run", "run", *one),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000)),
    )
    failed = victim.command.finish(process)
    assert failed.returncode == 1
    assert "askance:" in failed.stderr
    assert "verdicts.db" in failed.stderr
    answered = len(killer.answered)
    assert answered > 10
    assert victim.migrate("run", *one).returncode == 0
    assert killer.repeats <= 1, "only the answer that could not be written is asked for again"
    assert json.loads((home / "run" / "result.json").read_text())["finish_reason"] == "no_disagreements"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes; needs the right to mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_ends_the_run_with_a_sentence_and_the_next_run_goes_on(victim: Victim, small_disk: Path) -> None:
    killer = victim.killer
    one = ("--max-concurrency", "1")
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (2 * 2**20 - 180_000))
    run = str(small_disk / "run")
    failed = victim.migrate(run, *one)
    assert failed.returncode == 1
    assert "full" in failed.stderr or "No space left" in failed.stderr
    assert len(killer.answered) > 5
    ballast.unlink()
    assert victim.migrate(run, *one).returncode == 0
    assert killer.repeats <= 1


def test_a_budget_lets_the_calls_under_way_end_and_none_is_bought_twice(world: Any, tmp_path: Path) -> None:
    bodies: list[str] = []

    def script(body: Mapping[str, Any]) -> str | float:
        bodies.append(json.dumps(body, sort_keys=True))
        return world.serve(body)

    with StandInServer(script, delay=0.01) as server:

        def go(**options: Any) -> RunResult:
            return askance.migrate(
                world.rows,
                checklist=world.checklist,
                source="openai/source",
                target="openai/target",
                source_prompt=world.source_prompt,
                api_base=server.url,
                max_concurrency=8,
                run=tmp_path / "run",
                **world.options | options,
            )

        capped = go(call_budget=67)
        assert capped.finish_reason == "max_calls"
        assert len(bodies) == capped.result["calls"] == 67
        go()
    assert max(Counter(bodies).values()) == 1
