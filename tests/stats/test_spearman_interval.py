"""The interval without resampling: the value is scipy's, the width is the bootstrap's, and it says when there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from askance.prompts.errors import InputError
from askance.stats.closed_forms import spearman_intervals
from askance.stats.correlation import correlate
from askance.stats.resampling import Resampling
from tests.said import says


def data(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns: continuous, coarse, yes/no with 80 % yes; and coarse human scores."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    human = np.round(np.clip(truth + 3, 1, 5))
    noisy = truth[:, np.newaxis] + rng.normal(size=(n, 3)) * [1.0, 2.0, 1.0]
    return np.column_stack([noisy[:, 0], np.round(noisy[:, 1]), noisy[:, 2] > -1.2]), human


def test_the_values_are_those_of_scipy() -> None:
    columns, human = data()
    columns[:7, 1] = np.nan
    for column, found in zip(columns.T, spearman_intervals(columns, human), strict=True):
        there = ~np.isnan(column)
        assert found.statistic.value == pytest.approx(stats.spearmanr(column[there], human[there])[0])
        assert found.statistic.n == there.sum()


@pytest.mark.parametrize("clustered", [False, True])
def test_the_interval_is_nearly_that_of_the_bootstrap(clustered: bool) -> None:
    columns, human = data()
    groups = [place // 5 for place in range(len(human))] if clustered else None
    for column, found in zip(columns.T, spearman_intervals(columns, human, groups=groups), strict=True):
        other = correlate(column, human, Resampling(groups=groups, resamples=2000)).spearman
        assert found.statistic.low == pytest.approx(other.low, abs=0.03)
        assert found.statistic.high == pytest.approx(other.high, abs=0.03)


def test_documents_with_alike_examples_make_it_wider() -> None:
    rng = np.random.default_rng(1)
    per_document = rng.normal(size=(40, 2))
    both = np.repeat(per_document, 10, axis=0) + 0.2 * rng.normal(size=(400, 2))
    groups = [place // 10 for place in range(400)]
    widths = []
    for given in (None, groups):
        [found] = spearman_intervals(both[:, :1], both[:, 1], groups=given)
        widths.append(found.statistic.high - found.statistic.low)
    assert widths[1] > 2.5 * widths[0]


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    hits = 0
    rng = np.random.default_rng(3)
    for _ in range(400):
        human = rng.normal(size=60)
        [found] = spearman_intervals((0.5 * human + rng.normal(size=60))[:, np.newaxis], human)
        hits += found.statistic.low <= 6 / np.pi * np.arcsin(0.5 / np.sqrt(1.25) / 2) <= found.statistic.high
    assert 0.92 <= hits / 400 <= 0.98


def test_the_p_value_is_small_where_a_column_runs_against_people() -> None:
    columns, human = data()
    against, with_people = spearman_intervals(np.column_stack([-columns[:, 0], columns[:, 0]]), human)
    assert against.p_against < 1e-6
    assert with_people.p_against > 1 - 1e-6


@pytest.mark.parametrize(
    ("column", "human", "reason"),
    [
        ([1.0] * 40, list(range(40)), "the scores are constant"),
        (list(range(40)), [2.0] * 40, "the human scores are constant"),
        ([1.0, 2.0, *[np.nan] * 38], list(range(40)), "fewer than 3 items"),
        (list(range(8)), [1, 3, 2, 4, 6, 5, 8, 7], "fewer than 10 examples"),
        ([0.0] * 4 + [1.0] * 36, list(range(40)), "all scores but 4 are the same"),
        (list(range(40)), [0] * 3 + [1] * 37, "all human scores but 3 are the same"),
    ],
)
def test_what_is_missing_has_a_reason(column: list[float], human: list[float], reason: str) -> None:
    [found] = spearman_intervals(np.array(column, dtype=float)[:, np.newaxis], human)
    assert found.statistic.low is None
    assert found.p_against is None
    assert reason in (found.statistic.reason or "")


def test_a_perfect_order_has_no_interval_and_its_reverse_is_against_people_all_the_same() -> None:
    human = np.arange(40.0)
    with_people, against = spearman_intervals(np.column_stack([human, human < 20]), human)
    assert with_people.statistic.value == 1
    assert with_people.p_against == 1
    assert says(with_people.statistic.reason, "no interval", "exactly the order")
    assert against.p_against < 1e-6
    [reverse] = spearman_intervals(-human[:, np.newaxis], human)
    assert reverse.statistic.low is None
    assert 0 < reverse.p_against < 1e-6


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="level is 95"):
        spearman_intervals(*data(20), level=95)
