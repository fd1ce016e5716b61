"""Numbers in words."""

from __future__ import annotations

import pytest

from askance.prompts.formatting import (
    Figure,
    coverage_text,
    interval,
    missing_share,
    money,
    number,
    p_value,
    percent,
    signed,
)


def test_a_figure_has_its_interval_with_one_decimal_less_and_a_hyphen_only_in_a_terminal() -> None:
    found = Figure(-0.1234, -0.2, 0.0, "+.3f")
    assert str(found) == "-0.123 [-0.20, +0.00]"
    assert found.number() == "\N{MINUS SIGN}0.123"
    assert found.span() == ("\N{MINUS SIGN}0.20", "0.00")
    assert str(Figure(0.875, 0.8, 0.9, ".1%")) == "87.5% [80.0%, 90.0%]"
    assert str(Figure(0.036, 0.0355, 0.08)) == "0.036 [0.035, 0.080]", "no number stands outside its own interval"


def test_what_is_undefined_is_called_so_and_keeps_its_reason() -> None:
    found = Figure.of({"value": None, "low": None, "high": None, "reason": "too few"})
    assert (str(found), found.span(), found.reason) == ("undefined", None, "too few")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (signed(0.2), "+0.20"),
        (signed(-0.001), "0.00"),
        (number(-0.5, 1), "\N{MINUS SIGN}0.5"),
        (number(None), "\N{EN DASH}"),
        (interval(None, 0.1), "no interval"),
        (interval(-0.1, 0.2), "\N{MINUS SIGN}0.10 to +0.20"),
        (percent(0.9999, 1), "99.9 %"),
        (percent(1.0, 1), "100 %"),
        (percent(1.03), "103 %"),
        (coverage_text(0.9999), "99.9%"),
        (coverage_text(0.87654), "87.7%"),
        (coverage_text(1.0), "100.0%"),
        (missing_share(0.9999), "less than 0.1 %"),
        (missing_share(0.98), "2.0 %"),
        (p_value(0.0001), "p < 0.001"),
        (money(0.0021), "$0.0021"),
    ],
)
def test_numbers_of_a_page(said: str, wanted: str) -> None:
    assert said == wanted
