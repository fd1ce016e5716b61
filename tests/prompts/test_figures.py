"""A number is written so that it lies in its own interval, whatever is rounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.formatting import Figure

FORMS = (".3f", "+.3f", ".2f", "+.2f", ".0%", ".1%")


def read(text: str) -> float:
    return float(text.removesuffix("%"))


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(sorted), st.sampled_from(FORMS))
def test_a_number_lies_in_its_interval_as_both_are_written(ends: list[float], form: str) -> None:
    low, value, high = ends
    number, _, span = str(Figure(value, low, high, form)).partition(" [")
    least, most = span.removesuffix("]").split(", ")
    assert read(least) <= read(number) <= read(most)


def test_the_figure_that_was_outside_of_its_interval() -> None:
    assert str(Figure(0.0361, 0.0359, 0.083)) == "0.036 [0.036, 0.083]"
