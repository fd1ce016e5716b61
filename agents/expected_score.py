"""Scores on a scale as the number that a judge is expected to say (LMUnit §3.3, eq. 2; Table 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..models.base import Answer, Parameters
from ..models.replies.numbers import alternatives_of_field, expected_score, number_masses, score_masses
from ..models.replies.yes_no import LEAST_MASS
from ..prompts.checklist import Question
from ..prompts.prompt import Prompt
from ..prompts.templates import render
from .asking import TOP_LOGPROBS, Ask, OneByOne, Reading, explanation_in, json_object, shown

TOKENS = 4
"""Tokens of a reply: some tokenizers begin with a blank, and some models with marks around the number."""


@dataclass(frozen=True)
class ExpectedScoreAsking(OneByOne):
    """One call a question, answered with a number; p_yes is the expected number, mapped to [0, 1].

    What is read is how likely each number of the scale was where the judge said one, not the number that it said: Σ
    k·P(k) over the scale, P scaled to sum 1. ``answer`` is whether that is at least the middle of the scale.
    """

    prompt: Prompt
    questions: tuple[Question, ...]
    explained: bool
    temperature: float
    seed: int | None
    scale: tuple[int, int]
    """Lowest and highest number, in 0 to 9, or to 10 where nothing is explained."""

    @cached_property
    def form(self) -> str:
        """One number, or JSON where an explanation is wanted."""
        name = "answer_score_explained" if self.explained else "answer_score"
        return render(name, low=str(self.scale[0]), high=str(self.scale[1]))

    @cached_property
    def _parameters(self) -> Parameters:
        if self.explained:
            return Parameters(200, self.temperature, self.seed, TOP_LOGPROBS, explained_schema(self.scale))
        return Parameters(TOKENS, self.temperature, self.seed, TOP_LOGPROBS)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """The expected number.

        Raises:
            ValueError: No number of the scale was likely where the number is due.
        """
        question = ask.questions[0].id
        if self.explained:
            fields = json_object(answer, ["score"])
            self._check_said(fields)
            masses = score_masses(alternatives_of_field(answer.logprobs or (), "score"), *self.scale)
            explanation = explanation_in(fields)
        else:
            masses = number_masses(answer.logprobs or (), *self.scale)
            explanation = None
        p_yes = self._expected(masses, answer)
        return {question: Reading(p_yes >= 0.5, p_yes, explanation)}

    def nearest(self, p_yes: float) -> str:
        """The number of the scale that an expected score lies next to: what the judge as good as said."""
        low, high = self.scale
        return str(low + round(p_yes * (high - low)))

    def _expected(self, masses: Sequence[float], answer: Answer) -> float:
        low, high = self.scale
        if sum(masses) < LEAST_MASS:
            raise ValueError(f"{shown(answer.text)} is no number from {low} to {high}")
        return expected_score(masses)

    def _check_said(self, fields: Mapping[str, Any]) -> None:
        low, high = self.scale
        said = fields.get("score")
        if isinstance(said, bool) or not isinstance(said, int) or not low <= said <= high:
            raise ValueError(f'"score" is not a whole number from {low} to {high}')


def explained_schema(scale: tuple[int, int]) -> dict[str, Any]:
    """JSON schema of a number of the scale with its explanation."""
    low, high = scale
    return {
        "type": "object",
        "properties": {
            "score": {"type": "integer", "enum": list(range(low, high + 1))},
            "explanation": {"type": "string", "maxLength": 300},
        },
        "required": ["score", "explanation"],
        "additionalProperties": False,
    }
