"""What a test can rule out is said before it is bought, and kept."""

from __future__ import annotations

import numpy as np
import pytest

from askance.optimizer.migration.decision import ASSUMED, power_lines, power_said
from askance.stats.noninferiority import SpreadEstimate, examples_needed


def test_before_anything_is_bought_the_deviation_is_assumed() -> None:
    [found] = power_lines(150, 0.05, 0.05)
    assert (found.assumed, found.deviation, found.examples) == (True, ASSUMED.deviation, 150)
    assert found.needed == examples_needed(ASSUMED, 0.05) > 150
    assert found.loss > 0.05
    said = power_said(found, 0.05)
    assert "0.06" in said
    assert "224" in said


def test_development_tells_the_deviation_and_how_well() -> None:
    rng = np.random.default_rng(2)
    few, many = (rng.normal(0, 0.25, size) for size in (20, 400))
    (_, small), (_, large) = power_lines(150, 0.05, 0.05, few), power_lines(150, 0.05, 0.05, many)
    assert small.deviation == pytest.approx(float(np.std(few, ddof=1)))
    assert not small.assumed
    assert small.needed_most is not None
    assert large.needed_most is not None
    assert small.needed_most / small.needed > 1.3 > large.needed_most / large.needed
    assert large.needed == pytest.approx(examples_needed(SpreadEstimate(0.25), 0.05), rel=0.15)
    assert "8 of 10" in power_said(large, 0.05)


def test_where_few_outputs_differ_as_many_are_needed_as_rule_a_loss_out_that_never_came_up() -> None:
    [_, found] = power_lines(40, 0.05, 0.05, [0.0] * 38 + [0.1, -0.1])
    assert found.needed >= 59
    assert found.loss >= 1 - 0.05 ** (1 / 40)


def test_differences_that_are_all_alike_tell_nothing() -> None:
    assert len(power_lines(150, 0.05, 0.05, [0.0] * 25)) == 1
    assert len(power_lines(150, 0.05, 0.05, [0.1, None])) == 1


def test_outputs_of_one_document_count_once() -> None:
    values, names = np.random.default_rng(3).normal(0, 0.2, 40), [str(place) for place in range(40)]
    alone = power_lines(150, 0.05, 0.05, values)[1]
    five_times = power_lines(150, 0.05, 0.05, np.repeat(values, 5), np.repeat(names, 5).tolist())[1]
    assert five_times.needed == pytest.approx(5 * alone.needed, rel=0.05)
