"""The score from which on an output passes: fitted to people's labels, and how good the best one is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .correlation import Column
from .kernels import TieGroups
from .pass_fail import auc_kernel, check_labels
from .resampling import (
    USUAL,
    Kernel,
    Resampling,
    Statistic,
    Vector,
    Weights,
    bootstrapped,
    complete,
    tied,
)

LabelMetric = Literal["auc", "kappa"]
FEWEST = 8
"""With fewer labelled examples than this no threshold is fitted."""
FEWEST_OF_A_KIND = 3
"""Nor with fewer that passed, or fewer that failed."""
HALF = 0.5
"""The threshold where none is fitted."""
_ROUNDING = 1e-9
_RESAMPLES, _SEED = 200, 42


@dataclass(frozen=True, slots=True)
class FittedThreshold:
    """A score from which on an output passes."""

    value: float
    """In [0, 1]."""
    n: int
    """Examples that it was fitted on; 0 where it was not fitted."""
    reason: str | None = None
    """Why it was not fitted."""


def fit_threshold(scores: Column, labels: Column, groups: Sequence[Hashable] | None = None) -> FittedThreshold:
    """The threshold at which the judge's verdicts agree best with people's labels.

    Of resamples of the examples, or of whole documents, each has a threshold at which Cohen's kappa is largest. The median
    of these is taken, in the middle of the gap between scores that it falls in. Held-out kappa in a simulation of 20, 40 and 80 examples with
    fine scores: .389, .385, .398; .370, .374, .386 at the best threshold of the examples themselves; .29 at 0.5.

    It is 0.5, with the reason, where fewer than 8 examples have both, or fewer than 3 passed or failed, or no threshold is
    better than chance.

    Args:
        scores: In [0, 1], of the development examples; None where one is missing.
        labels: 1 for pass and 0 for fail; None where there is none.
        groups: Document of each example; None where none share one.

    Raises:
        InputError: The columns do not match, or a label is neither 0 nor 1.
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
    best = [_best_cut(found, middles) for block in drawn for found in kappas(block).T]
    median = float(np.median([each for each in best if each is not None]))
    place = min(int(np.searchsorted(values, median, side="right")), len(values) - 1)
    return FittedThreshold(_between(float(values[place - 1]), float(values[place])), n)


def _best_cut(kappas: Vector, middles: Vector) -> float | None:
    """The threshold with the largest kappa, the mean of those that are as good; None where none is above 0."""
    if kappas.max() <= 0:
        return None
    return float(middles[kappas >= kappas.max() - _ROUNDING].mean())


def _between(low: float, high: float) -> float:
    """The middle, with no more digits than tell it from both by a quarter of the gap."""
    middle = (low + high) / 2
    written = (round(middle, digits) for digits in range(2, 16))
    return next((each for each in written if abs(each - middle) <= (high - low) / 4), middle)


def cut_kappas(scores: Vector, labels: Vector) -> Kernel:
    """Kappa at each cut between neighbouring scores, for weighted items: (n, resamples) → (cuts, resamples).

    A cut that leaves all weight on one side, or labels of which one has no weight, has kappa 0: it says nothing.
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
    """The area under the curve, or kappa at the best threshold (0 at least), for weighted items."""
    if metric == "auc":
        return auc_kernel(scores, labels)
    if len(np.unique(tied(scores))) < 2:
        return lambda weights: np.zeros(weights.shape[1])
    kappas = cut_kappas(scores, labels)
    return lambda weights: np.maximum(kappas(weights).max(axis=0), 0.0)


def label_agreement(metric: LabelMetric, scores: Column, labels: Column, resampling: Resampling = USUAL) -> Statistic:
    """The area under the curve, or kappa at the threshold that suits the scores best, with its interval.

    Raises:
        InputError: The columns do not match, or a label is neither 0 nor 1.
    """
    (known, wanted), keep = complete(scores, labels)
    check_labels(wanted)
    if len(wanted) == 0 or np.ptp(wanted) == 0:
        return Statistic(None, len(wanted), None, None, "people gave no label, or the same one to all examples")
    return bootstrapped(label_kernel(metric, known, wanted), keep, resampling)


def best_kappas(scores: Weights, labels: Vector) -> Vector:
    """The largest kappa over all thresholds, 0 at least, of each column of scores: (n, columns) → (columns,)."""
    order = np.argsort(scores, axis=0, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=0)
    good, bad = (np.cumsum(side[order], axis=0) for side in (labels, 1 - labels))
    kappas = binary_kappa(good[-1] - good, bad[-1] - bad, good, bad)[:-1]
    cuts = np.where(ordered[1:] > ordered[:-1], kappas, 0.0)  # there is no cut between equal scores
    largest: Vector = cuts.max(axis=0, initial=0.0)
    return largest


def binary_kappa(both: Weights, judge: Weights, people: Weights, neither: Weights) -> Weights:
    """Cohen's kappa of two-by-two tables, any shape: both pass, judge alone, people alone, neither; 0 where undefined."""
    covariance = both * neither - judge * people
    chance = (both + judge) * (judge + neither) + (both + people) * (people + neither)
    kappa: Weights = np.divide(2 * covariance, chance, out=np.zeros_like(chance), where=chance > 0)
    return kappa
