"""Judges that see a questionnaire and say one number for a dimension (EIG paper §3.5 and Figure 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...agents.buying import Estimate
from ...agents.requests import Ask
from ...models.base import ModelError
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import BudgetExceededError, InputError
from ...prompts.examples import Example
from ...prompts.verdicts import Provenance, Verdict
from .protocol import JudgeScore, Setup
from .questionnaire import (
    NumberAsking,
    NumberEvaluator,
    Questionnaire,
    covering,
    needed_checklist,
    number_judge,
    rating_checklist,
    yes_no,
)

TEMPLATE = "rate_questionnaire"
Sheets = Mapping[tuple[str, int], tuple[Question, ...]]
"""By example and replicate: one instruction for each dimension, with the judge's own answers in it."""


def questionnaire(setup: Setup) -> Questionnaire:
    """``questionnaire``: the judge sees the checklist's questions and says one number a dimension (Figure 11)."""
    listed = _listed(setup, _asked(setup, "questionnaire"), {})
    return number_judge("questionnaire", setup, TEMPLATE, listed=listed)


@dataclass(frozen=True)
class FilledAsking(NumberAsking):
    """Asks each example with its own filled questionnaire."""

    sheets: Sheets = field(default_factory=dict)

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """One call for each dimension."""
        own = NumberAsking(
            self.prompt, self.sheets[example.id, replicate], self.temperature, self.seed, self.scale, self.thinking
        )
        return own.asks(identity, example, position, replicate)


class _FilledEvaluator(NumberEvaluator):
    sheets: Sheets

    def _asking(self, provenance: Provenance) -> FilledAsking:
        plain = super()._asking(provenance)
        return FilledAsking(
            plain.prompt, plain.questions, plain.temperature, plain.seed, plain.scale, sheets=self.sheets
        )


class Filled:
    """``filled``: the judge answers the checklist first, then sees its answers and says one number a dimension.

    An example with a missing answer has no score: its questionnaire is not filled.
    """

    name = "filled"

    def __init__(self, setup: Setup) -> None:
        """Raises InputError where the checklist has no question on a dimension."""
        self._setup = setup
        self._checklist = _asked(setup, self.name)
        self._answers = yes_no(self.name, setup, self._checklist, soft=False)

    async def prepare(self) -> None:
        """Nothing: the questions are given."""

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Answer the questions about every example, then rate the examples with all answers."""
        try:
            verdicts = await self._answers.evaluator.judge(examples)
        except ModelError as error:  # the very first call, which settles what the endpoint can do, failed on all
            if error.fatal:
                raise
            return self._answers.all_failed(examples, str(error))
        missing = {each.example: each for each in reversed(verdicts) if each.status != "ok"}
        whole = [example for example in examples if example.id not in missing]
        found: dict[str, list[JudgeScore]] = {example.id: [] for example in whole}
        for score in await self._numbers(self._sheets(whole, verdicts)).rate(whole):
            found[score.example].append(score)
        for example in examples:
            if (failed := missing.get(example.id)) is not None:
                scores = self._answers.all_failed([example], failed.error or "")
                found[example.id] = [replace(score, status=failed.status) for score in scores]
        return [score for example in examples for score in found[example.id]]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of both steps; before the answers are known no number can be in the store."""
        stored = yes_no(self.name, self._setup.stored_only, self._checklist, soft=False)
        try:
            verdicts: Sequence[Verdict] = await stored.evaluator.judge(examples)
        except BudgetExceededError:
            verdicts = ()
        sheets = self._sheets(examples, verdicts)
        return await self._answers.estimate(examples) + await self._numbers(sheets).estimate(examples)

    def _sheets(self, examples: Sequence[Example], verdicts: Sequence[Verdict]) -> Sheets:
        answers: dict[tuple[str, int], dict[str, bool | None]] = {}
        for each in verdicts:
            answers.setdefault((each.example, each.replicate), {})[each.question] = each.answer
        return {
            (example.id, replicate): rating_checklist(
                self._setup,
                TEMPLATE,
                listed=_listed(self._setup, self._checklist, answers.get((example.id, replicate), {})),
            ).asked
            for example in examples
            for replicate in range(self._answers.repeat)
        }

    def _numbers(self, sheets: Sheets) -> Questionnaire:
        setup, options = self._setup, self._setup.options
        evaluator = _FilledEvaluator(
            setup.gateway,
            setup.model,
            setup.layout,
            rating_checklist(setup, TEMPLATE, listed=_listed(setup, self._checklist, {})),
            options.judging,
            role=self.name,
            points=options.points,
        )
        evaluator.sheets = sheets
        return Questionnaire(self.name, evaluator, setup.dimensions, options.repeat)


def _asked(setup: Setup, judge: str) -> Checklist:
    """The checklist's questions without what code computes, which a model does not fill."""
    alone = needed_checklist(setup, judge).asked_alone
    if alone is None:
        raise InputError(f"The judge '{judge}' fills a questionnaire, and code answers the whole checklist.")
    return covering(alone, setup, judge)


def _listed(setup: Setup, checklist: Checklist, answers: Mapping[str, bool | None]) -> dict[str, str]:
    """Numbered questions of each dimension, each with its answer where there is one."""
    listed = {}
    for dimension in setup.dimensions:
        own = [each for each in checklist.questions if each.dimension == dimension] or checklist.questions
        lines = []
        for number, question in enumerate(own, 1):
            answer = answers.get(question.id)
            said = "" if answer is None else f" Answer: {'yes' if answer else 'no'}"
            lines.append(f"{number}. {question.text}{said}")
        listed[dimension] = "\n".join(lines)
    return listed
