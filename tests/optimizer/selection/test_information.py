"""Information of single questions: closed forms, brute force, scikit-learn, and speed."""

from __future__ import annotations

import time
from itertools import permutations
from math import log2

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from askance.optimizer.selection.information import (
    entropy,
    expected_information_gain,
    one_hot,
    pooled_information,
)


def codes(seed: int, size: int, questions: int, options: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ratings = rng.integers(0, levels, size)
    told = rng.random((size, questions)) < rng.random(questions)
    answers = np.where(told, ratings[:, None] % options, rng.integers(0, options, (size, questions)))
    return answers, ratings


def brute_force(answers: np.ndarray, ratings: np.ndarray) -> float:
    size = len(answers)
    total = 0.0
    for a in set(answers.tolist()):
        for y in set(ratings.tolist()):
            both = np.mean((answers == a) & (ratings == y))
            if both:
                total += both * log2(both / (np.mean(answers == a) * np.mean(ratings == y)))
    assert size
    return total


def test_entropy_is_in_bits_and_takes_zeros() -> None:
    assert entropy(np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])) == pytest.approx(
        [1.0, 0.0, -(0.25 * log2(0.25) + 0.75 * log2(0.75))]
    )


@pytest.mark.parametrize("options", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_hard_answers_give_the_mutual_information_by_brute_force(seed: int, options: int) -> None:
    answers, ratings = codes(seed, 60, 6, options, 5)
    found = pooled_information(one_hot(answers, options), one_hot(ratings, 5))
    assert found.plugin == pytest.approx([brute_force(column, ratings) for column in answers.T])
    nats = [mutual_info_score(column, ratings) for column in answers.T]
    assert found.plugin == pytest.approx(np.array(nats) / np.log(2))


@pytest.mark.parametrize("options", [2, 3, 5])
def test_the_shuffle_correction_is_the_exact_mean_over_dealings(options: int) -> None:
    answers, ratings = codes(1, 90, 5, options, 4)
    found = pooled_information(one_hot(answers, options), one_hot(ratings, 4))
    exact = [
        expected_mutual_information(contingency_matrix(column, ratings, sparse=True), 90) / np.log(2)
        for column in answers.T
    ]
    assert found.bias == pytest.approx(exact, rel=1e-9)
    assert found.bits == pytest.approx(found.plugin - found.bias)


def test_the_shuffle_correction_is_the_mean_over_every_permutation() -> None:
    answers, ratings = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 2, 2, 1, 0])
    every = [brute_force(answers, np.array(dealt)) for dealt in permutations(ratings.tolist())]
    found = pooled_information(one_hot(answers[:, None], 2), one_hot(ratings, 3))
    assert found.bias[0] == pytest.approx(np.mean(every))


def test_soft_answers_give_the_closed_form_of_the_joint_table() -> None:
    answers = np.array([[[0.25, 0.75]], [[0.75, 0.25]]])
    ratings = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = pooled_information(answers, ratings)
    assert found.plugin[0] == pytest.approx(1 - (-(0.25 * log2(0.25) + 0.75 * log2(0.75))))


def test_the_correction_of_soft_answers_agrees_with_that_of_hard_ones() -> None:
    answers, ratings = codes(3, 400, 4, 2, 5)
    hard, levels = one_hot(answers, 2), one_hot(ratings, 5)
    nearly = np.clip(hard, 1e-9, 1 - 1e-9)
    nearly /= nearly.sum(axis=2, keepdims=True)
    exact = pooled_information(hard, levels).bias
    assert pooled_information(nearly, levels).bias == pytest.approx(exact, rel=0.5)


def test_answers_that_do_not_vary_tell_nothing_and_have_no_bias() -> None:
    answers = np.full((50, 1, 2), 0.5)
    ratings = one_hot(np.arange(50) % 5, 5)
    found = pooled_information(answers, ratings)
    assert found.bits[0] == pytest.approx(0.0, abs=1e-12)


def test_an_example_without_answer_or_rating_is_left_out_of_that_question_alone() -> None:
    answers, ratings = codes(5, 80, 3, 2, 4)
    answers[:10, 1] = -1
    ratings[70:] = -1
    found = pooled_information(one_hot(answers, 2), one_hot(ratings, 4))
    part = pooled_information(one_hot(answers[10:70, 1:2], 2), one_hot(ratings[10:70], 4))
    assert found.examples.tolist() == [70, 60, 70]
    assert found.bits[1] == pytest.approx(part.bits[0])


def test_a_question_without_any_answer_is_undefined_and_not_zero() -> None:
    answers, ratings = codes(5, 30, 2, 2, 4)
    answers[:, 1] = -1
    found = pooled_information(one_hot(answers, 2), one_hot(ratings, 4))
    assert np.isnan(found.bits).tolist() == [False, True]


def test_the_gain_example_by_example_is_the_formula() -> None:
    answers = np.array([[[0.5, 0.5]], [[1.0, 0.0]]])
    prior = np.array([[0.5, 0.5], [0.5, 0.5]])
    conditional = np.array([[[[1.0, 0.0], [0.0, 1.0]]], [[[0.5, 0.5], [np.nan, np.nan]]]])
    found = expected_information_gain(answers, prior, conditional)
    assert found.bits[0] == pytest.approx((1.0 + 0.0) / 2)
    assert found.examples[0] == 2, "the rating under an answer that is never given is not needed"


def test_a_missing_rating_given_an_answer_leaves_the_example_out() -> None:
    answers = np.array([[[0.5, 0.5]], [[0.5, 0.5]]])
    prior = np.array([[0.5, 0.5], [0.5, 0.5]])
    conditional = np.array([[[[1.0, 0.0], [0.0, 1.0]]], [[[0.5, 0.5], [np.nan, np.nan]]]])
    found = expected_information_gain(answers, prior, conditional)
    assert (found.bits[0], found.examples[0]) == (pytest.approx(1.0), 1)


def test_with_coherent_ratings_the_gain_is_the_mutual_information_of_each_example() -> None:
    rng = np.random.default_rng(0)
    answers = rng.dirichlet([1, 1], size=(20, 3))
    conditional = rng.dirichlet(np.ones(4), size=(20, 1, 2)).repeat(3, axis=1)
    prior = np.einsum("ia,iay->iy", answers[:, 0], conditional[:, 0])
    found = expected_information_gain(answers[:, :1], prior, conditional[:, :1])
    joint = answers[:, 0, :, None] * conditional[:, 0]
    wanted = entropy(answers[:, 0]) + entropy(prior) - entropy(joint.reshape(20, -1))
    assert found.bits[0] == pytest.approx(wanted.mean())


def test_codes_beyond_the_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="highest code is 1"):
        one_hot(np.array([0, 2]), 2)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_a_million_answers_take_under_a_second(kind: str) -> None:
    answers, ratings = codes(7, 10_000, 100, 2, 5)
    table = one_hot(answers, 2)
    if kind == "soft":
        yes = np.clip(table[:, :, 1], 0.2, 0.9)
        table = np.stack([1 - yes, yes], axis=2)
    levels = one_hot(ratings, 5)
    began = time.process_time()
    pooled_information(table, levels)
    assert time.process_time() - began < 1.0
