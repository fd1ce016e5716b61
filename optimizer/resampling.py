"""Many resamples of one set of items at once, and the correlation of each.

A resample is a column of weights: how often each item was drawn. Writing the three correlations for
weighted items lets one routine serve the point estimate (all weights 1), the bootstrap of items and the
bootstrap of whole documents, and lets numpy treat a block of resamples together. scipy is not imported: it
costs about a second and 70 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..prompts.errors import InputError

Vector = NDArray[np.float64]
Weights = NDArray[np.float64]
Kernel = Callable[[Weights], Vector]
Method = Literal["spearman", "kendall", "pearson"]

BLOCK = 64
"""Resamples handled together, of up to 1,600 items."""
_BLOCK_CELLS = 1_600 * BLOCK
_SMALLEST_BLOCK = 8
KENDALL_WORK = 6_000_000
"""Largest items times resamples for which Kendall's bootstrap keeps the number of resamples asked for."""
KENDALL_FLOOR = 200
"""Kendall's bootstrap never uses fewer resamples than this (unless fewer were asked for)."""
MAX_UNDEFINED_SHARE = 0.2
"""An interval is reported only if at most this share of the resamples is undefined (a constant column)."""
MINIMUM_ITEMS = 3
"""No statistic is computed from fewer items (or groups, or systems) than this."""


def check_settings(resamples: int, level: float) -> None:
    """Raise InputError unless `resamples` is at least 1 and `level` lies strictly between 0 and 1."""
    if resamples < 1:
        raise InputError(f"The number of resamples is {resamples}; it must be at least 1 (2000 is usual).")
    if not 0.0 < level < 1.0:
        raise InputError(f"The interval's level is {level}; it must lie between 0 and 1, for example 0.95.")


def complete(*columns: Sequence[float | None] | ArrayLike) -> tuple[list[Vector], NDArray[np.bool_]]:
    """Keep the items that have a finite number in every column.

    Args:
        columns: Equally long 1-d sequences; a missing value is None or NaN.

    Returns:
        The columns without the incomplete items, and the mask, shape (items,), of the items kept.

    Raises:
        InputError: If a column is not one-dimensional, the lengths differ, or a value is infinite.
    """
    arrays = [_as_vector(column, position) for position, column in enumerate(columns, start=1)]
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise InputError(
            f"The columns to compare have different lengths ({', '.join(map(str, lengths))}); "
            "give one value per example in each, None where it is missing."
        )
    keep: NDArray[np.bool_] = np.logical_not(np.isnan(np.vstack(arrays)).any(axis=0))
    return [array[keep] for array in arrays], keep


def _as_vector(column: Sequence[float | None] | ArrayLike, position: int) -> Vector:
    array = np.asarray(column, dtype=np.float64)  # None becomes NaN
    if array.ndim != 1:
        raise InputError(f"Column {position} has shape {array.shape}; a statistic needs one number per example.")
    if np.isinf(array).any():
        where = int(np.flatnonzero(np.isinf(array))[0])
        raise InputError(f"Column {position} has an infinite value at position {where}; remove it or use None.")
    return array


def group_codes(groups: Sequence[Hashable], keep: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Number the groups of the items kept 0, 1, ... in order of first appearance; shape (items kept,).

    Raises:
        InputError: If there is not one group for each item.
    """
    if len(groups) != len(keep):
        raise InputError(
            f"There are {len(groups)} group names for {len(keep)} items; give one for every item, in order."
        )
    seen: dict[Hashable, int] = {}
    chosen = (group for group, kept in zip(groups, keep, strict=True) if kept)
    return np.array([seen.setdefault(group, len(seen)) for group in chosen], dtype=np.intp)


def block_width(items: int) -> int:
    """Resamples handled together: 64, and fewer for more than 1,600 items.

    The block then stays in the processor's cache, and below the size from which numpy's matrix product is shared out
    to threads: on a busy machine these wait for one another (10,000 items, 64 resamples: 140 ms instead of 3).
    """
    return max(_SMALLEST_BLOCK, min(BLOCK, _BLOCK_CELLS // max(items, 1)))


def resample_weights(units: int, resamples: int, seed: int, codes: NDArray[np.intp] | None = None) -> Iterator[Weights]:
    """Draw bootstrap resamples as counts, block by block.

    Args:
        units: Number of items, or of groups when `codes` is given.
        resamples: Total number of resamples over all blocks.
        seed: Same seed, same resamples.
        codes: Group number of each item; whole groups are then drawn, and each item counts as often as its
            group.

    Yields:
        Counts, shape (items, up to 64 resamples).
    """
    rng = np.random.default_rng(seed)
    block = block_width(units if codes is None else len(codes))
    for start in range(0, resamples, block):
        width = min(block, resamples - start)
        drawn = rng.integers(0, units, size=(units, width), dtype=np.int32)
        drawn *= width
        drawn += np.arange(width, dtype=np.int32)
        counts = np.bincount(drawn.ravel(), minlength=units * width).reshape(units, width).astype(np.float64)
        yield counts if codes is None else counts[codes]


def resample(kernels: Sequence[Kernel], blocks: Iterator[Weights]) -> NDArray[np.float64]:
    """Evaluate each kernel on the same resamples; shape (kernels, resamples), NaN where undefined."""
    return np.concatenate([np.vstack([kernel(block) for kernel in kernels]) for block in blocks], axis=1)


def percentile_interval(values: Vector, level: float) -> tuple[float, float, None] | tuple[None, None, str]:
    """Percentile interval over the defined resamples, or the reason why there is none.

    Args:
        values: One value per resample, shape (resamples,), NaN where undefined.
        level: Share of resamples inside, for example 0.95.
    """
    undefined = int(np.isnan(values).sum())
    if undefined > MAX_UNDEFINED_SHARE * len(values):
        return (
            None,
            None,
            (
                f"no interval: {undefined} of {len(values)} resamples have constant scores, more than "
                f"{MAX_UNDEFINED_SHARE:.0%}"
            ),
        )
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), None


def affordable_resamples(method: Method, items: int, resamples: int) -> int:
    """Resamples used: fewer for Kendall when items times resamples exceed 6 million, never below 200."""
    if method != "kendall" or items == 0:
        return resamples
    return min(resamples, max(KENDALL_FLOOR, KENDALL_WORK // items))


def tied(values: Vector) -> Vector:
    """Round to 40 bits (12 digits), so that means of the same verdicts added in another order stay ties."""
    mantissa, exponent = np.frexp(values)
    rounded: Vector = np.ldexp(np.round(np.ldexp(mantissa, 40)), exponent - 40)
    return rounded


def average_ranks(values: Vector) -> Vector:
    """Ranks 1..n, shape (n,); tied values share the mean of their ranks."""
    _, inverse, counts = np.unique(tied(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Vector = (last - (counts - 1) / 2)[inverse]
    return ranks


def constant_reason(values: Vector, name: str) -> str | None:
    """Say that a column is constant, and at which value; None if it varies."""
    if len(values) == 0 or np.ptp(tied(values)) > 0:
        return None
    return f"the {name} are constant (all {float(values[0]):.6g})"


def unweighted(kernel: Kernel, items: int) -> float:
    """The point estimate of a kernel: every item counted once. NaN where undefined."""
    return float(kernel(np.ones((items, 1)))[0])


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


class _TieGroups:
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
    groups = (_TieGroups(a), _TieGroups(b))

    def centred_ranks(ties: _TieGroups, weights: Weights) -> tuple[Weights, Vector]:
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
    ties_a, ties_b = _TieGroups(a), _TieGroups(b)
    # One number for both; below 2**40, so that `tied` leaves it alone, for up to a million items.
    ties_both = _TieGroups(ties_a.group * (ties_b.group.max(initial=0) + 1.0) + ties_b.group)
    merges = _merges(ties_b.group[ties_both.order])

    def tied_pairs(ties: _TieGroups, weights: Weights) -> Vector:
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
