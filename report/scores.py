"""Scores of the starting and the accepted prompt by split and dimension, and the axes they are drawn on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..memory.records import MeasureRecord
    from ..stats.differences import Difference
    from .run_data import RunData


STEPS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
"""Between the ticks of an axis; powers of ten beyond."""


def _step(span: float, most: int) -> float:
    return next((each for each in STEPS if span / each <= most), 10.0 ** ceil(log10(max(span, STEPS[-1]) / most)))


@dataclass(frozen=True)
class Scale:
    """A horizontal axis; positions are percentages of its width."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: Iterable[float | None]) -> Scale:
        """An axis that has zero and all values on it, with a few round ticks."""
        known = [0.0, *(value for value in values if value is not None)]
        step = _step(max(known) - min(known), 6)
        low, high = floor(min(known) / step + 1e-9) * step, ceil(max(known) / step - 1e-9) * step
        return cls(low, max(high, low + step), step)

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """An axis that need not begin at zero, for one value or more that are all far from it."""
        known = list(values)
        step = _step(max(known) - min(known), 5)
        low, high = floor(min(known) / step - 0.1) * step, ceil(max(known) / step + 0.1) * step
        return cls(low, high, step)

    def at(self, value: float) -> str:
        """Where a value lies."""
        share = (value - self.low) / (self.high - self.low)
        return f"{4 + 92 * min(1.0, max(0.0, share)):.2f}%"

    @property
    def ticks(self) -> list[float]:
        """Round values from one end to the other."""
        steps = round((self.high - self.low) / self.step)
        return [round(self.low + number * self.step, 4) for number in range(steps + 1)]


@dataclass(frozen=True)
class ScoreRow:
    """One dimension on one split."""

    name: str
    whole: bool
    before: MeasureRecord
    after: MeasureRecord | None
    """None where the accepted prompt is the starting prompt."""
    gain: Difference | None


@dataclass(frozen=True)
class SplitScores:
    """All dimensions on one split."""

    split: str
    size: int | None
    rows: Sequence[ScoreRow]
    missing: str | None


def scores(data: RunData) -> tuple[list[SplitScores], Scale]:
    """Correlations of the starting and the accepted prompt on test and validation, and an axis for all."""
    changed = data.result.changed
    made = []
    for split, before, after, gain in reversed(data.result.splits):
        rows = []
        if before:
            names = list(before.dimensions)
            whole = names[0] if len(names) == 1 else "All dimensions (criteria)"
            rows.append(ScoreRow(whole, True, before, after if changed else None, gain))
            for name in names if len(names) > 1 and before.optimised is None else ():
                now = after.dimensions[name] if changed and after else None
                rows.append(ScoreRow(name, False, before.dimensions[name], now, None))
        reason = None if before else data.result.baseline.reason or "it was not judged."
        made.append(SplitScores(split, data.split_size(split), rows, reason))
    ends = [
        end
        for each in made
        for row in each.rows
        for side in (row.before, row.after)
        if side
        for end in (side.shown.low, side.shown.high, side.value)
    ]
    return made, Scale.over(ends)
