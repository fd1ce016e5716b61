"""Thresholds between the steps of an ordinal label."""

from __future__ import annotations

import numpy as np
import pytest

from askance.evaluation.raters.steps import between, fit_steps, places, step_figures
from askance.stats.resampling import Resampling

STEPS = [0, 0.25, 0.5, 0.75, 1]
CUTS = [0.1, 0.3, 0.35, 0.8]
"""The judge's own: it is not evenly spaced."""


def judged(n: int = 400, noise: float = 0.02) -> tuple[list[float], list[float]]:
    """Scores from 0 to 1, and people's ratings by the cuts."""
    rng = np.random.default_rng(2)
    truth = rng.random(n)
    scores = np.clip(truth + noise * rng.normal(size=n), 0, 1)
    return scores.tolist(), [STEPS[each] for each in np.searchsorted(CUTS, truth, side="right")]


def test_the_thresholds_are_found_where_the_judge_is_uneven() -> None:
    scores, ratings = judged()
    thresholds, reason = fit_steps(scores, ratings, STEPS)
    assert thresholds == pytest.approx(CUTS, abs=0.03) and reason is None
    even = step_figures(scores, ratings, STEPS, between(STEPS), Resampling(resamples=100))
    fitted = step_figures(scores, ratings, STEPS, thresholds, Resampling(resamples=100))
    assert fitted.agreed.value > 0.9 > even.agreed.value
    assert fitted.kappa.value > even.kappa.value and fitted.within_one.value > 0.99


def test_a_score_at_a_threshold_reaches_the_step_and_a_mean_goes_to_the_nearest() -> None:
    assert places([0, 0.1, 0.34, 0.9, None], CUTS) == [0, 1, 2, 4, None]
    assert places([0.6, 0.625, 1 / 3], between(STEPS)) == [2, 3, 1]


def test_a_step_that_hardly_anybody_gave_lies_in_the_middle_and_says_why() -> None:
    scores, ratings = judged(100)
    rare = [0.75 if each == 1 else each for each in ratings]
    thresholds, reason = fit_steps(scores, rare, STEPS)
    assert thresholds[3] == 0.875 and reason is not None
    assert fit_steps([0.5, 0.2], [0.5, 0.25], STEPS)[0] == tuple(between(STEPS))


def test_thresholds_never_fall() -> None:
    rng = np.random.default_rng(0)
    thresholds, _ = fit_steps(rng.random(60).tolist(), rng.choice(STEPS, 60).tolist(), STEPS)
    assert list(thresholds) == sorted(thresholds)
