"""Drawings for the report as SVG. Horizontal positions are percentages, so that text stays readable at any width."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

from ..prompts.formatting import number
from ..prompts.text import shorten
from ..stats.phi import PhiMatrix

HEIGHT = 230
"""Height of a line chart, in pixels."""
BINS = 10
_ROUNDING = 1e-9


STEPS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
"""Distances between the ticks of an axis; beyond these, powers of ten are used."""


def _step(span: float, most: int) -> float:
    return next((each for each in STEPS if span / each <= most), 10.0 ** ceil(log10(max(span, STEPS[-1]) / most)))


@dataclass(frozen=True)
class Scale:
    """A horizontal axis; positions are percentages of its width."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: Iterable[float | None]) -> Scale:
        """Return an axis that contains zero and all values, with a few round ticks."""
        known = [0.0, *(value for value in values if value is not None)]
        step = _step(max(known) - min(known), 6)
        low, high = floor(min(known) / step + 1e-9) * step, ceil(max(known) / step - 1e-9) * step
        return cls(low, max(high, low + step), step)

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """Return an axis around one or more values. The axis need not contain zero."""
        known = list(values)
        step = _step(max(known) - min(known), 5)
        low, high = floor(min(known) / step - 0.1) * step, ceil(max(known) / step + 0.1) * step
        return cls(low, high, step)

    def at(self, value: float) -> str:
        """Return the position of a value: from 4 % to 96 % of the width."""
        share = (value - self.low) / (self.high - self.low)
        return f"{4 + 92 * min(1.0, max(0.0, share)):.2f}%"

    @property
    def ticks(self) -> list[float]:
        """Round values from one end to the other."""
        steps = round((self.high - self.low) / self.step)
        return [round(self.low + number * self.step, 4) for number in range(steps + 1)]


@dataclass(frozen=True)
class Point:
    """A value at one place of a chart."""

    place: int
    """From 0; places are equally far apart."""
    value: float
    label: str
    """Text that is shown when a person points at the value."""
    low: float | None = None
    high: float | None = None
    kind: str = "after"
    """Class of the point's colour."""


LABELS = 14
"""Most labels under the axis."""


def line_chart(
    points: Sequence[Point],
    names: Mapping[int, str],
    label: str,
    scale: Scale,
    *,
    lines: Mapping[str, Sequence[tuple[int, float]]] | None = None,
    marked: int | None = None,
    level: float | None = None,
) -> Markup:
    """Draw points with their intervals, and lines between them. ``names`` are the labels under the places; ``label``
    is as for :func:`drawing`; ``scale`` is the vertical axis. ``lines`` are the places and values to join, by colour
    class; by default, the points of each kind. ``marked`` is a place with a vertical line, ``level`` a value with a
    horizontal line."""
    count = 1 + max([*names, *(point.place for point in points)])

    def across(place: float) -> str:
        return f"{9 + 89 * (place + 0.5) / count:.2f}%"

    def down(value: float) -> str:
        share = (min(max(value, scale.low), scale.high) - scale.low) / (scale.high - scale.low)
        return f"{10 + (HEIGHT - 40) * (1 - share):.1f}"

    def line(kind: str, x1: str, x2: str, y1: str, y2: str) -> Markup:
        return Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(kind, x1, x2, y1, y2)

    drawn = []
    for tick in scale.ticks:
        drawn.append(line("grid" if tick else "zero", "9%", "98%", down(tick), down(tick)))
        text = Markup('<text x="8%" y="{:.1f}" text-anchor="end">{}</text>')
        drawn.append(text.format(float(down(tick)) + 4, number(tick)))
    if level is not None:
        drawn.append(line("zero", "9%", "98%", down(level), down(level)))
    if marked is not None:
        drawn.append(line("zero", across(marked), across(marked), "10", str(HEIGHT - 30)))
    step = -(-len(names) // LABELS)
    for position, (place, name) in enumerate(sorted(names.items())):
        if position % step == 0 or place == marked:
            text = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>')
            drawn.append(text.format(across(place), HEIGHT - 8, name))
    kinds = dict.fromkeys(point.kind for point in points)
    if lines is None:
        lines = {kind: [(point.place, point.value) for point in points if point.kind == kind] for kind in kinds}
    for kind, path in lines.items():
        for (start, one), (end, other) in itertools.pairwise(path):
            drawn.append(line(f"{kind} joined", across(start), across(end), down(one), down(other)))
    for point in points:
        x, whisker = across(point.place), Markup("")
        if point.low is not None and point.high is not None:
            whisker = line(point.kind, x, x, down(point.low), down(point.high))
        group = Markup('<g><title>{}</title>{}<circle class="{}" cx="{}" cy="{}" r="5"/></g>')
        drawn.append(group.format(point.label, whisker, point.kind, x, down(point.value)))
    return drawing(HEIGHT, label, drawn)


def drawing(height: int, label: str, parts: Iterable[Markup]) -> Markup:
    """Join the parts in one drawing as wide as the page. ``label`` describes it to people who cannot see it."""
    return Markup(
        '<svg class="plot course" width="100%" height="{}" role="img" aria-label="{}" focusable="false">{}</svg>'
    ).format(height, label, Markup("").join(parts))


def histogram(values: Sequence[float], kind: str, tallest: int) -> Markup:
    """Draw how many scores in [0, 1] lie in each tenth. ``tallest``, at least 1, is the count that fills the height."""
    counts = _counts(values)
    width = 100 / BINS
    bars = [
        Markup(
            '<rect class="{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"><title>{}</title></rect>'
        ).format(
            kind,
            place * width + 0.4,
            44 - 42 * count / tallest,
            width - 0.8,
            42 * count / tallest,
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
    """Return the largest count in any tenth, at least 1, so that histograms share one height."""
    return max([1, *(count for values in columns for count in _counts(values))])


def _counts(values: Sequence[float]) -> list[int]:
    """Count the scores in each bin. A score that only rounding puts below a bin counts in that bin."""
    places = Counter(min(BINS - 1, max(0, int(value * BINS + _ROUNDING))) for value in values)
    return [places[place] for place in range(BINS)]


def heat_map(matrix: PhiMatrix, numbers: Sequence[int]) -> Markup:
    """Draw phi as a grid: one colour above zero, another below, stronger with distance. Undefined cells are crossed."""
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
                    '<rect class="cell {}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.2f}">'
                    "<title>{}</title></rect>"
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


SHORT = 20
"""Most characters of a label that leaves room beside it in the picture of cost and quality."""
COST_HEIGHT = 300


@dataclass(frozen=True)
class Spot:
    """Something with a cost and a quality."""

    name: str
    cost: float
    quality: float
    said: str
    """Cost and quality in words, shown when a person points at the spot."""
    kind: str = "after"
    """Class of the spot's colour."""


def cost_and_quality(spots: Sequence[Spot], unit: str, label: str, level: tuple[float, str] | None = None) -> Markup:
    """Draw spots with cost across, in the ``unit`` written below, and quality upwards. ``label`` is as for
    :func:`drawing`. ``level`` is a quality to mark with a horizontal line, and its name."""
    values = [*(spot.quality for spot in spots), *([level[0]] if level else [])]
    scale = Scale.around(values)
    if max(values) <= 1:  # no share is above 1
        scale = Scale(scale.low, min(scale.high, 1.0), scale.step)
    low, high = scale.low, scale.high
    dearest = max(spot.cost for spot in spots)
    step = _round_step(dearest or 1.0)
    steps = ceil(dearest / step - _ROUNDING) or 1
    axis_end = step * steps

    def across(cost: float) -> float:
        return 9 + 74 * cost / axis_end

    def down(value: float) -> float:
        return 14 + (COST_HEIGHT - 60) * (1 - (value - low) / (high - low))

    parts = []
    for tick in scale.ticks:
        parts.append(
            Markup('<line class="grid" x1="9%" x2="98%" y1="{0:.1f}" y2="{0:.1f}"/>').format(down(tick))
            + Markup('<text x="8%" y="{:.1f}" text-anchor="end">{}</text>').format(down(tick) + 4, number(tick))
        )
    for place in range(steps + 1):
        parts.append(
            Markup('<text x="{:.2f}%" y="{}" text-anchor="middle">{:,.6g}</text>').format(
                across(place * step), COST_HEIGHT - 24, place * step
            )
        )
    parts.append(Markup('<text x="46%" y="{}" text-anchor="middle">{}</text>').format(COST_HEIGHT - 6, unit))
    if level:
        parts.append(
            Markup(
                '<line class="zero" x1="9%" x2="98%" y1="{0:.1f}" y2="{0:.1f}"/>'
                '<text x="98%" y="{1:.1f}" text-anchor="end">{2}</text>'
            ).format(down(level[0]), down(level[0]) - 6, level[1])
        )
    written: list[tuple[float, float]] = []
    for spot, labels in _together(spots, axis_end, high - low):
        x, y = across(spot.cost), down(spot.quality)
        label_y = y + 4
        while any(
            abs(x - other) < (20 if len(labels) <= SHORT else 50) and abs(label_y - taken) < 15
            for other, taken in written
        ):
            label_y += 5
        written.append((x, label_y))
        parts.append(
            Markup(
                '<g><title>{}</title><circle class="{}" cx="{:.2f}%" cy="{:.1f}" r="6"/>'
                '<text class="named" x="{:.2f}%" dx="{}" y="{:.1f}" text-anchor="{}">{}</text></g>'
            ).format(
                f"{labels}: {spot.said}",
                *(spot.kind, x, y),
                *(x, -11 if x > 55 else 11, label_y, "end" if x > 55 else "start", shorten(labels, 50)),
            )
        )
    return drawing(COST_HEIGHT, label, parts)


def _round_step(most: float) -> float:
    """Return a fifth of ``most``, rounded up to 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(most / 5))
    return next(each * power for each in (1, 2, 2.5, 5, 10) if each * power * 5 >= most * (1 - _ROUNDING))


def _together(spots: Sequence[Spot], most: float, span: float) -> list[tuple[Spot, str]]:
    """Return the spots with their labels. Spots at nearly the same place share one spot and label."""
    made: list[tuple[Spot, list[str]]] = []
    for spot in spots:
        for other, names in made:
            apart = abs(other.cost - spot.cost) / most
            if apart < 0.02 and abs(other.quality - spot.quality) < 0.05 * span:
                names.append(spot.name)
                break
        else:
            made.append((spot, [spot.name]))
    return [(spot, _label(names)) for spot, names in made]


def _label(names: Sequence[str]) -> str:
    """Return the label for names at one place of the picture; the table has all names."""
    together = ", ".join(names)
    return together if len(together) <= 2 * SHORT or len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
