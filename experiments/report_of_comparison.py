"""The report of ``compare``: which judge agrees best with people, beyond noise or not, and what each costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from ..evaluation.scoring import complete_mean
from .report_charts import drawing, histogram, tallest_bar
from .report_comparison_finding import finding
from .report_failures import Failure, failures
from .report_packing import json_data, thousandth
from .report_page import render_page
from .report_scores import Scale
from .report_words import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from .report_first_screen import FirstScreen

METHODS = ("spearman", "kendall", "pearson")
CHART_HEIGHT = 300
"""Of the picture of cost and quality, in pixels."""


@dataclass(frozen=True)
class OnDimension:
    """A dimension with every judge's agreement with people."""

    name: str
    judges: Sequence[tuple[str, Mapping[str, Any]]]
    among_people: Mapping[str, Any] | None


@dataclass(frozen=True)
class Notes:
    """What there is to know of one judge."""

    judge: Mapping[str, Any]
    failures: Sequence[Failure]
    drawings: Sequence[tuple[str, Markup]]
    """Its scores on each dimension, in tenths."""


@dataclass(frozen=True)
class ComparisonPage:
    """What the page shows."""

    screen: FirstScreen
    data: Mapping[str, Any]
    has_people: bool
    has_money: bool
    dimensions: Sequence[OnDimension]
    scale: Scale
    differences: Sequence[Mapping[str, Any]]
    gain_scale: Scale
    picture: Markup | None
    notes: Sequence[Notes]
    people_drawings: Sequence[tuple[str, Markup]]
    examples: Markup | None


def render_comparison(data: Mapping[str, Any], name: str) -> str:
    """The page of what ``compare -o`` wrote.

    Args:
        data: Its content.
        name: Of the file.
    """
    scripts = ("report_table.js", "report_sort.js", "report_verdicts.js")
    return render_page("report_of_comparison.html.j2", scripts, page=_page(data, name))


def _page(data: Mapping[str, Any], name: str) -> ComparisonPage:
    has_people = any("pooled" in each for row in data["judges"] for each in row["dimensions"].values())
    dimensions = [_on_dimension(data, dimension) for dimension in data["dimensions"]] if has_people else []
    ends = [end for each in dimensions for _, row in each.judges for end in (row["low"], row["high"], row["value"])]
    drawn = _drawings(data)
    return ComparisonPage(
        screen=finding(data, name),
        data=data,
        has_people=has_people,
        has_money=any(row["cost"]["per_example"]["cost_usd"] for row in data["judges"]),
        dimensions=dimensions,
        scale=Scale.over(ends),
        differences=data["differences"],
        gain_scale=Scale.over([each[end] for each in data["differences"] for end in ("low", "high", "value")]),
        picture=_cost_and_quality(data["judges"]) if has_people else None,
        notes=[
            Notes(row, failures(_ratings(data, row["judge"]), "dimension"), drawn.get(row["judge"], ()))
            for row in data["judges"]
        ],
        people_drawings=drawn.get("", ()),
        examples=_examples(data),
    )


def _on_dimension(data: Mapping[str, Any], dimension: str) -> OnDimension:
    found = [(row["judge"], row["dimensions"][dimension]) for row in data["judges"]]
    among = data["among_people"].get(dimension)
    rows = [(judge, each["pooled"]["spearman"]) for judge, each in found if "pooled" in each]
    return OnDimension(dimension, rows, among["spearman"] if among else None)


def _ratings(data: Mapping[str, Any], judge: str) -> Sequence[Mapping[str, Any]]:
    """What a judge said; empty where only the tables were kept (``--json``)."""
    found: Sequence[Mapping[str, Any]] = data.get("ratings", {}).get(judge, ())
    return found


def _drawings(data: Mapping[str, Any]) -> dict[str, list[tuple[str, Markup]]]:
    """Histograms of every judge's scores, and of people's under no name, dimension by dimension."""
    if "ratings" not in data:
        return {}
    common = set(data["common"])
    found: dict[str, list[tuple[str, Markup]]] = {}
    for dimension in data["dimensions"]:
        columns = {
            row["judge"]: [
                each["score"]
                for each in _ratings(data, row["judge"])
                if each["dimension"] == dimension
                and each["example"] in common
                and not each.get("replicate")
                and each["score"] is not None  # that of a judge that is left out
            ]
            for row in data["judges"]
        }
        columns[""] = [
            each[dimension] for name, each in data["human"].items() if name in common and each[dimension] is not None
        ]
        tallest = tallest_bar(list(columns.values()))
        for judge, values in columns.items():
            if values:
                drawing = histogram(values, "after" if judge else "people", tallest)
                found.setdefault(judge, []).append((dimension, drawing))
    return found


def _cost_and_quality(judges: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Every judge as a point: tokens for an example across, mean Spearman upwards."""
    from markupsafe import Markup

    known = [row for row in judges if row["average"]["spearman"] is not None]
    if not known:
        return None
    values = [row["average"]["spearman"] for row in known]
    scale = Scale.around(values)
    low, high = scale.low, scale.high
    step = _round_step(max(row["cost"]["amortised_tokens"] for row in known) or 1.0)
    steps = ceil(max(row["cost"]["amortised_tokens"] for row in known) / step) or 1
    most = step * steps

    def across(tokens: float) -> float:
        return 9 + 74 * tokens / most

    def down(value: float) -> float:
        return 14 + (CHART_HEIGHT - 60) * (1 - (value - low) / (high - low))

    parts = []
    for tick in scale.ticks:
        parts.append(
            Markup('<line class="grid" x1="9%" x2="98%" y1="{0:.1f}" y2="{0:.1f}"/>').format(down(tick))
            + Markup('<text x="8%" y="{:.1f}" text-anchor="end">{}</text>').format(down(tick) + 4, number(tick))
        )
    for place in range(steps + 1):
        parts.append(
            Markup('<text x="{:.2f}%" y="{}" text-anchor="middle">{:,.0f}</text>').format(
                across(place * step), CHART_HEIGHT - 24, place * step
            )
        )
    parts.append(
        Markup('<text x="46%" y="{}" text-anchor="middle">tokens for an example</text>').format(CHART_HEIGHT - 6)
    )
    written: list[tuple[float, float]] = []
    for row, labels in _together(known, most, high - low):
        x, y = across(row["cost"]["amortised_tokens"]), down(row["average"]["spearman"])
        said = (
            f"{labels}: Spearman {number(row['average']['spearman'], 3)}, {row['cost']['amortised_tokens']:,.0f} tokens"
        )
        kind = "after" if row is judges[0] else "before"
        beside = y + 4
        while any(abs(x - other) < 20 and abs(beside - taken) < 15 for other, taken in written):
            beside += 5
        written.append((x, beside))
        parts.append(
            Markup(
                '<g><title>{}</title><circle class="{}" cx="{:.2f}%" cy="{:.1f}" r="6"/>'
                '<text class="named" x="{:.2f}%" dx="{}" y="{:.1f}" text-anchor="{}">{}</text></g>'
            ).format(said, kind, x, y, x, -11 if x > 55 else 11, beside, "end" if x > 55 else "start", labels[:40])
        )
    return drawing(CHART_HEIGHT, "Cost and quality of every judge; the table below has the figures", parts)


def _round_step(most: float) -> float:
    """A fifth of an axis that holds ``most``, rounded up to one, two or five of a power of ten."""
    power = 10.0 ** floor(log10(most / 5))
    return next(each * power for each in (1, 2, 2.5, 5, 10) if each * power * 5 >= most - 1e-9)


def _together(rows: Sequence[Mapping[str, Any]], most: float, span: float) -> list[tuple[Mapping[str, Any], str]]:
    """The judges with their labels; those on the same spot share one."""
    made: list[tuple[Mapping[str, Any], list[str]]] = []
    for row in rows:
        for other, names in made:
            apart = abs(other["cost"]["amortised_tokens"] - row["cost"]["amortised_tokens"]) / most
            if apart < 0.02 and abs(other["average"]["spearman"] - row["average"]["spearman"]) < 0.05 * span:
                names.append(row["judge"])
                break
        else:
            made.append((row, [row["judge"]]))
    return [(row, ", ".join(names)) for row, names in made]


def _examples(data: Mapping[str, Any]) -> Markup | None:
    """Every example with its mean score by each judge and by people, for the page's table."""
    if "ratings" not in data:
        return None
    columns: dict[str, dict[str, list[float | None]]] = {}
    for row in data["judges"]:
        for each in _ratings(data, row["judge"]):
            columns.setdefault(row["judge"], {}).setdefault(each["example"], []).append(each["score"])
    ids = list(next(iter(columns.values()))) if columns else []
    means = {judge: [complete_mean(said.get(name, ())) for name in ids] for judge, said in columns.items()}
    people = [complete_mean(list(data["human"].get(name, {}).values())) for name in ids]
    apart = [_apart([values[place] for values in means.values()]) for place in range(len(ids))]
    shown = [*(("People", people),) * any(each is not None for each in people), *means.items(), ("Apart", apart)]
    rows: dict[str, Any] = {
        "ids": ids,
        "columns": [["Example", "ids"], *([label, f"c{place}"] for place, (label, _) in enumerate(shown))],
        "sorted": f"c{len(shown) - 1}",
        "down": True,
        "signed": [],
        "texts": {},
        **{f"c{place}": [thousandth(each) for each in values] for place, (_, values) in enumerate(shown)},
    }
    return json_data(rows)


def _apart(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if len(known) > 1 else None
