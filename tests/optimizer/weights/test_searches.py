"""Searches for the largest share of rightly ordered pairs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

from askance.optimizer.weights.evidence import share_right
from askance.optimizer.weights.learners import Bayes, OptunaSearch
from askance.optimizer.weights.score_tables import PreferenceScores

Simulate = Callable[..., PreferenceScores]
TRUTH = [0.5, 0.3, 0.15, 0.05]


@pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
def test_optuna_never_ends_below_uniform_and_repeats_with_its_seed(simulate: Simulate) -> None:
    pairs = simulate(TRUTH, 200).differences()
    first, second = (OptunaSearch(trials=15).learn(pairs, seed=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert share_right(*pairs.decided(), first) >= share_right(*pairs.decided(), np.ones(4))


@pytest.mark.skipif(find_spec("bayes_opt") is None, reason="bayesian-optimization is not installed")
def test_bayes_searches_for_the_next_point_no_more_often_than_it_says(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayes_opt import acquisition

    searched: list[int] = []
    whole = acquisition.AcquisitionFunction._smart_minimize

    def counted(self: object, acq: object, space: object, x_seeds: NDArray[np.float64], random_state: object) -> object:
        searched.append(len(x_seeds))
        return whole(self, acq, space, x_seeds, random_state)

    monkeypatch.setattr(acquisition.AcquisitionFunction, "_smart_minimize", counted)
    Bayes(evaluations=2, random_points=2, local_searches=1).learn(simulate(TRUTH, 40).differences(), seed=3)
    assert searched == [1, 1]


@pytest.mark.skipif(find_spec("bayes_opt") is None, reason="bayesian-optimization is not installed")
def test_bayes_never_ends_below_uniform_and_repeats_with_its_seed(simulate: Simulate) -> None:
    pairs = simulate(TRUTH, 200).differences()
    first, second = (Bayes(evaluations=3, random_points=3).learn(pairs, seed=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert share_right(*pairs.decided(), first) >= share_right(*pairs.decided(), np.ones(4))
