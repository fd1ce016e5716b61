"""The reports of what ``evaluate --json`` and ``diagnose --json`` print: their numbers without single verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.scoring import Coverage
from .report_charts import histogram, tallest_bar
from .report_extras import Spread
from .report_judging import Judging, Pairing, QuestionLine
from .report_packing import json_data, thousandth

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
