"""MLflow: traces as JSON, of the command line, and the data frame of a search; assessments of people and of judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance import import_traces
from tests.said import naming


def assessment(name: str, source: str = "HUMAN", **fields: Any) -> dict[str, Any]:
    return {
        "assessment_id": "a-1",
        "assessment_name": name,
        "trace_id": "tr-1",
        "source": {"source_type": source, "source_id": "ana@example.org"},
        "create_time": "2026-03-01T10:00:00Z",
        "valid": True,
    } | fields


def span(name: str, number: str, parent: str | None, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {
        "trace_id": "tr-1",
        "span_id": number,
        "parent_span_id": parent,
        "name": name,
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {
            "mlflow.traceRequestId": json.dumps("tr-1"),
            "mlflow.spanType": json.dumps("CHAIN"),
            "mlflow.spanInputs": json.dumps(inputs),
            "mlflow.spanOutputs": json.dumps(outputs),
        },
    }


def trace(*assessments: dict[str, Any]) -> dict[str, Any]:
    return {
        "info": {
            "trace_id": "tr-1",
            "trace_location": {"type": "MLFLOW_EXPERIMENT"},
            "request_time": "2026-03-01T10:00:00Z",
            "request_preview": '{"question": "Where is',
            "state": "OK",
            "tags": {"mlflow.traceName": "answer"},
            "assessments": list(assessments),
        },
        "data": {
            "spans": [
                span("answer", "s1", None, {"question": "Where is my parcel?"}, "It comes on Monday."),
                span("llm", "s2", "s1", {"messages": [{"role": "user", "content": "Q"}], "n": 1}, {"text": "A"}),
            ]
        },
    }


GIVEN = [
    assessment("correct", feedback={"value": False}, rationale="It was Tuesday."),
    assessment("correct", feedback={"value": True}),
    assessment("old", feedback={"value": True}, valid=False),
    assessment("safe", "LLM_JUDGE", feedback={"value": "yes"}, rationale="No harm."),
    assessment("tone", feedback={"value": 4}, span_id="s2"),
    assessment("expected_response", expectation={"value": "It comes on Tuesday."}),
]


@pytest.mark.parametrize("wrapped", [True, False])
def test_people_s_feedback_and_expectation_come_with_the_root(write: Any, wrapped: bool) -> None:
    found = import_traces(write("t.json", {"traces": [trace(*GIVEN)]} if wrapped else trace(*GIVEN)))
    [row] = found.rows
    assert (row["id"], row["input"], row["output"]) == ("tr-1", "Where is my parcel?", "It comes on Monday.")
    assert row["human"] == {"correct": [False, True]}
    assert row["comment"] == {"correct": "It was Tuesday."}
    assert row["reference"] == "It comes on Tuesday."
    assert found.format == "mlflow"
    assert any("are a program's: safe (1)" in note for note in found.notes)


def test_a_span_has_its_own_feedback(write: Any) -> None:
    [row] = import_traces(write("t.jsonl", [trace(*GIVEN)]), span="llm").rows
    assert (row["input"], row["output"], row["human"]) == ("Q", "A", {"tone": 4})
    assert "reference" not in row


def test_feedback_stays_in_its_trace_where_another_one_has_a_span_of_the_same_id(write: Any) -> None:
    traces = []
    for name, value in (("tr-1", True), ("tr-2", False)):
        one = trace(assessment("right", span_id="s1", assessment_id=name, feedback={"value": value}))
        traces.append({**one, "info": {**one["info"], "trace_id": name}})
    found = import_traces(write("traces.jsonl", traces))
    assert {row["id"]: row["human"] for row in found.rows} == {"tr-1": {"right": True}, "tr-2": {"right": False}}


def test_names_of_the_python_objects_are_known_too(write: Any) -> None:
    given = {"name": "correct", "source": {"source_type": "HUMAN"}, "feedback": {"value": "no"}, "expectation": None}
    assert import_traces(write("t.json", trace(given))).rows[0]["human"] == {"correct": "no"}


def test_the_data_frame_of_a_search(write: Any, tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    one = trace(*GIVEN)
    row = {"trace_id": "tr-1", "trace": json.dumps(one), "state": "OK", "request": {"question": "Where is my parcel?"}}
    row |= {"response": "It comes on Monday.", "assessments": one["info"]["assessments"], "spans": one["data"]["spans"]}
    pandas.DataFrame([row]).to_csv(tmp_path / "search.csv", index=False)
    [found] = import_traces(tmp_path / "search.csv").rows
    assert (found["output"], found["human"]) == ("It comes on Monday.", {"correct": [False, True]})
    for name, content in (("search.jsonl", [row]), ("search.json", [row])):
        assert list(import_traces(write(name, content)).rows) == [found]
    older = {
        "request_id": "tr-1",
        "request": '{"question": "Where?"}',
        "response": '"Here."',
        "status": "OK",
        "tags": {},
    }
    [found] = import_traces(write("old.jsonl", [older])).rows
    assert (found["input"], found["output"]) == ("Where?", "Here.")


def test_a_trace_without_its_data_is_no_example(write: Any) -> None:
    from askance.prompts.errors import InputError

    bare = trace() | {"data": {}}
    with pytest.raises(InputError, match=naming("no example", "1 trace", "input")):
        import_traces(write("t.json", bare))
