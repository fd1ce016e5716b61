"""The pictures in docs/ are those that the results give today."""

from __future__ import annotations

import pytest

from .pictures import PICTURES, PLACE, Row, drawn


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_drawn_from_the_results(name: str) -> None:
    rows, title = PICTURES[name]
    assert PLACE.joinpath(f"{name}.svg").read_text(encoding="utf-8") == drawn(rows(), title)


def test_a_figure_stands_where_the_axis_says() -> None:
    svg = drawn([Row("low", 0.0, -0.5, 0.5), Row("high", 0.5, 0.0, 1.0)], "two")
    assert svg.count("<circle") == 2
    assert ".50 [.00, 1.00]" in svg
