"""Readers for spans in OpenTelemetry's conventions and for logs in OpenAI's forms, whichever tool wrote them.

Each ``…_parts`` takes one row of an exported file and returns its parts, or None if the row has another form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .traced_spans import (
    DEFINITIONS,
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
    named,
    short,
    text_or_none,
)

# --- OpenTelemetry ------------------------------------------------------------------------------------------------
#
# Attributes: OpenInference (Phoenix, Arize) and OpenTelemetry's own conventions for generative AI. Files: Phoenix's
# data frames of spans (``get_spans_dataframe``; CSV, Parquet, JSON) and of annotations
# (``get_span_annotations_dataframe``), its API's answers for both, spans written by the Python SDK, and OTLP as JSON.
# An annotation's ``annotator_kind`` is ``HUMAN``, ``LLM`` or ``CODE``.

_PREFIX = "attributes."
_WHOLE = ("input.value", "output.value")
"""Attributes that :func:`_flat` does not divide; :func:`_value` reads them."""
_OTLP_VALUES = ("stringValue", "boolValue", "intValue", "doubleValue")


def openinference_parts(row: Row) -> list[Part] | None:
    """Return the spans and annotations of a row."""
    if isinstance(row.get("resourceSpans"), list):
        scopes = [scope for resource in entries(row["resourceSpans"]) for scope in entries(resource.get("scopeSpans"))]
        return [_otlp(span) for scope in scopes for span in entries(scope.get("spans"))]
    if "annotator_kind" in row and ("span_id" in row or "context.span_id" in row):
        return [_annotation(row)]
    context = mapping(row.get("context"))
    attributes = _attributes(row)
    span = row.get("context.span_id") or context.get("span_id")
    if not span or not ("attributes" in row or attributes) or "mlflow.spanInputs" in attributes:
        return None
    trace = row.get("context.trace_id") or context.get("trace_id") or span
    status = mapping(row.get("status"))
    code = str(row.get("status_code") or status.get("status_code") or "")
    said = row.get("status_message") or status.get("description")
    problem = str(said or "error") if code.endswith("ERROR") else None
    parent = text_or_none(row.get("parent_id"))
    annotations = [_annotation({"span_id": span, **fields}) for fields in entries(row.get("annotations"))]
    return [_span(str(span), str(trace), parent, row.get("name"), attributes, problem), *annotations]


def _attributes(row: Row) -> dict[str, Any]:
    """Return the attributes under dotted names, however they are nested."""
    columns = {name.removeprefix(_PREFIX): row[name] for name in row if str(name).startswith(_PREFIX)}
    return dict(_flat({**mapping(row.get("attributes")), **{name: loaded(column) for name, column in columns.items()}}))


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if prefix in _WHOLE and value is not None:
        yield prefix, value
    elif isinstance(value, Mapping) and value:
        for name, child in value.items():
            yield from _flat(child, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, list) and value and all(isinstance(child, Mapping) for child in value):
        for number, child in enumerate(value):
            yield from _flat(child, f"{prefix}.{number}")
    elif value is not None:
        yield prefix, value


def _span(span: str, trace: str, parent: str | None, name: Any, attributes: Row, problem: str | None) -> TracedSpan:
    about = {"kind": attributes.get("openinference.span.kind"), "model": attributes.get("llm.model_name")}
    about["session"] = attributes.get("session.id")
    metadata = short({**mapping(attributes.get("metadata")), **_below(attributes, "metadata"), **about})
    input, output = (_value(attributes, side) for side in ("input", "output"))
    return TracedSpan(span, trace, parent, str(name or ""), input, output, metadata, problem)


def _below(attributes: Row, name: str) -> dict[str, Any]:
    """Return an object attribute whose fields are stored under dotted names."""
    return {each.removeprefix(f"{name}."): value for each, value in attributes.items() if each.startswith(f"{name}.")}


def _value(attributes: Row, side: str) -> Any:
    """Return a span's input or output: its value, else its messages, in the conventions of OpenInference or GenAI."""
    value = attributes.get(f"{side}.value")
    if value is not None:
        return loaded(value, texts="json" in str(attributes.get(f"{side}.mime_type", "")))
    if nested := _below(attributes, f"{side}.value"):
        return nested
    semantic = loaded(attributes.get(f"gen_ai.{side}.messages"))
    if isinstance(semantic, list):
        return [_of_parts(each) for each in semantic]
    other = "gen_ai.prompt" if side == "input" else "gen_ai.completion"
    return _numbered(attributes, f"llm.{side}_messages", "message.") or _numbered(attributes, other, "") or None


def _of_parts(message: Any) -> Any:
    """Convert a message of the GenAI conventions, which have ``parts`` instead of ``content``. Any other value is
    returned unchanged."""
    if not isinstance(message, Mapping) or not isinstance(message.get("parts"), list):
        return message
    content = [{**each, "text": each.get("content", each.get("text"))} for each in entries(message["parts"])]
    return {"role": message.get("role", "assistant"), "content": content}


def _numbered(attributes: Row, prefix: str, within: str) -> list[dict[str, Any]]:
    """Return messages that are stored under names such as ``PREFIX.0.message.role``."""
    form = re.compile(
        rf"{re.escape(prefix)}\.(\d+)\.{re.escape(within)}(role|content|contents\.\d+\.message_content\.text)"
    )
    messages: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if match := form.fullmatch(name):
            message = messages.setdefault(int(match[1]), {"role": "assistant", "content": ""})
            field = "role" if match[2] == "role" else "content"
            more = field == "content" and message["content"]
            message[field] = f"{message['content']}\n{value}" if more else value
    return [messages[number] for number in sorted(messages)]


def _annotation(row: Row) -> GivenScore:
    result = mapping(row.get("result"))
    label, score, explanation = (
        result.get(name, row.get(f"result.{name}", row.get(name))) for name in ("label", "score", "explanation")
    )
    name = str(row.get("name") or row.get("annotation_name") or "annotation")
    value, by = label_or_score(label, score), given_by(str(row.get("annotator_kind", "")))
    span = str(row.get("span_id") or row.get("context.span_id"))
    return GivenScore(name, value, text_or_none(explanation), by, None, span, id=text_or_none(row.get("id")))


def _otlp(row: Row) -> TracedSpan:
    attributes = {
        str(each.get("key")): _otlp_value(mapping(each.get("value"))) for each in entries(row.get("attributes"))
    }
    status = mapping(row.get("status"))
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    problem = str(status.get("message") or "error") if failed else None
    parent = text_or_none(row.get("parentSpanId"))
    return _span(str(row.get("spanId")), str(row.get("traceId")), parent, row.get("name"), attributes, problem)


def _otlp_value(value: Row) -> Any:
    if "arrayValue" in value:
        return [_otlp_value(item) for item in entries(mapping(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        held = entries(mapping(value["kvlistValue"]).get("values"))
        return {str(item.get("key")): _otlp_value(mapping(item.get("value"))) for item in held}
    return next((value[name] for name in _OTLP_VALUES if name in value), None)


# --- OpenAI -------------------------------------------------------------------------------------------------------
#
# Files: stored completions and their messages, responses, batches, requests with their responses, and lists of
# messages for fine-tuning. A batch has requests and answers in two files. A stored completion and its messages are in
# two files as well. Give both.

_STORED = re.compile(r"(chatcmpl-\w+)-(\d+)")
_PAIRS = (("request", "response"), ("input", "output"), ("request", "completion"), ("prompt", "completion"))


def openai_parts(row: Row) -> list[Part] | None:
    """Return the exchange in a row."""
    if "custom_id" in row:
        return _batch(row)
    if row.get("object") in ("chat.completion", "response"):
        return [_exchange(str(row.get("id") or named(row)), row, row)]
    stored = _STORED.fullmatch(str(row.get("id")))
    if stored and "role" in row:
        return [TracedSpan(stored[1], stored[1], None, "", [dict(row)], piece=True)]
    for asked, answered in _PAIRS:
        request, response = loaded(row.get(asked)), loaded(row.get(answered))
        if isinstance(request, Mapping) and isinstance(response, Mapping) and _is_body(request, response):
            return [_exchange(str(row.get("id") or response.get("id") or named(row)), request, response, row)]
    messages = loaded(row.get("messages"))
    if isinstance(messages, list) and messages and isinstance(messages[-1], Mapping) and "role" in messages[-1]:
        last = messages[-1] if messages[-1]["role"] == "assistant" else None
        name = str(row.get("id") or named(messages))
        before = messages[:-1] if last else messages
        return [TracedSpan(name, name, None, "", before, last, _metadata(row))]
    return None


def _is_body(request: Row, response: Row) -> bool:
    return ("messages" in request or "input" in request or "prompt" in request) and (
        "choices" in response or response.get("object") in ("chat.completion", "response")
    )


def _batch(row: Row) -> list[Part] | None:
    name = str(row["custom_id"])
    if "body" in row:
        body = mapping(row["body"])
        metadata = short({"model": body.get("model"), **_tools(body)})
        return [TracedSpan(name, name, None, "", _asked(body), None, metadata)]
    if "response" not in row:
        return None
    response = mapping(row["response"])
    body, error = mapping(response.get("body")), mapping(row.get("error"))
    if error or response.get("status_code", 200) >= 400:
        said = str(error.get("message") or mapping(body.get("error")).get("message") or "error")
        return [TracedSpan(name, name, None, "", problem=said)]
    return [_exchange(name, {}, body)]


def _exchange(name: str, request: Row, response: Row, log: Row | None = None) -> TracedSpan:
    metadata = short({**_metadata(response), **_metadata(request), **(_metadata(log) if log else {})})
    model = response.get("model") or request.get("model")
    return TracedSpan(name, name, None, "", _asked(request), _answer(response), {**metadata, **short({"model": model})})


def _metadata(row: Row) -> dict[str, Any]:
    return short({**mapping(row.get("metadata")), **mapping(row.get("tags")), **_tools(row)})


def _tools(row: Row) -> dict[str, Any]:
    """Return the tool definitions of a request."""
    return {name: row[name] for name in DEFINITIONS if isinstance(row.get(name), list)}


def _asked(body: Row) -> Any:
    """Return the request to a model: messages, the input of a response with its instructions, or a prompt."""
    if body.get("messages"):
        return body["messages"]
    input = body.get("input", body.get("prompt"))
    instructions = body.get("instructions")
    if isinstance(instructions, str) and input:
        first = {"role": "system", "content": instructions}
        return [first, *input] if isinstance(input, list) else [first, {"role": "user", "content": input}]
    return input


def _answer(body: Row) -> Any:
    """Return the model's answer: the first choice, or the messages of a response."""
    choices = entries(body.get("choices"))
    if choices:
        return choices[0].get("message", choices[0].get("text"))
    items = entries(body.get("output"))
    messages = [each for each in items if each.get("type") == "message"]
    return messages or [each for each in items if each.get("type") != "reasoning"] or None


# --- OpenAI Evals -------------------------------------------------------------------------------------------------
#
# The log of a run (``oaieval``) has one event a line. ``sampling`` has the question and answer of a model. ``match``,
# ``metrics`` and similar events have the grader's result. Lines about the run itself have no sample.

_OF_RUN = ("spec", "final_report")


def openai_evals_parts(row: Row) -> list[Part] | None:
    """Return the sample or the grades of a log's event."""
    if any(isinstance(row.get(name), Mapping) for name in _OF_RUN) and "sample_id" not in row:
        return []
    if not {"sample_id", "event_id", "type"} <= row.keys():
        return None
    name, data = str(row["sample_id"]), mapping(row.get("data"))
    if row["type"] == "sampling":
        sampled = data.get("sampled")
        answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
        return [TracedSpan(name, name, None, "", data.get("prompt"), answer, short({"run": row.get("run_id")}))]
    expected = data.get("expected")
    said: list[Part] = [GivenReference(name, expected)] if isinstance(expected, str) else []
    scores = {each: value for each, value in data.items() if isinstance(value, (bool, int, float))}
    grades = scores | {each: data[each] for each in ("choice",) if isinstance(data.get(each), str)}
    return said + [GivenScore(each, value, None, "model", name, None) for each, value in grades.items()]
