"""Curves as SVG: places across are percentages, so that text stays readable on any width."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from .report_charts import drawing
from .report_words import number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HEIGHT = 230
"""In pixels."""
LABELS = 14
"""Labels under the axis at most."""


@dataclass(frozen=True)
class CurvePoint:
    """A value at one place of the axis."""

    place: int
    """From 0; places are equally far apart."""
    value: float
    label: str
    """What is said of it when it is pointed at."""
    low: float | None = None
    high: float | None = None


def line_chart(
    curves: Mapping[str, Sequence[CurvePoint]],
    places: Sequence[str],
    label: str,
    *,
    top: float = 1.0,
    bottom: float = 0.0,
    marked: int | None = None,
    level: float | None = None,
) -> Markup:
    """Curves over the same places.

    Args:
        curves: By the class that gives each its colour.
        places: What is written under each place.
        label: What the drawing shows, for those who do not see it.
        top: Value at the upper edge.
        bottom: Value at the lower edge.
        marked: A place to be marked by an upright line.
        level: A value to be marked by a line across.
    """

    def across(place: float) -> str:
        return f"{8 + 90 * (place + 0.5) / len(places):.2f}%"

    def down(value: float) -> str:
        share = (min(max(value, bottom), top) - bottom) / (top - bottom)
        return f"{10 + (HEIGHT - 40) * (1 - share):.1f}"

    drawn = [
        Markup(
            '<line class="grid" x1="8%" x2="98%" y1="{0}" y2="{0}"/><text x="7%" y="{1}" text-anchor="end">{2}</text>'
        ).format(down(tick), f"{float(down(tick)) + 4:.1f}", number(tick))
        for tick in _ticks(bottom, top)
    ]
    if level is not None:
        drawn.append(Markup('<line class="zero" x1="8%" x2="98%" y1="{0}" y2="{0}"/>').format(down(level)))
    if marked is not None:
        drawn.append(
            Markup('<line class="zero" x1="{0}" x2="{0}" y1="10" y2="{1}"/>').format(across(marked), HEIGHT - 30)
        )
    step = -(-len(places) // LABELS)
    for place, text in enumerate(places):
        if place % step == 0 or place == marked:
            drawn.append(
                Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(across(place), HEIGHT - 8, text)
            )
    for kind, points in curves.items():
        for one, other in itertools.pairwise(points):
            ends = across(one.place), across(other.place), down(one.value), down(other.value)
            drawn.append(Markup('<line class="{} joined" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(kind, *ends))
        drawn += [_point(each, kind, across(each.place), down(each.value), _ends(each, down)) for each in points]
    return drawing(HEIGHT, label, drawn)


def _ticks(bottom: float, top: float) -> list[float]:
    step = 0.25 if top - bottom <= 1.26 else 0.5
    return [bottom + step * each for each in range(round((top - bottom) / step) + 1)]


def _ends(each: CurvePoint, down: Callable[[float], str]) -> tuple[str, str] | None:
    return None if each.low is None or each.high is None else (down(each.low), down(each.high))


def _point(each: CurvePoint, kind: str, x: str, y: str, ends: tuple[str, str] | None) -> Markup:
    whisker = Markup("")
    if ends:
        whisker = Markup('<line class="{} span" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(kind, x, x, *ends)
    return Markup('<g><title>{}</title>{}<circle class="{}" cx="{}" cy="{}" r="4.5"/></g>').format(
        each.label, whisker, kind, x, y
    )
