"""Candidates that are dropped before all examples are judged, and the calls that this leaves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from askance.evaluation.scoring import Targets
from askance.memory.records import CriterionRecord
from askance.optimizer.questions import racing
from askance.optimizer.questions.candidates import Standing
from askance.optimizer.questions.learner import NOT_ACCEPTED
from askance.optimizer.questions.proposers import SAME_MEANING, first_of_meaning
from askance.optimizer.questions.racing import (
    NO_ROOM,
    SCREENED,
    SubjectMatter,
    as_measured,
    in_line,
    joining,
    sides_of,
    steps,
)
from askance.prompts.examples import Example
from askance.run_estimate import calls_at_most
from tests.said import says
from tests.worlds import share

from .conftest import RULES, Desk

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FINE, POOR = [f"f{place}" for place in range(20)], [f"p{place}" for place in range(16)]


def logits(seed: int) -> dict[str, float]:
    """Answers that go up and down as the digits of a power of a prime do."""
    return {name: float(pow(7 + seed, 3 + place, 101)) for place, name in enumerate([*FINE, *POOR])}


def test_rejected_examples_come_first_and_every_step_goes_on_from_the_last() -> None:
    first, second = steps({"overall": (FINE, POOR)}, 6)
    assert first == (False, {*FINE[:SCREENED], *POOR[:11]}, 15)
    assert second == (True, {*FINE[:SCREENED], *POOR}, 12)


@pytest.mark.parametrize("liked", [0.7, 7 / 9, 0.1])
def test_outputs_that_people_like_alike_are_all_accepted(liked: float) -> None:
    alike = dict.fromkeys(POOR[:12], liked)
    assert sides_of(alike) == (POOR[:12], []), "the mean of the first, added up, is above it by rounding"
    assert sides_of(alike | {"worse": liked - 0.05}) == (POOR[:12], ["worse"])


def test_both_sides_of_every_dimension_are_in_a_step() -> None:
    (_, first, _), _ = steps({"tone": (FINE, POOR), "facts": (FINE[10:], POOR[8:])}, 2)
    assert first == {*FINE[:SCREENED], *FINE[10:18], *POOR[:14]}


def test_the_weaker_of_two_that_say_the_same_is_left_out() -> None:
    one, other = logits(1), logits(2)
    told = {"best": one, "again": {name: 2 * value for name, value in one.items()}, "other": other, "last": logits(4)}
    of = dict.fromkeys(told)
    left = joining(["best", "again", "other", "last"], told, {}, room=2, remarks=of)
    assert left.kept == ["best", "other"]
    assert left.twins == {"again": "best"}
    assert left.unused.keys() == {"again", "last"} and left.unused["last"] == NO_ROOM[1]
    assert says(left.unused["again"], "same verdicts", "best")
    asked = joining(["best", "other"], told, {"start": one}, room=2, remarks=of)
    assert asked.kept == ["other"] and asked.twins == {"best": "start"}


OUTPUTS = {
    "squirrel": "A squirrel bit through a cable; customers are refunded, says the power company.",
    "bridge": "The bridge opens on Monday, says the council.",
    **{f"other{place}": f"On day {place} the council opened a hall." for place in range(38)},
}
ASKED = {
    "Does the summary say how the squirrel bit the cable?": ("squirrel",),
    "Does the summary give a refund?": ("squirrel",),
    "Does the summary mention a ship, cable or bird?": ("squirrel",),
    "Does the summary mention a cable or squirrels?": ("squirrel",),
    "Does the summary refund anything?": ("squirrel",),
    "Does the summary say what opens?": ("bridge",),
    "Does the summary mention a company?": ("squirrel",),
    "Does the summary name the company?": ("bridge",),
    "Does the summary tell of a bridge?": ("bridge", "other3"),
    "Does the summary give a date?": ("bridge",),
}


def test_a_question_about_what_one_output_alone_is_about_is_told_by_its_words() -> None:
    candidates = {text: CriterionRecord.of(text, "overall", "comment", sources) for text, sources in ASKED.items()}
    subject_matter = SubjectMatter(OUTPUTS, candidates.values())
    found = [list(ASKED).index(text) for text, each in candidates.items() if subject_matter.is_of_one(each)]
    assert found == [0, 1, 3], "the output of the second has another form of its word"
    general = CriterionRecord.of("Does the summary say what the squirrel did?", "overall", "comment", ())
    assert not subject_matter.is_of_one(general), "of no output"
    foreign = CriterionRecord.of("Steht in der Meldung ein Kabel?", "overall", "comment", ("squirrel",))
    assert not SubjectMatter(OUTPUTS, [*candidates.values(), foreign]).is_of_one(foreign), (
        "in another language nothing is known"
    )


def test_what_several_outputs_are_about_is_no_subject_of_one() -> None:
    asked = CriterionRecord.of("Does the summary mention a cable?", "overall", "comment", ("squirrel",))
    beside = CriterionRecord.of("Does the summary say who?", "overall", "comment", ("bridge",))
    for more, alone in ((1, True), (2, False)):
        outputs = OUTPUTS | {f"other{place}": "Cables were stolen." for place in range(more)}
        assert SubjectMatter(outputs, [asked, beside]).is_of_one(asked) is alone, (
            "of 39 others one is less than one in twenty"
        )


def test_questions_about_one_output_are_raced_after_all_others() -> None:
    named = {
        name: CriterionRecord.of(f"Does the summary {text}?", "overall", "comment", ("squirrel",), (said,))
        for name, text, said in (
            ("cable", "mention a cable", "poor squirrel"),
            ("animal", "speak of an animal", "poor squirrel"),
            ("refund", "give a refund", "you again"),
            ("fur", "speak of fur", "poor squirrel"),
        )
    }
    assert in_line(["cable", "refund", "fur", "animal"], named, {"cable", "refund"}) == [
        "fur",
        "animal",
        "cable",
        "refund",
    ]


def test_a_race_takes_fewer_calls_and_keeps_the_right_questions(
    make_desk: type[Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each remark also gives a question that has nothing to do with it."""
    reply = Desk.reply

    def noisy(desk: Desk, messages: Sequence[tuple[str, str]]) -> str | float:
        last = messages[-1][1]
        for rule, (said, question) in RULES.items():
            if last == f"Comment: {said}":
                return f"{question}\nDoes the reply sound like {rule}?"
            if f"sound like {rule}?" in last and "[e" in last:
                return 0.1 + 0.8 * share("sounds", rule, re.findall(r"\[(e\d+)\]", last)[-1])
        return reply(desk, messages)

    monkeypatch.setattr(Desk, "reply", noisy)
    given: dict[str, Any] = {"learn_from": "development", "max_questions": 1}  # of three that are raced two are left
    raced = make_desk().align(tmp_path / "raced", **given)
    with patch.object(racing, "STEPS", ()):
        whole = make_desk().align(tmp_path / "whole", **given)
    assert raced.record.calls < whole.record.calls
    best, same = (
        {each["text"] for each in run.result["questions"] if (each["reason"] or NOT_ACCEPTED).startswith(NOT_ACCEPTED)}
        for run in (raced, whole)
    )
    assert best == same and best & {question for _, question in RULES.values()}


EXAMPLES = [
    Example.model_validate({"id": f"e{place}", "input": "a", "output": "b", "comment": f"remark {place}"})
    for place in range(60)
]
TARGETS = Targets("human", ("overall",), {each.id: {"overall": float(int(each.id[1:]) > 23)} for each in EXAMPLES})
"""24 are rejected."""
KNOWN = {"most": 6, "rounds": 1, "asked": 1}


def test_the_bound_of_calls_grows_with_candidates_examples_and_ways_to_ask() -> None:
    bounds = {"dimensions": 1, "waiting": 0} | KNOWN
    most = calls_at_most([EXAMPLES], 60, **bounds)
    same = [each.model_copy(update={"comment": EXAMPLES[0].comment}) for each in EXAMPLES]
    assert calls_at_most([same], 60, **bounds) < most, "the same comment is read once"
    assert calls_at_most([EXAMPLES[::2]], 60, **bounds) < most
    assert calls_at_most([EXAMPLES], 60, **bounds, views=2) > most
    assert calls_at_most([EXAMPLES], 60, **bounds | {"waiting": 3}) > most


@pytest.mark.parametrize(
    ("effect", "noise", "hopeless"), [(-0.3, 0.2, True), (-0.1, 0.2, False), (0.2, 0.1, False), (None, 0.0, False)]
)
def test_a_few_accepted_outputs_rule_out_only_what_rejected_ones_clearly_speak_against(
    effect: float | None, noise: float, hopeless: bool
) -> None:
    found = Standing(1.0, effect, noise)
    assert found.is_hopeless is hopeless
    assert (found.problem is not None) is (effect is not None and effect <= 0), (
        "on all examples it has to speak for itself"
    )


def test_a_question_is_asked_as_one_before_it_that_rules_it_out() -> None:
    degree = np.arccos(SAME_MEANING + 0.005)
    angles = degree * np.array(
        [0.0, 1.0, 1.9, 8.0]
    )  # the second means the same as the first, and still more as the third
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert first_of_meaning(vectors) == {0: 0, 1: 0, 2: 2, 3: 3}


def test_a_question_that_says_what_a_measure_says_is_asked_no_further() -> None:
    ids = [f"e{place}" for place in range(12)]
    one = {name: float(place) for place, name in enumerate(ids)}
    turned = {name: -value for name, value in one.items()}
    other = {name: float(place % 3) for place, name in enumerate(ids)}
    asked = {"same": one, "turned": turned, "other": other, "few": {name: one[name] for name in ids[:7]}}
    assert as_measured([*asked], asked, {"length": one}) == {"same": "length", "turned": "length"}
    assert as_measured([*asked], asked, {}) == {}
