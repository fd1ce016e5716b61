"""The report of ``compare``: which judge agrees best with people, whether beyond noise, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..evaluation.compare.comparison import best_judge, comparison_view, conclude, listed, rated_on
from ..evaluation.compare.costs import is_costed
from ..evaluation.scoring import complete_mean
from ..memory.decision import FEW
from ..prompts.formatting import Figure, count, number, p_value, percent
from .charts import Spot, cost_and_quality, histogram, tallest_bar
from .page import FirstScreen, Section, Tile, cost_tile, examples_section, failures, render_result_page, view_sections


def render_comparison(data: Mapping[str, Any], name: str) -> str:
    """Render the page of a result of ``compare -o``. ``data`` is the file's content, ``name`` the file's name."""
    view = comparison_view(data)
    basis = f"C{view.lines[0][1:]}." if data["compared_on"] else ""
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
                judges={"note": basis},
                agreement={"note": overlap},
            ),
            *([cost] if picture else []),
            *view_sections(
                view,
                *("cost", "differences", "dimensions", "questions"),
                differences={"note": holm},
                dimensions=dimensions,
            ),
            *_missing(data),
            *([_examples(data)] if "ratings" in data else []),
        ],
    )


def _missing(data: Mapping[str, Any]) -> list[Section]:
    """Return each judge's missing scores with the reasons; without ratings (``--json``), only their numbers."""
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
    """Draw a histogram of every judge's scores with people's scores below it, for each dimension."""
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
                and each["score"] is not None  # a judge that is left out may lack scores
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
    """Draw every judge as a point: tokens for an example across, mean Spearman upwards."""
    spots = [
        Spot(
            row["judge"],
            tokens := row["cost"]["amortised_tokens"],
            row["average"]["spearman"],
            f"Spearman {number(row['average']['spearman'], 3)}, {tokens:,.0f} tokens",
            "after" if row is judges[0] else "before",
        )
        for row in judges
        if row["average"]["spearman"] is not None
    ]
    label = "Cost and quality of every judge; the table below has the figures"
    return cost_and_quality(spots, "tokens for an example", label) if spots else None


def _examples(data: Mapping[str, Any]) -> Section:
    """Return the table of all examples with mean scores by each judge and by people."""
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


def _screen(data: Mapping[str, Any], name: str) -> FirstScreen:
    first = data["judges"][0]
    best = best_judge(data)
    choice, headline, lead = conclude(data)
    return FirstScreen(
        "compare",
        name,
        choice,
        headline,
        lead,
        [*_people_tiles(data, first, best), _price_tile(data), cost_tile(data)],
        _cautions(data),
        who=f"{_who(data)}; {count(data['examples'], 'example')}, {', '.join(data['dimensions'])}; differences are "
        f"against {first['judge']}, which was named first.",
    )


def _who(data: Mapping[str, Any]) -> str:
    """Name the models and prompts of the judges. Files of earlier versions name one model."""
    models, prompts = (
        list(dict.fromkeys(row[what] for row in data["judges"] if row.get(what))) for what in ("model", "prompt")
    )
    if len(models) < 2:
        said = f"{data['model']} is the model of every judge"
    else:
        said = f"The judges' models are {listed(models)}"
    return f"{said}; the prompts are {listed(prompts)}" if len(prompts) > 1 else said


def _people_tiles(data: Mapping[str, Any], first: Mapping[str, Any], best: Mapping[str, Any] | None) -> list[Tile]:
    """Return a tile with the best judge's correlation, and before it a tile with the largest difference against the
    first judge. If the best judge has differences, its largest one is shown."""
    if best is None:
        return []
    known = [each for each in data["differences"] if each["value"] is not None]
    known = [each for each in known if each["judge"] == best["judge"]] or known
    mean = "mean over the dimensions" if len(data["dimensions"]) > 1 else f"n = {rated_on(data)[0]}"
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
    """Return a tile with the fewest tokens for an example, among the judges whose cost is known."""
    known = [row for row in data["judges"] if is_costed(row["coverage"])]
    if not known:
        return Tile("Tokens for an example", "unknown", "too many calls of every judge failed")
    order = sorted(known, key=lambda row: row["cost"]["amortised_tokens"])
    least_tokens, most_tokens = (f"{row['cost']['amortised_tokens']:,.0f}" for row in (order[0], order[-1]))
    fewest = [row["judge"] for row in order if f"{row['cost']['amortised_tokens']:,.0f}" == least_tokens]
    if len(fewest) == len(known):
        return Tile("Tokens for an example", least_tokens, "of every judge" if len(known) > 1 else known[0]["judge"])
    takes = f"{fewest[0]} takes the fewest" if len(fewest) == 1 else f"{len(fewest)} judges take the fewest"
    left = [row["judge"] for row in data["judges"] if row not in known]
    without = f"; too many calls of {listed(left)} failed to say" if left else ""
    return Tile(
        "Tokens for an example", least_tokens, f"{takes}, {order[-1]['judge']} the most ({most_tokens}){without}"
    )


def _cautions(data: Mapping[str, Any]) -> list[str]:
    sentences = []
    fewest, _ = rated_on(data)
    if 0 < fewest < FEW:
        of_people = " that people rated" if fewest < data["compared_on"] else ""
        sentences.append(f"There are few examples{of_people} ({fewest}), so the intervals are wide.")
    lost = data["examples"] - data["compared_on"]
    if lost:
        left_out = data.get("left_out") or ()
        sparsest_judge = min(
            (row for row in data["judges"] if row["judge"] not in left_out), key=lambda row: row["coverage"]["share"]
        )
        sentences.append(
            f"{count(lost, 'example')} of {data['examples']} are left out because some judge gave no score; most are "
            f"missing from {sparsest_judge['judge']} ({percent(1 - sparsest_judge['coverage']['share'])})."
        )
    return sentences + [f"{listed(names)} {why}." for names, why in _same(data)]


def _same(data: Mapping[str, Any]) -> list[tuple[list[str], str]]:
    """Return groups of judges that cannot be told apart, with the reason. They have the same scores, or the same
    correlations if the file holds no scores."""
    common = set(data.get("common", ()))
    seen: dict[str, list[str]] = {}
    for row in data["judges"]:
        if row["average"]["spearman"] is None:
            continue
        scores = [
            (each["example"], each["dimension"], each.get("replicate", 0), each["score"])
            for each in data.get("ratings", {}).get(row["judge"], ())
            if each["example"] in common
        ]
        seen.setdefault(str(scores or row["average"]), []).append(row["judge"])
    why = "give every example the same score, so they are one judge here"
    if "ratings" not in data:
        why = "have exactly the same correlations with people"
    return [(names, why) for names in seen.values() if len(names) > 1]
