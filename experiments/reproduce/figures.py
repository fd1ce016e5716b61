"""The papers' pictures: EIG, Figure 4; BinEval, Figures 1, 2 and 7 to 10.

    python -m askance.experiments.reproduce.figures qags.json selection.json --figures pictures

Read are the JSON results of the commands here and of ``askance select``. No model is asked. Every picture is written as
PNG and as SVG. Cost and quality of judges and the phi of questions are drawn by ``askance report``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.errors import InputError, import_optional
from ...stats.correlation import spearman
from ..command_line import says_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONE_COLUMN, TWO_COLUMNS = 3.4, 7.0
"""Widths in inches, as in a paper of two columns."""
PEOPLE = "people"
GREY, INK, FAINT, GRID = "#767676", "#222222", "#c8c8c8", "#dddddd"
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
    "figure.titlesize": 9,
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
_LETTER, _LEAST_LETTERS = 0.058, 6
"""Width of a letter of a tick label in inches, and the fewest letters a line that labels are broken into."""
_MARGIN = 0.04
"""Margin beside scores from 0 to 1."""
_COLUMNS = 4
"""Scatters side by side."""
_AREA = 8.0
"""Area of one example's dot in square points; examples at one place make it larger."""
_FEWEST_SYSTEMS, _TALL_UP_TO = 2, 5
"""Systems from which they are drawn apart, and panels up to which each has the full height."""
_TITLES = {"qags": "QAGS", "topical_chat": "Topical-Chat", "summeval": "SummEval"}
Scores = Mapping[str, Mapping[str, float | None]]
"""Example to dimension to score in [0, 1]."""


# --- scores ---


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

    def scores(self, of: Scores, dimension: str) -> dict[str, float]:
        """The scores of people or of a judge on a dimension, by example."""
        return {each: score for each in self.examples if (score := of.get(each, {}).get(dimension)) is not None}

    def by_system(self, scores: Scores) -> dict[str, list[float]]:
        """Scores of each system's examples, each the mean over the dimensions; incomplete examples are left out."""
        columns = [self.scores(scores, dimension) for dimension in self.dimensions]
        found: dict[str, list[float]] = {}
        for each in self.examples:
            if each in self.systems and columns and all(each in column for column in columns):
                found.setdefault(self.systems[each], []).append(float(np.mean([column[each] for column in columns])))
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
    dimensions, common = tuple(result["dimensions"]), tuple(result["common"])
    systems = result.get("systems", {})
    return ScoreTable(_title(result["dataset"]), dimensions, common, result["human"], judges, systems, "; ".join(notes))


def _within(scores: Scores) -> tuple[Scores, dict[str, tuple[float, float]]]:
    """The scores inside [0, 1], and the lowest and highest value of each dimension that was mapped."""
    columns: dict[str, list[float]] = {}
    for each in scores.values():
        for name, value in each.items():
            if value is not None:
                columns.setdefault(name, []).append(value)
    spans = {name: (min(values), max(values)) for name, values in columns.items()}
    outside = {name: span for name, span in spans.items() if span[0] < 0 or span[1] > 1}

    def mapped(name: str, value: float | None) -> float | None:
        if value is None or name not in outside:
            return value
        low, high = outside[name]
        return (value - low) / (high - low)

    return {each: {name: mapped(name, value) for name, value in of.items()} for each, of in scores.items()}, outside


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> str:
    """Spearman's correlation in words: the letter rho with two decimals, or that it is undefined."""
    value = spearman(first, second).value
    return "ρ undefined" if value is None else f"ρ = {value:.2f}".replace("0.", ".", 1)


def _title(dataset: str) -> str:
    """The data set's name as its authors write it; any other name as it is."""
    return _TITLES.get(dataset, dataset)


# --- parts of a picture ---


@contextmanager
def style() -> Iterator[None]:
    """The settings of every picture; one is made and written within.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    with import_optional("matplotlib", "figures", "matplotlib").rc_context(_SETTINGS):
        yield


def _panels(width: float, height: float, count: int, columns: int, **sharing: Any) -> tuple[Figure, list[Axes]]:
    """A figure of so many inches with ``count`` panels in rows of ``columns``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    panels = list(figure.subplots(-(-count // columns), columns, squeeze=False, **sharing).flat)
    for panel in panels[count:]:
        panel.remove()
    return figure, panels[:count]


def _colour(place: int) -> str:
    """Colour of the judge at this place; people are grey."""
    return COLOURS[place % len(COLOURS)]


def _label_places(panel: Axes, labels: Sequence[str], room: float) -> None:
    """Names below the x axis: broken into short lines where ``room`` (inches a name) suffices, else turned."""
    places, letters = range(1, len(labels) + 1), int(room / _LETTER)
    if letters >= _LEAST_LETTERS and all(len(word) <= letters for label in labels for word in label.split()):
        panel.set_xticks(places, ["\n".join(wrap(label, letters)) or label for label in labels])
    else:
        panel.set_xticks(places, list(labels), rotation=40, ha="right", rotation_mode="anchor")


def _violins(panel: Axes, columns: Sequence[Sequence[float]], colours: Sequence[str]) -> None:
    """A violin for each column that is not empty, with its quartiles as a bar and its median as a dot."""
    for place, values in enumerate(columns, 1):
        if not values:
            panel.text(place, 0.5, "no score", rotation=90, ha="center", va="center", fontsize=6, color=INK)
            continue
        parts: Any = panel.violinplot([list(values)], [place], widths=0.8, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colours[(place - 1) % len(colours)], edgecolor=INK, alpha=0.6, linewidth=0.5)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        panel.vlines(place, low, high, color=INK, linewidth=2)
        panel.plot(place, middle, "o", markersize=3.5, mfc="white", mec=INK, mew=0.7)
    panel.set(xlim=(0.4, len(columns) + 0.6), ylim=(-_MARGIN, 1 + _MARGIN), axisbelow=True)
    panel.yaxis.grid(True, linewidth=0.3, color=GRID)


def _log(panel: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic x axis with plain numbers: 10, 20, 40 … and the largest size."""
    from matplotlib.ticker import NullLocator

    ticks = [10 * 2**power for power in range(20) if 10 * 2**power * 1.3 < max(sizes)] + [max(sizes)]
    panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.grid(True, linewidth=0.3, color=GRID)


# --- pictures ---


def violins_by_dimension(data: ScoreTable) -> Figure:
    """One panel a dimension; in each the people's scores and those of every judge."""
    count = len(data.dimensions)
    columns = min(count, 2 if len(data.judges) > 3 else 4)
    width = ONE_COLUMN if count == 1 and len(data.judges) < 4 else TWO_COLUMNS
    figure, panels = _panels(width, 2.1 * -(-count // columns) + 0.3, count, columns, sharex=True, sharey=True)
    names = [PEOPLE, *data.judges]
    colours = [GREY, *map(_colour, range(len(data.judges)))]
    for place, (panel, dimension) in enumerate(zip(panels, data.dimensions, strict=True)):
        scores = [[*data.scores(each, dimension).values()] for each in (data.human, *data.judges.values())]
        _violins(panel, scores, colours)
        panel.set_title(f"{dimension} (n = {len(scores[0])})")
        _label_places(panel, names, (width - 0.5) / columns / len(names))
        if place % columns == 0:
            panel.set_ylabel("score (0 to 1)")
    figure.supxlabel(data.note, fontsize=6.5)
    figure.suptitle(f"{data.name}: how scores are spread")
    return figure


def violins_by_system(data: ScoreTable) -> Figure:
    """One panel for people and each judge; in each a violin a system, ordered by the people's mean.

    An example's score is the mean over the dimensions. A panel's title has the rank correlation of its systems' means
    with those of people.
    """
    people = data.by_system(data.human)
    systems = sorted(people, key=lambda system: (float(np.mean(people[system])), system))
    wanted = [float(np.mean(people[system])) for system in systems]
    who = {PEOPLE: people, **{judge: data.by_system(scores) for judge, scores in data.judges.items()}}
    height = (1.25 if len(who) <= _TALL_UP_TO else 0.95) * len(who) + 0.8
    figure, panels = _panels(TWO_COLUMNS, height, len(who), 1, sharex=True, sharey=True)
    for place, (panel, (name, by_system)) in enumerate(zip(panels, who.items(), strict=True)):
        _violins(panel, [by_system.get(each, []) for each in systems], [_colour(place - 1) if place else GREY])
        panel.set_ylabel("score")
        said = ""
        if place and all(by_system.get(system) for system in systems):
            means = [float(np.mean(by_system[system])) for system in systems]
            said = f": means of the systems, {_rank_correlation(means, wanted)}"
        panel.set_title(f"{name}{said}", loc="left")
    _label_places(panels[-1], systems, (TWO_COLUMNS - 0.5) / len(systems))
    panels[-1].set_xlabel("system, from the lowest to the highest mean by people")
    figure.supxlabel(data.note, fontsize=6.5)
    of = "mean of " if len(data.dimensions) > 1 else ""
    figure.suptitle(f"{data.name}: scores by system (0 to 1; {of}{', '.join(data.dimensions)})")
    return figure


def scatter_against_people(data: ScoreTable, dimension: str) -> Figure:
    """A panel a judge: its score over the people's, the diagonal (dashed) and the fitted line (drawn through)."""
    columns = min(len(data.judges), _COLUMNS)
    width, tall = ONE_COLUMN if columns == 1 else TWO_COLUMNS, 2.15 if columns > 2 else 2.9
    height = -(-len(data.judges) // columns) * tall + 0.5
    figure, panels = _panels(width, height, len(data.judges), columns, sharex=True, sharey=True)
    layout: Any = figure.get_layout_engine()
    layout.set(h_pad=0.09)  # titles stand above the panels of the lower rows
    people = data.scores(data.human, dimension)
    for place, (panel, (judge, of)) in enumerate(zip(panels, data.judges.items(), strict=True)):
        both = [(people[each], score) for each, score in data.scores(of, dimension).items() if each in people]
        human, scores = [x for x, _ in both], [y for _, y in both]
        panel.plot([0, 1], [0, 1], "--", color=FAINT, linewidth=0.8, zorder=1)
        dots = Counter((round(x, 2), round(y, 2)) for x, y in both)
        areas = [_AREA * count**0.6 for count in dots.values()]
        look: dict[str, Any] = {"marker": MARKERS[place % len(MARKERS)], "color": _colour(place), "alpha": 0.45}
        panel.scatter([x for x, _ in dots], [y for _, y in dots], s=areas, linewidths=0, zorder=2, **look)
        if len(set(human)) > 1:
            slope, base = np.polyfit(human, scores, 1)
            ends = np.array([min(human), max(human)])
            panel.plot(ends, base + slope * ends, color=INK, linewidth=1.1, zorder=3)
        panel.set_title(f"{judge}\n{_rank_correlation(human, scores)}, n = {len(human)}")
        panel.set(xlim=(-_MARGIN, 1 + _MARGIN), ylim=(-_MARGIN, 1 + _MARGIN), aspect="equal")
    said = "line: least squares; dashed: equal scores; larger dot: several examples"
    if f": {dimension} " in data.note:
        said += f"\n{data.note}"
    figure.supxlabel(f"people's score of {dimension} (0 to 1)\n{said}", fontsize=7)
    figure.supylabel("judge's score (0 to 1)", fontsize=8)
    figure.suptitle(f"{data.name}: {dimension}")
    return figure


def convergence(result: Mapping[str, Any]) -> Figure:
    """Expected information gain of each question over m, where the result has it, and the ranking's agreement.

    Args:
        result: ``convergence`` as in ``selection.json``; ``information``: ``m`` and, by question, ``bits``.
    """
    information = result.get("information")
    width, height = (TWO_COLUMNS, 3.3) if information else (ONE_COLUMN, 2.5)
    count = 2 if information else 1
    figure, panels = _panels(width, height, count, count)
    if information:
        _bits(panels[0], information)
    _agreement(panels[-1], result["convergence"]["steps"], result["convergence"]["stable_from"])
    figure.suptitle(f"{_title(result.get('dataset', 'questions'))}: EIG by number of examples m")
    return figure


def _bits(panel: Axes, information: Mapping[str, Any]) -> None:
    """A line a question; beyond the best eight they are thin, faint and without a name."""
    sizes, by_question = information["m"], information["bits"]
    order = sorted(by_question, key=lambda name: -(by_question[name][-1] or 0.0))
    for place, name in reversed(list(enumerate(order))):
        known = [(m, bits) for m, bits in zip(sizes, by_question[name], strict=True) if bits is not None]
        look: dict[str, Any] = {"color": FAINT, "linewidth": 0.5}
        if place < len(COLOURS):
            look = {"color": _colour(place), "linestyle": DASHES[place], "linewidth": 1.1, "label": name}
        panel.plot([m for m, _ in known], [bits for _, bits in known], **look)
    handles, labels = panel.get_legend_handles_labels()
    title = "questions" if len(order) <= len(COLOURS) else f"best {len(COLOURS)} of {len(order)} (others faint)"
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
    tau, low, high = ([each[name] for each in known] for name in ("tau", "low", "high"))
    best = [each["same_top"] for each in steps]
    panel.fill_between(sizes, low, high, color=_colour(0), alpha=0.2, lw=0)
    panel.plot(sizes, tau, "o-", color=_colour(0), ms=3, label="Kendall's τ, with 5 to 95 %")
    panel.plot([each["m"] for each in steps], best, "s--", color=_colour(1), ms=3, label="share of the k best kept")
    panel.axhline(stable, color=FAINT, linewidth=0.8, linestyle=":")
    panel.set(xlabel="examples m (log)", ylabel="agreement with the full ranking", ylim=(min(0.0, *best), 1.04))
    panel.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    _log(panel, sizes)


def growth(pool: Mapping[str, Any], name: str) -> Figure:
    """Distinct questions over the examples that a model was shown."""
    figure, (panel,) = _panels(ONE_COLUMN, 2.4, 1, 1)
    shown = list(accumulate(len(each["examples"]) for each in pool["growth"]))
    panel.plot(shown, [each["pool"] for each in pool["growth"]], "o-", color=_colour(0), ms=3)
    panel.set(xlabel="examples shown to the proposer", ylabel="distinct questions")
    panel.set_title(f"{_title(name)}: growth of the pool")
    panel.set_ylim(bottom=0)
    panel.grid(True, linewidth=0.3, color=GRID)
    return figure


# --- files ---


def pictures(result: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Every picture that a result has the numbers for, with its name; to be used within :func:`style`."""
    name = str(result.get("dataset", "data"))
    if result.get("human"):
        data = score_table(result)
        yield f"{name}_violins_by_dimension", violins_by_dimension(data)
        if len(data.by_system(data.human)) >= _FEWEST_SYSTEMS:
            yield f"{name}_violins_by_system", violins_by_system(data)
        for dimension in data.dimensions if data.judges else ():
            yield f"{name}_scatter_{dimension}", scatter_against_people(data, dimension)
    if result.get("convergence"):
        yield f"{name}_eig_convergence", convergence(result)
    if result.get("pool"):
        yield f"{name}_pool_growth", growth(result["pool"], name)


def draw(result: Mapping[str, Any], directory: Path) -> list[Path]:
    """Draw what a result has the numbers for, as PNG and as SVG; the same picture gives the same bytes.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    written = []
    with style():
        for name, figure in pictures(result):
            directory.mkdir(parents=True, exist_ok=True)
            place = directory / re.sub(r"[^\w.-]+", "_", name)
            written += [Path(f"{place}.png"), Path(f"{place}.svg")]
            figure.savefig(written[-2], dpi=_DOTS_AN_INCH)
            figure.savefig(written[-1], metadata={"Date": None})
    return written


def draw_into(directory: Path | None, result: Mapping[str, Any]) -> None:
    """Draw if a directory is named, and name the written files on standard error."""
    if directory is not None:
        for path in draw(result, directory):
            print(path, file=sys.stderr)


def read_result(path: Path) -> dict[str, Any]:
    """Read a result to draw; one without a name gets the name of its file.

    Raises:
        InputError: The file is missing, or holds no result.
    """
    if path.suffix == ".jsonl":
        raise InputError(f"{path}: verdicts are drawn by askance report {path}.")
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(result, dict):
        raise InputError(f"{path}: a result is one JSON object.")
    return {"dataset": path.stem, **result}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Draw from files."""
    parser = argparse.ArgumentParser(
        prog="python -m askance.experiments.reproduce.figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="+", type=Path, help="JSON results and selections")
    parser.add_argument("--figures", type=Path, required=True, metavar="DIR", help="where the pictures go")
    given = parser.parse_args(arguments)
    for path in given.results:
        written = draw(read_result(path), given.figures)
        if not written:
            raise InputError(f"{path}: there is nothing in it that a picture is known for.")
        print(*written, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
