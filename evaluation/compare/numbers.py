"""Judges that answer one question a dimension with a number.

They say it at once or after thinking; or their score is the expected number, from log-probabilities, and the numbers
that they say where there are none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.replies import Reading, in_quotes
from ...agents.requests import Ask, OneByOne
from ...models.base import Answer, ModelError, Parameters
from ...prompts.checklist import Checklist, Question
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...prompts.templates import render
from .protocol import JudgeScore, Setup
from .questionnaire import Questionnaire

if TYPE_CHECKING:
    from ...agents.judging import Judging
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...prompts.verdicts import Provenance


TOKENS = 8
_ALONE = re.compile(r"\W*(?:(?:score|rating)\W*)?(\d+)(?:\s*(?:/|out of)\s*(\d+))?\W*", re.IGNORECASE)
_AT_END = re.compile(r"\bscore\W{0,5}(\d+)(?:\s*(?:/|out of)\s*(\d+))?", re.IGNORECASE)
_GOES_ON = re.compile(r"[.,](?!0+(?!\d))\d|\s*(?:-|–|to|or)\s*\d", re.IGNORECASE)
"""After a number: it is a fraction or one end of a range."""


@dataclass(frozen=True)
class NumberAsking(OneByOne):
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

    @property
    def _parameters(self) -> Parameters:
        return Parameters(self.thinking or TOKENS, self.temperature, self.seed)

    def _block(self, question: Question) -> str:
        return f"{question.text}\n{self.form}"

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
        raise ValueError(f"{in_quotes(answer.text[-60:] if at_end else answer.text)} has no score where it is due")
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
        judging = self.judging
        questions = self.checklist.questions
        return NumberAsking(
            self.prompt, questions, judging.temperature, judging.seed, self._scale, thinking=self._thinking
        )


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

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Ask every question about every example."""
        if self._without:
            return await self._said().rate(examples)
        try:
            return await self._expected().rate(examples)
        except ModelError:
            if not self._without:  # it is not for want of log-probabilities, which the first answer has settled
                raise
        return await self._said().rate(examples)

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


def rating_checklist(setup: Setup, template: str, **more: Mapping[str, str]) -> Checklist:
    """One question for each dimension, from a template with the variables task, dimension and description.

    ``more`` are further variables, each by dimension.
    """
    questions = [
        Question(
            id=f"{template}_{each.dimension}",
            text=render(
                template,
                task=setup.task,
                dimension=each.dimension.replace("_", " "),
                description=each.description,
                **{name: values[each.dimension] for name, values in more.items()},
            ),
            dimension=each.dimension,
        )
        for each in setup.criteria
    ]
    return Checklist(task=setup.task, questions=tuple(questions))


def number_judge(
    name: str, setup: Setup, template: str, judging: Judging | None = None, thinking: int | None = None
) -> Questionnaire:
    """A judge that says a number for each dimension; asked as the options say unless ``judging`` is given."""
    options = setup.options
    evaluator = NumberEvaluator(
        setup.gateway,
        setup.model,
        setup.layout,
        rating_checklist(setup, template),
        judging or options.judging,
        role=name,
        points=options.points,
        thinking=thinking,
    )
    return Questionnaire(name, evaluator, setup.dimensions, options.repeat, thinking=thinking is not None)
