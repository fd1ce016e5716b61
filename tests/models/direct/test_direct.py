from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from math import log
from typing import Any

import pytest

from askance.models.base import Answer, ModelError, make_request
from askance.models.direct import (
    DirectModel,
    read_logprobs,
)
from askance.testing import StandInServer, completion

from .conftest import FULL, KEY, PLAIN, Script, ask, ask_server, error_from, make, reply


async def test_the_whole_request_is_sent_with_the_key() -> None:
    found, server = await ask_server(lambda body: 0.9, FULL)
    body, headers = server.bodies[0], server.headers[0]
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "é\ud800"}]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m", 9, 0.0, 7)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert found == Answer("Yes", (("Yes", (("Yes", round(log(0.9), 4)), ("No", round(log(0.1), 4)))),), 0, 1, None)


async def test_optional_fields_are_not_sent_unasked() -> None:
    _, server = await ask_server(lambda body: "x")
    assert set(server.bodies[0]) == {"model", "messages", "max_tokens", "temperature"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "Y"}, {"type": "text", "text": "es"}], "Yes"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "No"}], "No"),
        ([], ""),
        ({"type": "text", "text": "Yes"}, "Yes"),
        ([{"type": "output_text", "text": "Yes"}], "Yes"),
        ({"answer": "no", "explanation": "é"}, '{"answer": "no", "explanation": "é"}'),
    ],
)
async def test_content_may_be_null_in_parts_or_an_object(content: Any, text: str) -> None:
    found, _ = await ask_server(lambda body: reply(content=content))
    assert isinstance(found, Answer)
    assert found.text == text


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -1000, "completion_tokens": 10**30},
        {"prompt_tokens": "many", "completion_tokens": [3]},
        {"prompt_tokens": float("inf")},
        [1],
        "3 tokens",
    ],
)
async def test_usage_may_be_missing_or_no_number(usage: Any) -> None:
    found, _ = await ask_server(lambda body: (200, {"choices": [{"message": {"content": "x"}}], "usage": usage}))
    assert found == Answer("x", cost_usd=None)


async def test_usage_may_be_a_decimal_in_a_text() -> None:
    usage = {"prompt_tokens": "12.0", "completion_tokens": "3.0"}
    found, _ = await ask_server(lambda body: (200, {"choices": [{"message": {"content": "x"}}], "usage": usage}))
    assert isinstance(found, Answer)
    assert (found.prompt_tokens, found.completion_tokens) == (12, 3)


async def test_an_answer_that_was_cut_off_says_so() -> None:
    found, _ = await ask_server(lambda body: reply(finish_reason="length"))
    assert isinstance(found, Answer)
    assert found.finish == "length"


def test_logprobs_that_cannot_be_used_are_none_and_null_is_left_out() -> None:
    def content(*values: Any) -> dict[str, Any]:
        top = [{"token": f"yes{'.' * place}", "logprob": value} for place, value in enumerate(values)]
        return {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": top}]}

    assert read_logprobs(content(-0.12345, None)) == (("yes", (("yes", -0.1235),)),)
    assert read_logprobs(None) is read_logprobs({}) is read_logprobs({"content": []}) is None
    for said in ({"token": "yes", "logprob": -0.4}, {"token": "yes", "logprob": -0.4, "top_logprobs": []}):
        assert read_logprobs({"content": [said]}) is None, "P(yes) would be 1, whatever the model thinks of no"
    for bad in (float("nan"), 3.0, float("inf"), 0.0947, "high", [1]):
        assert read_logprobs(content(-0.1, bad)) is None, "the verdict is then the word"
    assert read_logprobs(content("-0.5", -2)) == (("yes", (("yes", -0.5), ("yes.", -2.0))),)


def refusing(*fields: str, message: str = "Unsupported parameter: '{}'", status: int = 400) -> Script:
    """An endpoint that names the first of these fields that it is sent."""

    def script(body: Mapping[str, Any]) -> Any:
        bad = next((field for field in fields if field in body), None)
        if bad:
            return status, {"error": {"message": message.format(bad)}}
        return 200, completion(body, 0.9 if body.get("logprobs") else "Yes")

    return script


@pytest.mark.parametrize("field", ["response_format", "logprobs", "top_logprobs", "max_tokens", "temperature", "seed"])
async def test_a_refused_field_is_left_out_from_then_on(field: str) -> None:
    with StandInServer(refusing(field)) as server:
        model = make(server.url)
        answers = [await ask(model, FULL) for _ in range(3)]
        await model.close()
    assert [answer.text for answer in answers] == ["Yes"] * 3
    assert [field in body for body in server.bodies] == [True, False, False, False]
    if field == "max_tokens":
        assert server.bodies[-1]["max_completion_tokens"] == 9
    if "logprobs" in field:
        assert answers[0].logprobs is None
        assert not {"logprobs", "top_logprobs"} & set(server.bodies[-1])


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "You are not allowed to request logprobs from this model"),
        (400, "Logprobs is not enabled for models/m"),
    ],
)
async def test_log_probabilities_may_be_refused_in_the_words_of_openai_and_google(status: int, message: str) -> None:
    found, server = await ask_server(refusing("logprobs", message=message, status=status), FULL)
    assert isinstance(found, Answer) and found.logprobs is None
    assert [sorted({"logprobs", "seed"} & set(body)) for body in server.bodies] == [["logprobs", "seed"], ["seed"]]


@pytest.mark.parametrize(
    "message",
    [
        "Requested sample logprobs of 20, which is greater than max allowed: 5",
        "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 5, but got 20 instead.",
        "top_logprobs: Input should be less than or equal to 5",
        "top_logprobs must be between 0 and 5, not 20",
        "Invalid top_logprobs value, the valid range of top_logprobs is [0, 5]",
    ],
)
async def test_of_an_endpoint_that_gives_fewer_alternatives_fewer_are_asked_for(message: str) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        if body["top_logprobs"] > 5:
            return 400, {"error": {"message": message}}
        return 200, completion(body, 0.9)

    with StandInServer(script) as server:
        model = make(server.url)
        answers = [await ask(model, replace(FULL, top_logprobs=20)) for _ in range(2)]
        await model.close()
    assert all(answer.logprobs is not None for answer in answers)
    assert [body["top_logprobs"] for body in server.bodies] == [20, 5, 5]


async def test_an_endpoint_may_refuse_everything_optional() -> None:
    fields = ("response_format", "logprobs", "max_tokens", "temperature", "seed")
    found, server = await ask_server(refusing(*fields), FULL)
    assert isinstance(found, Answer)
    assert set(server.bodies[-1]) == {"model", "messages", "max_completion_tokens"}


async def test_nothing_is_learnt_from_a_refusal_that_has_another_cause() -> None:
    """The endpoint's words name a field and say "support", but what it cannot take is this one long text."""

    def script(body: Mapping[str, Any]) -> Any:
        if "long" in body["messages"][-1]["content"]:
            return 400, {"error": {"message": "logprobs and max_tokens: more than 99 tokens are not supported"}}
        return 200, completion(body, 0.9)

    with StandInServer(script) as server:
        model = make(server.url)
        with pytest.raises(ModelError, match="not supported"):
            await model.answer(make_request("i", [("user", "long")], FULL))
        answer = await ask(model, FULL)
        await model.close()
    assert answer.logprobs is not None
    assert "max_tokens" in server.bodies[-1]


async def test_a_refusal_of_everything_ends() -> None:
    error = await error_from(
        lambda body: (400, "seed temperature max_tokens logprobs response_format unsupported"), FULL
    )
    assert error.status == 400


async def test_a_plain_bad_request_is_sent_once() -> None:
    found, server = await ask_server(lambda body: (400, "your max_tokens are too many"), FULL)
    assert isinstance(found, ModelError)
    assert len(server.bodies) == 1


async def test_a_server_that_starts_late_is_started_when_the_first_answer_is_bought() -> None:
    starts: list[int] = []
    with StandInServer(lambda body: "Yes") as server:

        async def start() -> str:
            starts.append(1)
            await asyncio.sleep(0)
            return server.url + "/"

        model = DirectModel("local/m", "m", start, identity="i")
        assert not starts
        answers = await asyncio.gather(*(ask(model) for _ in range(5)))
        await model.close()
        await model.close()
    assert [answer.text for answer in answers] == ["Yes"] * 5
    assert "Authorization" not in server.headers[0]


def test_the_body_is_json_whatever_is_in_the_texts() -> None:
    body = make("http://x")._body(make_request("i", [("user", "\ud800\u2028\x00")], PLAIN))
    assert json.loads(json.dumps(body).encode()) == body


def events(*events: Any, end: str = "data: [DONE]\n\n") -> tuple[int, str]:
    return 200, "".join(f"data: {json.dumps(each)}\n\n" for each in events) + end


def delta(finish: str | None = None, logprobs: Any = None, **said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish, "logprobs": logprobs}]}


async def test_a_reply_that_comes_as_a_stream_is_read() -> None:
    top = [{"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": -2.4}]
    spoken = {"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]}
    status, body = events(
        delta(role="assistant", content=""),
        delta(content="Yes", logprobs=spoken),
        delta(content=", it is.", finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}},
    )
    found, _ = await ask_server(lambda _: (status, ": PROCESSING\n\n" + body), FULL)
    assert isinstance(found, Answer)
    assert (found.text, found.prompt_tokens, found.completion_tokens, found.finish) == ("Yes, it is.", 7, 4, "stop")
    assert found.logprobs == (("Yes", (("Yes", -0.1), ("No", -2.4))),)


@pytest.mark.parametrize(
    "reply",
    [
        events(delta(content="yes")),
        events(delta(content="yes", finish="stop"), end=""),
        (200, 'event: message\ndata: {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}\n\n'),
    ],
)
async def test_a_stream_is_whole_where_it_says_that_it_ends(reply: Any) -> None:
    found, _ = await ask_server(lambda _: reply)
    assert isinstance(found, Answer)
    assert found.text == "yes"


async def test_what_a_model_thought_in_a_stream_is_no_part_of_its_answer() -> None:
    found, _ = await ask_server(
        lambda _: events(delta(reasoning_content="No, no."), delta(content="Yes", finish="stop"))
    )
    assert isinstance(found, Answer)
    assert found.text == "Yes"


@pytest.mark.parametrize("reply", [events(delta(content="ye"), end=""), (200, 'data: {"choices": [{"del')])
async def test_a_stream_that_breaks_off_is_worth_another_try(reply: Any) -> None:
    error = await error_from(lambda _: reply)
    assert "breaks off" in str(error) and error.retry


async def test_an_error_in_a_stream_is_one() -> None:
    said = {"error": {"message": "upstream is overloaded", "code": 503}}
    error = await error_from(lambda _: events(delta(content="Y"), said))
    assert "upstream is overloaded" in str(error) and error.retry


async def test_what_is_refused_inside_200_is_learned() -> None:
    def script(body: Mapping[str, Any]) -> Any:
        if "response_format" in body:
            return 200, {"error": {"message": "Invalid schema for response_format", "code": 400}}
        return 200, completion(body, "Yes")

    found, server = await ask_server(script, FULL)
    assert isinstance(found, Answer)
    assert ["response_format" in body for body in server.bodies] == [True, False]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "slow down", "code": "rate_limit_exceeded"}, 429),
        ({"message": "slow down", "type": "overloaded_error"}, 503),
        ({"message": "slow down", "status": 502}, 502),
    ],
)
async def test_an_error_inside_200_may_name_its_kind_in_words(error: Any, status: int) -> None:
    found = await error_from(lambda _: (200, {"error": error, "choices": None}))
    assert (found.status, found.retry) == (status, True)
