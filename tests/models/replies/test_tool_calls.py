"""Requests with tools at an OpenAI-compatible endpoint: what is sent, and the calls that come back."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from typing import Any

import pytest

from askance.models.base import Answer, ModelError, Parameters, make_request, message_in, message_said
from askance.models.direct import DirectModel
from askance.models.refusals import takes_no_tools
from askance.testing import StandInServer

TOOLS = ({"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}},)
CALL = {"id": "a1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}


def replied(message: Mapping[str, Any], finish: str = "tool_calls") -> tuple[int, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return 200, {"object": "chat.completion", "choices": [choice], "usage": usage}


async def ask(reply: Any, tools: Any = TOOLS) -> tuple[Answer | ModelError, Mapping[str, Any]]:
    with StandInServer(lambda body: reply) as server:
        model = DirectModel("openai/m", "m", server.url, identity="i")
        try:
            parameters = Parameters(10, tools=tools)
            return await model.answer(make_request("i", [("user", "How warm?")], parameters)), server.bodies[0]
        except ModelError as error:
            return error, server.bodies[0]
        finally:
            await model.close()


async def test_tools_are_sent_and_the_calls_of_the_reply_are_the_answer() -> None:
    answer, body = await ask(replied({"content": None, "tool_calls": [{**CALL, "index": 0}]}))
    assert body["tools"] == [*TOOLS]
    assert isinstance(answer, Answer) and (answer.prompt_tokens, answer.completion_tokens) == (7, 3)
    assert message_in(answer.text) == {"role": "assistant", "content": None, "tool_calls": [CALL]}


async def test_without_tools_none_are_sent_and_the_answer_is_the_text() -> None:
    answer, body = await ask(replied({"content": "Warm."}, "stop"), tools=None)
    assert "tools" not in body
    assert isinstance(answer, Answer) and answer.text == "Warm."


async def test_a_reply_without_calls_is_a_message_and_thinking_is_no_part_of_it() -> None:
    answer, _ = await ask(replied({"content": "<think>\nHm.\n</think>\n\nWarm."}, "stop"))
    assert isinstance(answer, Answer) and answer.reasoning_tokens
    assert message_in(answer.text) == {"role": "assistant", "content": "Warm."}


async def test_a_reply_that_says_nothing_and_calls_nothing_is_empty() -> None:
    answer, _ = await ask(replied({"content": "", "tool_calls": []}, "stop"))
    assert isinstance(answer, Answer) and answer.is_empty


async def test_calls_in_a_stream_are_put_together() -> None:
    pieces: list[Any] = [
        {"tool_calls": [{"index": 0, "id": "a1", "function": {"name": "weather", "arguments": '{"city"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ': "Bonn"}'}}]},
        {"tool_calls": [{"index": 1, "id": "a2", "function": {"name": "weather", "arguments": "{}"}}]},
    ]
    events = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': each}]})}\n\n" for each in pieces]
    answer, _ = await ask((200, "".join([*events, "data: [DONE]\n\n"])))
    assert isinstance(answer, Answer)
    first, second = message_in(answer.text)["tool_calls"]
    assert first == CALL and second["id"] == "a2" and second["function"]["arguments"] == "{}"


REFUSALS = [
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (404, "No endpoints found that support tool use. To learn more about provider routing, visit: https://o.r"),
    (500, "tools param requires --jinja flag"),
    (400, "Tool calling is not supported with this model."),
    (400, "Unrecognized request argument supplied: tools"),
    (422, "Function calling is not enabled for models/m"),
]


@pytest.mark.parametrize(("status", "said"), REFUSALS)
async def test_an_endpoint_that_takes_no_tools_ends_the_command(status: int, said: str) -> None:
    error, _ = await ask((status, {"error": {"message": said}}))
    assert isinstance(error, ModelError) and error.fatal and said[:40] in str(error)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "Invalid schema for function 'weather': 'thing' is not valid under any of the given schemas."),
        (400, "This model's maximum context length is 8192 tokens"),
        (429, "tools are not supported"),
        (500, "internal"),
    ],
)
def test_another_error_is_not_taken_for_a_refusal_of_tools(status: int, said: str) -> None:
    assert not takes_no_tools(status, said)


@pytest.mark.parametrize("text", ["Warm.", '{"city": "Bonn"}', "[1]", ""])
def test_a_text_is_no_message(text: str) -> None:
    with pytest.raises(ValueError, match="no message"):
        message_in(text)


def test_calls_that_are_no_objects_are_refused() -> None:
    for calls in ("weather", ["weather"]):
        with pytest.raises(TypeError):
            message_said("", calls)


@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")
async def test_through_litellm_tools_are_sent_and_calls_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from askance.models.litellm_model import LiteLLMModel

    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with StandInServer(lambda body: replied({"content": None, "tool_calls": [CALL]})) as server:
        model = LiteLLMModel("openai/gpt-4o-mini", more={"api_base": server.url})
        answer = await model.answer(make_request("i", [("user", "How warm?")], Parameters(10, tools=TOOLS)))
        assert server.bodies[0]["tools"] == [*TOOLS]
    assert model.takes_tools and message_in(answer.text)["tool_calls"] == [CALL]
