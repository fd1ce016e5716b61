"""What a comparison of judges found, in words: read off the corrected differences, and off nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ..models.budget import count
from .report_first_screen import FirstScreen, Tile, cost_tile, unknown
from .report_scores import Scale
from .report_words import interval, number, p_value, percent, signed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05
"""Chance of calling any judge better or worse although none is (Holm's adjustment)."""
FEW = 30
"""Examples below which it is said that they are few."""


def finding(data: Mapping[str, Any], name: str) -> FirstScreen:
    """The first screen of a comparison's report."""
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
        [_difference_tile(data, first, best), _agreement_tile(data, first, best), _price_tile(data), cost_tile(data)],
        _cautions(data),
        who=f"{data['model']} is the model of every judge; {count(data['examples'], 'example')}, "
        f"{', '.join(data['dimensions'])}; differences are against {first['judge']}, which was named first.",
    )


def _said(
    data: Mapping[str, Any], first: Mapping[str, Any], best: Mapping[str, Any] | None
) -> tuple[Literal["adopt", "keep", "undecided"], str, str]:
    judges, lead_judge = len(data["judges"]), first["judge"]
    left_out = (
        f" (but {_listed(data['left_out'])}, which has no example with all its scores)" if data.get("left_out") else ""
    )
    on = f"On the {data['compared_on']} of {count(data['examples'], 'example')} that every judge scored{left_out}"
    if not data["compared_on"]:
        why = "There is no example that every judge scored. What each judge lacks, and why, is in its notes below."
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
    better, worse = _beyond_noise(data["differences"], 1), _beyond_noise(data["differences"], -1)
    tested = sum(each["p_holm"] is not None for each in data["differences"])
    corrected = f"after correction for {count(tested, 'comparison')}"
    if better:
        where = _dimensions_of(data, better, 1)
        on_some = f" on {_listed(where)}" if len(where) < len(data["dimensions"]) else ""
        return (
            "adopt",
            f"{_listed(better)} {'agrees' if len(better) == 1 else 'agree'} better with people than {lead_judge}{on_some}",
            f"{on}, {reached}{than}. Beyond noise {corrected}: {_named(data, better, 1)}.",
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


def _beyond_noise(differences: Sequence[Mapping[str, Any]], sign: int) -> list[str]:
    """Judges that differ from the first beyond noise on some dimension and in no dimension the other way."""
    found = [
        (each["judge"], each["value"])
        for each in differences
        if each["value"] is not None and each["p_holm"] is not None and each["p_holm"] <= LEVEL
    ]
    against = {judge for judge, value in found if value * sign < 0}
    return list(dict.fromkeys(judge for judge, value in found if value * sign > 0 and judge not in against))


def _clear(data: Mapping[str, Any], judges: Sequence[str], sign: int) -> list[Mapping[str, Any]]:
    """The differences of these judges that are beyond noise in one direction."""
    return [
        each
        for each in data["differences"]
        if each["judge"] in judges
        and each["value"] is not None
        and each["value"] * sign > 0
        and each["p_holm"] is not None
        and each["p_holm"] <= LEVEL
    ]


def _dimensions_of(data: Mapping[str, Any], judges: Sequence[str], sign: int) -> list[str]:
    return list(dict.fromkeys(each["dimension"] for each in _clear(data, judges, sign)))


def _named(data: Mapping[str, Any], judges: Sequence[str], sign: int) -> str:
    several = len(data["dimensions"]) > 1
    return "; ".join(
        f"{each['judge']}{' on ' + each['dimension'] if several else ''} {signed(each['value'])} "
        f"({interval(each['low'], each['high'])})"
        for each in _clear(data, judges, sign)
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _difference_tile(data: Mapping[str, Any], first: Mapping[str, Any], best: Mapping[str, Any] | None) -> Tile:
    """The largest difference against the first judge, where there is one dimension; else the best judge's."""
    known = [each for each in data["differences"] if each["value"] is not None]
    if best is not None and best is not first:
        known = [each for each in known if each["judge"] == best["judge"]] or known
    if not known:
        return unknown(f"Against {first['judge']}", "no difference can be measured")
    top = max(known, key=lambda each: each["value"])
    several = f" on {top['dimension']}" if len(data["dimensions"]) > 1 else ""
    sub = f"95 % interval {interval(top['low'], top['high'])}; corrected {p_value(top['p_holm'])}"
    scale = Scale.over([each[end] for each in data["differences"] for end in ("low", "high", "value")])
    return Tile(
        f"Spearman of {top['judge']} less {first['judge']}{several}", signed(top["value"]), sub, gain=top, scale=scale
    )


def _agreement_tile(data: Mapping[str, Any], first: Mapping[str, Any], best: Mapping[str, Any] | None) -> Tile:
    if best is None:
        return unknown("Spearman with people", "undefined")
    before = first["average"]["spearman"]
    sub = "mean over the dimensions" if len(data["dimensions"]) > 1 else f"n = {data['compared_on']}"
    named = f"{first['judge']}, then {best['judge']}" if best is not first else best["judge"]
    return Tile(
        "Spearman with people",
        number(best["average"]["spearman"]),
        f"{named}; {sub}",
        number(before) if best is not first and before is not None else None,
    )


def _price_tile(data: Mapping[str, Any]) -> Tile:
    cheapest = min(data["judges"], key=lambda row: row["cost"]["amortised_tokens"])
    dearest = max(data["judges"], key=lambda row: row["cost"]["amortised_tokens"])
    sub = f"{cheapest['judge']} takes the fewest, {dearest['judge']} the most ({dearest['cost']['amortised_tokens']:,.0f})"
    return Tile("Tokens for an example", f"{cheapest['cost']['amortised_tokens']:,.0f}", sub)


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
