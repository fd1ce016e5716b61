"""Readers for exports of Langfuse, LangSmith and MLflow: spans with their scores and comments.

Each ``…_parts`` takes one row of an exported file and returns its parts, or None if another tool wrote the row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .traced_spans import (
    By,
    GivenReference,
    GivenScore,
    Part,
    Row,
    TracedSpan,
    entries,
    given_by,
    label_or_score,
    loaded,
    mapping,
    number,
    scalar,
    short,
    text_or_none,
)

# --- Langfuse -----------------------------------------------------------------------------------------------------
#
# Files: tables exported from its pages (CSV, JSON, JSONL), a trace downloaded as JSON, answers of its API, and its
# files in blob storage (the same fields in snake case). The exported tables have a column for each score, but not its
# author. In a trace's JSON and in the API a score has its ``source``: ``ANNOTATION`` means people in Langfuse, ``EVAL``
# a judge, ``API`` either. A score of the type ``TEXT`` is a comment. People's ``CORRECTION`` of an output is its
# reference.

_LANGFUSE_SOURCES: dict[str, By] = {"ANNOTATION": "people", "EVAL": "model"}
_OF_TRACES = {"sessionId", "userId", "release", "bookmarked", "public", "htmlPath", "tags"}
_OF_OBSERVATIONS = {"parentObservationId", "startTime", "type"}
_OF_SCORES = {"value", "stringValue", "dataType", "source"}
_LISTS = {"tags", "observations", "scores", "comments", "toolCalls", "toolCallNames", "traceTags", "prompts", "events"}
"""Columns whose lists are not scores."""


def langfuse_parts(row: Row) -> list[Part] | None:
    """Return the parts of a Langfuse row."""
    fields = _in_camel_case(row)
    if isinstance(fields.get("trace"), Mapping) and "observations" in fields:
        whole = {**fields["trace"], "observations": fields["observations"]}
        return langfuse_parts({**whole, "scores": fields.get("scores") or whole.get("scores")})
    if "traceId" in fields and len(_OF_SCORES & fields.keys()) > 1 and "input" not in fields:
        return [_langfuse_score(fields)]
    if "traceId" in fields and "id" in fields and _OF_OBSERVATIONS & fields.keys() and "output" in fields:
        return list(_langfuse_observation(fields))
    if {"id", "timestamp", "output"} <= fields.keys() and _OF_TRACES & fields.keys():
        return list(_langfuse_trace(fields))
    return None


def _in_camel_case(row: Row) -> dict[str, Any]:
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), str(name)): value for name, value in row.items()}


def _langfuse_trace(fields: Row) -> Iterator[Part]:
    trace = str(fields["id"])
    about = {"name": fields.get("name"), "tags": loaded(fields.get("tags")), "session": fields.get("sessionId")}
    metadata = short({**mapping(fields.get("metadata")), **about})
    yield TracedSpan(trace, trace, None, str(fields.get("name") or ""), *_langfuse_texts(fields), metadata)
    for observation in entries(fields.get("observations")):
        yield from _langfuse_observation({"traceId": trace, **_in_camel_case(observation)})
    for score in entries(fields.get("scores")):
        yield _langfuse_score({"traceId": trace, **_in_camel_case(score)})
    for comment in entries(fields.get("comments")):
        remark = text_or_none(comment.get("content"))
        yield GivenScore(None, None, remark, "people", trace, None, id=text_or_none(comment.get("id")))
    yield from _score_columns(fields, trace, None)


def _langfuse_texts(fields: Row) -> tuple[Any, Any]:
    """Return input and output. Where both were written as JSON twice, the outer JSON is removed."""
    texts = [fields.get(name) for name in ("input", "output")]
    inner = [_in_json(text) for text in texts]
    both = None not in inner and all(isinstance(text, str) for text in texts)
    asked, answered = (loaded(held[0]) for held in inner if held) if both else map(loaded, texts)
    return asked, answered


def _in_json(value: Any) -> tuple[Any] | None:
    """Return, in a tuple, the text or null in a JSON text, or any other value unchanged; None for invalid JSON."""
    try:
        value_held = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return (value_held,) if value_held is None or isinstance(value_held, str) else (value,)


def _langfuse_observation(fields: Row) -> Iterator[Part]:
    trace, name = str(fields["traceId"]), str(fields["id"])
    parent, title = text_or_none(fields.get("parentObservationId")) or trace, fields.get("name") or fields.get("type")
    model = fields.get("model") or fields.get("providedModelName")
    metadata = short({**mapping(fields.get("metadata")), "model": model})
    problem = str(fields.get("statusMessage") or "error") if fields.get("level") == "ERROR" else None
    yield TracedSpan(name, trace, parent, str(title or ""), *_langfuse_texts(fields), metadata, problem)
    for each in entries(fields.get("scores")):
        yield _langfuse_score({"traceId": trace, "observationId": name, **_in_camel_case(each)})
    yield from _score_columns(fields, trace, name)


def _langfuse_score(fields: Row) -> Part:
    kind, value, words = fields.get("dataType"), fields.get("value"), fields.get("stringValue")
    trace, span = text_or_none(fields.get("traceId")), text_or_none(fields.get("observationId"))
    giver = _LANGFUSE_SOURCES.get(str(fields.get("source")), "unknown")
    if kind == "CORRECTION" and trace is not None and giver == "people" and words:
        return GivenReference(trace, str(words), span)
    name, comment = str(fields.get("name") or "score"), fields.get("comment")
    if kind in ("CORRECTION", "TEXT"):  # no score, but the right output or a remark
        remark = text_or_none(words)
        about = None if kind == "CORRECTION" else str(fields.get("name"))
        return GivenScore(about, None, remark, giver, trace, span, id=text_or_none(fields.get("id")))
    if kind == "BOOLEAN" and number(value) is not None:
        value = bool(number(value))
    elif kind == "NUMERIC":
        value = number(value)
    elif words is not None and (kind == "CATEGORICAL" or value is None):
        value = words
    return GivenScore(name, scalar(value), text_or_none(comment), giver, trace, span, id=text_or_none(fields.get("id")))


def _score_columns(fields: Row, trace: str, span: str | None) -> Iterator[GivenScore]:
    """Yield the scores of an exported table: each score has a column of its own, with a list."""
    for name, value in fields.items():
        score_list = loaded(value)
        if name in _LISTS or not isinstance(score_list, list) or name in ("input", "output", "metadata"):
            continue
        for score in score_list:
            if isinstance(score, (bool, int, float, str)):
                yield GivenScore(name, score, None, "unknown", trace, span)


# --- LangSmith ----------------------------------------------------------------------------------------------------
#
# Files: runs and feedback from its API, its client (``list_runs``, ``list_feedback``, also through a data frame) and
# its bulk export (Parquet); nested ``child_runs`` too. ``feedback_source.type`` is ``app`` for a person's feedback in
# LangSmith, ``evaluator``, ``model`` or ``auto_eval`` for a judge's, and ``api`` for either. ``feedback_stats`` has
# means only, without a source.

_LANGSMITH_SOURCES: dict[str, By] = {"app": "people", "model": "model", "evaluator": "model", "auto_eval": "model"}


def langsmith_parts(row: Row) -> list[Part] | None:
    """Return the parts of a LangSmith row."""
    if "run_type" in row and "inputs" in row and ("id" in row or "run_id" in row):
        return list(_langsmith_run(row))
    if "run_id" in row and "key" in row and ("score" in row or "value" in row):
        return [_langsmith_feedback(row)]
    return None


def _langsmith_run(row: Row, trace: str | None = None) -> Iterator[Part]:
    run = str(row.get("id") or row["run_id"])
    trace = text_or_none(row.get("trace_id")) or trace or run
    about = mapping(mapping(row.get("extra")).get("metadata"))
    metadata = short({**about, "name": row.get("name"), "tags": loaded(row.get("tags"))})
    parent, problem = text_or_none(row.get("parent_run_id")), text_or_none(row.get("error"))
    asked, answered = loaded(row.get("inputs")), loaded(row.get("outputs"))
    yield TracedSpan(run, trace, parent, str(row.get("name") or ""), asked, answered, metadata, problem)
    for name, stats in mapping(row.get("feedback_stats")).items():
        mean = stats.get("avg") if isinstance(stats, Mapping) else None
        if isinstance(mean, (int, float)):
            yield GivenScore(str(name), mean, None, "unknown", trace, run, aggregate=True)
    for child in entries(row.get("child_runs")):
        yield from _langsmith_run({"parent_run_id": run, **child}, trace)


def _langsmith_feedback(row: Row) -> GivenScore:
    source = mapping(row.get("feedback_source")).get("type", row.get("feedback_source.type"))
    by, value = _LANGSMITH_SOURCES.get(str(source), "unknown"), label_or_score(row.get("value"), row.get("score"))
    trace, run = text_or_none(row.get("trace_id")), text_or_none(row["run_id"])
    comment, own_id = text_or_none(row.get("comment")), text_or_none(row.get("id"))
    return GivenScore(str(row["key"]), value, comment, by, trace, run, id=own_id)


# --- MLflow -------------------------------------------------------------------------------------------------------
#
# Files: traces from ``Trace.to_dict`` and ``mlflow traces search --output json``, and the data frame of
# ``mlflow.search_traces`` (CSV, Parquet, JSON). An assessment's ``source_type`` is ``HUMAN``, ``LLM_JUDGE`` or
# ``CODE``; its rationale is the comment. The expectations in ``_MLFLOW_REFERENCES`` are references.

_MLFLOW_REFERENCES = ("expected_response", "expected_output", "ground_truth")
_MLFLOW_INPUTS, _MLFLOW_OUTPUTS = "mlflow.spanInputs", "mlflow.spanOutputs"


def mlflow_parts(row: Row) -> list[Part] | None:
    """Return the parts of an MLflow row."""
    if isinstance(row.get("info"), Mapping) and isinstance(row.get("data"), Mapping):
        return list(_mlflow_trace(row["info"], row["data"]))
    inner = mapping(row.get("trace"))
    if isinstance(inner.get("info"), Mapping) and isinstance(inner.get("data"), Mapping):
        return list(_mlflow_trace({"assessments": row.get("assessments"), **inner["info"]}, inner["data"]))
    if ("trace_id" in row or "request_id" in row) and "request" in row and "response" in row:
        return list(_mlflow_trace(row, row))
    return None


def _mlflow_trace(info: Row, data: Row) -> Iterator[Part]:
    trace = str(info.get("trace_id") or info.get("request_id"))
    metadata = short({"name": mapping(info.get("tags")).get("mlflow.traceName"), "state": info.get("state")})
    spans = [_mlflow_span(span, trace, metadata) for span in entries(data.get("spans"))]
    asked, answered = (loaded(data.get(name), texts=True) for name in ("request", "response"))
    yield from spans or [TracedSpan(trace, trace, None, "", asked, answered, metadata)]
    for assessment in entries(info.get("assessments")):
        yield from _mlflow_assessment(assessment, trace)


def _mlflow_span(row: Row, trace: str, metadata: Mapping[str, object]) -> TracedSpan:
    attributes, context = mapping(row.get("attributes")), mapping(row.get("context"))
    span = str(row.get("span_id") or context.get("span_id") or row.get("name"))
    parent = text_or_none(row.get("parent_span_id")) or text_or_none(row.get("parent_id"))
    status = mapping(row.get("status"))
    code = str(status.get("code") or row.get("status_code") or "")
    problem = str(status.get("message") or "error") if code.endswith("ERROR") else None
    asked = loaded(attributes.get(_MLFLOW_INPUTS, row.get("inputs")), texts=True)
    answered = loaded(attributes.get(_MLFLOW_OUTPUTS, row.get("outputs")), texts=True)
    return TracedSpan(span, trace, parent, str(row.get("name") or ""), asked, answered, metadata, problem)


def _mlflow_assessment(row: Row, trace: str) -> Iterator[Part]:
    name = str(row.get("assessment_name") or row.get("name") or "feedback")
    expected = mapping(row.get("expectation")).get("value")
    if isinstance(expected, str) and name in _MLFLOW_REFERENCES:
        yield GivenReference(trace, expected)
    if "feedback" not in row or row.get("feedback") is None or row.get("valid") is False:
        return  # an expectation, or feedback that was replaced
    value, why = scalar(mapping(row["feedback"]).get("value")), text_or_none(row.get("rationale"))
    by = given_by(str(mapping(row.get("source")).get("source_type", "")))
    span, own_id = text_or_none(row.get("span_id")), text_or_none(row.get("assessment_id"))
    yield GivenScore(name, value, why, by, trace, span, id=own_id)
