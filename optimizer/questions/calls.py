"""What learning questions takes, before anything is bought: the most there can be, and what such runs took."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from ...agents.questions.comment_questions import MOST_QUESTIONS, MOST_REMARKS
from ...prompts.comments import one_line
from .choice import OWN_CASES
from .proposers import BESIDE_EACH, DESCRIBED, KINDS_FOR_ONE, READ_FOR_ONE
from .racing import FEWEST_REJECTED, SCREENED, SPARE, STEPS, left_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...prompts.examples import Example

WRITTEN, CANDIDATES, CASES, RACED = 4.0, 3.5, 9.0, 0.4
"""Calls of the writer for a comment, candidates that come of it, first examples that each is tried on, and the share of the
candidates that are raced, as measured on the made-up data of ``experiments/measured/learned_questions.py``."""
REJECTED = 0.4
"""Share of the examples that people like less than most, as a rule."""


def calls_at_most(
    halves: Sequence[Sequence[Example]], test: int, *, most: int, rounds: int, dimensions: int, waiting: int, asked: int
) -> int:
    """Calls beyond which learning cannot go.

    Args:
        halves: The examples that questions are learned from, each half by itself; another one only tests.
        test: Examples on which the questions that are kept are judged besides.
        most: Questions that may join.
        rounds: How often comments are read.
        dimensions: Rated dimensions.
        waiting: Candidates of earlier runs.
        asked: Calls for one question on one example.
    """
    of_remark = MOST_QUESTIONS * (1 + MOST_QUESTIONS)  # questions, and more general ones beside each
    calls = 0.0
    for examples in halves:
        read = min(len(_comments(examples)), READ_FOR_ONE * most * rounds)
        alone, beside = read * (1 + MOST_REMARKS), read * BESIDE_EACH
        writing = (alone + beside) * (1 + MOST_QUESTIONS) + min(2 * DESCRIBED, len(examples)) * dimensions
        candidates = (alone + beside) * of_remark + KINDS_FOR_ONE * most * dimensions + waiting
        first = min(SCREENED * dimensions + max(SCREENED, OWN_CASES), len(examples))
        races = rounds + 1 + dimensions
        calls += writing + asked * (
            candidates * first + races * _raced(min(candidates, SPARE * most), len(examples), most, dimensions)
        )
    return ceil(calls) + asked * most * (_crossed(halves) + test)


def usual_calls(halves: Sequence[Sequence[Example]], test: int, *, most: int, asked: int) -> float:
    """Calls that learning takes as a rule where people have commented; arguments as of :func:`calls_at_most`."""
    calls = 0.0
    for examples in halves:
        read = len(_comments(examples))
        candidates = CANDIDATES * read
        raced = min(RACED * candidates, SPARE * most)
        calls += WRITTEN * read + asked * (CASES * candidates + _raced(raced, len(examples), most, 1, REJECTED))
    return calls + asked * most * (_crossed(halves) + test)


def _crossed(halves: Sequence[Sequence[Example]]) -> int:
    """Examples on which the questions of the other half are tested."""
    return sum(map(len, halves)) if len(halves) > 1 else 0


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
