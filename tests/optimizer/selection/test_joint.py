"""Questions chosen together: what sets tell, and which come next."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from askance.optimizer.selection.information import one_hot, pooled_information
from askance.optimizer.selection.joint import (
    HardAnswers,
    chained_information,
    conditional_information,
    exchange,
    greedy_order,
    joint_order,
    occupied,
    pointwise_information,
)


def world(seed: int, size: int, copies: int = 1) -> HardAnswers:
    """Four independent facts decide the rating together; each is asked about ``copies`` times, nearly alike."""
    rng = np.random.default_rng(seed)
    facts = rng.random((size, 4)) < 0.5
    rating = facts[:, 0] * 1 + facts[:, 1] * 1 + facts[:, 2] * 1 + facts[:, 3] * 1
    slips = rng.random((size, 4, copies)) < 0.02
    answers = (facts[:, :, None] ^ slips).reshape(size, -1)
    return HardAnswers(answers.astype(np.int64), rating.astype(np.int64), 2, 5)


def bits_alone(data: HardAnswers) -> np.ndarray:
    return pooled_information(one_hot(data.answers, data.options), one_hot(data.ratings, data.levels)).bits


def nothing(data: HardAnswers) -> np.ndarray:
    return np.zeros(len(data.ratings), dtype=np.int64)


def test_without_conditions_it_is_the_corrected_information_of_single_questions() -> None:
    data = world(0, 200)
    assert conditional_information(data, nothing(data)) == pytest.approx(bits_alone(data))


def test_conditional_information_is_the_mean_over_cells() -> None:
    data = world(1, 300)
    cells = data.answers[:, 0]
    parts = [bits_alone(data.take(cells == code)) * np.mean(cells == code) for code in (0, 1)]
    assert conditional_information(data, cells) == pytest.approx(sum(parts))


def test_the_chain_of_two_is_near_the_information_of_the_pair_on_many_examples() -> None:
    data = world(2, 20_000)
    pair = data.answers[:, 0] * 2 + data.answers[:, 1]
    exact = mutual_info_score(pair, data.ratings) / np.log(2)
    assert chained_information(data, [0, 1])[1] == pytest.approx(exact, abs=0.002)


def test_a_set_without_information_tells_nothing_on_average() -> None:
    totals = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        data = HardAnswers(rng.integers(0, 2, (60, 5)), rng.integers(0, 5, 60), 2, 5)
        plug_in = mutual_info_score(data.answers @ 2 ** np.arange(5), data.ratings) / np.log(2)
        assert plug_in > 0.5, "the plug-in value is mostly bias"
        totals.append(chained_information(data, range(5))[-1])
    assert np.mean(totals) == pytest.approx(0.0, abs=0.04)


def test_a_repeat_adds_nothing() -> None:
    data = world(3, 400)
    twice = HardAnswers(np.hstack([data.answers[:, :1]] * 2), data.ratings, 2, 5)
    first, both = chained_information(twice, [0, 1])
    assert both == pytest.approx(first, abs=1e-12)


def test_greedy_takes_one_of_each_where_the_best_alone_are_alike() -> None:
    data = world(4, 400, copies=3)
    order, gains = (found[:4] for found in greedy_order(data, bits_alone(data)))
    assert sorted(question // 3 for question in order) == [0, 1, 2, 3]
    assert all(gain > 0.1 for gain in gains)
    top = np.argsort(-bits_alone(data))[:4].tolist()
    assert chained_information(data, order)[-1] >= chained_information(data, top)[-1]


def test_the_joint_set_never_tells_less_than_the_best_alone_where_it_is_chosen() -> None:
    changed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        data = HardAnswers(rng.integers(0, 2, (40, 8)), rng.integers(0, 3, 40), 2, 3)
        alone = bits_alone(data)
        greedy, _ = greedy_order(data, alone)
        for k in (2, 4):
            order, _ = joint_order(data, alone, k)
            top = np.argsort(-alone, kind="stable")[:k].tolist()
            told = [chained_information(data, each[:k])[-1] for each in (order, greedy, top)]
            assert told[0] == max(told)
            assert sorted(order) == list(range(8))
            changed += set(order[:k]) != set(greedy[:k])
    assert changed > 0, "now and then the greedy set is not the one that tells most"


def test_the_information_of_a_set_by_its_table_is_that_of_its_pattern_and_has_no_order() -> None:
    data = world(9, 150, copies=2)
    chosen = [0, 3, 5]
    pattern = data.answers[:, chosen] @ (1 << np.arange(3))
    exact = pooled_information(one_hot(pattern[:, None], 8), one_hot(data.ratings, 5))
    bits, points = pointwise_information(data, chosen)
    assert bits == pytest.approx(exact.bits[0])
    assert points.mean() == pytest.approx(exact.plugin[0])
    assert pointwise_information(data, [5, 0, 3])[0] == pytest.approx(bits)
    answers = data.answers.copy()
    answers[:30, 3] = -1
    part = data.take(np.arange(30, 150))
    holes, partial = pointwise_information(HardAnswers(answers, data.ratings, 2, 5), chosen)
    assert holes == pytest.approx(pointwise_information(part, chosen)[0])
    assert np.isnan(partial[:30]).all() and not np.isnan(partial[30:]).any()


def test_repeats_are_exchanged_for_what_is_new_and_noise_is_not_chased() -> None:
    data = world(10, 400, copies=2)
    assert sorted(each // 2 for each in exchange(data, [0, 1, 2, 3])) == [0, 1, 2, 3]
    moves = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        nothing_told = HardAnswers(rng.integers(0, 2, (200, 10)), rng.integers(0, 5, 200), 2, 5)
        any_gain, beyond_noise = (exchange(nothing_told, [0, 1], least=least) for least in (0.0, 2.0))
        moves += beyond_noise != [0, 1]
        assert pointwise_information(nothing_told, any_gain)[0] >= pointwise_information(nothing_told, [0, 1])[0]
    assert moves <= 6


def test_a_set_with_few_examples_per_combination_is_left_as_it_is() -> None:
    data = world(11, 40, copies=2)
    assert exchange(data, [0, 1, 2, 3, 4]) == [0, 1, 2, 3, 4]
    assert exchange(data, []) == []
    assert sorted(exchange(world(11, 400), [0, 1, 2, 3])) == [0, 1, 2, 3], "there is nothing outside"


def test_costs_count_where_the_joint_set_is_held_against_the_best_alone() -> None:
    data = world(8, 300, copies=2)
    costs = np.array([1.0, 5.0] * 4)
    order, _ = joint_order(data, bits_alone(data) / costs, 4, costs=costs)
    assert sorted(order[:4]) == [0, 2, 4, 6]


@pytest.mark.parametrize("options", [2, 3, 5])
def test_answers_on_any_scale_are_chosen_alike(options: int) -> None:
    rng = np.random.default_rng(5)
    rating = rng.integers(0, 5, 500)
    good, fair = (np.clip(rating + rng.integers(-far, far + 1, 500), 0, 4) * options // 5 for far in (1, 2))
    data = HardAnswers(np.stack([fair, good, good], axis=1), rating, options, 5)
    assert greedy_order(data, np.zeros(3))[0] == [1, 0, 2]


def test_missing_answers_and_ratings_are_left_out() -> None:
    data = world(6, 200)
    answers, ratings = data.answers.copy(), data.ratings.copy()
    answers[:20, 0] = -1
    ratings[180:] = -1
    holes = HardAnswers(answers, ratings, 2, 5)
    part = data.take(np.arange(20, 180))
    assert chained_information(holes, [0, 1, 2]) == pytest.approx(chained_information(part, [0, 1, 2]))
    assert occupied(holes, [0])[0] == 80.0


def test_costs_decide_between_like_questions() -> None:
    data = world(7, 300, copies=2)
    costs = np.array([10.0, 30.0] * 4)
    order, _ = greedy_order(data, bits_alone(data), costs=costs)
    assert sorted(order[:4]) == [0, 2, 4, 6]


def test_where_nothing_is_told_the_given_order_stands() -> None:
    data = HardAnswers(np.zeros((50, 3), dtype=np.int64), np.arange(50) % 5, 2, 5)
    order, gains = greedy_order(data, np.array([0.1, 0.3, np.nan]))
    assert (order, gains) == ([1, 0, 2], [0.0, 0.0, 0.0])


def test_no_rating_gives_no_information() -> None:
    data = HardAnswers(np.zeros((5, 2), dtype=np.int64), np.full(5, -1), 2, 5)
    assert chained_information(data, [0, 1]).tolist() == [0.0, 0.0]
