"""The report of ``select``: what the kept questions tell, at what share of the cost, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..memory.decision import Choice
from ..optimizer.selection.selected import selection_view
from ..prompts.formatting import Figure, count, number, percent
from .charts import Point, Scale, line_chart
from .page import FirstScreen, Section, Tile, cost_tile, render_result_page, settings_section, view_sections

SURE = 0.8
"""Share of the information from which a selection is called good."""


def render_selection(data: Mapping[str, Any], name: str) -> str:
    """The page of a ``selection.json``: of its content, and the file's name."""
    curve, convergence, ratings = data["curves"][data["method"]], data["convergence"], data["ratings"]
    steps, stable = convergence["steps"], convergence["stable_from"]
    settled = _convergence(steps, stable)
    levels = ", ".join(f"{level} ({times})" for level, times in ratings["counts"].items())
    people = [("key people", "correlation with people")] * any(each["correlation_share"] is not None for each in curve)
    sections = view_sections(
        selection_view(data),
        *("kept", "growth", "candidates", "convergence", "agreement", "rounds"),
        growth={
            "pictures": [("", _growth(curve, data["k"]))],
            "legend": [("key after", "information"), *people, ("key before", "cost")],
            "note": "The dashed line is the number kept. Below about 5 examples for each combination of answers, "
            "further questions seem to tell nothing although they may.",
        },
        candidates={
            "drawn": ("bits",),
            "note": "Bias is what chance alone would give on so few examples; it is taken off.",
        },
        convergence={
            "pictures": [("", settled)] if settled else [],
            "note": f"The dashed line is {stable}; the upright lines hold 90 % of the resamples."
            if settled
            else f"There is no ranking to compare: {steps[-1].get('reason')}.",
        },
    )
    problems = [{"what went wrong": each} for each in data["problems"][:20]]
    note = f"Ratings: {ratings['from']}; {ratings['rated']} examples have one: {levels}."
    return render_result_page(
        _screen(data, name, curve),
        [*sections, Section("data", "Data", problems, note), settings_section(data["models"] | data["settings"])],
    )


def _screen(data: Mapping[str, Any], name: str, curve: Sequence[Mapping[str, Any]]) -> FirstScreen:
    last, every = curve[min(data["k"], len(curve)) - 1], len(curve)
    kept = count(last["k"], "question")
    share = last["information_share"]
    told = any(each["bits"] is not None and each["bits"] > 0 for each in data["questions"])
    choice: Choice = "adopt" if share is not None and share >= SURE else "keep"
    if choice == "adopt" and data["convergence"]["settled"] is None:
        choice = "undecided"  # other examples would have chosen other questions
    if not told:
        choice, headline = "undecided", "No question by itself tells anything beyond chance"
    elif share is None:
        choice, headline = "undecided", f"{kept} of {every} kept; what they tell is not known"
    else:
        keeps = "keeps" if last["k"] == 1 else "keep"
        headline = f"{kept} {keeps} {percent(share)} of the information at {percent(last['cost_share'])} of the cost"
    provenance = 3 if data["pool"] else 2  # the sentences begin with these, then comes what the lead says
    people = last["correlation_share"]
    with_people = f", and {percent(people)} of the correlation with people" if people is not None else ""
    lead = (
        f"Of {every} candidates, the most informative {last['k']} tell {percent(share)} of what the best set of any "
        f"size tells about the rating{with_people}; asking them takes {percent(last['cost_share'])} of the tokens of "
        "asking all. The shares are measured on halves of the sample that did not choose the questions."
    )
    bits = f"{number(last['held_out'], 3)} bits" if last["held_out"] is not None else "the questions tell nothing"
    agreement = {name: Figure.of(row, key="spearman") for name, row in data["agreement"].items()}
    chosen = agreement.get("chosen", Figure(None, reason=f"ratings are from {data['ratings']['from']}"))
    tiles = [
        Tile("Information kept", percent(share), f"{bits} on held-out halves"),
        Tile(
            "Spearman with people", chosen, chosen.reason or "all questions, then the kept ones", agreement.get("all")
        ),
        Tile("Cost of asking them", percent(last["cost_share"]), "of the tokens of asking all candidates"),
        cost_tile(data),
    ]
    return FirstScreen(
        "select",
        name,
        choice,
        headline,
        lead if share is not None else data["sentences"][0],
        tiles,
        data["sentences"][provenance + 1 :],
        who=" ".join(data["sentences"][:provenance]),
    )


def _growth(curve: Sequence[Mapping[str, Any]], k: int) -> Markup:
    """Shares of information, correlation and cost by the number of questions."""
    shares = {
        "before": ("cost_share", "the cost"),
        "people": ("correlation_share", "the correlation with people"),
        "after": ("information_share", "the information"),
    }
    points = [
        Point(place, each[key], f"{count(each['k'], 'question')}: {percent(each[key])} of {what}", kind=kind)
        for kind, (key, what) in shares.items()
        for place, each in enumerate(curve)
        if each[key] is not None
    ]
    highest = max(each.value for each in points)
    return line_chart(
        points,
        {place: str(each["k"]) for place, each in enumerate(curve)},
        "Shares of information, correlation and cost by the number of questions; the table below has the figures",
        Scale(0.0, 1.0 if highest <= 1.02 else 1.25, 0.25),
        marked=min(k, len(curve)) - 1,
    )


def _convergence(steps: Sequence[Mapping[str, Any]], level: float) -> Markup | None:
    """Kendall's tau of the ranking with the full one by the number of examples."""
    points = [
        Point(
            place, each["tau"], f"{each['m']} examples: tau {Figure.of(each, '.2f', 'tau')}", each["low"], each["high"]
        )
        for place, each in enumerate(steps)
        if each["tau"] is not None
    ]
    if not points:
        return None
    return line_chart(
        points,
        {place: str(each["m"]) for place, each in enumerate(steps)},
        "Kendall's tau of the ranking with the full one by the number of examples; the table below has the figures",
        Scale(min([0.0, *(-1.0 for each in points if (each.low or 0.0) < 0)]), 1.0, 0.25),
        level=level,
    )
