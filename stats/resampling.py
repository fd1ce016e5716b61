"""Statistics with percentile bootstrap intervals, computed by kernels: functions of weighted items.

A resample is a column of weights: how often each item was drawn. One kernel gives the point estimate (all weights 1),
the bootstrap of items and the bootstrap of whole documents. Numpy computes a block of resamples together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..prompts.errors import InputError

Vector = NDArray[np.float64]
Weights = NDArray[np.float64]
Kernel = Callable[[Weights], Vector]

BLOCK = 64
"""Resamples computed together, for up to 1,600 items."""
_BLOCK_CELLS = 1_600 * BLOCK
_SMALLEST_BLOCK = 8
MAX_UNDEFINED_SHARE = 0.2
"""An interval is reported only if at most this share of the resamples is undefined (a constant column)."""
_ROUNDING = 1e-9
MINIMUM_ITEMS = 3
"""No statistic is computed from fewer items (or groups, or systems) than this."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings of a bootstrap. Raises InputError where a setting is out of range."""

    groups: Sequence[Hashable] | None = None
    """Document (or other cluster) of each item. Whole documents are drawn, because their items are not independent."""
    resamples: int = 2000
    level: float = 0.95
    """Coverage of the interval, between 0 and 1."""
    seed: int = 42
    """Same seed, same resamples."""

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.resamples < 1:
            raise InputError(f"The number of resamples is {self.resamples}; it must be at least 1 (2000 is usual).")
        if not 0.0 < self.level < 1.0:
            raise InputError(f"The interval's level is {self.level}; it must lie between 0 and 1, for example 0.95.")

    def units(self, keep: NDArray[np.bool_]) -> tuple[int, NDArray[np.intp] | None]:
        """Return the number of items kept, or of their groups, and the group number of each item kept, if grouped.

        Raises InputError where there is not one group for each item.
        """
        if self.groups is None:
            return int(np.count_nonzero(keep)), None
        codes = group_codes(self.groups, keep)
        return int(codes.max(initial=-1)) + 1, codes

    def only(self, keep: NDArray[np.bool_]) -> Resampling:
        """Return the settings for only the items kept. Raises InputError where there is not one group for each item."""
        if self.groups is None:
            return self
        _check_groups(self.groups, keep)
        return replace(self, groups=[group for group, kept in zip(self.groups, keep, strict=True) if kept])

    def weights(self, keep: NDArray[np.bool_]) -> Iterator[Weights]:
        """Draw the resamples of the items kept, with :func:`resample_weights`."""
        units, codes = self.units(keep)
        return resample_weights(units, self.resamples, self.seed, codes)


USUAL = Resampling()


def complete(*columns: Sequence[float | None] | ArrayLike) -> tuple[list[Vector], NDArray[np.bool_]]:
    """Keep the items with a number in every column (None and NaN are missing). Returns the columns and the mask, shape
    (items,).

    Raises InputError if a column is not one-dimensional, the lengths differ, or a value is infinite.
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

    Raises InputError where there is not one group for each item.
    """
    _check_groups(groups, keep)
    seen: dict[Hashable, int] = {}
    chosen = (group for group, kept in zip(groups, keep, strict=True) if kept)
    return np.array([seen.setdefault(group, len(seen)) for group in chosen], dtype=np.intp)


def _check_groups(groups: Sequence[Hashable], keep: NDArray[np.bool_]) -> None:
    if len(groups) != len(keep):
        raise InputError(
            f"There are {len(groups)} group names for {len(keep)} items; give one for every item, in order."
        )


def block_width(items: int) -> int:
    """Number of resamples computed together: 64, and fewer for more than 1,600 items."""
    # The block stays in the processor's cache, and below the size at which numpy's matrix product starts threads: on a
    # busy machine threads wait for one another (10,000 items, 64 resamples: 140 ms instead of 3).
    return max(_SMALLEST_BLOCK, min(BLOCK, _BLOCK_CELLS // max(items, 1)))


def resample_weights(units: int, resamples: int, seed: int, codes: NDArray[np.intp] | None = None) -> Iterator[Weights]:
    """Draw bootstrap resamples as counts, in blocks of shape (items, up to 64).

    ``codes`` are the group numbers of the items; groups are drawn whole.
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
    """Return the percentile interval over the defined resamples (NaN is undefined), or why there is no interval."""
    undefined = int(np.isnan(values).sum())
    if undefined > MAX_UNDEFINED_SHARE * len(values):
        share = f"{undefined} of {len(values)} resamples have constant scores"
        return None, None, f"no interval: {share}, more than {MAX_UNDEFINED_SHARE:.0%}"
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), None


def tied(values: Vector) -> Vector:
    """Round to 40 bits (12 digits), so that means of the same verdicts, added in another order, stay tied."""
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
    """Say in words that a column is constant, and at which value; None if the column varies, or is empty."""
    if len(values) == 0 or np.ptp(tied(values)) > 0:
        return None
    return f"the {name} are constant (all {float(values[0]):.6g})"


def unweighted(kernel: Kernel, items: int) -> float:
    """Return the point estimate of a kernel: every item has weight 1. NaN where undefined."""
    return float(kernel(np.ones((items, 1)))[0])


@dataclass(frozen=True)
class Statistic:
    """A statistic with its number of items and its interval."""

    value: float | None
    """The statistic, in [-1, 1]; None where it is undefined."""
    n: int
    """Number of complete items (or groups, or systems) that it was computed from."""
    low: float | None = None
    """Lower end of the interval; None if there is no interval."""
    high: float | None = None
    """Upper end of the interval; None if there is no interval."""
    reason: str | None = None
    """Why the value, or only the interval, is missing; None if both are there."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in the form of ``result.json``."""
        row: dict[str, Any] = {"value": self.value, "n": self.n, "low": self.low, "high": self.high}
        return row | {"reason": self.reason} if self.reason else row

    @property
    def is_point(self) -> bool:
        """Whether the interval has width 0, apart from rounding. This happens if no resample differs."""
        return self.low is not None and self.high is not None and self.high - self.low <= _ROUNDING


def record_dict(value: Any) -> Any:
    """Turn a record, and the records inside it, into the form of ``result.json``: a dictionary of fields by name.

    A record with another form has its own ``to_dict``.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return fields_dict(value)
    if isinstance(value, Mapping):
        return {name: record_dict(each) for name, each in value.items()}
    return [record_dict(each) for each in value] if isinstance(value, (list, tuple)) else value


def fields_dict(record: Any) -> dict[str, Any]:
    """Return all fields of a dataclass by name, each in the form of :func:`record_dict`."""
    return {each.name: record_dict(getattr(record, each.name)) for each in fields(record)}


def without_false_certainty(statistic: Statistic, why: str) -> Statistic:
    """Remove an interval of width 0; the reason says ``why`` no resample differs."""
    if not statistic.is_point:
        return statistic
    return replace(statistic, low=None, high=None, reason=f"no interval: {why}, so no resample differs")


def mean_kernel(values: Vector) -> Kernel:
    """Kernel for the mean of values."""
    return lambda drawn: values @ drawn / drawn.sum(axis=0)


def mean_of(kernels: Sequence[Kernel]) -> Kernel:
    """Kernel for the mean of several statistics on the same resample; NaN where one is undefined."""

    def kernel(drawn: Weights) -> Vector:
        total: Vector = np.mean([each(drawn) for each in kernels], axis=0)
        return total

    return kernel


def less(first: Kernel, other: Kernel) -> Kernel:
    """Kernel for the first statistic less the other one, on the same resample."""
    return lambda drawn: first(drawn) - other(drawn)


def with_interval(statistic: Statistic, values: Vector, level: float) -> Statistic:
    """Add the percentile interval to a statistic. ``values`` are its values on the resamples, shape (resamples,)."""
    low, high, reason = percentile_interval(values, level)
    return replace(statistic, low=low, high=high, reason=reason)


def mean_with_interval(values: Sequence[float | None], resampling: Resampling, where_none: str) -> Statistic:
    """Mean of the known values, one for each item; ``where_none`` is the reason if no value is known."""
    (known,), keep = complete(values)
    if len(known) == 0:
        return Statistic(None, 0, None, None, where_none)
    return bootstrapped(mean_kernel(known), keep, resampling)


def bootstrapped(kernel: Kernel, keep: NDArray[np.bool_], resampling: Resampling) -> Statistic:
    """Compute a statistic, with its interval, over the items kept."""
    return bootstrapped_together([kernel], keep, resampling)[0]


def bootstrapped_together(
    kernels: Sequence[Kernel], keep: NDArray[np.bool_], resampling: Resampling
) -> list[Statistic]:
    """Compute statistics over the items kept (a mask), all defined there, with intervals from the same resamples."""
    n = int(np.count_nonzero(keep))
    statistics = [Statistic(unweighted(kernel, n), n, None, None, None) for kernel in kernels]
    units, codes = resampling.units(keep)
    if units < MINIMUM_ITEMS:
        reason = (
            f"no interval: only {units} {'item' if codes is None else 'group'}{'' if units == 1 else 's'} to resample"
        )
        return [replace(statistic, reason=reason) for statistic in statistics]
    values = resample(kernels, resample_weights(units, resampling.resamples, resampling.seed, codes))
    return [with_interval(statistic, row, resampling.level) for statistic, row in zip(statistics, values, strict=True)]
