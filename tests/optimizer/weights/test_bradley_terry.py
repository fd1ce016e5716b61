"""The fit of non-negative Bradley-Terry weights against other optimisers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from askance.optimizer.weights.learner_choice import find_learner
from askance.optimizer.weights.learners import fit_bradley_terry
from askance.optimizer.weights.score_tables import PreferenceScores

Simulate = Callable[..., PreferenceScores]
TRUTH = [0.5, 0.3, 0.15, 0.05]


def reference_fit(
    differences: NDArray[np.float64], flip: float | None, ridge: float
) -> tuple[float, NDArray[np.float64]]:
    """The same likelihood by scipy's bounded quasi-Newton method, in the best of several starts."""
    from scipy.optimize import minimize

    tests = differences.shape[1]
    pull = ridge * float((differences**2).mean())

    def loss(point: NDArray[np.float64]) -> float:
        weights = point[:tests]
        rate = float(point[tests]) if flip is None else flip
        chance = rate + (1 - 2 * rate) / (1 + np.exp(-differences @ weights))
        return float(-np.log(chance).sum() + pull / 2 * weights @ weights)

    bounds = [(0.0, None)] * tests + ([(0.0, 0.45)] if flip is None else [])
    starts = [np.full(len(bounds), value) for value in (0.05, 0.4)]
    found = [minimize(loss, start, bounds=bounds, options={"maxiter": 2000, "maxfun": 50_000}) for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    return float(best.fun), best.x[:tests]


@pytest.mark.parametrize("flip", [0.0, 0.1, None])
def test_bradley_terry_agrees_with_a_reference_optimiser(simulate: Simulate, flip: float | None) -> None:
    differences, counts = simulate([0.6, 0.4, 0.0], 300, flips=0.1).differences().decided()
    fit = fit_bradley_terry(differences, counts, flip=flip, ridge=0.5)
    _, weights = reference_fit(differences, flip, 0.5)
    assert fit.weights / fit.weights.sum() == pytest.approx(weights / weights.sum(), abs=5e-3)


def test_logistic_agrees_with_scikit_learn_where_no_weight_is_at_its_bound() -> None:
    LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression

    rng = np.random.default_rng(3)
    raw = rng.normal(size=(400, 3))
    wins = rng.random(400) < 1 / (1 + np.exp(-raw @ np.array([1.0, 2.0, 3.0])))
    differences = raw * np.where(wins, 1.0, -1.0)[:, None]
    fit = fit_bradley_terry(differences, np.ones(400), flip=0.0, ridge=1e-8)
    reference = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-8).fit(raw, wins).coef_[0]
    assert fit.weights == pytest.approx(reference, rel=1e-2)


def test_the_estimated_flip_rate_is_near_the_true_one(simulate: Simulate) -> None:
    differences, counts = simulate(TRUTH, 3000, flips=0.1).differences().decided()
    assert fit_bradley_terry(differences, counts, flip=None).flip_rate == pytest.approx(0.1, abs=0.02)


def test_many_pairs_bring_the_true_weights(simulate: Simulate) -> None:
    pairs = simulate(TRUTH, 16_000, seed=2).differences()
    whole = find_learner("robust").learn(pairs, seed=0)
    assert whole == pytest.approx(TRUTH, abs=0.015)
