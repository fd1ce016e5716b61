"""Langfuse: exported tables, a trace's JSON, answers of the API, blob storage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance import import_traces, load_examples
from askance.prompts.errors import InputError
from askance.prompts.human_feedback import Comment
from tests.said import naming, says

TRACE: dict[str, Any] = {
    "id": "t1",
    "timestamp": "2026-03-01T10:00:00.000Z",
    "name": "answer-customer",
    "userId": "u-9",
    "sessionId": "s-1",
    "release": None,
    "version": None,
    "environment": "production",
    "tags": ["web"],
    "bookmarked": False,
    "public": False,
    "input": {"messages": [{"role": "user", "content": "Where is my parcel?"}]},
    "output": {"role": "assistant", "content": "It comes on Monday."},
    "metadata": {"shop": "Bonn"},
}
"""A row of the exported table of traces, without what is counted (latency, cost, tokens)."""
OBSERVATION: dict[str, Any] = {
    "id": "o1",
    "traceId": "t1",
    "type": "GENERATION",
    "name": "draft",
    "startTime": "2026-03-01T10:00:00.100Z",
    "parentObservationId": None,
    "level": "DEFAULT",
    "statusMessage": None,
    "model": "small-1",
    "input": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is my parcel?"}],
    "output": {"role": "assistant", "content": "On Monday, I think."},
}


def score(**fields: Any) -> dict[str, Any]:
    basis = {"id": "sc", "traceId": "t1", "observationId": None, "name": "helpful", "source": "ANNOTATION"}
    basis |= {"dataType": "NUMERIC", "value": 1, "stringValue": None, "comment": None}
    return basis | {"timestamp": "2026-03-02T10:00:00.000Z"} | fields


def test_scores_and_comments_of_a_field_map_stand_beside_those_of_people(write: Any) -> None:
    metadata = {"stars": "4", "note": "Late.", "why": "Curt.", "rated": {"tone": 2}}
    given = TRACE | {"metadata": metadata, "scores": [score(value=5, comment="Too vague.")], "observations": []}
    path = write("t.json", given)

    def row(**fields: Any) -> Any:
        found = import_traces(path, fields={name.replace("_", "."): place for name, place in fields.items()})
        assert len(load_examples(found.rows)) == 1
        return found.rows[0]

    both = row(human_helpful="metadata.stars", human_tone="metadata.rated.tone", comment="metadata.note")
    assert both["human"] == {"helpful": [4, 5], "tone": 2}
    assert both["comment"] == ["Late.", {"helpful": "Too vague."}]
    about = row(comment="metadata.note", comment_tone="metadata.why", human="metadata.rated")
    assert load_examples([about])[0].comment == (
        Comment("Late."),
        Comment("Curt.", "tone"),
        Comment("Too vague.", "helpful"),
    )
    assert about["human"] == {"tone": 2, "helpful": 5}
    for field in ("human", "metadata"):
        with pytest.raises(InputError, match=naming(field, "t1", "metadata.stars")):
            row(**{field: "metadata.stars"})


def test_a_trace_of_the_api_with_its_observations_and_scores(write: Any) -> None:
    scores = [
        score(dataType="BOOLEAN", value=0, stringValue="False", comment="Too vague."),
        score(dataType="CATEGORICAL", name="tone", value=0, stringValue="good"),
        score(name="tone", source="EVAL", value=0.3),
        score(name="thumbs", source="API"),
        score(name="draft-quality", observationId="o1"),
    ]
    found = import_traces(write("t.json", TRACE | {"observations": [OBSERVATION], "scores": scores, "htmlPath": "/t"}))
    [row] = found.rows
    assert (row["id"], row["input"], row["output"]) == ("t1", "Where is my parcel?", "It comes on Monday.")
    assert row["human"] == {"helpful": False, "tone": "good"}
    assert row["comment"] == {"helpful": "Too vague."}
    assert row["metadata"] == {"shop": "Bonn", "name": "answer-customer", "tags": ["web"], "session": "s-1"} | {
        "span": "answer-customer"
    }
    said = " ".join(found.notes)
    assert found.format == "langfuse"
    assert "Of people: 2 scores, 1 comment." in said
    assert says(said, "thumbs (1)", "--score NAME")
    assert "are a program's: tone (1)" in said
    assert says(said, "1", "other spans")


def test_another_span_has_its_own_texts_and_scores(write: Any) -> None:
    whole = {"trace": TRACE, "observations": [OBSERVATION], "scores": [score(), score(observationId="o1", value=4)]}
    [row] = import_traces(write("trace-t1.json", whole), span="draft").rows
    assert row["input"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Where is my parcel?"},
    ]
    assert row["output"] == "On Monday, I think."
    assert row["human"] == {"helpful": 4}


def test_an_exported_table_has_scores_in_columns_that_say_no_source(write: Any) -> None:
    path = write("traces.json", [TRACE | {"helpful": [1, 0], "tone": ["good"], "comments": []}, TRACE | {"id": "t2"}])
    found = import_traces(path)
    assert [row["id"] for row in found.rows] == ["t1", "t2"] and "human" not in found.rows[0]
    assert any("helpful (2), tone (1); --score NAME" in note for note in found.notes)
    assert import_traces(path, scores=["helpful"]).rows[0]["human"] == {"helpful": [1, 0]}


def test_the_same_table_as_csv(write: Any) -> None:
    head = "id,timestamp,name,userId,sessionId,tags,bookmarked,input,output,metadata,helpful\n"
    line = 't1,2026-03-01T10:00:00Z,a,u,s,[],false,"{""question"": ""Where?""}",It comes.,"{""shop"": ""Bonn""}",[1]\n'
    [row] = import_traces(write("traces.csv", head + line), scores=["helpful"]).rows
    assert (row["input"], row["output"], row["human"]) == ("Where?", "It comes.", {"helpful": 1.0})
    assert row["metadata"]["shop"] == "Bonn"


def test_comments_on_an_exported_trace_are_people_s(write: Any) -> None:
    comment = {"id": "c", "content": "Wrong day.", "author_user_id": "u", "created_at": "2026-03-02T10:00:00Z"}
    [row] = import_traces(write("traces.jsonl", [TRACE | {"comments": [comment]}])).rows
    assert row["comment"] == "Wrong day."


def test_blob_storage_has_snake_case_and_a_file_of_each_kind(write: Any) -> None:
    trace = {"id": "t1", "timestamp": "2026-03-01 10:00:00", "name": "a", "user_id": "u", "session_id": "s"}
    trace |= {"project_id": "p", "tags": [], "input": "Where?", "output": "Here."}
    given = {
        "id": "sc",
        "trace_id": "t1",
        "observation_id": None,
        "name": "helpful",
        "value": 2,
        "source": "ANNOTATION",
    }
    given |= {"comment": None, "data_type": "NUMERIC", "string_value": None}
    found = import_traces([write("traces.jsonl", [trace]), write("scores.jsonl", [given])])
    assert found.rows[0]["human"] == {"helpful": 2}


def test_a_remark_is_a_comment_and_a_correction_the_reference_not_a_score(write: Any) -> None:
    remark = score(id="s2", name="note", dataType="TEXT", value=0, stringValue="Too short.", comment=None)
    better = score(id="s3", name="output", dataType="CORRECTION", value=0, stringValue="On Monday.", comment=None)
    found = import_traces(write("t.json", TRACE | {"scores": [remark, better]}))
    assert found.rows[0]["comment"] == {"note": "Too short."} and found.rows[0]["reference"] == "On Monday."
    assert "human" not in found.rows[0]
    by_model = import_traces(write("m.json", TRACE | {"scores": [better | {"source": "EVAL"}]}))
    assert "reference" not in by_model.rows[0] and "human" not in by_model.rows[0]
    on_root = better | {"traceId": OBSERVATION["traceId"], "observationId": OBSERVATION["id"]}
    found = import_traces([write("o.jsonl", [OBSERVATION]), write("s.jsonl", [on_root])])
    assert found.rows[0]["reference"] == "On Monday."


def test_scores_in_a_table_are_numbers(write: Any) -> None:
    table = "id,trace_id,name,value,source,data_type,string_value\n"
    table += "s1,t1,stars,4,ANNOTATION,NUMERIC,\ns2,t1,good,1,ANNOTATION,BOOLEAN,True\n"
    found = import_traces([write("t.json", TRACE), write("scores.csv", table)])
    assert found.rows[0]["human"] == {"stars": 4, "good": True}


def test_a_page_of_observations_without_their_traces(write: Any) -> None:
    child = OBSERVATION | {"id": "o2", "parentObservationId": "o1", "output": "inner"}
    failed = OBSERVATION | {"id": "o3", "traceId": "t3", "output": None, "level": "ERROR", "statusMessage": "timeout"}
    found = import_traces(write("page.json", {"data": [OBSERVATION, child, failed], "meta": {"cursor": None}}))
    assert [row["output"] for row in found.rows] == ["On Monday, I think."]
    assert [note for note in found.notes if says(note, "1 trace", "error", "output")]


def test_what_comes_out_is_an_examples_file(write: Any, tmp_path: Any) -> None:
    found = import_traces(write("t.json", TRACE | {"scores": [score(dataType="BOOLEAN", value=1, comment="Fine.")]}))
    (tmp_path / "examples.jsonl").write_text(found.to_jsonl(), encoding="utf-8")
    [example] = load_examples(tmp_path / "examples.jsonl")
    assert example.human == {"helpful": (True,)} and example.comment[0].text == "Fine."


def test_texts_that_went_through_json_twice_lose_their_marks(tmp_path: Path) -> None:
    both = [
        {"id": "1", "input": '"{\\"question\\": \\"Where?\\"}"', "output": '"In \\"Bonn\\".\\nYes"'},
        {"id": "2", "input": '{"q": "Who?"}', "output": "null"},
        {"id": "3", "input": "Say yes in marks.", "output": '"Yes"'},
        {"id": "4", "input": {"q": "Yes in marks?"}, "output": '"Yes"'},
    ]
    path = tmp_path / "traces.json"
    path.write_text(
        json.dumps([{"timestamp": "2026-03-01", "name": "a", "sessionId": "s", "tags": [], **row} for row in both])
    )
    found = import_traces(path)
    texts = {row["id"]: (row["input"], row["output"]) for row in found.rows}
    assert texts == {
        "1": ("Where?", 'In "Bonn".\nYes'),
        "3": ("Say yes in marks.", '"Yes"'),
        "4": ("Yes in marks?", '"Yes"'),
    }
    assert any("without an output" in note for note in found.notes)
