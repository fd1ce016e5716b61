"""Pass or fail: a judge's agreement with people's labels, its best threshold, and the share that people would pass.

Intervals of rates are Wilson's (JASA 22, 1927); where examples share documents, the number of examples is divided by
the design effect. Intervals of kappa and of the area under the curve are percentile bootstraps. If the judge is never
wrong, no resample differs: there is then no interval, but a reason.

The share that people would pass is estimated from a judge that errs. If no output is labelled, its pass rate is
corrected by its true positive and true negative rate (Rogan and Gladen, Am. J. Epidemiology 107, 1978). The interval is
from Lang and Reiczigel (Preventive Veterinary Medicine 113, 2014): it includes the uncertainty of both rates. If people
labelled some of the outputs, their labels show how far the judge is off on the others (prediction-powered inference:
Angelopoulos et al., Science 382, 2023; weighted as in PPI++, arXiv:2311.01453).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .agreement import cohen_kappa
from .correlation import Column, TieGroups
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
    tied,
    without_false_certainty,
)


@dataclass(frozen=True, slots=True)
class PassFailFigures:
    """Agreement of a judge's verdicts at a threshold with people's labels."""

    accuracy: Statistic
    """Share of the examples on which judge and people agree."""
    true_positive_rate: Statistic
    """Share of the outputs passed by people that the judge passes."""
    true_negative_rate: Statistic
    """Share of the outputs failed by people that the judge fails."""
    kappa: Statistic
    """Cohen's kappa."""
    auc: Statistic
    """Area under the curve of the scores; it needs no threshold."""
    confusion: tuple[int, int, int, int]
    """Counts of examples: passed by both, by the judge alone, by people alone, and by neither."""


def pass_fail_figures(
    scores: Column, labels: Column, threshold: float, resampling: Resampling = USUAL
) -> PassFailFigures:
    """Return all figures over the examples that have a score in [0, 1] and a label (1 for pass, 0 for fail).

    Raises InputError where the columns do not match, or a label is neither 0 nor 1.
    """
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    judge_passed = passes(known, threshold)
    within = resampling.only(keep)
    right = (judge_passed == (wanted == 1)).astype(float)

    def share_of(side: NDArray[np.bool_], label: str) -> Statistic:
        share = rate(right[side], within.only(side))
        return share if share.n else replace(share, reason=f"people {label} none of the examples")

    counts = [int(np.sum((judge_passed == judge) & (wanted == people))) for judge, people in _CELLS]
    return PassFailFigures(
        accuracy=rate(right, within),
        true_positive_rate=share_of(wanted == 1, "passed"),
        true_negative_rate=share_of(wanted == 0, "failed"),
        kappa=cohen_kappa(judge_passed.astype(float), wanted, within),
        auc=area_under_curve(known, wanted, within),
        confusion=(counts[0], counts[1], counts[2], counts[3]),
    )


_CELLS = ((True, 1), (True, 0), (False, 1), (False, 0))
_ROUNDING = 1e-9


def passes(scores: Vector, threshold: float) -> NDArray[np.bool_]:
    """Whether each score reaches the threshold. A score that is too low by a rounding error alone passes."""
    return scores >= threshold - _ROUNDING


def rate(hits: Column, resampling: Resampling = USUAL) -> Statistic:
    """Share of ones among zeros and ones, with Wilson's interval.

    If the items come in groups, n is divided by the design effect, at least 1 (Kish 1965): the variance of the share
    between groups over the variance for as many independent items. If all items are equal, each group counts as one
    item. Raises InputError if there is not one group for each item.
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
    """Number of independent items behind a share with Wilson's interval: the ``n`` of :func:`wilson`."""
    if share < 0.5:
        share, low, high = 1 - share, 1 - high, 1 - low
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    product = low * high  # n share² / (n + z²)
    return z2 * product / (share**2 - product)


def _independent(values: Vector, resampling: Resampling) -> float:
    """Number of independent items with as much information as these grouped items."""
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
    """Variance of the mean of values. ``codes`` numbers the values' groups; values in one group may be correlated."""
    _, places = np.unique(codes, return_inverse=True)
    sums = np.bincount(places, weights=values - values.mean())
    groups = len(sums)
    return float(sums @ sums) * groups / max(groups - 1, 1) / len(values) ** 2


def area_under_curve(scores: Column, labels: Column, resampling: Resampling = USUAL) -> Statistic:
    """Area under the ROC curve: the chance that a passed output has a higher score than a failed one, ties half. Raises
    InputError where the columns do not match, or a label is neither 0 nor 1."""
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    missing = [label for value, label in ((1, "passed"), (0, "failed")) if not np.any(wanted == value)]
    if missing:
        return Statistic(None, len(known), None, None, f"people {' and '.join(missing)} none of the examples")
    area = bootstrapped(auc_kernel(known, wanted), keep, resampling)
    return without_false_certainty(area, "the scores part all passed outputs from all failed ones")


def auc_kernel(scores: Vector, labels: Vector) -> Kernel:
    """Area under the curve for weighted items: (n, resamples) → (resamples,); NaN where only one label has weight."""
    ties, passed = TieGroups(scores), labels[:, np.newaxis]

    def kernel(weights: Weights) -> Vector:
        passed_share = ties.shares(weights * passed)
        failed_share = ties.shares(weights * (1 - passed))
        failed = np.cumsum(failed_share, axis=0)
        failed_below = failed - failed_share / 2
        pairs = passed_share.sum(axis=0) * failed[-1]
        area = np.full(weights.shape[1], np.nan)
        defined = pairs > 0
        area[defined] = np.einsum("kr,kr->r", passed_share, failed_below)[defined] / pairs[defined]
        return area

    return kernel


def check_labels(labels: Vector) -> None:
    """Refuse labels that are neither 0 nor 1. InputError names one."""
    wrong = labels[(labels != 0) & (labels != 1)]
    if len(wrong):
        raise InputError(f"A label is 1 for pass or 0 for fail, and there is a {wrong[0]:g}.")


FEWEST_LABELLED = 30
"""Labelled outputs (or documents) needed to estimate one rate from labelled and unlabelled outputs."""
FEWEST_OF_A_LABEL = 2
"""Outputs that people passed, and outputs that they failed, needed for that estimate."""
WEAKEST = 0.1
"""The pass rate is corrected only if the lower end of the judge's TPR + TNR - 1 is above this."""


@dataclass(frozen=True, slots=True)
class CorrectedPassRate:
    """The share of the outputs that people would pass."""

    method: Literal["rogan_gladen", "ppi"]
    value: float | None
    """Share in [0, 1]; None if the judge is too weak, or there are too few labels."""
    low: float | None
    high: float | None
    n: int
    """Outputs that the judge has judged."""
    labelled: int
    """Labelled outputs from which the judge's errors are known."""
    reason: str | None = None
    """Why there is no value, or why the value is unusual."""


def rogan_gladen(
    pass_rate: Statistic, true_positive_rate: Statistic, true_negative_rate: Statistic, level: float = 0.95
) -> CorrectedPassRate:
    """Correct the judge's pass rate on unlabelled outputs by its error rates on labelled outputs.

    The labelled outputs must not have been used to choose the judge. Each rate has the interval of :func:`rate` at
    ``level``.
    """
    n, labelled = pass_rate.n, true_positive_rate.n + true_negative_rate.n

    def without(reason: str) -> CorrectedPassRate:
        return CorrectedPassRate("rogan_gladen", None, None, None, n, labelled, reason)

    if pass_rate.value is None or true_positive_rate.value is None or true_negative_rate.value is None:
        reasons = [rate.reason for rate in (pass_rate, true_positive_rate, true_negative_rate) if rate.reason]
        return without(reasons[0] if reasons else "a rate of the judge is unknown")
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, sensitivity, specificity = pass_rate.value, true_positive_rate.value, true_negative_rate.value
    youden = sensitivity + specificity - 1
    reach = math.hypot(sensitivity - _low(true_positive_rate), specificity - _low(true_negative_rate))
    if youden - reach <= WEAKEST:
        return without(
            f"the judge is too weak to be corrected: TPR + TNR - 1 is {youden:.2f}, and with {labelled} labelled "
            f"outputs behind it may be as low as {youden - reach:.2f}; more than {WEAKEST:g} is needed"
        )
    sizes = [_size(statistic, level) for statistic in (pass_rate, true_positive_rate, true_negative_rate)]
    # Lang and Reiczigel's adjusted rates: z²/2 is added to passes and fails, and 1 to the right and wrong verdicts
    drawn, passed_size, failed_size = sizes[0] + z**2, sizes[1] + 2, sizes[2] + 2
    p_near = (sizes[0] * p + z**2 / 2) / drawn
    sensitivity_near = (sizes[1] * sensitivity + 1) / passed_size
    specificity_near = (sizes[2] * specificity + 1) / failed_size
    slope = sensitivity_near + specificity_near - 1
    centre = (p_near + specificity_near - 1) / slope
    sensitivity_variance = sensitivity_near * (1 - sensitivity_near) / passed_size
    specificity_variance = specificity_near * (1 - specificity_near) / failed_size
    shift = 2 * z**2 * (centre * sensitivity_variance - (1 - centre) * specificity_variance)
    variance = (
        p_near * (1 - p_near) / drawn + centre**2 * sensitivity_variance + (1 - centre) ** 2 * specificity_variance
    )
    width = z * math.sqrt(variance) / slope
    value = (p + specificity - 1) / youden
    low, high = _unit(centre + shift - width), _unit(centre + shift + width)
    value, beyond = _unit(value), value
    reason = None
    if beyond != value:
        way = "fewer" if beyond < 0 else "more"
        reason = f"the judge passes even {way} than its errors explain, so the rate is put at {value:g}"
    return CorrectedPassRate("rogan_gladen", value, min(low, value), max(high, value), n, labelled, reason)


def prediction_powered(verdicts: Column, labels: Column, resampling: Resampling = USUAL) -> CorrectedPassRate:
    """Estimate the share that people would pass from labels on some outputs, which were chosen without looking at them.

    The estimate is the mean label, corrected by the judge. The correction is the judge's mean verdict on unlabelled
    outputs less its mean verdict on labelled ones, weighted by how closely verdicts follow labels. The interval is
    Wilson's, for the number of labels that would be as informative; near 0 and 1 it holds better than the normal one.
    Outputs without a verdict are left out; nothing is resampled. Raises InputError where the columns do not match.
    """
    (judged,), keep = complete(verdicts)
    every = np.asarray(labels, dtype=np.float64)
    if len(every) != len(keep):
        raise InputError(f"There are {len(keep)} verdicts and {len(every)} labels; give one of each for every output.")
    people = every[keep]
    has_label = ~np.isnan(people)
    codes = np.arange(len(judged)) if resampling.groups is None else group_codes(resampling.groups, keep)
    n, labelled = len(judged), int(has_label.sum())
    units, unlabelled = len(set(codes[has_label])), n - labelled
    wanted, labelled_verdicts = people[has_label], judged[has_label]

    def without(reason: str) -> CorrectedPassRate:
        return CorrectedPassRate("ppi", None, None, None, n, labelled, reason)

    rarer = int(min(wanted.sum(), labelled - wanted.sum()))
    if units < FEWEST_LABELLED or rarer < FEWEST_OF_A_LABEL:
        unit = "outputs" if resampling.groups is None else "documents"
        return without(
            f"too few labels: {units} labelled {unit} ({FEWEST_LABELLED} are needed), {rarer} outputs with the rarer "
            f"label ({FEWEST_OF_A_LABEL})"
        )
    if unlabelled == 0:
        return without("all outputs are labelled")
    unlabelled_verdicts = judged[~has_label]
    weight = _weight(wanted, labelled_verdicts, judged, labelled / unlabelled)
    value = float(wanted.mean() + weight * (unlabelled_verdicts.mean() - labelled_verdicts.mean()))
    residuals = wanted - weight * labelled_verdicts
    variance = variance_of_mean(residuals, codes[has_label])
    variance += weight**2 * variance_of_mean(unlabelled_verdicts, codes[~has_label])
    value = min(max(value, 0.5 / n), 1 - 0.5 / n)
    low, high = wilson(value, min(n, value * (1 - value) / variance) if variance > 0 else n, resampling.level)
    return CorrectedPassRate("ppi", value, low, high, n, labelled)


def _weight(wanted: Vector, said: Vector, judged: Vector, ratio: float) -> float:
    """Weight of the verdicts, in [0, 1], that makes the variance smallest (PPI++, example 6.1)."""
    spread = float(judged.var())
    if spread == 0:
        return 0.0
    covariance = float(np.mean((wanted - wanted.mean()) * (said - said.mean())))
    return min(1.0, max(0.0, covariance / ((1 + ratio) * spread)))


def _size(statistic: Statistic, level: float) -> float:
    if statistic.value is None or statistic.low is None or statistic.high is None:
        return float(statistic.n)
    return wilson_size(statistic.value, statistic.low, statistic.high, level)


def _low(statistic: Statistic) -> float:
    return 0.0 if statistic.low is None else statistic.low


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


LabelMetric = Literal["auc", "kappa"]
FEWEST = 8
"""Labelled examples needed to fit a threshold."""
FEWEST_OF_A_KIND = 3
"""Passed examples, and failed examples, needed to fit a threshold."""
HALF = 0.5
"""The threshold where none is fitted."""
_RESAMPLES, _SEED = 200, 42


@dataclass(frozen=True, slots=True)
class FittedThreshold:
    """The lowest score with which an output passes."""

    value: float
    """Threshold in [0, 1]."""
    n: int
    """Examples that the threshold was fitted on; 0 if it was not fitted."""
    reason: str | None = None
    """Why the threshold was not fitted."""


def fit_threshold(scores: Column, labels: Column, groups: Sequence[Hashable] | None = None) -> FittedThreshold:
    """Find the threshold at which the judge's verdicts agree best with people's labels, from development examples.

    Each resample of the examples, or of whole documents (``groups``), has a threshold at which Cohen's kappa is
    largest. The median of these thresholds falls between two scores; the middle of the two is returned. Held-out kappa
    in a simulation of 20, 40 and 80 examples with fine scores: .389, .385, .398. At the best threshold of the examples
    themselves it was .370, .374, .386; at 0.5 it was .29.

    The threshold is 0.5, with the reason, if fewer than 8 examples have score and label, or fewer than 3 passed or
    failed, or no threshold is better than chance. Raises InputError where the columns do not match, or a label is
    neither 0 nor 1.
    """
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    n, fewer = len(known), int(min(wanted.sum(), len(wanted) - wanted.sum()))
    if n < FEWEST:
        return FittedThreshold(HALF, 0, f"fewer than {FEWEST} development examples have a score and a label ({n})")
    if fewer < FEWEST_OF_A_KIND:
        return FittedThreshold(
            HALF, 0, f"fewer than {FEWEST_OF_A_KIND} development examples have the rarer label ({fewer})"
        )
    values = np.unique(tied(known))
    kappas = cut_kappas(known, wanted)
    if len(values) < 2 or kappas(np.ones((n, 1))).max() <= 0:
        return FittedThreshold(HALF, 0, "no threshold agrees with people better than chance")
    middles = (values[1:] + values[:-1]) / 2
    drawn = Resampling(groups, _RESAMPLES, seed=_SEED).weights(keep)
    best = [_best_cut(kappas_drawn, middles) for block in drawn for kappas_drawn in kappas(block).T]
    median = float(np.median([cut for cut in best if cut is not None]))
    place = min(int(np.searchsorted(values, median, side="right")), len(values) - 1)
    return FittedThreshold(_between(float(values[place - 1]), float(values[place])), n)


def _best_cut(kappas: Vector, middles: Vector) -> float | None:
    """Return the threshold with the largest kappa, or the mean of equally good ones; None if no kappa is above 0."""
    if kappas.max() <= 0:
        return None
    return float(middles[kappas >= kappas.max() - _ROUNDING].mean())


def _between(low: float, high: float) -> float:
    """Return the middle with few digits: it is rounded by a quarter of the gap at most."""
    middle = (low + high) / 2
    written = (round(middle, digits) for digits in range(2, 16))
    return next((value for value in written if abs(value - middle) <= (high - low) / 4), middle)


def cut_kappas(scores: Vector, labels: Vector) -> Kernel:
    """Kappa at each cut between neighbouring scores, for weighted items: (n, resamples) → (cuts, resamples).

    Kappa is 0 where a cut, or the labels, have all weight on one side, as it is undefined there.
    """
    ties, passed = TieGroups(scores), labels[:, np.newaxis]

    def kernel(weights: Weights) -> Weights:
        rejected_good = np.cumsum(ties.shares(weights * passed), axis=0)
        rejected_bad = np.cumsum(ties.shares(weights * (1 - passed)), axis=0)
        good, bad = rejected_good[-1], rejected_bad[-1]
        wrongly, rightly = rejected_good[:-1], rejected_bad[:-1]
        return binary_kappa(good - wrongly, bad - rightly, wrongly, rightly)

    return kernel


def label_kernel(metric: LabelMetric, scores: Vector, labels: Vector) -> Kernel:
    """Area under the curve, or kappa at the best threshold (at least 0), for weighted items."""
    if metric == "auc":
        return auc_kernel(scores, labels)
    if len(np.unique(tied(scores))) < 2:
        return lambda weights: np.zeros(weights.shape[1])
    kappas = cut_kappas(scores, labels)
    return lambda weights: np.maximum(kappas(weights).max(axis=0), 0.0)


def label_agreement(metric: LabelMetric, scores: Column, labels: Column, resampling: Resampling = USUAL) -> Statistic:
    """Area under the curve, or kappa at the best threshold for these scores, with its interval. Raises InputError where
    the columns do not match, or a label is neither 0 nor 1."""
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    if len(wanted) == 0 or np.ptp(wanted) == 0:
        return Statistic(None, len(wanted), None, None, "people gave no label, or the same one to all examples")
    return bootstrapped(label_kernel(metric, known, wanted), keep, resampling)


def best_kappas(scores: Weights, labels: Vector) -> Vector:
    """Return the largest kappa over all thresholds, at least 0, per column of scores: (n, columns) → (columns,)."""
    order = np.argsort(scores, axis=0, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=0)
    good, bad = (np.cumsum(side[order], axis=0) for side in (labels, 1 - labels))
    kappas = binary_kappa(good[-1] - good, bad[-1] - bad, good, bad)[:-1]
    cuts = np.where(ordered[1:] > ordered[:-1], kappas, 0.0)  # there is no cut between equal scores
    largest: Vector = cuts.max(axis=0, initial=0.0)
    return largest


def binary_kappa(both: Weights, judge: Weights, people: Weights, neither: Weights) -> Weights:
    """Cohen's kappa of two-by-two tables (both pass, judge alone, people alone, neither), any shape; 0 if undefined."""
    covariance = both * neither - judge * people
    chance = (both + judge) * (judge + neither) + (both + people) * (people + neither)
    kappa: Weights = np.divide(2 * covariance, chance, out=np.zeros_like(chance), where=chance > 0)
    return kappa
