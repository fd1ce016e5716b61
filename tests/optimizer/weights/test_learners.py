from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from askance.optimizer.weights.evidence import PairDifferences, margins_to_credits, share_right
from askance.optimizer.weights.learner_choice import find_learner, learners
from askance.optimizer.weights.learners import LearningFailedError, Logistic, WeightLearner
from askance.optimizer.weights.score_tables import PreferenceScores
from askance.prompts.errors import InputError
from tests.said import naming

Simulate = Callable[..., PreferenceScores]
TRUTH = [0.5, 0.3, 0.15, 0.05]
FAST = ["uniform", "best-single", "logistic", "robust", "auto"]


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


@pytest.mark.parametrize("name", ["logistic", "robust", "auto"])
def test_known_weights_are_recovered(simulate: Simulate, name: str) -> None:
    weights = find_learner(name).learn(simulate(TRUTH, 2000).differences(), seed=0)
    assert weights == pytest.approx(TRUTH, abs=0.04)


@pytest.mark.parametrize("name", ["logistic", "robust", "best-single"])
def test_counts_stand_for_repeated_pairs(simulate: Simulate, name: str) -> None:
    pairs = simulate(TRUTH, 60).differences()
    counts = np.random.default_rng(0).integers(0, 3, 60)
    repeated = pairs.take(np.repeat(np.arange(60), counts))
    learner = find_learner(name)
    counted = learner.learn(pairs.reweighted(counts.astype(np.float64)), seed=0)
    assert counted == pytest.approx(learner.learn(repeated, seed=0), abs=1e-3)


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
    with pytest.raises(LearningFailedError, match=naming("no test points")):
        find_learner(name).learn(pairs_of([[-1.0, -0.5]] * 10), seed=0)


@pytest.mark.parametrize("name", ["best-single", "logistic", "robust"])
def test_scores_that_never_differ_are_a_failure_in_words(name: str) -> None:
    with pytest.raises(LearningFailedError, match=naming("same scores", "every pair")):
        find_learner(name).learn(pairs_of([[0.0, 0.0]] * 10), seed=0)


@pytest.mark.parametrize("name", ["best-single", "logistic", "robust"])
def test_ties_alone_are_a_failure_in_words(name: str) -> None:
    with pytest.raises(LearningFailedError, match=naming("no pair")):
        find_learner(name).learn(pairs_of([[1.0, 0.0]] * 3, [True] * 3), seed=0)


def test_best_single_counts_score_ties_as_half() -> None:
    # Test 0: one right, three ties: 2.5 of 4. Test 1: two right, two wrong: 2 of 4.
    pairs = pairs_of([[1.0, 1.0], [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]])
    assert find_learner("best-single").learn(pairs, seed=0).tolist() == [1.0, 0.0]


def test_every_learner_keeps_the_protocol_and_its_name() -> None:
    for name, learner in learners().items():
        assert isinstance(learner, WeightLearner)
        assert learner.name == name


def test_an_unknown_learner_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"'logistc'.*Did you mean 'logistic'"):
        find_learner("logistc")
