"""What a learner sees: score differences of pairs; which of them are held out, and what weights get right on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

SCORE_TIE = 1e-9
"""Two outputs tie in the score when their weighted means (scores in [0, 1]) differ by no more than this."""
CONFIDENCE = 0.95
"""Of all intervals."""
ACCURACY_RESAMPLES = 2_000
"""Resamples behind an interval of a held-out accuracy."""
ABOUT_AS_GOOD = 0.5
"""Within this many standard errors of the best, cross-validation prefers the more careful option."""


def codes_of(names: Sequence[str]) -> Codes:
    """Number the names 0, 1, ... in order of first appearance; shape (names,)."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.int64)


def compact(groups: Codes) -> Codes:
    """The numbers that occur as 0, 1, ..., in ascending order; shape as given."""
    codes: Codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return codes


@dataclass(frozen=True, eq=False)
class PairDifferences:
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

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> PairDifferences:
        """The pairs in ``rows`` (indices or a mask)."""
        return PairDifferences(
            self.differences[rows],
            self.is_tie[rows],
            self.groups[rows],
            self.sections[rows],
            self.counts[rows],
        )

    def reweighted(self, counts: Floats) -> PairDifferences:
        """The same pairs, counted ``counts`` (shape (pairs,)) times; no score is copied."""
        return replace(self, counts=counts)

    def decided(self) -> tuple[Floats, Floats]:
        """Differences (pairs, tests) and counts (pairs,) of the pairs in which people preferred one output."""
        if not self.is_tie.any():
            return self.differences, self.counts
        return self.differences[~self.is_tie], self.counts[~self.is_tie]

    def with_ties_as_halves(self) -> tuple[Floats, Floats]:
        """As ``decided``, and each data tie as half a win for either side: two mirrored rows that count one half."""
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


@dataclass(frozen=True, eq=False)
class PairFold:
    """Rows to learn from and rows to be judged on; no group is in both."""

    development: NDArray[np.intp]
    test: NDArray[np.intp]


def grouped_folds(groups: Codes, folds: int, seed: int) -> list[PairFold]:
    """Cut the pairs into folds of about equal size, whole groups at a time; each fold is the test part once.

    Args:
        groups: Shape (pairs,), group number of each pair.
        folds: At least 2; lowered to the number of groups.
        seed: Same seed, same folds.

    Raises:
        InputError: There are fewer than two groups, so nothing can be held out.
    """
    place = _places(groups, seed)
    folds = min(folds, int(groups.max()) + 1)
    fold = np.minimum((place * folds).astype(np.int64), folds - 1)
    splits = [PairFold(np.flatnonzero(fold != part), np.flatnonzero(fold == part)) for part in range(folds)]
    return [split for split in splits if len(split.test) and len(split.development)]


def single_split(groups: Codes, test_share: float, seed: int) -> list[PairFold]:
    """One split with about ``test_share`` of the pairs held out, whole groups at a time.

    Raises:
        InputError: There are fewer than two groups, or one side would be empty.
    """
    held_out = _places(groups, seed) < test_share
    if held_out.all() or not held_out.any():
        raise InputError(f"Holding out a share of {test_share} of these pairs leaves one side empty; choose another.")
    return [PairFold(np.flatnonzero(~held_out), np.flatnonzero(held_out))]


def _places(groups: Codes, seed: int) -> Floats:
    """Where each pair's group lies in a random order of the groups, in (0, 1); shape (pairs,)."""
    count = require_groups(groups)
    order = np.random.default_rng(seed).permutation(count)
    sizes = np.bincount(groups, minlength=count)[order]
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    place = np.empty(count)
    place[order] = middle
    located: Floats = place[groups]
    return located


def require_groups(groups: Codes) -> int:
    """How many groups there are, numbered from 0.

    Raises:
        InputError: There are fewer than two, so nothing can be held out.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    if count < 2:
        if len(groups) == 1:
            raise InputError("There is only one pair or rated output with all its scores, so none can be held out.")
        raise InputError(
            f"All {len(groups)} pairs or rated outputs belong to one group, so none can be held out. Those of one "
            "'metadata.document', or without one with the same 'input', are one group unless each line names a 'group'; give "
            "different groups to those that do not share a context."
        )
    return count


def resample_shares(credits: Floats, groups: Codes, resamples: int, seed: int) -> Floats:
    """Bootstrap the shares of right pairs of several learners together, whole groups at a time.

    Groups that earn the same are drawn together (a multinomial over distinct outcomes), so the cost depends
    on how many different outcomes there are and not on the number of pairs.

    Args:
        credits: Shape (pairs, learners): 1 right, 1/2 score tie, 0 wrong.
        groups: Shape (pairs,).
        resamples: Number of resamples.
        seed: Same seed, same draws.

    Returns:
        Shape (resamples, learners).
    """
    used, codes = np.unique(groups, return_inverse=True)
    earned = np.column_stack(
        [np.bincount(codes, weights=column, minlength=len(used)) for column in (*credits.T, np.ones(len(codes)))]
    )
    outcomes, times = np.unique(earned, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    block = max(1, 4_000_000 // len(outcomes))
    shares = []
    for start in range(0, resamples, block):
        draws = rng.multinomial(len(used), times / times.sum(), size=min(block, resamples - start))
        totals = draws @ outcomes
        shares.append(totals[:, :-1] / totals[:, -1:])
    return np.concatenate(shares)


def paired_standard_error(differences: Floats, groups: Codes) -> float:
    """Standard error of a mean of differences between two learners' credits, groups being independent.

    Args:
        differences: Shape (pairs,), credit of one learner minus credit of the other.
        groups: Shape (pairs,).
    """
    sums = np.bincount(compact(groups), weights=differences - differences.mean())
    count = len(sums)
    if count < 2:
        return float("inf")
    return float(np.sqrt((sums**2).sum() * count / (count - 1)) / len(differences))


def close_to_best(credits: Floats, groups: Codes) -> tuple[int, list[int]]:
    """The option with the best share of right pairs, and all (it included) that are about as good.

    Args:
        credits: Shape (options, pairs).
        groups: Shape (pairs,).
    """
    shares = credits.mean(axis=1)
    best = int(np.argmax(shares))
    close = [
        option
        for option in range(len(credits))
        if option == best
        or shares[best] - shares[option]
        <= ABOUT_AS_GOOD * paired_standard_error(credits[best] - credits[option], groups)
    ]
    return best, close


def interval(samples: Floats) -> tuple[Floats, Floats]:
    """Percentile interval along the first axis of ``samples``, with the coverage :data:`CONFIDENCE`."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(samples, [tail, 1.0 - tail], axis=0)
    return low, high


def interval_of_means(items: Floats, means: Floats, groups: Codes, centre: float) -> tuple[Floats, Floats]:
    """:func:`interval` of resampled means, and one of some width where all items are alike and no resample differs.

    There the share of items on the other side of ``centre`` may be as high as Clopper and Pearson's interval (Biometrika 26,
    1934) of none among the groups says: two pairs of two are no certainty.

    Args:
        items: Shape (pairs, columns).
        means: Shape (resamples, columns).
        groups: Shape (pairs,): those of one group count as one.
        centre: Items have a counterpart as far on its other side.
    """
    low, high = interval(means)
    unseen = 1.0 - ((1.0 - CONFIDENCE) / 2.0) ** (1.0 / len(np.unique(groups)))
    alike, reached = np.ptp(items, axis=0) == 0, items[0] + unseen * 2.0 * (centre - items[0])
    return (
        np.where(alike, np.minimum(items[0], reached), low),
        np.where(alike, np.maximum(items[0], reached), high),
    )
