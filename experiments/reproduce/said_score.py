"""The score that greedy decoding would say, read from the very calls that give the expected one (LMUnit, Table 12)."""

from __future__ import annotations

from collections.abc import Sequence

from ...agents.asking import LEAST_MASS, shown
from ...agents.evaluator import Evaluator
from ...agents.expected_score import ExpectedScoreAsking
from ...models.base import Answer
from ...models.probabilities import score_masses
from ...prompts.checklist import Question


class SaidScoreAsking(ExpectedScoreAsking):
    """The same requests; what is read is the likeliest number of the scale, mapped to [0, 1]."""

    def _expected(self, alternatives: Sequence[tuple[str, float]], answer: Answer) -> float:
        low, high = self.scale
        masses = score_masses(alternatives, low, high)
        if sum(masses) < LEAST_MASS:
            raise ValueError(f"{shown(answer.text)} is no number from {low} to {high}")
        return masses.index(max(masses)) / (high - low)


class SaidScoreEvaluator(Evaluator):
    """The evaluator with :class:`SaidScoreAsking`; after expected scores from the same store it buys nothing."""

    def _asking_for_scores(
        self, questions: tuple[Question, ...], scale: tuple[int, int], *, explained: bool
    ) -> SaidScoreAsking:
        judging = self._judging
        return SaidScoreAsking(self.prompt, questions, explained, judging.temperature, judging.seed, scale)
