"""Is version b better than version a? Paired differences on the same examples, with interval and p-value.

The interval is the percentile bootstrap: both versions are measured on the same resamples. The p-value comes from a
swap test: if b is no better than a, the two scores of an example may be exchanged. The test exchanges them at random,
example by example. Scores are first put on one scale (their ranks, standardised), so that a version which is only more
severe does not count as a different one.

Why the swap test: simulated with no true difference, 12 to 80 examples, 1,000 trials a cell, the share of p <= 0.1 was
.09-.13 for continuous and coarse scores, independent or highly correlated. The bootstrap's share of losses gave
.03-.12, lowest when few scores changed, as after an edit, where the studentised bootstrap gave up to .18. (One question
answered 80 % yes, 12 examples: .05, .01 and .01.) With 16 examples and true correlations .42 and .62 the swap test
found the gain at p <= 0.1 in 44 trials of 100, the bootstrap in 37.

P-values of many tests at once are adjusted for the number of tests (Holm, Scand. J. Statist. 6, 1979).

This module also compares the distribution of a judge's scores with people's, e.g. the share at the maximum (BinEval
§5.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .correlation import Column, Method, affordable, correlation_kernel
from .pass_fail import LabelMetric, best_kappas, label_kernel
from .resampling import (
    MINIMUM_ITEMS,
    USUAL,
    Kernel,
    Resampling,
    Statistic,
    Vector,
    Weights,
    average_ranks,
    block_width,
    bootstrapped_together,
    complete,
    constant_reason,
    mean_kernel,
    percentile_interval,
    resample,
    tied,
    unweighted,
)

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """Gain of version b over version a on the same examples."""

    value: float | None
    """statistic(b) - statistic(a); positive if b is better. None where one of them is undefined."""
    n: int
    """Examples with a number in every column."""
    low: float | None = None
    """Lower end of the percentile bootstrap interval; None if there is no interval."""
    high: float | None = None
    """Upper end of the interval."""
    p_value: float | None = None
    """One-sided p-value of "b is not better than a", in (0, 1]; small speaks for b."""
    reason: str | None = None
    """Why the value, or only the interval, is missing; None if both are there."""
    standard_error: float | None = field(default=None, compare=False)
    """Standard deviation of the difference over the resamples; None where the difference is undefined."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in the form of ``result.json``, without the standard error."""
        row = {name: getattr(self, name) for name in ("value", "n", "low", "high", "p_value")}
        return row | {"reason": self.reason} if self.reason else row


def paired_difference(
    a: Column,
    b: Column,
    human: Column,
    resampling: Resampling = USUAL,
    *,
    statistic: Method = "spearman",
    undefined_as_zero: bool = False,
) -> Difference:
    """Difference of two versions' correlations with human scores; ``a`` is the present version, ``b`` the candidate.

    If one version's scores are constant, the difference is undefined. `undefined_as_zero` gives such a version
    correlation 0; the p-value then tests the other version's correlation against 0 (random signs). Constant human
    scores stay undefined. Many examples get fewer resamples for the interval (see `correlate`). The swap test exchanges
    the versions' standardised scores (ranks, for spearman and kendall) example by example, or document by document.
    Raises InputError where the columns do not match, or there is no such statistic.
    """
    (left, right, people), keep = complete(a, b, human)
    n = len(people)
    constant_a = constant_reason(left, "scores of version a")
    constant_b = constant_reason(right, "scores of version b")
    reason = _too_few(resampling, keep) or constant_reason(people, "human scores")
    if reason is None and not undefined_as_zero:
        reason = " and ".join(filter(None, [constant_a, constant_b])) or None
    if reason is not None:
        return _undefined(n, reason)

    kernels = [correlation_kernel(statistic, column, people) for column in (left, right)]
    point = np.nan_to_num([unweighted(kernel, n) for kernel in kernels])  # NaN only where the convention allows it
    of_people: list[Kernel] = [correlation_kernel("spearman", people, people)] if undefined_as_zero else []
    values = resample([*kernels, *of_people], affordable(resampling, statistic, n).weights(keep))
    if undefined_as_zero:
        varied = ~np.isnan(values[2])
        values[:2, varied] = np.nan_to_num(values[:2, varied])
    scaled_a, scaled_b, scaled_people = (_standardised(column, statistic) for column in (left, right, people))
    p_value = _swap_p_value(scaled_a, scaled_b, scaled_people, _signs(resampling, keep))
    return _difference(float(point[1] - point[0]), n, values[1] - values[0], resampling.level, p_value)


def two_sided_difference(a: Column, b: Column, human: Column, resampling: Resampling = USUAL) -> Difference:
    """Difference of two versions' Spearman correlations with human scores. The p-value is twice the smaller of the two
    one-sided p-values. Raises InputError where the columns do not match."""
    gain = paired_difference(a, b, human, resampling)
    loss = paired_difference(b, a, human, resampling)
    if gain.p_value is None or loss.p_value is None:
        return gain
    return replace(gain, p_value=min(1.0, 2 * min(gain.p_value, loss.p_value)))


def label_difference(
    a: Column, b: Column, labels: Column, metric: LabelMetric, resampling: Resampling = USUAL
) -> Difference:
    """Difference of two versions' agreement with the same pass/fail labels (1, 0, or None where there is none).

    Agreement is the area under the curve, or Cohen's kappa at each version's best threshold, so a version's leniency
    does not matter. A version with constant scores has an area of 0.5, or a kappa of 0. The swap test exchanges the
    versions' ranks example by example, or document by document, and chooses thresholds anew. Raises InputError where
    the columns do not match.
    """
    (left, right, passed), keep = complete(a, b, labels)
    n = len(passed)
    reason = _too_few(resampling, keep) or constant_reason(passed, "labels")
    if reason is not None:
        return _undefined(n, reason)
    kernels = [label_kernel(metric, column, passed) for column in (left, right)]
    point = [unweighted(kernel, n) for kernel in kernels]
    values = resample(kernels, resampling.weights(keep))
    ranks = [average_ranks(column) for column in (left, right)]
    if metric == "auc":  # linear in the ranks
        p_value = _sign_p_value((ranks[1] - ranks[0]) * (passed - passed.mean()), _signs(resampling, keep))
    else:
        p_value = _kappa_p_value(ranks[0], ranks[1], passed, _signs(resampling, keep))
    return _difference(point[1] - point[0], n, values[1] - values[0], resampling.level, p_value)


def _kappa_p_value(a: Vector, b: Vector, labels: Vector, signs: Iterator[Weights]) -> float:
    """One-sided p-value of the gain in kappa when ranks are swapped between the versions."""

    def gain(stays: NDArray[np.bool_]) -> Vector:
        first, second = (np.where(stays, mine[:, None], other[:, None]) for mine, other in ((a, b), (b, a)))
        return best_kappas(second, labels) - best_kappas(first, labels)

    observed = float(gain(np.ones((len(labels), 1), dtype=bool))[0])
    return _tail([gain(block > 0) for block in signs], observed)


def mean_difference(a: Column, b: Column, resampling: Resampling = USUAL) -> Difference:
    """Difference of two versions' means (accuracy, pass rate, score) on the same examples.

    The swap test exchanges the two versions' values example by example, or document by document. With 0/1 values, and
    no documents, this is McNemar's test. Raises InputError where the columns do not match.
    """
    (left, right), keep = complete(a, b)
    n = len(left)
    reason = _too_few(resampling, keep)
    if reason is not None:
        return _undefined(n, reason)
    change = right - left
    gains = resample([mean_kernel(change)], resampling.weights(keep))[0]
    p_value = _sign_p_value(change, _signs(resampling, keep))
    return _difference(float(change.mean()), n, gains, resampling.level, p_value)


def _difference(value: float, n: int, gains: Vector, level: float, p_value: float) -> Difference:
    low, high, reason = percentile_interval(gains, level)
    defined = gains[~np.isnan(gains)]
    error = float(defined.std()) if len(defined) else None
    return Difference(value, n, low, high, p_value, reason, error)


def _undefined(n: int, reason: str) -> Difference:
    return Difference(None, n, None, None, None, reason)


def _standardised(values: Vector, statistic: Method) -> Vector:
    """Mean 0, squares summing to n (all 0 for a constant); ranks are taken first, except for pearson."""
    scaled = tied(values) if statistic == "pearson" else average_ranks(values)
    centred: Vector = scaled - scaled.mean()
    if np.ptp(scaled) == 0:
        return np.zeros_like(centred)
    centred /= np.sqrt(np.mean(centred**2))
    return centred


def _swap_p_value(a: Vector, b: Vector, human: Vector, signs: Iterator[Weights]) -> float:
    """One-sided p-value of the correlation gain when standardised scores are swapped between the versions.

    A swap changes sums, sums of squares and cross products by sums over the swapped examples, so a block of
    swaps is one matrix product. A version that a swap makes constant has correlation 0.
    """
    if not a.any() or not b.any():  # a constant has nothing to swap: test the other correlation against 0
        return _sign_p_value((b - a) * human, signs)
    changes = np.vstack([b - a, b**2 - a**2, human * (b - a)])
    squares = np.array([a @ a, b @ b])
    products = np.array([human @ a, human @ b])
    n = len(human)

    def gain(swapped: Weights) -> Vector:
        shift, square, product = changes @ swapped
        r_a = _correlation(products[0] + product, squares[0] + square - shift**2 / n, n)
        r_b = _correlation(products[1] - product, squares[1] - square - shift**2 / n, n)
        return r_b - r_a

    observed = gain(np.zeros((n, 1)))[0]
    return _tail([gain((1 - block) / 2) for block in signs], observed)


def _correlation(product: Vector, square: Vector, n: int) -> Vector:
    varies = square > _ROUNDING * n
    value = np.zeros(len(square))
    value[varies] = product[varies] / np.sqrt(square[varies] * n)
    return value


def _sign_p_value(contributions: Vector, signs: Iterator[Weights]) -> float:
    """One-sided p-value of the sum of `contributions` when each (or each group's) sign is random."""
    size = max(float(np.abs(contributions).sum()), np.finfo(float).tiny)
    return _tail([contributions / size @ block for block in signs], float(contributions.sum()) / size)


def _tail(blocks: list[Vector], observed: float) -> float:
    values = np.concatenate(blocks)
    return float((1 + np.count_nonzero(values >= observed - _ROUNDING)) / (1 + len(values)))


def _signs(resampling: Resampling, keep: NDArray[np.bool_]) -> Iterator[Weights]:
    """Random signs per example or per group, in blocks of shape (examples, resamples)."""
    rng = np.random.default_rng([resampling.seed, 1])
    units, codes = resampling.units(keep)
    block = block_width(units if codes is None else len(codes))
    for start in range(0, resampling.resamples, block):
        width = min(block, resampling.resamples - start)
        signs = rng.integers(0, 2, size=(units, width), dtype=np.int8).astype(np.float64) * 2 - 1
        yield signs if codes is None else signs[codes]


def _too_few(resampling: Resampling, keep: NDArray[np.bool_]) -> str | None:
    units, codes = resampling.units(keep)
    if units >= MINIMUM_ITEMS:
        return None
    return f"fewer than {MINIMUM_ITEMS} {'items' if codes is None else 'groups'} (there are {units})"


NEAR = 0.01
"""A score in [0, 1] that is at most this far from 1 counts as being at the maximum."""


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """Comparison of a judge's scores with people's, both in [0, 1], for the same items."""

    distance: Statistic
    """Wasserstein-1 distance of the two distributions, in units of the score."""
    severity: Difference
    """Mean score less mean human score; negative for a severe judge."""
    at_maximum: Statistic
    """Share of the judge's scores at the maximum."""
    human_at_maximum: Statistic
    """Share of the human scores at the maximum."""
    ceiling: Difference
    """The judge's share at the maximum less people's; positive if the judge gives the maximum more often."""


def compare_distributions(scores: Column, human: Column, resampling: Resampling = USUAL) -> ScoreDistribution:
    """Distance between a judge's and people's distributions of scores in [0, 1], and the share of each at the maximum.

    The distance is never negative. Resamples tend to have a larger distance than the original, so read the upper end of
    the interval. Raises InputError where the columns do not match, or a score is outside [0, 1].
    """
    (left, right), keep = complete(scores, human)
    for values, name in ((left, "score"), (right, "human score")):
        outside = values[(values < 0) | (values > 1)]
        if len(outside):
            raise InputError(f"There is a {name} of {outside[0]:g}; distributions are compared on the scale 0 to 1.")
    top, human_top = ((values >= 1 - NEAR).astype(np.float64) for values in (left, right))
    kernels = (wasserstein_kernel(left, right), mean_kernel(top), mean_kernel(human_top))
    if len(left) == 0:
        nothing = Statistic(None, 0, None, None, "no item has both scores")
        distance = at_maximum = human_at_maximum = nothing
    else:
        distance, at_maximum, human_at_maximum = bootstrapped_together(kernels, keep, resampling)
    of_kept = resampling.only(keep)
    return ScoreDistribution(
        distance,
        mean_difference(right, left, of_kept),
        at_maximum,
        human_at_maximum,
        mean_difference(human_top, top, of_kept),
    )


def wasserstein_kernel(a: Vector, b: Vector) -> Kernel:
    """Wasserstein-1 distance, the area between two distribution functions, for weighted items: (n, resamples) →
    (resamples,)."""
    pooled = np.concatenate([a, b])
    order = np.argsort(pooled, kind="stable")
    gaps = np.diff(pooled[order])

    def kernel(drawn: Weights) -> Vector:
        steps = np.concatenate([drawn, -drawn])[order][:-1]
        apart = np.abs(np.cumsum(steps, axis=0))
        distance: Vector = gaps @ apart / drawn.sum(axis=0)
        return distance

    return kernel


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, which bounds the chance of any false alarm, whatever the tests' dependence.

    An adjusted p-value is compared with the level itself. None means that a test does not exist: it stays None and is
    not counted as a test. Raises InputError where a p-value is not in [0, 1].
    """
    places = [place for place, p_value in enumerate(p_values) if p_value is not None]
    known = np.array([p_value for p_value in p_values if p_value is not None], dtype=np.float64)
    wrong = np.flatnonzero(~((known >= 0) & (known <= 1)))
    if len(wrong):
        raise InputError(f"p-value {places[wrong[0]] + 1} is {known[wrong[0]]}; it must lie between 0 and 1.")
    order = np.argsort(known, kind="stable")
    adjusted = np.empty(len(known))
    adjusted[order] = np.minimum(np.maximum.accumulate(known[order] * np.arange(len(known), 0, -1)), 1.0)
    row: list[float | None] = [None] * len(p_values)
    for place, value in zip(places, adjusted, strict=True):
        row[place] = float(value)
    return row


def difference_dict(difference: Difference | None) -> dict[str, Any] | None:
    """Return a difference in the form of ``result.json``; None stays None."""
    return None if difference is None else difference.to_dict()
