"""Candidates that are asked together: always with the same others, and for far fewer calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import askance
from askance.experiments.measured.simulated_world import COMMENTED, UNSEEN
from askance.models.base import Request
from askance.optimizer.modes import align
from askance.optimizer.questions.candidates import Candidate
from askance.optimizer.questions.together import GROUP, Groups
from askance.runs import estimate_run
from askance.testing import SimulatedJudge, SimulatedWorld


def candidates(*names: str) -> dict[str, Candidate]:
    return {name: Candidate(f"Does it {name}?", "overall", "comment", ()) for name in names}


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
    alone = {"a": Candidate(every["a"].text, "overall", "comment", (), sees="output")}
    groups = Groups()
    assert {each.sees for each in groups.holding(every, {})[0].values()} == {"all"}
    assert {each.sees for each in groups.holding(alone, {})[0].values()} == {"output"}


class Asked(SimulatedJudge):
    """Keeps what it was asked."""

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(world)
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Any:
        self.requests.append(request)
        return await super().answer(request)


def run(tmp_path: Path, mode: str) -> tuple[askance.RunResult, list[Request]]:
    """A run in a world of house rules, whose calls the estimate has to hold, and what was asked."""
    world = SimulatedWorld(size=150, seed=1_000, **COMMENTED, **UNSEEN)
    judge = Asked(world)
    settings: dict[str, Any] = {
        "embedder": "words",
        "resamples": 200,
        "seed": 1_000,
        "update": "questions",
        "mode": mode,
    }
    estimate = estimate_run(align.prepare(world.rows, world.checklist, judge, world.prompt, settings))
    assert not judge.requests
    done = askance.align(
        world.rows, checklist=world.checklist, model=judge, prompt=world.prompt, run=tmp_path / mode, **settings
    )
    assert estimate.low <= done.result["calls"] == len(judge.requests) <= estimate.high
    return done, judge.requests


def test_a_run_takes_less_than_half_of_the_calls_and_learns_as_much(tmp_path: Path) -> None:
    alone, asked_alone = run(tmp_path, "each")
    together, asked = run(tmp_path, "batched")
    assert len(asked) < len(asked_alone) / 2
    gains = [done.record.gain.test for done in (alone, together)]
    assert all(gain is not None and gain.value is not None and gain.value > 0.1 for gain in gains)
    assert gains[1].value > gains[0].value - 0.15  # type: ignore[union-attr,operator]
    assert len({each.key for each in asked}) == len(asked), "nothing is bought twice"
