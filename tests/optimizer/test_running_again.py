"""What a run does that is finished, stopped by a budget or made longer when it is run again, and which runs are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

import askance
from askance.memory.run_directory import RunDirectory
from askance.models.base import Answer, ModelError, Request
from askance.optimizer.events import DisagreementsFound, Event
from askance.optimizer.loop import take_up
from askance.prompts.errors import AskanceError, BudgetExceededError, InputError
from askance.testing import ScriptedModel
from tests.said import naming, says


def test_a_finished_run_asks_nothing_when_it_is_run_again(lab: Any) -> None:
    whole, requests = lab.run_to_the_end("whole")
    journal = (lab.folder / "whole" / "journal.jsonl").read_bytes()
    lab.migrate("whole")
    assert lab.answered == requests
    assert lab.fingerprint("whole") == whole
    assert (lab.folder / "whole" / "journal.jsonl").read_bytes() == journal


@pytest.mark.parametrize("part", [0.2, 0.4, 0.7, 0.95])
def test_more_budget_gives_the_result_of_a_run_without_a_limit(lab: Any, part: float) -> None:
    whole, requests = lab.run_to_the_end("whole")
    lab.answered.clear()
    cap = int(part * len(requests))
    stopped = lab.migrate("capped", call_budget=cap)
    assert stopped.finish_reason == "max_calls"
    assert stopped.result["calls"] == len(lab.answered) == cap
    lab.migrate("capped", call_budget=10_000)
    assert lab.fingerprint("capped") == whole
    assert sorted(lab.answered) == sorted(requests)
    journal = (lab.folder / "capped" / "journal.jsonl").read_bytes()
    lab.migrate("capped")
    assert (lab.folder / "capped" / "journal.jsonl").read_bytes() == journal


def test_a_budget_that_ends_before_the_start_is_measured_says_how_to_go_on(lab: Any) -> None:
    with pytest.raises(BudgetExceededError, match=r"askance resume .*run --call-budget MORE"):
        lab.migrate("run", call_budget=10)
    assert not (lab.folder / "run" / "result.json").exists()


def test_a_budget_that_ends_during_the_test_keeps_the_accepted_prompt_and_says_why_there_is_no_test(lab: Any) -> None:
    whole = lab.migrate("whole")
    capped = lab.migrate("capped", call_budget=whole.result["calls"] - 1)
    assert capped.finish_reason == "max_calls"
    assert capped.prompt == whole.prompt
    assert capped.result["best"]["test"] is None
    assert says(capped.result["best"]["reason"], "test", "not judged")
    assert capped.result["test_looked_at"] is False


def test_failed_calls_are_asked_again_when_the_run_is_resumed(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = lab.run_to_the_end("whole")
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
    resumed = lab.fingerprint("flaky")
    assert resumed.pop("versions").items() >= whole.pop("versions").items(), "every version that was tried is kept"
    assert resumed == whole


def test_another_run_in_the_directory_is_refused_naming_what_differs(lab: Any) -> None:
    lab.migrate("run")
    with pytest.raises(InputError, match=r"other settings \(margin, seed\).*askance resume"):
        lab.migrate("run", margin=0.5, seed=7)
    with pytest.raises(InputError, match=r"other settings \(alpha, max_bias\)"):
        lab.migrate("run", alpha=0.3, max_bias=0.5)
    lab.world.source_prompt = askance.Prompt("Be a strict judge, please.")
    with pytest.raises(InputError, match=naming("data", "checklist", "prompts")):
        lab.migrate("run")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"embedder": "wrods"}, "no embedder 'wrods'"),
        ({"note_taker": "helper"}, "'helper' is no model name"),
        ({"limit": 3}, "3 examples are too few"),
    ],
)
def test_a_run_that_bad_input_ends_before_it_bought_anything_was_not_begun(
    lab: Any, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        lab.migrate("run", **wrong)
    folder = lab.folder / "run"
    assert not any((folder / name).exists() for name in ("config.yaml", "journal.jsonl", "inputs/prompt.md"))
    lab.migrate("run")
    whole, _ = lab.run_to_the_end("whole")
    assert lab.fingerprint("run") == whole


def test_a_run_that_has_bought_something_stays_whatever_ends_it(lab: Any) -> None:
    memory = lab.folder / "memory"

    def spoil(event: Event) -> None:
        if isinstance(event, DisagreementsFound):
            (memory / "memory.jsonl").write_text('{"entry": "what"}\n')

    with pytest.raises(InputError, match="field 'entry'"):
        lab.migrate("run", memory=str(memory), callbacks=[spoil])
    bought = len(lab.answered)
    (memory / "memory.jsonl").unlink()
    lab.migrate("run", memory=str(memory))
    assert 0 < bought < len(lab.answered) == len(set(lab.answered))


def test_a_run_that_is_under_way_is_not_touched_by_another(lab: Any) -> None:
    run = RunDirectory(lab.folder / "run")
    with run.lock(), pytest.raises(AskanceError, match=naming("another process", "run")):
        lab.migrate("run")
    lab.migrate("run")


def test_a_resumed_run_takes_changed_limits_and_no_other_changed_setting(lab: Any) -> None:
    lab.migrate("run")
    with pytest.raises(InputError, match=r"'margin' cannot be changed.*--workers, --store, --no-cache"):
        askance.resume(lab.folder / "run", margin=0.5)
    with pytest.raises(InputError, match=naming("store:", "no store")):
        askance.resume(lab.folder / "run", store=lab.folder / "other.db", no_cache=True)
    assert not (lab.folder / "other.db").exists()
    with pytest.raises(InputError, match=naming("no run")):
        askance.resume(lab.folder / "nowhere")


def test_a_run_made_longer_comes_to_what_one_begun_so_comes_to_and_buys_only_the_rest(lab: Any) -> None:
    whole, requests = lab.run_to_the_end("whole")
    lab.answered.clear()
    short = lab.migrate("short", max_iterations=1)
    assert short.finish_reason == "max_iterations"
    with pytest.raises(InputError, match=r"askance resume .*short --max-iterations MORE"):
        lab.migrate("short")
    take_up(RunDirectory(lab.folder / "short"), {"max_iterations": 5})
    with pytest.raises(InputError, match="max_iterations"):
        lab.migrate("short", max_iterations=1)
    lab.migrate("short")
    longer = lab.fingerprint("short")
    result = json.loads((lab.folder / "short" / "result.json").read_text())
    assert result["earlier_test_looks"] == 1
    result.pop("earlier_test_looks")
    first = json.loads((lab.folder / "whole" / "result.json").read_text())
    spent = {"calls", "cached_calls", "tokens", "roles"}
    assert {k: v for k, v in result.items() if k not in spent} == {k: v for k, v in first.items() if k not in spent}
    assert longer["prompt.md"] == whole["prompt.md"] and longer["lessons.jsonl"] == whole["lessons.jsonl"]
    assert len(lab.answered) == len(set(lab.answered)), "nothing is asked twice"
    assert set(requests) <= set(lab.answered)


def test_of_a_run_that_was_made_longer_no_verdict_of_its_earlier_result_is_left(lab: Any) -> None:
    """Their errors would be told as those of the later one, and its scores on the test be taken for those of its judge."""

    def kept(name: str) -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in (lab.folder / name / "verdicts").iterdir()}

    lab.migrate("whole", max_notes=2, max_iterations=5)
    lab.migrate("run", max_notes=2, max_iterations=1)
    before = kept("run")
    take_up(RunDirectory(lab.folder / "run"), {"max_iterations": 5})
    capped = lab.migrate("run", max_notes=2, max_iterations=5, call_budget=220)
    assert (capped.finish_reason, capped.result["best"]["test"]) == ("max_calls", None)
    assert {"000-test.jsonl", "scores.jsonl"} <= before.keys() - kept("run").keys()
    lab.migrate("run", max_notes=2, max_iterations=5)
    assert kept("run") == kept("whole")


def test_a_look_at_the_test_is_counted_once_though_the_run_is_made_longer_twice(lab: Any) -> None:
    lab.migrate("run", max_iterations=1)
    directory = RunDirectory(lab.folder / "run")
    for iterations in (2, 3):  # the process ended in between
        take_up(directory, {"max_iterations": iterations})
        assert directory.read_config()["earlier_test_looks"] == 1
    lab.migrate("run", max_iterations=3)
    assert directory.read_result().earlier_test_looks == 1
    directory.extend(4)
    assert directory.read_config()["earlier_test_looks"] == 2


def test_a_run_with_nothing_left_to_do_is_not_made_longer(lab: Any) -> None:
    done = lab.migrate("run", patience=1, max_iterations=4)
    assert done.finish_reason not in ("max_iterations", "max_calls")
    with pytest.raises(InputError, match=naming("ended because", "more iterations", "--from")):
        askance.resume(lab.folder / "run", max_iterations=9)


def test_a_run_is_made_longer_only_and_only_with_its_own_inputs(lab: Any) -> None:
    lab.migrate("run", max_iterations=1)
    run = lab.folder / "run"
    with pytest.raises(InputError, match="has 1 iteration already"):
        RunDirectory(run).extend(1)
    (run / "inputs" / "prompt.md").write_text("Another.", encoding="utf-8")
    with pytest.raises(InputError, match=naming("data", "checklist", "prompts")):
        askance.resume(run, max_iterations=3)
