"""Langfuse: tables exported from its pages (CSV, JSON, JSONL), a trace downloaded as JSON, answers of its API, and what it
writes to blob storage (the same in snake case).

The exported tables have a column for each score, without who gave it; in a trace's JSON and in the API a score has its
``source``: ``ANNOTATION`` is people in Langfuse, ``EVAL`` a judge, ``API`` either. A score of the type ``TEXT`` is a comment, and
people's ``CORRECTION`` of an output its reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .spans import (
    By,
    GivenReference,
    GivenScore,
    Part,
    Row,
    TracedSpan,
    entries,
    loaded,
    mapping,
    number,
    short,
    text_or_none,
)

NAME = "langfuse"
SOURCES: dict[str, By] = {"ANNOTATION": "people", "EVAL": "model"}
_OF_TRACES = {"sessionId", "userId", "release", "bookmarked", "public", "htmlPath", "tags"}
_OF_OBSERVATIONS = {"parentObservationId", "startTime", "type"}
_OF_SCORES = {"value", "stringValue", "dataType", "source"}
_LISTS = {"tags", "observations", "scores", "comments", "toolCalls", "toolCallNames", "traceTags", "prompts", "events"}
"""Columns with lists that are no scores."""


def parts(row: Row) -> list[Part] | None:
    """What a row holds; None where it is none of Langfuse's."""
    fields = _in_camel_case(row)
    if isinstance(fields.get("trace"), Mapping) and "observations" in fields:
        whole = {**fields["trace"], "observations": fields["observations"]}
        return parts({**whole, "scores": fields.get("scores") or whole.get("scores")})
    if "traceId" in fields and len(_OF_SCORES & fields.keys()) > 1 and "input" not in fields:
        return [_score(fields)]
    if "traceId" in fields and "id" in fields and _OF_OBSERVATIONS & fields.keys() and "output" in fields:
        return list(_observation(fields))
    if {"id", "timestamp", "output"} <= fields.keys() and _OF_TRACES & fields.keys():
        return list(_trace(fields))
    return None


def _in_camel_case(row: Row) -> dict[str, Any]:
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), str(name)): value for name, value in row.items()}


def _trace(fields: Row) -> Iterator[Part]:
    trace = str(fields["id"])
    about = {"name": fields.get("name"), "tags": loaded(fields.get("tags")), "session": fields.get("sessionId")}
    yield TracedSpan(
        trace,
        trace,
        None,
        str(fields.get("name") or ""),
        *_texts(fields),
        short({**mapping(fields.get("metadata")), **about}),
    )
    for each in entries(fields.get("observations")):
        yield from _observation({"traceId": trace, **_in_camel_case(each)})
    for each in entries(fields.get("scores")):
        yield _score({"traceId": trace, **_in_camel_case(each)})
    for each in entries(fields.get("comments")):
        yield GivenScore(
            None, None, text_or_none(each.get("content")), "people", trace, None, id=text_or_none(each.get("id"))
        )
    yield from _columns(fields, trace, None)


def _texts(fields: Row) -> tuple[Any, Any]:
    """Input and output, without the quotation marks that they have where both went through JSON twice."""
    given = [fields.get(name) for name in ("input", "output")]
    inner = [_in_json(each) for each in given]
    both = None not in inner and all(isinstance(each, str) for each in given)
    asked, answered = (loaded(each[0]) for each in inner if each) if both else map(loaded, given)
    return asked, answered


def _in_json(value: Any) -> tuple[Any] | None:
    """What a text holds as JSON where that is a text or null, else the text; None where it is no JSON."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return (found,) if found is None or isinstance(found, str) else (value,)


def _observation(fields: Row) -> Iterator[Part]:
    trace, name = str(fields["traceId"]), str(fields["id"])
    failed = fields.get("level") == "ERROR"
    yield TracedSpan(
        name,
        trace,
        text_or_none(fields.get("parentObservationId")) or trace,
        str(fields.get("name") or fields.get("type") or ""),
        *_texts(fields),
        short({**mapping(fields.get("metadata")), "model": fields.get("model") or fields.get("providedModelName")}),
        str(fields.get("statusMessage") or "error") if failed else None,
    )
    for each in entries(fields.get("scores")):
        yield _score({"traceId": trace, "observationId": name, **_in_camel_case(each)})
    yield from _columns(fields, trace, name)


def _score(fields: Row) -> Part:
    kind, value, words = fields.get("dataType"), fields.get("value"), fields.get("stringValue")
    trace, span = text_or_none(fields.get("traceId")), text_or_none(fields.get("observationId"))
    by = SOURCES.get(str(fields.get("source")), "unknown")
    if kind == "CORRECTION" and trace is not None and by == "people" and words:
        return GivenReference(trace, str(words), span)
    if kind in ("CORRECTION", "TEXT"):  # no score: what should stand there, or a remark
        return GivenScore(
            None if kind == "CORRECTION" else str(fields.get("name")),
            None,
            text_or_none(words),
            by,
            trace,
            span,
            id=text_or_none(fields.get("id")),
        )
    if kind == "BOOLEAN" and number(value) is not None:
        value = bool(number(value))
    elif kind == "NUMERIC":
        value = number(value)
    elif kind == "CATEGORICAL" or (value is None and words is not None):
        value = words if words is not None else value
    return GivenScore(
        str(fields.get("name") or "score"),
        value if isinstance(value, (bool, int, float, str)) else None,
        text_or_none(fields.get("comment")),
        by,
        trace,
        span,
        id=text_or_none(fields.get("id")),
    )


def _columns(fields: Row, trace: str, span: str | None) -> Iterator[GivenScore]:
    """The scores of an exported table: columns with lists, one a name."""
    for name, value in fields.items():
        found = loaded(value)
        if name in _LISTS or not isinstance(found, list) or name in ("input", "output", "metadata"):
            continue
        for each in found:
            if isinstance(each, (bool, int, float, str)):
                yield GivenScore(name, each, None, "unknown", trace, span)
