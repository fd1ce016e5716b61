"""Each example five times in its document: five times the calls, and no figure of a run is another or any surer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.letters import Letters
from tests.worlds import World

WHAT_IS_LEARNED = "platt"
"""Its prior counts as one example, so that it is another calibration where there are more of them."""

PRICE = "/per_output/"
"""Figures of what an output takes, which depend on the length of the copied inputs."""
ENDS = re.compile(r"/(accuracy|true_positive_rate|true_negative_rate)/(low|high)$")
"""A share is taken for no surer than of as many independent examples, where those of a document are less alike than
chance has it; that is another limit with five times the examples. tests/stats has them where it is not reached."""


def copied(rows: Sequence[dict[str, Any]], times: int, field: str) -> list[dict[str, Any]]:
    """Rows of which two share a document, each there several times, told apart by words that nobody heeds."""
    return [
        row
        | {
            "id": f"{row['id']}-{copy}",
            field: row[field] + " again" * copy,
            "metadata": {"document": f"d{int(row['id'][1:]) // 2}"},
        }
        for row in rows
        for copy in range(times)
    ]


class Rated(World):
    def __init__(self, times: int) -> None:
        super().__init__(60)
        self.times = times

    @property
    def rows(self) -> list[dict[str, Any]]:
        return copied(super().rows, self.times, "output")


class Labelled(Rated):
    """People pass or fail an output."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row | {"human": {"quality": row["human"]["quality"] > 3}} for row in super().rows]


class Written(Letters):
    def __init__(self, times: int) -> None:
        super().__init__(60)
        self.times = times

    @property
    def rows(self) -> list[dict[str, Any]]:
        return copied(super().rows, self.times, "input")

    def letter(self, prompt: str, request: str) -> str:
        return super().letter(prompt, request.replace(" again", ""))


def figures(result: Any, at: str = "") -> dict[str, float]:
    """Every number of a result that is no count, by its place."""
    if isinstance(result, dict | list):
        pairs = result.items() if isinstance(result, dict) else enumerate(result)
        return {
            key: value
            for name, each in pairs
            if name != WHAT_IS_LEARNED
            for key, value in figures(each, f"{at}/{name}").items()
        }
    return {at: result} if isinstance(result, float) else {}


@pytest.mark.parametrize(
    ("world", "mode", "least"),
    [(Rated, "migrate", 150), (Rated, "align", 150), (Labelled, "align", 150), (Written, "tune", 50)],
)
def test_each_example_five_times_in_its_document_changes_no_figure_of_a_run(
    world: Any, mode: str, least: int, tmp_path: Path
) -> None:
    """Without racing and additions, whose steps are counted in examples, and with every note read: else other lessons
    come first."""
    how = {"max_notes": 1000, "racing": False, **({"additions": False} if mode == "tune" else {})}
    once, again = (getattr(world(times), mode)(tmp_path / f"{times}", **how).result for times in (1, 5))
    assert again["baseline"]["test"]["n"] == 5 * once["baseline"]["test"]["n"]
    assert again["best"]["prompt"] == once["best"]["prompt"] != once["baseline"]["prompt"]
    before, after = (
        {name: each for name, each in figures(one).items() if not (ENDS.search(name) or PRICE in name)}
        for one in (once, again)
    )
    for part in ("gain/validation/p_value", "gain/test/p_value", "accepted_edits/0/gain/p_value"):
        assert f"/{part}" in before
    assert any("/rejected_edits" in name for name in before) and len(before) > least
    assert after == pytest.approx(before, abs=1e-9)
