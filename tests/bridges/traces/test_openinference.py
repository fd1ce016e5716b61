"""OpenInference: Phoenix's data frames and API, OTLP as JSON, and OpenTelemetry's own conventions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance import import_traces
from tests.said import says


def api_span(number: str = "s1", parent: str | None = None, **attributes: Any) -> dict[str, Any]:
    return {
        "id": "U3Bhbjox",
        "name": "answer" if parent is None else "llm",
        "context": {"trace_id": "t1", "span_id": number},
        "span_kind": "CHAIN",
        "parent_id": parent,
        "start_time": "2026-03-01T10:00:00Z",
        "status_code": "OK",
        "status_message": "",
        "attributes": {"openinference.span.kind": "CHAIN"} | attributes,
        "events": [],
    }


ROOT = api_span(**{"input.value": "Where is my parcel?", "input.mime_type": "text/plain", "output.value": "On Monday."})
MESSAGES = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be kind.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.text": "Where?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Monday.",
}
CHILD = api_span("s2", "s1", **MESSAGES)


def annotation(**fields: Any) -> dict[str, Any]:
    basis = {"id": "A", "span_id": "s1", "name": "correctness", "annotator_kind": "HUMAN", "metadata": {}}
    return basis | {"result": {"label": "correct", "score": 1.0, "explanation": "As it was."}} | fields


def test_spans_and_annotations_of_the_api(write: Any) -> None:
    given = [
        annotation(),
        annotation(name="tone", result={"label": "bad", "score": 0.0, "explanation": None}),
        annotation(name="kind", result={"label": "polite", "score": None, "explanation": ""}),
        annotation(name="judge", annotator_kind="LLM"),
    ]
    spans = write("spans.json", {"data": [ROOT, CHILD], "next_cursor": None})
    found = import_traces([spans, write("annotations.json", {"data": given, "next_cursor": None})])
    [row] = found.rows
    assert (row["id"], row["input"], row["output"]) == ("t1", "Where is my parcel?", "On Monday.")
    assert row["human"] == {"correctness": 1.0, "tone": "bad", "kind": "polite"}
    assert row["comment"] == {"correctness": "As it was."}
    assert says(found.notes[-1], "--labels good=WORD,bad=WORD", "polite")


def test_messages_stand_for_a_value_that_is_not_there(write: Any) -> None:
    [row] = import_traces(write("spans.json", {"data": [ROOT, CHILD]}), span="llm").rows
    assert (row["input"], row["output"]) == (
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}],
        "Monday.",
    )


def test_the_whole_request_as_a_value_comes_to_its_messages(write: Any) -> None:
    asked = {"messages": [{"role": "user", "content": "Where?"}], "model": "m", "temperature": 0}
    made = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Here."}}], "usage": {}}
    values = {"input.value": json.dumps(asked), "output.value": json.dumps(made)}
    span = api_span(**values, **{"input.mime_type": "application/json", "output.mime_type": "application/json"})
    [row] = import_traces(write("spans.jsonl", [span])).rows
    assert (row["input"], row["output"]) == ("Where?", "Here.")


def test_phoenix_data_frames_as_csv_and_parquet(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    spans = pandas.DataFrame(
        [
            {
                "name": "answer",
                "span_kind": "CHAIN",
                "parent_id": None,
                "status_code": "OK",
                "status_message": "",
                "context.span_id": "s1",
                "context.trace_id": "t1",
                "attributes.input.value": "Where is my parcel?",
                "attributes.output.value": "On Monday.",
                "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Where?"}],
                "attributes.metadata": {"shop": "Bonn"},
            }
        ]
    )
    given = pandas.DataFrame(
        [
            {
                "span_id": "s1",
                "annotation_name": "correctness",
                "annotator_kind": "HUMAN",
                "result.label": "fail",
                "result.score": 0.0,
                "result.explanation": "Wrong day.",
            }
        ]
    )
    spans.to_csv(tmp_path / "spans.csv")
    given.to_csv(tmp_path / "annotations.csv")
    [row] = import_traces([tmp_path / "spans.csv", tmp_path / "annotations.csv"]).rows
    assert (row["output"], row["human"], row["comment"]) == (
        "On Monday.",
        {"correctness": "fail"},
        {"correctness": "Wrong day."},
    )
    assert row["metadata"]["shop"] == "Bonn"
    pytest.importorskip("pyarrow")
    spans.set_index("context.span_id", drop=False).to_parquet(tmp_path / "spans.parquet")
    assert import_traces(tmp_path / "spans.parquet").rows[0]["input"] == "Where is my parcel?"
    stored = {"attributes.input.value": "Straße?".encode(), "attributes.metadata.photo": b"\xff\xd8"}
    spans.drop(columns="attributes.metadata").assign(**stored).to_parquet(tmp_path / "bytes.parquet")
    found = import_traces(tmp_path / "bytes.parquet")
    assert json.loads(found.to_jsonl())["input"] == "Straße?" and found.rows[0]["metadata"]["photo"] == r"\xff\xd8"


def otlp(**span: Any) -> dict[str, Any]:
    basis = {"traceId": "5b8e", "spanId": "eee1", "parentSpanId": "", "name": "chat", "kind": 1, "status": {}}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [basis | span]}]}]}


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def test_otlp_lines_with_the_conventions_of_opentelemetry(write: Any) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]
    parts = [{"type": "reasoning", "content": "Bonn?"}, {"type": "text", "content": "Here."}]
    made = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
    attributes = [
        attribute("gen_ai.input.messages", json.dumps(asked)),
        attribute("gen_ai.output.messages", json.dumps(made)),
    ]
    [row] = import_traces(write("otlp.jsonl", [otlp(attributes=attributes)])).rows
    assert (row["id"], row["input"], row["output"]) == ("5b8e", "Where?", "Here.")


def structured(value: Any) -> dict[str, Any]:
    """A value as OTLP writes it where an attribute is no text."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": structured(each)} for key, each in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [structured(each) for each in value]}}
    return {"stringValue": value}


def test_otlp_with_messages_that_are_no_texts(write: Any) -> None:
    told = {"input": ("user", "Where?"), "output": ("assistant", "Here.")}
    attributes = [
        {
            "key": f"gen_ai.{side}.messages",
            "value": structured([{"role": role, "parts": [{"type": "text", "content": text}]}]),
        }
        for side, (role, text) in told.items()
    ]
    [row] = import_traces(write("otlp.jsonl", [otlp(attributes=attributes)])).rows
    assert (row["input"], row["output"]) == ("Where?", "Here.")


def test_otlp_with_numbered_prompts_and_an_error(write: Any) -> None:
    good = [attribute("gen_ai.prompt.0.role", "user"), attribute("gen_ai.prompt.0.content", "Where?")]
    good += [attribute("gen_ai.completion.0.role", "assistant"), attribute("gen_ai.completion.0.content", "Here.")]
    failed = otlp(traceId="5b8f", attributes=good[:2], status={"code": 2, "message": "timeout"})
    found = import_traces(write("otlp.jsonl", [otlp(attributes=good), failed]))
    assert [row["output"] for row in found.rows] == ["Here."]
    assert [note for note in found.notes if says(note, "1 trace", "error", "output")]


def test_a_table_of_a_model_s_calls_keeps_question_and_score(write: Any) -> None:
    spans = (
        "context.span_id,context.trace_id,name,parent_id,status_code,attributes.input.value,attributes.output.value\n"
    )
    asked = '{""messages"": [{""role"": ""user"", ""content"": ""Where is it?""}], ""model"": ""m""}'
    spans += f'b1,a1,chat,,OK,"{asked}",In the shed.\n'
    said = "span_id,annotation_name,annotator_kind,result.score,result.label,result.explanation\nb1,fit,HUMAN,1.0,correct,Fine.\n"
    found = import_traces([write("spans.csv", spans), write("said.csv", said)])
    assert found.rows[0]["input"] == "Where is it?" and found.rows[0]["human"] == {"fit": 1}
