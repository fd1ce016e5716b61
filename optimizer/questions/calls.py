"""What learning questions takes, before anything is bought: the most there can be, and what such runs took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agents.questions.comment_questions import MOST_QUESTIONS, MOST_REMARKS
from ...prompts.comments import one_line
from .choice import OWN_CASES
from .racing import SCREENED, SPARE
from .proposers import BESIDE_EACH, DESCRIBED, KINDS_FOR_ONE, READ_FOR_ONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...prompts.examples import Example

WRITTEN, CANDIDATES, CASES = 4.0, 3.5, 9.0
"""Calls of the writer for a comment, candidates that come of it, and first examples that each is tried on, as measured on
the made-up data of ``experiments/measured/learned_questions.py``."""


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
    calls = 0
    for examples in halves:
        read = min(len(_comments(examples)), READ_FOR_ONE * most * rounds)
        alone, beside = read * (1 + MOST_REMARKS), read * BESIDE_EACH
        writing = (alone + beside) * (1 + MOST_QUESTIONS) + min(2 * DESCRIBED, len(examples)) * dimensions
        candidates = (alone + beside) * of_remark + KINDS_FOR_ONE * most * dimensions + waiting
        first = min(SCREENED * dimensions + max(SCREENED, OWN_CASES), len(examples))
        whole = min(candidates, SPARE * most * (rounds + 1 + dimensions))
        calls += writing + asked * (candidates * first + whole * len(examples))
    return calls + asked * most * (sum(map(len, halves)) + test)


def usual_calls(halves: Sequence[Sequence[Example]], test: int, *, most: int, asked: int) -> float:
    """Calls that learning takes as a rule where people have commented; arguments as of :func:`calls_at_most`."""
    calls = 0.0
    for examples in halves:
        read = len(_comments(examples))
        candidates = CANDIDATES * read
        calls += WRITTEN * read + asked * (CASES * candidates + min(candidates, SPARE * most) * len(examples))
    return calls + asked * most * (sum(map(len, halves)) + test)


def _comments(examples: Sequence[Example]) -> set[str]:
    return {one_line(each.text) for example in examples for each in example.comment}
