"""How alike the questions of a dimension are answered, as heat maps (BinEval, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .chart_data import short
from .chart_style import GREY, INK, ONE_COLUMN, TWO_COLUMNS, new_figure, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUMBERS_UP_TO = 10
"""Questions in a dimension up to which every cell also says its phi."""


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
