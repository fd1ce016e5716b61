"""A run that goes on from an earlier one: later comments improve its judge, and only what is new is bought."""

from __future__ import annotations

import json
import shutil
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.journal import read_events
from askance.memory.run_directory import RunDirectory
from askance.models.base import Request
from askance.models.progress import watching
from askance.optimizer.earlier import Remembered
from askance.optimizer.loop import take_up
from askance.optimizer.modes.align import prepare
from askance.optimizer.questions.choice import CHANCE
from askance.optimizer.questions.learner import QuestionLearner
from askance.prompts.errors import InputError
from askance.run_estimate import estimate_run
from askance.runs import run_and_report
from askance.testing import ScriptedModel
from tests.said import naming, says

from .conftest import DEAF, RULES, TWIN, Desk, Killed, of_questions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SETTINGS: dict[str, Any] = {"embedder": "words", "resamples": 400, "update": "questions"}


class First:
    """A finished run on a part of the examples."""

    def __init__(self, desk: Desk, run: Path) -> None:
        self.run = run
        self.asked: set[bytes] = set()
        self.done = desk.align(run, lambda request: self.asked.add(request.key))


def go_on(
    desk: Desk, run: Path, earlier: Path, before: Callable[[Request], None] | None = None, **options: Any
) -> askance.RunResult:
    model = desk.model(before)
    return askance.align(desk.rows, from_run=earlier, model=model, run=run, **of_questions(SETTINGS | options))


def parts(run: Path) -> dict[str, str]:
    event = next(each for each in read_events(run / "journal.jsonl") if each["event"] == "split")
    return {name: part for part in ("development", "validation", "test") for name in event[part]}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> First:
    """Too few examples for the gate to let a question through."""
    return First(Desk(44), tmp_path_factory.mktemp("small") / "run")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> First:
    """Three questions were learned."""
    return First(Desk(120), tmp_path_factory.mktemp("learned") / "run")


@pytest.fixture(scope="module")
def improved(small: First, tmp_path_factory: pytest.TempPathFactory) -> First:
    """More examples and comments than the small run had, and its judge."""
    run = tmp_path_factory.mktemp("improved") / "run"
    later = First.__new__(First)
    later.run, later.asked = run, set()
    later.done = go_on(Desk(200), run, small.run, lambda request: later.asked.add(request.key))
    return later


def test_what_few_examples_could_not_show_is_learned_from_more(small: First, improved: First) -> None:
    assert not small.done.record.learned
    gain = improved.done.record.gain.test
    assert gain is not None and gain.value is not None and gain.low is not None
    assert gain.value > 0.4 and gain.low > 0
    joined = {row.text for row in improved.done.record.learned}
    assert joined == {question for _, question in RULES.values()}


def test_the_start_is_the_judge_of_the_earlier_run(small: First, improved: First) -> None:
    before, after = small.done.record.best, improved.done.record.baseline
    assert (before.prompt, before.checklist) == (after.prompt, after.checklist)
    assert askance.load_judge(improved.run).origins["good"].origin == "start"


def test_nothing_that_was_bought_is_bought_again(small: First, improved: First) -> None:
    assert improved.asked and not improved.asked & small.asked
    assert improved.done.record.calls == len(improved.asked)


def test_examples_keep_their_part_and_the_others_make_up_the_shares(small: First, improved: First) -> None:
    before, after = parts(small.run), parts(improved.run)
    assert before.items() <= after.items()
    counts = [list(after.values()).count(part) for part in ("development", "validation", "test")]
    assert counts == [60, 60, 80]


def test_what_screening_dropped_is_not_proposed_again(small: First, improved: First) -> None:
    dropped = {row.text for row in small.done.record.questions if not row.may_return}
    assert DEAF in dropped
    assert DEAF not in {row.text for row in improved.done.record.questions}


def test_what_too_few_examples_speak_for_may_return(small: First, improved: First) -> None:
    waiting = {row.text for row in small.done.record.questions if row.reason == CHANCE and row.may_return}
    joined = {row.text for row in improved.done.record.learned}
    assert waiting & joined and TWIN not in joined


def test_a_question_that_waits_is_not_tested_by_the_half_whose_outputs_led_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes from no comment names no example."""
    first = Desk(48, comments=False, kinds=True).align(tmp_path / "first").record
    waiting = {row.text: row.parts for row in first.questions if row.may_return}
    assert {*waiting.values()} == {("development",), ("validation",), ("development", "validation")}
    tested: list[tuple[set[str], set[str]]] = []
    fold = QuestionLearner._fold

    async def watched(self: Any, judge: Any, every: Any, examples: Any, named: Any, iteration: int) -> Any:
        tested.append(({each.id for each in examples}, {each.text for each in named.values()}))
        return await fold(self, judge, every, examples, named, iteration)

    monkeypatch.setattr(QuestionLearner, "_fold", watched)
    done = go_on(Desk(100, comments=False), tmp_path / "run", tmp_path / "first")
    known = parts(tmp_path / "run")
    assert len(tested) == 6
    for ids, texts in tested:
        (part,) = {known[each] for each in ids}
        assert texts == {text for text, own in waiting.items() if own != (part,)}
    again = {row.text: row.parts for row in done.record.questions}
    assert again == waiting, "a run that goes on from this one knows it too"


def test_without_anything_new_nothing_is_asked_and_it_says_so(learned: First, tmp_path: Path) -> None:
    asked: list[bytes] = []
    done = go_on(Desk(120), tmp_path / "run", learned.run, lambda request: asked.append(request.key))
    assert asked == [] and done.record.calls == 0
    assert done.finish_reason == "no_new_evidence"
    assert done.record.best.test == done.record.baseline.test == learned.done.record.best.test
    first, second = (askance.load_judge(each) for each in (learned.run, tmp_path / "run"))
    assert second == replace(first, made_by=second.made_by, figures=second.figures, decision="keep")
    assert second.not_adopted is None, "it is the judge that the run began with"
    assert first.figures is not None and second.figures is not None and first.figures.test == second.figures.test
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_calibration_of_the_judge_comes_along(learned: First, tmp_path: Path) -> None:
    done = go_on(Desk(160), tmp_path / "run", learned.run)
    judge = askance.load_judge(learned.run)
    assert judge.calibration is not None and done.record.questions == ()
    assert done.record.baseline.read_by == learned.done.record.best.read_by
    own = [json.loads(line) for line in (done.directory / "verdicts" / "scores.jsonl").read_text().splitlines()]
    again = judge.evaluate(Desk(160).rows, model=Desk(160).model())
    scores = {each.example: each.overall for each in again.scores}
    assert len(own) == 64 and all(row["score"] == pytest.approx(scores[row["example"]]) for row in own)


def test_a_comment_that_changed_is_read_and_others_are_not(learned: First, tmp_path: Path) -> None:
    desk = Desk(120)
    changed = next(row.sources[0] for row in learned.done.record.learned if row.sources)
    given = [{**row, "comment": "you name the mayor?!"} if row["id"] == changed else row for row in desk.rows]
    done = askance.align(
        given, from_run=learned.run, model=desk.model(), run=tmp_path / "run", **of_questions(SETTINGS)
    )
    assert desk.asked == ["you name the mayor?!"]
    assert done.finish_reason == "no_new_evidence"
    assert done.record.calls == 3, "alone, beside its output, and beside the whole example"


def test_another_model_is_calibrated_anew_and_that_is_said(learned: First, tmp_path: Path, caplog: Any) -> None:
    desk = Desk(120)
    other = ScriptedModel(lambda request: desk.reply(request.messages), name="desk/other")
    done = askance.align(desk.rows, from_run=learned.run, model=other, run=tmp_path / "run", **of_questions(SETTINGS))
    assert "desk/other in place of desk/judge" in caplog.text
    assert says(caplog.text, "calibration", "fitted anew", "development examples")
    judge = askance.load_judge(done.directory)
    assert judge.calibration is not None and judge.calibration.model == judge.model == "desk/other"


@pytest.mark.parametrize("after", [40, 330])
def test_a_killed_run_goes_on_when_the_earlier_one_is_gone(
    small: First, improved: First, tmp_path: Path, after: int
) -> None:
    earlier, asked = tmp_path / "earlier", []
    shutil.copytree(small.run, earlier)

    def dies(request: Request) -> None:
        asked.append(request.key)
        if len(asked) == after:
            raise Killed

    with pytest.raises(Killed):
        go_on(Desk(200), tmp_path / "run", earlier, dies)
    shutil.rmtree(earlier)
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere")
    model = Desk(200).model(lambda request: asked.append(request.key))
    job = replace(take_up(RunDirectory(moved), {}), models={"model": model})
    with watching(None, False) as watcher:
        done = run_and_report(job, moved, watcher).result
    whole = improved.done.result
    for name in ("questions", "best", "baseline", "gain", "finish_reason", "read", "calls", "tokens"):
        assert done[name] == whole[name], name
    assert not set(asked) & small.asked
    assert len(asked) - len(set(asked)) <= 16, "what was in flight is all that is asked again"


def test_an_estimate_counts_only_what_is_new(small: First) -> None:
    desk = Desk(59)
    job = prepare(desk.rows, None, desk.model(), None, SETTINGS, small.run)
    found = estimate_run(job)
    assert (found.fixed.calls, found.fixed.stored) == (15, 44)
    assert found.last_calls >= 1
    same = prepare(Desk(44).rows, None, desk.model(), None, SETTINGS, small.run)
    assert estimate_run(same).fixed.calls == 0


def test_another_checklist_or_prompt_beside_it_is_refused(small: First) -> None:
    desk = Desk(44)
    with pytest.raises(InputError, match=naming("its own checklist")):
        prepare(desk.rows, desk.checklist, None, None, {}, small.run)
    with pytest.raises(InputError, match="brings its own prompt"):
        prepare(desk.rows, None, None, desk.prompt, {}, small.run)


def test_a_calibrated_judge_cannot_have_its_prompt_edited(learned: First) -> None:
    for options in ({"update": "edits"}, {"calibrate": True}):
        with pytest.raises(InputError, match=naming("calibration", "prompt")):
            prepare(Desk(120).rows, None, None, None, options, learned.run)


def test_a_split_of_the_examples_own_must_not_learn_from_what_was_tested_on(small: First) -> None:
    names = parts(small.run)
    rows = [{**row, "split": names[row["id"]]} for row in Desk(44).rows]
    prepare(rows, None, None, None, SETTINGS, small.run)
    tested = next(row for row in rows if row["split"] == "test")
    tested["split"] = "development"
    with pytest.raises(InputError, match=f"'{tested['id']}' is a development example .* was, .* in test"):
        prepare(rows, None, None, None, SETTINGS, small.run)


def test_an_example_is_known_by_its_texts_too(small: First) -> None:
    names = parts(small.run)
    rows = [{**row, "id": f"new-{row['id']}"} for row in Desk(44).rows]
    job = prepare(rows, None, None, None, SETTINGS, small.run)
    assert job.earlier is not None
    assert job.earlier.parts(job.examples) == {f"new-{name}": part for name, part in names.items()}


def test_an_example_with_another_reference_is_not_what_it_was(small: First) -> None:
    def unchanged(**more: str) -> set[str]:
        rows = [{**row, **more} for row in Desk(44).rows]
        job = prepare(rows, None, None, None, SETTINGS, small.run)
        assert job.earlier is not None
        return job.earlier.unchanged(job.examples)

    assert unchanged() == set(Desk(44).ids)
    assert not unchanged(reference="What should have been said.")


def test_a_run_that_is_not_finished_or_has_no_judge_is_refused(small: First, tmp_path: Path) -> None:
    rows = Desk(44).rows
    copy = tmp_path / "copy"
    shutil.copytree(small.run, copy)
    alone = shutil.copy(copy / "judge.yaml", tmp_path / "judge.yaml")
    with pytest.raises(InputError, match="without its run"):
        prepare(rows, None, None, None, {}, alone)
    assert prepare(rows, None, None, None, {}, copy / "judge.yaml").prompt == Desk(44).prompt
    (copy / "result.json").unlink()
    with pytest.raises(InputError, match=r"not finished.*askance resume"):
        prepare(rows, None, None, None, {}, copy)
    (copy / "judge.yaml").unlink()
    with pytest.raises(InputError, match=r"not finished.*askance resume"):
        prepare(rows, None, None, None, {}, copy)
    with pytest.raises(InputError, match=naming("nowhere", "no such judge")):
        prepare(rows, None, None, None, {}, tmp_path / "nowhere")


def test_damaged_files_of_the_earlier_run_are_named(small: First, tmp_path: Path) -> None:
    rows, copy = Desk(44).rows, tmp_path / "copy"
    shutil.copytree(small.run, copy)
    journal = copy / "journal.jsonl"
    journal.write_text(
        "".join(line for line in journal.open(encoding="utf-8") if '"split"' not in line), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"journal\.jsonl.*tested on"):
        prepare(rows, None, None, None, {}, copy)
    judge = copy / "judge.yaml"
    judge.write_text(judge.read_text(encoding="utf-8").replace("checklist:", "checklists:"), encoding="utf-8")
    with pytest.raises(InputError, match=r"judge\.yaml.*checklist"):
        prepare(rows, None, None, None, {}, copy)


def test_data_that_the_judge_cannot_be_held_against_are_refused(small: First) -> None:
    rows = [{**row, "human": {"humour": 3 + len(row["output"]) % 2}} for row in Desk(44).rows]
    with pytest.raises(InputError, match="humour"):
        prepare(rows, None, None, None, {}, small.run)


def test_disagreements_that_were_read_and_lessons_that_were_rejected_are_not_taken_up_again(
    world: Any, make_world: Any, tmp_path: Path
) -> None:
    first = world.align(tmp_path / "first", max_iterations=9, patience=9)
    assert first.finish_reason == "no_disagreements" and first.record.accepted_edits
    assert {row.status for row in first.record.lessons} == {"applied", "rejected"}

    def again(run: str, rows: Any) -> askance.RunResult:
        model = world.model("world/target")
        return askance.align(rows, from_run=tmp_path / "first", model=model, run=tmp_path / run, **world.options)

    same = again("same", world.rows)
    assert same.finish_reason == "no_new_evidence" and same.record.calls == 0
    assert same.record.lessons == first.record.lessons
    more = again("more", make_world(60).rows)
    events = read_events(more.directory / "journal.jsonl")
    read = [row["example"] for event in events if event["event"] == "disagreements" for row in event["read"]]
    assert read and not set(read) & set(world.ids)
    assert [row.id for row in more.record.lessons][: len(first.record.lessons)] == [
        row.id for row in first.record.lessons
    ]


@pytest.mark.parametrize("later", [False, True])
def test_comments_that_a_budget_kept_from_being_tried_are_read_by_the_run_that_goes_on(
    learned: First, tmp_path: Path, later: bool
) -> None:
    calls = learned.done.record.calls

    @cache
    def ended_at(cap: int) -> tuple[askance.RunResult, list[bytes]]:
        asked: list[bytes] = []
        place = tmp_path / f"capped-{cap}"
        return Desk(120).align(place, lambda request: asked.append(request.key), call_budget=cap), asked

    cap, caps = calls // 8, range(calls // 2, calls, 4)
    if later:  # the least that brings questions
        cap = caps[bisect_left(caps, True, key=lambda each: bool(ended_at(each)[0].record.questions))]
    capped, asked = ended_at(cap)
    place = capped.directory
    assert capped.finish_reason == "max_calls" and not capped.record.learned
    assert bool(capped.record.questions) is later, "some are proposed before the folds test them"
    done = go_on(Desk(120), tmp_path / "run", place, lambda request: asked.append(request.key))
    assert [row.text for row in done.record.learned] == [row.text for row in learned.done.record.learned]
    assert len(asked) == len(set(asked)), "nothing is asked twice"
    assert done.record.read == learned.done.record.read


def test_disagreements_that_a_budget_kept_from_being_tried_are_read_by_the_run_that_goes_on(
    world: Any, tmp_path: Path
) -> None:
    options = {**world.options, "max_iterations": 1}
    whole = world.align(tmp_path / "whole", max_iterations=1)
    capped = world.align(tmp_path / "capped", max_iterations=1, call_budget=70)
    assert capped.finish_reason == "max_calls" and capped.record.lessons and not capped.record.rejected_edits
    model = world.model("world/target")
    done = askance.align(world.rows, from_run=tmp_path / "capped", model=model, run=tmp_path / "run", **options)
    assert [row.edits for row in done.record.accepted_edits] == [row.edits for row in whole.record.accepted_edits]
    assert capped.record.calls + done.record.calls == whole.record.calls, "what it had asked is not asked again"


def test_beside_learned_questions_examples_are_tried_where_they_are_asked_for(learned: First, tmp_path: Path) -> None:
    """The verdicts are read anew then, as a calibration belongs to what the judge is shown."""
    done = go_on(Desk(), tmp_path / "run", learned.run, update="examples")
    fixed, retrieved = done.record.examples
    assert (fixed.name, retrieved.mode) == ("4 fixed examples", "retrieved")
    for each in (fixed, retrieved):
        assert each.reason.startswith("no gain on"), "this judge reads no case"
    assert done.finish_reason == "examples_tried" and done.record.best.read_by == done.record.baseline.read_by
    alone = go_on(Desk(), tmp_path / "auto", learned.run, update="auto")
    assert not alone.record.examples


def test_what_the_version_before_wrote_of_waiting_questions_is_read() -> None:
    """``earlier.json`` said ``kind`` where it now says ``from``, as other files do."""
    before = {"text": "Is it polite?", "dimension": "tone", "kind": "contrast", "parts": ["validation"]}
    [waits] = Remembered.model_validate({"examples": {}, "waiting": [before]}).waiting
    assert (waits.text, waits.origin, waits.parts) == ("Is it polite?", "contrast", ("validation",))
    now = Remembered(examples={}, waiting=(waits,)).model_dump(mode="json", exclude_defaults=True)
    assert now["waiting"][0]["from"] == "contrast" and Remembered.model_validate(now).waiting[0].origin == "contrast"
