"""How well scores order and track human scores: three correlations, pooled, per document and per system.

Every statistic carries its number of items and, from `correlate` on, a bootstrap interval. A statistic that
does not exist (constant scores, too few items) is None with a reason in words, never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .correlation_kernels import KENDALL_FLOOR, Method, affordable_resamples, correlation_kernel
from .resampling import (
    MINIMUM_ITEMS,
    Vector,
    check_settings,
    complete,
    constant_reason,
    group_codes,
    percentile_interval,
    resample,
    resample_weights,
    unweighted,
)

__all__ = [
    "Correlations",
    "PerGroup",
    "Statistic",
    "correlate",
    "kendall",
    "paired",
    "pearson",
    "per_group",
    "spearman",
    "system_level",
]

Column = Sequence[float | None] | ArrayLike
_METHODS: tuple[Method, ...] = ("spearman", "kendall", "pearson")
_NAMES = ("scores", "human scores")


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number with what is needed to judge it."""

    value: float | None
    """The statistic, in [-1, 1]; None where it is undefined."""
    n: int
    """Items (or groups, or systems) it was computed from, after incomplete ones were dropped."""
    low: float | None
    """Lower end of the interval; None where there is none."""
    high: float | None
    """Upper end of the interval; None where there is none."""
    reason: str | None
    """Why the value, or only the interval, is missing; None if nothing is."""
    undefined_resamples: int = 0
    """Resamples left out of the interval because the statistic does not exist in them."""


@dataclass(frozen=True, slots=True)
class Correlations:
    """The three correlations of the same items."""

    spearman: Statistic
    kendall: Statistic
    pearson: Statistic


@dataclass(frozen=True, slots=True)
class PerGroup:
    """A correlation computed inside each group and averaged."""

    average: Statistic
    """Mean over the groups where the correlation is defined; its `n` counts these groups."""
    used: int
    """Groups in which the correlation is defined."""
    undefined: int
    """Groups left out: fewer than 3 items, or constant scores."""


def paired(a: Column, b: Column) -> tuple[Vector, Vector, int]:
    """Keep the items that have a number in both columns.

    Args:
        a: One number per item, None or NaN where it is missing.
        b: The same for the other variable.

    Returns:
        Both columns, each of shape (items kept,), and how many items were dropped.

    Raises:
        InputError: If the lengths differ, a column is not one-dimensional, or a value is infinite.
    """
    (left, right), keep = complete(a, b)
    return left, right, int((~keep).sum())


def spearman(a: Column, b: Column) -> Statistic:
    """Spearman's rank correlation (ties share their mean rank), without an interval."""
    return _point(a, b, "spearman")


def kendall(a: Column, b: Column) -> Statistic:
    """Kendall's tau-b (corrected for ties), without an interval."""
    return _point(a, b, "kendall")


def pearson(a: Column, b: Column) -> Statistic:
    """Pearson's linear correlation, without an interval."""
    return _point(a, b, "pearson")


def correlate(
    scores: Column,
    human: Column,
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> Correlations:
    """Pooled Spearman, Kendall (tau-b) and Pearson correlation, each with a percentile bootstrap interval.

    Kendall sorts the items, so it uses fewer resamples when items times resamples exceed 6 million (2,000 resamples
    up to 3,000 items, 600 at 10,000), and never fewer than 200.

    Args:
        scores: One score per item; None where it is missing.
        human: One human score per item; None where it is missing.
        groups: Document (or other cluster) of each item; whole groups are then resampled, as the items of
            one document are not independent.
        resamples: Number of bootstrap resamples.
        level: Coverage of the interval, between 0 and 1.
        seed: Same seed, same interval.

    Raises:
        InputError: If the columns do not match, or a setting is out of range.
    """
    check_settings(resamples, level)
    (left, right), keep = complete(scores, human)
    codes = None if groups is None else group_codes(groups, keep)
    units = len(left) if codes is None else _number(codes)
    found: dict[Method, Statistic] = {}
    for method in _METHODS:
        statistic = _of_vectors(left, right, method)
        if statistic.value is not None and units < MINIMUM_ITEMS:
            statistic = replace(statistic, reason=f"no interval: only {units} groups to resample")
        elif statistic.value is not None:
            kernel = correlation_kernel(method, left, right)
            count = affordable_resamples(method, len(left), resamples)
            values = resample([kernel], resample_weights(units, count, seed, codes))[0]
            statistic = _with_interval(statistic, values, level)
        found[method] = statistic
    return Correlations(**found)


def per_group(
    scores: Column,
    human: Column,
    groups: Sequence[Hashable],
    method: Method = "spearman",
    *,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> PerGroup:
    """Mean of the correlations inside each group, as SummEval reports it per document.

    Groups where the correlation does not exist are left out and counted. The interval resamples groups.

    Raises:
        InputError: If the columns do not match, or a setting is out of range.
    """
    check_settings(resamples, level)
    (left, right), keep = complete(scores, human)
    codes = group_codes(groups, keep)
    each = [_of_vectors(left[codes == code], right[codes == code], method) for code in range(_number(codes))]
    values = np.array([statistic.value for statistic in each if statistic.value is not None])
    used, undefined = len(values), len(set(groups)) - len(values)
    if used == 0:
        reason = f"the correlation is undefined in each of the {undefined} groups"
        return PerGroup(Statistic(None, 0, None, None, reason), used, undefined)
    average = Statistic(float(values.mean()), used, None, None, None)
    if used < MINIMUM_ITEMS:
        average = replace(average, reason=f"no interval: only {used} groups to resample")
    else:
        means = [values @ block / used for block in resample_weights(used, resamples, seed)]
        average = _with_interval(average, np.concatenate(means), level)
    return PerGroup(average, used, undefined)


def system_level(
    scores: Column,
    human: Column,
    systems: Sequence[Hashable],
    *,
    resamples: int = KENDALL_FLOOR * 5,
    level: float = 0.95,
    seed: int = 42,
) -> Correlations:
    """Correlate the systems' mean scores with their mean human scores.

    The interval resamples the items inside each system, so it speaks about these systems and not about
    others; with few systems the correlation takes few values and the interval is coarse.

    Args:
        scores: One score per item; None where it is missing.
        human: One human score per item; None where it is missing.
        systems: The system that made each item.
        resamples: Number of bootstrap resamples.
        level: Coverage of the interval, between 0 and 1.
        seed: Same seed, same interval.

    Returns:
        The correlations; `n` is the number of systems with at least one complete item.

    Raises:
        InputError: If the columns do not match, or a setting is out of range.
    """
    check_settings(resamples, level)
    (left, right), keep = complete(scores, human)
    codes = group_codes(systems, keep)
    number = _number(codes)
    means = np.empty((2, number, 1 + resamples))  # first column: every item once
    for code in range(number):
        mine = np.vstack([left[codes == code], right[codes == code]])
        items = mine.shape[1]
        blocks = resample_weights(items, resamples, seed + code)
        means[:, code, :] = np.hstack([mine.sum(axis=1, keepdims=True), *(mine @ block for block in blocks)]) / items
    found: dict[Method, Statistic] = {}
    for method in _METHODS:
        statistic = _of_vectors(means[0, :, 0], means[1, :, 0], method, unit="systems")
        if statistic.value is not None:
            values = [
                unweighted(correlation_kernel(method, means[0, :, column], means[1, :, column]), number)
                for column in range(1, 1 + resamples)
            ]
            statistic = _with_interval(statistic, np.array(values), level)
        found[method] = statistic
    return Correlations(**found)


def _point(a: Column, b: Column, method: Method) -> Statistic:
    left, right, _ = paired(a, b)
    return _of_vectors(left, right, method)


def _of_vectors(a: Vector, b: Vector, method: Method, unit: str = "items") -> Statistic:
    """The point estimate on complete columns, or the reason why it does not exist."""
    n = len(a)
    if n < MINIMUM_ITEMS:
        return Statistic(None, n, None, None, f"fewer than {MINIMUM_ITEMS} {unit} (there are {n})")
    reason = constant_reason(a, _NAMES[0]) or constant_reason(b, _NAMES[1])
    if reason is not None:
        return Statistic(None, n, None, None, reason)
    return Statistic(unweighted(correlation_kernel(method, a, b), n), n, None, None, None)


def _with_interval(statistic: Statistic, values: Vector, level: float) -> Statistic:
    low, high, reason = percentile_interval(values, level)
    undefined = int(np.isnan(values).sum())
    return replace(statistic, low=low, high=high, reason=reason, undefined_resamples=undefined)


def _number(codes: NDArray[np.intp]) -> int:
    return int(codes.max(initial=-1)) + 1
