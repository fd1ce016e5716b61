"""What learning questions takes, before anything is bought: the most there can be, and what such runs took."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from ...agents.questions.comment_questions import MOST_QUESTIONS, MOST_REMARKS
from ...prompts.comments import one_line
from .choice import OWN_CASES
from .learner import FOLDS
from .proposers import BESIDE_EACH, DESCRIBED, KINDS_FOR_ONE, READ_FOR_ONE
from .racing import FEWEST_REJECTED, SCREENED, SPARE, STEPS, left_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...prompts.examples import Example

WRITTEN, CANDIDATES, CASES, RACED = 7.0, 5.0, 9.0, 0.5
"""Calls of the writer for a comment, candidates that come of it, first examples that each is tried on, and the share of the
candidates that are raced, as measured on the made-up data of ``experiments/measured/learned_questions.py``."""
SHARED = 1.5
"""Verdicts that the folds of a cross-fitted run ask for together, for each that one race on all examples would."""
REJECTED = 0.4
"""Share of the examples that people like less than most, as a rule."""


def calls_at_most(
    halves: Sequence[Sequence[Example]], test: int, *, most: int, rounds: int, dimensions: int, waiting: int, asked: int
) -> int:
    """Calls beyond which learning cannot go.

    Args:
        halves: The examples that questions are learned from: two are cross-fitted, one is tested on others.
        test: Examples on which the questions that are kept are judged besides.
        most: Questions that may join.
        rounds: How often comments are read.
        dimensions: Rated dimensions.
        waiting: Candidates of earlier runs.
        asked: Calls for one question on one example.
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
    race = candidates * first + _raced(min(candidates, SPARE * most * len(halves)), every, most, dimensions)
    races = 1 if len(halves) == 1 else 1 + FOLDS * len(halves)
    return ceil(writing + asked * min(races * race, candidates * every)) + asked * most * test


def usual_calls(halves: Sequence[Sequence[Example]], test: int, *, most: int, asked: int) -> float:
    """Calls that learning takes as a rule where people have commented; arguments as of :func:`calls_at_most`."""
    read = sum(len(_comments(examples)) for examples in halves)
    candidates = CANDIDATES * read
    race = _raced(min(RACED * candidates, SPARE * most * len(halves)), sum(map(len, halves)), most, 1, REJECTED)
    shared = 1.0 if len(halves) == 1 else SHARED
    return WRITTEN * read + asked * (CASES * candidates + shared * race + most * test)


def _raced(candidates: float, examples: int, most: int, dimensions: int, rejected: float = 1.0) -> float:
    """Verdicts of a race: of so many candidates, where that share of the examples is rejected on each dimension."""
    verdicts, before = 0.0, min(examples, SCREENED * dimensions)  # these were judged before the race
    for step, (share, *_) in enumerate(STEPS):
        poor = max(FEWEST_REJECTED, ceil(share * rejected * examples))
        so_far = min(examples, dimensions * (SCREENED + poor))
        verdicts += candidates * (so_far - before)
        candidates, before = min(candidates, left_after(step, most)), so_far
    return verdicts + candidates * (examples - before)


def _comments(examples: Sequence[Example]) -> set[str]:
    return {one_line(each.text) for example in examples for each in example.comment}
