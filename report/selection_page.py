"""The reports of ``select`` (the information that the kept questions give, and their share of the cost) and of
``weigh`` (whether learned weights beat uniform ones)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..memory.decision import Choice
from ..optimizer.selection.selected import selection_view
from ..optimizer.weights.weights_result import held_out, weights_view
from ..prompts.errors import as_typed
from ..prompts.formatting import Figure, count, number, percent
from .charts import Point, Scale, line_chart
from .page import FirstScreen, Section, Tile, cost_tile, render_result_page, settings_section, view_sections

SURE = 0.8
"""Smallest share of the information for a selection to count as good."""
_HEADLINES: dict[str, tuple[Choice, str]] = {
    "better": ("adopt", "The learned weights beat uniform ones"),
    "worse": ("keep", "Keep uniform weights: the learned ones are worse"),
    "cannot tell": ("undecided", "Learned weights are not shown to beat uniform ones"),
    "same": ("keep", "Learning weights changed nothing"),
    "undefined": ("undecided", "Nothing can be said about the learned weights"),
}
_SETTINGS = ("method", "learner", "level", "pair_share", "folds", "resamples", "failed_resamples", "confidence", "seed")


def render_selection(data: Mapping[str, Any], name: str) -> str:
    """Render the page of a ``selection.json``. ``data`` is the file's content, ``name`` the file's name."""
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
    point, total = curve[min(data["k"], len(curve)) - 1], len(curve)
    kept = count(point["k"], "question")
    share = point["information_share"]
    is_informative = any(each["bits"] is not None and each["bits"] > 0 for each in data["questions"])
    choice: Choice = "adopt" if share is not None and share >= SURE else "keep"
    if choice == "adopt" and data["convergence"]["settled"] is None:
        choice = "undecided"  # other examples would have chosen other questions
    if not is_informative:
        choice, headline = "undecided", "No question by itself tells anything beyond chance"
    elif share is None:
        choice, headline = "undecided", f"{kept} of {total} kept; what they tell is not known"
    else:
        keeps = "keeps" if point["k"] == 1 else "keep"
        headline = f"{kept} {keeps} {percent(share)} of the information at {percent(point['cost_share'])} of the cost"
    provenance = 3 if data["pool"] else 2  # the sentences begin with these, then comes what the lead says
    people = point["correlation_share"]
    with_people = f", and {percent(people)} of the correlation with people" if people is not None else ""
    lead = (
        f"Of {total} candidates, the most informative {point['k']} tell {percent(share)} of what the best set of any "
        f"size tells about the rating{with_people}; asking them takes {percent(point['cost_share'])} of the tokens of "
        "asking all. The shares are measured on halves of the sample that did not choose the questions."
    )
    bits = f"{number(point['held_out'], 3)} bits" if point["held_out"] is not None else "the questions tell nothing"
    agreement = {name: Figure.of(row, key="spearman") for name, row in data["agreement"].items()}
    chosen = agreement.get("chosen", Figure(None, reason=f"ratings are from {data['ratings']['from']}"))
    tiles = [
        Tile("Information kept", percent(share), f"{bits} on held-out halves"),
        Tile(
            "Spearman with people", chosen, chosen.reason or "all questions, then the kept ones", agreement.get("all")
        ),
        Tile("Cost of asking them", percent(point["cost_share"]), "of the tokens of asking all candidates"),
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
    """Draw the shares of information, correlation and cost by the number of questions."""
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
    """Draw Kendall's tau between the ranking on some examples and the full ranking, by the number of examples."""
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


def render_weights(data: Mapping[str, Any], name: str) -> str:
    """Render the page of a ``weights.json``. ``data`` is the file's content, ``name`` the file's name."""
    view = weights_view(data)
    heaviest = sorted(view.tables["weights"](), key=lambda row: -row["weight"].value)
    because = data.get("intervals_reason") or "no resample could be learned from"
    bias = data.get("position_bias") or {}
    missing = "" if data["intervals"] else f"There are no intervals: {because}. "
    uniform = f"{missing}With uniform weights each would have {1 / len(heaviest):.3f}."
    sections = view_sections(
        view,
        *("weights", "learners", "sections", "order"),
        weights={"rows": heaviest, "note": uniform, "drawn": ("weight",)},
        learners={
            "drawn": ("accuracy", "spearman", "difference"),
            "note": "All learners see the same data, so the interval of the difference decides, and not whether two "
            "intervals overlap. One whose interval has zero in it is not shown to be better or worse.",
        },
        order={"note": f"{bias.get('reason') or ''}".capitalize()},
    )
    use = f"askance evaluate DATA --checklist CHECKLIST --model MODEL --weights {as_typed(name)}"
    note = f"In place of the checklist's own; no model is asked anew: {use}"
    if data.get("scores") == "pairwise":
        note = (
            "They say which of two outputs is better, and are learned from comparisons of two; where each output is "
            "judged alone, as by evaluate, they are refused. Learn weights for that without --pairwise."
        )
    return render_result_page(
        _weights_screen(data, name, {row["name"]: row for row in view.tables["learners"]()}),
        [
            *sections,
            Section("data", "What was counted", _counted(data)),
            settings_section({each: data[each] for each in _SETTINGS if each in data}),
            Section("use", "How to use the weights", note=note),
        ],
    )


def _weights_screen(data: Mapping[str, Any], name: str, learners: Mapping[str, Mapping[str, Any]]) -> FirstScreen:
    choice, headline = _HEADLINES[data["beats_uniform"]]
    if data["method"] == "uniform":
        choice, headline = "keep", "Uniform weights, nothing learned"
    is_pairwise = "held_out" in data
    measure, label = ("accuracy", "In the right order") if is_pairwise else ("spearman", "Spearman with the ratings")
    sentences = list(data["conclusion"])
    learner, uniform = learners[data["method"]], learners.get("uniform")
    gain = learner["difference"] or Figure(None, reason="uniform weights are the yardstick")
    power = data.get("power") or {"more": None, "reason": "counted for pairs only; this was learned from ratings"}
    needed_pairs = "undefined" if power["more"] is None else f"{power['more']:,}"
    learned_from = f"{data['pairs']['decided']:,} pairs" if is_pairwise else f"{data['outputs']:,} rated outputs"
    tiles = [
        Tile(f"{label} beyond uniform weights", gain, gain.reason or held_out(data)),
        Tile(
            label,
            learner[measure],
            learner[measure].reason or "uniform, then learned",
            uniform[measure] if uniform else None,
        ),
        Tile(
            "More pairs needed",
            needed_pairs,
            power["reason"] or f"to tell a difference of the size seen with {power['learner']}",
        ),
        Tile("Learned from", learned_from, count(len(data["weights"]), "test")),
    ]
    return FirstScreen(
        "weigh", name, choice, headline, sentences[0], tiles, sentences[1:], heading="What else was found"
    )


def _counted(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counts of pairs or outputs as rows of a table."""
    if "held_out" not in data:
        rows = {
            "Rated outputs": data["outputs"],
            "Left out, a score or the rating missing": data["left_out"],
            "Preference pairs beside them": data["pairs"],
            "Pairs left out, a score missing": data.get("pairs_left_out", 0),
        }
    else:
        pairs = data["pairs"]
        missing = sorted(pairs["missing_by_test"].items(), key=lambda each: -each[1])[:5]
        rows = {
            "Read": pairs["read"],
            "Left out, a score missing": pairs["left_out"],
            "Decided by people": pairs["decided"],
            "Called a tie; in no accuracy": pairs["data_ties"],
            "Groups, never divided": pairs["groups"],
            "Held out, decided": pairs["held_out"],
            **{f"Missing: {test}": times for test, times in missing},
        }
    return [{"data": name, "number": value} for name, value in rows.items()]
