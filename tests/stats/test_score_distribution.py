"""Distances of distributions against scipy, and the crowd at the top."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from askance.prompts.errors import InputError
from askance.stats.differences import compare_distributions, wasserstein_kernel
from askance.stats.resampling import Resampling, record_dict, resample_weights
from tests.said import naming, says


def columns(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    human = np.round(rng.random(n) * 4) / 4
    return np.clip(human + 0.3 * rng.random(n), 0, 1), human


def test_the_distance_is_scipys_on_the_items_and_on_every_resample() -> None:
    scores, human = columns()
    found = compare_distributions(scores, human)
    assert found.distance.value == pytest.approx(stats.wasserstein_distance(scores, human))
    drawn = next(resample_weights(80, 10, seed=1))
    for column, value in zip(drawn.T, wasserstein_kernel(scores, human)(drawn), strict=True):
        again = column.astype(int)
        assert value == pytest.approx(stats.wasserstein_distance(np.repeat(scores, again), np.repeat(human, again)))


def test_the_same_scores_in_another_order_have_no_distance() -> None:
    scores, _ = columns()
    found = compare_distributions(scores, scores[::-1])
    assert found.distance.value == pytest.approx(0, abs=1e-12)
    assert found.severity.value == pytest.approx(0, abs=1e-12)


def test_a_constant_shift_is_the_distance_and_the_severity() -> None:
    found = compare_distributions(np.linspace(0, 0.7, 50), np.linspace(0.2, 0.9, 50))
    assert found.distance.value == pytest.approx(0.2)
    assert found.severity.value == pytest.approx(-0.2)
    assert (found.distance.low, found.distance.high) == pytest.approx((0.2, 0.2))


def test_a_judge_that_crowds_at_the_top_is_seen() -> None:
    human = np.linspace(0, 1, 100)
    found = compare_distributions(np.where(human > 0.5, 0.995, human), human)
    assert found.at_maximum.value == pytest.approx(0.5)
    assert found.human_at_maximum.value == pytest.approx(0.01)
    assert found.ceiling.value == pytest.approx(0.49)
    assert found.ceiling.low > 0.3


def test_documents_are_kept_together_and_missing_scores_dropped() -> None:
    scores, human = columns()
    with_gap: list[float | None] = [None, *scores[1:]]
    groups = [k // 4 for k in range(80)]
    found = compare_distributions(with_gap, human, Resampling(groups=groups))
    assert found.distance.n == found.severity.n == 79
    assert json.loads(json.dumps(record_dict(found), allow_nan=False))["distance"]["n"] == 79


def test_scores_on_another_scale_are_refused() -> None:
    with pytest.raises(InputError, match=naming("human score of 3", "0 to 1")):
        compare_distributions([0.5, 0.6], [1, 3])


def test_nothing_has_no_distribution() -> None:
    found = compare_distributions([None, 0.1], [0.5, None])
    assert found.distance.value is None and says(found.distance.reason, "both scores")
    assert found.severity.value is None
