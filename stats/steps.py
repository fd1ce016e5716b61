"""Thresholds between the steps of an ordinal label. A score reaches a step from its threshold on.

A threshold between two steps is fitted like the threshold of pass and fail
(:func:`~askance.stats.pass_fail.fit_threshold`): the label is whether people's rating is nearer to the upper step, or
beyond it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .agreement import cohen_kappa, observed_agreement
from .correlation import Column
from .pass_fail import fit_threshold
from .resampling import USUAL, Resampling, Statistic, complete

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class FittedSteps:
    """Thresholds between steps."""

    thresholds: tuple[float, ...]
    """One between each two steps, in [0, 1], none below the one before."""
    n: int
    """Examples that they were fitted on."""
    reason: str | None = None
    """Why one of them is not fitted, and lies in the middle between its steps; None where all are."""


@dataclass(frozen=True, slots=True)
class StepFigures:
    """A judge's steps beside people's."""

    agreed: Statistic
    """Share of examples with the same step."""
    within_one: Statistic
    """Share with the same step or the next one."""
    kappa: Statistic
    """Cohen's kappa with quadratic weights."""


def between(steps: Sequence[float]) -> list[float]:
    """The middles between neighbouring steps, which ascend in [0, 1]."""
    return [(low + high) / 2 for low, high in pairwise(steps)]


def fit_steps(
    scores: Column, ratings: Column, steps: Sequence[float], groups: Sequence[Hashable] | None = None
) -> FittedSteps:
    """The thresholds that development examples suggest, between ``steps``, which ascend in [0, 1] as ratings do.

    Raises InputError where the columns do not match.
    """
    _, keep = complete(scores, ratings)
    rated = np.asarray(ratings, dtype=np.float64)
    fitted_thresholds, reasons = [], []
    for middle in between(steps):
        above = [None if np.isnan(rating) else float(rating >= middle - _ROUNDING) for rating in rated]
        fitted = fit_threshold(scores, above, groups)
        fitted_thresholds.append(middle if fitted.reason else fitted.value)
        reasons += [fitted.reason] if fitted.reason else []
    thresholds = tuple(float(threshold) for threshold in np.maximum.accumulate(fitted_thresholds))
    return FittedSteps(thresholds, int(np.count_nonzero(keep)), reasons[0] if reasons else None)


def places(scores: Column, thresholds: Sequence[float]) -> list[int | None]:
    """The place of each score's step, from 0 for the worst; None where there is no score."""
    values = np.asarray(scores, dtype=np.float64)
    step_places = np.searchsorted(np.asarray(thresholds), values + _ROUNDING, side="right")
    return [None if np.isnan(score) else int(place) for score, place in zip(values, step_places, strict=True)]


def step_figures(
    scores: Column, ratings: Column, steps: Sequence[float], thresholds: Sequence[float], resampling: Resampling = USUAL
) -> StepFigures:
    """Agreement of the steps of scores with the steps of people's ratings. A mean rating belongs to the nearest step,
    halves up.

    Raises InputError where the columns do not match.
    """
    said, people = places(scores, thresholds), places(ratings, between(steps))
    return StepFigures(
        observed_agreement(said, people, resampling),
        observed_agreement(said, people, resampling, tolerance=1),
        cohen_kappa(said, people, resampling, weights="quadratic"),
    )
