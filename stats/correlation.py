"""Correlation of scores with human scores: Spearman's, Kendall's and Pearson's, pooled, per document and per system.

The three are defined as in the papers (BinEval §3.2). Each is a kernel for weighted items, where a weight says how
often an item was drawn: one routine gives the point estimate and a block of resamples. A statistic that does not exist
(constant scores, too few items) is None with a reason in words, never 0 and never NaN. scipy is not imported: it costs
about a second and 70 MB.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..prompts.errors import InputError
from .resampling import (
    MINIMUM_ITEMS,
    USUAL,
    Kernel,
    Resampling,
    Statistic,
    Vector,
    Weights,
    bootstrapped,
    bootstrapped_together,
    complete,
    constant_reason,
    group_codes,
    mean_kernel,
    resample_weights,
    tied,
    unweighted,
    with_interval,
    without_false_certainty,
)

Method = Literal["spearman", "kendall", "pearson"]

WORK = {"kendall": 6_000_000, "spearman": 50_000_000, "pearson": 50_000_000}
"""Largest product of items and resamples for which a bootstrap keeps the requested number of resamples."""
FLOOR = {"kendall": 200, "spearman": 500, "pearson": 500}
"""Fewest resamples, unless fewer are requested. With 500, the ends of an interval of 100,000 items, .01 wide, are some
.0003 off."""


def affordable(resampling: Resampling, method: Method, items: int) -> Resampling:
    """Reduce the resamples if items times resamples exceed :data:`WORK`, but not below :data:`FLOOR`."""
    if items == 0:
        return resampling
    return replace(resampling, resamples=min(resampling.resamples, max(FLOOR[method], WORK[method] // items)))


def correlation_kernel(method: Method, a: Vector, b: Vector) -> Kernel:
    """Correlation of `a` with `b`, each of shape (n,), for weights (n, resamples) → (resamples,).

    Kendall is tau-b. The result is NaN exactly where `a` or `b` is constant on the items with weight. Raises
    InputError if `method` is not spearman, kendall or pearson.
    """
    if method == "spearman":
        return _spearman(a, b)
    if method == "kendall":
        return _kendall(a, b)
    if method == "pearson":
        return _pearson(a, b)
    raise InputError(f"There is no correlation named {method!r}; choose spearman, kendall or pearson.")


class TieGroups:
    """Order of the items by one variable, and the beginning of each run of equal values."""

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
    """Kendall's tau-b for weights, by Knight's method (JASA 61, 1966): untied pairs less twice the discordant pairs.

    Discordant pairs are counted once for each bit of the rank in the variable with fewer different values, so five
    grades take three rounds.
    """
    ties_a, ties_b = sorted((TieGroups(a), TieGroups(b)), key=lambda each: -each.number)
    # One number for both values. It is below 2**40 for up to a million items, so `tied` does not round it.
    ties_both = TieGroups(ties_a.group * (ties_b.group.max(initial=0) + 1.0) + ties_b.group)
    rounds = _rounds(ties_b.group[ties_both.order])

    def tied_pairs(ties: TieGroups, weights: Weights) -> Vector:
        share = ties.shares(weights)
        pairs: Vector = np.einsum("kr,kr->r", share, share)
        return pairs

    def kernel(weights: Weights) -> Vector:
        # total and tied pairs are counted twice, and each item with itself is counted in
        total = weights.sum(axis=0) ** 2
        tied_a, tied_b, tied_both = (tied_pairs(ties, weights) for ties in (ties_a, ties_b, ties_both))
        untied = (total - tied_a - tied_b + tied_both) / 2
        discordant = _discordant(rounds, weights.take(ties_both.order, axis=0))
        return _ratio(untied - 2 * discordant, (total - tied_a) * (total - tied_b) / 4)

    return kernel


@dataclass(frozen=True, slots=True)
class _Round:
    """One bit of the values: items that share all higher bits are split by this bit. Items with the bit are larger."""

    larger: NDArray[np.intp]
    """Items with the bit, in groups of the same higher bits, in order."""
    smaller: NDArray[np.intp]
    """Items without the bit."""
    before: NDArray[np.intp]
    """Number of items of `larger` up to each item of `smaller`."""
    outside: NDArray[np.intp]
    """Number of items of `larger` before the group of each item of `smaller`."""


def _rounds(values: NDArray[np.intp]) -> list[_Round]:
    """Prepare a round for each bit of whole numbers. Rounds do not depend on weights."""
    rounds = []
    for bit in range(int(values.max(initial=0)).bit_length()):
        group = values >> (bit + 1)
        order = np.argsort(group, kind="stable")
        has_bit = (values[order] >> bit & 1).astype(bool)
        items_with_bit, groups = np.cumsum(has_bit), group[order]
        outside = np.concatenate([[0], items_with_bit])[np.searchsorted(groups, groups)]
        rounds.append(_Round(order[has_bit], order[~has_bit], items_with_bit[~has_bit], outside[~has_bit]))
    return rounds


def _discordant(rounds: Sequence[_Round], weights: Weights) -> Vector:
    """Weighted number of pairs whose earlier value is larger.

    ``weights``, shape (n, resamples), are in the order of the values that :func:`_rounds` was given.
    """
    pairs = np.zeros(weights.shape[1])
    for bit_round in rounds:
        up_to = np.zeros((len(bit_round.larger) + 1, weights.shape[1]))
        np.cumsum(weights.take(bit_round.larger, axis=0), axis=0, out=up_to[1:])
        earlier = up_to.take(bit_round.before, axis=0)
        earlier -= up_to.take(bit_round.outside, axis=0)
        earlier *= weights.take(bit_round.smaller, axis=0)
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
    """Set a variance to exactly 0 if it is only rounding error, which means that the values with weight do not vary."""
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


Column = Sequence[float | None] | ArrayLike
FEW = 5
"""Most items for which an interval of width 0 is removed. With five items, one unrelated scoring in 60 has people's
order, or its reverse, by chance."""
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
    """Number of groups in which the correlation is defined."""
    undefined: int
    """Number of groups left out: they have fewer than 3 items, or constant scores."""


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

    Many items get fewer resamples, because their intervals are narrow. Kendall sorts the items, so its resamples are
    reduced when items times resamples exceed 6 million (2,000 resamples up to 3,000 items, 600 at 10,000), to 200 at
    least. The others are reduced beyond 50 million (2,000 up to 25,000 items), to 500 at least. A missing score is
    None. Raises InputError where the columns do not match.
    """
    (left, right), keep = complete(scores, human)

    if (undefined := _undefined(left, right)) is not None:
        return Correlations(undefined, undefined, undefined)
    units, codes = resampling.units(keep)
    unit = "items" if codes is None else "groups"
    by_method: dict[Method, Statistic] = {}
    for together in (("spearman", "pearson"), ("kendall",)):
        kernels = [correlation_kernel(method, left, right) for method in together]
        made = bootstrapped_together(kernels, keep, affordable(resampling, together[0], len(left)))
        by_method |= dict(zip(together, [_spread(statistic, units, unit) for statistic in made], strict=True))
    return Correlations(**by_method)


def _spread(statistic: Statistic, units: int, unit: str) -> Statistic:
    """Remove an interval of width 0 if there are so few items that they may have people's order by chance."""
    if not statistic.is_point or units > FEW:
        return statistic
    return replace(
        statistic, low=None, high=None, reason=f"no interval: {units} {unit} may stand in one order by chance"
    )


def per_group(
    scores: Column,
    human: Column,
    groups: Sequence[Hashable],
    method: Method = "spearman",
    resampling: Resampling = USUAL,
) -> PerGroup:
    """Mean of the correlations inside each group; SummEval reports it with documents as groups.

    Groups with an undefined correlation are left out and counted. The interval resamples the other groups. Raises
    InputError where the columns do not match.
    """
    (left, right), keep = complete(scores, human)
    codes = group_codes(groups, keep)
    by_group, ends = np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))
    per_group_statistics = [_of_vectors(left[mine], right[mine], method) for mine in np.split(by_group, ends)[:-1]]
    values = np.array([statistic.value for statistic in per_group_statistics if statistic.value is not None])
    used, undefined = len(values), len(set(groups)) - len(values)
    if used == 0:
        reason = f"the correlation is undefined in each of the {undefined} groups"
        return PerGroup(Statistic(None, 0, None, None, reason), used, undefined)
    of_groups = replace(resampling, groups=range(used))
    average = bootstrapped(mean_kernel(values), np.ones(used, dtype=np.bool_), of_groups)
    return PerGroup(without_false_certainty(average, "it is the same in every group"), used, undefined)


def system_level(
    scores: Column, human: Column, systems: Sequence[Hashable], resampling: Resampling = _OF_SYSTEMS
) -> Correlations:
    """Correlate the systems' mean scores with their mean human scores; ``n`` counts systems with a complete item.

    The interval resamples the items inside each system and ignores the groups of ``resampling``: it is about these
    systems, not about others. With few systems the correlation has few possible values, so the interval is coarse.
    Raises InputError where the columns do not match.
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
        if single:  # all resamples of one item are equal
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
    """Return :func:`system_level` over the items that name a system; None for fewer than three systems."""
    if len(set(systems) - {None}) < MINIMUM_ITEMS:
        return None
    named = [place for place, system in enumerate(systems) if system is not None]
    left, right = (np.asarray(column, dtype=np.float64)[named] for column in (scores, human))
    return system_level(left, right, [systems[place] for place in named], resampling)


def _of_vectors(a: Vector, b: Vector, method: Method, unit: str = "items") -> Statistic:
    """Return the point estimate on complete columns, or the reason why it is undefined."""
    undefined = _undefined(a, b, unit)
    return undefined or Statistic(unweighted(correlation_kernel(method, a, b), len(a)), len(a), None, None, None)


def _undefined(a: Vector, b: Vector, unit: str = "items") -> Statistic | None:
    n = len(a)
    few = f"fewer than {MINIMUM_ITEMS} {unit} (there are {n})" if n < MINIMUM_ITEMS else None
    reason = few or constant_reason(a, "scores") or constant_reason(b, "human scores")
    return None if reason is None else Statistic(None, n, None, None, reason)


def correlations_dict(figures: Correlations, *, all_ends: bool = False) -> dict[str, Any]:
    """Return correlations in the form of ``result.json``. ``low`` and ``high`` are the ends of Spearman's interval;
    with ``all_ends`` the other intervals are added, as ``kendall_low`` and so on.
    """
    row: dict[str, Any] = {
        "spearman": figures.spearman.value,
        "kendall": figures.kendall.value,
        "pearson": figures.pearson.value,
        "n": figures.spearman.n,
        "low": figures.spearman.low,
        "high": figures.spearman.high,
    }
    if all_ends:
        for name, statistic in (("kendall", figures.kendall), ("pearson", figures.pearson)):
            row |= {f"{name}_low": statistic.low, f"{name}_high": statistic.high}
    reason = figures.spearman.reason or figures.kendall.reason or figures.pearson.reason
    return row | {"reason": reason} if reason else row


statistic_dict = Statistic.to_dict
"""Return one statistic in the form of ``result.json``."""
