"""Searches for the largest share of rightly ordered pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

from askance.optimizer.weights import PreferenceScores
from askance.optimizer.weights.pairs import margins_to_credits, share_right
from askance.optimizer.weights.searches import Bayes, LocalSearch, OptunaSearch, best_on_line, maximise_share
from askance.prompts.errors import MissingExtraError

Simulate = Callable[..., PreferenceScores]
TRUTH = [0.5, 0.3, 0.15, 0.05]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("hard", [False, True])
def test_the_line_search_is_exact(seed: int, hard: bool) -> None:
    rng = np.random.default_rng(seed)
    rest, column = rng.uniform(-1, 1, (2, 30))
    if hard:  # verdicts: many crossings at one place and many score ties
        rest, column = np.round(rest * 2) / 2, np.sign(np.round(column))
    counts = rng.integers(0, 3, 30).astype(np.float64)
    share, right = best_on_line(rest, column, counts)
    grid = np.linspace(0, 1, 4001)[:-1, None]
    values = margins_to_credits((1 - grid) * rest + grid * column) @ counts
    assert 0 <= share < 1
    assert right == pytest.approx(values.max())
    assert float(margins_to_credits((1 - share) * rest + share * column) @ counts) == pytest.approx(right)


def test_local_search_is_as_good_as_trying_everything_on_two_tests(simulate: Simulate) -> None:
    differences, counts = simulate([0.8, 0.2], 80, flips=0.2).differences().decided()
    found = maximise_share(differences, counts, np.array([0.5, 0.5]), rng=np.random.default_rng(0))
    tried = [share_right(differences, counts, np.array([each, 1 - each])) for each in np.linspace(0, 1, 5001)]
    assert share_right(differences, counts, found) == pytest.approx(max(tried))


def test_local_search_never_ends_below_its_start(simulate: Simulate) -> None:
    differences, counts = simulate([0.1] * 10, 60, flips=0.3).differences().decided()
    for seed in range(5):
        start = np.random.default_rng(seed).random(10)
        end = maximise_share(differences, counts, start, rng=np.random.default_rng(seed))
        assert share_right(differences, counts, end) >= share_right(differences, counts, start)


def test_local_search_beats_every_single_change_of_one_weight(simulate: Simulate) -> None:
    differences, counts = simulate(TRUTH, 100, flips=0.2).differences().decided()
    end = maximise_share(differences, counts, np.ones(4), rng=np.random.default_rng(0))
    best = share_right(differences, counts, end)
    for test, value in itertools.product(range(4), np.geomspace(1e-3, 1e3, 200)):
        changed = end.copy()
        changed[test] *= value
        assert share_right(differences, counts, changed) <= best + 1e-12


def test_local_search_samples_when_there_are_very_many_pairs(simulate: Simulate) -> None:
    pairs = simulate(TRUTH, 3000).differences()
    assert LocalSearch(most_pairs=1000).learn(pairs, seed=0) == pytest.approx(TRUTH, abs=0.06)


@pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
def test_optuna_never_ends_below_uniform_and_repeats_with_its_seed(simulate: Simulate) -> None:
    pairs = simulate(TRUTH, 200).differences()
    first, second = (OptunaSearch("tpe", trials=15).learn(pairs, seed=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert share_right(*pairs.decided(), first) >= share_right(*pairs.decided(), np.ones(4))


@pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_the_gaussian_process_of_optuna_names_the_package_it_lacks(simulate: Simulate) -> None:
    with pytest.raises(MissingExtraError, match="torch"):
        OptunaSearch("gp").learn(simulate(TRUTH, 30).differences(), seed=0)


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
