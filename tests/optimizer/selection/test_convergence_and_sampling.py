"""Stability of the ranking, and which examples stand for the data."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from askance.optimizer.selection.information import default_sizes, one_hot, ranking_convergence
from askance.optimizer.selection.inputs import allocate, cluster, sample_clustered, sample_uniform
from askance.prompts.errors import MissingExtraError


def tables(size: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rating = rng.integers(0, 5, size)
    slips = np.linspace(0.05, 0.05 + spread, 8)
    answers = (rating[:, None] >= 3) ^ (rng.random((size, 8)) < slips)
    return one_hot(answers.astype(np.int64), 2), one_hot(rating, 5)


def test_the_ranking_settles_as_examples_are_added() -> None:
    found = ranking_convergence(*tables(320, 0.4), k=3, resamples=20, seed=1)
    taus = [step.tau for step in found.steps]
    assert [step.m for step in found.steps] == [10, 20, 40, 80, 160, 320]
    assert all(tau is not None for tau in taus)
    assert taus[0] < taus[-1]
    assert taus[-1] > 0.8
    assert found.steps[-1].same_top > found.steps[0].same_top
    assert all(step.low <= step.tau <= step.high for step in found.steps)


def test_same_seed_same_figures() -> None:
    one, two = (ranking_convergence(*tables(80, 0.4), k=3, resamples=5, seed=3) for _ in range(2))
    assert one == two


def test_questions_alike_in_everything_have_no_ranking() -> None:
    answers, ratings = tables(60, 0.4)
    same = np.repeat(answers[:, :1], 4, axis=1)
    found = ranking_convergence(same, ratings, k=2, resamples=4)
    assert found.settled is None
    assert found.steps[-1].tau is None
    assert "constant" in str(found.steps[-1].reason)
    assert "reason" in found.to_dict()["steps"][0]


def test_a_ranking_that_a_third_of_the_resamples_lack_has_not_settled() -> None:
    ratings = np.array([1] + [0] * 19)
    answers = np.stack([ratings, np.arange(20) % 2, np.arange(20) % 3 == 0], axis=1).astype(np.int64)
    found = ranking_convergence(one_hot(answers, 2), one_hot(ratings, 2), k=1)
    assert found.steps[-1].tau is None and found.settled is None, "a third of the resamples have one rating alone"
    assert "of 60 resamples: the scores are constant" in str(found.steps[-1].reason)


def test_the_ranking_that_settles_is_that_of_the_estimate_in_use() -> None:
    size, questions = 30, 4
    answers, ratings = np.full((size, questions, 2), 0.5), np.full((size, 5), 0.2)
    assert ranking_convergence(answers, ratings, k=2, resamples=4).steps[-1].tau is None, "they all tell nothing"
    sharper = np.array([[1 - 0.2 * q, *[0.05 * q] * 4] for q in range(questions)])
    conditional = np.broadcast_to(sharper[None, :, None, :], (size, questions, 2, 5))
    found = ranking_convergence(answers, ratings, k=2, resamples=4, conditional=conditional)
    assert [step.tau for step in found.steps] == [pytest.approx(1)] * len(found.steps)
    assert found.settled == 10


def test_per_cost_it_is_the_ranking_per_cost() -> None:
    answers, ratings = tables(160, 0.0)
    near, apart = (
        ranking_convergence(answers, ratings, k=2, resamples=10, costs=costs).steps[-1].tau
        for costs in (None, 10.0 ** np.arange(8))
    )
    assert near is not None and near < 0.9, "questions that are about as good as each other change places"
    assert apart == pytest.approx(1)


def test_sizes_double_up_to_all() -> None:
    assert default_sizes(50) == [10, 20, 40, 50]
    assert default_sizes(8) == [8]


def test_a_uniform_sample_is_repeatable_and_ascends() -> None:
    one = sample_uniform(100, 10, 7)
    assert one == sample_uniform(100, 10, 7) == sorted(set(one))
    assert len(one) == 10
    assert one != sample_uniform(100, 10, 8)
    assert sample_uniform(5, 10, 7) == [0, 1, 2, 3, 4]


def test_places_are_in_proportion_and_no_cluster_goes_without() -> None:
    assert allocate(np.array([60, 30, 10]), 10) == [6, 3, 1]
    assert allocate(np.array([97, 2, 1]), 10) == [8, 1, 1]
    assert sum(allocate(np.array([5, 5, 5]), 7)) == 7


def test_a_clustered_sample_covers_what_a_uniform_one_may_miss() -> None:
    rng = np.random.default_rng(0)
    vectors = np.vstack([rng.normal((1, 0, 0), 0.01, (190, 3)), rng.normal((0, 1, 0), 0.01, (10, 3))])
    labels = cluster(vectors.astype(np.float32), 2, 0)
    assert len(set(labels[:190])) == len(set(labels[190:])) == 1
    chosen = sample_clustered(vectors.astype(np.float32), 20, 2, 0)
    assert len(chosen) == len(set(chosen)) == 20
    assert sum(place >= 190 for place in chosen) == 1


def test_clusters_without_scikit_learn_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match=r"askance\[selection\]"):
        cluster(np.eye(4, dtype=np.float32), 2, 0)
