"""Drawings for the report as SVG: places across are percentages, so that text stays readable on any width."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from ..prompts.words import interval, number, signed
from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..stats.phi import PhiMatrix
    from .candidates import ShownCandidate
    from .run_data import RunData


HEIGHT = 230
"""Of the course, in pixels."""
BINS = 10
"""Of a histogram."""


@dataclass(frozen=True)
class Point:
    """A version in the course of a run."""

    place: int
    iteration: int
    value: float
    low: float | None
    high: float | None
    parent: float | None
    """Value of the version that it was compared with; None for the start."""
    kind: str
    """``start``, ``accepted``, ``rejected`` or ``dropped``."""
    label: str


def course(data: RunData, tried: Sequence[ShownCandidate]) -> list[Point]:
    """The start and every candidate with a known gain, on the validation examples.

    A candidate's value is that of the version before it plus its gain, and its interval that of the gain, put there: a
    candidate and the version before it judge the same examples, so the interval of their difference is what counts.
    It is cut off where no correlation or score can be.
    """
    first = data.result.baseline.validation
    value = first.value if first else None
    if first is None or value is None:
        return []
    least = -1.0 if data.is_judge else 0.0
    label = f"Start: {number(value)} ({interval(first.low, first.high, sign=False)})"
    points = [Point(0, 0, value, first.low, first.high, None, "start", label)]
    for place, each in enumerate(tried, 1):
        gain = each.gain
        if gain is None or gain.value is None:
            continue
        kind = "accepted" if each.accepted else "dropped" if each.dropped else "rejected"
        ends = [None if end is None else min(max(value + end, least), 1.0) for end in (gain.low, gain.high)]
        said = f"dropped after {each.judged} examples" if each.dropped else kind
        label = f"Iteration {each.iteration}, {each.name}: {signed(gain.value)}, {said}"
        points.append(Point(place, each.iteration, value + gain.value, ends[0], ends[1], value, kind, label))
        if each.accepted:
            value += gain.value
    return points


def course_chart(points: Sequence[Point], name: str) -> Markup:
    """The course as a drawing: accepted versions joined by steps, the others hollow."""
    scale = Scale.over([end for each in points for end in (each.value, each.low, each.high)])
    places = points[-1].place + 1

    def across(place: float) -> str:
        return f"{9 + 89 * (place + 0.5) / places:.2f}%"

    def down(value: float) -> str:
        share = (min(max(value, scale.low), scale.high) - scale.low) / (scale.high - scale.low)
        return f"{10 + (HEIGHT - 40) * (1 - share):.1f}"

    drawn = [
        Markup(
            '<line class="{}" x1="9%" x2="98%" y1="{}" y2="{}"/><text x="8%" y="{}" text-anchor="end">{}</text>'
        ).format("zero" if tick == 0 else "grid", down(tick), down(tick), f"{float(down(tick)) + 4:.1f}", number(tick))
        for tick in scale.ticks
    ]
    for first in [
        each for place, each in enumerate(points) if place == 0 or each.iteration != points[place - 1].iteration
    ]:
        text = "start" if first.kind == "start" else str(first.iteration)
        drawn.append(
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(across(first.place), HEIGHT - 8, text)
        )
    kept = [each for each in points if each.kind in ("start", "accepted")]
    for each, following in zip(kept, [*kept[1:], None], strict=True):
        end = following.place if following else points[-1].place
        x, y = across(end), down(each.value)
        drawn.append(Markup('<line class="step" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(across(each.place), x, y, y))
        if following:
            drawn.append(
                Markup('<line class="step" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x, x, y, down(following.value))
            )
    drawn += [_point(each, across(each.place), down) for each in points]
    return drawing(HEIGHT, f"{name} on validation, version by version; the table below has the figures", drawn)


def drawing(height: int, label: str, parts: Iterable[Markup]) -> Markup:
    """The parts as one drawing as wide as the page; ``label`` is what it shows, for those who do not see it."""
    return Markup(
        '<svg class="plot course" width="100%" height="{}" role="img" aria-label="{}" focusable="false">{}</svg>'
    ).format(height, label, Markup("").join(parts))


def _point(each: Point, x: str, down: Callable[[float], str]) -> Markup:
    parts = [Markup("<g><title>{}</title>").format(each.label)]
    if each.low is not None and each.high is not None:
        parts.append(
            Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                each.kind, x, x, down(each.low), down(each.high)
            )
        )
    parts.append(Markup('<circle class="{}" cx="{}" cy="{}" r="5"/>').format(each.kind, x, down(each.value)))
    return Markup("").join([*parts, Markup("</g>")])


def histogram(values: Sequence[float], kind: str, tallest: int) -> Markup:
    """How many of the scores in [0, 1] lie in each tenth; ``tallest`` is the count that fills the height."""
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, max(0, int(value * BINS)))] += 1
    width = 100 / BINS
    bars = [
        Markup(
            '<rect class="{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"><title>{}</title></rect>'
        ).format(
            kind,
            place * width + 0.4,
            44 - 42 * count / max(tallest, 1),
            width - 0.8,
            42 * count / max(tallest, 1),
            f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}: {count}",
        )
        for place, count in enumerate(counts)
    ]
    label = ", ".join(f"{place / BINS:.1f}: {count}" for place, count in enumerate(counts))
    base = Markup('<line class="base" x1="0" x2="100%" y1="44.5" y2="44.5"/>')
    return Markup(
        '<svg class="plot histogram" width="100%" height="46" role="img" aria-label="{}" focusable="false">{}</svg>'
    ).format(f"Examples by score: {label}", Markup("").join([*bars, base]))


def tallest_bar(columns: Sequence[Sequence[float]]) -> int:
    """The largest count of any tenth, so that histograms share one height."""
    most = 1
    for values in columns:
        places = [min(BINS - 1, max(0, int(value * BINS))) for value in values]
        most = max([most, *(places.count(place) for place in range(BINS))])
    return most


def heat_map(matrix: PhiMatrix, numbers: Sequence[int]) -> Markup:
    """Phi as a grid: one colour above zero, one below, stronger the further from it; undefined ones are crossed."""
    size, side = len(matrix.questions), 26
    cells = []
    for row, first in enumerate(matrix.questions):
        for column, second in enumerate(matrix.questions):
            phi = matrix.of(first, second)
            x, y = (column + 1) * side, (row + 1) * side
            title = f"{numbers[row]} and {numbers[column]}: " + (
                (matrix.reason(first, second) or "") if phi is None else f"phi {number(phi)}"
            )
            kind = "none" if phi is None else "above" if phi >= 0 else "below"
            opacity = 1.0 if phi is None else abs(phi)
            cells.append(
                Markup(
                    '<rect class="cell {}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.2f}"><title>{}</title></rect>'
                ).format(kind, x, y, side - 2, side - 2, opacity, title)
            )
            if phi is None:
                ends = (x + 3, x + side - 5, y + side - 5, y + 3)
                cells.append(Markup('<line x1="{}" x2="{}" y1="{}" y2="{}"/>').format(*ends))
    for place, label in enumerate(numbers):
        middle = (place + 1) * side + side // 2 - 1
        cells.append(Markup('<text x="{}" y="18" text-anchor="middle">{}</text>').format(middle, label))
        cells.append(Markup('<text x="20" y="{}" text-anchor="end">{}</text>').format(middle + 4, label))
    whole = (size + 1) * side
    return Markup(
        '<svg class="heat" viewBox="0 0 {0} {0}" width="{0}" role="img" aria-label="{1}" focusable="false">{2}</svg>'
    ).format(whole, "Phi of every pair of questions, by their numbers", Markup("").join(cells))


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
        drawn += [_curve_point(each, kind, across(each.place), down(each.value), _ends(each, down)) for each in points]
    return drawing(HEIGHT, label, drawn)


def _ticks(bottom: float, top: float) -> list[float]:
    step = 0.25 if top - bottom <= 1.26 else 0.5
    return [bottom + step * each for each in range(round((top - bottom) / step) + 1)]


def _ends(each: CurvePoint, down: Callable[[float], str]) -> tuple[str, str] | None:
    return None if each.low is None or each.high is None else (down(each.low), down(each.high))


def _curve_point(each: CurvePoint, kind: str, x: str, y: str, ends: tuple[str, str] | None) -> Markup:
    whisker = Markup("")
    if ends:
        whisker = Markup('<line class="{} span" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(kind, x, x, *ends)
    return Markup('<g><title>{}</title>{}<circle class="{}" cx="{}" cy="{}" r="4.5"/></g>').format(
        each.label, whisker, kind, x, y
    )
