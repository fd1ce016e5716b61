"""A run that learns questions from comments."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.journal import read_events
from askance.memory.run_directory import RunDirectory
from askance.models.base import Request
from askance.models.progress import watching
from askance.optimizer.loop import take_up
from askance.optimizer.questions.learner import FOLDS, parts_of
from askance.prompts.examples import Example, document_of
from askance.runs import run_and_report
from tests.said import says
from tests.worlds import share

from .conftest import DEAF, RULES, TWIN, Desk, Killed

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, askance.RunResult]:
    desk = Desk()
    return desk, desk.align(tmp_path_factory.mktemp("run") / "run")


def rows_by_text(done: askance.RunResult) -> dict[str, dict[str, Any]]:
    return {row["text"]: row for row in done.result["questions"]}


def test_it_gains_on_the_test_examples(learned: tuple[Desk, askance.RunResult]) -> None:
    _, done = learned
    gain = done.record.gain.test
    assert gain is not None and gain.value is not None and gain.low is not None
    assert gain.value > 0.4 and gain.low > 0
    assert done.finish_reason == "no_evidence"


def test_the_questions_find_what_is_there_and_what_is_missing(learned: tuple[Desk, askance.RunResult]) -> None:
    desk, done = learned
    rows = rows_by_text(done)
    for rule, (comment, question) in RULES.items():
        row = rows[question]
        assert row["joined"], row
        assert row["good"] == ("yes" if rule == "thanks" else "no")
        assert row["comments"] == [comment]
        assert row["sources"] and all(rule in desk.broken(each) for each in row["sources"])
        worth = row["worth"]["test"]
        assert worth["high"] > 0.1
        assert worth["value"] > 0 or rule == "date", "two replies of test break no rule but that of dates"


def test_a_question_that_says_nothing_new_does_not_join(learned: tuple[Desk, askance.RunResult]) -> None:
    rows = rows_by_text(learned[1])
    assert not rows[TWIN]["joined"]
    assert "same verdicts as 'name-price'" in rows[TWIN]["reason"]
    assert not rows[DEAF]["joined"]


def test_praise_and_remarks_on_accepted_replies_are_not_read(learned: tuple[Desk, askance.RunResult]) -> None:
    desk, _ = learned
    assert "fine with me" not in desk.asked
    assert len(desk.asked) == len(set(desk.asked)), "the same comment is read once"


def test_the_kept_judge_scores_as_the_run_did(learned: tuple[Desk, askance.RunResult]) -> None:
    desk, done = learned
    judge = askance.load_judge(done.directory)
    assert judge.calibration is not None and judge.calibration.method == "accepted"
    origin = judge.origins["name-price"]
    assert (origin.origin, origin.comments) == ("comment", (RULES["price"][0],))
    again = judge.evaluate(desk.rows, model=desk.model())
    scores = {each.example: each.overall for each in again.scores}
    lines = (done.directory / "verdicts" / "scores.jsonl").read_text().splitlines()
    best = max(json.loads(line)["version"] for line in lines)
    compared = 0
    for line in lines:
        row = json.loads(line)
        if row["version"] == best:
            assert scores[row["example"]] == pytest.approx(row["score"])
            compared += 1
    assert compared == 48


def test_without_comments_questions_come_from_what_rejected_replies_say(make_desk: type[Desk], tmp_path: Path) -> None:
    desk = make_desk(240, comments=False, kinds=True)
    done = desk.align(tmp_path / "run")
    assert desk.asked == []
    joined = [row for row in done.result["questions"] if row["joined"]]
    right = {question: "yes" if rule == "thanks" else "no" for rule, (_, question) in RULES.items()}
    found = {row["text"]: row["good"] for row in joined}
    assert found.items() <= right.items() and len(found) >= 2
    assert all(row["from"] == "contrast" and not row["sources"] for row in joined)
    gain = done.record.gain.test
    assert gain is not None and gain.low is not None and gain.low > 0


def test_what_nobody_rated_is_not_held_against_rejected_replies_as_if_it_were_accepted(
    make_desk: type[Desk], tmp_path: Path
) -> None:
    desk, described = make_desk(240, comments=False, kinds=True), set()
    unrated = set(desk.ids[::2])
    rows = [{name: each[name] for name in each if name != "human" or each["id"] not in unrated} for each in desk.rows]

    def before(request: Request) -> None:
        if (last := request.messages[-1][1]).startswith("Text: "):
            described.update(re.findall(r"\[(e\d+)\]", last))

    desk.align(tmp_path / "run", before, rows)
    assert described and not described & unrated


@pytest.mark.parametrize("after", [60, 100, 200, 400])
def test_a_killed_run_comes_to_the_same(
    learned: tuple[Desk, askance.RunResult], make_desk: type[Desk], tmp_path: Path, after: int
) -> None:
    whole = learned[1].result
    desk, asked = make_desk(), []

    def dies(request: Request) -> None:
        asked.append(request.key)
        if len(asked) == after:
            raise Killed

    with pytest.raises(Killed):
        desk.align(tmp_path / "run", dies)
    done = desk.align(tmp_path / "run", lambda request: asked.append(request.key)).result
    for name in ("questions", "best", "gain", "finish_reason"):
        assert done[name] == whole[name]
    twice = len(asked) - len(set(asked))
    assert twice <= 16, "what was in flight is all that is asked again"


def test_comments_are_read_beside_their_outputs_before_validation_is_looked_at(
    make_desk: type[Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, seen = make_desk(), list[str]()
    write = desk.questions_for
    monkeypatch.setattr(desk, "questions_for", lambda said: "none" if said == RULES["date"][0] else write(said))
    made = desk.align(tmp_path / "run", lambda one: seen.append(one.messages[-1][1]))
    split = next(each for each in read_events(tmp_path / "run" / "journal.jsonl") if each["event"] == "split")
    beside = [place for place, text in enumerate(seen) if text.startswith("Text: ") and "\nComment: " in text]
    held_out = [
        place
        for place, text in enumerate(seen)
        if RULES["price"][1] in text and any(f"[{name}]" in text for name in split["validation"])
    ]
    assert made.record.questions
    assert beside and held_out
    assert beside[0] < held_out[0]


def test_every_example_tests_a_judge_that_it_has_taught_nothing(
    learned: tuple[Desk, askance.RunResult], make_desk: type[Desk], tmp_path: Path
) -> None:
    """Comments on validation examples teach the kept judge; those on test examples never do."""
    desk, done = learned
    record = done.record
    split = next(each for each in read_events(done.directory / "journal.jsonl") if each["event"] == "split")
    assert record.crossed and record.gain.validation is not None
    assert record.gain.validation.n == record.best.validation.n == len(split["development"]) + len(split["validation"])
    sources = {name for row in record.questions for name in row.sources}
    assert sources & set(split["development"]) and sources & set(split["validation"])
    assert not sources & set(split["test"])
    assert all("validation" not in row["worth"] for row in done.result["questions"])
    silent = make_desk()
    rows = [{**row, "comment": []} if row["id"] in split["validation"] else row for row in desk.rows]
    alone = silent.align(tmp_path / "run", rows=rows).record
    assert alone.learned and alone.crossed, "where nobody wrote why, the others teach and it tests as well"
    assert alone.gain.validation is not None and alone.gain.validation.n == record.gain.validation.n
    assert not {name for row in alone.questions for name in row.sources} - set(split["development"])


def test_outputs_of_one_document_do_not_test_what_they_taught() -> None:
    """They share its words and its reviewer."""
    examples = [
        Example(id=f"{n}", input="", output="", metadata={"document": f"{n % 5}"} if n < 20 else {}) for n in range(30)
    ]
    liked = {each.id: float(int(each.id) % 2) for each in examples}
    parts = parts_of(examples, liked.get)
    assert len(parts) == FOLDS and sorted(each.id for part in parts for each in part) == sorted(liked)
    held = [{document_of(each) for each in part} for part in parts]
    assert not any(one & other for place, one in enumerate(held) for other in held[place + 1 :])
    alone = parts_of(examples[20:], liked.get)
    assert [sum(liked[each.id] for each in part) for part in alone] == [2, 1, 2]


def test_where_validation_only_tests_it_teaches_nothing(make_desk: type[Desk], tmp_path: Path) -> None:
    desk = make_desk()
    done = desk.align(tmp_path / "run", learn_from="development")
    split = next(each for each in read_events(tmp_path / "run" / "journal.jsonl") if each["event"] == "split")
    assert done.record.learned and not done.record.crossed
    assert not {name for row in done.record.questions for name in row.sources} - set(split["development"])
    assert done.record.gain.validation is not None and done.record.gain.validation.n == len(split["validation"])
    assert all("validation" in row["worth"] for row in done.result["questions"] if row["joined"])


def test_a_gain_that_is_within_noise_on_validation_alone_may_stand_out_on_all_examples(
    make_desk: type[Desk], tmp_path: Path
) -> None:
    """Folds of seven or so examples: each tests what all others have taught, those of validation first."""
    from askance.optimizer.acceptance import PairedAcceptance

    decided: dict[int, dict[int, float]] = {}
    decide = PairedAcceptance.decide_crossed

    with pytest.MonkeyPatch.context() as patch:
        for seed in range(8):

            def watched(gate: PairedAcceptance, crossed: Any, seed: int = seed) -> Any:
                found = decide(gate, crossed)
                assert found.gain is not None and found.gain.p_value is not None
                assert found.gain.n == sum(len(fold.examples) for fold in crossed.folds)
                assert len({each.id for each in crossed.examples}) == found.gain.n, "every example tests once"
                decided.setdefault(seed, {})[len(crossed.folds)] = found.gain.p_value
                return found

            patch.setattr(PairedAcceptance, "decide_crossed", watched)
            make_desk(70).align(tmp_path / str(seed), seed=seed)
    went_on = [both for both in decided.values() if len(both) == 2]
    assert all(set(both) == {3, 6} for both in went_on) and len(went_on) > 4
    assert sum(both[6] < both[3] for both in went_on) > len(went_on) / 2


def test_a_question_that_comes_of_opposite_remarks_names_those_on_its_side(
    make_desk: type[Desk], tmp_path: Path
) -> None:
    too_many, (missing, question) = "Thanks again, and no answer", RULES["thanks"]

    class Torn(make_desk):  # type: ignore[misc,valid-type]
        def questions_for(self, comment: str) -> str:
            return question if comment.startswith(too_many) else super().questions_for(comment)

    desk = Torn(160)
    lack: list[str] = []
    have: list[str] = []
    for row in (rows := desk.rows):
        if row.get("comment") == missing:
            lack.append(row["id"])
            if len(lack) > 2:
                del row["comment"]
        elif row.get("comment") == RULES["price"][0] and "thanks" not in desk.broken(row["id"]):
            have.append(row["id"])
            row["comment"] = f"{too_many} ({len(have)})."
    found = rows_by_text(desk.align(tmp_path / "run", rows=rows))[question]
    assert found["joined"] and found["good"] == "yes" and missing in found["comments"]
    assert len(have) > 8 and len({*have} & {*found["sources"]}) < 4, (
        "a few look as if they lacked it, as accepted ones do"
    )
    said = {row["id"]: row["comment"] for row in rows if row.get("comment")}
    assert set(found["comments"]) == {said[each] for each in found["sources"]}


class Wordy(Desk):
    """No two comments are in the same words."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows = super().rows
        said = [each for each in rows if each["human"]["overall"] == "fail" and "comment" in each]
        return [each | ({"comment": f"{each['comment']} ({each['id']})"} if each in said else {}) for each in rows]

    def questions_for(self, comment: str) -> str:
        return super().questions_for(comment.rpartition(" (")[0])


def test_a_run_that_had_too_few_rounds_for_all_comments_says_so_and_goes_on_with_more(tmp_path: Path) -> None:
    few = {"max_questions": 1, "max_iterations": 1}
    done = Wordy(60).align(tmp_path / "run", **few)
    assert done.finish_reason == "max_iterations" and done.record.thing == "judge"
    whole = Wordy(60).align(tmp_path / "whole", **few | {"max_iterations": 4})
    assert whole.finish_reason == "no_evidence"
    assert len(whole.record.read.comments) > len(done.record.read.comments)
    job = replace(take_up(RunDirectory(tmp_path / "run"), {"max_iterations": 4}), models={"model": Wordy(60).model()})
    with watching(None, False) as watcher:
        longer = run_and_report(job, tmp_path / "run", watcher)
    for name in ("questions", "best", "gain", "finish_reason", "read"):
        assert longer.result[name] == whole.result[name], name


def test_comments_that_came_to_nothing_alone_are_read_beside_their_outputs_with_more_iterations(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "questions_for", lambda comment: "none")
    done = desk.align(tmp_path / "run", max_iterations=1).record
    assert done.finish_reason == "max_iterations" and done.thing == "judge" and not done.questions
    assert says(done.why_unchanged, "no usable question")
    assert take_up(RunDirectory(tmp_path / "run"), {"max_iterations": 2}).options.max_iterations == 2


class OneRule(Desk):
    """Only prices are forbidden, and whoever commented said so."""

    def broken(self, example: str) -> list[str]:
        return ["price"] if share("broken", example) < 0.4 else []


def test_the_only_question_that_is_left_is_worth_what_the_judge_is(tmp_path: Path) -> None:
    done = OneRule().align(tmp_path / "run").record
    (only,) = done.learned
    assert [each.what for each in done.revised_questions] == ["dropped"]
    assert done.best.test is not None and only.worth.test is not None
    assert only.worth.test.value == pytest.approx(done.best.test.spearman)
    assert only.worth.test.n == 48 and (only.worth.test.low or 0) > 0.4
