"""Scores of the starting and the accepted prompt by split and dimension, and the axes they are drawn on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..prompts.words import Figure
from .charts import Scale
from .result_page import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..memory.result_parts import GainRecord, MeasureRecord
    from .run_data import RunData


@dataclass(frozen=True)
class ScoreRow:
    """One dimension on one split."""

    name: str
    whole: bool
    before: MeasureRecord
    after: MeasureRecord | None
    """None where the accepted prompt is the starting prompt."""
    gain: GainRecord | None


@dataclass(frozen=True)
class SplitScores:
    """All dimensions on one split."""

    split: str
    size: int | None
    rows: Sequence[ScoreRow]
    missing: str | None

    @property
    def correlations(self) -> Section:
        """The table of all correlations of a judge."""
        sides = [
            (row.name, side, found)
            for row in self.rows
            for side, found in (("starting", row.before), ("new", row.after))
            if found
        ]
        rows = [
            {"dimension": name, "judge": side, "n": found.n}
            | {kind: Figure(getattr(found, kind)) for kind in ("spearman", "kendall", "pearson")}
            for name, side, found in sides
        ]
        return Section(self.split, f"All correlations on {self.split}", rows)


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
