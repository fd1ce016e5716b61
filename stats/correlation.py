"""How well scores order and track human scores: three correlations, pooled, per document and per system.

Every statistic carries its number of items and, from `correlate` on, a bootstrap interval. A statistic that
does not exist (constant scores, too few items) is None with a reason in words, never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .kernels import FLOOR, Method, affordable, correlation_kernel
from .resampling import (
    MINIMUM_ITEMS,
    USUAL,
    Resampling,
    Statistic,
    Vector,
    bootstrapped,
    bootstrapped_together,
    complete,
    constant_reason,
    group_codes,
    mean_kernel,
    resample_weights,
    unweighted,
    with_interval,
    without_false_certainty,
)

Column = Sequence[float | None] | ArrayLike
FEW = 5
"""Of so many items unrelated scores put one in 60, and of fewer more, in exactly the order of people or its reverse."""
METHODS: tuple[Method, ...] = ("spearman", "kendall", "pearson")
_OF_SYSTEMS = Resampling(resamples=5 * FLOOR["kendall"])


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


def spearman(a: Column, b: Column) -> Statistic:
    """Spearman's rank correlation (ties share their mean rank), without an interval."""
    (left, right), _ = complete(a, b)
    return _of_vectors(left, right, "spearman")


def kendall(a: Column, b: Column) -> Statistic:
    """Kendall's tau-b (corrected for ties), without an interval."""
    (left, right), _ = complete(a, b)
    return _of_vectors(left, right, "kendall")


def correlate(scores: Column, human: Column, resampling: Resampling = USUAL) -> Correlations:
    """Pooled Spearman, Kendall (tau-b) and Pearson correlation, each with a percentile bootstrap interval.

    Many items take fewer resamples, as their intervals are narrow: Kendall, which sorts the items, where items times
    resamples exceed 6 million (2,000 resamples up to 3,000 items, 600 at 10,000), but never fewer than 200; the others
    where they exceed 50 million (2,000 up to 25,000 items), and never fewer than 500.

    Args:
        scores: One score per item; None where it is missing.
        human: One human score per item; None where it is missing.
        resampling: How the intervals are made.

    Raises:
        InputError: If the columns do not match.
    """
    (left, right), keep = complete(scores, human)

    if (undefined := _undefined(left, right)) is not None:
        return Correlations(undefined, undefined, undefined)
    units, codes = resampling.units(keep)
    unit = "items" if codes is None else "groups"
    found: dict[Method, Statistic] = {}
    for together in (("spearman", "pearson"), ("kendall",)):
        kernels = [correlation_kernel(method, left, right) for method in together]
        made = bootstrapped_together(kernels, keep, affordable(resampling, together[0], len(left)))
        found |= dict(zip(together, [_spread(each, units, unit) for each in made], strict=True))
    return Correlations(**found)


def _spread(found: Statistic, units: int, unit: str) -> Statistic:
    """Without an interval that has no width because few items are in the order of people, or its reverse, as by chance."""
    if not found.is_point or units > FEW:
        return found
    return replace(found, low=None, high=None, reason=f"no interval: {units} {unit} may stand in one order by chance")


def per_group(
    scores: Column,
    human: Column,
    groups: Sequence[Hashable],
    method: Method = "spearman",
    resampling: Resampling = USUAL,
) -> PerGroup:
    """Mean of the correlations inside each group, as SummEval reports it per document.

    Groups where the correlation does not exist are left out and counted. The interval resamples the others.

    Raises:
        InputError: If the columns do not match.
    """
    (left, right), keep = complete(scores, human)
    codes = group_codes(groups, keep)
    by_group, ends = np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))
    each = [_of_vectors(left[mine], right[mine], method) for mine in np.split(by_group, ends)[:-1]]
    values = np.array([statistic.value for statistic in each if statistic.value is not None])
    used, undefined = len(values), len(set(groups)) - len(values)
    if used == 0:
        reason = f"the correlation is undefined in each of the {undefined} groups"
        return PerGroup(Statistic(None, 0, None, None, reason), used, undefined)
    of_groups = replace(resampling, groups=range(used))
    average = bootstrapped(mean_kernel(values), np.ones(used, dtype=np.bool_), of_groups)
    return PerGroup(without_false_certainty(average, "it is the same in every group"), used, undefined)


def system_level(
    scores: Column,
    human: Column,
    systems: Sequence[Hashable],
    resampling: Resampling = _OF_SYSTEMS,
) -> Correlations:
    """Correlate the systems' mean scores with their mean human scores.

    The interval resamples the items inside each system, so it speaks about these systems and not about
    others; with few systems the correlation takes few values and the interval is coarse.

    Args:
        scores: One score per item; None where it is missing.
        human: One human score per item; None where it is missing.
        systems: The system that made each item.
        resampling: How the intervals are made; its groups are not looked at.

    Returns:
        The correlations; `n` is the number of systems with at least one complete item.

    Raises:
        InputError: If the columns do not match.
    """
    (left, right), keep = complete(scores, human)
    codes, resamples = group_codes(systems, keep), resampling.resamples
    number = int(codes.max(initial=-1)) + 1
    single = len(codes) == number
    means = np.empty((2, number, 1 + resamples))  # first column: every item once
    for code in range(number):
        mine = np.vstack([left[codes == code], right[codes == code]])
        items = mine.shape[1]
        blocks = resample_weights(items, resamples, resampling.seed + code)
        means[:, code, :] = np.hstack([mine.sum(axis=1, keepdims=True), *(mine @ block for block in blocks)]) / items

    def one(method: Method) -> Statistic:
        statistic = _of_vectors(means[0, :, 0], means[1, :, 0], method, unit="systems")
        if statistic.value is None:
            return statistic
        if single:  # no resample of one item differs
            return replace(
                statistic, reason="no interval: every system has one item, so nothing says how far its mean varies"
            )
        values = [
            unweighted(correlation_kernel(method, means[0, :, column], means[1, :, column]), number)
            for column in range(1, 1 + resamples)
        ]
        return with_interval(statistic, np.array(values), resampling.level)

    return Correlations(*(one(method) for method in METHODS))


def between_systems(
    scores: Column, human: Column, systems: Sequence[Hashable], resampling: Resampling
) -> Correlations | None:
    """:func:`system_level` where the items name three systems or more; None where they do not.

    Items that name none (None) are left out: they are of no one system.
    """
    if len(set(systems) - {None}) < MINIMUM_ITEMS:
        return None
    named = [place for place, system in enumerate(systems) if system is not None]
    left, right = (np.asarray(column, dtype=np.float64)[named] for column in (scores, human))
    return system_level(left, right, [systems[place] for place in named], resampling)


def _of_vectors(a: Vector, b: Vector, method: Method, unit: str = "items") -> Statistic:
    """The point estimate on complete columns, or the reason why it does not exist."""
    undefined = _undefined(a, b, unit)
    return undefined or Statistic(unweighted(correlation_kernel(method, a, b), len(a)), len(a), None, None, None)


def _undefined(a: Vector, b: Vector, unit: str = "items") -> Statistic | None:
    n = len(a)
    few = f"fewer than {MINIMUM_ITEMS} {unit} (there are {n})" if n < MINIMUM_ITEMS else None
    reason = few or constant_reason(a, "scores") or constant_reason(b, "human scores")
    return None if reason is None else Statistic(None, n, None, None, reason)


def correlations_dict(found: Correlations, *, all_ends: bool = False) -> dict[str, Any]:
    """Correlations as in ``result.json``: ``low`` and ``high`` are the interval of Spearman's.

    Args:
        found: The correlations.
        all_ends: Also those of Kendall's and Pearson's, as ``kendall_low`` and so on.
    """
    row: dict[str, Any] = {
        "spearman": found.spearman.value,
        "kendall": found.kendall.value,
        "pearson": found.pearson.value,
        "n": found.spearman.n,
        "low": found.spearman.low,
        "high": found.spearman.high,
    }
    if all_ends:
        others = {"kendall": found.kendall, "pearson": found.pearson}
        row |= {f"{name}_{end}": getattr(each, end) for name, each in others.items() for end in ("low", "high")}
    reason = found.spearman.reason or found.kendall.reason or found.pearson.reason
    return row | {"reason": reason} if reason else row


def statistic_dict(found: Statistic) -> dict[str, Any]:
    """One statistic as in ``result.json``."""
    row: dict[str, Any] = {"value": found.value, "n": found.n, "low": found.low, "high": found.high}
    return row | {"reason": found.reason} if found.reason else row
