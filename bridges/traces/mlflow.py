"""MLflow: traces as ``Trace.to_dict`` and ``mlflow traces search --output json`` write them, and the data frame of
``mlflow.search_traces`` (CSV, Parquet, JSON).

An assessment's ``source_type`` is ``HUMAN``, ``LLM_JUDGE`` or ``CODE``; its rationale is the comment. The expectation
``expected_response`` is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .spans import GivenReference, GivenScore, Part, Row, TracedSpan, entries, loaded, mapping, short, text_or_none

NAME = "mlflow"
REFERENCES = ("expected_response", "expected_output", "ground_truth")
_INPUTS, _OUTPUTS = "mlflow.spanInputs", "mlflow.spanOutputs"


def parts(row: Row) -> list[Part] | None:
    """What a row holds; None where it is none of MLflow's."""
    if isinstance(row.get("info"), Mapping) and isinstance(row.get("data"), Mapping):
        return list(_trace(row["info"], row["data"]))
    inner = mapping(row.get("trace"))
    if isinstance(inner.get("info"), Mapping) and isinstance(inner.get("data"), Mapping):
        return list(_trace({"assessments": row.get("assessments"), **inner["info"]}, inner["data"]))
    if ("trace_id" in row or "request_id" in row) and "request" in row and "response" in row:
        return list(_trace(row, row))
    return None


def _trace(info: Row, data: Row) -> Iterator[Part]:
    trace = str(info.get("trace_id") or info.get("request_id"))
    metadata = short({"name": mapping(info.get("tags")).get("mlflow.traceName"), "state": info.get("state")})
    spans = [_span(each, trace, metadata) for each in entries(data.get("spans"))]
    asked, answered = (loaded(data.get(name), texts=True) for name in ("request", "response"))
    if spans:
        yield from spans
    else:
        yield TracedSpan(trace, trace, None, "", asked, answered, metadata)
    for each in entries(info.get("assessments")):
        yield from _assessment(each, trace)


def _span(row: Row, trace: str, metadata: Mapping[str, object]) -> TracedSpan:
    attributes, context = mapping(row.get("attributes")), mapping(row.get("context"))
    parent = text_or_none(row.get("parent_span_id")) or text_or_none(row.get("parent_id"))
    status = mapping(row.get("status"))
    code = str(status.get("code") or row.get("status_code") or "")
    return TracedSpan(
        str(row.get("span_id") or context.get("span_id") or row.get("name")),
        trace,
        parent,
        str(row.get("name") or ""),
        loaded(attributes.get(_INPUTS, row.get("inputs")), texts=True),
        loaded(attributes.get(_OUTPUTS, row.get("outputs")), texts=True),
        metadata,
        str(status.get("message") or "error") if code.endswith("ERROR") else None,
    )


def _assessment(row: Row, trace: str) -> Iterator[Part]:
    name = str(row.get("assessment_name") or row.get("name") or "feedback")
    expected = mapping(row.get("expectation")).get("value")
    if isinstance(expected, str) and name in REFERENCES:
        yield GivenReference(trace, expected)
    if "feedback" not in row or row.get("feedback") is None or row.get("valid") is False:
        return  # an expectation, or feedback that was replaced
    value = mapping(row["feedback"]).get("value")
    source = str(mapping(row.get("source")).get("source_type", ""))
    yield GivenScore(
        name,
        value if isinstance(value, (bool, int, float, str)) else None,
        text_or_none(row.get("rationale")),
        "people" if source == "HUMAN" else "model" if source else "unknown",
        trace,
        text_or_none(row.get("span_id")),
        id=text_or_none(row.get("assessment_id")),
    )
