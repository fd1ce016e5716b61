"""Kappas and agreement against scikit-learn, textbook tables and counting; undefined is None with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askance.prompts.errors import InputError
from askance.stats.agreement import (
    agreement_hits,
    cohen_kappa,
    kappa_kernel,
    kappa_self,
    label_codes,
    observed_agreement,
    to_points,
)
from askance.stats.differences import mean_difference
from askance.stats.resampling import Resampling, resample_weights
from tests.said import naming, says

metrics = pytest.importorskip("sklearn.metrics")


def ratings(n: int = 200, raters: int = 2, noise: float = 0.8, seed: int = 0) -> list[np.ndarray]:
    """Ratings from 1 to 5, of raters who look at the same thing."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(3, 1, size=n)
    return [np.clip(np.round(truth + noise * rng.normal(size=n)), 1, 5) for _ in range(raters)]


def table(both: int, first: int, second: int, neither: int) -> tuple[list[int], list[int]]:
    a = [1] * both + [1] * first + [0] * second + [0] * neither
    return a, [1] * both + [0] * first + [1] * second + [0] * neither


def test_cohens_kappa_of_a_textbook_table() -> None:
    found = cohen_kappa(*table(20, 5, 10, 15))
    assert found.value == pytest.approx(0.4)
    assert found.low < 0.4 < found.high
    assert found.n == 50


@pytest.mark.parametrize("weights", ["none", "quadratic"])
def test_a_kappa_is_that_of_scikit_learn(weights: Any) -> None:
    a, b = ratings()
    expected = metrics.cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
    assert cohen_kappa(a, b, weights=weights).value == pytest.approx(expected)


@pytest.mark.parametrize("weights", ["none", "quadratic"])
def test_what_is_resampled_is_scikit_learns_kappa(weights: Any) -> None:
    a, b = label_codes(ratings(40), weights)
    drawn = next(resample_weights(40, 20, seed=1))
    for column, value in zip(drawn.T, kappa_kernel(a, b, weights)(drawn), strict=True):
        options = {"labels": range(5), "sample_weight": column, "weights": None if weights == "none" else weights}
        assert value == pytest.approx(metrics.cohen_kappa_score(a, b, **options))


def test_points_that_nobody_gives_are_steps_of_the_scale() -> None:
    a, b = [1, 1, 2, 5, 5, 2], [1, 2, 2, 5, 5, 5]
    expected = metrics.cohen_kappa_score(a, b, labels=[1, 2, 3, 4, 5], weights="quadratic")
    assert cohen_kappa(a, b, weights="quadratic").value == pytest.approx(expected)
    assert cohen_kappa(a, b, weights="quadratic").value != pytest.approx(
        metrics.cohen_kappa_score(a, b, weights="quadratic")
    )


def test_missing_labels_drop_the_item() -> None:
    a, b = ratings(50)
    with_gaps: list[float | None] = [None, None, *a[2:]]
    assert cohen_kappa(with_gaps, b).value == cohen_kappa(a[2:], b[2:]).value
    assert cohen_kappa(with_gaps, b).n == 48


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([1] * 9, [1] * 9, "the labels of rater 1 are constant (all 1)"),
        ([1, 2] * 5, [2] * 10, "the labels of rater 2 are constant (all 2)"),
        ([1, 2], [1, 2], "fewer than 3 items (there are 2)"),
        ([1, None, None], [1, 2, 3], "fewer than 3 items (there are 1)"),
    ],
)
def test_an_undefined_kappa_has_a_reason(a: list, b: list, reason: str) -> None:
    for weights in ("none", "quadratic"):
        found = cohen_kappa(a, b, weights=weights)
        assert (found.value, found.low, found.high, found.reason) == (None, None, None, reason)


def test_documents_are_resampled_together() -> None:
    a, b = (np.repeat(each, 8) for each in ratings(30, noise=0.5))
    groups = [place // 8 for place in range(len(a))]
    alone, together = cohen_kappa(a, b), cohen_kappa(a, b, Resampling(groups=groups))
    assert together.value == alone.value
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_self_consistency_is_the_mean_kappa_over_pairs_of_repeats() -> None:
    one, two, three = ratings(raters=3)
    expected = np.mean([metrics.cohen_kappa_score(a, b) for a, b in ((one, two), (one, three), (two, three))])
    found = kappa_self([one, two, three])
    assert found.value == pytest.approx(expected)
    assert found.low < expected < found.high
    assert kappa_self([one, one]).value == 1


def test_raters_who_always_agree_are_no_certainty() -> None:
    kappa, share = cohen_kappa([1, 2, 3, 1], [1, 2, 3, 1]), observed_agreement([1, 2, 3, 1], [1, 2, 3, 1])
    apart = observed_agreement([1, 2, 3, 1], [2, 3, 1, 2])
    assert [kappa.value, share.value, apart.value] == [1, 1, 0]
    for found, why in ((kappa, "agree on all"), (share, "agree on all"), (apart, "agree on none")):
        assert (found.low, found.high) == (None, None)
        assert says(found.reason, "no interval", why)


def test_one_judging_has_no_self_consistency() -> None:
    with pytest.raises(InputError, match=naming("two columns", 1)):
        kappa_self(ratings(raters=1))


def test_scores_are_no_labels() -> None:
    scores = np.random.default_rng(0).random(300)
    with pytest.raises(InputError, match=naming("whole points", "to_points")):
        cohen_kappa(scores, scores, weights="quadratic")
    with pytest.raises(InputError, match="more than 101"):
        cohen_kappa(scores, scores)


def test_observed_agreement_counts_what_lies_within_the_tolerance() -> None:
    a, b = [1, 2, 3, 4, None, 5], [1, 3, 5, 1, 2, 4.5]
    assert observed_agreement(a, b).value == pytest.approx(1 / 5)
    assert observed_agreement(a, b, tolerance=1).value == pytest.approx(3 / 5)
    assert observed_agreement(a, b, tolerance=2).value == pytest.approx(4 / 5)
    assert agreement_hits(a, b, tolerance=1) == [1, 1, 0, 0, None, 1]
    assert observed_agreement([0.3], [0.1], tolerance=0.2).value == 1  # 0.3 - 0.1 is a little more than 0.2
    nothing = observed_agreement([None], [1])
    assert (nothing.value, nothing.n) == (None, 0) and says(nothing.reason, "both ratings")


def test_hits_of_two_judges_are_compared_in_pairs() -> None:
    human, good, bad = ratings(300, raters=3)
    bad = bad[::-1]
    found = mean_difference(*(agreement_hits(each, human, tolerance=1) for each in (bad, good)))
    assert found.value == pytest.approx(
        observed_agreement(good, human, tolerance=1).value - observed_agreement(bad, human, tolerance=1).value
    )
    assert found.p_value < 0.01


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(InputError, match=naming(-1, "negative")):
        observed_agreement([1], [1], tolerance=-1)


def test_scores_are_put_on_the_nearest_point() -> None:
    assert to_points([0, 0.12, 0.125, 0.5, 0.874, 1, None], 5) == [1, 1, 2, 3, 4, 5, None]
    assert to_points([0.5], 2) == [2]
    with pytest.raises(InputError, match=naming("Score 2", 1.5, "0 to 1")):
        to_points([0.5, 1.5], 5)
    with pytest.raises(InputError, match=naming("1 points")):
        to_points([0.5], 1)
