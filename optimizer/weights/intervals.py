"""How sure weights and accuracies are: bootstrap over groups, the ranking of tests, and pairs needed to tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from .evidence import Codes, Floats, compact

CONFIDENCE = 0.95
"""Coverage of all intervals."""
ACCURACY_RESAMPLES = 2_000
"""Resamples behind an interval of a held-out accuracy."""
ABOUT_AS_GOOD = 0.5
"""Within this many standard errors of the best, cross-validation prefers the more careful option."""
Z_TWO_SIDED_05 = 1.959964
Z_POWER_80 = 0.841621
MOST_FAILED = 0.1
"""With a larger share of resamples on which nothing could be learned, no interval is given."""


def too_few(resamples: int) -> str | None:
    """The reason why so many resamples make no interval; None where they make one."""
    if resamples == 1:
        return "one resample makes no interval; ask for two or more"
    return None if resamples else "no resamples were asked for"


@dataclass(frozen=True, eq=False)
class WeightSamples:
    """Weights learned again on resamples of the pairs."""

    overall: Floats
    """Shape (resamples, tests)."""
    by_section: Floats | None
    """Shape (resamples, sections, tests), or None."""
    failed: int
    """Resamples on which the learner found no weights; they are not among the others."""

    @property
    def usable(self) -> bool:
        """Whether few enough resamples failed for an interval."""
        total = len(self.overall) + self.failed
        return len(self.overall) >= 2 and self.failed <= MOST_FAILED * total


@dataclass(frozen=True)
class RankOfTest:
    """Where one test stands among the others."""

    rank: int
    """1 is the heaviest; equal weights share the better rank."""
    low: int
    """Best rank in the interval."""
    high: int
    """Worst rank in the interval."""
    first_share: float
    """Share of resamples in which it is the heaviest (equals share)."""


@dataclass(frozen=True)
class Stability:
    """How far the ranking of tests by weight survives resampling."""

    ranks: tuple[RankOfTest, ...]
    """One for each test, in the order of the tests."""
    kendall: float | None
    """Mean Kendall tau-b between the ranking and those of the resamples; None where a ranking is all ties."""
    reason: str | None = None
    """Why ``kendall`` is None."""


@dataclass(frozen=True)
class Power:
    """How many pairs would tell a difference from uniform weights (two-sided 5 % test, 80 % power)."""

    learner: str
    """Whose difference from uniform weights this is about."""
    observed: int | None
    """Pairs needed in all for the difference observed; None when there is none."""
    one_point: int | None
    """Pairs needed in all for a difference of one percentage point."""
    more: int | None
    """Pairs needed beyond those there are, for the difference observed; 0 when there are enough."""
    reason: str | None = None
    """Why a number is None."""


def bootstrap_counts(groups: Codes, resamples: int, seed: int) -> Iterator[Floats]:
    """Draw groups with replacement; yields how often each pair was drawn, shape (pairs,)."""
    codes = compact(groups)
    count = int(codes.max()) + 1
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = np.bincount(rng.integers(0, count, count), minlength=count)
        yield drawn[codes].astype(np.float64)


def rank_stability(weights: Floats, samples: Floats) -> Stability:
    """Compare the ranking of tests by ``weights`` (tests,) with those of ``samples`` (resamples, tests)."""
    ranks = _ranks(samples)
    low, high = interval(ranks.astype(np.float64))
    leaders = ranks == 1
    first = (leaders / leaders.sum(axis=1, keepdims=True)).mean(axis=0)
    now = _ranks(weights[None, :])[0]
    tests = tuple(
        RankOfTest(int(now[test]), int(np.floor(low[test])), int(np.ceil(high[test])), float(first[test]))
        for test in range(len(weights))
    )
    upper = np.triu_indices(len(weights), 1)
    signs = np.sign(now[upper[0]] - now[upper[1]])
    others = np.sign(ranks[:, upper[0]] - ranks[:, upper[1]])
    untied, others_untied = np.count_nonzero(signs), np.count_nonzero(others, axis=1)
    if len(weights) < 2 or untied == 0 or (others_untied == 0).any():
        return Stability(tests, None, "all weights are equal, so there is no ranking")
    return Stability(tests, float((others @ signs / np.sqrt(untied * others_untied)).mean()))


def _ranks(weights: Floats) -> Codes:
    """Rank of each weight in its row, 1 the heaviest, equal weights (to 1e-9) sharing the better rank."""
    rounded = np.round(weights, 9)
    ranks: Codes = 1 + (rounded[:, None, :] > rounded[:, :, None]).sum(axis=2)
    return ranks


def pairs_needed(learner: str, difference: float, standard_error: float, pairs: int) -> Power:
    """Pairs needed to tell a difference in held-out accuracy from 0 in a paired comparison.

    Args:
        learner: Whose difference from uniform weights it is.
        difference: Observed difference of shares, in [-1, 1].
        standard_error: Its standard error on the pairs held out, groups taken into account.
        pairs: Decided pairs in all; as many of them are assumed to be held out as now.
    """
    if not np.isfinite(standard_error):
        return Power(learner, None, None, None, "the held-out pairs are all of one group")
    if standard_error <= 0.0:
        alike = "both weightings order every held-out pair alike"
        same = "the difference is the same on every held-out pair, so how it varies is not known"
        return Power(learner, None, None, None, same if difference else alike)
    per_pair = (standard_error * (Z_TWO_SIDED_05 + Z_POWER_80)) ** 2 * pairs
    one_point = ceil(per_pair / 0.01**2)
    if abs(difference) < 1e-12:
        return Power(learner, None, one_point, None, "the observed difference is exactly 0")
    observed = ceil(per_pair / difference**2)
    return Power(learner, observed, one_point, max(0, observed - pairs))


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

    There the share of items on the other side of ``centre`` may be as high as Clopper and Pearson's interval
    (Biometrika 26, 1934) of none among the groups says: two pairs of two are no certainty.

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
