"""A crash at any point of a run, and going on, gives the same result and repeats no call that was answered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from askance.memory.journal import Journal, read_events
from askance.memory.run_directory import RunDirectory
from askance.memory.verdict_store import VerdictStore
from askance.optimizer.contest import ON_ITS_OWN


def test_the_world_of_these_tests_accepts_and_rejects_edits(lab: Any) -> None:
    result = lab.migrate("whole").result
    assert len(result["accepted_edits"]) == 2
    assert len(result["rejected_edits"]) >= 3
    assert result["calls"] == len(lab.answered) == len(set(lab.answered))


def test_a_crash_at_any_request_changes_nothing_and_repeats_no_answered_request(lab: Any) -> None:
    whole, requests = lab.run_to_the_end("whole")
    for crash_at in sorted({*range(0, len(requests), 9), len(requests) - 1}):
        name = f"crash{crash_at}"
        lab.answered.clear()
        lab.crash_at = crash_at
        with pytest.raises(lab.Crash):
            lab.migrate(name)
        lab.crash_at = None
        lab.migrate(name)
        assert lab.fingerprint(name) == whole, f"crash at request {crash_at}"
        assert lab.answered == requests, f"crash at request {crash_at}"


def test_many_crashes_in_one_run_change_nothing(lab: Any) -> None:
    whole, requests = lab.run_to_the_end("whole")
    lab.answered.clear()
    for crash_at in range(5, len(requests), 23):
        lab.crash_at = crash_at
        with pytest.raises(lab.Crash):
            lab.migrate("often")
    lab.crash_at = None
    lab.migrate("often")
    assert lab.fingerprint("often") == whole
    assert lab.answered == requests


def test_crashes_with_eight_calls_under_way_change_nothing(lab: Any) -> None:
    whole, requests = lab.run_to_the_end("whole", slots=8)
    for crash_at in range(3, len(requests), 61):
        name = f"crash{crash_at}"
        lab.answered.clear()
        lab.crash_at = crash_at
        with pytest.raises(lab.Crash):
            lab.migrate(name, slots=8)
        lab.crash_at = None
        lab.migrate(name, slots=8)
        assert lab.fingerprint(name) == whole
        assert set(lab.answered) == set(requests)
        assert sum(count - 1 for count in Counter(lab.answered).values()) <= 8


EVERYTHING = {"trial": True, "racing": True, "prune": True, "max_notes": 5}


def test_the_run_with_everything_on_tries_races_and_prunes(lab: Any) -> None:
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


def test_a_crash_changes_nothing_with_everything_on(lab: Any) -> None:
    whole, requests = lab.run_to_the_end("whole", **EVERYTHING)
    for crash_at in range(4, len(requests), 23):
        name = f"crash{crash_at}"
        lab.answered.clear()
        lab.crash_at = crash_at
        with pytest.raises(lab.Crash):
            lab.migrate(name, **EVERYTHING)
        lab.crash_at = None
        lab.migrate(name, **EVERYTHING)
        assert lab.fingerprint(name) == whole, f"crash at request {crash_at}"
        assert lab.answered == requests, f"crash at request {crash_at}"


@pytest.mark.parametrize("part", [0.5, 0.7, 0.8, 0.9, 0.97])
def test_more_budget_gives_the_result_of_a_run_without_a_limit_with_everything_on(lab: Any, part: float) -> None:
    whole, requests = lab.run_to_the_end("whole", **EVERYTHING)
    cap = int(part * len(requests))
    stopped = lab.migrate("capped", call_budget=cap, **EVERYTHING)
    assert (stopped.finish_reason, stopped.result["calls"]) == ("max_calls", cap)
    applied = {each["id"] for each in stopped.result["lessons"] if each["status"] == "applied"}
    assert applied == {each["id"] for each in stopped.result["lessons"] if each["text"] in stopped.prompt}
    lab.migrate("capped", call_budget=10_000, **EVERYTHING)
    resumed = lab.fingerprint("capped")
    assert resumed == whole


def test_the_number_of_calls_at_once_does_not_show_in_the_result(lab: Any) -> None:
    alone, _ = lab.run_to_the_end("alone", slots=1)
    together, _ = lab.run_to_the_end("together", slots=8)
    assert together == alone


def crash_after(
    n: int, function: Callable[..., Any], torn: Callable[..., None], crash: type[BaseException]
) -> Callable[..., Any]:
    """The function, until its n-th call: that one does half the work and the process is gone."""
    calls = 0

    def wrapped(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == n:
            torn(*arguments, **named)
            raise crash
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
    lab: Any, monkeypatch: pytest.MonkeyPatch, kind: type, method: str, torn: Callable[..., None]
) -> None:
    whole, requests = lab.run_to_the_end("whole")
    for n in range(1, 100, 3):
        name = f"torn{n}"
        lab.answered.clear()
        with monkeypatch.context() as patch:
            patch.setattr(kind, method, crash_after(n, getattr(kind, method), torn, lab.Crash))
            try:
                lab.migrate(name)
            except lab.Crash:
                pass
            else:
                assert n > 15, "too few writes to crash at"
                return
        lab.migrate(name)
        assert lab.fingerprint(name) == whole, f"crash at write {n}"
        assert lab.answered == requests
    pytest.fail("the run did not end")


def test_a_crash_right_after_an_answer_was_stored_repeats_nothing(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, requests = lab.run_to_the_end("whole")
    lab.answered.clear()
    with monkeypatch.context() as patch:
        patch.setattr(VerdictStore, "put", crash_after(40, VerdictStore.put, VerdictStore.put, lab.Crash))
        with pytest.raises(lab.Crash):
            lab.migrate("stored")
    lab.migrate("stored")
    assert lab.fingerprint("stored") == whole
    assert lab.answered == requests


def test_prompt_md_never_falls_back_behind_the_best_version_while_a_run_is_repeated(
    lab: Any, monkeypatch: pytest.MonkeyPatch
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
