"""Agreement between two judges, between a judge and people, of a judge with itself, and of people with each other.

A kappa and its interval come from the same few sums over weighted items; tests compare the values with scikit-learn's.
If one side gives all items one label, a kappa is undefined: it is None, with the reason.

Krippendorff's alpha follows his "Computing Krippendorff's Alpha-Reliability" (2011): every pair of ratings of an item
counts, items with one rating are left out, and raters may have rated different items. It is a kernel for weighted
items, because its interval resamples them. The package ``krippendorff`` is under the GPL, and has no intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
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
Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
Codes = NDArray[np.intp]

MOST_LABELS = 101
"""Most different labels; more are measurements, not labels. 0 to 100 is the longest scale."""
FEWEST_TOGETHER = 10
"""Fewest items that two raters must both have rated, so that they are compared."""
_ROUNDING = 1e-9


def observed_agreement(a: Column, b: Column, resampling: Resampling = USUAL, *, tolerance: float = 0.0) -> Statistic:
    """Share of items on which two raters differ by at most ``tolerance`` (EIG paper §4.1), not corrected for chance.

    The paper's tolerance is 1 point on a 5-point scale and 2 points on a 10-point scale. A missing rating is None.
    Raises InputError where the columns do not match, or the tolerance is negative.
    """
    statistic = mean_with_interval(agreement_hits(a, b, tolerance=tolerance), resampling, "no item has both ratings")
    return without_false_certainty(statistic, "they agree on none" if statistic.value == 0 else _alike(statistic))


def agreement_hits(a: Column, b: Column, *, tolerance: float = 0.0) -> list[float | None]:
    """Return 1 for each item whose two ratings differ by at most ``tolerance``, 0 if by more, None if one is missing.

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

    Labels are numbers, None where missing. ``quadratic`` weights a disagreement by the square of its size. Labels must
    then be whole numbers (`to_points` rounds scores to them), and a label that nobody gives still counts as a step of
    the scale. Raises InputError where the columns do not match, or the values are no labels.
    """
    return kappa_self([a, b], resampling, weights=weights)


def kappa_self(
    repeats: Sequence[Column], resampling: Resampling = USUAL, *, weights: KappaWeights = "none"
) -> Statistic:
    """Self-consistency: mean of Cohen's kappa over all pairs of repeated judgings (EIG paper §4.1).

    Items with a label in all columns are used. Raises InputError for fewer than two columns, and like `cohen_kappa`.
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
    """Correlate each rater with the mean of the other raters, and return the mean over the raters.

    Only items with all ratings are used. The result is undefined if a rater, or the mean of the others, is constant.
    Raises InputError for fewer than two raters, or if the columns do not match.
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
    """Round scores in [0, 1] to whole points from 1 to ``points``: the nearest, halves up; None stays None.

    Raises InputError if a score is outside [0, 1], or there are fewer than 2 points.
    """
    if points < 2:
        raise InputError(f"There is no scale of {points} points from 0 to 1.")
    for place, score in enumerate(scores, 1):
        if score is not None and not -_ROUNDING <= score <= 1 + _ROUNDING:
            raise InputError(f"Score {place} is {score:g}, outside 0 to 1.")
    return [None if score is None else 1 + int(np.floor(score * (points - 1) + 0.5 + _ROUNDING)) for score in scores]


def label_codes(columns: Sequence[Vector], weights: KappaWeights) -> list[Codes]:
    """Number the labels of all columns from 0: each different label, or each step of the scale for quadratic weights.

    Raises InputError if labels for quadratic weights are not whole numbers, or there are more than ``MOST_LABELS``.
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
    one_hot_a, one_hot_b, differ = (each.astype(np.float64) for each in (a == labels, b == labels, a != b))

    def plain(drawn: Weights) -> Vector:
        n = drawn.sum(axis=0)
        counts_a, counts_b = one_hot_a @ drawn, one_hot_b @ drawn
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


def as_table(raters: Sequence[Column]) -> Weights:
    """Put ratings into a table of shape (items, raters), NaN where missing. Raises InputError where columns do not
    match."""
    for ratings in raters:
        complete(raters[0], ratings)  # refuses columns of other lengths
    return np.column_stack([np.asarray(ratings, dtype=np.float64) for ratings in raters])


def krippendorff_alpha(raters: Sequence[Column], level: Level, resampling: Resampling = USUAL) -> Statistic:
    """Krippendorff's alpha of the raters' values, at most 1. Each rater has one column; a missing rating is None.

    ``level`` says whether values are names (``nominal``), ranks (``ordinal``) or numbers (``interval``). ``n`` is the
    number of items with two ratings or more. Alpha is undefined if all ratings are the same. Raises InputError where
    the columns do not match.
    """
    table = as_table(raters)
    keep = np.count_nonzero(~np.isnan(table), axis=1) > 1
    n = int(keep.sum())
    if n < MINIMUM_ITEMS:
        return Statistic(None, n, reason=f"fewer than {MINIMUM_ITEMS} items have two ratings or more (there are {n})")
    values, counts, reason = _value_counts(table[keep])
    if reason is not None:
        return Statistic(None, n, reason=reason)
    alpha = bootstrapped(_alpha(counts, values, level), keep, affordable(resampling, "spearman", n))
    return without_false_certainty(alpha, "all raters agree on every item")


def _value_counts(table: Weights) -> tuple[Vector, Weights, str | None]:
    """Return the different ratings, their counts for each item, shape (items, values), and why they cannot be used."""
    rated = tied(table)
    values = np.unique(rated[~np.isnan(rated)])
    if len(values) == 1:
        return values, values, f"all ratings are the same ({values[0]:g})"
    if len(values) > MOST_LABELS:
        return values, values, f"there are more than {MOST_LABELS} different ratings"
    counts = np.stack([np.count_nonzero(rated == value, axis=1) for value in values], axis=1).astype(np.float64)
    return values, counts, None


def _alpha(counts: Weights, values: Vector, level: Level) -> Kernel:
    """Krippendorff's alpha for weighted items; ``counts`` (items, values) is how many raters gave each value."""
    first, second = np.triu_indices(len(values), 1)
    pairs = counts[:, first] * counts[:, second] / (counts.sum(axis=1, keepdims=True) - 1)

    def kernel(drawn: Weights) -> Vector:
        given_counts = counts.T @ drawn
        if level == "ordinal":  # the distance of two ranks is the number of ratings between their middles
            ranks = np.cumsum(given_counts, axis=0) - given_counts / 2
            distance = (ranks[first] - ranks[second]) ** 2
        elif level == "interval":
            distance = ((values[first] - values[second]) ** 2)[:, np.newaxis]
        else:
            distance = np.ones((1, 1))
        observed = (pairs.T @ drawn * distance).sum(axis=0)
        expected = (given_counts[first] * given_counts[second] * distance).sum(axis=0)
        alpha = np.full(drawn.shape[1], np.nan)
        varies = expected > 0
        alpha[varies] = 1 - (given_counts.sum(axis=0)[varies] - 1) * observed[varies] / expected[varies]
        return alpha

    return kernel


def fleiss_kappa(raters: Sequence[Column], resampling: Resampling = USUAL) -> Statistic:
    """Fleiss' kappa of the raters' values, treated as names, over the items that all raters rated; at most 1.

    Source: Fleiss, "Measuring nominal scale agreement among many raters" (Psychological Bulletin 76, 1971). It cannot
    handle missing ratings; :func:`krippendorff_alpha` can. ``n`` is the number of items. Kappa is undefined if all
    ratings are the same. Raises InputError where the columns do not match.
    """
    table = as_table(raters)
    keep = np.asarray(~np.isnan(table).any(axis=1))
    n = int(keep.sum())
    if len(raters) < 2 or n < MINIMUM_ITEMS:
        return Statistic(
            None, n, reason=f"fewer than {MINIMUM_ITEMS} items have a rating of every rater (there are {n})"
        )
    _, counts, reason = _value_counts(table[keep])
    if reason is not None:
        return Statistic(None, n, reason=reason)
    every = len(raters)
    agreed = (counts * (counts - 1)).sum(axis=1) / (every * (every - 1))

    def kernel(drawn: Weights) -> Vector:
        shares = (counts.T @ drawn) / (every * drawn.sum(axis=0))
        observed, expected = agreed @ drawn / drawn.sum(axis=0), (shares**2).sum(axis=0)
        kappa = np.full(drawn.shape[1], np.nan)
        varies = expected < 1
        kappa[varies] = (observed[varies] - expected[varies]) / (1 - expected[varies])
        return kappa

    found = bootstrapped(kernel, keep, affordable(resampling, "spearman", n))
    return without_false_certainty(found, "all raters agree on every item")


def others_mean(raters: Sequence[Column], place: int) -> list[float | None]:
    """Return the other raters' mean for each item that this rater rated; None if this rater, or everybody else, gave no
    rating."""
    table = as_table(raters)
    other_ratings = np.delete(table, place, axis=1)
    rated = ~np.isnan(other_ratings)
    count = rated.sum(axis=1)
    means = np.where(rated, other_ratings, 0).sum(axis=1) / np.maximum(count, 1)
    return [
        None if np.isnan(own) or not n else float(mean)
        for own, n, mean in zip(table[:, place], count, means, strict=True)
    ]


def leniency(raters: Sequence[Column], place: int, resampling: Resampling = USUAL) -> Statistic:
    """Mean difference between one rater's ratings and the other raters' mean for the same items, in rating points."""
    own = raters[place]
    gaps = [
        None if other is None else float(mine) - other
        for mine, other in zip(as_table([own])[:, 0], others_mean(raters, place), strict=True)
    ]
    difference = mean_with_interval(gaps, resampling, "nobody else rated the same items")
    return without_false_certainty(difference, "the difference is always the same")


def with_the_rest(raters: Sequence[Column], place: int, resampling: Resampling = USUAL) -> Statistic:
    """Spearman's correlation of one rater with the mean of the others, over items that somebody else rated too."""
    return leave_one_out([raters[place], others_mean(raters, place)], "spearman", resampling)


def mean_over_parts(parts: Sequence[tuple[Kernel, NDArray[np.bool_]]]) -> Kernel:
    """Mean of a statistic over parts of the items, weighted by the parts' sizes. Each part has a kernel and a mask.

    A part whose statistic is undefined in a resample is left out of the mean. The mean is NaN if all are undefined.
    """
    sizes = np.array([mask.sum() for _, mask in parts], dtype=np.float64)[:, np.newaxis]

    def kernel(drawn: Weights) -> Vector:
        rows = np.vstack([part_kernel(drawn[mask]) for part_kernel, mask in parts])
        weights = np.where(np.isnan(rows), 0.0, sizes)
        total = weights.sum(axis=0)
        mean = (np.nan_to_num(rows) * weights).sum(axis=0) / np.maximum(total, 1.0)
        result: Vector = np.where(total > 0, mean, np.nan)
        return result

    return kernel


def one_with_another(raters: Sequence[Column], resampling: Resampling = USUAL) -> Statistic:
    """Mean of Spearman's correlation over pairs of raters, weighted by the number of items that a pair has in common.

    Pairs with fewer than :data:`FEWEST_TOGETHER` items in common are left out; ``n`` counts the items of the remaining
    pairs. Raises InputError where the columns do not match.
    """
    table = as_table(raters)
    is_rated = ~np.isnan(table)
    used = np.zeros(len(table), dtype=np.bool_)
    pair_kernels: list[tuple[Kernel, NDArray[np.bool_]]] = []
    for one, other in combinations(range(table.shape[1]), 2):
        has_both = is_rated[:, one] & is_rated[:, other]
        a, b = table[has_both, one], table[has_both, other]
        if len(a) >= FEWEST_TOGETHER and np.ptp(a) > 0 and np.ptp(b) > 0:
            used |= has_both
            pair_kernels.append((correlation_kernel("spearman", a, b), has_both))
    n = int(used.sum())
    if not pair_kernels:
        reason = f"no two raters gave different ratings to {FEWEST_TOGETHER} or more of the same items"
        return Statistic(None, n, reason=reason)
    kernel = mean_over_parts([(pair_kernel, has_both[used]) for pair_kernel, has_both in pair_kernels])
    return bootstrapped(kernel, used, affordable(resampling, "spearman", n))


def ceiling(one_rater: Statistic, k: float) -> Statistic:
    """Correlation that a perfect judge could have with the mean of ``k`` raters: √(k r / (1 + (k - 1) r)).

    ``one_rater`` is r, the correlation of one rater with another (:func:`one_with_another`). The formula is the root of
    Spearman and Brown's reliability of the mean, for a judge without error. The interval comes from r's interval.
    """
    if one_rater.value is None:
        return one_rater
    if one_rater.value <= 0:
        return Statistic(None, one_rater.n, reason="one rater does not agree with another beyond chance")

    def best(r: float | None) -> float | None:
        return None if r is None else sqrt(k * max(r, 0.0) / (1 + (k - 1) * max(r, 0.0)))

    return replace(one_rater, value=best(one_rater.value), low=best(one_rater.low), high=best(one_rater.high))


def steps_of(raters: Mapping[str, Column]) -> dict[str, list[float | None]]:
    """Turn ratings into whole steps of their scale. If all ratings are whole numbers, they stay; else each rating
    becomes its place among the different ratings.
    """
    table = as_table(list(raters.values()))
    values = np.unique(tied(table[~np.isnan(table)]))
    if np.array_equal(values, np.round(values)):
        codes = table
    else:
        codes = np.where(np.isnan(table), np.nan, np.searchsorted(values, tied(table) - 1e-9))
    return {
        name: [None if np.isnan(code) else float(code) for code in codes[:, place]] for place, name in enumerate(raters)
    }
