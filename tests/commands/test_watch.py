"""``askance watch``, as people use it, and the progress and sentences that it shows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from askance.memory.journal import Journal
from askance.memory.records import PrunedRecord, TriedRecord
from askance.memory.run_directory import RunDirectory
from askance.models.budget import Budget
from askance.models.progress import Lines
from askance.optimizer.events import KINDS, DisagreementsFound, EditPruned, Teller, VersionDecided, sentence_of
from askance.optimizer.following import DOING, RunProgress
from askance.prompts.errors import InputError
from askance.prompts.lessons import Edit
from askance.stats.differences import Difference

from ..said import says

pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.fixture
def finished(world: Any, sandbox: Path) -> Path:
    world.migrate(sandbox / "done")
    return sandbox / "done"


@pytest.fixture
def interrupted(finished: Path) -> Path:
    """A run that was killed before it was finished."""
    (finished / "result.json").unlink()
    journal = finished / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(lines[:-2]) + lines[-2][:20], encoding="utf-8")
    return finished


def test_watch_tells_what_happened_in_a_finished_run_and_ends(cli: Any, finished: Path) -> None:
    code, out, _ = cli("watch", finished)
    assert code == 0
    lines = out.splitlines()
    assert "development, " in lines[0]
    assert any(line.startswith("iteration 1: ") and "disagreements on" in line for line in lines)
    assert any(line.startswith("version 1 with L") for line in lines)
    assert " · finished · " in lines[-2] and " answers, " in lines[-2]
    assert says(lines[-1], "finished") and lines[-1].endswith(f"askance show {finished}")


def test_watch_prints_the_journal_as_json_lines(cli: Any, finished: Path) -> None:
    code, out, _ = cli("watch", finished, "--json")
    assert code == 0
    written = (finished / "journal.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in out.splitlines()] == [json.loads(line) for line in written.splitlines()]


def test_watch_of_an_interrupted_run_says_how_to_go_on(cli: Any, interrupted: Path) -> None:
    code, _, err = cli("watch", interrupted)
    assert code == 1
    assert says(err, "no process", f"askance resume {interrupted}")


def test_watch_of_nothing_is_bad_input(cli: Any, sandbox: Path) -> None:
    code, _, err = cli("watch", sandbox / "nothing")
    assert code == 2 and says(err, "no run", "directory") and err.rstrip().endswith("--wait")


def test_watch_does_not_propose_to_wait_for_a_file(cli: Any, sandbox: Path) -> None:
    (sandbox / "result.json").touch()
    code, _, err = cli("watch", sandbox / "result.json")
    assert code == 2 and says(err, "a file", "directory")


def test_watch_follows_a_run_that_another_process_works_on(interrupted: Path) -> None:
    directory = RunDirectory(interrupted)
    with directory.lock():
        command = [sys.executable, "-m", "askance", "watch", str(interrupted)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            assert "development" in watch.stdout.readline()
            journal = Journal(interrupted / "journal.jsonl")
            journal._position = len(journal._events)
            journal.write("retired", id="L99", reason="just now")
            journal.write("finished", reason="no_gain", best=0)
            until = time.monotonic() + 10
            for line in watch.stdout:
                if "L99" in line:
                    break
                assert time.monotonic() < until
            (interrupted / "result.json").write_text("{}", encoding="utf-8")
            time.sleep(1.5)
            assert watch.poll() is None, "the process that writes the result still has the run"
            directory._lock.release()
            out, err = watch.communicate(timeout=20)
    assert watch.returncode == 0, err
    assert "nothing was accepted" in out


def test_interrupting_the_watching_is_not_interrupting_the_run(interrupted: Path) -> None:
    with RunDirectory(interrupted).lock():
        command = [sys.executable, "-m", "askance", "watch", str(interrupted)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            watch.stdout.readline()
            watch.send_signal(signal.SIGINT)
            try:
                _, err = watch.communicate(timeout=30)
            finally:
                watch.kill()
    assert watch.returncode == 130
    assert says(err, "ended", "goes on")


def test_a_finished_run_of_another_user_is_finished(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.optimizer.following.os.access", lambda path, mode: False)
    progress = RunProgress(finished)
    assert progress.worked_on()
    progress.look()
    assert not progress.worked_on()


def test_progress_counts_only_events_that_stand(finished: Path) -> None:
    progress = RunProgress(finished)
    progress.look()
    accepted, rejected = progress.decided
    assert accepted + rejected > 0 and progress.written
    at = next(n for n, row in enumerate(progress.events) if row["event"] == "decision")
    with (finished / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"event": "diverged", "at": at, "from": "decision", "time": "2026-01-01T00:00:00+00:00"}))
        file.write("\n{half a line")
    assert [row["event"] for row in progress.look()] == ["diverged"]
    assert progress.decided == (0, 0) and not progress.written
    with (finished / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(InputError, match="damaged"):
        progress.look()


def test_sentences_of_the_journal_are_those_of_the_run(world: Any, sandbox: Path) -> None:
    said: list[str] = []

    class Watcher:
        def watch(self, budget: Budget) -> None: ...
        def phase(self, text: str, total: int | None = None) -> None: ...
        def advance(self, done: int, total: int) -> None: ...
        def say(self, text: str) -> None:
            said.append(text)

    world.migrate(sandbox / "run", trial=True, prune=True, watcher=Watcher())
    rows = [json.loads(line) for line in (sandbox / "run" / "journal.jsonl").read_text("utf-8").splitlines()]
    sentences = [each for row in rows if (each := sentence_of(row)) is not None]
    apart = ("These lines are", "With 16 test rows")  # the decision has the lines; what the test can show is no event
    assert sentences == [each for each in said if not each.startswith(apart)]
    assert {row["event"] for row in rows} <= set(KINDS)
    assert {"trial", "decision", "learned"} <= {row["event"] for row in rows}


def test_events_of_another_version_are_named_and_no_more() -> None:
    assert sentence_of({"event": "teleported", "to": 3}) == "teleported"
    assert sentence_of({"event": "decision", "version": 3}) == "decision"
    assert set(DOING) <= set(KINDS)


def test_plain_lines_tell_iteration_and_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    events = Teller(Journal(tmp_path / "journal.jsonl"), lines)
    events.watch(Budget())
    assert lines.spent == "0 calls, 0 tokens"
    events.emit(DisagreementsFound(2, 3, 40, []))
    edit, gain = Edit(old="a", new="b", lessons=("L1",)), Difference(0.25, 20, 0.1, 0.4, 0.01, None)
    for version, accepted in ((1, True), (2, False)):
        tried = TriedRecord(edits=(edit,), accepted=accepted, reason="as told", gain=gain, judged=20, iteration=2)
        events.emit(VersionDecided(version, version - 1, tried))
    loss = Difference(-0.05, 20, -0.1, 0.1, 0.6, None)
    events.emit(EditPruned(3, PrunedRecord(edit=edit, removed=True, reason="no worse", gain=loss)))
    assert lines.spent == "iteration 2, validation +0.200, 0 calls, 0 tokens"
