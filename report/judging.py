"""What the reports of ``evaluate`` and ``diagnose`` share: their page, and its first screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..evaluation.scoring import Coverage
from ..models.budget import count
from ..prompts.words import interval, number, percent
from .charts import histogram, tallest_bar
from .first_screen import FirstScreen, Tile, cost_tile, unknown
from .page import json_data, render_page, thousandth
from .questions import Spread
from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from .first_screen import Failure


FULL = 0.95
"""Coverage from which what is missing is no warning."""


@dataclass(frozen=True)
class QuestionLine:
    """One question."""

    number: int
    name: str
    text: str
    """Its id where the text is not known."""
    dimension: str
    yes: float | None
    """Share of yes among the answers."""
    p_yes: float | None
    """Mean P(yes); None where the file does not tell."""
    coverage: float | None
    """Share of its verdicts that are there."""
    people: Mapping[str, Any] | None = None
    """``value``, ``low`` and ``high`` of Spearman's correlation with people; None where nobody rated."""
    flips: float | None = None
    """Share of answers that differ when asked again."""


@dataclass(frozen=True)
class Pairing:
    """Which questions are answered alike."""

    heat: Markup | None
    pairs: Sequence[Mapping[str, Any]]
    """``first``, ``second``, ``phi`` and ``n`` of the most alike."""
    effective: float | None
    """Number of independent questions that ask about as much."""


@dataclass(frozen=True)
class Judging:
    """What a file says of a judge's verdicts; what it does not say is empty."""

    command: str
    name: str
    model: str
    prompt: str
    examples: int
    coverage: Coverage
    questions: Sequence[QuestionLine]
    means: Mapping[str, float | None]
    """Mean score by dimension and ``overall``, on the scale of the file."""
    agreement: Mapping[str, Mapping[str, Any]]
    """By dimension, and ``overall`` where there are several: ``spearman``, ``kendall``, ``pearson``, ``n``, ``low``, ``high``."""
    findings: Sequence[str] = ()
    failures: Sequence[Failure] = ()
    spreads: Sequence[Spread] = ()
    pairing: Pairing | None = None
    table: Markup | None = None
    """Data of the table of examples."""
    only: Sequence[tuple[str, str]] = ()
    """What that table can be narrowed to: value and label."""
    lacking: Sequence[str] = ()
    """What would be needed to show more."""
    cost: Mapping[str, Any] | None = None
    """``calls``, ``cached_calls``, ``tokens`` and ``cost_usd``; None where the file does not tell."""

    @property
    def yes(self) -> float | None:
        """Mean of the questions' shares of yes."""
        known = [each.yes for each in self.questions if each.yes is not None]
        return sum(known) / len(known) if known else None

    @property
    def has_people(self) -> bool:
        """Whether any question was held against people."""
        return any(each.people is not None for each in self.questions)


def render_judging(found: Judging) -> str:
    """The page."""
    rows = list(found.agreement.values())
    people = [each.people for each in found.questions if each.people]
    return render_page(
        "report_of_judging.html.j2",
        ("report_table.js", "report_sort.js", "report_verdicts.js"),
        page=_Page(found, first_screen(found)),
        found=found,
        scale=Scale.over([each[end] for each in rows for end in ("low", "high", "spearman")]),
        people_scale=Scale.over([each[end] for each in people for end in ("low", "high", "value")]),
    )


@dataclass(frozen=True)
class _Page:
    found: Judging
    screen: FirstScreen


def first_screen(found: Judging) -> FirstScreen:
    """What was found, in words."""
    seen = found.coverage
    there = f"{seen.answered:,} of {seen.asked:,} verdicts are there ({_share(seen.share)})"
    choice: Literal["keep", "undecided"] = "keep" if seen.share >= FULL else "undecided"
    known = {name: each for name, each in found.agreement.items() if each["spearman"] is not None}
    if not seen.answered:
        choice, headline = "undecided", "Not one question was answered"
    elif known:
        headline = _agreement_headline(known)
    elif found.command == "diagnose":
        headline = "Nothing here calls for a change"
        if found.findings:
            what = "is one thing" if len(found.findings) == 1 else f"are {len(found.findings)} things"
            choice, headline = "undecided", f"There {what} worth acting on"
    elif found.means.get("overall") is not None:
        headline = f"The mean score is {number(found.means['overall'])}"
    else:
        headline = f"{percent(found.yes)} of the answers are yes"
    lead = f"{count(len(found.questions), 'question')} on {count(found.examples, 'example')}: {there}."
    return FirstScreen(
        found.command,
        found.name,
        choice,
        headline,
        f"{lead} {_extremes(found)}".strip(),
        _tiles(found),
        found.findings[:6],
        "Worth acting on",
        who=f"{found.model} is the judge; its prompt has the hash {found.prompt}.",
    )


def _agreement_headline(known: Mapping[str, Mapping[str, Any]]) -> str:
    if len(known) == 1:
        return f"The scores agree with people at a Spearman of {number(next(iter(known.values()))['spearman'])}"
    parts = sorted((each["spearman"], name) for name, each in known.items() if name != "overall")
    (low, worst), (high, best) = parts[0], parts[-1]
    whole = f"is {number(known['overall']['spearman'])} over all:" if "overall" in known else "runs"
    return f"Agreement with people {whole} from {number(low)} on {worst} to {number(high)} on {best}"


def _extremes(found: Judging) -> str:
    """The questions with the fewest and the most yes."""
    known = sorted((each.yes, each.name) for each in found.questions if each.yes is not None)
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return ""
    return (
        f"Answered yes least often: {known[0][1]} ({percent(known[0][0])}); most often: {known[-1][1]} "
        f"({percent(known[-1][0])})."
    )


def _tiles(found: Judging) -> list[Tile]:
    seen = found.coverage
    gone = [
        f"{count(value, name)}"
        for name, value in (
            ("abstention", seen.abstained),
            ("unreadable answer", seen.parse_errors),
            ("failed call", seen.api_errors),
        )
        if value
    ]
    coverage = Tile("Coverage", _share(seen.share), ", ".join(gone) or "every verdict that was asked for is there")
    yes = Tile("Answers that are yes", percent(found.yes), "mean over the questions")
    people, mean = _people_tile(found), _mean_tile(found)
    effective = found.pairing.effective if found.pairing else None
    independent = Tile(
        "Independent questions", number(effective, 1), f"that the {len(found.questions)} ask about as much as"
    )
    tiles = [people, mean, yes] if people is None else [people, mean]
    shown = [each for each in tiles if each is not None]
    shown.insert(1, coverage)
    if found.cost is not None:
        shown.append(cost_tile(found.cost))
    elif effective is not None:
        shown.append(independent)
    return shown[:4]


def _mean_tile(found: Judging) -> Tile | None:
    if not found.means:
        return None
    overall = found.means.get("overall")
    if overall is None:
        return unknown("Mean score", "no example has all its verdicts, so none has a score")
    others = [f"{name} {number(value)}" for name, value in found.means.items() if name != "overall"]
    return Tile("Mean score", number(overall), ", ".join(others[:6]) if len(others) > 1 else "over all questions")


def _people_tile(found: Judging) -> Tile | None:
    if not found.agreement:
        return None
    name = "overall" if "overall" in found.agreement else next(iter(found.agreement))
    each = found.agreement[name]
    label = "Spearman with people" + (
        "" if len(found.agreement) == 1 else ", all dimensions" if name == "overall" else f", {name}"
    )
    if each["spearman"] is None:
        return unknown(label, each.get("reason") or "undefined")
    sub = f"95 % interval {interval(each['low'], each['high'], sign=False)}, n = {each['n']}"
    gain = {"value": each["spearman"], "low": each["low"], "high": each["high"]}
    return Tile(label, number(each["spearman"]), sub, gain=gain, scale=Scale.over(gain.values()), is_change=False)


def _share(share: float) -> str:
    """Never rounded up to all of them."""
    return "100 %" if share == 1 else f"{min(100 * share, 99.9):.1f} %"


VERDICTS = "the verdicts file (-o) shows single verdicts, failures with their reasons, and each example's texts"


def read_evaluation(data: Mapping[str, Any], name: str) -> Judging:
    """What ``evaluate --json`` printed.

    Args:
        data: Its content.
        name: Of the file.
    """
    questions = [
        QuestionLine(place, each, each, "", yes, None, None)
        for place, (each, yes) in enumerate(data["yes_rates"].items(), 1)
    ]
    scores = data["scores"]
    dimensions = list(scores[0]["dimensions"]) if scores else []
    columns = {"overall": [each["overall"] for each in scores]}
    if len(dimensions) > 1:
        columns |= {each: [row["dimensions"][each] for row in scores] for each in dimensions}
    rows: dict[str, Any] = {
        "ids": [each["example"] for each in scores],
        "columns": [["Example", "ids"], *([label, f"c{place}"] for place, label in enumerate(columns))],
        "sorted": "c0",
        "down": False,
        "signed": [],
        "texts": {},
        **{f"c{place}": [thousandth(each) for each in values] for place, values in enumerate(columns.values())},
    }
    return Judging(
        command="evaluate",
        name=name,
        model=data["model"],
        prompt=data["prompt"],
        examples=len(scores),
        coverage=_coverage(data["coverage"]),
        questions=questions,
        means={"overall": data["means"]["overall"], **data["means"]},
        agreement={each: row["pooled"] for each, row in data["agreement"].items()},
        spreads=_spreads(columns["overall"], *data["scale"]),
        table=json_data(rows) if scores else None,
        lacking=[VERDICTS],
        cost=data,
    )


def read_diagnosis(data: Mapping[str, Any], name: str) -> Judging:
    """What ``diagnose --json`` printed.

    Args:
        data: Its content.
        name: Of the file.
    """
    questions = [
        QuestionLine(
            place,
            each["id"],
            each["id"],
            each["dimension"],
            each["yes_rate"],
            None,
            each["coverage"]["share"] if each["coverage"]["asked"] else None,
            None
            if each["human_dimension"] is None
            else {end: each["human_p_yes"][end] for end in ("value", "low", "high")},
            each["flips"],
        )
        for place, each in enumerate(data["questions"], 1)
    ]
    return Judging(
        command="diagnose",
        name=name,
        model=data["model"],
        prompt=data["prompt"],
        examples=data["examples"],
        coverage=_coverage(data["coverage"]),
        questions=questions,
        means={},
        agreement={},
        findings=[each["text"] for each in data["findings"]],
        pairing=Pairing(None, data["most_alike"], data["all_questions"]["effective_questions"]),
        lacking=[VERDICTS],
        cost=data if "calls" in data else None,
    )


def _coverage(row: Mapping[str, Any]) -> Coverage:
    return Coverage(*(row[each] for each in ("asked", "answered", "abstained", "parse_errors", "api_errors")))


def _spreads(scores: Sequence[float | None], low: float, high: float) -> list[Spread]:
    known = [(each - low) / (high - low) for each in scores if each is not None]
    if not known:
        return []
    drawn = histogram(known, "after", tallest_bar([known]))
    return [Spread("The judge", "after", low + (high - low) * sum(known) / len(known), len(known), drawn)]
