"""The report of ``compare``: which judge agrees best with people, beyond noise or not, and what each costs."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from ..evaluation.compare.comparison import comparison_view
from ..evaluation.scoring import complete_mean
from ..models.budget import count
from ..prompts.words import Figure, interval, number, p_value, percent, signed
from .charts import drawing, histogram, tallest_bar
from .result_page import (
    FirstScreen,
    Section,
    Tile,
    cost_tile,
    examples_section,
    failures,
    render_result_page,
    view_sections,
)
from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHART_HEIGHT = 300
"""Of the picture of cost and quality, in pixels."""


def render_comparison(data: Mapping[str, Any], name: str) -> str:
    """The page of what ``compare -o`` wrote.

    Args:
        data: Its content.
        name: Of the file.
    """
    view = comparison_view(data)
    on = f"C{view.lines[0][1:]}." if data["compared_on"] else ""
    overlap = (
        "All judges score the same examples, so whether two intervals overlap says little; the differences have "
        "intervals of their own."
    )
    holm = (
        "With 95 % intervals; p is two-sided, and corrected for all comparisons (Holm). An interval with zero in it is "
        "within noise."
    )
    dimensions = {
        "title": f"How each judge uses the {data['points']} points",
        "pictures": _drawings(data),
        "drawn": ("mean",),
    }
    if dimensions["pictures"]:
        dimensions["legend"] = [("swatch bars", "its scores"), ("swatch bars people", "people's")]
    picture = _cost_and_quality(data["judges"])
    cost = Section(
        "quality",
        "Cost and quality",
        note="Upwards: mean Spearman with people. Across: tokens for an example, its share of what is paid once "
        "included. Above and to the left is better.",
        pictures=[("", picture)] if picture else [],
    )
    return render_result_page(
        _screen(data, name),
        [
            *view_sections(
                view,
                *("judges", "agreement", "per_document", "per_system"),
                judges={"note": on},
                agreement={"note": overlap},
            ),
            *([cost] if picture else []),
            *view_sections(
                view, "cost", "differences", "dimensions", differences={"note": holm}, dimensions=dimensions
            ),
            *_missing(data),
            *([_examples(data)] if "ratings" in data else []),
        ],
    )


def _missing(data: Mapping[str, Any]) -> list[Section]:
    """What each judge lacks, and why; without ratings (``--json``) how much alone."""
    kinds = {"scored": "scored", "abstained": "abstained", "parse_errors": "not readable", "api_errors": "failed"}
    rows = [
        {"judge": row["judge"], "asked": row["coverage"]["asked"]}
        | {what: row["coverage"][kind] for kind, what in kinds.items()}
        for row in data["judges"]
    ]
    found = [
        {"judge": judge, **row}
        for judge, said in data.get("ratings", {}).items()
        for row in failures(said, "dimension")
    ]
    missing = Section("missing", "What is missing, and why", rows)
    return [missing, Section("failures", "Failures", found)]


def _drawings(data: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """A histogram of every judge's scores and, below it, people's, dimension by dimension."""
    if "ratings" not in data:
        return []
    common, found = set(data["common"]), []
    for dimension in data["dimensions"]:
        columns = {
            row["judge"]: [
                each["score"]
                for each in data["ratings"].get(row["judge"], ())
                if each["dimension"] == dimension
                and each["example"] in common
                and not each.get("replicate")
                and each["score"] is not None  # that of a judge that is left out
            ]
            for row in data["judges"]
        }
        people = [
            each[dimension] for name, each in data["human"].items() if name in common and each[dimension] is not None
        ]
        tallest = tallest_bar([*columns.values(), people])
        theirs = histogram(people, "people", tallest) if people else Markup("")
        where = f", {dimension}" if len(data["dimensions"]) > 1 else ""
        found += [
            (f"{judge}{where}", histogram(values, "after", tallest) + theirs)
            for judge, values in columns.items()
            if values
        ]
    return found


def _cost_and_quality(judges: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Every judge as a point: tokens for an example across, mean Spearman upwards."""
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


def _examples(data: Mapping[str, Any]) -> Section:
    """Every example with its mean score by each judge and by people."""
    columns: dict[str, dict[str, list[float | None]]] = {}
    for row in data["judges"]:
        for each in data["ratings"].get(row["judge"], ()):
            columns.setdefault(row["judge"], {}).setdefault(each["example"], []).append(each["score"])
    ids = list(next(iter(columns.values()))) if columns else []
    means = {judge: [complete_mean(said.get(name, ())) for name in ids] for judge, said in columns.items()}
    people = [complete_mean(list(data["human"].get(name, {}).values())) for name in ids]
    apart = [_apart([values[place] for values in means.values()]) for place in range(len(ids))]
    rated = {"People": people} if any(each is not None for each in people) else {}
    shown = {**rated, **means, "Apart": apart}
    note = "Mean score over the dimensions, from 0 to 1; those first on which the judges are furthest apart."
    return examples_section(ids, shown, note, down=True, by=len(shown) - 1)


def _apart(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if len(known) > 1 else None


LEVEL = 0.05
"""Chance of calling any judge better or worse although none is (Holm's adjustment)."""
FEW = 30
"""Examples below which it is said that they are few."""


def _screen(data: Mapping[str, Any], name: str) -> FirstScreen:
    first = data["judges"][0]
    known = [row for row in data["judges"] if row["average"]["spearman"] is not None]
    best = max(known, key=lambda row: row["average"]["spearman"], default=None)
    choice, headline, lead = _said(data, first, best)
    return FirstScreen(
        "compare",
        name,
        choice,
        headline,
        lead,
        [*_people_tiles(data, first, best), _price_tile(data), cost_tile(data)],
        _cautions(data),
        who=f"{data['model']} is the model of every judge; {count(data['examples'], 'example')}, "
        f"{', '.join(data['dimensions'])}; differences are against {first['judge']}, which was named first.",
    )


def _said(
    data: Mapping[str, Any], first: Mapping[str, Any], best: Mapping[str, Any] | None
) -> tuple[Literal["adopt", "keep", "undecided"], str, str]:
    judges, lead_judge = len(data["judges"]), first["judge"]
    but = (
        f" (but {_listed(data['left_out'])}, which has no example with all its scores)" if data.get("left_out") else ""
    )
    on = f"On the {data['compared_on']} of {count(data['examples'], 'example')} that every judge scored{but}"
    if not data["compared_on"]:
        why = "There is no example that every judge scored. What each judge lacks, and why, is below."
        return "undecided", "Nothing could be compared", why
    if best is None:
        if not data["differences"]:
            why = (
                f"{on}, cost and self-agreement are below; which of the {judges} judges is right, only people can say."
            )
            return "undecided", "No human scores to compare the judges with", why
        return "undecided", "No judge's agreement with people is defined", f"{on}; the reasons are below."
    reached = f"{best['judge']} reaches a Spearman of {number(best['average']['spearman'])}{_over(data)}"
    if judges == 1:
        return (
            "keep",
            f"{best['judge']} agrees with people at {number(best['average']['spearman'])}",
            f"{on}, {reached}.",
        )
    than = ""
    if best is not first and first["average"]["spearman"] is not None:
        than = f", {lead_judge} {number(first['average']['spearman'])}"
    better, worse = _beyond_noise(data, 1), _beyond_noise(data, -1)
    tested = sum(each["p_holm"] is not None for each in data["differences"])
    corrected = f"after correction for {count(tested, 'comparison')}"
    if better:
        shown = [each for each in _clear(data, 1) if each["judge"] in better]
        where = list(dict.fromkeys(each["dimension"] for each in shown))
        on_some = f" on {_listed(where)}" if len(where) < len(data["dimensions"]) else ""
        return (
            "adopt",
            f"{_listed(better)} {'agrees' if len(better) == 1 else 'agree'} better with people than {lead_judge}{on_some}",
            f"{on}, {reached}{than}. Beyond noise {corrected}: {_named(shown, several=len(data['dimensions']) > 1)}.",
        )
    headline = f"No judge is shown to agree better with people than {lead_judge}"
    lower = f" {_listed(worse)} {'is' if len(worse) == 1 else 'are'} worse beyond noise." if worse else ""
    return (
        "keep" if worse or best is first else "undecided",
        headline,
        f"{on}, {reached}{than}. No difference in its favour is beyond noise {corrected}.{lower}"
        if best is not first
        else f"{on}, {reached}, the highest.{lower or ' The others are lower, but within noise.'}",
    )


def _over(data: Mapping[str, Any]) -> str:
    several = len(data["dimensions"]) > 1
    return f" with people, the mean over {len(data['dimensions'])} dimensions" if several else " with people"


def _clear(data: Mapping[str, Any], sign: int) -> list[Mapping[str, Any]]:
    """The differences from the first judge that are beyond noise in one direction."""
    return [
        each
        for each in data["differences"]
        if each["value"] is not None and each["value"] * sign > 0
        if each["p_holm"] is not None and each["p_holm"] <= LEVEL
    ]


def _beyond_noise(data: Mapping[str, Any], sign: int) -> list[str]:
    """Judges that differ from the first beyond noise on some dimension and in no dimension the other way."""
    against = {each["judge"] for each in _clear(data, -sign)}
    return list(dict.fromkeys(each["judge"] for each in _clear(data, sign) if each["judge"] not in against))


def _named(differences: Sequence[Mapping[str, Any]], *, several: bool) -> str:
    return "; ".join(
        f"{each['judge']}{' on ' + each['dimension'] if several else ''} {signed(each['value'])} "
        f"({interval(each['low'], each['high'])})"
        for each in differences
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _people_tiles(data: Mapping[str, Any], first: Mapping[str, Any], best: Mapping[str, Any] | None) -> list[Tile]:
    """The largest difference against the first judge, of the best one where it has some, and what the best reaches."""
    if best is None:
        return []
    known = [each for each in data["differences"] if each["value"] is not None]
    known = [each for each in known if each["judge"] == best["judge"]] or known
    mean = "mean over the dimensions" if len(data["dimensions"]) > 1 else f"n = {data['compared_on']}"
    before = None if best is first else Figure(first["average"]["spearman"], form=".2f")
    then = best["judge"] if best is first else f"{first['judge']}, then {best['judge']}"
    tiles = [Tile("Spearman with people", Figure(best["average"]["spearman"], form=".2f"), f"{then}; {mean}", before)]
    if not known:
        return tiles
    top = max(known, key=lambda each: each["value"])
    several = f" on {top['dimension']}" if len(data["dimensions"]) > 1 else ""
    label = f"Spearman of {top['judge']} less {first['judge']}{several}"
    return [Tile(label, Figure.of(top, "+.2f"), f"corrected {p_value(top['p_holm'])}"), *tiles]


def _price_tile(data: Mapping[str, Any]) -> Tile:
    order = sorted(data["judges"], key=lambda row: row["cost"]["amortised_tokens"])
    least, most = order[0], order[-1]
    sub = f"{least['judge']} takes the fewest, {most['judge']} the most ({most['cost']['amortised_tokens']:,.0f})"
    return Tile("Tokens for an example", f"{least['cost']['amortised_tokens']:,.0f}", sub)


def _cautions(data: Mapping[str, Any]) -> list[str]:
    said = []
    if 0 < data["compared_on"] < FEW:
        said.append(f"There are few examples ({data['compared_on']}), so the intervals are wide.")
    left = data["examples"] - data["compared_on"]
    if left:
        least = min(data["judges"], key=lambda row: row["coverage"]["share"])
        said.append(
            f"{count(left, 'example')} of {data['examples']} are left out because some judge gave no score; most are "
            f"missing from {least['judge']} ({percent(1 - least['coverage']['share'])})."
        )
    alike = _same(data["judges"])
    if alike:
        said.append(f"{alike}: their figures are the same to the last digit, so they are one judge here.")
    return said


def _same(judges: Sequence[Mapping[str, Any]]) -> str:
    """Judges whose correlations are exactly alike."""
    seen: dict[str, list[str]] = {}
    for row in judges:
        if row["average"]["spearman"] is not None:
            seen.setdefault(str(row["average"]), []).append(row["judge"])
    return "; ".join(_listed(names) for names in seen.values() if len(names) > 1)
