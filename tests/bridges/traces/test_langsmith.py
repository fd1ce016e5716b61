"""LangSmith: runs, nested runs, feedback, and both through a data frame."""

from __future__ import annotations

import json
from math import nan
from typing import Any

import pytest

from askance import import_traces
from tests.said import says

RUN: dict[str, Any] = {
    "id": "r1",
    "name": "support-chain",
    "run_type": "chain",
    "start_time": "2026-03-01T10:00:00",
    "inputs": {"question": "Where is my parcel?", "chat_history": []},
    "outputs": {"answer": "It comes on Monday.", "documents": [{"page_content": "Monday."}]},
    "error": None,
    "parent_run_id": None,
    "trace_id": "r1",
    "dotted_order": "20260301T100000000000Zr1",
    "extra": {"metadata": {"shop": "Bonn"}},
    "feedback_stats": {"correctness": {"n": 2, "avg": 0.5, "values": {}}, "length": {"n": 1, "avg": 9.0}},
    "tags": ["web"],
}
MESSAGES = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "SystemMessage"], "kwargs": {"content": "Be kind."}},
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "Where?"}},
]  # fmt: skip
CHILD: dict[str, Any] = {
    "id": "r2",
    "name": "ChatOpenAI",
    "run_type": "llm",
    "inputs": {"messages": [MESSAGES]},
    "outputs": {"generations": [[{"text": "On Monday.", "message": {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "On Monday."}}}]]},
    "parent_run_id": "r1",
    "trace_id": "r1",
}  # fmt: skip


def feedback(**fields: Any) -> dict[str, Any]:
    basis = {"id": "f", "run_id": "r1", "key": "correctness", "score": 1.0, "value": None, "comment": None}
    return basis | {"correction": None, "feedback_source": {"type": "app", "metadata": None, "user_id": "u"}} | fields


def test_runs_with_feedback_in_another_file(write: Any) -> None:
    given = [
        feedback(score=0, comment="It was Tuesday."),
        feedback(key="tone", score=None, value="Good"),
        feedback(key="judge", feedback_source={"type": "evaluator"}),
        feedback(key="thumbs", score=True, feedback_source={"type": "api"}),
        feedback(run_id="r9"),
    ]
    found = import_traces(
        [write("runs.jsonl", [RUN, CHILD]), write("feedback.json", given)], fields={"output": "output.answer"}
    )
    [row] = found.rows
    assert (row["input"], row["output"]) == ("Where is my parcel?", "It comes on Monday.")
    assert row["human"] == {"correctness": 0, "tone": "Good"}
    assert row["comment"] == {"correctness": "It was Tuesday."}
    assert row["metadata"] == {"shop": "Bonn", "name": "support-chain", "tags": ["web"], "span": "support-chain"}
    said = " ".join(found.notes)
    assert says(said, "length (1)", "thumbs (1)")  # the mean of correctness is known in full
    assert says(said, "program's", "judge (1)") and says(said, "1 score", "no file")


def test_a_place_in_the_output_and_the_whole_of_it(write: Any) -> None:
    path = write("runs.jsonl", [RUN])
    assert "documents" in import_traces(path).rows[0]["output"]
    fields = {"output": "output.answer", "context": "output.documents.0.page_content", "human.overall": "metadata.none"}
    [row] = import_traces(path, fields=fields).rows
    assert (row["output"], row["context"]) == ("It comes on Monday.", "Monday.") and "human" not in row


def test_a_span_with_serialised_messages(write: Any) -> None:
    [row] = import_traces(write("runs.json", {"runs": [RUN, CHILD]}), span="ChatOpenAI").rows
    assert row["input"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}]
    assert row["output"] == "On Monday."


def test_nested_child_runs_are_spans(write: Any) -> None:
    child = {name: value for name, value in CHILD.items() if name not in ("parent_run_id", "trace_id")}
    path = write("run.json", RUN | {"child_runs": [child]})
    assert import_traces(path, span="ChatOpenAI").rows[0]["id"] == "r1"
    assert len(import_traces(path).rows) == 1


def test_means_alone_are_taken_where_they_are_named(write: Any) -> None:
    [row] = import_traces(write("runs.jsonl", [RUN]), scores=["correctness"]).rows
    assert row["human"] == {"correctness": 0.5}


def test_a_data_frame_as_csv_and_as_parquet(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([RUN, CHILD])
    frame.to_csv(tmp_path / "runs.csv", index=False)  # in which objects stand as Python writes them
    fields = {"output": "output.answer"}
    [row] = import_traces(tmp_path / "runs.csv", fields=fields).rows
    assert (row["input"], row["output"]) == ("Where is my parcel?", "It comes on Monday.")
    pytest.importorskip("pyarrow")
    for name in ("inputs", "outputs", "extra", "feedback_stats"):  # as the bulk export has them
        frame[name] = frame[name].map(json.dumps)
    frame.to_parquet(tmp_path / "runs.parquet")
    assert import_traces(tmp_path / "runs.parquet", fields=fields).rows[0]["output"] == "It comes on Monday."


def test_a_run_that_failed_is_left_out_and_said(write: Any) -> None:
    failed = RUN | {"id": "r5", "trace_id": "r5", "outputs": None, "error": "TimeoutError"}
    found = import_traces(write("runs.jsonl", [RUN, failed]))
    assert len(found.rows) == 1
    assert [note for note in found.notes if says(note, "1 trace", "error", "output")]


def test_feedback_in_a_table_keeps_its_score(write: Any) -> None:
    table = "id,run_id,key,score,value,comment,feedback_source.type\nf1,r1,correctness,0.5,,Late.,app\n"
    found = import_traces([write("runs.jsonl", [RUN]), write("feedback.csv", table)])
    assert found.rows[0]["human"] == {"correctness": 0.5}


def test_what_a_data_frame_has_no_value_for_is_no_id_score_or_comment(write: Any) -> None:
    empty = {"trace_id": nan, "parent_run_id": nan, "error": nan}
    runs = [RUN | empty | {"id": name, "feedback_stats": '{"length": {"n": 0, "avg": NaN}}'} for name in ("r1", "r2")]
    given = {"run_id": "r1", "key": "tone", "feedback_source": {"type": "app"}}
    feedback = [
        {**given, "score": nan, "value": "meh", "comment": nan},
        {**given, "score": nan, "value": None, "comment": "ok"},
    ]
    found = import_traces(write("runs.jsonl", [*runs, *feedback]))
    assert [row["id"] for row in found.rows] == ["r1", "r2"]
    assert (found.rows[0]["human"], found.rows[0]["comment"]) == ({"tone": "meh"}, {"tone": "ok"})
    assert "human" not in found.rows[1]
