from __future__ import annotations

import pytest

from askance.stats.distribution import dimension_match, kept_share
from askance.stats.resampling import Resampling
from tests.said import says


def test_the_share_of_the_first_dimensions_that_are_named_again() -> None:
    assert kept_share(["Tone", "facts", "style"], ["tone ", "length", "Facts"]) == pytest.approx(2 / 3)
    assert kept_share(["word  choice"], ["Word choice", "more"]) == 1
    assert kept_share([], ["tone"]) is None


def test_a_fixed_questionnaire_does_not_drift() -> None:
    found = dimension_match([(["a", "b"], ["b", "a"])] * 20)
    assert (found.value, found.low, found.high, found.n) == (1, 1, 1, 20)


def test_the_mean_over_items_leaves_out_those_without_dimensions() -> None:
    found = dimension_match(
        [(["a", "b"], ["a"]), (["a"], ["a"]), ([], ["a"]), (["a"], [])], Resampling(groups=[1, 1, 2, 3])
    )
    assert found.value == pytest.approx(0.5)
    assert found.n == 3
    assert found.reason == "no interval: only 2 groups to resample"
    nothing = dimension_match([([], [])])
    assert (nothing.value, nothing.n) == (None, 0) and says(nothing.reason, "first judging")
