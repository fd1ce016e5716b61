"""Is a change shown to lose no more than a margin? One-sided limits of a mean loss, and the size that shows it.

The difference d of an example is the new pass rate minus the old one, in [-1, 1]. The change is shown to lose at most
``margin`` if the lower limit of the mean of d lies above -margin (a test for non-inferiority). The limits are
Student's, corrected for the skewness of d by Hall's transformation (J. R. Statist. Soc. B 54, 1992): losses are rare
and large, and the plain limits then show too much. Examples of one document count as one unit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from .correlation import Column
from .resampling import MINIMUM_ITEMS, Vector, complete, group_codes


@cache
def _distributions() -> Any:
    """Import and return the distributions of SciPy."""
    # not at the top of the file: the import takes a second, which ``--help`` can do without
    from scipy import stats

    return stats


@dataclass(frozen=True)
class MeanLimits:
    """A mean difference with its two one-sided limits."""

    value: float | None
    """Mean of d, in [-1, 1]; None without examples."""
    low: float | None
    """Lower limit: the true mean is above it, except with a chance of ``level``; None with fewer than three units."""
    high: float | None
    """Upper limit: the true mean is below it, except with a chance of ``level``."""
    n: int
    """Examples with both values."""
    units: int
    """Number of documents, or of examples if no documents are given."""
    deviation: float | None = None
    """Standard deviation of d that independent examples would need for the same standard error."""


@dataclass(frozen=True)
class _Units:
    """Differences by document, as deviations from the mean of all examples."""

    mean: float
    n: int
    deviations: Vector
    """One number for each document: the sum of its examples' deviations, divided by the mean size of a document."""
    values: Vector
    """Difference of each example."""

    @property
    def size(self) -> int:
        return len(self.deviations)

    @property
    def standard_error(self) -> float:
        return math.sqrt(float(self.deviations @ self.deviations) / (self.size - 1) / self.size)

    @property
    def skewness(self) -> float:
        spread = math.sqrt(float(np.mean(self.deviations**2)))
        return float(np.mean(self.deviations**3)) / spread**3 if spread > 0 else 0.0

    @property
    def skewed(self) -> float:
        """The skewness term of Hall's transformation."""
        return self.skewness / (3 * math.sqrt(self.size))

    @property
    def deviation(self) -> float:
        """Standard deviation of d that independent examples would need for the same standard error."""
        return self.standard_error * math.sqrt(self.n)

    @property
    def independent(self) -> float:
        """Number of equally informative independent examples: one per document, more if a document's examples
        differ."""
        if self.standard_error == 0:
            return self.size
        variance = float(np.var(self.values)) * self.size / (self.size - 1)
        return max(self.size, self.n * min(1.0, variance / self.deviation**2))


def mean_limits(differences: Column, level: float = 0.05, groups: Sequence[Hashable] | None = None) -> MeanLimits:
    """Limits of the mean of differences in [-1, 1]. The mean is beyond each limit with a chance of ``level``. None is a
    missing value.

    Examples of a kind that was never seen may have the worst value. Their share is at most 1 - level^(1/m), because m
    independent examples were seen without them. So 59 examples are needed to rule out a loss of .05.

    Raises:
        InputError: There is not one group for each difference.
    """
    units = _units(differences, groups)
    if units is None or units.size < MINIMUM_ITEMS:
        value = None if units is None else units.mean
        return MeanLimits(value, None, None, units.n if units else 0, units.size if units else 0)
    critical, error = float(_distributions().t.ppf(1 - level, units.size - 1)), units.standard_error
    low = units.mean - error * _back(critical, units.skewed)
    high = units.mean - error * _back(-critical, units.skewed)
    unseen = 1 - level ** (1 / units.independent)
    low = min(low, units.mean - unseen * (1 + float(units.values.min())))
    high = max(high, units.mean + unseen * (1 - float(units.values.max())))
    return MeanLimits(units.mean, max(-1.0, low), min(1.0, high), units.n, units.size, units.deviation)


def p_worse(differences: Column, margin: float, groups: Sequence[Hashable] | None = None) -> float | None:
    """One-sided p-value of "the mean loss is at most ``margin``"; small values prove a larger loss.

    None with fewer than three documents.

    Raises:
        InputError: There is not one group for each difference.
    """
    units = _units(differences, groups)
    if units is None or units.size < MINIMUM_ITEMS:
        return None
    if units.standard_error == 0:  # all alike: the chance that no other document was drawn
        return ((1 - margin) / 2) ** units.size if units.mean < -margin else 1.0
    skewed = units.skewed
    ratio = (units.mean + margin) / units.standard_error
    # ((1 + skewed ratio)^3 - 1) / (3 skewed), written so that it holds for a skewness near 0
    shifted = ratio + skewed * ratio**2 + skewed**2 * ratio**3 / 3
    return float(_distributions().t.cdf(shifted + skewed / 2, units.size - 1))


@dataclass(frozen=True)
class SpreadEstimate:
    """Spread of d, for planning a test."""

    deviation: float
    """Standard deviation that independent examples would need for the same standard error."""
    skewness: float = 0.0
    """Skewness of d. Below 0, losses are rarer and larger than gains, and more examples are needed."""
    freedom: float = math.inf
    """Degrees of freedom of the variance. Infinite if the variance is assumed; fewer than the number of documents if a
    few documents make up most of the variance."""
    together: float = 1.0
    """Average number of examples in a document."""

    @property
    def most(self) -> SpreadEstimate:
        """Largest likely spread: the true deviation is below it, except with a chance of .05."""
        if math.isinf(self.freedom):
            return self
        ratio = math.sqrt(self.freedom / float(_distributions().chi2.ppf(0.05, self.freedom)))
        return replace(self, deviation=self.deviation * ratio, freedom=math.inf)

    def careful(self, level: float, power: float) -> SpreadEstimate:
        """Return the spread to plan with: the test has its power on average over the uncertainty of the deviation.

        Source: Julious and Owen, Pharm. Stat. 5, 2006.
        """
        if math.isinf(self.freedom):
            return self
        z = float(_distributions().norm.ppf(1 - level))
        ratio = float(_distributions().nct.ppf(power, self.freedom, z)) / (z + float(_distributions().norm.ppf(power)))
        return replace(self, deviation=self.deviation * ratio, freedom=math.inf)


FEWEST_FREEDOM = 3.0
"""Lower limit of a measured spread's degrees of freedom."""
MOST_EXAMPLES = 10_000_000
"""Largest number of examples that :func:`examples_needed` returns."""


def measure_spread(differences: Column, groups: Sequence[Hashable] | None = None) -> SpreadEstimate | None:
    """Measure the spread of differences in [-1, 1]. Returns None for fewer than three documents, or equal values.

    Raises:
        InputError: There is not one group for each difference.
    """
    units = _units(differences, groups)
    if units is None or units.size < MINIMUM_ITEMS or units.standard_error == 0:
        return None
    squares = units.deviations**2
    kurtosis = float(np.mean(squares**2) / np.mean(squares) ** 2)
    # A chi-squared variable with this many degrees of freedom has the same variance of the variance
    # (Cramer 1946, 27.4.2).
    relative = (kurtosis - (units.size - 3) / (units.size - 1)) / units.size
    freedom = min(units.size - 1.0, max(FEWEST_FREEDOM, 2 / relative))
    return SpreadEstimate(units.deviation, units.skewness, freedom, units.n / units.size)


def loss_ruled_out(examples: int, spread: SpreadEstimate, level: float = 0.05, power: float = 0.8) -> float:
    """Smallest loss that ``examples`` examples rule out with chance ``power``, if there is no loss.

    It is (z + z') deviation / sqrt(examples) with Guenther's term for Student's t (Amer. Statist. 35, 1981). For a
    skewed d, Hall's transformation replaces z. The loss is never below the largest likely share of a kind of example
    that was never seen.
    """
    if examples < MINIMUM_ITEMS:
        return 1.0
    z, spread = float(_distributions().norm.ppf(1 - level)), spread.careful(level, power)
    documents = max(1.0, examples / spread.together - z**2 / 2)
    limit = _back(z, min(0.0, spread.skewness) / (3 * math.sqrt(documents)))
    closed = (
        (limit + float(_distributions().norm.ppf(power))) * spread.deviation / math.sqrt(documents * spread.together)
    )
    return float(min(1.0, max(closed, 1 - level ** (1 / examples))))


def examples_needed(spread: SpreadEstimate, margin: float, level: float = 0.05, power: float = 0.8) -> int:
    """Number of examples that show a loss of at most ``margin`` with chance ``power``, if the pass rates are equal.

    This is the inverse of :func:`loss_ruled_out`. Fewer than 59 never rule out a loss of .05 at level .05.
    """
    spread = spread.careful(level, power)
    sizes = range(MOST_EXAMPLES)
    return bisect_left(sizes, True, key=lambda size: loss_ruled_out(size, spread, level, power) <= margin)


def _units(differences: Column, groups: Sequence[Hashable] | None) -> _Units | None:
    (values,), keep = complete(differences)
    if len(values) == 0:
        return None
    codes = np.arange(len(values)) if groups is None else group_codes(groups, keep)
    sizes = np.bincount(codes).astype(np.float64)
    sums = np.bincount(codes, weights=values)
    mean, typical = float(values.mean()), len(values) / len(sizes)
    return _Units(mean, len(values), (sums - sizes * mean) / typical, values)


def _back(critical: float, skewed: float) -> float:
    """Standardised mean at which Hall's transformation equals the critical value."""
    if abs(skewed) < 1e-9:
        return critical
    return (float(np.cbrt(1 + 3 * skewed * (critical - skewed / 2))) - 1) / skewed
