"""What there is to see of a run's result, in a notebook and as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation.shown import View, number_text
from ..memory.run_directory import FINISH_SENTENCES
from ..models.budget import count, spending_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SIDES = {"baseline": "at the start", "best": "accepted"}


def run_view(directory: str, result: Mapping[str, Any]) -> View:
    """The measures, the edits and the lessons of ``result.json``."""
    scores = [
        _score(SIDES[side], split, dimension, row)
        for side in SIDES
        for split in ("validation", "test")
        if result[side][split] is not None
        for dimension, row in {"overall": result[side][split], **result[side][split]["dimensions"]}.items()
    ]
    accepted, rejected = result["accepted_edits"], result["rejected_edits"]
    edits = [_edits(row, True) for row in accepted] + [_edits(row, False) for row in rejected]
    lessons = [
        {name: lesson[name] for name in ("id", "text", "direction", "dimension", "status", "reason")}
        | {"support": len(lesson["evidence"])}
        for lesson in result["lessons"]
    ]
    reason, report = result["finish_reason"], Path(directory) / "report.html"
    lines = [
        f"It ended because {FINISH_SENTENCES.get(reason, reason)}.",
        f"{count(len(accepted), 'candidate')} accepted, {len(rejected)} rejected; {count(len(lessons), 'lesson')}.",
        *(_gain(result, split) for split in ("validation", "test")),
        f"{spending_of(result)}; coverage {result['coverage']:.1%}",
        f"The whole story: {report}" if report.is_file() else None,
    ]
    overall = [row for row in scores if row["dimension"] == "overall"]
    tables = {
        "scores": lambda: scores,
        "edits": lambda: edits,
        "lessons": lambda: lessons,
        "overall": lambda: overall,
    }
    gain = _gain(result, "test") or _gain(result, "validation") or "Nothing was accepted"
    return View(
        f"{result['mode']} in {directory}",
        [line for line in lines if line],
        tables,
        ("overall", "edits"),
        f"{gain}; {count(len(accepted), 'candidate')} accepted, {len(rejected)} rejected.",
    )


def _score(version: str, split: str, dimension: str, row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("spearman", "kendall", "pearson", "mean", "n", "low", "high", "reason")
    return {"version": version, "split": split, "dimension": dimension} | {name: row.get(name) for name in names}


def _edits(row: Mapping[str, Any], accepted: bool) -> dict[str, Any]:
    gain = row["gain"] or {}
    return {
        "accepted": accepted,
        "iteration": row["iteration"],
        "lessons": [lesson for edit in row["edits"] for lesson in edit["lessons"]],
        "gain": gain.get("value"),
        "low": gain.get("low"),
        "high": gain.get("high"),
        "judged": row["judged"],
        "reason": row["reason"],
    }


def _gain(result: Mapping[str, Any], split: str) -> str | None:
    gain = result["gain"].get(split)
    if gain is None:
        return None
    said = number_text(gain["value"], gain["low"], gain["high"])
    return f"Gain on {split} ({result['yardstick']}): {said}{' (' + gain['reason'] + ')' if gain.get('reason') else ''}"
