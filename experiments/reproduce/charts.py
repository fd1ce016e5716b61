"""The papers' pictures: LMUnit's tables as dots; EIG, Figures 3 and 4; BinEval, Figures 1 to 3 and 7 to 10."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.scoring import complete_mean
from .chart_data import ScoreTable, rank_correlation, short
from .chart_style import (
    COLOURS,
    DASHES,
    FAINT,
    GREY,
    INK,
    MARKERS,
    ONE_COLUMN,
    PEOPLE,
    TWO_COLUMNS,
    colour_of,
    label_places,
    make_room,
    marker_of,
    new_figure,
    plain_log_axis,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_STEPS = np.array([1, 2, 5])
_AREAS = (10.0, 90.0)
"""Areas of the dots for an agreement of 0 and of 1, in square points."""
_LETTERS = 60
"""Of the smallest size, in the width of a panel."""
_NAMED = len(COLOURS)
"""Questions of a convergence with a line of their own; the others are drawn thin and faint."""
_NUMBERS_UP_TO = 10
"""Questions in a map of phi up to which every cell also says its phi."""
_MARGIN = 0.04
"""Beside scores from 0 to 1."""
_COLUMNS = 4
"""Scatters side by side."""
_AREA = 8.0
"""Of a dot that is one example, in square points; examples at one place make it larger."""
_TALL_UP_TO = 5
"""Violins of systems: panels up to which each has the full height."""
SCORE = "score (0 to 1)"


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


def cost_and_ability(result: Mapping[str, Any]) -> Figure:
    """Tokens per example against the correlation with people and, where judges judged twice, against κ_self.

    The correlation is Spearman's, mean over the dimensions; the paper's axis is κ_self. The area of a dot grows with
    the observed agreement with people. A judge without a number has no dot and is named below the axis.
    """
    ways = [("Spearman's ρ with people", lambda row: row["average"].get("spearman"))]
    if result["repeat"] > 1:
        ways.append(("κ_self (agreement with itself)", lambda row: _mean(row, "kappa_self")))
    width = ONE_COLUMN if len(ways) == 1 else TWO_COLUMNS
    figure, grid = new_figure(width, 3.3, 1, len(ways))
    for panel, (label, value_of) in zip(grid[0], ways, strict=True):
        _panel(panel, result["judges"], value_of)
        panel.set(xlabel="tokens per example, upfront included (log)", ylabel=label)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3 if len(ways) == 1 else 7, frameon=False)
    within = f"share of scores within {result['tolerance']} of {result['points']} points of people's"
    figure.suptitle(
        f"{title_of(result['dataset'])}, {result['compared_on']} examples: cost and ability, mean of dimensions\narea: {within}",
        fontsize=8,
    )
    return figure


def _panel(panel: Axes, judges: Sequence[Mapping[str, Any]], value_of: Any) -> None:
    without, tokens_of = [], []
    for place, row in enumerate(judges):
        value, agreement = value_of(row), _mean(row, "observed_agreement")
        tokens = max(row["cost"]["amortised_tokens"], 1.0)
        look: dict[str, Any] = {
            "marker": marker_of(place),
            "color": colour_of(place),
            "label": row["judge"],
        }
        if value is None:
            without.append(row["judge"])
            panel.scatter([], [], s=_AREAS[1] / 4, **look)
            continue
        area = _AREAS[0] + (_AREAS[1] - _AREAS[0]) * (agreement or 0.0)
        panel.scatter(tokens, value, s=area, alpha=0.75, edgecolors=INK, linewidths=0.5, **look)
        tokens_of.append(tokens)
    if tokens_of:
        low, high = min(tokens_of) / 1.6, max(tokens_of) * 1.6
        plain_log_axis(panel, [tick for power in range(8) for tick in _STEPS * 10**power if low <= tick <= high])
        panel.set_xlim(low, high)
    panel.margins(y=0.18)
    panel.grid(True, linewidth=0.3, color="#dddddd")
    panel.set_axisbelow(True)
    if without:
        said = fill(f"undefined: {', '.join(without)}", _LETTERS)
        panel.text(0.02, 0.02, said, transform=panel.transAxes, fontsize=6, color=INK)


def _mean(row: Mapping[str, Any], name: str) -> float | None:
    """Mean over the dimensions; None where one is undefined."""
    return complete_mean([(each.get(name) or {}).get("value") for each in row["dimensions"].values()])


def convergence(result: Mapping[str, Any]) -> Figure:
    """Expected information gain of each question over m, where the result has it, and the ranking's agreement.

    Args:
        result: ``convergence`` as in ``selection.json``; ``information``: ``m`` and, by question, ``bits``.
    """
    information = result.get("information")
    panels = 2 if information else 1
    figure, grid = new_figure(TWO_COLUMNS if information else ONE_COLUMN, 3.3 if information else 2.5, 1, panels)
    if information:
        _bits(grid[0][0], information)
    _agreement(grid[0][-1], result["convergence"]["steps"], result["convergence"]["stable_from"])
    figure.suptitle(f"{title_of(result.get('dataset', 'questions'))}: EIG by number of examples m", fontsize=9)
    return figure


def growth(pool: Mapping[str, Any], name: str) -> Figure:
    """Distinct questions over the examples that a model was shown."""
    figure, grid = new_figure(ONE_COLUMN, 2.4)
    steps = pool["growth"]
    shown = list(accumulate(len(each["examples"]) for each in steps))
    panel = grid[0][0]
    panel.plot(shown, [each["pool"] for each in steps], "o-", color=colour_of(0), ms=3)
    panel.set(
        xlabel="examples shown to the proposer",
        ylabel="distinct questions",
        title=f"{title_of(name)}: growth of the pool",
    )
    panel.set_ylim(bottom=0)
    panel.grid(True, linewidth=0.3, color="#dddddd")
    return figure


def _bits(panel: Axes, information: Mapping[str, Any]) -> None:
    sizes, by_question = information["m"], information["bits"]
    order = sorted(by_question, key=lambda name: -(by_question[name][-1] or 0.0))
    for place, name in reversed(list(enumerate(order))):
        known = [(m, bits) for m, bits in zip(sizes, by_question[name], strict=True) if bits is not None]
        xs, ys = [m for m, _ in known], [bits for _, bits in known]
        if place >= _NAMED:
            panel.plot(xs, ys, color=FAINT, linewidth=0.5)
            continue
        panel.plot(xs, ys, color=colour_of(place), linestyle=DASHES[place % len(DASHES)], linewidth=1.1, label=name)
    handles, labels = panel.get_legend_handles_labels()
    title = "questions" if len(order) <= _NAMED else f"best {_NAMED} of {len(order)} (others faint)"
    panel.axhline(0, color=FAINT, linewidth=0.8, linestyle=":")
    panel.legend(
        handles[::-1], labels[::-1], title=title, title_fontsize=7, frameon=False, handlelength=3.2, ncols=2,
        loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=6.5,
    )  # fmt: skip
    panel.set(xlabel="examples m (log)", ylabel="EIG (bits, bias removed)")
    _log(panel, sizes)


def _agreement(panel: Axes, steps: Sequence[Mapping[str, Any]], stable: float) -> None:
    known = [each for each in steps if each["tau"] is not None]
    sizes = [each["m"] for each in known]
    panel.fill_between(
        sizes, [each["low"] for each in known], [each["high"] for each in known], color=colour_of(0), alpha=0.2, lw=0
    )
    panel.plot(
        sizes, [each["tau"] for each in known], "o-", color=colour_of(0), ms=3, label="Kendall's τ, with 5 to 95 %"
    )
    best = [each["same_top"] for each in steps]
    panel.plot([each["m"] for each in steps], best, "s--", color=colour_of(1), ms=3, label="share of the k best kept")
    panel.axhline(stable, color=FAINT, linewidth=0.8, linestyle=":")
    panel.set(xlabel="examples m (log)", ylabel="agreement with the full ranking", ylim=(min(0.0, *best), 1.04))
    panel.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    _log(panel, sizes)


def _log(panel: Axes, sizes: Sequence[int]) -> None:
    plain_log_axis(panel, [*(10 * 2**power for power in range(20) if 10 * 2**power < max(sizes)), max(sizes)])
    panel.grid(True, linewidth=0.3, color="#dddddd")


def phi_maps(phi: Mapping[str, Mapping[str, Any]], name: str) -> Figure:
    """A map a dimension; an undefined phi (a question that never varies) is hatched.

    Args:
        phi: By dimension: ``questions``, ``values`` (rows of phi or None) and ``mean``.
        name: Of the data.
    """
    columns = min(len(phi), 2)
    rows = -(-len(phi) // columns)
    most = max(len(each["questions"]) for each in phi.values())
    width = ONE_COLUMN if columns == 1 else TWO_COLUMNS
    figure, grid = new_figure(width, rows * max(2.0, 0.3 * most + 0.6) + 0.4, rows, columns)
    flat = [panel for row in grid for panel in row]
    image = None
    for panel, (dimension, each) in zip(flat, phi.items(), strict=False):
        values = _values(each["values"])
        questions = list(each["questions"])
        panel.set_facecolor("#f2f2f2")
        image = panel.imshow(values, vmin=-1, vmax=1, cmap="PuOr_r")
        numbers = [str(number) for number in range(1, len(questions) + 1)]
        panel.set_xticks(range(len(questions)), numbers)
        panel.set_yticks(range(len(questions)), [f"{name} {n}" for n, name in zip(numbers, questions, strict=True)])
        panel.tick_params(length=0)
        for spine in panel.spines.values():
            spine.set_visible(False)
        for row, column in np.ndindex(*values.shape):
            _cell(panel, values[row, column], row, column, len(questions))
        panel.set_title(_title(dimension, each))
    for panel in flat[len(phi) :]:
        panel.remove()
    if image is not None:
        figure.colorbar(image, ax=flat[: len(phi)], label="φ (−1 to 1)", shrink=0.6, pad=0.03)
    figure.suptitle(
        f"{title_of(name)}: how alike questions are answered \n(weak: |φ| below .3; hatched: undefined)", fontsize=9
    )
    return figure


def _cell(panel: Any, value: float, row: int, column: int, questions: int) -> None:
    if np.isnan(value):
        from matplotlib.patches import Rectangle

        panel.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor=GREY, linewidth=0)
        )
    elif questions <= _NUMBERS_UP_TO:
        ink = "white" if abs(value) > 0.6 else INK
        panel.text(column, row, short(value), ha="center", va="center", fontsize=6, color=ink)


def _title(dimension: str, each: Mapping[str, Any]) -> str:
    if each["mean"] is None:
        return f"{dimension}: {each['reason']}"
    return f"{dimension}: mean φ {short(each['mean'])}, {each['weak_share']:.0%} weak"


def _values(rows: Sequence[Sequence[float | None]]) -> Any:
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=float)


def scatter_against_people(data: ScoreTable, dimension: str) -> Figure:
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


def violins_by_dimension(data: ScoreTable) -> Figure:
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
        columns_of = [data.of(scores, dimension) for scores in (data.human, *data.judges.values())]
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


def violins_by_system(data: ScoreTable) -> Figure:
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
