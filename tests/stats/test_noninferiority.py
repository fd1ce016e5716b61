"""Limits of a mean loss: how often they are wrong, in simulations whose truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

from askance.stats.noninferiority import (
    SpreadEstimate,
    examples_needed,
    loss_ruled_out,
    mean_limits,
    measure_spread,
    p_worse,
)

MARGIN = 0.05
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _cells(lost: float, gained: float, requirements: int = 8) -> Draw:
    """Differences of the pass rates of some requirements, each lost or gained with a chance."""

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        u = rng.random((n, requirements))
        return np.where(u < lost, -1.0, np.where(u < lost + gained, 1.0, 0.0)).mean(axis=1)

    return draw


def _ruined(share: float, rate: float = 0.95) -> Draw:
    """Differences where a share of the new outputs keeps nothing, and the others keep as much as the old ones."""

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        old, new = (rng.random((n, 8)) < rate for _ in range(2))
        return (new & (rng.random((n, 1)) >= share)).mean(axis=1) - old.mean(axis=1)

    return draw


def _adopted(draw: Draw, n: int, times: int = 1000) -> float:
    """Share of trials in which the mean is shown to be above -margin."""
    rng = np.random.default_rng(7)
    lows = [mean_limits(draw(rng, n)).low for _ in range(times)]
    return float(np.mean([low is not None and low > -MARGIN for low in lows]))


@pytest.mark.parametrize(
    ("draw", "n"),
    [
        (_cells(0.05, 0, 1), 60),
        (_cells(0.05, 0, 1), 222),
        (_cells(0.1, 0.05, 1), 222),
        (_cells(0.075, 0.025), 60),
        (_ruined(0.05 / 0.95), 40),
        (_ruined(0.05 / 0.95), 100),
        (_cells(0.075, 0.025), 150),
        (lambda rng, n: -0.5 * (rng.random(n) < 0.1), 100),
        (lambda rng, n: np.clip(rng.normal(-0.05, 0.3, n), -1, 1), 100),
    ],
)
def test_a_loss_of_the_margin_is_rarely_adopted(draw: Draw, n: int) -> None:
    assert _adopted(draw, n) <= 0.075


@pytest.mark.parametrize(
    ("draw", "spread"),
    [
        (lambda rng, n: rng.normal(0, 0.3, n), SpreadEstimate(0.3)),
        (_cells(0.045, 0.045, 1), SpreadEstimate(0.3)),
        (_cells(0.1, 0.1), SpreadEstimate((0.2 / 8) ** 0.5)),
        (lambda rng, n: np.where(rng.random(n) < 0.1, -0.9, 0.1), SpreadEstimate(0.3, skewness=-2.67)),
    ],
)
def test_equal_prompts_are_adopted_as_often_as_the_size_was_chosen_for(draw: Draw, spread: SpreadEstimate) -> None:
    n = examples_needed(spread, MARGIN)
    assert _adopted(draw, n) == pytest.approx(0.8, abs=0.04)
    assert n <= (1.2 if spread.skewness else 1.05) * (2.486 * spread.deviation / MARGIN) ** 2


def test_small_differences_take_as_many_examples_as_a_loss_that_never_came_up() -> None:
    assert examples_needed(SpreadEstimate(0.07), MARGIN) == 59
    assert _adopted(_cells(0.02, 0.02), 59) > 0.8


@pytest.mark.parametrize("size", [25, 60])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(0, 0.25, n),
        _cells(0.045, 0.045, 1),
        lambda rng, n: _cells(0.1, 0.1, 1)(rng, n) * 0.5,
    ],
)
def test_the_power_is_kept_on_average_where_few_examples_tell_the_spread(draw: Draw, size: int) -> None:
    rng = np.random.default_rng(8)
    adopted = []
    for _ in range(250):
        spread = measure_spread(draw(rng, size)) or SpreadEstimate(0.3)
        low = mean_limits(draw(rng, examples_needed(spread, MARGIN))).low
        adopted.append(low is not None and low > -MARGIN)
    assert np.mean(adopted) > 0.74


def test_no_loss_on_few_outputs_shows_nothing() -> None:
    assert mean_limits([0.0] * 30).low == pytest.approx(-(1 - 0.05 ** (1 / 30)))
    assert (mean_limits([0.0] * 30).low or 0) < -MARGIN < (mean_limits([0.0] * 60).low or -1)


def test_symmetric_differences_have_the_limits_of_student() -> None:
    values = np.tile([-0.3, 0.3, -0.1, 0.1, 0.0, 0.2, -0.2, 0.05, -0.05, 0.9, -0.9], 2)
    found = mean_limits(values)
    reference = ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))
    assert p_worse(values, 0.1) == pytest.approx(ttest_1samp(values, -0.1, alternative="less").pvalue)


def test_outputs_of_one_document_count_once() -> None:
    rng = np.random.default_rng(3)
    values, names = rng.normal(0, 0.2, 40), [str(place) for place in range(40)]
    alone, five_times = mean_limits(values), mean_limits(np.repeat(values, 5), groups=np.repeat(names, 5).tolist())
    assert (five_times.low, five_times.high) == pytest.approx((alone.low, alone.high))
    assert (five_times.n, five_times.units, alone.units) == (200, 40, 40)


def test_limits_and_p_value_say_the_same() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        values = -(rng.random(80) < 0.12).astype(float)
        p_value, high = p_worse(values, MARGIN), mean_limits(values).high
        assert p_value is not None
        assert high is not None
        if np.count_nonzero(values) >= 10:
            assert (p_value < 0.05) == (high < -MARGIN)


def test_a_loss_is_proved_whatever_rounding_leaves_of_its_skewness() -> None:
    values = np.repeat([-1.0, 0.0, 1.0], [63, 84, 3])  # a mean of -.4, and no skewness at all
    for order in range(20):
        p_value = p_worse(np.random.default_rng(order).permutation(values), MARGIN)
        assert p_value is not None
        assert p_value < 1e-6


def test_the_same_loss_everywhere_is_proved() -> None:
    assert (p_worse([-1.0] * 10, MARGIN) or 1) < 0.001
    assert p_worse([0.0] * 10, MARGIN) == 1.0
    assert p_worse([-1.0] * 2, MARGIN) is None


def test_missing_differences_are_left_out() -> None:
    assert mean_limits([None, None]).value is None
    assert mean_limits([0.1, None, 0.2, 0.3]).n == 3


def test_the_loss_that_a_size_rules_out_is_the_inverse_of_the_size_that_a_loss_needs() -> None:
    for spread in (SpreadEstimate(0.3), SpreadEstimate(0.3, -2.0, 20.0, 3.0), SpreadEstimate(0.01)):
        assert loss_ruled_out(examples_needed(spread, 0.08), spread) == pytest.approx(0.08, rel=0.02)
    assert loss_ruled_out(2, SpreadEstimate(0.3)) == 1.0


def test_a_spread_is_known_better_from_more_examples_and_worse_where_few_make_it_up() -> None:
    rng = np.random.default_rng(4)
    small, large, rare = (
        measure_spread(each) for each in (rng.normal(0, 0.2, 20), rng.normal(0, 0.2, 400), [0.0] * 58 + [-1.0, 0.5])
    )
    assert small is not None
    assert large is not None
    assert rare is not None
    assert small.freedom <= 19 < 100 < large.freedom
    assert rare.freedom < 10
    assert rare.skewness < -3
    assert small.most.deviation / small.deviation > 1.3 > large.most.deviation / large.deviation
    assert measure_spread([0.0] * 20) is None
