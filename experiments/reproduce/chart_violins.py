"""Violins of scores: per dimension (BinEval, Figures 1, 7 and 9) and per system (Figures 2 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .chart_data import Scored, rank_correlation
from .chart_style import GREY, INK, ONE_COLUMN, PEOPLE, TWO_COLUMNS, colour_of, label_places, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARGIN = 0.04
_TALL_UP_TO = 5
"""Panels up to which each has the full height."""
SCORE = "score (0 to 1)"


def violins_by_dimension(data: Scored) -> Figure:
    """One panel a dimension; in each the people's scores and those of every judge."""
    panels = len(data.dimensions)
    columns = min(panels, 2 if len(data.judges) > 3 else 4)
    rows = -(-panels // columns)
    width = ONE_COLUMN if panels == 1 and len(data.judges) < 4 else TWO_COLUMNS
    figure, grid = new_figure(width, 2.1 * rows + 0.3, rows, columns, sharey=True, sharex=True)
    names = [PEOPLE, *data.judges]
    colours = [GREY, *(colour_of(place) for place in range(len(data.judges)))]
    flat = [panel for row in grid for panel in row]
    for panel, dimension in zip(flat, data.dimensions, strict=False):
        columns_of = [data.of_people(dimension), *(data.of_judge(judge, dimension) for judge in data.judges)]
        _violins(panel, columns_of, colours)
        panel.set_title(f"{dimension} (n = {len(columns_of[0])})")
        label_places(panel, names, range(1, len(names) + 1), (width - 0.5) / columns / len(names))
    for panel in flat[panels:]:
        panel.remove()
    for row in grid:
        row[0].set_ylabel(SCORE)
    if data.note:
        figure.supxlabel(data.note, fontsize=6.5)
    figure.suptitle(f"{data.name}: how scores are spread", fontsize=9)
    return figure


def violins_by_system(data: Scored) -> Figure:
    """One panel for people and each judge; in each a violin a system, ordered by the people's mean.

    An example's score is the mean over the dimensions. What is said in a panel is the rank correlation of its systems'
    means with those of people.
    """
    people = data.by_system(data.human)
    systems = sorted(people, key=lambda system: (float(np.mean(people[system])), system))
    who = {PEOPLE: people, **{judge: data.by_system(scores) for judge, scores in data.judges.items()}}
    each = 1.25 if len(who) <= _TALL_UP_TO else 0.95
    figure, grid = new_figure(TWO_COLUMNS, each * len(who) + 0.8, len(who), 1, sharex=True, sharey=True)
    wanted = [float(np.mean(people[system])) for system in systems]
    for place, (name, by_system) in enumerate(who.items()):
        panel = grid[place][0]
        _violins(
            panel, [by_system.get(system, []) for system in systems], [GREY if not place else colour_of(place - 1)]
        )
        panel.set_ylabel("score")
        said = ""
        if place and all(by_system.get(system) for system in systems):
            means = [float(np.mean(by_system[system])) for system in systems]
            said = f": means of the systems, {rank_correlation(means, wanted)}"
        panel.set_title(f"{name}{said}", loc="left")
    last = grid[-1][0]
    label_places(last, systems, range(1, len(systems) + 1), (TWO_COLUMNS - 0.5) / len(systems))
    last.set_xlabel("system, from the lowest to the highest mean by people")
    if data.note:
        figure.supxlabel(data.note, fontsize=6.5)
    what = ", ".join(data.dimensions)
    figure.suptitle(f"{data.name}: scores by system (0 to 1; {'mean of ' if ',' in what else ''}{what})", fontsize=9)
    return figure


def _violins(panel: Axes, columns: Sequence[Sequence[float]], colours: Sequence[str]) -> None:
    """A violin for each column that is not empty, with its quartiles as a bar and its median as a dot."""
    for place, values in enumerate(columns, 1):
        if not values:
            panel.text(place, 0.5, "no score", rotation=90, ha="center", va="center", fontsize=6, color=INK)
            continue
        colour = colours[(place - 1) % len(colours)]
        parts: Any = panel.violinplot([list(values)], [place], widths=0.8, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor=INK, alpha=0.6, linewidth=0.5)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        panel.vlines(place, low, high, color=INK, linewidth=2)
        panel.plot(
            place, middle, "o", markersize=3.5, markerfacecolor="white", markeredgecolor=INK, markeredgewidth=0.7
        )
    panel.set_ylim(-_MARGIN, 1 + _MARGIN)
    panel.set_xlim(0.4, len(columns) + 0.6)
    panel.yaxis.grid(True, linewidth=0.3, color="#dddddd")
    panel.set_axisbelow(True)
