"""Killing a run at any point and going on gives the same result and repeats no call that was answered."""

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
from askance.memory.journal import Journal, read_events
from askance.memory.run_directory import RunDirectory
from askance.models.base import Answer, Request
from askance.optimizer.contest import ON_ITS_OWN
from askance.optimizer.run_result import RunResult
from askance.prompts.errors import AskanceError, BudgetExceededError, InputError
from askance.testing import StandInServer

SNAPSHOTS = ("result.json", "judge.yaml", "prompt.md", "changes.diff", "lessons.jsonl", "config.yaml")


def fingerprint(run: Path) -> dict[str, Any]:
    """Everything that a resumed run must have in common with one that was left alone."""
    files = {name: (run / name).read_bytes().decode().splitlines() for name in SNAPSHOTS}
    versions = {path.name: path.read_bytes() for path in sorted((run / "prompts").glob("*.md"))}
    events = [
        {key: value for key, value in event.items() if key != "time"} for event in read_events(run / "journal.jsonl")
    ]
    return files | {"versions": versions, "events": events}


# --- in one process: a crash that nothing can catch, at many points -------------------------------------------------


class Crash(BaseException):
    """The process is gone."""


class Lab:
    """Runs migrations in this process and counts what they ask."""

    def __init__(self, world: Any, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.answered: list[bytes] = []
        self.refused = 0
        self.crash_at: int | None = None
        self.crashed = False

    def _before(self, request: Request) -> None:
        if self.crashed:
            raise Crash
        if self.crash_at is not None and len(self.answered) == self.crash_at:
            self.crashed = True
            raise Crash
        self.answered.append(request.key)

    def migrate(self, name: str, *, slots: int = 1, **options: Any) -> RunResult:
        self.crashed = False
        done: RunResult = self.world.migrate(self.folder / name, self._before, slots, **options)
        return done


@pytest.fixture
def lab(world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power failure here, and it is most of the time
    return Lab(world, tmp_path)


def run_to_the_end(lab: Lab, name: str, **options: Any) -> tuple[dict[str, Any], list[bytes]]:
    lab.answered.clear()
    lab.crash_at = None
    lab.migrate(name, **options)
    return fingerprint(lab.folder / name), list(lab.answered)


def test_the_world_of_these_tests_accepts_and_rejects_edits(lab: Lab) -> None:
    result = lab.migrate("whole").result
    assert len(result["accepted_edits"]) == 2
    assert len(result["rejected_edits"]) >= 3
    assert result["calls"] == len(lab.answered) == len(set(lab.answered))


def test_a_crash_at_any_request_changes_nothing_and_repeats_no_answered_request(lab: Lab) -> None:
    whole, requests = run_to_the_end(lab, "whole")
    for crash_at in sorted({*range(0, len(requests), 9), len(requests) - 1}):
        name = f"crash{crash_at}"
        lab.answered.clear()
        lab.crash_at = crash_at
        with pytest.raises(Crash):
            lab.migrate(name)
        lab.crash_at = None
        lab.migrate(name)
        assert fingerprint(lab.folder / name) == whole, f"crash at request {crash_at}"
        assert lab.answered == requests, f"crash at request {crash_at}"


def test_many_crashes_in_one_run_change_nothing(lab: Lab) -> None:
    whole, requests = run_to_the_end(lab, "whole")
    lab.answered.clear()
    for crash_at in range(5, len(requests), 23):
        lab.crash_at = crash_at
        with pytest.raises(Crash):
            lab.migrate("often")
    lab.crash_at = None
    lab.migrate("often")
    assert fingerprint(lab.folder / "often") == whole
    assert lab.answered == requests


def test_crashes_with_eight_calls_under_way_change_nothing(lab: Lab) -> None:
    whole, requests = run_to_the_end(lab, "whole", slots=8)
    for crash_at in range(3, len(requests), 61):
        name = f"crash{crash_at}"
        lab.answered.clear()
        lab.crash_at = crash_at
        with pytest.raises(Crash):
            lab.migrate(name, slots=8)
        lab.crash_at = None
        lab.migrate(name, slots=8)
        assert fingerprint(lab.folder / name) == whole
        assert set(lab.answered) == set(requests)
        assert sum(count - 1 for count in Counter(lab.answered).values()) <= 8


EVERYTHING = {"trial": True, "racing": True, "prune": True, "contrast": True, "note_samples": 2, "max_notes": 5}


def test_the_run_with_everything_on_tries_races_and_prunes(lab: Lab) -> None:
    result = lab.migrate("whole", **EVERYTHING).result
    events = read_events(lab.folder / "whole" / "journal.jsonl")
    trials = [event["result"]["passed"] for event in events if event["event"] == "trial"]
    assert True in trials
    assert False in trials
    assert len(result["pruned_edits"]) >= 2
    whole = len(next(event for event in events if event["event"] == "split")["validation"])
    judged = {each["gain"]["n"] for each in result["pruned_edits"]} | {
        each["judged"] for each in result["rejected_edits"]
    }
    assert min(judged) < whole, "a candidate was dropped before all of validation was judged"
    dropped = [each["reason"] for each in (*result["rejected_edits"], *result["pruned_edits"])]
    assert any(reason.endswith(ON_ITS_OWN) for reason in dropped), "a candidate was dropped on its own questions"
    assert result["calls"] == len(lab.answered) == len(set(lab.answered))


def test_a_crash_changes_nothing_with_everything_on(lab: Lab) -> None:
    whole, requests = run_to_the_end(lab, "whole", **EVERYTHING)
    for crash_at in range(4, len(requests), 23):
        name = f"crash{crash_at}"
        lab.answered.clear()
        lab.crash_at = crash_at
        with pytest.raises(Crash):
            lab.migrate(name, **EVERYTHING)
        lab.crash_at = None
        lab.migrate(name, **EVERYTHING)
        assert fingerprint(lab.folder / name) == whole, f"crash at request {crash_at}"
        assert lab.answered == requests, f"crash at request {crash_at}"


@pytest.mark.parametrize("part", [0.5, 0.7, 0.8, 0.9, 0.97])
def test_more_budget_gives_the_result_of_a_run_without_a_limit_with_everything_on(lab: Lab, part: float) -> None:
    whole, requests = run_to_the_end(lab, "whole", **EVERYTHING)
    cap = int(part * len(requests))
    stopped = lab.migrate("capped", max_calls=cap, **EVERYTHING)
    assert (stopped.finish_reason, stopped.result["calls"]) == ("max_calls", cap)
    applied = {each["id"] for each in stopped.result["lessons"] if each["status"] == "applied"}
    assert applied == {each["id"] for each in stopped.result["lessons"] if each["text"] in stopped.prompt}
    lab.migrate("capped", max_calls=10_000, **EVERYTHING)
    resumed = fingerprint(lab.folder / "capped")
    assert resumed == whole


def test_the_number_of_calls_at_once_does_not_show_in_the_result(lab: Lab) -> None:
    alone, _ = run_to_the_end(lab, "alone", slots=1)
    together, _ = run_to_the_end(lab, "together", slots=8)
    assert together == alone


# --- torn files ----------------------------------------------------------------------------------------------------


def crash_after(n: int, function: Callable[..., Any], torn: Callable[..., None]) -> Callable[..., Any]:
    """The function, until its n-th call: that one does half the work and the process is gone."""
    calls = 0

    def wrapped(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == n:
            torn(*arguments, **named)
            raise Crash
        return function(*arguments, **named)

    return wrapped


def half_a_line(journal: Journal, row: Mapping[str, Any]) -> None:
    with journal.path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row)[: len(str(row)) // 2])


def half_a_file(run: RunDirectory, name: str, text: str) -> None:
    file = run.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_name(file.name + ".part").write_text(text[: len(text) // 2], encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "method", "torn"), [(Journal, "_append", half_a_line), (RunDirectory, "write", half_a_file)]
)
def test_a_crash_while_a_file_is_written_changes_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: type, method: str, torn: Callable[..., None]
) -> None:
    whole, requests = run_to_the_end(lab, "whole")
    for n in range(1, 100, 3):
        name = f"torn{n}"
        lab.answered.clear()
        with monkeypatch.context() as patch:
            patch.setattr(kind, method, crash_after(n, getattr(kind, method), torn))
            try:
                lab.migrate(name)
            except Crash:
                pass
            else:
                assert n > 15, "too few writes to crash at"
                return
        lab.migrate(name)
        assert fingerprint(lab.folder / name) == whole, f"crash at write {n}"
        assert lab.answered == requests
    pytest.fail("the run did not end")


def test_a_crash_right_after_an_answer_was_stored_repeats_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from askance.memory.verdict_store import VerdictStore

    whole, requests = run_to_the_end(lab, "whole")
    lab.answered.clear()
    with monkeypatch.context() as patch:
        patch.setattr(VerdictStore, "put", crash_after(40, VerdictStore.put, VerdictStore.put))
        with pytest.raises(Crash):
            lab.migrate("stored")
    lab.migrate("stored")
    assert fingerprint(lab.folder / "stored") == whole
    assert lab.answered == requests


def test_prompt_md_never_falls_back_behind_the_best_version_while_a_run_is_repeated(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = lab.migrate("whole").prompt
    seen = set()
    write = RunDirectory.write

    def look(run: RunDirectory, name: str, text: str) -> None:
        write(run, name, text)
        seen.add((run.path / "prompt.md").read_text(encoding="utf-8"))

    monkeypatch.setattr(RunDirectory, "write", look)
    lab.migrate("whole")
    assert seen == {best}


# --- what a finished or stopped run does when it is run again ------------------------------------------------------


def test_a_finished_run_asks_nothing_when_it_is_run_again(lab: Lab) -> None:
    whole, requests = run_to_the_end(lab, "whole")
    journal = (lab.folder / "whole" / "journal.jsonl").read_bytes()
    lab.migrate("whole")
    assert lab.answered == requests
    assert fingerprint(lab.folder / "whole") == whole
    assert (lab.folder / "whole" / "journal.jsonl").read_bytes() == journal


@pytest.mark.parametrize("part", [0.2, 0.4, 0.7, 0.95])
def test_more_budget_gives_the_result_of_a_run_without_a_limit(lab: Lab, part: float) -> None:
    whole, requests = run_to_the_end(lab, "whole")
    lab.answered.clear()
    cap = int(part * len(requests))
    stopped = lab.migrate("capped", max_calls=cap)
    assert stopped.finish_reason == "max_calls"
    assert stopped.result["calls"] == len(lab.answered) == cap
    lab.migrate("capped", max_calls=10_000)
    assert fingerprint(lab.folder / "capped") == whole
    assert sorted(lab.answered) == sorted(requests)
    journal = (lab.folder / "capped" / "journal.jsonl").read_bytes()
    lab.migrate("capped")
    assert (lab.folder / "capped" / "journal.jsonl").read_bytes() == journal


def test_a_budget_that_ends_before_the_start_is_measured_says_how_to_go_on(lab: Lab) -> None:
    with pytest.raises(BudgetExceededError, match=r"askance resume .*run --max-calls MORE"):
        lab.migrate("run", max_calls=10)
    assert not (lab.folder / "run" / "result.json").exists()


def test_a_budget_that_ends_during_the_test_keeps_the_accepted_prompt_and_says_why_there_is_no_test(lab: Lab) -> None:
    whole = lab.migrate("whole")
    capped = lab.migrate("capped", max_calls=whole.result["calls"] - 1)
    assert capped.finish_reason == "max_calls"
    assert capped.prompt == whole.prompt
    assert capped.result["best"]["test"] is None
    assert "the test was not judged" in capped.result["best"]["reason"]
    assert capped.result["test_looked_at"] is False


def test_failed_calls_are_asked_again_when_the_run_is_resumed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from askance.models.base import ModelError
    from askance.testing import ScriptedModel

    whole, _ = run_to_the_end(lab, "whole")
    answer = ScriptedModel.answer
    asked = 0

    async def sometimes_down(model: ScriptedModel, request: Request) -> Answer:
        nonlocal asked
        asked += 1
        if asked % 50 == 30:
            raise ModelError("down for a moment")
        return await answer(model, request)

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedModel, "answer", sometimes_down)
        flaky = lab.migrate("flaky")
    assert flaky.result["coverage"] < 1
    assert flaky.result["missing"]["api_error"] > 0
    lab.migrate("flaky")
    resumed = fingerprint(lab.folder / "flaky")
    assert resumed.pop("versions").items() >= whole.pop("versions").items(), "every version that was tried is kept"
    assert resumed == whole


# --- another run, another process ----------------------------------------------------------------------------------


def test_another_run_in_the_directory_is_refused_naming_what_differs(lab: Lab) -> None:
    lab.migrate("run")
    with pytest.raises(InputError, match=r"other settings \(margin, seed\).*askance resume"):
        lab.migrate("run", margin=0.5, seed=7)
    lab.world.source_prompt = askance.Prompt("Be a strict judge, please.")
    with pytest.raises(InputError, match="other data, checklist or prompts"):
        lab.migrate("run")


def test_a_run_that_is_under_way_is_not_touched_by_another(lab: Lab) -> None:
    run = RunDirectory(lab.folder / "run")
    with run.lock(), pytest.raises(AskanceError, match="another process is working on this run"):
        lab.migrate("run")
    lab.migrate("run")


def test_a_resumed_run_takes_changed_limits_and_no_other_changed_setting(lab: Lab) -> None:
    lab.migrate("run")
    with pytest.raises(InputError, match="'margin' cannot be changed"):
        askance.resume(lab.folder / "run", margin=0.5)
    with pytest.raises(InputError, match=r"^store: no store is used where no answer is kept"):
        askance.resume(lab.folder / "run", store=lab.folder / "other.db", no_cache=True)
    assert not (lab.folder / "other.db").exists()
    with pytest.raises(InputError, match="there is no run in this directory"):
        askance.resume(lab.folder / "nowhere")


# --- processes that are killed -------------------------------------------------------------------------------------


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
    marks = {
        "explanation": "what in the output decides",
        "note": "answer_no_if",
        "dedup": '"relation"',
        "edit": '"part"',
        "candidate": "gives a wrong name.",
    }
    return {name: next(i for i, body in enumerate(bodies) if mark in body) for name, mark in marks.items()}


def test_killed_processes_resume_to_the_same_result_and_repeat_no_answered_request(victim: Victim) -> None:
    killer, home = victim.killer, victim.command.home
    one = ("--max-concurrency", "1")
    assert victim.migrate("whole", *one).returncode == 0
    whole, requests = fingerprint(home / "whole"), list(killer.answered)
    assert len(requests) == json.loads("".join(whole["result.json"]))["calls"]

    points = sorted({0, *phases(requests).values(), len(requests) - 20, len(requests) - 1})
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
    for point in (17, 90, 60):
        assert victim.migrate("eight", *eight, kill_at=point).returncode == -signal.SIGKILL
    assert victim.resume("eight", *eight).returncode == 0
    assert fingerprint(home / "eight") == whole
    assert set(killer.answered) == set(requests)
    assert killer.repeats <= 3 * 8


def test_an_interrupt_ends_with_a_sentence_and_code_130_and_the_run_can_be_resumed(victim: Victim) -> None:
    killer, home = victim.killer, victim.command.home
    killer.signal = signal.SIGINT
    stopped = victim.migrate("run", kill_at=100)
    assert stopped.returncode == 130
    assert "Interrupted. What was bought is kept" in stopped.stderr
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


# --- a full disk ---------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_grow_ends_the_run_with_a_sentence_and_loses_nothing(victim: Victim) -> None:
    resource = pytest.importorskip("resource")
    killer, home = victim.killer, victim.command.home
    one = ("--max-concurrency", "1")
    process = victim.command.start(
        *("migrate", *victim.arguments, "--run", "run", *one),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000)),
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


# --- a budget that ends while calls are under way ------------------------------------------------------------------


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

        capped = go(max_calls=67)
        assert capped.finish_reason == "max_calls"
        assert len(bodies) == capped.result["calls"] == 67
        go()
    assert max(Counter(bodies).values()) == 1


# --- a run that is made longer -------------------------------------------------------------------------------------


def test_a_run_made_longer_comes_to_what_one_begun_so_comes_to_and_buys_only_the_rest(lab: Lab) -> None:
    whole, requests = run_to_the_end(lab, "whole")
    lab.answered.clear()
    short = lab.migrate("short", max_iterations=1)
    assert short.finish_reason == "max_iterations"
    with pytest.raises(InputError, match=r"askance resume .*short --max-iterations MORE"):
        lab.migrate("short")
    from askance.optimizer.runner import take_up

    take_up(RunDirectory(lab.folder / "short"), {"max_iterations": 5})
    with pytest.raises(InputError, match="max_iterations"):
        lab.migrate("short", max_iterations=1)
    lab.migrate("short")
    longer = fingerprint(lab.folder / "short")
    result = json.loads((lab.folder / "short" / "result.json").read_text())
    assert result["earlier_test_looks"] == 1
    result.pop("earlier_test_looks")
    first = json.loads((lab.folder / "whole" / "result.json").read_text())
    spent = {"calls", "cached_calls", "tokens", "roles"}
    assert {k: v for k, v in result.items() if k not in spent} == {k: v for k, v in first.items() if k not in spent}
    assert longer["prompt.md"] == whole["prompt.md"] and longer["lessons.jsonl"] == whole["lessons.jsonl"]
    assert len(lab.answered) == len(set(lab.answered)), "nothing is asked twice"
    assert set(requests) <= set(lab.answered)


def test_a_run_with_nothing_left_to_do_is_not_made_longer(lab: Lab) -> None:
    done = lab.migrate("run", patience=1, max_iterations=4)
    assert done.finish_reason not in ("max_iterations", "max_calls")
    with pytest.raises(InputError, match=r"ended because .* more iterations would change nothing.*align DATA --from"):
        askance.resume(lab.folder / "run", max_iterations=9)


def test_a_run_is_made_longer_only_and_only_with_its_own_inputs(lab: Lab) -> None:
    lab.migrate("run", max_iterations=1)
    run = lab.folder / "run"
    with pytest.raises(InputError, match="has 1 iteration already"):
        RunDirectory(run).extend(1)
    (run / "inputs" / "prompt.md").write_text("Another.", encoding="utf-8")
    with pytest.raises(InputError, match="other data, checklist or prompts"):
        askance.resume(run, max_iterations=3)
