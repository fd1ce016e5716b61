"""How the information of questions settles as examples are added, and how a pool of questions grows (EIG, Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from .chart_style import (
    COLOURS,
    DASHES,
    FAINT,
    ONE_COLUMN,
    TWO_COLUMNS,
    colour_of,
    new_figure,
    plain_log_axis,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED = len(COLOURS)
"""Questions with a line of their own; the others are drawn thin and faint."""


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
