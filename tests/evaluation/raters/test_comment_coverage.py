"""The share of comments on whose output a criterion finds a fault, beside chance."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from askance.evaluation.raters.comment_coverage import comment_coverage, coverage_said, covered_criteria, faults_found
from askance.evaluation.scoring import human_targets
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.human_feedback import Comment
from askance.prompts.verdicts import Verdict
from askance.stats.resampling import Resampling

SAMPLING = Resampling(resamples=400)
CHECKLIST = Checklist(task="", questions=[Question(id="a", text="A?", good="no"), Question(id="b", text="B?")])


def outputs(size: int = 80) -> list[Example]:
    """Every fourth output is rejected, with a comment; every eighth accepted one has praise."""
    return [
        Example(
            id=f"e{place}",
            input="x",
            output="y",
            human={"overall": float(place % 4 != 0)},
            comment=[Comment(text="no")] if place % 4 == 0 else [Comment(text="fine")] if place % 8 == 1 else [],
        )
        for place in range(size)
    ]


def verdict(example: str, question: str, p_yes: float | None) -> Verdict:
    answer = None if p_yes is None else p_yes >= 0.5
    status = "ok" if p_yes is not None else "api_error"
    return Verdict(example, question, "m", "p", answer, p_yes, "logprob" if p_yes is not None else None, status=status)


def test_it_is_the_share_of_comments_on_rejected_outputs_less_the_share_of_all_outputs() -> None:
    rows = outputs()
    targets = human_targets(rows, CHECKLIST, None)
    # three in four of the rejected ones, and one in six of the accepted ones
    found = {each.id: place % 4 == 0 and place % 16 != 0 for place, each in enumerate(rows)}
    accepted = [each.id for place, each in enumerate(rows) if place % 4]
    found |= dict.fromkeys(accepted[::6], True)
    seen = comment_coverage(rows, found, targets, SAMPLING, 2)
    assert seen is not None
    chance = (15 + 10) / 80
    assert seen.seen.value == pytest.approx(0.75) and seen.seen.n == 20, "praise of accepted outputs is none of them"
    assert seen.chance == pytest.approx(chance) and seen.gain.value == pytest.approx(0.75 - chance)
    assert (
        seen.gain.low is not None
        and seen.gain.high is not None
        and 0 < seen.gain.low < seen.gain.value < seen.gain.high
    )
    row = seen.to_dict()
    assert {"value", "low", "high", "n", "chance", "gain", "criteria"} <= row.keys()
    assert "75%" in coverage_said(row) and "31%" in coverage_said(row)


def test_chance_is_the_mean_over_permuted_outputs() -> None:
    rows, chance = outputs(40), Random(3)
    found = {each.id: chance.random() < 0.4 for each in rows}
    targets = human_targets(rows, CHECKLIST, None)
    seen = comment_coverage(rows, found, targets, SAMPLING)
    assert seen is not None
    values = []
    for _ in range(4000):
        mixed = dict(zip(found, chance.sample([*found.values()], len(found)), strict=True))
        values.append(sum(mixed[each.id] for each in rows if targets.overall(each.id) == 0) / 10)
    assert seen.chance == pytest.approx(sum(values) / len(values), abs=0.01)


def test_a_question_that_speaks_against_every_output_gains_nothing() -> None:
    rows = outputs()
    seen = comment_coverage(rows, {each.id: True for each in rows}, human_targets(rows, CHECKLIST, None), SAMPLING)
    assert seen is not None and seen.seen.value == 1 and seen.gain.value == 0
    assert seen.seen.low is seen.gain.low is None, "no resample differs, which is no certainty"
    assert "100%" in coverage_said(seen.to_dict())


def test_without_a_comment_on_a_rejected_output_there_is_none() -> None:
    rows = [each.model_copy(update={"comment": ()}) for each in outputs()]
    targets = human_targets(rows, CHECKLIST, None)
    assert comment_coverage(rows, {each.id: True for each in rows}, targets, SAMPLING) is None
    assert comment_coverage(outputs(), {}, targets, SAMPLING) is None


def test_a_fault_is_an_answer_against_the_output_and_a_missing_answer_is_none() -> None:
    criteria = covered_criteria(CHECKLIST.questions)
    said = [
        *(verdict("fault", "a", 0.9), verdict("fault", "b", 0.9)),
        *(verdict("merit", "a", 0.1), verdict("merit", "b", 0.2)),
        *(verdict("fine", "a", 0.1), verdict("fine", "b", 0.9)),
        *(verdict("unknown", "a", 0.1), verdict("unknown", "b", None)),
        *(verdict("half", "a", 0.9), verdict("half", "b", None)),
        verdict("other", "a", 0.1),
    ]
    assert faults_found(said, criteria) == {"fault": True, "merit": True, "fine": False, "half": True}
    assert faults_found(said, covered_criteria(CHECKLIST.questions, ["b"]))["fault"] is False
    weightless = [each.model_copy(update={"weight": 0.0}) for each in CHECKLIST.questions]
    assert covered_criteria(weightless) == {}
    measured = replace(verdict("m", "b", 0.3), answer=None, p_yes_from="computed", value=3.0, version="1", model=None)
    assert faults_found([measured], covered_criteria(CHECKLIST.questions, ["b"])) == {"m": True}, (
        "a measure has no answer"
    )
