"""The correlations for weighted items: one routine for the point estimate and for a block of resamples.

Spearman's, Kendall's and Pearson's as in the papers (BinEval §3.2); a weight says how often an item was drawn. scipy is
not imported: it costs about a second and 70 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .resampling import Kernel, Resampling, Vector, Weights, tied

Method = Literal["spearman", "kendall", "pearson"]

WORK = {"kendall": 6_000_000, "spearman": 50_000_000, "pearson": 50_000_000}
"""Largest items times resamples for which a bootstrap keeps the number of resamples asked for."""
FLOOR = {"kendall": 200, "spearman": 500, "pearson": 500}
"""It never uses fewer resamples than these (unless fewer were asked for): of 100,000 items the interval is .01 wide, and its ends
are some .0003 off with 500."""


def affordable(resampling: Resampling, method: Method, items: int) -> Resampling:
    """Fewer resamples where items times resamples exceed :data:`WORK`, never below :data:`FLOOR`."""
    if items == 0:
        return resampling
    return replace(resampling, resamples=min(resampling.resamples, max(FLOOR[method], WORK[method] // items)))


def correlation_kernel(method: Method, a: Vector, b: Vector) -> Kernel:
    """Correlation of `a` with `b`, each of shape (n,), for weights (n, resamples) → (resamples,).

    Kendall is tau-b. The result is NaN, and only there, where `a` or `b` is constant on the items with
    weight.

    Raises:
        InputError: If `method` is not spearman, kendall or pearson.
    """
    if method == "spearman":
        return _spearman(a, b)
    if method == "kendall":
        return _kendall(a, b)
    if method == "pearson":
        return _pearson(a, b)
    raise InputError(f"There is no correlation named {method!r}; choose spearman, kendall or pearson.")


class TieGroups:
    """The items in order of one variable, and where each run of equal values begins."""

    def __init__(self, values: Vector) -> None:
        distinct, self.group = np.unique(tied(values), return_inverse=True)
        self.order = np.argsort(self.group, kind="stable")
        self.number = len(distinct)
        sizes = np.bincount(self.group, minlength=self.number)
        self.first = np.cumsum(sizes) - sizes

    def shares(self, weights: Weights) -> Weights:
        """Weight of each distinct value, ascending; shape (distinct values, resamples)."""
        ordered = weights.take(self.order, axis=0)
        if self.number == len(ordered):
            return ordered
        shares: Weights = np.add.reduceat(ordered, self.first, axis=0)
        return shares


def _spearman(a: Vector, b: Vector) -> Kernel:
    groups = (TieGroups(a), TieGroups(b))

    def centred_ranks(ties: TieGroups, weights: Weights) -> tuple[Weights, Vector]:
        share = ties.shares(weights)
        ranks = np.cumsum(share, axis=0)
        half = ranks[-1] / 2
        ranks -= share / 2
        ranks -= half  # half-integers: exact, so a zero variance is exactly zero
        variance = np.einsum("kr,kr,kr->r", share, ranks, ranks)
        return ranks.take(ties.group, axis=0), variance

    def kernel(weights: Weights) -> Vector:
        ranks_a, variance_a = centred_ranks(groups[0], weights)
        ranks_b, variance_b = centred_ranks(groups[1], weights)
        ranks_a *= weights
        covariance = np.einsum("ir,ir->r", ranks_a, ranks_b)
        return _ratio(covariance, variance_a * variance_b)

    return kernel


def _kendall(a: Vector, b: Vector) -> Kernel:
    """Pairs not tied, less twice the discordant ones, as in Knight's way (JASA 61, 1966), for weights.

    Discordant pairs are counted bit by bit of the rank in the variable with fewer different values, so that five grades
    take three rounds.
    """
    ties_a, ties_b = sorted((TieGroups(a), TieGroups(b)), key=lambda each: -each.number)
    # One number for both; below 2**40, so that `tied` leaves it alone, for up to a million items.
    ties_both = TieGroups(ties_a.group * (ties_b.group.max(initial=0) + 1.0) + ties_b.group)
    rounds = _rounds(ties_b.group[ties_both.order])

    def tied_pairs(ties: TieGroups, weights: Weights) -> Vector:
        share = ties.shares(weights)
        pairs: Vector = np.einsum("kr,kr->r", share, share)
        return pairs

    def kernel(weights: Weights) -> Vector:
        total = weights.sum(axis=0) ** 2  # twice the number of pairs, each item with itself counted in; all are
        tied_a, tied_b, tied_both = (tied_pairs(ties, weights) for ties in (ties_a, ties_b, ties_both))
        untied = (total - tied_a - tied_b + tied_both) / 2
        discordant = _discordant(rounds, weights.take(ties_both.order, axis=0))
        return _ratio(untied - 2 * discordant, (total - tied_a) * (total - tied_b) / 4)

    return kernel


@dataclass(frozen=True, slots=True)
class _Round:
    """The items whose values share all higher bits, and which of these have this one: their values are the larger ones."""

    larger: NDArray[np.intp]
    """Items with the bit, in groups of the same higher bits, in order."""
    smaller: NDArray[np.intp]
    """Items without it."""
    before: NDArray[np.intp]
    """For each of `smaller`: how many of `larger` there are up to it."""
    outside: NDArray[np.intp]
    """For each of `smaller`: how many of `larger` there are before its group."""


def _rounds(values: NDArray[np.intp]) -> list[_Round]:
    """A round for each bit of whole numbers; they do not depend on weights."""
    rounds = []
    for bit in range(int(values.max(initial=0)).bit_length()):
        group = values >> (bit + 1)
        order = np.argsort(group, kind="stable")
        has_bit = (values[order] >> bit & 1).astype(bool)
        so_far, groups = np.cumsum(has_bit), group[order]
        outside = np.concatenate([[0], so_far])[np.searchsorted(groups, groups)]
        rounds.append(_Round(order[has_bit], order[~has_bit], so_far[~has_bit], outside[~has_bit]))
    return rounds


def _discordant(rounds: Sequence[_Round], weights: Weights) -> Vector:
    """Weighted number of pairs in which the earlier value is the larger one; weights (n, resamples) in that order."""
    pairs = np.zeros(weights.shape[1])
    for each in rounds:
        up_to = np.zeros((len(each.larger) + 1, weights.shape[1]))
        np.cumsum(weights.take(each.larger, axis=0), axis=0, out=up_to[1:])
        earlier = up_to.take(each.before, axis=0)
        earlier -= up_to.take(each.outside, axis=0)
        earlier *= weights.take(each.smaller, axis=0)
        pairs += earlier.sum(axis=0)
    return pairs


def _pearson(a: Vector, b: Vector) -> Kernel:
    x, y = (_standardised(tied(values)) for values in (a, b))
    design = np.vstack([x, y, x * x, y * y, x * y])

    def kernel(weights: Weights) -> Vector:
        sum_x, sum_y, sum_xx, sum_yy, sum_xy = design @ weights
        total = weights.sum(axis=0)
        variance_x = _settled(sum_xx - sum_x**2 / total, x, weights)
        variance_y = _settled(sum_yy - sum_y**2 / total, y, weights)
        return _ratio(sum_xy - sum_x * sum_y / total, variance_x * variance_y)

    return kernel


def _standardised(values: Vector) -> Vector:
    centred: Vector = values - values.mean()
    scale = np.abs(centred).max(initial=0.0)
    return centred / scale if scale > 0 else centred


def _settled(variance: Vector, values: Vector, weights: Weights) -> Vector:
    """Set a variance that is only rounding error to exactly 0, by looking whether the values really vary."""
    for column in np.flatnonzero(variance < 1e-9 * weights.sum(axis=0)):
        if np.ptp(values[weights[:, column] > 0]) == 0.0:
            variance[column] = 0.0
    return variance


def _ratio(covariance: Vector, variances: Vector) -> Vector:
    """covariance / sqrt(variances) within [-1, 1]; NaN where a variance is zero."""
    defined = variances > 0
    value = np.full(len(covariance), np.nan)
    value[defined] = np.clip(covariance[defined] / np.sqrt(variances[defined]), -1.0, 1.0)
    return value
