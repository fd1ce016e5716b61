"""The report of ``select``: what the kept questions tell, at what share of the cost, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..models.budget import count
from ..prompts.words import interval, number, percent
from .charts import CurvePoint, line_chart
from .first_screen import FirstScreen, Tile, cost_tile, unknown
from .page import public_text, render_page
from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

SURE = 0.8
"""Share of the information from which a selection is called good."""


@dataclass(frozen=True)
class SelectionPage:
    """What the page shows."""

    screen: FirstScreen
    kept: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
    """The kept questions with their points of the curve, in the order in which they were chosen."""
    curve: Sequence[Mapping[str, Any]]
    growth: Markup
    has_people: bool
    questions: Sequence[Mapping[str, Any]]
    """All candidates, the one that tells most first."""
    scale: Scale
    convergence: Markup | None
    steps: Sequence[Mapping[str, Any]]
    stable_from: float
    settled: int | None
    agreement: Sequence[tuple[str, Mapping[str, Any]]]
    agreement_scale: Scale
    pool: Mapping[str, Any] | None
    ratings: Mapping[str, Any]
    problems: Sequence[str]
    settings: Sequence[tuple[str, str]]


def render_selection(data: Mapping[str, Any], name: str) -> str:
    """The page of a ``selection.json``.

    Args:
        data: Its content.
        name: Of the file.
    """
    return render_page("report_of_selection.html.j2", ("report_table.js", "report_sort.js"), page=_page(data, name))


def _page(data: Mapping[str, Any], name: str) -> SelectionPage:
    curve = data["curves"][data["method"]]
    reports = {each["id"]: each for each in data["questions"]}
    points = {each["question"]: each for each in curve}
    order = [each["question"] for each in curve if reports[each["question"]]["kept"]]
    agreement = list(data["agreement"].items())
    steps = data["convergence"]["steps"]
    return SelectionPage(
        screen=_screen(data, name, curve),
        kept=[(reports[question], points[question]) for question in order],
        curve=curve,
        growth=_growth(curve, data["k"]),
        has_people=any(each["correlation_share"] is not None for each in curve),
        questions=sorted(data["questions"], key=lambda each: (each["bits"] is None, -(each["bits"] or 0.0))),
        scale=Scale.over([value for each in data["questions"] for value in (each["bits"], each["eig"])]),
        convergence=_convergence(steps, data["convergence"]["stable_from"]),
        steps=steps,
        stable_from=data["convergence"]["stable_from"],
        settled=data["convergence"]["settled"],
        agreement=agreement,
        agreement_scale=Scale.over([each[end] for _, each in agreement for end in ("low", "high", "spearman")]),
        pool=data["pool"],
        ratings=data["ratings"],
        problems=data["problems"],
        settings=[
            (key, public_text(key, value))
            for key, value in (data["models"] | data["settings"]).items()
            if value not in (None, {}, [])
        ],
    )


def _screen(data: Mapping[str, Any], name: str, curve: Sequence[Mapping[str, Any]]) -> FirstScreen:
    last, every = curve[min(data["k"], len(curve)) - 1], len(curve)
    kept = count(last["k"], "question")
    keeps = "keeps" if last["k"] == 1 else "keep"
    share = last["information_share"]
    told = any(each["bits"] is not None and each["bits"] > 0 for each in data["questions"])
    choice: Literal["adopt", "keep", "undecided"] = "adopt" if share is not None and share >= SURE else "keep"
    if choice == "adopt" and data["convergence"]["settled"] is None:
        choice = "undecided"  # other examples would have chosen other questions
    if not told:
        choice, headline = "undecided", "No question tells anything beyond chance"
    elif share is None:
        choice, headline = "undecided", f"{kept} of {every} kept; what they tell is not known"
    else:
        headline = f"{kept} {keeps} {percent(share)} of the information at {percent(last['cost_share'])} of the cost"
    provenance = 3 if data["pool"] else 2  # the sentences begin with these, then comes what the lead says
    people = last["correlation_share"]
    with_people = f", and {percent(people)} of the correlation with people" if people is not None else ""
    lead = (
        f"Of {every} candidates, these {last['k']} tell {percent(share)} of what the best set of any size tells about "
        f"the rating{with_people}; asking them takes {percent(last['cost_share'])} of the tokens of asking all. "
        "The shares are measured on halves of the sample that did not choose the questions."
    )
    return FirstScreen(
        "select",
        name,
        choice,
        headline,
        lead if share is not None else data["sentences"][0],
        [_information(last), _people(data, last), _cost(last), cost_tile(data)],
        data["sentences"][provenance + 1 :],
        who=" ".join(data["sentences"][:provenance]),
    )


def _information(last: Mapping[str, Any]) -> Tile:
    bits = f"{number(last['held_out'], 3)} bits on held-out halves" if last["held_out"] is not None else ""
    if last["information_share"] is None:
        return unknown("Information kept", "the questions tell nothing on held-out halves")
    return Tile("Information kept", percent(last["information_share"]), bits)


def _people(data: Mapping[str, Any], last: Mapping[str, Any]) -> Tile:
    label = "Spearman with people"
    agreement = data["agreement"]
    if not agreement:
        return unknown(label, f"ratings are from {data['ratings']['from']}")
    chosen, every = agreement["chosen"], agreement["all"]
    if chosen["spearman"] is None:
        return unknown(label, chosen.get("reason") or "undefined")
    before = None if every["spearman"] is None else number(every["spearman"])
    span = interval(chosen["low"], chosen["high"], sign=False)
    return Tile(label, number(chosen["spearman"]), f"all questions, then the kept ones; {span}", before)


def _cost(last: Mapping[str, Any]) -> Tile:
    return Tile("Cost of asking them", percent(last["cost_share"]), "of the tokens of asking all candidates")


def _growth(curve: Sequence[Mapping[str, Any]], k: int) -> Markup:
    """Shares of information, correlation and cost by the number of questions."""

    def points(key: str, what: str) -> list[CurvePoint]:
        return [
            CurvePoint(place, each[key], f"{count(each['k'], 'question')}: {percent(each[key])} of {what}")
            for place, each in enumerate(curve)
            if each[key] is not None
        ]

    curves = {
        "before": points("cost_share", "the cost"),
        "people": points("correlation_share", "the correlation with people"),
        "after": points("information_share", "the information"),
    }
    highest = max([1.0, *(each.value for each in curves["people"])])
    return line_chart(
        curves,
        [str(each["k"]) for each in curve],
        "Shares of information, correlation and cost by the number of questions; the table below has the figures",
        top=1.0 if highest <= 1.02 else 1.25,
        marked=min(k, len(curve)) - 1,
    )


def _convergence(steps: Sequence[Mapping[str, Any]], level: float) -> Markup | None:
    """Kendall's tau of the ranking with the full one by the number of examples."""
    points = [
        CurvePoint(
            place,
            each["tau"],
            f"{each['m']} examples: tau {number(each['tau'])} ({interval(each['low'], each['high'], sign=False)})",
            each["low"],
            each["high"],
        )
        for place, each in enumerate(steps)
        if each["tau"] is not None
    ]
    if not points:
        return None
    low = min([0.0, *(each.low for each in points if each.low is not None)])
    return line_chart(
        {"after": points},
        [str(each["m"]) for each in steps],
        "Kendall's tau of the ranking with the full one by the number of examples; the table below has the figures",
        bottom=0.0 if low >= 0 else -0.5 if low >= -0.5 else -1.0,
        level=level,
    )
