"""The rows of an LMUnit table as dots with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .chart_style import FAINT, INK, MARKERS, TWO_COLUMNS, colour_of, new_figure, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table_as_dots(result: Mapping[str, Any]) -> Figure:
    """A line a technique: all pairs (filled, with a 95 % interval), and each section by its own mark."""
    rows = list(result["rows"])
    accuracy = result["metric"] == "accuracy"
    figure, grid = new_figure(TWO_COLUMNS, 0.32 * len(rows) + 1.3)
    panel = grid[0][0]
    if accuracy:
        panel.axvline(0.5, color=FAINT, linewidth=0.8, linestyle="--")
    several = [
        name for name in dict.fromkeys(name for row in rows for name in row["sections"]) if len(rows[0]["sections"]) > 1
    ]
    for height, row in enumerate(reversed(rows)):
        cell = row["all"]
        value = cell.get("accuracy", cell.get("value"))
        if value is None:
            panel.text(0.5, height, f"undefined: {cell['reason']}"[:90], fontsize=6, va="center", color=INK)
            continue
        if cell["low"] is not None:
            panel.plot([cell["low"], cell["high"]], [height, height], color=INK, linewidth=1.2)
        panel.plot(value, height, "o", color=INK, markersize=5, label="all" if height == 0 else None)
        for place, name in enumerate(several):
            part = row["sections"].get(name, {})
            at = part.get("accuracy", part.get("value"))
            if at is not None:
                mark = MARKERS[(place + 1) % len(MARKERS)]
                panel.plot(at, height + 0.22, mark, color=colour_of(place), ms=4, label=name if height == 0 else None)
    panel.set_yticks(range(len(rows)), [row["technique"] for row in reversed(rows)])
    panel.set_ylim(-0.6, len(rows) - 0.3)
    panel.set_xlabel(
        "share of pairs in the right order, a tie being half (95 % interval)" if accuracy else "Pearson's r with people"
    )
    panel.xaxis.grid(True, linewidth=0.3, color="#dddddd")
    if several:
        figure.legend(loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(f"{title_of(result['dataset'])}: {result['n']} {result['of']}, {result['model']}", fontsize=8)
    return figure
