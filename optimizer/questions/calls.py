"""The most calls that learning questions can take, known before anything is bought."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from ...agents.comment_questions import MOST_QUESTIONS, MOST_REMARKS
from ...prompts.examples import Example
from ...prompts.human_feedback import one_line
from .choice import OWN_CASES
from .learner import FOLDS
from .presentation import COMPARED, COMPARED_ON
from .proposers import BESIDE_EACH, DESCRIBED, KINDS_FOR_ONE, READ_FOR_ONE
from .racing import FEWEST_REJECTED, SCREENED, STEPS, left_after, places


def calls_at_most(
    halves: Sequence[Sequence[Example]],
    test: int,
    *,
    most: int,
    rounds: int,
    dimensions: int,
    waiting: int,
    asked: int,
    grouped: bool = False,
    views: int = 1,
) -> int:
    """Calls beyond which learning cannot go.

    Args:
        halves: The examples that questions are learned from: two are cross-fitted, one is tested on others.
        test: Examples on which the questions that are kept are judged besides.
        most: Questions that may join.
        rounds: How often comments are read.
        dimensions: Rated dimensions.
        waiting: Candidates of earlier runs.
        asked: Calls for one question on one example; of all questions of a group or a judge, where they are
            ``grouped``.
        grouped: Whether several questions are a call: a learned judge is then asked anew.
        views: In how many ways a question may be asked: with everything in view, of the output alone, for a quote.
    """
    of_remark = MOST_QUESTIONS * (1 + MOST_QUESTIONS)  # questions, and more general ones beside each
    every = sum(map(len, halves))
    writing, candidates = 0.0, 0.0
    for examples in halves:
        read = min(len(_comments(examples)), READ_FOR_ONE * most * rounds)
        alone, beside = read * (1 + MOST_REMARKS), read * BESIDE_EACH
        writing += (alone + beside) * (1 + MOST_QUESTIONS) + min(2 * DESCRIBED, len(examples)) * dimensions
        candidates += (alone + beside) * of_remark + KINDS_FOR_ONE * most * dimensions + waiting
    first = min(SCREENED * dimensions + max(SCREENED, OWN_CASES), every)
    race = candidates * first + _raced(min(candidates, places(len(halves), most)), every, most, dimensions)
    races, once = _judges(halves), _compared(candidates, every, views, dimensions)
    judged = asked * races * every if grouped else 0
    return ceil(writing + asked * min(once + races * race, views * candidates * every)) + asked * most * test + judged


def _judges(halves: Sequence[Sequence[Example]]) -> int:
    """Judges that are learned: one to keep, and one for each fold."""
    return 1 if len(halves) == 1 else 1 + FOLDS * len(halves)


def _compared(candidates: float, examples: int, views: int, dimensions: int) -> float:
    """Verdicts by which so many ways to ask are compared."""
    poor = max(FEWEST_REJECTED, ceil(COMPARED_ON * examples))
    return views * min(COMPARED, candidates) * min(examples, dimensions * (SCREENED + poor) + OWN_CASES)


def _raced(candidates: float, examples: int, most: int, dimensions: int) -> float:
    """Verdicts of a race of so many candidates, where all examples are rejected on each dimension."""
    verdicts, before = 0.0, min(examples, SCREENED * dimensions)  # these were judged before the race
    for step, (share, *_) in enumerate(STEPS):
        poor = max(FEWEST_REJECTED, ceil(share * examples))
        so_far = min(examples, dimensions * (SCREENED + poor))
        verdicts += candidates * (so_far - before)
        candidates, before = min(candidates, left_after(step, most)), so_far
    return verdicts + candidates * (examples - before)


def _comments(examples: Sequence[Example]) -> set[str]:
    return {one_line(each.text) for example in examples for each in example.comment}
