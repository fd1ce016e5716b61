"""Pass or fail: how far a judge's scores, and its verdicts at a threshold, agree with people's labels.

Intervals of rates are Wilson's (JASA 22, 1927); where examples share documents, with the number of examples divided by
the design effect, as outputs of one document are not independent. Those of kappa and of the area under the curve are
percentile bootstraps; where nothing is wrong no resample differs, and there is none, with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .agreement import cohen_kappa
from .correlation import Column
from .kernels import TieGroups
from .resampling import (
    USUAL,
    Kernel,
    Resampling,
    Statistic,
    Vector,
    Weights,
    bootstrapped,
    complete,
    group_codes,
    without_false_certainty,
)


@dataclass(frozen=True, slots=True)
class PassFailFigures:
    """How far a judge's verdicts at a threshold agree with people's labels."""

    accuracy: Statistic
    """Share of the examples on which both say the same."""
    true_positive_rate: Statistic
    """Of those that people passed, the share that the judge passes."""
    true_negative_rate: Statistic
    """Of those that people failed, the share that the judge fails."""
    kappa: Statistic
    """Cohen's kappa."""
    auc: Statistic
    """Area under the curve of the scores; it needs no threshold."""
    confusion: tuple[int, int, int, int]
    """Examples that both pass, the judge alone passes, people alone pass, and both fail."""


def pass_fail_figures(
    scores: Column, labels: Column, threshold: float, resampling: Resampling = USUAL
) -> PassFailFigures:
    """All figures of the examples that have a score and a label.

    Args:
        scores: In [0, 1], one an example; None where it is missing.
        labels: People's, 1 for pass and 0 for fail; None where there is none.
        threshold: An output passes whose score is at least this (but for rounding).
        resampling: How the intervals are made.

    Raises:
        InputError: The columns do not match, or a label is neither 0 nor 1.
    """
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    said = passes(known, threshold)
    within = resampling.only(keep)
    right = (said == (wanted == 1)).astype(float)

    def share_of(side: NDArray[np.bool_], what: str) -> Statistic:
        found = rate(right[side], within.only(side))
        return found if found.n else replace(found, reason=f"people {what} none of the examples")

    counts = [int(np.sum((said == judge) & (wanted == people))) for judge, people in _CELLS]
    return PassFailFigures(
        accuracy=rate(right, within),
        true_positive_rate=share_of(wanted == 1, "passed"),
        true_negative_rate=share_of(wanted == 0, "failed"),
        kappa=cohen_kappa(said.astype(float), wanted, within),
        auc=area_under_curve(known, wanted, within),
        confusion=(counts[0], counts[1], counts[2], counts[3]),
    )


_CELLS = ((True, 1), (True, 0), (False, 1), (False, 0))
_ROUNDING = 1e-9


def passes(scores: Vector, threshold: float) -> NDArray[np.bool_]:
    """Which scores reach the threshold; one that is below by rounding alone does."""
    return scores >= threshold - _ROUNDING


def rate(hits: Column, resampling: Resampling = USUAL) -> Statistic:
    """Share of ones among zeros and ones, with Wilson's interval.

    Where the items come in groups, n is divided by the design effect: the variance of the share between groups over that
    of as many independent items, at least 1 (Kish 1965); where all items are alike each group counts as one item.

    Raises:
        InputError: There is not one group for each item.
    """
    (values,), keep = complete(hits)
    n = len(values)
    if n == 0:
        return Statistic(None, 0, None, None, "there are no examples")
    share = float(values.mean())
    low, high = wilson(share, _independent(values, resampling.only(keep)), resampling.level)
    return Statistic(share, n, low, high, None)


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share of ``n`` independent items, at a coverage of ``level``."""
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    centre = (share * n + z2 / 2) / (n + z2)
    reach = math.sqrt(z2) / (n + z2) * math.sqrt(n * share * (1 - share) + z2 / 4)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def wilson_size(share: float, low: float, high: float, level: float = 0.95) -> float:
    """How many independent items are behind a share with Wilson's interval: the ``n`` of :func:`wilson`."""
    if share < 0.5:
        share, low, high = 1 - share, 1 - high, 1 - low
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    product = low * high  # n share² / (n + z²)
    return z2 * product / (share**2 - product)


def _independent(values: Vector, resampling: Resampling) -> float:
    """How many independent items say as much as these."""
    n = len(values)
    if resampling.groups is None:
        return float(n)
    codes = group_codes(resampling.groups, np.ones(n, dtype=bool))
    groups = int(codes.max()) + 1
    share = float(values.mean())
    if share in (0.0, 1.0) or groups < 2:
        return float(groups)
    return n / max(1.0, variance_of_mean(values, codes) / (share * (1 - share) / n))


def variance_of_mean(values: Vector, codes: NDArray[np.intp]) -> float:
    """Variance of the mean of values, of which those of one group may go together; ``codes`` numbers their groups."""
    _, places = np.unique(codes, return_inverse=True)
    sums = np.bincount(places, weights=values - values.mean())
    groups = len(sums)
    return float(sums @ sums) * groups / max(groups - 1, 1) / len(values) ** 2


def area_under_curve(scores: Column, labels: Column, resampling: Resampling = USUAL) -> Statistic:
    """Area under the ROC curve: the chance that a passed output has a higher score than a failed one, ties half.

    Args:
        scores: One an example; None where it is missing.
        labels: 1 for pass and 0 for fail; None where there is none.
        resampling: How the interval is made.

    Raises:
        InputError: The columns do not match, or a label is neither 0 nor 1.
    """
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    missing = [what for value, what in ((1, "passed"), (0, "failed")) if not np.any(wanted == value)]
    if missing:
        return Statistic(None, len(known), None, None, f"people {' and '.join(missing)} none of the examples")
    found = bootstrapped(auc_kernel(known, wanted), keep, resampling)
    return without_false_certainty(found, "the scores part all passed outputs from all failed ones")


def auc_kernel(scores: Vector, labels: Vector) -> Kernel:
    """The area for weighted items: (n, resamples) → (resamples,); NaN where only one label has weight."""
    ties, passed = TieGroups(scores), labels[:, np.newaxis]

    def kernel(weights: Weights) -> Vector:
        above = ties.shares(weights * passed)
        share = ties.shares(weights * (1 - passed))
        failed = np.cumsum(share, axis=0)
        below = failed - share / 2
        pairs = above.sum(axis=0) * failed[-1]
        area = np.full(weights.shape[1], np.nan)
        defined = pairs > 0
        area[defined] = np.einsum("kr,kr->r", above, below)[defined] / pairs[defined]
        return area

    return kernel


def check_labels(labels: Vector) -> None:
    """Refuse labels that are neither 0 nor 1.

    Raises:
        InputError: Names one.
    """
    wrong = labels[(labels != 0) & (labels != 1)]
    if len(wrong):
        raise InputError(f"A label is 1 for pass or 0 for fail, and there is a {wrong[0]:g}.")
