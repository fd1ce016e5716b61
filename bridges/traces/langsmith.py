"""LangSmith: runs and feedback as its API, its client (``list_runs``, ``list_feedback``, also through a data frame) and its
bulk export (Parquet) have them; nested ``child_runs`` too.

``feedback_source.type`` is ``app`` where a person gave feedback in LangSmith, ``evaluator``, ``model`` or ``auto_eval`` for
judges, and ``api`` for either. ``feedback_stats`` has means only, without a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...prompts.human_feedback import MEANINGS
from .spans import By, GivenScore, Part, Row, TracedSpan, entries, loaded, mapping, number, short, text_or_none

NAME = "langsmith"
SOURCES: dict[str, By] = {"app": "people", "model": "model", "evaluator": "model", "auto_eval": "model"}


def parts(row: Row) -> list[Part] | None:
    """What a row holds; None where it is none of LangSmith's."""
    if "run_type" in row and "inputs" in row and ("id" in row or "run_id" in row):
        return list(_run(row))
    if "run_id" in row and "key" in row and ("score" in row or "value" in row):
        return [_feedback(row)]
    return None


def _run(row: Row, trace: str | None = None) -> Iterator[Part]:
    run = str(row.get("id") or row["run_id"])
    trace = text_or_none(row.get("trace_id")) or trace or run
    extra = mapping(row.get("extra"))
    yield TracedSpan(
        run,
        trace,
        text_or_none(row.get("parent_run_id")),
        str(row.get("name") or ""),
        loaded(row.get("inputs")),
        loaded(row.get("outputs")),
        short({**mapping(extra.get("metadata")), "name": row.get("name"), "tags": loaded(row.get("tags"))}),
        text_or_none(row.get("error")),
    )
    for name, stats in mapping(row.get("feedback_stats")).items():
        mean = stats.get("avg") if isinstance(stats, Mapping) else None
        if isinstance(mean, (int, float)):
            yield GivenScore(str(name), mean, None, "unknown", trace, run, aggregate=True)
    for child in entries(row.get("child_runs")):
        yield from _run({"parent_run_id": run, **child}, trace)


def _feedback(row: Row) -> GivenScore:
    source = mapping(row.get("feedback_source")).get("type", row.get("feedback_source.type"))
    return GivenScore(
        str(row["key"]),
        _value(row.get("score"), row.get("value")),
        text_or_none(row.get("comment")),
        SOURCES.get(str(source), "unknown"),
        text_or_none(row.get("trace_id")),
        text_or_none(row["run_id"]),
        id=text_or_none(row.get("id")),
    )


def _value(score: Any, value: Any) -> bool | float | str | None:
    """A label that is understood, else the score, else what there is."""
    if isinstance(value, str) and value.strip().casefold() in MEANINGS:
        return value
    if (found := number(score)) is not None:
        return found
    return value if isinstance(value, (bool, int, float, str)) and value != "" else None
