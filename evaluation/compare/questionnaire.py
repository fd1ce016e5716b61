"""Judges that ask the evaluator questions, and score a dimension by the answers: yes or no, or a number.

The judge says the number at once or after thinking. Or the number is the expected one: from log-probabilities, or from
samples if there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.own_words import own_checklist
from ...agents.replies import Reading, in_quotes
from ...agents.requests import Ask, OneByOne
from ...models.base import Answer, ModelError, Parameters
from ...models.replies.answer_words import scale_of
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...prompts.templates import render
from ...prompts.verdicts import Verdict
from ..own_judge import in_own_words
from ..raters.comment_coverage import covered_criteria, faults_found
from ..scoring import score_examples
from .protocol import JudgeScore, NothingToPrepare, Setup

if TYPE_CHECKING:
    from ...agents.judging import Judging
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...prompts.verdicts import Provenance


@dataclass(frozen=True)
class Questionnaire(NothingToPrepare):
    """A judge whose scores are weighted means of the evaluator's answers: soft (P(yes), or a rating) or hard (yes or
    no)."""

    name: str
    evaluator: Evaluator
    dimensions: tuple[str, ...]
    repeat: int
    """Number of ratings of every example."""
    soft: bool = True
    draws: int = 1
    """Number of answers whose mean is one rating; the evaluator answers ``repeat`` · ``draws`` times."""
    thinking: bool = False
    """Whether the evaluator gives reasons in its own words."""
    answers_yes_or_no: bool = False
    """Whether a single answer can say that an output has a fault."""

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Ask every question about every example; a missing answer leaves its dimension without a score."""
        try:
            verdicts = await self.evaluator.judge(examples)
        except ModelError as error:  # the very first call, which settles what the endpoint can do, failed on all
            if error.fatal:
                raise
            return self.all_failed(examples, str(error))
        cells: dict[tuple[str, int], list[Verdict]] = {}
        for verdict in verdicts:
            ratings = (verdict.replicate // self.draws,) if verdict.model is not None else range(self.repeat)
            for rating in ratings:  # what code decided goes with every rating
                cells.setdefault((verdict.example, rating), []).append(verdict)
        return [
            rating
            for example in examples
            for replicate in range(self.repeat)
            for rating in self._ratings(example, cells[example.id, replicate], replicate)
        ]

    def all_failed(self, examples: Sequence[Example], error: str) -> list[JudgeScore]:
        """Return the missing scores of examples on which the endpoint failed."""
        return [
            JudgeScore(example.id, dimension, None, "api_error", error, replicate)
            for example in examples
            for replicate in range(self.repeat)
            for dimension in self.dimensions
        ]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of what asking would buy now."""
        return self.evaluator.estimate(examples)

    def _ratings(self, example: Example, verdicts: Sequence[Verdict], replicate: int) -> list[JudgeScore]:
        (scores,) = score_examples([example], self.evaluator.checklist, verdicts, soft=self.soft)
        found_fault = None
        if self.answers_yes_or_no:
            found_fault = faults_found(verdicts, covered_criteria(self.evaluator.checklist.questions)).get(example.id)
        found = []
        for dimension in self.dimensions:
            score = scores.dimensions.get(dimension, scores.overall)
            if score is not None:
                reasons = self._reasons(verdicts, dimension) if self.thinking else None
                told = JudgeScore(example.id, dimension, score, replicate=replicate, reasons=reasons)
                found.append(replace(told, finds_fault=found_fault))
            else:
                failed = self._failure(verdicts, dimension)
                found.append(JudgeScore(example.id, dimension, None, failed.status, failed.error, replicate))
        return found

    def _reasons(self, verdicts: Sequence[Verdict], dimension: str) -> str | None:
        ids = self._asked_about(dimension)
        said = [verdict.explanation for verdict in verdicts if verdict.question in ids and verdict.explanation]
        return "\n".join(said) or None

    def _failure(self, verdicts: Sequence[Verdict], dimension: str) -> Verdict:
        """Return the first missing answer that leaves a dimension without a score."""
        ids, missing = self._asked_about(dimension), [each for each in verdicts if each.status != "ok"]
        return next((each for each in missing if each.question in ids), missing[0])

    def _asked_about(self, dimension: str) -> set[str]:
        return {each.id for each in self.evaluator.checklist.questions if each.dimension == dimension}


def yes_no(name: str, setup: Setup, checklist: Checklist, *, soft: bool) -> Questionnaire:
    """Return a judge that asks yes/no questions with the prompt of the comparison."""
    options = setup.options
    judging = replace(options.judging, score_scale=None)
    evaluator = Evaluator(setup.gateway, setup.model, setup.prompt, checklist, judging, role=name)
    return Questionnaire(name, evaluator, setup.dimensions, options.repeat, soft, answers_yes_or_no=True)


def own_words(setup: Setup) -> Questionnaire:
    """Return the judge in people's own words. Raises InputError if several dimensions are compared, as it gives one
    score."""
    options = setup.options
    if len(setup.dimensions) > 1 or setup.own is None:
        raise InputError(
            f"The judge 'own' gives one score, and {len(setup.dimensions)} dimensions are compared "
            f"({', '.join(setup.dimensions)}): name one with --dimension."
        )
    judging = in_own_words(replace(options.judging, score_scale=None), options)
    assert judging.reads is not None, "the form of its replies was named or found"
    checklist = own_checklist(judging.reads, setup.dimensions[0])
    evaluator = Evaluator(setup.gateway, setup.model, setup.own, checklist, judging, role="own")
    return Questionnaire("own", evaluator, setup.dimensions, options.repeat, options.soft)


def needed_checklist(setup: Setup, judge: str) -> Checklist:
    """Return the checklist's questions on the compared dimensions. Raises InputError if there is no checklist, or a
    dimension has no question."""
    if setup.checklist is None:
        raise InputError(f"The judge '{judge}' asks a checklist's questions: name one with --checklist.")
    return covering(setup.checklist, setup, judge)


def candidate_pool(setup: Setup, judge: str) -> Checklist:
    """Return the candidate questions on the compared dimensions. Raises InputError if there are no candidates, or a
    dimension has none."""
    pool = setup.candidates or setup.checklist
    if pool is None:
        raise InputError(f"The judge '{judge}' needs candidate questions: name them with --candidates or --checklist.")
    return covering(pool, setup, judge)


def covering(checklist: Checklist, setup: Setup, judge: str) -> Checklist:
    """Return the questions on the compared dimensions; all questions if ``overall`` has none of its own.

    Raises InputError where a dimension has no question with a weight.
    """
    weighted = {question.dimension for question in checklist.questions if question.weight > 0}
    for dimension in setup.dimensions:
        if dimension not in weighted and dimension != "overall":
            raise InputError(
                f"The judge '{judge}' has no question on '{dimension}' (its questions are on "
                f"{', '.join(sorted(weighted))}). Add one, or compare fewer dimensions with --dimension."
                f"{did_you_mean(dimension, weighted)}"
            )
    if "overall" in setup.dimensions and "overall" not in weighted:
        return checklist
    kept = [question for question in checklist.questions if question.dimension in setup.dimensions]
    for section, weights in checklist.section_weights.items():
        weighted = {question.dimension for question in kept if weights[question.id] > 0}
        if missing := [dimension for dimension in setup.dimensions if dimension not in weighted]:
            raise InputError(
                f"The judge '{judge}': in the section '{section}' every question on '{missing[0]}' has a weight of 0, "
                "so there would be no score. Compare fewer dimensions with --dimension, or change section_weights."
            )
    return with_questions(checklist, kept)


def with_questions(checklist: Checklist, questions: Iterable[Question]) -> Checklist:
    """Return the checklist with some of its questions, and their weights in the sections."""
    kept = tuple(questions)
    sections = {
        section: {question.id: weights[question.id] for question in kept}
        for section, weights in checklist.section_weights.items()
    }
    return checklist.model_copy(update={"questions": kept, "section_weights": sections})


Sheets = Mapping[tuple[str, int], tuple[Question, ...]]
"""By example and replicate: one instruction for each dimension, with the judge's own answers in it."""
TOKENS = 8
_ALONE = re.compile(r"\W*(?:(?:score|rating)\W*)?(\d+)(?:\s*(?:/|out of)\s*(\d+))?\W*", re.IGNORECASE)
_AT_END = re.compile(r"\bscore\W{0,5}(\d+)(?:\s*(?:/|out of)\s*(\d+))?", re.IGNORECASE)
_GOES_ON = re.compile(r"[.,](?!0+(?!\d))\d|\s*(?:-|–|to|or)\s*\d", re.IGNORECASE)
"""Text after a number that makes the number a part of a fraction or one end of a range."""


@dataclass(frozen=True)
class NumberAsking(OneByOne):
    """One call per question. The question's text is the whole instruction; the reply is read as a number."""

    prompt: Prompt
    questions: tuple[Question, ...]
    temperature: float
    seed: int | None
    scale: tuple[int, int]
    thinking: int | None = None
    """Tokens for thinking before the number; None: the number at once."""
    sheets: Sheets | None = None
    """The questions of each example, where it has its own."""

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """One call for each question."""
        if self.sheets is None:
            return super().asks(identity, example, position, replicate)
        own = replace(self, questions=self.sheets[example.id, replicate], sheets=None)
        return own.asks(identity, example, position, replicate)

    @cached_property
    def form(self) -> str:
        """Instruction to say the number alone, or on the last line."""
        name = "answer_number" if self.thinking is None else "answer_number_last"
        return render(name, low=str(self.scale[0]), high=str(self.scale[1]))

    @property
    def _parameters(self) -> Parameters:
        return Parameters(self.thinking or TOKENS, self.temperature, self.seed)

    def _block(self, question: Question) -> str:
        return f"{question.text}\n{self.form}"

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Return the number, mapped to [0, 1]. Raises ValueError if no number of the scale stands where it should."""
        low, high = self.scale
        number = said_number(answer, low, high, at_end=self.thinking is not None)
        score = (number - low) / (high - low)
        return {ask.questions[0].id: Reading(score >= 0.5, score, answer.text if self.thinking else None)}


def said_number(answer: Answer, low: int, high: int, *, at_end: bool) -> int:
    """Return the number that an answer consists of, or with ``at_end`` the last "Score: N" in it. Raises ValueError if
    there is none of the scale."""
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
    """An evaluator that asks by :class:`NumberAsking`: with the same store, budget, re-asks and failures."""

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
        sheets: Sheets | None = None,
    ) -> None:
        """``points``: upper end of the scale, which begins at 1."""
        plain = replace(judging, mode="each", explain="never", p_yes="hard", samples=1, score_scale=None)
        super().__init__(gateway, model, prompt, checklist, plain, role=role)
        self._scale = (1, points)
        self._thinking = thinking
        self._sheets = sheets

    def _asking(self, provenance: Provenance) -> NumberAsking:
        how = self.judging.temperature, self.judging.seed, self._scale, self._thinking, self._sheets
        return NumberAsking(self.prompt, self.checklist.asked, *how)


@dataclass(frozen=True)
class ExpectedNumbers(NothingToPrepare):
    """Each question is answered with a number on ``points`` levels, read as Σ k·P(k) (G-Eval; LMUnit §3.3).

    Without log-probabilities the endpoint is asked ``samples`` times (``--samples``; G-Eval uses 20) and its numbers
    are averaged, at the judge's own temperature, or 1 if that is 0. With one sample the judge's own temperature is
    used.
    """

    name: str
    setup: Setup
    prompt: Prompt
    checklist: Checklist

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Ask every question about every example."""
        if self._without:
            return await self._said().rate(examples)
        try:
            return await self._expected().rate(examples)
        except ModelError:
            if not self._without:  # the error has another cause than missing log-probabilities
                raise
        return await self._said().rate(examples)

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of what asking would buy now."""
        return await (self._said() if self._without else self._expected()).estimate(examples)

    @property
    def _without(self) -> bool:
        """Whether log-probabilities are not wanted, or the endpoint is known not to give them."""
        if self.setup.options.p_yes in ("hard", "sampled"):
            return True
        settled = self.setup.gateway.provenance.get(self.setup.model.identity)
        return self.setup.options.p_yes == "auto" and settled not in (None, "logprob")

    def _expected(self) -> Questionnaire:
        setup, options = self.setup, self.setup.options
        judging = replace(
            options.judging, mode="each", explain="never", p_yes="auto", score_scale=scale_of(options.points)
        )
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
    """Return one question a dimension, from a template with task, dimension, description and the variables ``more``."""
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
    name: str,
    setup: Setup,
    template: str,
    judging: Judging | None = None,
    thinking: int | None = None,
    sheets: Sheets | None = None,
    **more: Mapping[str, str],
) -> Questionnaire:
    """Return a judge that says a number for each dimension, asked as the options say unless ``judging`` is given.

    ``more`` are further variables of the template, by dimension.
    """
    options = setup.options
    evaluator = NumberEvaluator(
        setup.gateway,
        setup.model,
        setup.layout,
        rating_checklist(setup, template, **more),
        judging or options.judging,
        role=name,
        points=options.points,
        thinking=thinking,
        sheets=sheets,
    )
    return Questionnaire(name, evaluator, setup.dimensions, options.repeat, thinking=thinking is not None)
