"""Agreement among several raters at once: Fleiss' kappa (statsmodels) and Krippendorff's alpha (krippendorff).

How well people agree with each other: what a judge can be expected to reach.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, MissingExtraError
from ..prompts.examples import documents
from .agreement import agreement_hits, kappa_self, label_codes
from .correlation import Column, statistic_dict
from .kernels import Method, affordable_resamples, correlation_kernel
from .resampling import (
    MINIMUM_ITEMS,
    Statistic,
    Vector,
    Weights,
    bootstrapped,
    complete,
    constant_reason,
    mean_kernel,
    mean_of,
    tied,
    unweighted,
)

if TYPE_CHECKING:
    from ..prompts.examples import Example


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


_METHODS: tuple[Method, ...] = ("spearman", "kendall", "pearson")


@dataclass(frozen=True, slots=True)
class HumanCeiling:
    """Agreement among the people who rated one dimension."""

    dimension: str
    raters: int
    correlations: Mapping[Method, Statistic]
    """Each rater with the mean of the others (leave one out), the mean over the raters.

    A judge is compared with the mean of all raters, which is steadier than that of all but one: a good judge can lie
    somewhat above this."""
    agreement: Statistic
    """Share of items on which two raters differ by at most the tolerance, the mean over all pairs of raters."""
    kappa: Statistic
    """Cohen's kappa, the mean over all pairs of raters."""
    quadratic_kappa: Statistic
    """The same with quadratic weights."""
    fleiss: Statistic
    alpha: Statistic
    """Krippendorff's alpha for ordinal ratings."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "dimension": self.dimension,
            "raters": self.raters,
            **{method: statistic_dict(found) for method, found in self.correlations.items()},
            "agreement": statistic_dict(self.agreement),
            "kappa": statistic_dict(self.kappa),
            "quadratic_kappa": statistic_dict(self.quadratic_kappa),
            "fleiss": statistic_dict(self.fleiss),
            "alpha": statistic_dict(self.alpha),
        }


def rater_columns(examples: Sequence[Example], dimension: str) -> list[list[float | None]]:
    """The ratings of one dimension, a column for each rater; the same place in every example is the same rater."""
    most = max((len(example.human.get(dimension, ())) for example in examples), default=0)
    every = [example.human.get(dimension, ()) for example in examples]
    return [[ratings[rater] if rater < len(ratings) else None for ratings in every] for rater in range(most)]


def human_ceiling(
    examples: Sequence[Example],
    dimension: str,
    *,
    tolerance: float = 0.0,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> HumanCeiling | None:
    """Agreement among people on one dimension; None where no example has two ratings on it.

    Examples of one document (``metadata.document``) are resampled together.

    Args:
        examples: With ratings by several people.
        dimension: The rated dimension.
        tolerance: Points by which two ratings may differ and still agree.
        resamples: Number of bootstrap resamples; a quarter as many for Krippendorff's alpha.
        level: Coverage of the intervals, between 0 and 1.
        seed: Same seed, same intervals.

    Raises:
        InputError: A setting is out of range.
        MissingExtraError: One of scikit-learn, statsmodels and krippendorff is not installed.
    """
    raters = rater_columns(examples, dimension)
    if len(raters) < 2:
        return None
    groups = documents(examples)
    settings: dict[str, Any] = {"groups": groups, "resamples": resamples, "level": level, "seed": seed}
    fewer = settings | {"resamples": max(resamples // 4, 1)}
    whole = _whole(raters)
    unrated = Statistic(None, 0, None, None, "the ratings are not whole points of a scale")
    return HumanCeiling(
        dimension,
        len(raters),
        {method: leave_one_out(raters, method, **settings) for method in _METHODS},
        pairwise_agreement(raters, tolerance=tolerance, **settings),
        kappa_self(raters, **settings) if whole else unrated,
        kappa_self(raters, weights="quadratic", **settings) if whole else unrated,
        fleiss_kappa(raters, **settings) if whole else unrated,
        krippendorff_alpha(raters, **fewer) if whole else unrated,
    )


def leave_one_out(
    raters: Sequence[Column],
    method: Method = "spearman",
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> Statistic:
    """Correlation of each rater with the mean of the others, the mean over the raters.

    Items that everybody rated are used. Undefined where a rater, or the mean of the others, is constant.

    Raises:
        InputError: There are fewer than two raters, or the columns do not match.
    """
    vectors, keep = rated_by_all(raters)
    n = len(vectors[0])
    if few := too_few(n, "all ratings"):
        return few
    kernels = []
    for place, one in enumerate(vectors):
        others = np.mean([each for other, each in enumerate(vectors) if other != place], axis=0)
        reason = constant_reason(one, f"ratings of rater {place + 1}") or constant_reason(
            others, f"mean ratings of all but rater {place + 1}"
        )
        if reason is not None:
            return Statistic(None, n, None, None, reason)
        kernels.append(correlation_kernel(method, one, others))
    kernel = mean_of(kernels)
    count = affordable_resamples(method, n, resamples)
    return bootstrapped(unweighted(kernel, n), kernel, keep, groups, count, level, seed)


def pairwise_agreement(
    raters: Sequence[Column],
    *,
    tolerance: float = 0.0,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> Statistic:
    """Share of items on which two raters differ by at most ``tolerance`` points, the mean over all pairs of raters.

    Raises:
        InputError: There are fewer than two raters, the columns do not match, or the tolerance is negative.
    """
    vectors, keep = rated_by_all(raters)
    hits = [agreement_hits(a, b, tolerance=tolerance) for a, b in combinations(vectors, 2)]
    shares = np.asarray(hits, dtype=np.float64).mean(axis=0)
    if len(shares) == 0:
        return Statistic(None, 0, None, None, "no item has all ratings")
    return bootstrapped(float(shares.mean()), mean_kernel(shares), keep, groups, resamples, level, seed)


def _whole(raters: Sequence[Sequence[float | None]]) -> bool:
    return all(rating is None or rating == round(rating) for column in raters for rating in column)
