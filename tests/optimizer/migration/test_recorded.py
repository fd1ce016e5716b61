"""What an old judge said, read from a column: scores on a scale, verdicts by question, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from askance.optimizer.migration.recorded import RecordedJudge, read_recorded
from askance.optimizer.options import MigrateOptions
from askance.prompts.checklist import Checklist, ComputedCheck, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.settings import parse_options
from tests.said import naming

ASKED = Checklist(questions=(Question(id="a", text="Is it so?"), Question(id="b", text="Is it bad?", good="no")))


def read(*values: Any, checklist: Checklist = ASKED, **options: Any) -> RecordedJudge:
    examples = [Example(id=f"e{n}", input="i", output="x", metadata={"old": value}) for n, value in enumerate(values)]
    settings = parse_options(MigrateOptions, {"judge_scores": "old", **options})
    return read_recorded(examples, checklist, settings)


def test_verdicts_are_answers_or_probabilities_of_yes_to_the_question_as_it_stands() -> None:
    found = read({"a": True, "b": "No"}, {"a": 0.3, "b": 1}, {"a": None, "b": 0.5}).verdicts
    said = {pair: (each.answer, each.p_yes, each.p_yes_from, each.status) for pair, each in found.items()}
    assert said["e0", "a"] == (True, 1.0, "hard", "ok")
    assert said["e0", "b"] == (False, 0.0, "hard", "ok"), "yes and no are of the question, whatever is good"
    assert said["e1", "a"] == (False, 0.3, "logprob", "ok")
    assert said["e1", "b"] == (True, 1.0, "logprob", "ok")
    assert said["e2", "a"] == (None, None, None, "abstained"), "no answer is no verdict"


def test_an_object_may_be_json_in_a_cell_of_a_table() -> None:
    assert read('{"a": "yes", "b": 0.2}').verdicts["e0", "a"].answer is True


def test_checks_are_computed_beside_the_recorded_verdicts() -> None:
    check = ComputedCheck(id="x", text="Is it x?", kind="begins", value="x")
    old = read({"a": True, "b": False}, checklist=ASKED.model_copy(update={"questions": (*ASKED.questions, check)}))
    verdicts = asyncio.run(old.judge([Example(id="e0", input="i", output="x")]))
    assert {each.question: each.answer for each in verdicts} == {"a": True, "b": False, "x": True}


@pytest.mark.parametrize(
    ("values", "options", "shares"),
    [
        ((0.25, 1), {}, [0.25, 1.0]),
        ((2, 5), {"judge_scale": (1, 5)}, [0.25, 1.0]),
        ((2, 5), {"judge_scale": (5, 1)}, [0.75, 0.0]),
        (("3/5", "1"), {"judge_scale": (1, 5)}, [0.5, 0.0]),
    ],
)
def test_scores_are_brought_to_zero_to_one(values: Any, options: Any, shares: list[float]) -> None:
    old = read(*values, **options)
    assert list(old.scores.values()) == shares
    assert old.verdicts == {}


@pytest.mark.parametrize(
    ("values", "reads", "shares"),
    [((2, 5), "score 1-5", [0.25, 1.0]), (("Bad", "good"), "labels Bad,Fair,Good", [0.0, 1.0])],
)
def test_a_judge_in_own_words_left_its_scores_as_it_stated_them(values: Any, reads: str, shares: list[float]) -> None:
    own = Checklist(questions=(Question(id="score", text="Is it good?"),))
    found = read(*values, checklist=own, reads=reads).verdicts
    assert [each.p_yes for each in found.values()] == shares
    assert {each.p_yes_from for each in found.values()} == {"stated"}


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ((0.5, None, 0.5), {}, ("row 2", "e1", "empty")),
        ((0.5, ""), {}, ("row 2", "empty")),
        ((0.5, {"a": 1, "b": 0}), {}, ("row 2", "verdicts")),
        (({"a": True},), {}, ("row 1", "'b'")),
        (({"a": True, "b": True, "bb": True},), {}, ("'bb'", "Did you mean 'b'")),
        (({"a": "maybe", "b": True},), {}, ("'old', question 'a'", "maybe")),
        (({"a": 1.5, "b": True},), {}, ("'old', question 'a'", "1.5")),
        ((3, 5), {}, ("--judge-scale 3 5",)),
        ((3, 7), {"judge_scale": (1, 5)}, ("row 2", "outside the scale")),
        ((0.5, "good"), {}, ("row 2", "'good'")),
        ((True, 0.5), {}, ("row 1", "true")),
        ((0.5,), {"judge_scores": "odl"}, ("'odl'", "Did you mean 'old'")),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_row(values: Any, options: Any, said: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=naming(*said)):
        read(*values, **options)


def test_a_scale_has_two_ends() -> None:
    with pytest.raises(InputError, match="judge_scale"):
        read(0.5, judge_scale=(1, 1))
