"""``align`` end to end: a judge is brought nearer to people, and nothing is taken on trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.journal import read_events
from askance.memory.result_file import FINISH_SENTENCES
from askance.memory.run_directory import RunDirectory
from askance.models.base import Request
from askance.optimizer.contest import ANEW
from askance.optimizer.modes.align import MODE, prepare
from askance.prompts.checklist import load_checklist
from askance.prompts.errors import BudgetExceededError, InputError
from askance.run_estimate import estimate_run
from askance.testing import StandInServer
from tests.said import naming
from tests.worlds import useful

CURES = ("gives a wrong number", "gives a wrong name")
HARM = "is written in a plain style"
PROMISED = {
    "mode",
    "finish_reason",
    "iterations",
    "baseline",
    "best",
    "accepted_edits",
    "rejected_edits",
    "lessons",
    "calls",
    "cached_calls",
    "tokens",
    "cost_usd",
    "coverage",
}
"""Of every ``result.json``."""


def teach_to_write_questions(world: Any) -> None:
    """Every model of the world can write two questions: one that is there, and one that nobody can answer."""
    reply = world.reply

    def with_writer(messages: Any, schema: Any) -> Any:
        fields = (schema or {}).get("properties", {})
        if "requirements" in fields:
            return json.dumps({"requirements": ["The facts are right."]})
        if "questions" in fields:
            texts = ("Are the facts right?", "Is there a moon in it?")
            return json.dumps({"questions": [{"text": text, "violation": "It is wrong."} for text in texts]})
        if "Is there a moon in it?" in "\n".join(content for _, content in messages):
            return json.dumps({"answer": "no", "explanation": "There is none."}) if "explanation" in fields else 0.5
        return reply(messages, schema)

    world.reply = with_writer


def test_the_judge_ranks_better_and_its_prompt_says_why(world: Any, tmp_path: Path) -> None:
    done = world.align(tmp_path / "run")
    result = done.result
    assert all(cure in done.prompt for cure in CURES)
    assert HARM not in done.prompt
    for split in ("validation", "test"):
        assert result["best"][split]["spearman"] > result["baseline"][split]["spearman"] + 0.3
    assert result["finish_reason"] in FINISH_SENTENCES
    assert (result["reference"], result["yardstick"], result["mode"]) == ("human", "Spearman", "align")


def test_the_result_holds_what_is_promised(world: Any, tmp_path: Path) -> None:
    done = world.align(tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert done.result == result
    assert set(result) >= PROMISED
    for side in ("baseline", "best"):
        assert set(result[side]) >= {"prompt", "validation", "test"}
        for split in ("validation", "test"):
            measured = result[side][split]
            assert set(measured) >= {"spearman", "kendall", "pearson", "n", "low", "high", "dimensions"}
            assert set(measured["dimensions"]) == {"quality"}
    assert {lesson["status"] for lesson in result["lessons"]} <= {"new", "merged", "applied", "rejected", "retired"}
    assert (tmp_path / "run" / "prompt.md").read_text() == done.prompt
    assert result["calls"] == sum(role["calls"] for role in result["roles"].values())


def test_calibration_and_bias_stand_beside_the_prompt(world: Any, tmp_path: Path) -> None:
    done = world.align(tmp_path / "run")
    assert set(done.result["calibration"]) == {"baseline", "best"}
    was, now = (done.result["drift"][side]["mean_errors"]["quality"] for side in ("baseline", "best"))
    assert was > now > 0, "the judge was too mild and is less so"
    assert (tmp_path / "run" / "calibration-platt.json").exists()
    assert load_checklist(tmp_path / "run" / "checklist.yaml") == askance.load_judge(tmp_path / "run").checklist


def test_only_a_calibration_changes_no_prompt_and_asks_no_helper(world: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    done = world.align(tmp_path / "run", seen.append, calibrate=True)
    assert done.finish_reason == "calibrated"
    assert done.prompt == world.prompt.text
    assert set(done.result["roles"]) == {"model"}
    assert done.result["calls"] == len(seen) == 2 * len(world.ids), "each example once, two questions"
    assert done.result["calibration"]["best"]


def test_lessons_are_tried_first_and_the_harmful_one_never_costs_a_validation_set(world: Any, tmp_path: Path) -> None:
    done = world.align(tmp_path / "run", trial=True, prune=True)
    harmful = [lesson for lesson in done.result["lessons"] if HARM in lesson["text"]]
    assert harmful
    assert all(lesson["reason"].startswith("failed its trial: ") for lesson in harmful)
    tried = {name for each in done.result["rejected_edits"] for edit in each["edits"] for name in edit["lessons"]}
    assert tried.isdisjoint({lesson["id"] for lesson in harmful})
    assert all(cure in done.prompt for cure in CURES)


def test_all_lessons_can_be_written_in_one_rewrite(world: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    done = world.align(tmp_path / "run", seen.append, update="rewrite", trial=True, prune=True)
    rewrites = [each for each in seen if "prompt" in (each.parameters.schema or {}).get("properties", {})]
    assert 1 <= len(rewrites) <= done.result["iterations"]
    for each in [*done.result["accepted_edits"], *done.result["rejected_edits"]]:
        assert len(each["edits"]) == 1
    before, after = (done.result[side]["validation"]["spearman"] for side in ("baseline", "best"))
    assert after >= before


def test_people_agreeing_within_the_threshold_end_the_run(world: Any, tmp_path: Path) -> None:
    done = world.align(tmp_path / "run", disagreement_threshold=0.99)
    assert (done.finish_reason, done.result["iterations"]) == ("converged", 1)
    assert done.prompt == world.prompt.text


def test_without_human_scores_nothing_is_begun(make_world: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("human", "score")):
        make_world(human=False).align(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_questions_written_anew_have_to_pass_the_gate_and_known_ones_are_not_judged_again(
    world: Any, tmp_path: Path
) -> None:
    teach_to_write_questions(world)
    seen: list[Request] = []
    done = world.align(tmp_path / "run", seen.append, regenerate_questions=True)
    decisions = [event for event in read_events(tmp_path / "run" / "journal.jsonl") if event["event"] == "decision"]
    pairs = [event for event in decisions if event["reason"].endswith(ANEW)]
    assert pairs, "the new questions went through the acceptance test"
    assert all(event["lessons"] for event in pairs), "together with the prompt that they were written from"
    assert len(seen) == len({request.key for request in seen})
    accepted = [event for event in pairs if event["accepted"]]
    assert ("checklist" in done.result["best"]) == bool(accepted)


def test_a_budget_ends_the_run_with_what_it_has(world: Any, tmp_path: Path) -> None:
    whole = world.align(tmp_path / "whole", trial=True, prune=True)
    calls = whole.result["calls"]
    with pytest.raises(BudgetExceededError, match="--call-budget MORE"):
        world.align(tmp_path / "none", call_budget=5)
    for cap in (calls // 2, calls - 40, calls - 1):
        done = world.align(tmp_path / f"cap{cap}", call_budget=cap, trial=True, prune=True)
        assert done.finish_reason == "max_calls"
        assert done.result["calls"] == cap
        applied = {lesson["id"] for lesson in done.result["lessons"] if lesson["text"] in done.prompt}
        assert applied == {lesson["id"] for lesson in done.result["lessons"] if lesson["status"] == "applied"}


def test_a_run_that_a_budget_ended_can_be_gone_on_with(world: Any, tmp_path: Path) -> None:
    whole = world.align(tmp_path / "whole", trial=True, prune=True)
    seen: list[Request] = []
    world.align(tmp_path / "run", seen.append, trial=True, prune=True, call_budget=150)
    done = world.align(tmp_path / "run", seen.append, trial=True, prune=True, call_budget=10_000)
    assert done.result == whole.result
    assert len(seen) == len({request.key for request in seen}) == whole.result["calls"]


def test_a_run_is_resumed_from_its_directory_alone(world: Any, tmp_path: Path, sandbox: Path) -> None:
    with StandInServer(world.serve) as server:
        done = askance.align(
            world.rows,
            checklist=world.checklist,
            model="openai/target",
            prompt=world.prompt,
            api_base=server.url,
            run=tmp_path / "run",
            **world.options,
        )
        asked = len(server.bodies)
        (tmp_path / "run" / "result.json").unlink()
        assert askance.resume(tmp_path / "run").result == done.result
        assert len(server.bodies) == asked
    assert done.result["accepted_edits"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trial": True, "prune": True},
        {"trial": True, "prune": True, "update": "rewrite"},
        {"calibrate": True},
        {"paper": True},
        {"paper": True, "notes": "each", "update": "edits"},
        {"regenerate_questions": True},
    ],
)
def test_a_whole_run_buys_no_more_than_was_estimated(world: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    made = prepare(
        world.rows, world.checklist, world.model("world/target"), world.prompt, useful(world.options | options)
    )
    assert MODE.strata(made) is not None
    estimate = estimate_run(made)
    teach_to_write_questions(world)
    done = world.align(tmp_path / "run", **options)
    most = estimate.fixed.calls + done.result["iterations"] * estimate.iteration_calls + estimate.last_calls
    assert estimate.fixed.calls <= done.result["calls"] <= most


def test_the_estimate_counts_the_notes_and_the_cap_on_candidates(world: Any) -> None:
    """A round tries no more than 2·log2(edits) + 1 candidates."""

    def per_iteration(**options: Any) -> int:
        options = world.options | {"trial": False, "explain": "never", "split": (0.4, 0.3, 0.3)} | options
        job = prepare(world.rows, world.checklist, world.model("world/target"), world.prompt, options)
        return estimate_run(job).iteration_calls

    judging = 12 * 2  # validation examples, questions
    helpers = 2 * (1 + 10)  # of a lesson
    assert per_iteration(max_notes=8) - per_iteration(max_notes=1) == 6 * judging + 7 * helpers
    assert per_iteration(max_notes=8, max_lessons=2) == per_iteration(max_notes=8) - 4 * judging


def test_writing_questions_anew_is_in_the_estimate(world: Any) -> None:
    def per_iteration(**options: Any) -> int:
        job = prepare(
            world.rows, world.checklist, world.model("world/target"), world.prompt, useful(world.options | options)
        )
        return estimate_run(job).iteration_calls

    writing = 2 * (1 + 12 + 12 * 3)  # requirements, questions for each, each taken apart, with re-asks
    judging = 12 * 2  # validation examples, questions
    assert per_iteration(regenerate_questions=True) - per_iteration() == writing + judging


def commented(world: Any, comments: dict[str, Any]) -> list[dict[str, Any]]:
    """The world's examples with comments, by example."""
    return [row | ({"comment": comments[row["id"]]} if row["id"] in comments else {}) for row in world.rows]


def test_the_note_taker_is_told_what_people_wrote_and_nobody_else_is(world: Any, tmp_path: Path) -> None:
    said = "It gives customers their money back, which nobody may promise."
    long = dict.fromkeys(world.ids, f"{said} " * 400)  # more than 20,000 characters each

    def run(name: str, rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
        """What was sent: the notes' messages, and all others."""
        sent: tuple[list[str], list[str]] = ([], [])

        def see(request: Request) -> None:
            is_note = any(
                field in json.dumps(request.parameters.schema) for field in ("answer_no_if", "answer_yes_even_if")
            )
            sent[0 if is_note else 1].append("\n".join(content for _, content in request.messages))

        askance.align(
            rows,
            checklist=world.checklist,
            model=world.model("world/target", see),
            prompt=world.prompt,
            run=tmp_path / name,
            **world.options | {"max_iterations": 1, "update": "edits"},
        )
        return sent

    (notes_without, others_without), (notes_with, others_with) = (
        run("plain", world.rows),
        run("told", commented(world, long)),
    )
    assert notes_with
    assert all(said in each and "people's mean score" not in each for each in notes_with)
    assert all(each.count(said) <= 9 * each.count(" [e") for each in notes_with), "a comment is cut"
    assert not any(said in each for each in [*notes_without, *others_without, *others_with])
    assert all("people's mean score" in each for each in notes_without)
    assert sorted(others_with) == sorted(others_without)
    kept = RunDirectory(tmp_path / "told").read_inputs()[0]
    assert {each.comment[0].text for each in kept} == {" ".join([said] * 400)}


def test_a_comment_on_one_question_changes_no_message_about_another(world: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    askance.align(
        commented(world, {name: {"facts": "WRONG FACTS."} for name in world.ids}),
        checklist=world.checklist,
        model=world.model("world/target", seen.append),
        prompt=world.prompt,
        run=tmp_path / "run",
        **world.options | {"max_iterations": 1},
    )
    told = ["\n".join(content for _, content in request.messages) for request in seen]
    assert any("WRONG FACTS." in each for each in told)
    assert all("Are the facts right?" in each for each in told if "WRONG FACTS." in each)


def test_a_comment_that_nobody_can_be_told_is_said(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    rows = commented(world, {"e000": {"qualty": "Dull."}, "e001": {"facts": "Wrong."}})
    prepare(rows, world.checklist, world.model("world/target"), world.prompt, {})
    [record] = caplog.records
    assert "comments about 'qualty' (as in example 'e000')" in record.message


def test_labels_align_like_scores_and_the_same_command_goes_on_with_the_run(world: Any, tmp_path: Path) -> None:
    rows = [{**row, "human": {"quality": "FINE" if row["human"]["quality"] > 2.5 else "poor"}} for row in world.rows]

    def run(name: str, given: list[dict[str, Any]], **options: Any) -> askance.RunResult:
        settings = useful(world.options | {"max_iterations": 1, "calibrate": True} | options)
        model = world.model("world/target")
        return askance.align(
            given, checklist=world.checklist, model=model, prompt=world.prompt, run=tmp_path / name, **settings
        )

    done = run("run", rows, labels={"good": "fine", "bad": "poor"})
    as_text = "good=fine,bad=poor"
    assert run("run", rows, labels=as_text).result == done.result
    numbers = [{**row, "human": {"quality": int(row["human"]["quality"] == "FINE")}} for row in rows]
    assert run("numbers", numbers).result["baseline"] == done.result["baseline"]


@pytest.mark.parametrize("mode", ["align", "migrate"])
def test_a_lesson_that_needs_counting_is_reported_and_kept_out_of_the_judges_prompt(
    world: Any, tmp_path: Path, mode: str
) -> None:
    reply = world.reply

    def counting(messages: Any, schema: Any) -> Any:
        said = reply(messages, schema)
        return said.replace(HARM, "has too many syllables") if isinstance(said, str) else said

    world.reply = counting
    done = getattr(world, mode)(tmp_path / "run")
    found = [lesson for lesson in done.result["lessons"] if "syllables" in lesson["text"]]
    assert found
    assert all(lesson["kind"] == "computational" and "syllables" in lesson["kind_reason"] for lesson in found)
    assert "syllables" not in done.prompt
    assert all(cure in done.prompt for cure in CURES)
