"""What is true of a judge in the simulated world: its correlation with people on a fresh population that no run sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...agents.asking import EachAsking
from ...evaluation.calibration import Calibration, logit
from ...prompts.checklist import Checklist
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...stats.correlation import spearman
from ...stats.resampling import Vector
from ...testing import SimulatedJudge, SimulatedWorld
from ...testing.simulated_judge import JudgeRequest, read_request

POPULATION = 1_500
"""Fresh examples on which the true correlation of a judge is measured."""


class Truth:
    """The population of a world."""

    def __init__(self, world: SimulatedWorld, size: int = POPULATION) -> None:
        """Draw it; its examples are none of those that a run sees."""
        self._world = world
        self._judge = SimulatedJudge(world)
        rows = world.make_rows(size, "fresh")
        self._human = [row["human"]["quality"] for row in rows]
        self._cases = [(row["id"], world.signs(row["id"])) for row in rows]
        self._shown = Example(**{name: rows[0][name] for name in ("id", "input", "output")})
        self._known: dict[tuple[str, str], float] = {}
        self._answers: dict[str, Vector] = {}

    def spearman(
        self, prompt: str, checklist: Checklist | None = None, calibration: Calibration | None = None
    ) -> float:
        """The correlation of a judge's scores with people's, over the whole population.

        Args:
            prompt: What it judges with.
            checklist: What it is asked; the world's own by default.
            calibration: What its verdicts are read by, of the method ``accepted``; None where they are taken as they are.

        Raises:
            ValueError: The judge gives all examples one score.
        """
        checklist = checklist or self._world.checklist
        key = prompt, f"{checklist.questions}{calibration}"
        if key not in self._known:
            asking = EachAsking(Prompt(prompt), checklist.questions, False, True, 0.0, 0)
            asks = asking.asks(self._judge.identity, self._shown, 0, 0)
            said = {
                question.id: self._told(read_request(ask.request()))
                for question, ask in zip(checklist.questions, asks, strict=True)
            }
            odds = {name: logit(values) for name, values in said.items()}
            scores = np.zeros(len(self._cases))
            for question in checklist.questions:
                plain = 1.0 - said[question.id] if question.is_fault else said[question.id]
                scores += question.weight * (plain if calibration is None else calibration.p_good(question.id, odds))
            found = spearman(scores.tolist(), self._human).value
            if found is None:
                raise ValueError("the judge gives every example the same score")
            self._known[key] = found
        return self._known[key]

    def _told(self, asked: JudgeRequest) -> Vector:
        """What the judge answers about every example."""
        key = f"{asked.topic} {asked.told}"
        if key not in self._answers:
            about = (replace(asked, example=example, signs=signs) for example, signs in self._cases)
            self._answers[key] = np.array([self._judge.p_yes(each) for each in about])
        return self._answers[key]
