"""The difference of two sides whose values come in groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from askance.stats import random_effects
from askance.stats.random_effects import grouped_difference


def test_values_that_are_groups_of_their_own_give_welchs_error(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    first, second = random.normal(0.4, 1.0, 12), random.normal(0.0, 2.0, 30)
    difference, error = grouped_difference(first, second, range(12), range(12, 42))
    welch = ttest_ind(first, second, equal_var=False)
    assert difference / error == pytest.approx(welch.statistic)
    # the long way reaches the same figures: two values of one group, on top of each other's side
    monkeypatch.setattr(random_effects, "_shares_taken_off", lambda rest, codes, sizes: np.zeros(len(sizes)))
    copies = random_effects._clustered_error(
        np.column_stack([np.ones(42), np.repeat([1.0, 0.0], [12, 30])]),
        np.concatenate([first - first.mean(), second - second.mean()]),
        np.linalg.inv(np.array([[42.0, 12.0], [12.0, 12.0]])),
        np.arange(42),
    )
    assert copies == pytest.approx(error)


def test_what_tells_groups_apart_tells_no_sides_apart() -> None:
    """One page of many has the topic, and most of its outputs are rejected."""
    groups = np.repeat(np.arange(10), 6)
    rejected = np.tile([True, False, False, True, False, False], 10)
    rejected[:6] = [True, True, True, True, False, False]
    topic = np.where(groups == 0, 0.9, 0.1)
    naive = topic[rejected].mean() - topic[~rejected].mean()
    difference, error = grouped_difference(topic[rejected], topic[~rejected], groups[rejected], groups[~rejected])
    assert naive > 0.06 and abs(difference) < 0.01 and error < 0.01

    relation = topic + np.where(rejected, 0.3, 0.0)
    difference, error = grouped_difference(relation[rejected], relation[~rejected], groups[rejected], groups[~rejected])
    assert difference == pytest.approx(0.3, abs=0.01)


def test_groups_that_lie_on_one_side_are_compared_with_each_other() -> None:
    first, second = np.array([1.0, 1.0, 0.8, 0.8]), np.array([0.1, 0.1, 0.3, 0.3])
    difference, error = grouped_difference(first, second, ["a", "a", "b", "b"], ["c", "c", "d", "d"])
    assert difference == pytest.approx(0.7, abs=0.01)
    # two groups a side say as much as two values a side
    assert error == pytest.approx(
        grouped_difference(np.array([1.0, 0.8]), np.array([0.1, 0.3]), "ab", "cd")[1], rel=0.01
    )


def test_errors_hold_what_they_promise_under_groups() -> None:
    """Of 300 worlds without a difference, about one in twenty lies outside two errors, naive errors far more often."""
    random, outside, naive_outside = np.random.default_rng(7), 0, 0
    for _ in range(300):
        groups = np.repeat(np.arange(24), 5)
        sides = random.random(24)  # groups differ in how many of their values are rejected
        rejected = random.random(120) < np.repeat(sides, 5)
        values = np.repeat(random.normal(0, 1, 24), 5) + random.normal(0, 1, 120)
        difference, error = grouped_difference(values[rejected], values[~rejected], groups[rejected], groups[~rejected])
        outside += abs(difference) > 2 * error
        plain, usual = grouped_difference(
            values[rejected], values[~rejected], range(rejected.sum()), range(-200, -200 + (~rejected).sum())
        )
        naive_outside += abs(plain) > 2 * usual
    assert 4 <= outside <= 30 < naive_outside
