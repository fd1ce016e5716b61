"""Is a change shown to lose no more than a margin? One-sided limits of a mean loss, and the size that shows it.

The difference d of an example is the new pass rate minus the old one, in [-1, 1]. The change is shown to lose at most
``margin`` if the lower limit of the mean of d lies above -margin (a test for non-inferiority). The limits are those of
Student's t, corrected for the skewness of d by Hall's transformation (J. R. Statist. Soc. B 54, 1992): losses are
rare and large, and the plain limits then show too much. Examples of one document count as one unit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, nct, norm, t

from .correlation import Column
from .resampling import MINIMUM_ITEMS, Vector, complete, group_codes

ENOUGH_CHANGES = 10
"""From so many units on that differ from the most common value, the limits rest on what was seen."""


@dataclass(frozen=True)
class MeanLimits:
    """A mean difference with its two one-sided limits."""

    value: float | None
    """Mean of d, in [-1, 1]; None without examples."""
    low: float | None
    """The mean is above it, but for a chance of ``level``; None with fewer than three units."""
    high: float | None
    """The mean is below it, but for a chance of ``level``."""
    n: int
    """Examples with both values."""
    units: int
    """Documents, or examples where no document is named."""
    deviation: float | None = None
    """Standard deviation of d that independent examples would need for the same certainty."""


@dataclass(frozen=True)
class _Units:
    """Differences by document, as deviations from the mean of all examples."""

    mean: float
    n: int
    deviations: Vector
    """One number a document: the sum of its examples' deviations, in units of the mean document's size."""
    values: Vector
    """Mean difference of each document."""

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def standard_error(self) -> float:
        return math.sqrt(float(self.deviations @ self.deviations) / (self.size - 1) / self.size)

    @property
    def skewness(self) -> float:
        spread = math.sqrt(float(np.mean(self.deviations**2)))
        return float(np.mean(self.deviations**3)) / spread**3 if spread > 0 else 0.0

    @property
    def changes(self) -> int:
        """Documents whose value is not the most common one."""
        _, counts = np.unique(np.round(self.values, 12), return_counts=True)
        return self.size - int(counts.max())


def mean_limits(differences: Column, level: float = 0.05, groups: Sequence[Hashable] | None = None) -> MeanLimits:
    """Limits of the mean of differences in [-1, 1], each exceeded with a chance of ``level``; None is a missing value.

    Where fewer than ten documents differ from the most common value, a document of a kind that was never seen may
    have the worst value there is: its share is at most 1 - level^(1/m) of m documents.

    Raises:
        InputError: There is not one group for each difference.
    """
    units = _units(differences, groups)
    if units is None or units.size < MINIMUM_ITEMS:
        value = None if units is None else units.mean
        return MeanLimits(value, None, None, units.n if units else 0, units.size if units else 0)
    critical, error = float(t.ppf(1 - level, units.size - 1)), units.standard_error
    low = units.mean - error * _transformed_back(critical, units)
    high = units.mean - error * _transformed_back(-critical, units)
    if units.changes < ENOUGH_CHANGES:
        unseen = 1 - level ** (1 / units.size)
        low = min(low, units.mean - unseen * (1 + float(units.values.min())))
        high = max(high, units.mean + unseen * (1 - float(units.values.max())))
    deviation = error * math.sqrt(units.n)
    return MeanLimits(units.mean, max(-1.0, low), min(1.0, high), units.n, units.size, deviation)


def p_worse(differences: Column, margin: float, groups: Sequence[Hashable] | None = None) -> float | None:
    """One-sided p-value of "the mean loss is at most ``margin``"; small values prove a larger loss.

    None where fewer than three documents, or fewer than two different values, leave nothing to test.

    Raises:
        InputError: There is not one group for each difference.
    """
    units = _units(differences, groups)
    if units is None or units.size < MINIMUM_ITEMS:
        return None
    if units.standard_error == 0:  # all alike: the chance that no other document was drawn
        return ((1 - margin) / 2) ** units.size if units.mean < -margin else 1.0
    skewed = _skewness_term(units)
    ratio = (units.mean + margin) / units.standard_error
    shifted = ratio if skewed == 0 else ((1 + skewed * ratio) ** 3 - 1) / (3 * skewed)
    return float(t.cdf(shifted + skewed / 2, units.size - 1))


@dataclass(frozen=True)
class Spread:
    """The standard deviation of d as some examples tell it, and how well they do."""

    deviation: float
    """Standard deviation that independent examples would need for the same certainty."""
    freedom: float
    """Degrees of freedom of its square: fewer than the documents, where a few of them make up most of it."""
    changed: float
    """Share of the documents that differ from the most common value."""

    @property
    def most(self) -> float:
        """The deviation is below it, but for a chance of .05."""
        return self.deviation * math.sqrt(self.freedom / float(chi2.ppf(0.05, self.freedom)))

    def careful(self, level: float = 0.05, power: float = 0.8) -> float:
        """Deviation to plan with, so that the power is kept on average over what is not known of it (Julious and Owen,
        Pharm. Stat. 5, 2006)."""
        z = float(norm.ppf(1 - level))
        return self.deviation * float(nct.ppf(power, self.freedom, z)) / (z + float(norm.ppf(power)))

    def examples_needed(self, margin: float, level: float = 0.05, power: float = 0.8) -> int:
        """Examples that rule out ``margin``, see :func:`examples_needed`. Where few of them would differ, there must be
        as many as rule it out without any loss."""
        found = examples_needed(self.careful(level, power), margin, level, power)
        if found * self.changed >= ENOUGH_CHANGES:
            return found
        return max(found, math.ceil(math.log(level) / math.log1p(-margin)))

    def loss_ruled_out(self, examples: int, level: float = 0.05, power: float = 0.8) -> float:
        """Loss that so many examples rule out, see :func:`loss_ruled_out`."""
        found = loss_ruled_out(examples, self.careful(level, power), level, power)
        return found if examples * self.changed >= ENOUGH_CHANGES else max(found, 1 - level ** (1 / max(1, examples)))


FEWEST_FREEDOM = 3.0
"""Degrees of freedom that are taken for a spread at least."""


def measure_spread(differences: Column, groups: Sequence[Hashable] | None = None) -> Spread | None:
    """The spread of differences in [-1, 1]; None where fewer than three documents, or equal values, tell nothing of it.

    Raises:
        InputError: There is not one group for each difference.
    """
    units = _units(differences, groups)
    if units is None or units.size < MINIMUM_ITEMS or units.standard_error == 0:
        return None
    squares = units.deviations**2
    kurtosis = float(np.mean(squares**2) / np.mean(squares) ** 2)
    # the variance of a variance (Cramer 1946, 27.4.2), as that of a chi-squared variable with so many degrees
    relative = (kurtosis - (units.size - 3) / (units.size - 1)) / units.size
    freedom = min(units.size - 1.0, max(FEWEST_FREEDOM, 2 / relative))
    return Spread(units.standard_error * math.sqrt(units.n), freedom, units.changes / units.size)


def examples_needed(deviation: float, margin: float, level: float = 0.05, power: float = 0.8) -> int:
    """Examples with which equal pass rates are shown to lose at most ``margin`` in a share ``power`` of all cases.

    ``deviation`` is the standard deviation of d. The closed form is ((z + z') deviation / margin)^2, with Guenther's
    term for Student's t (Amer. Statist. 35, 1981). Where nearly all differences are 0, more may be needed: about 60
    examples must be without loss before a loss of .05 is ruled out.
    """
    z = float(norm.ppf(1 - level) + norm.ppf(power))
    return max(MINIMUM_ITEMS, math.ceil((z * deviation / margin) ** 2 + float(norm.ppf(1 - level)) ** 2 / 2))


def loss_ruled_out(examples: int, deviation: float, level: float = 0.05, power: float = 0.8) -> float:
    """Loss that so many examples rule out in a share ``power`` of the cases without any: the inverse of
    :func:`examples_needed`."""
    if examples < MINIMUM_ITEMS:
        return 1.0
    z = float(norm.ppf(1 - level) + norm.ppf(power))
    return min(1.0, z * deviation / math.sqrt(max(1.0, examples - float(norm.ppf(1 - level)) ** 2 / 2)))


def _units(differences: Column, groups: Sequence[Hashable] | None) -> _Units | None:
    (values,), keep = complete(differences)
    if len(values) == 0:
        return None
    codes = np.arange(len(values)) if groups is None else group_codes(groups, keep)
    sizes = np.bincount(codes).astype(np.float64)
    sums = np.bincount(codes, weights=values)
    mean, typical = float(values.mean()), len(values) / len(sizes)
    return _Units(mean, len(values), (sums - sizes * mean) / typical, sums / sizes)


def _skewness_term(units: _Units) -> float:
    return units.skewness / (3 * math.sqrt(units.size))


def _transformed_back(critical: float, units: _Units) -> float:
    """Standardised mean at which Hall's transformation takes the critical value."""
    skewed = _skewness_term(units)
    if abs(skewed) < 1e-9:
        return critical
    return (float(np.cbrt(1 + 3 * skewed * (critical - skewed / 2))) - 1) / skewed
