"""Agreement without resampling: the values of the other room's functions, intervals that hold, and paired differences."""

from __future__ import annotations

import numpy as np
import pytest

from askance.prompts.errors import InputError
from askance.stats.agreement import cohen_kappa
from askance.stats.closed_forms import (
    figure_with_interval,
    influence_difference,
    kappa_influences,
    spearman_influences,
    spearman_intervals,
)
from askance.stats.differences import paired_difference

from ..said import says


def pairs(n: int, agree: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of zeros and ones whose kappa is ``agree``."""
    wanted = (rng.random(n) < 0.4).astype(float)
    drawn = (rng.random(n) < 0.4).astype(float)
    return np.where(rng.random(n) < agree, wanted, drawn), wanted


def test_kappa_is_cohens_and_its_interval_holds_the_truth() -> None:
    rng, held = np.random.default_rng(1), []
    for _ in range(400):
        said, wanted = pairs(60, 0.5, rng)
        found = figure_with_interval(kappa_influences(said, wanted))
        assert found.low is not None and found.high is not None
        held.append(found.low <= 0.5 <= found.high)
    assert found.value == pytest.approx(cohen_kappa(said, wanted).value)
    assert 0.92 <= np.mean(held) <= 0.98


def test_the_variance_of_kappa_is_that_of_fleiss_cohen_and_everitt() -> None:
    said = np.repeat([1.0, 1.0, 0.0, 0.0], [40, 9, 11, 40])
    wanted = np.repeat([1.0, 0.0, 1.0, 0.0], [40, 9, 11, 40])
    p = np.array([[0.4, 0.09], [0.11, 0.4]])
    row, column = p.sum(axis=1), p.sum(axis=0)
    observed, chance = np.trace(p), row @ column
    kappa = (observed - chance) / (1 - chance)
    a = sum(p[i, i] * (1 - (row[i] + column[i]) * (1 - kappa)) ** 2 for i in (0, 1))
    b = (1 - kappa) ** 2 * sum(p[i, j] * (column[i] + row[j]) ** 2 for i in (0, 1) for j in (0, 1) if i != j)
    c = (kappa - chance * (1 - kappa)) ** 2
    variance = (a + b - c) / (1 - chance) ** 2 / 100
    found = kappa_influences(said, wanted)
    assert found.value == pytest.approx(kappa)
    assert float(found.influence @ found.influence) / 100**2 == pytest.approx(variance)


def test_spearman_is_that_of_the_intervals_for_columns() -> None:
    rng = np.random.default_rng(2)
    wanted = rng.integers(1, 6, 80).astype(float)
    scores, groups = wanted + 2 * rng.random(80), [f"d{n // 2}" for n in range(80)]
    mine = figure_with_interval(spearman_influences(scores, wanted), groups)
    [theirs] = spearman_intervals(scores[:, None], wanted, groups=groups)
    assert (mine.value, mine.low, mine.high) == pytest.approx(
        (theirs.statistic.value, theirs.statistic.low, theirs.statistic.high)
    )


def test_a_difference_is_paired_and_near_the_bootstraps() -> None:
    rng = np.random.default_rng(3)
    wanted = rng.random(200)
    before = wanted + rng.random(200) * 2
    after = before + 0.3 * wanted
    found = influence_difference(spearman_influences(before, wanted), spearman_influences(after, wanted))
    drawn = paired_difference(before, after, wanted)
    assert found.value == pytest.approx(drawn.value)
    assert found.low == pytest.approx(drawn.low, abs=0.02) and found.high == pytest.approx(drawn.high, abs=0.02)
    assert found.p_value is not None and found.p_value < 0.01


def test_there_is_a_reason_where_there_is_no_figure_or_interval() -> None:
    one, half = np.ones(20), np.repeat([0.0, 1.0], 10)
    assert says(kappa_influences(one, half).reason, "judge", "passed all")
    assert kappa_influences(half, one).value is None
    few = np.array([1.0] * 3 + [0.0] * 17)
    assert "fewer than 5" in str(figure_with_interval(kappa_influences(few, half)).reason)
    same = influence_difference(kappa_influences(half[::-1], half), kappa_influences(half[::-1], half))
    assert same.value == 0 and same.low is None and "moves no example" in str(same.reason)
    assert "documents" in str(figure_with_interval(spearman_influences(np.arange(20.0) % 7, half), ["d"] * 20).reason)
    with pytest.raises(InputError):
        influence_difference(kappa_influences(half, half[::-1]), kappa_influences(half[:19], half[:19]))
