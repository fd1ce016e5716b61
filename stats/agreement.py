"""Agreement between two judges, between a judge and people, of a judge with itself, and of people with each other.

A kappa and its interval come from the same few sums over weighted items, which are tested to give scikit-learn's
values. Where one side gives everything one label, a kappa says nothing: it is None, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .correlation import Column, Method, affordable, correlation_kernel
from .resampling import (
    MINIMUM_ITEMS,
    USUAL,
    Kernel,
    Resampling,
    Statistic,
    Vector,
    Weights,
    bootstrapped,
    complete,
    constant_reason,
    mean_of,
    mean_with_interval,
    tied,
    without_false_certainty,
)

KappaWeights = Literal["none", "quadratic"]
Codes = NDArray[np.intp]

MOST_LABELS = 101
"""More different labels than this are no labels but measurements: 0 to 100 is the longest scale."""
_ROUNDING = 1e-9


def observed_agreement(a: Column, b: Column, resampling: Resampling = USUAL, *, tolerance: float = 0.0) -> Statistic:
    """Share of items on which two raters differ by at most ``tolerance`` (EIG paper §4.1), not corrected for chance.

    The paper takes 1 point on a 5-point scale and 2 on a 10-point one. A missing rating is None. Raises InputError
    where the columns do not match, or the tolerance is negative.
    """
    statistic = mean_with_interval(agreement_hits(a, b, tolerance=tolerance), resampling, "no item has both ratings")
    return without_false_certainty(statistic, "they agree on none" if statistic.value == 0 else _alike(statistic))


def agreement_hits(a: Column, b: Column, *, tolerance: float = 0.0) -> list[float | None]:
    """1 where two ratings differ by at most ``tolerance``, 0 where by more, None where one is missing.

    To compare how well two judges agree with people, take `mean_difference` of their hits. Raises InputError where the
    columns do not match, or the tolerance is negative.
    """
    if tolerance < 0:
        raise InputError(f"The tolerance is {tolerance:g}; it must not be negative.")
    (left, right), keep = complete(a, b)
    hits: list[float | None] = [None] * len(keep)
    for place, hit in zip(np.flatnonzero(keep), np.abs(left - right) <= tolerance + _ROUNDING, strict=True):
        hits[place] = float(hit)
    return hits


def cohen_kappa(a: Column, b: Column, resampling: Resampling = USUAL, *, weights: KappaWeights = "none") -> Statistic:
    """Cohen's kappa of two raters' labels, plain or with quadratic weights (QWK).

    Labels are numbers, None where missing. ``quadratic`` weighs a disagreement by the square of its size. Labels must
    then be whole numbers (`to_points` rounds scores to them). Labels that nobody gives count as steps of the scale all
    the same. Raises InputError where the columns do not match, or the values are no labels.
    """
    return kappa_self([a, b], resampling, weights=weights)


def kappa_self(
    repeats: Sequence[Column], resampling: Resampling = USUAL, *, weights: KappaWeights = "none"
) -> Statistic:
    """Self-consistency: Cohen's kappa between repeated judgings, the mean over all pairs of them (EIG paper §4.1).

    Items with a label in all columns are used. Raises InputError where there are fewer than two columns, or as
    `cohen_kappa`.
    """
    if len(repeats) < 2:
        raise InputError(f"A kappa needs two columns of labels or more; there is {len(repeats)}.")
    vectors, keep = complete(*repeats)
    reason = _undefined(vectors)
    if reason is not None:
        return Statistic(None, len(vectors[0]), None, None, reason)
    kernel = mean_of([kappa_kernel(a, b, weights) for a, b in combinations(label_codes(vectors, weights), 2)])
    statistic = bootstrapped(kernel, keep, resampling)
    return without_false_certainty(statistic, _alike(statistic))


def leave_one_out(raters: Sequence[Column], method: Method = "spearman", resampling: Resampling = USUAL) -> Statistic:
    """Correlation of each rater with the mean of the others, the mean over the raters.

    Items that everybody rated are used. Undefined where a rater, or the mean of the others, is constant. Raises
    InputError where there are fewer than two raters, or the columns do not match.
    """
    if len(raters) < 2:
        raise InputError(f"Agreement needs two raters or more; there is {len(raters)}.")
    vectors, keep = complete(*raters)
    n = len(vectors[0])
    if n < MINIMUM_ITEMS:
        return Statistic(None, n, None, None, f"fewer than {MINIMUM_ITEMS} items have all ratings (there are {n})")
    kernels = []
    for place, ratings in enumerate(vectors):
        mean_of_others = np.mean([vector for other, vector in enumerate(vectors) if other != place], axis=0)
        reason = constant_reason(ratings, f"ratings of rater {place + 1}") or constant_reason(
            mean_of_others, f"mean ratings of all but rater {place + 1}"
        )
        if reason is not None:
            return Statistic(None, n, None, None, reason)
        kernels.append(correlation_kernel(method, ratings, mean_of_others))
    return bootstrapped(mean_of(kernels), keep, affordable(resampling, method, n))


def to_points(scores: Sequence[float | None], points: int) -> list[int | None]:
    """Put scores in [0, 1] on whole points from 1 to ``points``: the nearest, halves up; None stays None.

    Raises InputError where a score is outside, or there are fewer than 2 points.
    """
    if points < 2:
        raise InputError(f"There is no scale of {points} points from 0 to 1.")
    for place, score in enumerate(scores, 1):
        if score is not None and not -_ROUNDING <= score <= 1 + _ROUNDING:
            raise InputError(f"Score {place} is {score:g}, outside 0 to 1.")
    return [None if score is None else 1 + int(np.floor(score * (points - 1) + 0.5 + _ROUNDING)) for score in scores]


def label_codes(columns: Sequence[Vector], weights: KappaWeights) -> list[Codes]:
    """Number the labels of all columns from 0: each different one, or for quadratic weights each step of the scale.

    Raises InputError where labels that must be whole numbers are not, or there are too many different ones.
    """
    every = tied(np.concatenate(columns))
    if weights == "quadratic":
        if not np.array_equal(every, np.round(every)):
            value = every[every != np.round(every)][0]
            raise InputError(f"A weighted kappa needs whole points, and there is a {value:g}; round them: to_points.")
        codes: Codes = (every - every.min()).astype(np.intp)
    else:
        codes = np.unique(every, return_inverse=True)[1].astype(np.intp)
    if codes.max() >= MOST_LABELS:
        raise InputError(f"A kappa is of labels, and there are more than {MOST_LABELS}; round scores: to_points.")
    return [codes[start : start + len(columns[0])] for start in range(0, len(codes), len(columns[0]))]


def kappa_kernel(a: Codes, b: Codes, weights: KappaWeights) -> Kernel:
    """Cohen's kappa for weighted items: (n, resamples) → (resamples,); NaN where a side gives one label only."""
    if weights == "quadratic":
        x, y = a.astype(np.float64), b.astype(np.float64)
        design = np.vstack([x, y, x * x, y * y, x * y])

        def quadratic(drawn: Weights) -> Vector:
            n = drawn.sum(axis=0)
            sum_x, sum_y, sum_xx, sum_yy, sum_xy = design @ drawn
            varies = (n * sum_xx > sum_x**2) & (n * sum_yy > sum_y**2)  # whole numbers: exact
            return _share(n * (sum_xx + sum_yy - 2 * sum_xy), n * (sum_xx + sum_yy) - 2 * sum_x * sum_y, varies)

        return quadratic
    labels = np.arange(max(a.max(), b.max()) + 1)[:, np.newaxis]
    of_a, of_b, differ = (each.astype(np.float64) for each in (a == labels, b == labels, a != b))

    def plain(drawn: Weights) -> Vector:
        n = drawn.sum(axis=0)
        counts_a, counts_b = of_a @ drawn, of_b @ drawn
        varies = (counts_a.max(axis=0) < n) & (counts_b.max(axis=0) < n)
        return _share(n * (differ @ drawn), n**2 - np.einsum("kr,kr->r", counts_a, counts_b), varies)

    return plain


def _alike(agreement: Statistic) -> str:
    return "they agree on all" if agreement.value == 1 else "all groups are alike"


def _undefined(columns: Sequence[Vector]) -> str | None:
    if len(columns[0]) < MINIMUM_ITEMS:
        return f"fewer than {MINIMUM_ITEMS} items (there are {len(columns[0])})"
    reasons = (constant_reason(column, f"labels of rater {place}") for place, column in enumerate(columns, 1))
    return next((reason for reason in reasons if reason is not None), None)


def _share(observed: Vector, expected: Vector, defined: NDArray[np.bool_]) -> Vector:
    """1 - observed / expected disagreement; NaN where undefined."""
    value = np.full(len(observed), np.nan)
    value[defined] = 1 - observed[defined] / expected[defined]
    return value
