"""The papers' pictures: EIG, Figure 4; BinEval, Figures 1, 2 and 7 to 10. matplotlib is loaded when the first is
drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.errors import import_optional
from ...stats.correlation import spearman

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONE_COLUMN, TWO_COLUMNS = 3.4, 7.0
"""Widths in inches, as in a paper of two columns."""
PEOPLE = "people"
GREY, INK, FAINT = "#767676", "#222222", "#c8c8c8"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6BB1", "#B8A800")
"""After Okabe and Ito: told apart with any kind of colour vision; nothing is told by colour alone."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 1)))
_SETTINGS: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.hashsalt": "askance",
    "svg.fonttype": "path",
}
_DOTS_AN_INCH = 300
_LETTER = 0.058
"""Width of a letter of a tick label, in inches."""
_LEAST_LETTERS = 6
_NAMED = len(COLOURS)
"""Questions of a convergence with a line of their own; the others are drawn thin and faint."""
_MARGIN = 0.04
"""Margin beside scores from 0 to 1."""
_COLUMNS = 4
"""Scatters side by side."""
_AREA = 8.0
"""Area of one example's dot in square points; examples at one place make it larger."""
_TALL_UP_TO = 5
"""Violins of systems: panels up to which each has the full height."""
SCORE = "score (0 to 1)"
_TITLES = {
    "qags": "QAGS",
    "topical_chat": "Topical-Chat",
    "summeval": "SummEval",
}
Scores = Mapping[str, Mapping[str, float | None]]
"""Example to dimension to score in [0, 1]."""


@dataclass(frozen=True)
class ScoreTable:
    """People's and the judges' scores of the same examples."""

    name: str
    """The data's name."""
    dimensions: tuple[str, ...]
    examples: tuple[str, ...]
    human: Scores
    judges: Mapping[str, Scores]
    systems: Mapping[str, str]
    """Example to the system that wrote it; empty where that is unknown."""
    note: str = ""
    """A remark for the reader of the picture."""

    def columns(self, dimension: str, judge: str) -> tuple[list[float], list[float]]:
        """People's and a judge's scores of the examples that have both."""
        pairs = [
            (human, score)
            for each in self.examples
            if (human := self.human[each].get(dimension)) is not None
            and (score := self.judges[judge].get(each, {}).get(dimension)) is not None
        ]
        return [human for human, _ in pairs], [score for _, score in pairs]

    def of(self, scores: Scores, dimension: str) -> list[float]:
        """People's or a judge's scores on a dimension."""
        return [score for each in self.examples if (score := scores.get(each, {}).get(dimension)) is not None]

    def by_system(self, scores: Scores) -> dict[str, list[float]]:
        """Scores of each system's examples, each the mean over the dimensions; incomplete examples are left out."""
        found: dict[str, list[float]] = {}
        for each in self.examples:
            values = [scores.get(each, {}).get(dimension) for dimension in self.dimensions]
            known = [value for value in values if value is not None]
            if each in self.systems and known and len(known) == len(values):
                found.setdefault(self.systems[each], []).append(float(np.mean(known)))
        return found


def score_table(result: Mapping[str, Any]) -> ScoreTable:
    """The scores of a result that :func:`~askance.experiments.reproduce.common.run` wrote.

    Examples that a judge left out are left out; of repeated ratings the first counts. A published score that leaves
    [0, 1] is mapped to [0, 1] by its lowest and highest value, and the note says so.
    """
    judges: dict[str, Scores] = {}
    notes = []
    for name, published in result.get("published", {}).items():
        judges[name], spans = _within(published)
        notes += [f"{name}: {each} {low:.1f} to {high:.1f} drawn as 0 to 1" for each, (low, high) in spans.items()]
    for name, ratings in result["ratings"].items():
        found: dict[str, dict[str, float | None]] = {}
        for rating in ratings:
            if not rating.get("replicate"):
                found.setdefault(rating["example"], {})[rating["dimension"]] = rating["score"]
        judges[name] = found
    return ScoreTable(
        title_of(result["dataset"]),
        tuple(result["dimensions"]),
        tuple(result["common"]),
        result["human"],
        judges,
        result.get("systems", {}),
        "; ".join(notes),
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> str:
    """Spearman's correlation in words for a picture: the letter rho with two decimals, or that it is undefined."""
    value = spearman(first, second).value
    return "ρ undefined" if value is None else f"ρ = {short(value)}"


def short(value: float) -> str:
    """Two decimals without the leading 0."""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"


def _within(scores: Scores) -> tuple[Scores, dict[str, tuple[float, float]]]:
    """The scores inside [0, 1], and what was mapped: the lowest and highest value by dimension."""
    dimensions = dict.fromkeys(name for each in scores.values() for name in each)
    ranges = {name: _range(each.get(name) for each in scores.values()) for name in dimensions}
    outside = {name: span for name, span in ranges.items() if span[0] < 0 or span[1] > 1}

    def mapped(name: str, value: float | None) -> float | None:
        if value is None or name not in outside:
            return value
        low, high = outside[name]
        return (value - low) / (high - low)

    return {each: {name: mapped(name, value) for name, value in of.items()} for each, of in scores.items()}, outside


def _range(values: Iterable[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    return min(known), max(known)


def title_of(dataset: str) -> str:
    """Return the data set's name as its authors write it; any other name as it is."""
    return _TITLES.get(dataset, dataset)


@contextmanager
def style() -> Iterator[None]:
    """The settings of every picture; one is made and written within.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    with import_optional("matplotlib", "figures", "matplotlib").rc_context(_SETTINGS):
        yield


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **sharing: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a grid of panels; the sizes are inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **sharing)
    return figure, [list(row) for row in panels]


def make_room(figure: Figure) -> None:
    """More air between the rows, where titles stand above the panels of a lower row."""
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(h_pad=0.09)


def plain_log_axis(panel: Axes, ticks: Sequence[float]) -> None:
    """A logarithmic x axis with these ticks, as plain numbers; of two that stand too near the first is left out."""
    from matplotlib.ticker import NullLocator

    kept = [tick for tick, after in zip(ticks, [*ticks[1:], None], strict=True) if after is None or after / tick > 1.3]
    panel.set_xscale("log")
    panel.set_xticks(kept, [f"{tick:,.0f}" for tick in kept])
    panel.xaxis.set_minor_locator(NullLocator())


def colour_of(place: int) -> str:
    """Colour of the judge at this place; people are grey."""
    return COLOURS[place % len(COLOURS)]


def save(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg``, the same bytes for the same picture; the directory is made where missing."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.png", directory / f"{name}.svg"]
    figure.savefig(paths[0], dpi=_DOTS_AN_INCH)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def label_places(panel: Axes, labels: Sequence[str], places: Sequence[float], room: float) -> None:
    """Names below the x axis: broken into short lines where ``room`` (inches a name) suffices, else turned."""
    letters = int(room / _LETTER)
    if letters >= _LEAST_LETTERS and all(len(word) <= letters for label in labels for word in label.split()):
        broken = ["\n".join(wrap(label, letters)) or label for label in labels]
        panel.set_xticks(list(places), broken)
        return
    panel.set_xticks(list(places), list(labels), rotation=40, ha="right", rotation_mode="anchor")


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
