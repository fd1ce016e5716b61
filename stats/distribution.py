"""Spread of a judge's scores beside people's, and crowding at the top (BinEval §5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..prompts.errors import InputError
from .correlation import Column
from .differences import Difference, mean_difference
from .resampling import (
    USUAL,
    Kernel,
    Resampling,
    Statistic,
    Vector,
    Weights,
    bootstrapped_together,
    complete,
    mean_kernel,
)

NEAR = 0.01
"""A score in [0, 1] that is at most this far from 1 counts as being at the maximum."""


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """A judge's scores beside people's, both in [0, 1], of the same items."""

    distance: Statistic
    """Wasserstein-1 distance of the two distributions, in units of the score."""
    severity: Difference
    """Mean score less mean human score; negative for a severe judge."""
    at_maximum: Statistic
    """Share of the judge's scores at the maximum."""
    human_at_maximum: Statistic
    """Share of the human scores at the maximum."""
    ceiling: Difference
    """The judge's share at the maximum less people's; positive where the judge crowds at the top."""


def compare_distributions(scores: Column, human: Column, resampling: Resampling = USUAL) -> ScoreDistribution:
    """Distance between a judge's and people's distributions of scores in [0, 1], and the share of each at the maximum.

    The distance is never negative, and a resample's is rather larger than the original's: read the upper end of its
    interval. Raises InputError where the columns do not match, or a score is outside [0, 1].
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
