"""Judges that say a number: asked for at once, or after thinking."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...agents.asking import Ask, Reading, ask_each, shown
from ...agents.evaluator import Evaluator
from ...models.base import Answer, Parameters
from ...prompts.checklist import Checklist, Question
from ...prompts.prompt import Prompt, frame
from ...prompts.templates import render

if TYPE_CHECKING:
    from ...agents.judging import Judging
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...prompts.examples import Example
    from ...prompts.verdicts import Provenance

TOKENS = 8
_ALONE = re.compile(r"\W*(?:(?:score|rating)\W*)?(\d+)(?:\s*(?:/|out of)\s*(\d+))?\W*", re.IGNORECASE)
_AT_END = re.compile(r"\bscore\W{0,5}(\d+)(?:\s*(?:/|out of)\s*(\d+))?", re.IGNORECASE)
_GOES_ON = re.compile(r"[.,](?!0+(?!\d))\d|\s*(?:-|–|to|or)\s*\d", re.IGNORECASE)
"""After a number: it is a fraction or one end of a range."""


@dataclass(frozen=True)
class NumberAsking:
    """One call a question, whose text is the whole instruction; what is read is the number that the judge says."""

    prompt: Prompt
    questions: tuple[Question, ...]
    temperature: float
    seed: int | None
    scale: tuple[int, int]
    thinking: int | None = None
    """Tokens for thinking before the number; None: the number at once."""

    @cached_property
    def form(self) -> str:
        """The number alone, or on the last line."""
        name = "answer_number" if self.thinking is None else "answer_number_last"
        return render(name, low=str(self.scale[0]), high=str(self.scale[1]))

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """One call for each question."""
        blocks = ((question, f"{question.text}\n{self.form}") for question in self.questions)
        parameters = Parameters(self.thinking or TOKENS, self.temperature, self.seed)
        return ask_each(identity, example, position, replicate, frame(self.prompt, example), blocks, parameters)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """The number, mapped to [0, 1].

        Raises:
            ValueError: There is no number of the scale where it is due.
        """
        low, high = self.scale
        number = said_number(answer, low, high, at_end=self.thinking is not None)
        score = (number - low) / (high - low)
        return {ask.questions[0].id: Reading(score >= 0.5, score, answer.text if self.thinking else None)}


def said_number(answer: Answer, low: int, high: int, *, at_end: bool) -> int:
    """The number that an answer consists of, or the last "Score: N" in it.

    Raises:
        ValueError: There is none, or it is not of the scale.
    """
    if at_end:
        found = list(_AT_END.finditer(answer.text))
        match = found[-1] if found else None
        if match is None and answer.finish == "length":
            raise ValueError("the answer was cut off before its score")
    else:
        match = _ALONE.fullmatch(answer.text)
    if match is None or _GOES_ON.match(answer.text, match.end()):
        raise ValueError(f"{shown(answer.text[-60:] if at_end else answer.text)} has no score where it is due")
    number = int(match[1])
    if not low <= number <= high or (match[2] is not None and int(match[2]) != high):
        raise ValueError(f"{match[0].strip()} is no whole number from {low} to {high}")
    return number


class NumberEvaluator(Evaluator):
    """The evaluator with :class:`NumberAsking`: the same store, budget, re-asks and failures."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        prompt: Prompt,
        checklist: Checklist,
        judging: Judging,
        *,
        role: str,
        points: int,
        thinking: int | None = None,
    ) -> None:
        """``points``: the scale is 1 to this."""
        plain = replace(judging, mode="each", explain="never", p_yes="hard", samples=1, score_scale=None)
        super().__init__(gateway, model, prompt, checklist, plain, role=role)
        self._scale = (1, points)
        self._thinking = thinking

    def _asking(self, provenance: Provenance) -> NumberAsking:
        judging = self._judging
        questions = self.checklist.questions
        return NumberAsking(
            self.prompt, questions, judging.temperature, judging.seed, self._scale, thinking=self._thinking
        )
