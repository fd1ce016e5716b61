"""Judges that put questions to the evaluator, and score a dimension by what it says to the questions on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...models.base import ModelError
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ..scoring import score_examples
from .protocol import JudgeScore, Setup


@dataclass(frozen=True)
class Questionnaire:
    """Scores are weighted means of what the evaluator says, soft (P(yes), or a rating in [0, 1]) or hard (yes or no)."""

    name: str
    evaluator: Evaluator
    dimensions: tuple[str, ...]
    repeat: int
    """Ratings of every example."""
    soft: bool = True
    draws: int = 1
    """Answers that each rating is the mean of; the evaluator gives ``repeat`` times as many."""
    thinking: bool = False
    """Whether the evaluator says what it looks at, in words of its own."""

    async def prepare(self) -> None:
        """Nothing: the questions are given."""

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Ask every question about every example; a missing answer leaves its dimension without a score."""
        try:
            verdicts = await self.evaluator.judge(examples)
        except ModelError as error:  # the very first call, which settles what the endpoint can do, failed on all
            if error.fatal:
                raise
            return self._all_failed(examples, str(error))
        cells: dict[tuple[str, int], list[Verdict]] = {}
        for verdict in verdicts:
            cells.setdefault((verdict.example, verdict.replicate // self.draws), []).append(verdict)
        return [
            rating
            for example in examples
            for replicate in range(self.repeat)
            for rating in self._ratings(example, cells[example.id, replicate], replicate)
        ]

    def _all_failed(self, examples: Sequence[Example], error: str) -> list[JudgeScore]:
        return [
            JudgeScore(example.id, dimension, None, "api_error", error, replicate)
            for example in examples
            for replicate in range(self.repeat)
            for dimension in self.dimensions
        ]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What asking would buy now."""
        return self.evaluator.estimate(examples)

    def _ratings(self, example: Example, verdicts: Sequence[Verdict], replicate: int) -> list[JudgeScore]:
        (scores,) = score_examples([example], self.evaluator.checklist, verdicts, soft=self.soft)
        found = []
        for dimension in self.dimensions:
            score = scores.dimensions.get(dimension, scores.overall)
            if score is not None:
                reasons = self._reasons(verdicts, dimension) if self.thinking else None
                found.append(JudgeScore(example.id, dimension, score, replicate=replicate, reasons=reasons))
            else:
                failed = self._failure(verdicts, dimension)
                found.append(JudgeScore(example.id, dimension, None, failed.status, failed.error, replicate))
        return found

    def _reasons(self, verdicts: Sequence[Verdict], dimension: str) -> str | None:
        """What was said on a dimension."""
        ids = self._asked_about(dimension)
        said = [verdict.explanation for verdict in verdicts if verdict.question in ids and verdict.explanation]
        return "\n".join(said) or None

    def _failure(self, verdicts: Sequence[Verdict], dimension: str) -> Verdict:
        """The first missing answer that leaves a dimension without a score: one on it, or, of the score over all, any."""
        ids, missing = self._asked_about(dimension), [each for each in verdicts if each.answer is None]
        return next((each for each in missing if each.question in ids), missing[0])

    def _asked_about(self, dimension: str) -> set[str]:
        """Ids of the questions on a dimension."""
        return {each.id for each in self.evaluator.checklist.questions if each.dimension == dimension}


def yes_no(name: str, setup: Setup, checklist: Checklist, *, soft: bool) -> Questionnaire:
    """A judge that asks yes/no questions with the prompt of the comparison."""
    options = setup.options
    judging = replace(options.judging, score_scale=None)
    evaluator = Evaluator(setup.gateway, setup.model, setup.prompt, checklist, judging, role=name)
    return Questionnaire(name, evaluator, setup.dimensions, options.repeat, soft)


def needed_checklist(setup: Setup, judge: str) -> Checklist:
    """The checklist's questions on the dimensions that are compared.

    Raises:
        InputError: There is no checklist, or a dimension has no question.
    """
    if setup.checklist is None:
        raise InputError(f"The judge '{judge}' asks a checklist's questions: name one with --checklist.")
    return covering(setup.checklist, setup, judge)


def candidate_pool(setup: Setup, judge: str) -> Checklist:
    """The candidate questions on the dimensions that are compared.

    Raises:
        InputError: There are none, or a dimension has no question.
    """
    pool = setup.candidates or setup.checklist
    if pool is None:
        raise InputError(f"The judge '{judge}' needs candidate questions: name them with --candidates or --checklist.")
    return covering(pool, setup, judge)


def covering(checklist: Checklist, setup: Setup, judge: str) -> Checklist:
    """The questions on the dimensions that are compared; ``overall`` without questions of its own is scored over all.

    Raises:
        InputError: A dimension has no question with a weight.
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
                f"The judge '{judge}': in the section '{section}' every question on '{missing[0]}' has a weight of 0, so "
                "there would be no score. Compare fewer dimensions with --dimension, or change section_weights."
            )
    return with_questions(checklist, kept)


def with_questions(checklist: Checklist, questions: Iterable[Question]) -> Checklist:
    """The checklist with some of its questions, and their weights in the sections."""
    kept = tuple(questions)
    sections = {
        section: {question.id: weights[question.id] for question in kept}
        for section, weights in checklist.section_weights.items()
    }
    return checklist.model_copy(update={"questions": kept, "section_weights": sections})
