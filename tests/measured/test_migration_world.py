"""A whole migration in a world whose truth is known; the study's figures are what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.measured.migration_world import Target, run_once, summarise

TARGET = Target(
    seed=1, form="reply", name="weaker", decision="adopt", needed=None, lost=2.0, left=0.5, start=-0.2, end=-0.02,
    difference=-0.01, worst=-0.03, tested=0.01, changed=True, requirements=9, found=9, writer_calls=300,
)  # fmt: skip


def test_targets_are_measured_on_inputs_that_no_run_sees() -> None:
    equal, worse = run_once(1, size=60, fresh=60, names=("equal", "worse"))
    assert (equal.name, worse.name) == ("equal", "worse")
    assert (equal.start, equal.lost) == (0, 0)
    assert worse.start == pytest.approx(-0.1)
    assert worse.lost == pytest.approx(0.7)
    assert equal.decision != "not_yet"
    assert worse.decision != "adopt"
    assert worse.difference < -0.03 < equal.difference
    assert 3 <= equal.found <= 7


def test_a_summary_counts_what_was_mended_and_what_was_wrongly_decided() -> None:
    mean, single = replace(TARGET, difference=-0.06), replace(TARGET, worst=-0.2, left=2.0)
    refused = replace(TARGET, decision="not_yet")
    found = summarise([TARGET, mean, single, refused, replace(TARGET, decision="undecided")])
    assert found["regressions_mended"] == pytest.approx(1 - (0.5 * 4 + 2.0) / 10)
    assert (found["adopted"], found["not_yet"], found["undecided"], found["truly_worse"]) == (3, 1, 1, 2)
    assert (found["adopted_though_the_mean_is_worse"], found["adopted_though_worse"]) == (1, 2)
    assert found["not_yet_though_no_worse"] == 1
    with pytest.raises(ValueError, match="no runs"):
        summarise([])
