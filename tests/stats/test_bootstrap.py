"""A paired difference finds real gains, seldom invented ones, and says when there is nothing to compare."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from askance.prompts.errors import InputError
from askance.stats.correlation import correlate, correlation_kernel, kendall, spearman
from askance.stats.differences import _swap_p_value, mean_difference, paired_difference
from askance.stats.resampling import Resampling, resample, resample_weights
from tests.said import says

POINT = {
    "spearman": spearman,
    "kendall": kendall,
    "pearson": lambda a, b: correlate(a, b, Resampling(resamples=1)).pearson,
}


def versions(
    n: int, rng: np.random.Generator, rho: tuple[float, float] = (0.4, 0.8)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two judges correlated `rho` with people; half of their noise is common."""
    human, common = rng.normal(size=(2, n))
    noise = (np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=n) for _ in rho)
    a, b = (r * human + np.sqrt(1 - r * r) * e for r, e in zip(rho, noise, strict=True))
    return a, b, human


@pytest.mark.parametrize("statistic", POINT)
def test_value_is_the_difference_of_the_two_statistics_and_inside_its_interval(statistic: str) -> None:
    a, b, human = versions(60, np.random.default_rng(1))
    found = paired_difference(a, b, human, Resampling(resamples=500), statistic=statistic)
    assert found.value == pytest.approx(POINT[statistic](b, human).value - POINT[statistic](a, human).value)
    assert found.low < found.value < found.high
    assert found.p_value < 0.01 and found.reason is None


def test_swapping_the_versions_reverses_the_difference() -> None:
    a, b, human = versions(40, np.random.default_rng(2))
    forth, back = (paired_difference(*pair, human, Resampling(seed=7)) for pair in ((a, b), (b, a)))
    assert back.value == pytest.approx(-forth.value)
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))
    assert back.p_value == pytest.approx(1 - forth.p_value, abs=0.02)


def test_identical_versions_never_look_like_a_gain() -> None:
    a, _, human = versions(20, np.random.default_rng(3))
    found = paired_difference(a, a, human, Resampling(resamples=300))
    assert (found.value, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_version_that_is_only_more_severe_is_no_gain() -> None:
    a, _, human = versions(20, np.random.default_rng(3))
    assert paired_difference(a, np.exp(a) - 5, human, Resampling(resamples=300)).p_value == 1.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_swap_p_value_ignores_monotone_transforms_and_rescaled_people(seed: int) -> None:
    a, b, human = versions(15, np.random.default_rng(seed))
    plain = paired_difference(a, b, human, Resampling(resamples=100))
    bent = paired_difference(np.exp(a), b**3, 5 * human + 2, Resampling(resamples=100))
    assert (bent.value, bent.p_value) == pytest.approx((plain.value, plain.p_value))


def test_both_versions_are_measured_on_the_same_resamples() -> None:
    a, _, human = versions(50, np.random.default_rng(4), (0.5, 0.5))
    b = a + 1e-3 * np.random.default_rng(5).normal(size=50)
    found = paired_difference(a, b, human)
    separate = correlate(a, human).spearman
    assert found.high - found.low < 0.1 * (separate.high - separate.low)


@pytest.mark.parametrize("seed", range(8))
def test_swap_p_value_equals_complete_enumeration_of_the_swaps(seed: int) -> None:
    a, b, human = versions(9, np.random.default_rng(seed), (-0.6, 0.2))
    people, *ranks = (stats.zscore(stats.rankdata(column)) for column in (human, a, np.round(b)))
    every = np.array(list(itertools.product([1.0, -1.0], repeat=9))).T
    gains = []
    for signs in every.T:
        x, y = np.where(signs < 0, ranks[1], ranks[0]), np.where(signs < 0, ranks[0], ranks[1])
        gains.append(np.corrcoef(y, people)[0, 1] - np.corrcoef(x, people)[0, 1])
    exact = np.count_nonzero(np.array(gains) >= gains[0] - 1e-9)
    assert _swap_p_value(ranks[0], ranks[1], people, iter([every])) == (1 + exact) / (1 + 512)
    assert paired_difference(a, np.round(b), human, Resampling(resamples=6400)).p_value == pytest.approx(
        exact / 512, abs=0.02
    )


def test_constant_baseline_is_undefined_unless_the_convention_is_asked_for() -> None:
    _, b, human = versions(24, np.random.default_rng(8))
    yes = [1.0] * 24
    found = paired_difference(yes, b, human, Resampling(resamples=400))
    assert (found.value, found.low, found.p_value, found.n) == (None, None, None, 24)
    assert says(found.reason, "version a", "constant", "all 1") and not says(found.reason, "version b")
    zero = paired_difference(yes, b, human, Resampling(resamples=400), undefined_as_zero=True)
    assert zero.value == pytest.approx(spearman(b, human).value)
    assert zero.p_value < 0.01 and zero.low > 0
    back = paired_difference(b, yes, human, Resampling(resamples=400), undefined_as_zero=True)
    assert back.value == pytest.approx(-zero.value) and back.p_value > 0.99
    both = paired_difference(yes, yes, human, Resampling(resamples=100), undefined_as_zero=True)
    assert (both.value, both.p_value) == (0.0, 1.0)
    neither = paired_difference(yes, yes, human)
    assert "version a" in neither.reason and "version b" in neither.reason


def test_the_convention_changes_nothing_where_it_is_not_needed() -> None:
    a, b, human = versions(24, np.random.default_rng(8))
    plain = paired_difference(a, b, human, Resampling(resamples=200))
    assert paired_difference(a, b, human, Resampling(resamples=200), undefined_as_zero=True) == plain


def test_constant_human_scores_stay_undefined_under_the_convention() -> None:
    found = paired_difference([1, 2, 3, 4], [2, 1, 4, 3], [5] * 4, undefined_as_zero=True)
    assert found.value is None and found.reason == "the human scores are constant (all 5)"


def test_undefined_resamples_withhold_the_interval() -> None:
    human = np.arange(8.0)
    one_no = np.array([0.0, 1, 1, 1, 1, 1, 1, 1])
    found = paired_difference(one_no, human, human, Resampling(resamples=1000))
    assert found.value > 0 and found.low is None and "no interval" in found.reason
    filled = paired_difference(one_no, human, human, Resampling(resamples=1000), undefined_as_zero=True)
    assert filled.low is not None


def test_repeating_every_example_inside_its_document_adds_no_evidence() -> None:
    a, b, human = versions(16, np.random.default_rng(9), (0.3, 0.6))
    many = [np.repeat(column, 5) for column in (a, b, human)]
    documents = np.repeat(np.arange(16), 5).tolist()
    single = paired_difference(a, b, human)
    clustered = paired_difference(*many, Resampling(groups=documents))
    naive = paired_difference(*many)
    assert clustered.p_value == pytest.approx(single.p_value, abs=0.03)
    assert clustered.high - clustered.low == pytest.approx(single.high - single.low, rel=0.1)
    assert naive.p_value < 0.6 * clustered.p_value


def test_incomplete_examples_are_dropped_from_all_columns() -> None:
    a, b, human = versions(20, np.random.default_rng(10))
    holes = [None, *a[1:]], [*b[:-1], None], human
    assert paired_difference(*holes, Resampling(resamples=50)).n == 18
    few = paired_difference([1, 2, None], [1, 2, 3], [1, 2, 3])
    assert few.value is None and says(few.reason, "3 items", 2)


def test_an_unknown_statistic_is_refused() -> None:
    with pytest.raises(InputError, match="no correlation named"):
        paired_difference([1, 2, 3], [1, 3, 2], [1, 2, 3], statistic="tau")  # type: ignore[arg-type]


def test_mean_difference_of_right_and_wrong_is_mcnemars_exact_test() -> None:
    a = np.array([0] * 9 + [1] * 2 + [1] * 20 + [0] * 5)
    b = np.array([1] * 9 + [0] * 2 + [1] * 20 + [0] * 5)
    found = mean_difference(a, b, Resampling(resamples=20_000))
    assert found.value == pytest.approx(7 / 36)
    assert found.p_value == pytest.approx(stats.binomtest(9, 11, alternative="greater").pvalue, abs=0.006)
    assert found.low < found.value < found.high


def test_mean_difference_of_nothing_or_of_equals() -> None:
    assert says(mean_difference([1], [0]).reason, "3 items", 1)
    assert mean_difference([1, 1, 1], [1, 1, 1], Resampling(resamples=50)).p_value == 1.0
    grouped = mean_difference([0, 0, 0, 0], [1, 1, 1, 1], Resampling(groups=list("aabb")))
    assert grouped.reason == "fewer than 3 groups (there are 2)"


def coarse(x: np.ndarray) -> np.ndarray:
    return np.clip(np.round(2 * x), -2, 2)


@pytest.mark.parametrize("n", [12, 24])
@pytest.mark.parametrize("scale", [lambda x: x, coarse], ids=["continuous", "five-levels"])
def test_the_p_value_is_calibrated_when_there_is_no_gain(n: int, scale: object) -> None:
    rng = np.random.default_rng(n)
    p = []
    for _ in range(300):
        a, b, human = versions(n, rng, (0.5, 0.5))
        found = paired_difference(scale(a), scale(b), human, Resampling(resamples=127, seed=len(p)))  # type: ignore[operator]
        p.append(found.p_value)
    for alpha in (0.05, 0.1, 0.2):  # nominal level, plus 3 standard errors
        assert 0.35 * alpha < np.mean(np.array(p) <= alpha) < alpha + 3 * np.sqrt(alpha * (1 - alpha) / 300)


def test_adding_noise_is_accepted_more_seldom_than_the_level() -> None:
    rng = np.random.default_rng(11)
    accepted = 0
    for trial in range(200):
        a, _, human = versions(24, rng, (0.6, 0.6))
        accepted += (
            paired_difference(a, a + rng.normal(size=24), human, Resampling(resamples=99, seed=trial)).p_value <= 0.1
        )
    assert accepted <= 10


def test_a_true_gain_is_found_as_often_as_was_measured() -> None:
    rng = np.random.default_rng(12)
    found = 0
    for trial in range(200):
        columns = versions(16, rng, (0.43, 0.63))
        found += paired_difference(*columns, Resampling(resamples=127, seed=trial)).p_value <= 0.1
    assert found >= 0.28 * 200


def test_ten_thousand_resamples_of_1600_items_take_about_a_second() -> None:
    rng = np.random.default_rng(0)
    human = np.round(2 * rng.normal(size=1600))
    scores = human + rng.normal(size=1600)
    started = time.process_time()
    values = resample([correlation_kernel("spearman", scores, human)], resample_weights(1600, 10_000, 0))[0]
    assert values.shape == (10_000,)
    assert time.process_time() - started < 4.0  # 0.45 s here; room for slow machines
