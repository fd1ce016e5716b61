"""OpenAI: batches, stored completions, responses, logged pairs, and messages as for fine-tuning."""

from __future__ import annotations

from typing import Any

import pytest

from askance import import_traces
from askance.prompts.errors import InputError
from tests.said import naming, says

ASKED = {"model": "m", "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}]}


def completion(text: str | None = "Here.", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choices = [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}]
    return {"id": "chatcmpl-A1", "object": "chat.completion", "model": "m-1", "created": 1, "choices": choices} | fields


def test_a_batch_is_put_together_from_its_two_files(write: Any) -> None:
    requests = [
        {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": ASKED} for name in ("q1", "q2")
    ]
    answer = {"id": "b", "custom_id": "q1", "response": {"status_code": 200, "body": completion()}, "error": None}
    failed = {"id": "b", "custom_id": "q2", "response": {"status_code": 429, "body": {}}, "error": None}
    found = import_traces([write("in.jsonl", requests), write("out.jsonl", [answer, failed])])
    [row] = found.rows
    assert (row["id"], row["input"], row["output"]) == (
        "q1",
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}],
        "Here.",
    )
    assert row["metadata"] == {"model": "m-1"}
    assert [note for note in found.notes if says(note, "1 trace", "error", "output")]
    with pytest.raises(InputError, match=naming("no example", "trace", "input")):
        import_traces(write("out.jsonl", [answer]))


def test_stored_completions_with_their_messages(write: Any) -> None:
    stored = {"object": "list", "data": [completion(metadata={"shop": "Bonn"})], "has_more": False}
    messages = {
        "object": "list",
        "data": [{"id": f"chatcmpl-A1-{place}", **message} for place, message in enumerate(ASKED["messages"])],
    }
    [row] = import_traces([write("completions.json", stored), write("messages.json", messages)]).rows
    assert (row["id"], row["input"]) == (
        "chatcmpl-A1",
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}],
    )
    assert row["metadata"] == {"shop": "Bonn", "model": "m-1"}


@pytest.mark.parametrize(("asked", "answered"), [("request", "response"), ("input", "output")])
def test_requests_logged_with_their_responses(write: Any, asked: str, answered: str) -> None:
    log = {"id": "log-1", asked: ASKED, answered: completion(), "metadata": {"rating": "5"}}
    [row] = import_traces(write("log.jsonl", [log]), fields={"human.overall": "metadata.rating"}).rows
    assert (row["id"], row["output"], row["human"]) == ("log-1", "Here.", {"overall": 5.0})


def test_responses_of_the_newer_interface(write: Any) -> None:
    made = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]}
    reply = {"id": "resp_1", "object": "response", "instructions": "Be kind.", "input": "Where?", "model": "m"}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    reply |= {"output": [thought, made]}
    cut_off = reply | {"id": "resp_2", "output": [thought], "status": "incomplete"}
    found = import_traces(write("responses.jsonl", [reply, cut_off]))
    [row] = found.rows
    assert (row["input"], row["output"]) == (
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}],
        "Here.",
    )
    assert "Left out: 1 trace without an output." in found.notes


def test_conversations_that_end_with_an_answer(write: Any) -> None:
    said = [*ASKED["messages"], {"role": "assistant", "content": "Here."}]
    found = import_traces(write("tune.jsonl", [{"messages": said}, {"messages": said[:2]}]))
    assert [row["output"] for row in found.rows] == ["Here."]
    assert found.rows[0]["id"].startswith("row-")
    assert "Left out: 1 trace without an output." in found.notes


def test_definitions_of_tools_stay_beside_the_example_wherever_they_were_logged(write: Any) -> None:
    tools = [{"type": "function", "function": {"name": "map", "parameters": {"type": "object"}}}]
    tuned = {"messages": [*ASKED["messages"], {"role": "assistant", "content": "Here."}], "tools": tools}
    logged = {"request": {**ASKED, "tools": tools}, "response": completion()}
    batch = [
        {"custom_id": "q1", "body": {**ASKED, "tools": tools}},
        {"custom_id": "q1", "response": {"status_code": 200, "body": completion()}},
    ]
    run = {
        "id": "r",
        "name": "chain",
        "run_type": "llm",
        "inputs": {**ASKED, "tools": tools},
        "outputs": {"a": "Here."},
    }
    for rows in ([tuned], [logged], batch, [run]):
        [row] = import_traces(write("rows.jsonl", rows)).rows
        assert row["metadata"]["tools"] == tools
