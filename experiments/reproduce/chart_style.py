"""How the pictures look: sizes, colours and files. matplotlib is loaded when the first picture is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ...prompts.errors import import_optional

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
    "hatch.linewidth": 0.4,
    "svg.hashsalt": "askance",
    "svg.fonttype": "path",
}
_DOTS_AN_INCH = 300
_LETTER = 0.058
"""Width of a letter of a tick label, in inches."""
_LEAST_LETTERS = 6
_NAMES = {"qags": "QAGS", "topical_chat": "Topical-Chat", "summeval": "SummEval", "llmbar": "LLMBar"}
_NAMES |= {"reward_bench": "RewardBench", "mt_bench": "MT-Bench"}


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


def marker_of(place: int) -> str:
    """Mark of the judge at this place; where the colours begin anew the marks do not, so that no two look alike."""
    return MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def title_of(dataset: str) -> str:
    """The data set's name as its authors write it; any other name as it is."""
    return _NAMES.get(dataset, dataset)


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
