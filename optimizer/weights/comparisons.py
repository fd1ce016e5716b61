"""What a learner sees: score differences of pairs, and what a set of weights gets right on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

SCORE_TIE = 1e-9
"""Two outputs tie in the score when their weighted means (scores in [0, 1]) differ by no more than this."""


def codes_of(names: Sequence[str]) -> Codes:
    """Number the names 0, 1, ... in order of first appearance; shape (names,)."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Pairs of outputs as score differences; one row a pair, one column a test."""

    differences: Floats
    """Shape (pairs, tests), in [-1, 1]: scores of the preferred output minus scores of the other (a - b for
    a data tie).
    """
    is_tie: NDArray[np.bool_]
    """Shape (pairs,): people called it a tie. Such a pair has no right order and is in no accuracy."""
    groups: Codes
    """Shape (pairs,): pairs of one context share a number and never straddle development and test."""
    sections: Codes
    """Shape (pairs,): number of the pair's section (or data set); 0 everywhere for global weights."""
    counts: Floats
    """Shape (pairs,): how often each pair counts; 1, or the draws of a bootstrap resample."""

    def __len__(self) -> int:
        """Number of pairs, data ties included."""
        return len(self.differences)

    @property
    def tests(self) -> int:
        """Number of tests."""
        return int(self.differences.shape[1])

    @property
    def decided_pairs(self) -> int:
        """Number of pairs in which people preferred one output (rows, whatever their counts)."""
        return len(self) - int(self.is_tie.sum())

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Comparisons:
        """The pairs in ``rows`` (indices or a mask)."""
        return Comparisons(
            self.differences[rows],
            self.is_tie[rows],
            self.groups[rows],
            self.sections[rows],
            self.counts[rows],
        )

    def reweighted(self, counts: Floats) -> Comparisons:
        """The same pairs, counted ``counts`` (shape (pairs,)) times; no score is copied."""
        return replace(self, counts=counts)

    def decided(self) -> tuple[Floats, Floats]:
        """Differences (pairs, tests) and counts (pairs,) of the pairs in which people preferred one
        output.
        """
        if not self.is_tie.any():
            return self.differences, self.counts
        return self.differences[~self.is_tie], self.counts[~self.is_tie]

    def with_ties_as_halves(self) -> tuple[Floats, Floats]:
        """As ``decided``, and each data tie as half a win for either side: two mirrored rows that count one
        half.
        """
        if not self.is_tie.any():
            return self.differences, self.counts
        won, won_counts = self.decided()
        tied, half = self.differences[self.is_tie], self.counts[self.is_tie] / 2
        return np.concatenate([won, tied, -tied]), np.concatenate([won_counts, half, half])


def margins_to_credits(margins: Floats) -> Floats:
    """Turn margins of normalised weights into credits: 1 right, 1/2 for a score tie, 0 wrong; any shape."""
    return np.where(margins > SCORE_TIE, 1.0, np.where(margins < -SCORE_TIE, 0.0, 0.5))


def share_right(differences: Floats, counts: Floats, weights: Floats) -> float:
    """Share of pairs whose preferred output has the higher score, a score tie being half (LMUnit eq. 8).

    Args:
        differences: Shape (pairs, tests).
        counts: Shape (pairs,), with a positive sum.
        weights: Shape (tests,), not negative, with a positive sum; their scale does not matter.
    """
    credits = margins_to_credits(differences @ (weights / weights.sum()))
    return float(counts @ credits / counts.sum())
