"""Each judge's scores against people's, example by example (BinEval, Figure 10)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from .chart_data import Scored, rank_correlation
from .chart_style import FAINT, INK, MARKERS, ONE_COLUMN, TWO_COLUMNS, colour_of, make_room, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARGIN = 0.04
_COLUMNS = 4
_AREA = 8.0
"""Of a dot that is one example, in square points; examples at one place make it larger."""


def scatter_against_people(data: Scored, dimension: str) -> Figure:
    """A panel a judge: its score over the people's, the diagonal (dashed) and the fitted line (drawn through)."""
    judges = list(data.judges)
    columns = min(len(judges), _COLUMNS)
    rows = -(-len(judges) // columns)
    width = ONE_COLUMN if columns == 1 else TWO_COLUMNS
    figure, grid = new_figure(
        width, rows * (2.15 if columns > 2 else 2.9) + 0.5, rows, columns, sharex=True, sharey=True
    )
    make_room(figure)
    flat = [panel for row in grid for panel in row]
    for place, (judge, panel) in enumerate(zip(judges, flat, strict=False)):
        human, scores = data.columns(dimension, judge)
        marker = MARKERS[place % len(MARKERS)]
        panel.plot([0, 1], [0, 1], "--", color=FAINT, linewidth=0.8, zorder=1)
        dots = Counter((round(x, 2), round(y, 2)) for x, y in zip(human, scores, strict=True))
        xs, ys = [x for x, _ in dots], [y for _, y in dots]
        areas = [_AREA * count**0.6 for count in dots.values()]
        panel.scatter(xs, ys, s=areas, marker=marker, color=colour_of(place), alpha=0.45, linewidths=0, zorder=2)
        if len(set(human)) > 1:
            slope, base = np.polyfit(human, scores, 1)
            ends = np.array([min(human), max(human)])
            panel.plot(ends, base + slope * ends, color=INK, linewidth=1.1, zorder=3)
        panel.set_title(f"{judge}\n{rank_correlation(human, scores)}, n = {len(human)}")
        panel.set(xlim=(-_MARGIN, 1 + _MARGIN), ylim=(-_MARGIN, 1 + _MARGIN), aspect="equal")
    for panel in flat[len(judges) :]:
        panel.remove()
    said = "line: least squares; dashed: equal scores; larger dot: several examples"
    if f": {dimension} " in data.note:
        said += f"\n{data.note}"
    figure.supxlabel(f"people's score of {dimension} (0 to 1)\n{said}", fontsize=7)
    figure.supylabel("judge's score (0 to 1)", fontsize=8)
    figure.suptitle(f"{data.name}: {dimension}", fontsize=9)
    return figure
