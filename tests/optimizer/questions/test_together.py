"""Candidates that are asked together: always with the same others, and for far fewer calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.records import CriterionRecord
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import FREE
from askance.optimizer.modes import align
from askance.optimizer.questions.presentation import GROUP, Groups, mode_by, same_answers
from askance.run_estimate import estimate_run
from askance.testing import SimulatedJudge, SimulatedWorld
from tests.measured.simulated_world import COMMENTED, UNSEEN
from tests.said import says


def candidates(*names: str) -> dict[str, CriterionRecord]:
    return {name: CriterionRecord.of(f"Does it {name}?", "overall", "comment", ()) for name in names}


def test_a_candidate_stays_in_its_group_which_is_asked_as_a_whole() -> None:
    every = candidates(*map(str, range(20)))
    groups = Groups()
    some = {name: every[name] for name in ("3", "11", "7")}
    first = groups.holding(some, every)
    assert len(first) == 1 and len(first[0]) == GROUP, "those that wait fill the group"
    assert some.keys() < first[0].keys()
    again = groups.holding({"11": every["11"]}, {})
    assert [list(each) for each in again] == [list(first[0])]
    whole = groups.holding(every, {})
    assert sorted(map(len, whole)) == [4, 8, 8]
    assert sorted(name for each in whole for name in each) == sorted(every)


def test_all_of_a_group_are_shown_what_those_that_are_wanted_are_shown() -> None:
    every = candidates("a", "b")
    alone = {"a": CriterionRecord.of(every["a"].text, "overall", "comment", (), sees="output")}
    groups = Groups()
    assert {each.sees for each in groups.holding(every, {})[0].values()} == {"all"}
    assert {each.sees for each in groups.holding(alone, {})[0].values()} == {"output"}


class Asked(SimulatedJudge):
    """Keeps what it was asked."""

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(world)
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        return await super().answer(request)


class Muddled(Asked):
    """Says no to everything that it is asked together."""

    async def answer(self, request: Request) -> Answer:
        answer = await super().answer(request)
        return Answer(answer.text.replace('"yes"', '"no"')) if request.parameters.schema else answer


class Refusing(Asked):
    """Behind an endpoint that takes no schema."""

    async def answer(self, request: Request) -> Answer:
        if together(request):
            raise ModelError("simulated/judge: HTTP 500: no such thing", status=500)
        return await super().answer(request)


class Free(Asked):
    """Costs nothing but time."""

    price = FREE


def run(
    tmp_path: Path, mode: str | None, kind: type[Asked] = Asked, size: int = 150, questions: int = 4
) -> tuple[askance.RunResult, list[Request]]:
    """A run in a world of house rules, whose calls the estimate has to hold, and what was asked."""
    world = SimulatedWorld(size=size, seed=1_000, **COMMENTED, **UNSEEN)
    judge = kind(world)
    settings: dict[str, Any] = {
        "embedder": "words",
        "resamples": 200,
        "seed": 1_000,
        "update": "questions",
        "measures": "none",
        **({} if mode is None else {"mode": mode}),
    }
    asked = world.checklist.questions[:questions]
    checklist = world.checklist.model_copy(update={"questions": asked})
    estimate = estimate_run(align.prepare(world.rows, checklist, judge, world.prompt, settings))
    assert not judge.requests
    done = askance.align(
        world.rows, checklist=checklist, model=judge, prompt=world.prompt, run=tmp_path / str(mode), **settings
    )
    most = estimate.fixed.calls + done.result["iterations"] * estimate.iteration_calls + estimate.last_calls
    assert done.result["calls"] == len(judge.requests) <= most
    return done, judge.requests


Ran = tuple[askance.RunResult, list[Request]]


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Ran]:
    """A run that asks one by one with so many questions at the start, for all tests that hold another against it."""
    return cache(lambda questions: run(tmp_path_factory.mktemp("alone"), "each", questions=questions))


def test_a_run_takes_less_than_half_of_the_calls_and_learns_as_much(
    tmp_path: Path, one_by_one: Callable[[int], Ran]
) -> None:
    alone, asked_alone = one_by_one(4)
    together, asked = run(tmp_path, "batched")
    assert len(asked) < len(asked_alone) / 2
    gains = [done.record.gain.test for done in (alone, together)]
    assert all(gain is not None and gain.value is not None and gain.value > 0.1 for gain in gains)
    assert gains[1].value > gains[0].value - 0.15  # type: ignore[union-attr,operator]
    assert len({each.key for each in asked}) == len(asked), "nothing is bought twice"


def together(request: Request) -> bool:
    return request.parameters.schema is not None and "yes" in str(request.parameters.schema)


@pytest.mark.parametrize("questions", [4, 1], ids=["seen at the start", "seen by candidates"])
def test_a_judge_that_answers_together_as_alone_is_asked_so_from_then_on(
    questions: int, tmp_path: Path, one_by_one: Callable[[int], Ran]
) -> None:
    _, asked_alone = one_by_one(questions)
    done, asked = run(tmp_path, None, questions=questions)
    found = done.record.asked_both_ways
    assert found is not None
    assert found.mode == "batched"
    assert found.same >= 0.98 * found.answers >= 98
    assert len(asked) < len(asked_alone) / 2
    assert (done.record.baseline.mode, done.record.best.mode) == ("batched" if questions == 4 else None, "batched")
    assert len({each.key for each in asked}) == len(asked), "nothing is bought twice"
    judge = askance.load_judge(tmp_path / "None")
    assert judge.settings["mode"] == "batched"
    again = SimulatedWorld(size=3, seed=5, **COMMENTED, **UNSEEN)
    other = Asked(again)
    judge.evaluate(again.rows, model=other)
    assert len(judge.checklist.questions) > 3
    assert len(other.requests) == 3 * len({each.sees for each in judge.checklist.questions})


def test_one_that_answers_otherwise_together_is_asked_one_by_one(
    tmp_path: Path, one_by_one: Callable[[int], Ran]
) -> None:
    done, asked = run(tmp_path, None, Muddled)
    found = done.record.asked_both_ways
    assert found is not None
    assert found.mode == "each"
    assert found.same < 0.95 * found.answers
    assert says(found.sentence, "one call", "a question", "the same answer", found.same, found.answers)
    assert done.record.best.mode == "each"
    assert askance.load_judge(tmp_path / "None").settings["mode"] == "each"
    alone, asked_alone = one_by_one(4)
    assert done.record.gain == alone.record.gain
    assert len(asked) - len(asked_alone) == sum(map(together, asked)) < 60, "the others were to be asked anyway"


@pytest.mark.parametrize("questions", [4, 1])
def test_an_endpoint_that_takes_no_such_calls_ends_no_run(questions: int, tmp_path: Path) -> None:
    done, asked = run(tmp_path, None, Refusing, 90, questions)
    found = done.record.asked_both_ways
    assert found is not None
    assert (found.mode, found.same) == ("each", 0)
    assert done.record.coverage == 1
    assert not any(map(together, asked))


def test_one_whose_calls_cost_nothing_is_not_asked_together(tmp_path: Path) -> None:
    done, asked = run(tmp_path, None, Free, 60)
    assert done.record.asked_both_ways is None
    assert not any(map(together, asked))
    assert askance.load_judge(tmp_path / "None").settings["mode"] == "each"


def test_what_is_not_answered_together_is_another_answer_and_few_answers_show_nothing() -> None:
    alone = {"q1": {str(each): 1.0 for each in range(30)}, "q2": {str(each): -0.5 for each in range(30)}}
    assert same_answers(alone, alone) == 60
    assert same_answers(alone, {"q1": alone["q1"]}) == 30
    for odds, same in ((0.5, 30), (0.1, 60)):  # P(yes) is .38 alone, and .62 or .52 together
        assert same_answers(alone, alone | {"q2": dict.fromkeys(alone["q2"], odds)}) == same
    assert [mode_by(same, 60).mode for same in (57, 56)] == ["batched", "each"]
    few = mode_by(39, 39)
    assert few.mode == "each"
    assert says(few.sentence, "one a call", "39 answers", "too little")
