"""What a comparison comes to in words, read off the corrected differences and the intervals, and off nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ...prompts.errors import InputError
from ...prompts.formatting import Figure, count, interval, number, signed
from ..shown import agreement_headline
from .costs import is_costed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Choice = Literal["adopt", "keep", "undecided"]

LEVEL = 0.05
"""Chance of calling any judge better or worse although none is (Holm's adjustment)."""


def best_judge(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The judge with the highest mean Spearman; None where none has one."""
    known = [row for row in data["judges"] if row["average"]["spearman"] is not None]
    return max(known, key=lambda row: row["average"]["spearman"], default=None)


def rated_on(data: Mapping[str, Any]) -> tuple[int, int]:
    """On how many of the examples compared people's scores are known, on the dimension with fewest and with most of them."""
    left_out = data.get("left_out") or ()
    rows = [each for row in data["judges"] if row["judge"] not in left_out for each in row["dimensions"].values()]
    known = [each["pooled"]["spearman"]["n"] for each in rows if "pooled" in each] or [data["compared_on"]]
    return min(known), max(known)


def conclude(data: Mapping[str, Any]) -> tuple[Choice, str, str]:
    """Whether another judge is to be preferred to the first one, as a headline, and why.

    Args:
        data: As ``compare -o`` writes it, or ``--json`` prints it.
    """
    first, best = data["judges"][0], best_judge(data)
    lead, others = first["judge"], len(data["judges"]) - 1
    left_out = data.get("left_out") or []
    have = "has" if len(left_out) == 1 else "have"
    but = f" (but {listed(left_out)}, which {have} no example with all its scores)" if left_out else ""
    on = f"On the {data['compared_on']} of {count(data['examples'], 'example')} that every judge scored{but}"
    if best is None or not data["compared_on"]:
        return "undecided", *_nothing_compared(data, on)
    told = (
        f"{on}{_rated(data)}, {best['judge']} reaches a Spearman of {number(best['average']['spearman'])}{_over(data)}"
    )
    if not others:
        return _alone(data, best["judge"], told)
    if best is not first and first["average"]["spearman"] is not None:
        told += f", {lead} {number(first['average']['spearman'])}"
    tested = sum(each["p_holm"] is not None for each in data["differences"])
    corrected = f"after correction for {count(tested, 'comparison')}"
    beyond = f"{told}. Beyond noise {corrected}"
    several = len(data["dimensions"]) > 1
    better, worse = _beyond_noise(data, 1), _beyond_noise(data, -1)
    ahead = [each for each in _clear(data, 1) if each["judge"] in better]
    if shown := [each for each in ahead if _own(data, each["judge"], each["dimension"]).side == 1]:
        names = list(dict.fromkeys(each["judge"] for each in shown))
        where = list(dict.fromkeys(each["dimension"] for each in shown))
        on_some = f" on {listed(where)}" if len(where) < len(data["dimensions"]) else ""
        verb = "agrees" if len(names) == 1 else "agree"
        return (
            "adopt",
            f"{_few(names, others)} {verb} better with people than {lead}{on_some}",
            f"{beyond}: {_named(shown, several=several)}.{_dearer(data, names, first)}",
        )
    if ahead:
        return (
            "undecided",
            f"{_few(better, others)} {_be(better)} ahead of {lead}, but not shown to agree with people",
            f"{beyond}: {_named(ahead, several=several)}; but the interval of its own correlation with people has zero in it.",
        )
    if mixed := _mixed(data):
        both = [each for sign in (1, -1) for each in _clear(data, sign) if each["judge"] in mixed]
        return (
            "undecided",
            f"{_few(mixed, others)} {_be(mixed)} better than {lead} on some dimensions and worse on others",
            f"{beyond}: {_named(both, several=several)}.",
        )
    headline = f"No judge is shown to agree better with people than {lead}"
    lower = f" {listed(worse)} {_be(worse)} worse beyond noise." if worse else ""
    if best is not first:
        why = f"{told}. No difference in its favour is beyond noise {corrected}.{lower}"
        return "keep" if worse else "undecided", headline, why
    known = [row["average"]["spearman"] for row in data["judges"][1:] if row["average"]["spearman"] is not None]
    most = "the only one that is defined" if not known else "the highest"
    if first["average"]["spearman"] in known:
        most = "and no other judge reaches more"
    return "keep", headline, f"{told}, {most}.{lower or ' No other judge is shown to be worse.' * bool(known)}"


def _nothing_compared(data: Mapping[str, Any], on: str) -> tuple[str, str]:
    """The headline, and why, where no judge has a correlation with people."""
    if not data["compared_on"]:
        why = "There is no example that every judge scored. What each judge lacks, and why, is below."
        return "Nothing could be compared", why
    if data["differences"]:
        return "No judge's agreement with people is defined", f"{on}; the reasons are below."
    which = f"which of the {len(data['judges'])} judges is right, only people can say"
    return "No human scores to compare the judges with", f"{on}, cost and self-agreement are below; {which}."


def _alone(data: Mapping[str, Any], judge: str, told: str) -> tuple[Choice, str, str]:
    """What is said of the only judge."""
    own = {name: _own(data, judge, name) for name in data["dimensions"]}
    known = {name: each for name, each in own.items() if each.value is not None}
    agrees = any(each.side == 1 for each in known.values())
    return "keep" if agrees else "undecided", agreement_headline(known, f"The scores of {judge}"), f"{told}."


def _own(data: Mapping[str, Any], judge: str, dimension: str) -> Figure:
    """A judge's own correlation with people on a dimension.

    Raises:
        InputError: The file has a difference of a judge that it does not have.
    """
    row = next((each for each in data["judges"] if each["judge"] == judge), None)
    if row is None:
        raise InputError(f"differences: there is no judge '{judge!s:.60}' in this file.")
    pooled = row["dimensions"][dimension].get("pooled")
    return Figure.of(pooled["spearman"]) if pooled else Figure(None)


def _dearer(data: Mapping[str, Any], names: Sequence[str], first: Mapping[str, Any]) -> str:
    """What speaks against those that are better: that they take more tokens."""
    rows = [first, *(row for row in data["judges"] if row["judge"] in names)]
    cost, *others = (row["cost"]["amortised_tokens"] for row in rows)
    if not cost or not all(is_costed(row["coverage"]) for row in rows):
        return ""
    told = {row["judge"]: each / cost for row, each in zip(rows[1:], others, strict=True) if each >= 1.1 * cost}
    if len(names) == 1 and told:
        return f" But it takes {told[names[0]]:.1f} times the tokens of {first['judge']}."
    dearer = "; ".join(f"{name} {times:.1f} times" for name, times in told.items())
    return f" But some take more tokens than {first['judge']}: {dearer}." if dearer else ""


MOST_NAMED = 2
"""Judges in a headline."""


def _few(names: Sequence[str], of: int) -> str:
    return listed(names) if len(names) <= MOST_NAMED else f"{len(names)} of the {of} other judges"


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _rated(data: Mapping[str, Any]) -> str:
    """How many of the examples compared people rated, where that is not all."""
    fewest, most = rated_on(data)
    if fewest == data["compared_on"]:
        return ""
    return f", {fewest if fewest == most else f'{fewest} to {most}'} of them rated by people"


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


def _mixed(data: Mapping[str, Any]) -> list[str]:
    """Judges that differ from the first beyond noise both ways."""
    worse = {each["judge"] for each in _clear(data, -1)}
    return list(dict.fromkeys(each["judge"] for each in _clear(data, 1) if each["judge"] in worse))


def _named(differences: Sequence[Mapping[str, Any]], *, several: bool) -> str:
    return "; ".join(
        f"{each['judge']}{' on ' + each['dimension'] if several else ''} {signed(each['value'])} "
        f"({interval(each['low'], each['high'])})"
        for each in differences
    )


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
