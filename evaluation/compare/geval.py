"""``geval``: the model writes evaluation steps once, then rates by them; the score is the expected number.

G-Eval (Liu et al. 2023), with the example before the steps instead of after them, so that it stays in the prompt cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ...agents.agent import ask_for
from ...agents.buying import Estimate
from ...prompts.errors import BudgetExceededError
from ...prompts.examples import Example
from ...prompts.templates import render
from .criteria import Criterion
from .numbers import ExpectedNumbers, rating_checklist
from .protocol import JudgeScore, Setup

MOST_STEPS = 6
STEP_TOKENS = 400


class EvaluationSteps(BaseModel):
    """The model's reply when it is asked how it would go about it."""

    model_config = ConfigDict(extra="forbid", title="steps")

    steps: list[Annotated[str, Field(min_length=1, max_length=300)]] = Field(min_length=1, max_length=MOST_STEPS)


class GEval:
    """The judge; its steps are written when it is prepared."""

    name = "geval"

    def __init__(self, setup: Setup) -> None:
        """It needs no checklist."""
        self._setup = setup
        self._steps: dict[str, list[str]] = {}

    async def prepare(self) -> None:
        """Have the steps of every dimension written: one call each.

        Raises:
            ParseError: The model cannot put them into a list.
            ModelError: No reply.
            BudgetExceededError: A cap was reached.
        """
        for criterion in self._setup.criteria:
            self._steps[criterion.dimension] = await _write_steps(self._setup, criterion)

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Rate by the steps."""
        return await self._judge(self._steps).rate(examples)

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What writing the steps and rating would buy; before the steps are known no rating can be in the store."""
        steps: dict[str, list[str]] = {}
        unknown = 0
        stored_only = self._setup.stored_only
        for criterion in self._setup.criteria:
            try:
                steps[criterion.dimension] = await _write_steps(stored_only, criterion)
            except BudgetExceededError:
                unknown += 1
                steps[criterion.dimension] = ["-"]
        rating = await self._judge(steps).estimate(examples)
        return rating + Estimate(0, unknown, 0, unknown * STEP_TOKENS)

    def _judge(self, steps: dict[str, list[str]]) -> ExpectedNumbers:
        lines = {
            dimension: "\n".join(f"{number}. {step}" for number, step in enumerate(each, 1))
            for dimension, each in steps.items()
        }
        checklist = rating_checklist(self._setup, "rate_geval", steps=lines)
        return ExpectedNumbers(self.name, self._setup, self._setup.layout, checklist)


async def _write_steps(setup: Setup, criterion: Criterion) -> list[str]:
    message = render(
        "geval_steps",
        task=setup.task,
        dimension=criterion.dimension.replace("_", " "),
        description=criterion.description,
        most=str(MOST_STEPS),
    )
    reply = await ask_for(
        setup.gateway,
        GEval.name,
        setup.model,
        [("user", message)],
        EvaluationSteps,
        max_tokens=STEP_TOKENS,
        seed=setup.options.seed,
    )
    return [" ".join(step.split()) for step in reply.steps]
