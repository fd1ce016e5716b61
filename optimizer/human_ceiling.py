"""How well people agree with each other: what a judge can be expected to reach."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .agreement import agreement_hits, kappa_self
from .correlation import Column, Statistic
from .correlation_kernels import Method, affordable_resamples, correlation_kernel
from .many_raters import fleiss_kappa, krippendorff_alpha, rated_by_all, too_few
from .resampling import constant_reason, unweighted
from .results import documents, statistic_dict
from .with_interval import bootstrapped, mean_kernel, mean_of

if TYPE_CHECKING:
    from ..prompts.examples import Example

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
