"""Candidates that are dropped before all examples are judged, and the calls that this leaves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from askance.optimizer.questions import racing
from askance.optimizer.questions.calls import calls_at_most, usual_calls
from askance.optimizer.questions.racing import NO_ROOM, SCREENED, joining, left_after, steps
from askance.prompts.examples import Example
from tests.conftest import share

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
    assert [left_after(place, 6) for place in range(2)] == [15, 12]


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
    assert left.unused == {"again": "it gets the same verdicts as 'best'", "last": NO_ROOM[1]}
    asked = joining(["best", "other"], told, {"start": one}, room=2, remarks=of)
    assert asked.kept == ["other"] and asked.twins == {"best": "start"}


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
    settings: dict[str, Any] = {"learn_from": "development", "max_questions": 2}
    raced = make_desk().align(tmp_path / "raced", **settings).record
    with patch.object(racing, "STEPS", ()):
        whole = make_desk().align(tmp_path / "whole", **settings).record
    assert raced.calls < whole.calls
    assert {each.text for each in raced.learned} == {each.text for each in whole.learned}
    assert {each.text for each in raced.learned} < {question for _, question in RULES.values()}


def test_the_bound_of_calls_is_that_of_a_race() -> None:
    examples = [
        Example.model_validate({"id": f"e{place}", "input": "a", "output": "b", "comment": f"remark {place}"})
        for place in range(60)
    ]
    known = {"most": 6, "asked": 1}
    bounds = {"rounds": 1, "dimensions": 1, "waiting": 0} | known
    most, usual = calls_at_most([examples], 60, **bounds), usual_calls([examples], 60, **known)
    with patch("askance.optimizer.questions.calls.STEPS", ()):
        assert calls_at_most([examples], 60, **bounds) > most > usual
        assert usual_calls([examples], 60, **known) > usual
    twice = usual_calls([examples, examples], 60, **known)
    assert 2 * (usual - 6 * 60) < twice - 6 * 60 < 4 * (usual - 6 * 60), "six folds share their answers"
    assert calls_at_most([examples, examples], 60, **bounds) > twice
