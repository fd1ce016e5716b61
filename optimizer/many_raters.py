"""Agreement among several raters at once: Fleiss' kappa (statsmodels) and Krippendorff's alpha (krippendorff)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, MissingExtraError
from .agreement import label_codes
from .correlation import Column, Statistic
from .resampling import MINIMUM_ITEMS, Vector, Weights, complete, tied
from .with_interval import bootstrapped

AlphaLevel = Literal["nominal", "ordinal", "interval", "ratio"]
Counts = NDArray[np.int64]


def fleiss_kappa(
    raters: Sequence[Column],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> Statistic:
    """Fleiss' kappa: agreement of several raters on labels, beyond chance (Psychol. Bull. 76, 1971).

    Args:
        raters: Two or more columns, one label per item; items that all of them labelled are used. Which rater gave
            which label does not matter.
        groups: Document of each item; whole documents are then resampled.
        resamples: Number of bootstrap resamples.
        level: Coverage of the interval, between 0 and 1.
        seed: Same seed, same interval.

    Raises:
        InputError: There are fewer than two raters, the columns do not match, or the values are no labels.
        MissingExtraError: statsmodels is not installed.
    """
    vectors, keep = rated_by_all(raters)
    n = len(vectors[0])
    if few := too_few(n, "all ratings"):
        return few
    codes = np.stack(label_codes(vectors, "none"), axis=1)
    counts = _counts(codes, int(codes.max()) + 1)
    if counts.shape[1] == 1:
        return Statistic(None, n, None, None, "every rating of every item is the same")
    try:
        from statsmodels.stats.inter_rater import fleiss_kappa as library
    except ImportError:
        raise MissingExtraError("stats", "statsmodels") from None
    size = len(raters)
    table = counts.astype(np.float64)
    alike = ((table**2).sum(axis=1) - size) / (size * (size - 1))

    def kernel(drawn: Weights) -> Vector:
        total = drawn.sum(axis=0)
        shares = table.T @ drawn / (size * total)
        chance = np.einsum("kr,kr->r", shares, shares)
        varies = shares.max(axis=0) < 1
        value = np.full(len(total), np.nan)
        observed = alike @ drawn / total
        value[varies] = (observed[varies] - chance[varies]) / (1 - chance[varies])
        return value

    return bootstrapped(float(library(counts)), kernel, keep, groups, resamples, level, seed)


def krippendorff_alpha(
    raters: Sequence[Column],
    *,
    measurement: AlphaLevel = "ordinal",
    groups: Sequence[Hashable] | None = None,
    resamples: int = 500,
    level: float = 0.95,
    seed: int = 42,
) -> Statistic:
    """Krippendorff's alpha: agreement of several raters, some of whom did not rate everything.

    Args:
        raters: Two or more columns, one rating per item; None where a rater gave none.
        measurement: What may be compared of two ratings: whether they are the same, their order, difference or ratio.
        groups: Document of each item; whole documents are then resampled.
        resamples: Number of bootstrap resamples; each is a call of the library (0.4 ms with 1,600 items).
        level: Coverage of the interval, between 0 and 1.
        seed: Same seed, same interval.

    Returns:
        The alpha; ``n`` counts the items with two ratings or more.

    Raises:
        InputError: There are fewer than two raters, the columns do not match, or the values are no labels.
        MissingExtraError: krippendorff is not installed.
    """
    rated_by_all(raters)  # raises where they do not match
    ratings = np.stack([np.asarray(column, dtype=np.float64) for column in raters], axis=1)
    keep = np.count_nonzero(~np.isnan(ratings), axis=1) > 1
    ratings = tied(ratings[keep])
    n = len(ratings)
    if few := too_few(n, "two ratings"):
        return few
    domain = np.unique(ratings[~np.isnan(ratings)])
    if len(domain) == 1:
        return Statistic(None, n, None, None, f"every rating is the same ({domain[0]:g})")
    codes = np.where(np.isnan(ratings), -1, np.searchsorted(domain, np.nan_to_num(ratings, nan=domain[0])))
    counts = _counts(codes.astype(np.intp), len(domain))

    def kernel(drawn: Weights) -> Vector:
        times = drawn.astype(np.intp)
        return np.array([_alpha(np.repeat(counts, column, axis=0), domain, measurement) for column in times.T])

    value = _alpha(counts, domain, measurement)
    return bootstrapped(value, kernel, keep, groups, resamples, level, seed)


def _alpha(counts: Counts, domain: Vector, measurement: AlphaLevel) -> float:
    """Alpha by the library; NaN where every rating is the same, on which it divides by zero or raises."""
    try:
        import krippendorff
    except ImportError:
        raise MissingExtraError("stats", "krippendorff") from None
    used = counts.any(axis=0)
    if np.count_nonzero(used) < 2:
        return float("nan")
    return float(
        krippendorff.alpha(value_counts=counts, value_domain=domain.tolist(), level_of_measurement=measurement)
    )


def _counts(codes: NDArray[np.intp], labels: int) -> Counts:
    """How many raters gave each label to each item; shape (items, labels). A code of -1 is no rating."""
    return np.stack([np.count_nonzero(codes == label, axis=1) for label in range(labels)], axis=1)


def rated_by_all(raters: Sequence[Column]) -> tuple[list[Vector], NDArray[np.bool_]]:
    """The ratings of items that every rater rated, a vector for each rater, and which of the items these are.

    Raises:
        InputError: There are fewer than two raters, or the columns do not match.
    """
    if len(raters) < 2:
        raise InputError(f"Agreement needs two raters or more; there is {len(raters)}.")
    return complete(*raters)


def too_few(n: int, ratings: str) -> Statistic | None:
    """No statistic, with the reason, of fewer items than one is computed from; None of more."""
    if n >= MINIMUM_ITEMS:
        return None
    return Statistic(None, n, None, None, f"fewer than {MINIMUM_ITEMS} items have {ratings} (there are {n})")
