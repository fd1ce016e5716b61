"""What judges cost and what they can do (EIG paper, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.scoring import complete_mean
from .chart_style import INK, ONE_COLUMN, TWO_COLUMNS, colour_of, marker_of, new_figure, plain_log_axis, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEPS = np.array([1, 2, 5])
_AREAS = (10.0, 90.0)
"""Areas of the dots for an agreement of 0 and of 1, in square points."""
_LETTERS = 60
"""Of the smallest size, in the width of a panel."""


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
