"""The coding rate against its definition, and the choice by it."""

from __future__ import annotations

import numpy as np
import pytest

from askance.evaluation.compare.judges import coding_rate, spread_by_rate


def test_the_rate_is_that_of_its_definition() -> None:
    vectors = np.random.default_rng(1).normal(size=(4, 7))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = np.eye(7) + 7 / (4 * 0.3**2) * vectors.T @ vectors
    assert coding_rate(vectors, 0.3) == pytest.approx(np.log(np.linalg.det(whole)) / 2)
    assert coding_rate(np.zeros((0, 7))) == 0


def test_what_repeats_another_adds_nothing_and_is_left() -> None:
    axes = np.eye(5)
    assert coding_rate(axes[[0, 0]]) == pytest.approx(coding_rate(axes[[0]]))
    assert spread_by_rate(axes[[0, 0, 1, 1, 2]]) == [0, 2, 4]


def test_the_farthest_is_taken_next() -> None:
    near = np.array([1.0, 0.2, 0.0]) / np.hypot(1.0, 0.2)
    vectors = np.array([[1.0, 0.0, 0.0], near, [0.0, 0.0, 1.0]])
    assert spread_by_rate(vectors)[:2] == [0, 2]


def test_there_may_be_nothing_to_choose_from() -> None:
    assert spread_by_rate(np.zeros((0, 3))) == []
