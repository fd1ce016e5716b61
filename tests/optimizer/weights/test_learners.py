from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

from askance.optimizer.weights import LearningFailedError, PreferenceScores, find_learner, learners
from askance.optimizer.weights.bradley_terry import CURVATURE_ROWS, Logistic, fit_bradley_terry
from askance.optimizer.weights.learners import Decay, WeightLearner
from askance.optimizer.weights.pairs import PairDifferences, margins_to_credits, share_right
from askance.optimizer.weights.searches import Bayes, OptunaSearch, best_on_line, maximise_share
from askance.prompts.errors import InputError, MissingExtraError

Simulate = Callable[..., PreferenceScores]
TRUTH = [0.5, 0.3, 0.15, 0.05]
FAST = ["uniform", "best-single", "decay", "logistic", "robust", "local-search", "auto"]


def pairs_of(differences: list[list[float]], ties: list[bool] | None = None) -> PairDifferences:
    table = np.array(differences, dtype=np.float64)
    count = len(table)
    zeros = np.zeros(count, dtype=np.int64)
    return PairDifferences(
        table, np.array(ties or [False] * count), np.arange(count, dtype=np.int64), zeros, np.ones(count)
    )


def test_a_score_tie_is_half_a_win() -> None:
    differences = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 0.0]])
    assert share_right(differences, np.ones(3), np.array([0.5, 0.5])) == pytest.approx((0.5 + 1 + 0) / 3)


def test_the_share_of_right_pairs_does_not_depend_on_the_scale_of_weights() -> None:
    rng = np.random.default_rng(0)
    differences, weights = rng.normal(size=(50, 3)), rng.random(3)
    assert share_right(differences, np.ones(50), weights) == share_right(differences, np.ones(50), 1e-6 * weights)


def test_sums_that_differ_only_by_rounding_are_ties() -> None:
    difference = (0.1 + 0.2) - 0.3
    assert difference != 0
    assert margins_to_credits(np.array([difference])).tolist() == [0.5]


def test_data_ties_become_half_a_win_for_either_side() -> None:
    differences, counts = pairs_of([[1.0], [0.5]], [False, True]).with_ties_as_halves()
    assert differences.tolist() == [[1.0], [0.5], [-0.5]]
    assert counts.tolist() == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("name", FAST)
def test_weights_lie_between_zero_and_one_and_sum_to_one(simulate: Simulate, name: str) -> None:
    weights = find_learner(name).learn(simulate(TRUTH, 200).differences(), seed=1)
    assert weights.shape == (4,)
    assert (weights >= 0).all()
    assert (weights <= 1).all()
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", FAST)
def test_the_same_seed_gives_the_same_weights(simulate: Simulate, name: str) -> None:
    pairs = simulate(TRUTH, 150).differences()
    first, second = (find_learner(name).learn(pairs, seed=7) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", ["logistic", "robust", "local-search", "auto"])
def test_known_weights_are_recovered(simulate: Simulate, name: str) -> None:
    weights = find_learner(name).learn(simulate(TRUTH, 2000).differences(), seed=0)
    assert weights == pytest.approx(TRUTH, abs=0.04)


@pytest.mark.parametrize("name", ["logistic", "robust", "local-search", "best-single"])
def test_counts_stand_for_repeated_pairs(simulate: Simulate, name: str) -> None:
    pairs = simulate(TRUTH, 60).differences()
    counts = np.random.default_rng(0).integers(0, 3, 60)
    repeated = pairs.take(np.repeat(np.arange(60), counts))
    learner = find_learner(name)
    counted = learner.learn(pairs.reweighted(counts.astype(np.float64)), seed=0)
    assert counted == pytest.approx(learner.learn(repeated, seed=0), abs=1e-3)


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


@pytest.mark.parametrize("extra", [1, 6_000])
def test_curvature_from_a_part_of_many_pairs_reaches_the_same_fit(simulate: Simulate, extra: int) -> None:
    pairs = simulate(TRUTH, CURVATURE_ROWS + extra, seed=2).differences()
    whole = find_learner("robust").learn(pairs, seed=0)
    assert whole == pytest.approx(TRUTH, abs=0.015)


def test_data_ties_pull_a_logistic_fit_away_from_the_test_that_separates_them() -> None:
    won = [[1.0, 1.0]] * 20 + [[-0.5, -0.5]] * 5
    without = Logistic().learn(pairs_of(won), seed=0)
    tied = Logistic().learn(pairs_of(won + [[1.0, 0.0]] * 20, [False] * 25 + [True] * 20), seed=0)
    assert without == pytest.approx([0.5, 0.5], abs=1e-3)
    assert tied[0] < tied[1]


def test_separable_pairs_give_finite_weights() -> None:
    weights = Logistic().learn(pairs_of([[0.5, 0.1], [0.3, 0.2]] * 10), seed=0)
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("name", ["logistic", "robust"])
def test_tests_that_all_point_the_wrong_way_are_a_failure_in_words(name: str) -> None:
    with pytest.raises(LearningFailedError, match="no test points the way people preferred"):
        find_learner(name).learn(pairs_of([[-1.0, -0.5]] * 10), seed=0)


@pytest.mark.parametrize("name", ["best-single", "logistic", "robust", "local-search"])
def test_scores_that_never_differ_are_a_failure_in_words(name: str) -> None:
    with pytest.raises(LearningFailedError, match="same scores in every pair"):
        find_learner(name).learn(pairs_of([[0.0, 0.0]] * 10), seed=0)


@pytest.mark.parametrize("name", ["best-single", "logistic", "robust", "local-search"])
def test_ties_alone_are_a_failure_in_words(name: str) -> None:
    with pytest.raises(LearningFailedError, match="no pair in which people preferred"):
        find_learner(name).learn(pairs_of([[1.0, 0.0]] * 3, [True] * 3), seed=0)


def test_best_single_counts_score_ties_as_half() -> None:
    # Test 0: one right, three ties: 2.5 of 4. Test 1: two right, two wrong: 2 of 4.
    pairs = pairs_of([[1.0, 1.0], [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]])
    assert find_learner("best-single").learn(pairs, seed=0).tolist() == [1.0, 0.0]


def test_decay_falls_by_a_fifth_from_test_to_test() -> None:
    weights = Decay().learn(pairs_of([[1.0, 1.0, 1.0]]), seed=0)
    assert weights[1:] / weights[:-1] == pytest.approx([0.8, 0.8])


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
    from askance.optimizer.weights.searches import LocalSearch

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


def test_every_learner_keeps_the_protocol_and_its_name() -> None:
    for name, learner in learners().items():
        assert isinstance(learner, WeightLearner)
        assert learner.name == name


def test_an_unknown_learner_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"'logistc'.*Did you mean 'logistic'"):
        find_learner("logistc")


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="base"):
        Decay(base=0.0)
    with pytest.raises(InputError, match="sampler"):
        OptunaSearch("cma")  # type: ignore[arg-type]


def test_a_learner_that_needs_scipy_names_the_extra_when_it_is_absent(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    pairs = simulate(TRUTH, 30).differences()
    assert find_learner("best-single").learn(pairs, seed=0).max() == 1.0
    with pytest.raises(MissingExtraError, match=r"askance\[weights\]"):
        find_learner("logistic").learn(pairs, seed=0)


@pytest.mark.parametrize("estimate", [False, True])
def test_the_gradient_of_the_likelihood_agrees_with_finite_differences(estimate: bool) -> None:
    from askance.optimizer.weights.bradley_terry import _Problem

    rng = np.random.default_rng(0)
    differences, counts = rng.normal(size=(50, 3)), rng.random(50)
    problem = _Problem(differences, counts, 0.3, estimate_flip=estimate)
    point = np.array([0.5, 1.0, 0.2, 0.15])
    gradient, curvature = problem._derivatives(problem.at(point[:3], 0.15))
    for each in range(4 if estimate else 3):
        step = np.zeros(4)
        step[each] = 1e-5
        above, below = (problem.at(moved[:3], float(moved[3])).loss for moved in (point + step, point - step))
        assert gradient[each] == pytest.approx((above - below) / 2e-5, rel=1e-5)
    assert np.linalg.eigvalsh(curvature).min() > 0
