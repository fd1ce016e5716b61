"""Spearman's correlation with an interval that takes no resampling: the infinitesimal jackknife.

A checklist of 200 questions over 10,000 examples has 400 correlations with people, and a bootstrap of each would take
minutes. Spearman's correlation is a smooth function of averages, so each example has an influence on it. The variance
of the correlation is the mean square of these influences over n (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, ch. 21). Ties and the estimation of the ranks are taken into account; influences of one document's
examples are added up before squaring. The interval is made on Fisher's scale, where the correlation's distribution is
nearer to a normal one.

Measured: true correlations of 0 to .7 with coarse or continuous human scores, continuous scores or answers of 20 % to
90 % yes, 1,000 trials a cell. The 95 % interval held the truth in 92-96 % of the trials from 40 examples on and in
91-95 % with 12 to 20. With fewer than 5 answers of one kind it was 83-93 %, so there is none then. With 10, 20 and 40
documents of 6 examples: 91, 92 and 94 %. The percentile bootstrap: 92 % with 20 examples, 95 % with 100.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .correlation import Column, spearman
from .resampling import MINIMUM_ITEMS, Statistic, Vector, complete, group_codes, tied

MINIMUM_UNITS = 10
"""Examples (or documents) needed for an interval."""
MINIMUM_MINORITY = 5
"""Scores that must differ from the most frequent score for an interval."""
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class TestedSpearman:
    """A correlation with its interval and the evidence against its being positive."""

    statistic: Statistic
    p_against: float | None
    """One-sided p-value of "the correlation is not negative"; None where there are too few scores to tell."""


def spearman_intervals(
    columns: NDArray[np.float64], human: Column, *, groups: Sequence[Hashable] | None = None, level: float = 0.95
) -> list[TestedSpearman]:
    """Spearman's correlation of each column (examples, columns) with the human scores, with a large-sample interval.

    NaN is a missing score. Examples of one document (``groups``) are not taken for independent. Raises InputError where
    the shapes do not match, or the level is out of range.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"The interval's level is {level}; it must lie between 0 and 1, for example 0.95.")
    people = np.asarray(human, dtype=np.float64)
    by_mask: dict[bytes, tuple[MidRanks, NDArray[np.intp] | None]] = {}
    results = []
    for column in columns.T:
        (left, right), keep = complete(column, people)
        if len(left) < MINIMUM_ITEMS:
            results.append(TestedSpearman(spearman(left, right), None))
            continue
        mask = keep.tobytes()
        if mask not in by_mask:
            by_mask[mask] = MidRanks(right), None if groups is None else group_codes(groups, keep)
        results.append(_tested(left, right, *by_mask[mask], level))
    return results


def _tested(
    left: Vector, right: Vector, of_people: MidRanks, codes: NDArray[np.intp] | None, level: float
) -> TestedSpearman:
    ranks = MidRanks(left)
    if ranks.variance == 0 or of_people.variance == 0:
        return TestedSpearman(spearman(left, right), None)  # which says why there is none
    n = len(left)
    rho = float(ranks.shares @ of_people.shares) / n / math.sqrt(ranks.variance * of_people.variance)
    rho = min(max(rho, -1.0), 1.0)
    influence = spearman_influence(ranks, of_people, rho)
    if codes is not None:
        influence = np.bincount(codes, weights=influence).astype(np.float64)
    units = len(influence)
    reason = _why_none(ranks, of_people, units, "examples" if codes is None else "documents")
    if reason is not None:
        return TestedSpearman(Statistic(rho, n, None, None, reason), None)
    error = math.sqrt(float(influence @ influence) * units / (units - 1)) / n
    room = 1 - rho**2
    if room < _ROUNDING or error < _ROUNDING:
        reason = "no interval: the scores put the examples in exactly the order of people, or in its reverse"
        minority = min(ranks.minority, of_people.minority, units // 2)
        by_chance = 1 / math.comb(units, minority)  # at most: of all orders this one falls out
        return TestedSpearman(Statistic(rho, n, None, None, reason), by_chance if rho < 0 else 1.0)
    normal, centre, error = NormalDist(), math.atanh(rho), error / room
    reach = normal.inv_cdf((1 + level) / 2) * error
    statistic = Statistic(rho, n, math.tanh(centre - reach), math.tanh(centre + reach), None)
    return TestedSpearman(statistic, normal.cdf(centre / error))


def _why_none(ranks: MidRanks, of_people: MidRanks, units: int, unit: str) -> str | None:
    if units < MINIMUM_UNITS:
        return f"no interval: fewer than {MINIMUM_UNITS} {unit} (there are {units})"
    for column, name in ((ranks, "scores"), (of_people, "human scores")):
        if column.minority < MINIMUM_MINORITY:
            return f"no interval: all {name} but {column.minority} are the same"
    return None


class MidRanks:
    """Mid-rank shares of one column, centred, and means over the items that stand above each item."""

    def __init__(self, values: Vector) -> None:
        """``values`` has no NaN."""
        distinct, self.group = np.unique(tied(values), return_inverse=True)
        sizes = np.bincount(self.group, minlength=len(distinct))
        self.n = len(values)
        self.minority = self.n - int(sizes.max())
        by_group = (np.cumsum(sizes) - sizes / 2) / self.n - 0.5
        self.variance = float(sizes @ by_group**2) / self.n if len(distinct) > 1 else 0.0
        self.shares: Vector = by_group[self.group]
        self.own_above = self.mean_above(self.shares)

    def mean_above(self, values: Vector) -> Vector:
        """Mean over all items of `values` where they rank higher than an item, half where they tie; shape (n,)."""
        sums = np.bincount(self.group, weights=values)
        above = np.cumsum(sums[::-1])[::-1] - sums / 2
        means: Vector = above[self.group] / self.n
        return means


def spearman_influence(a: MidRanks, b: MidRanks, rho: float) -> Vector:
    """Influence of each item on Spearman's correlation; shape (n,), mean zero."""
    scale = math.sqrt(a.variance * b.variance)
    of_covariance = a.shares * b.shares + a.mean_above(b.shares) + b.mean_above(a.shares)
    of_a = a.shares**2 + 2 * a.own_above
    of_b = b.shares**2 + 2 * b.own_above
    influence: Vector = of_covariance / scale - rho / 2 * (of_a / a.variance + of_b / b.variance)
    return influence  # the constants, 3 of each, cancel
