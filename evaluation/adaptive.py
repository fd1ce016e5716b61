"""Ask one question at a time, and stop when the remaining ones cannot change the score by more than is allowed.

A score is S = Σ w f / Σ w with every f in [0, 1]. After some answers it lies between low (all remaining answers speak
against the output) and high (they all speak for it). The questions about an example end with the first of two rules
that holds:

* ``tolerance``: high - low is at most twice the tolerance. That depends on the weights alone, so every example takes
  the same number of questions.
* ``cuts``: no cut (a pass mark, a step of a grading scale) lies between low and high. Here examples differ.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..agents.buying import all_together
from ..prompts.errors import InputError
from ..stats.pass_fail import passes
from .scoring import WHOLE, complete_mean, worth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..agents.evaluator import Evaluator
    from ..prompts.checklist import Checklist, Question
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict
    from .scoring import ExampleScore

_ROUNDING = 1e-12

Ended = Literal["tolerance", "cuts", "all", "missing"]


@dataclass(frozen=True)
class AdaptiveScore:
    """One example's score, with its largest possible error."""

    example: str
    score: float | None
    """Within ``error`` of the score that all questions would give, in [0, 1]; None where an answer is missing."""
    low: float
    """The lowest score that all questions could give."""
    high: float
    """The highest score that all questions could give."""
    asked: int
    """Number of questions asked."""
    ended: Ended
    """Why the questions ended: by a rule, because all were asked, or because an answer is missing."""

    @property
    def error(self) -> float | None:
        """Largest possible distance of the final score from ``score``; None without a score."""
        return None if self.score is None else max(self.high - self.score, self.score - self.low, 0.0)


@dataclass(frozen=True)
class AdaptiveEvaluation:
    """Scores of all examples, and what was saved."""

    scores: tuple[AdaptiveScore, ...]
    verdicts: tuple[Verdict, ...]
    """Verdicts that were asked for, example by example."""
    asked: int
    """Verdicts asked for; a question that is repeated has several."""
    saved: int
    """Verdicts that were not asked for, of examples with a score."""
    missing: int
    """Examples without a score because an answer is missing; nothing more was asked about them."""
    not_asked: int
    """Verdicts that were not asked for, of examples with a score (``saved``) and without."""

    @property
    def largest_error(self) -> float | None:
        """The largest ``error`` of a score: an exact bound, not an estimate. None where there is no score."""
        errors = [each.error for each in self.scores if each.error is not None]
        return max(errors) if errors else None

    def known(self, scores: Sequence[ExampleScore], checklist: Checklist) -> list[ExampleScore]:
        """Return one score per example from the verdicts. Dimensions that depend on left-out questions have no score.

        The overall score is that of :attr:`scores`, exact within its ``error``. A dimension has a score if all its
        questions were asked about every example without a missing answer; the only dimension of a checklist has the
        overall score.
        """
        asked: dict[str, set[str]] = {each.example: set() for each in self.scores if each.ended != "missing"}
        for verdict in self.verdicts:
            if verdict.example in asked:
                asked[verdict.example].add(verdict.question)
        needed: dict[str, set[str]] = {}
        for question in checklist.questions:
            if question.weight > 0:
                needed.setdefault(question.dimension, set()).add(question.id)
        whole = {name for name, ids in needed.items() if all(ids <= there for there in asked.values())}
        known = []
        for score, adaptive_score in zip(scores, self.scores, strict=True):
            dimensions = {
                name: value if name in whole else None
                for name, value in score.dimensions.items()
                if name in whole or WHOLE in score.dimensions  # without a key ``overall`` the whole is read
            }
            if len(score.dimensions) == 1:
                dimensions = dict.fromkeys(score.dimensions, adaptive_score.score)
            known.append(replace(score, overall=adaptive_score.score, dimensions=dimensions))
        return known


async def evaluate_adaptively(
    evaluator: Evaluator,
    examples: Sequence[Example],
    *,
    tolerance: float | None = None,
    cuts: Sequence[float] = (),
    soft: bool = True,
    on_examples: Callable[[int, int], None] | None = None,
) -> AdaptiveEvaluation:
    """Ask the questions of a checklist until the rest cannot matter, example by example.

    Every question is a call of its own. The questions on one example follow one another, so that a prompt cache holds.
    Checks, which cost nothing, come first, and then the heaviest questions, which narrow the score most.

    Args:
        evaluator: With the checklist and its weights; questions of weight 0 are not asked.
        examples: To be scored.
        tolerance: Largest error that a score may have, in [0, 1]; None sets no such rule.
        cuts: Scores in [0, 1]; whether an example reaches each of them is to be settled.
        soft: Score from P(yes), or from the yes/no answers.
        on_examples: Called with the number of examples that are done, and of all examples.

    Raises:
        InputError: Neither a tolerance nor a cut was given, or one is out of range.
        BudgetExceededError: A cap was reached; the answers bought so far are in the store.
        ModelError: The endpoint refuses every call or is down.
    """
    if tolerance is None and not cuts:
        raise InputError("Say when to stop asking: give a tolerance, cuts, or both.")
    if not all(0 <= each <= 1 for each in (*cuts, tolerance or 0.0)):
        raise InputError("The tolerance and the cuts are scores, so they lie between 0 and 1.")
    judges = {each.id: _for_one(evaluator, each) for each in evaluator.checklist.questions}
    weights = [_weights(evaluator.checklist, example) for example in examples]

    first = next((judges[each] for each in (weights[0] if examples else ()) if judges[each].checklist.asked), None)
    if first is not None:
        await first.settle(examples)  # also where the model answers nothing about the first

    async def score_one(place: int) -> tuple[AdaptiveScore, list[Verdict]]:
        return await _one(judges, weights[place], examples[place], tolerance, cuts, soft=soft)

    workers = evaluator.gateway.concurrency(evaluator.model)
    found = await all_together(range(len(examples)), score_one, workers, on_examples)
    scores = tuple(score for score, _ in found)
    verdicts = tuple(verdict for _, some in found for verdict in some)
    repeat = evaluator.judging.repeat
    unasked_calls = [repeat * (len(each) - score.asked) for each, score in zip(weights, scores, strict=True)]
    complete = [place for place, score in enumerate(scores) if score.ended != "missing"]
    return AdaptiveEvaluation(
        scores=scores,
        verdicts=verdicts,
        asked=len(verdicts),
        saved=sum(unasked_calls[place] for place in complete),
        missing=len(scores) - len(complete),
        not_asked=sum(unasked_calls),
    )


def _for_one(evaluator: Evaluator, question: Question) -> Evaluator:
    one = copy(evaluator)
    one.checklist = evaluator.checklist.model_copy(update={"questions": (question,), "section_weights": {}})
    return one


def _weights(checklist: Checklist, example: Example) -> dict[str, float]:
    """Return the weights above 0 of the example's section, in the order of asking."""
    given = checklist.weights(checklist.section_of(example.metadata))
    free = {each.id for each in checklist.computed}
    asked = sorted((each.id for each in checklist.questions), key=lambda each: (each not in free, -given[each]))
    return {question: given[question] for question in asked if given[question] > 0}


async def _one(
    judges: Mapping[str, Evaluator],
    weights: Mapping[str, float],
    example: Example,
    tolerance: float | None,
    cuts: Sequence[float],
    *,
    soft: bool,
) -> tuple[AdaptiveScore, list[Verdict]]:
    total = sum(weights.values())
    values = {question: worth(judges[question].checklist, soft=soft) for question in weights}
    verdicts: list[Verdict] = []
    known = lost = answered = 0.0
    low, high = 0.0, 1.0
    ended: Ended = "all"
    for asked, (question, weight) in enumerate(weights.items(), 1):
        some = await judges[question].judge([example])
        verdicts += some
        value = complete_mean([values[question](verdict) for verdict in some])
        if value is None:
            return AdaptiveScore(example.id, None, low, high, asked, "missing"), verdicts
        known += weight * value
        lost += weight * (1.0 - value)
        answered += weight
        low = known / total
        if asked == len(weights):
            high = low
            break
        high = 1.0 - lost / total
        stop = _ended(low, high, tolerance, cuts)
        if stop:
            ended = stop
            break
    told = _told(known / answered, low, high, tolerance)
    return AdaptiveScore(example.id, told, low, high, asked, ended), verdicts


def _ended(
    low: float, high: float, tolerance: float | None, cuts: Sequence[float]
) -> Literal["tolerance", "cuts"] | None:
    if tolerance is not None and high - low <= 2 * tolerance + _ROUNDING:
        return "tolerance"
    reached = [passes(np.array([low, high]), cut) for cut in cuts]
    if reached and all(lowest == highest for lowest, highest in reached):
        return "cuts"
    return None


def _told(mean: float, low: float, high: float, tolerance: float | None) -> float:
    """Return the mean of the answers so far, moved as little as keeps every possible score within the tolerance."""
    if tolerance is not None and high - low <= 2 * tolerance + _ROUNDING:
        low, high = high - tolerance, low + tolerance
        if low > high:  # rounding
            low = high = (low + high) / 2
    return min(max(mean, low), high)
