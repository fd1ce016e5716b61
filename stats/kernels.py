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

KENDALL_WORK = 6_000_000
"""Largest items times resamples for which Kendall's bootstrap keeps the number of resamples asked for."""
KENDALL_FLOOR = 200
"""Kendall's bootstrap never uses fewer resamples than this (unless fewer were asked for)."""


def affordable(resampling: Resampling, method: Method, items: int) -> Resampling:
    """Fewer resamples for Kendall where items times resamples exceed 6 million, never below 200."""
    if method != "kendall" or items == 0:
        return resampling
    return replace(resampling, resamples=min(resampling.resamples, max(KENDALL_FLOOR, KENDALL_WORK // items)))


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
    """The items in order of one variable, and where each run of equal values ends."""

    def __init__(self, values: Vector) -> None:
        distinct, self.group = np.unique(tied(values), return_inverse=True)
        self.order = np.argsort(self.group, kind="stable")
        self.last = np.cumsum(np.bincount(self.group, minlength=len(distinct))) - 1

    def cumulated(self, weights: Weights) -> Weights:
        """Weight up to and including each distinct value; shape (distinct values, resamples)."""
        ordered = weights[self.order]
        np.cumsum(ordered, axis=0, out=ordered)
        return ordered[self.last]


def _spearman(a: Vector, b: Vector) -> Kernel:
    groups = (TieGroups(a), TieGroups(b))

    def centred_ranks(ties: TieGroups, weights: Weights) -> tuple[Weights, Vector]:
        upper = ties.cumulated(weights)
        share = np.diff(upper, axis=0, prepend=0.0)
        ranks = upper - share / 2 - upper[-1] / 2  # half-integers: exact, so a zero variance is exactly zero
        variance = np.einsum("kr,kr,kr->r", share, ranks, ranks)
        return ranks[ties.group], variance

    def kernel(weights: Weights) -> Vector:
        ranks_a, variance_a = centred_ranks(groups[0], weights)
        ranks_b, variance_b = centred_ranks(groups[1], weights)
        ranks_a *= weights
        covariance = np.einsum("ir,ir->r", ranks_a, ranks_b)
        return _ratio(covariance, variance_a * variance_b)

    return kernel


def _kendall(a: Vector, b: Vector) -> Kernel:
    """Knight's way (JASA 61, 1966), for weights: pairs not tied, less twice the discordant ones."""
    ties_a, ties_b = TieGroups(a), TieGroups(b)
    # One number for both; below 2**40, so that `tied` leaves it alone, for up to a million items.
    ties_both = TieGroups(ties_a.group * (ties_b.group.max(initial=0) + 1.0) + ties_b.group)
    merges = _merges(ties_b.group[ties_both.order])

    def tied_pairs(ties: TieGroups, weights: Weights) -> Vector:
        share = np.diff(ties.cumulated(weights), axis=0, prepend=0.0)
        pairs: Vector = np.einsum("kr,kr->r", share, share)
        return pairs

    def kernel(weights: Weights) -> Vector:
        total = weights.sum(axis=0) ** 2  # twice the number of pairs, each item with itself counted in; all are
        tied_a, tied_b, tied_both = (tied_pairs(ties, weights) for ties in (ties_a, ties_b, ties_both))
        untied = (total - tied_a - tied_b + tied_both) / 2
        discordant = _discordant(merges, weights[ties_both.order])
        return _ratio(untied - 2 * discordant, (total - tied_a) * (total - tied_b) / 4)

    return kernel


@dataclass(frozen=True, slots=True)
class _Merge:
    """One round of a merge sort: which items of left halves stand before and after each item of a right half."""

    left: NDArray[np.intp]
    """Items of the left halves, block by block, ascending."""
    right: NDArray[np.intp]
    """Items of the right halves."""
    before: NDArray[np.intp]
    """For each of `right`: how many of `left` there are up to it."""
    all: NDArray[np.intp]
    """For each of `right`: how many of `left` there are up to the end of its block."""


def _merges(values: NDArray[np.intp]) -> list[_Merge]:
    """The rounds in which a bottom-up merge sort puts whole numbers in order; they do not depend on weights."""
    n = len(values)
    place = np.arange(n)
    rounds = []
    width = 1
    while width < n:
        block = place // (2 * width)
        order = np.lexsort((place, values, block))  # of equals, the left one first
        from_left = order // width % 2 == 0
        so_far = np.cumsum(from_left)
        ends = np.minimum((block[order] + 1) * 2 * width, n) - 1
        rights = ~from_left
        rounds.append(_Merge(order[from_left], order[rights], so_far[rights], so_far[ends][rights]))
        width *= 2
    return rounds


def _discordant(merges: Sequence[_Merge], weights: Weights) -> Vector:
    """Weighted number of pairs in which the earlier value is the larger one; weights (n, resamples) in that order."""
    pairs = np.zeros(weights.shape[1])
    for merge in merges:
        lefts = np.zeros((len(merge.left) + 1, weights.shape[1]))
        np.cumsum(weights[merge.left], axis=0, out=lefts[1:])
        larger = lefts[merge.all]
        larger -= lefts[merge.before]
        pairs += np.einsum("ir,ir->r", weights[merge.right], larger)
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
