from __future__ import annotations

import numpy as np
import pytest

from askance.optimizer.weights.evidence import grouped_folds, paired_standard_error, single_split
from askance.optimizer.weights.heldout import (
    bootstrap_counts,
    interval,
    interval_of_means,
    pairs_needed,
    rank_stability,
    resample_shares,
)
from askance.prompts.errors import InputError
from tests.said import naming, says


def test_no_group_is_in_both_parts_of_a_split() -> None:
    groups = np.random.default_rng(0).integers(0, 12, 100)
    groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    for split in [*grouped_folds(groups, 5, 1), *single_split(groups, 0.4, 1)]:
        assert not set(groups[split.development]) & set(groups[split.test])
        assert sorted([*split.development, *split.test]) == list(range(100))


def test_every_pair_is_held_out_in_exactly_one_fold() -> None:
    groups = np.arange(53, dtype=np.int64)
    held_out = np.concatenate([split.test for split in grouped_folds(groups, 5, 3)])
    assert sorted(held_out) == list(range(53))


def test_folds_have_about_equal_size_though_groups_do_not() -> None:
    groups = np.repeat(np.arange(40), np.random.default_rng(0).integers(1, 12, 40)).astype(np.int64)
    sizes = [len(split.test) for split in grouped_folds(groups, 4, 0)]
    assert max(sizes) - min(sizes) <= 12


def test_there_are_no_more_folds_than_groups() -> None:
    assert len(grouped_folds(np.array([0, 0, 1, 1, 2]), 5, 0)) == 3


def test_one_group_cannot_be_split_and_the_error_says_what_to_do() -> None:
    with pytest.raises(InputError, match=naming("All 10", "one group", "'metadata.document'")):
        grouped_folds(np.zeros(10, dtype=np.int64), 5, 0)
    with pytest.raises(InputError, match=naming("only one pair")):
        grouped_folds(np.zeros(1, dtype=np.int64), 5, 0)


def test_a_share_that_empties_one_side_is_refused() -> None:
    with pytest.raises(InputError, match=naming(0.01, "one side empty")):
        single_split(np.array([0, 1]), 0.01, 0)


def test_resampled_shares_match_a_plain_bootstrap_of_groups() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), rng.integers(1, 6, 30)).astype(np.int64)
    credits = rng.choice([0.0, 0.5, 1.0], size=(len(groups), 2))
    fast = resample_shares(credits, groups, 20_000, 1)
    plain = []
    for _ in range(4_000):
        rows = np.concatenate([np.flatnonzero(groups == group) for group in rng.integers(0, 30, 30)])
        plain.append(credits[rows].mean(axis=0))
    assert fast.mean(axis=0) == pytest.approx(np.mean(plain, axis=0), abs=0.003)
    assert fast.std(axis=0) == pytest.approx(np.std(plain, axis=0), rel=0.06)
    gain, plain_gain = fast[:, 0] - fast[:, 1], np.subtract(*np.array(plain).T)
    assert gain.std() == pytest.approx(plain_gain.std(), rel=0.06)


def test_learners_that_earn_the_same_never_differ_in_a_resample() -> None:
    credits = np.tile(np.random.default_rng(0).choice([0.0, 1.0], size=50)[:, None], (1, 2))
    shares = resample_shares(credits, np.arange(50), 500, 0)
    assert np.array_equal(shares[:, 0], shares[:, 1])


def test_the_paired_standard_error_is_the_usual_one_when_every_pair_is_its_own_group() -> None:
    gains = np.random.default_rng(0).normal(size=40)
    assert paired_standard_error(gains, np.arange(40)) == pytest.approx(gains.std(ddof=1) / np.sqrt(40))


def test_pairs_that_repeat_within_a_group_add_no_certainty() -> None:
    gains = np.random.default_rng(0).normal(size=40)
    once = paired_standard_error(gains, np.arange(40))
    assert paired_standard_error(np.repeat(gains, 5), np.repeat(np.arange(40), 5)) == pytest.approx(once)


def test_an_interval_holds_the_middle_of_the_samples() -> None:
    low, high = interval(np.arange(1001.0))
    assert (float(low), float(high)) == pytest.approx((25.0, 975.0))


@pytest.mark.parametrize(
    ("item", "centre", "wanted"),
    [(1.0, 0.5, (0.025**0.5, 1.0)), (0.0, 0.5, (0.0, 1 - 0.025**0.5)), (1.0, 0.0, (2 * 0.025**0.5 - 1, 1.0))],
)
def test_two_groups_that_say_the_same_are_no_certainty(item: float, centre: float, wanted: tuple[float, float]) -> None:
    items, groups = np.full((6, 1), item), np.array([0, 0, 0, 1, 1, 1])
    low, high = interval_of_means(items, np.full((100, 1), item), groups, centre)
    assert (low[0], high[0]) == pytest.approx(wanted)


def test_items_in_the_middle_and_items_that_differ_have_the_usual_interval() -> None:
    groups = np.arange(40)
    items = np.column_stack([np.full(40, 0.5), np.arange(40) % 2])
    means = resample_shares(items, groups, 500, 0)
    low, high = interval_of_means(items, means, groups, 0.5)
    usual_low, usual_high = interval(means)
    assert (low.tolist(), high.tolist()) == (usual_low.tolist(), usual_high.tolist())
    assert (low[0], high[0]) == (0.5, 0.5)


def test_a_bootstrap_resample_draws_whole_groups() -> None:
    groups = np.array([0, 0, 1, 2, 2, 2])
    for counts in bootstrap_counts(groups, 20, 0):
        assert counts[0] == counts[1]
        assert counts[3] == counts[4] == counts[5]
        assert counts[0] + counts[2] + counts[3] == 3


def test_the_pairs_needed_follow_the_formula_for_a_paired_test() -> None:
    # 400 pairs, difference 0.02 with standard error 0.02: (1.96 + 0.84)^2 times as many pairs.
    power = pairs_needed("robust", 0.02, 0.02, 400)
    assert power.observed == pytest.approx(400 * (1.959964 + 0.841621) ** 2, abs=1)
    assert power.observed is not None
    assert power.more == power.observed - 400
    assert power.one_point == pytest.approx(4 * power.observed, abs=4)


def test_no_more_pairs_are_needed_for_a_clear_difference() -> None:
    assert pairs_needed("robust", 0.2, 0.01, 400).more == 0


def test_power_is_undefined_with_a_reason_when_nothing_differs() -> None:
    power = pairs_needed("robust", 0.0, 0.0, 400)
    assert (power.observed, power.one_point, power.more) == (None, None, None)
    assert power.reason is not None
    assert "alike" in power.reason


@pytest.mark.parametrize(
    ("difference", "error", "reason"),
    [(0.5, 0.0, "the same on every held-out pair"), (0.0, float("inf"), "of one group")],
)
def test_power_is_not_said_to_be_undefined_for_another_reason(difference: float, error: float, reason: str) -> None:
    said = pairs_needed("robust", difference, error, 400).reason
    assert said is not None and reason in said


def test_power_for_a_zero_difference_still_says_what_one_point_takes() -> None:
    power = pairs_needed("robust", 0.0, 0.02, 400)
    assert power.observed is None
    assert power.reason is not None
    assert power.one_point is not None
    assert power.one_point > 400


def test_ranks_and_their_agreement_over_resamples() -> None:
    weights = np.array([0.5, 0.3, 0.2])
    samples = np.array([[0.5, 0.3, 0.2]] * 3 + [[0.3, 0.5, 0.2]])
    stability = rank_stability(weights, samples)
    assert [rank.rank for rank in stability.ranks] == [1, 2, 3]
    assert [rank.first_share for rank in stability.ranks] == [0.75, 0.25, 0.0]
    assert (stability.ranks[0].low, stability.ranks[0].high) == (1, 2)
    assert stability.kendall == pytest.approx((3 * 1 + 1 / 3) / 4)


def test_the_agreement_of_rankings_is_kendalls_tau_b() -> None:
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    weights = np.array([0.4, 0.2, 0.2, 0.1, 0.1])
    samples = rng.choice([0.1, 0.2, 0.3, 0.4], size=(30, 5))
    expected = np.mean([kendalltau(weights, sample).statistic for sample in samples])
    assert rank_stability(weights, samples).kendall == pytest.approx(expected)


def test_equal_weights_have_no_ranking() -> None:
    stability = rank_stability(np.full(3, 1 / 3), np.full((5, 3), 1 / 3))
    assert stability.kendall is None
    assert says(stability.reason, "equal", "no ranking")
