"""Judges whose score is the expected number, from log-probabilities; without these, the numbers that they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...models.base import ModelError
from ...prompts.checklist import Checklist
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from .numbers import NumberEvaluator
from .protocol import OnDone, Rating, Setup
from .questionnaire import Questionnaire


@dataclass(frozen=True)
class ExpectedNumbers:
    """Each question is answered with a number from 1 to ``points``, read as Σ k·P(k) (G-Eval; LMUnit §3.3).

    An endpoint without log-probabilities is asked ``samples`` times (``--samples``; G-Eval uses 20) at temperature 1,
    and the mean of what it says is taken; with one sample, what it says at the judge's own temperature.
    """

    name: str
    setup: Setup
    prompt: Prompt
    checklist: Checklist

    async def prepare(self) -> None:
        """Nothing: the questions are given."""

    async def rate(self, examples: Sequence[Example], on_done: OnDone | None = None) -> list[Rating]:
        """Ask every question about every example."""
        if self._without:
            return await self._said().rate(examples, on_done)
        try:
            return await self._expected().rate(examples, on_done)
        except ModelError:
            if not self._without:  # it is not for want of log-probabilities, which the first answer has settled
                raise
        return await self._said().rate(examples, on_done)

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What asking would buy now."""
        return await (self._said() if self._without else self._expected()).estimate(examples)

    @property
    def _without(self) -> bool:
        """Whether log-probabilities are not wanted, or known not to be had."""
        if self.setup.options.p_yes in ("hard", "sampled"):
            return True
        settled = self.setup.gateway.provenance.get(self.setup.model.identity)
        return self.setup.options.p_yes == "auto" and settled not in (None, "logprob")

    def _expected(self) -> Questionnaire:
        setup, options = self.setup, self.setup.options
        judging = replace(options.judging, mode="each", explain="never", p_yes="auto", score_scale=(1, options.points))
        evaluator = Evaluator(setup.gateway, setup.model, self.prompt, self.checklist, judging, role=self.name)
        return Questionnaire(self.name, evaluator, setup.dimensions, options.repeat)

    def _said(self) -> Questionnaire:
        setup, options = self.setup, self.setup.options
        draws = options.samples
        judging = replace(options.judging, repeat=options.repeat * draws)
        if draws > 1:
            judging = replace(judging, temperature=judging.sample_temperature)
        evaluator = NumberEvaluator(
            setup.gateway, setup.model, self.prompt, self.checklist, judging, role=self.name, points=options.points
        )
        return Questionnaire(self.name, evaluator, setup.dimensions, options.repeat, draws=draws)
