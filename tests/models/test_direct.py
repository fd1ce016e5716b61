from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from email.utils import formatdate
from math import log
from typing import Any

import pytest

from askance.models.base import Answer, ModelError, Parameters, make_request
from askance.models.direct import (
    DirectModel,
    check_address,
    default_base_url,
    read_logprobs,
    read_retry_after,
    shown_address,
)
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.session import ModelOptions
from askance.prompts.errors import InputError
from askance.testing import FaultyServer, StandInServer, completion

KEY = "sk-very-secret-0123456789"
FULL = Parameters(9, 0.0, 7, 5, {"type": "object"})
PLAIN = Parameters(9)
Script = Callable[[Mapping[str, Any]], Any]


def make(url: str, timeout: float = 5.0) -> DirectModel:
    return DirectModel("openai/m", "m", url, identity="i", api_key=KEY, timeout=timeout)


async def ask(model: DirectModel, parameters: Parameters = PLAIN) -> Answer:
    return await model.answer(make_request("i", [("system", "s"), ("user", "é\ud800")], parameters))


async def ask_server(script: Script, parameters: Parameters = PLAIN) -> tuple[Answer | ModelError, StandInServer]:
    with StandInServer(script) as server:
        model = make(server.url)
        try:
            return await ask(model, parameters), server
        except ModelError as error:
            return error, server
        finally:
            await model.close()


async def error_from(script: Script, parameters: Parameters = PLAIN) -> ModelError:
    found, _ = await ask_server(script, parameters)
    assert isinstance(found, ModelError)
    return found


def reply(**choice: Any) -> tuple[int, Any]:
    message = {"role": "assistant", "content": choice.pop("content", "Yes")}
    return 200, {"choices": [{"message": message} | choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}


# --- what is sent and read ----------------------------------------------------------------------------------------


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
    ],
)
async def test_content_may_be_null_or_in_parts(content: Any, text: str) -> None:
    found, _ = await ask_server(lambda body: reply(content=content))
    assert isinstance(found, Answer)
    assert found.text == text


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}])
async def test_usage_may_be_missing(usage: Any) -> None:
    found, _ = await ask_server(lambda body: (200, {"choices": [{"message": {"content": "x"}}], "usage": usage}))
    assert found == Answer("x", cost_usd=None)


async def test_an_answer_that_was_cut_off_says_so() -> None:
    found, _ = await ask_server(lambda body: reply(finish_reason="length"))
    assert isinstance(found, Answer)
    assert found.finish == "length"


def test_logprobs_that_are_no_numbers_are_refused_and_null_is_left_out() -> None:
    def content(*values: Any) -> dict[str, Any]:
        top = [{"token": f"yes{'.' * place}", "logprob": value} for place, value in enumerate(values)]
        return {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": top}]}

    assert read_logprobs(content(-0.12345, None)) == (("yes", (("yes", -0.1235),)),)
    assert read_logprobs(None) is read_logprobs({}) is read_logprobs({"content": []}) is None
    for bad in (float("nan"), 3.0, float("inf")):
        with pytest.raises(ValueError, match="log-probability"):
            read_logprobs(content(-0.1, bad))


# --- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        "<html>It works!</html>",
        "[]",
        "null",
        '"text"',
        '{"choices": [{}]}',
        '{"choices": ["x"]}',
        '{"choices": [{"message": {"content": 5}}]}',
        '{"choices": [{"message": {"content": ["x"]}}]}',
        '{"choices": [{"message": {"content": "x"}}], "usage": [1]}',
        '{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": Infinity}}',
        "[" * 100_000,
    ],
)
async def test_a_reply_that_is_no_completion_is_an_error_that_shows_it(payload: str) -> None:
    error = await error_from(lambda body: (200, payload))
    assert "openai/m: the endpoint's reply is not an OpenAI chat completion" in str(error)
    assert "--api-base" in str(error)
    assert str(error).endswith(payload[:200])
    assert (error.retry, error.fatal) == (False, False)


@pytest.mark.parametrize("payload", ["", " \n", '{"choices": []}', '{"choices": [{"message": {"content": "Y', "{"])
async def test_a_reply_that_is_empty_or_breaks_off_is_worth_another_try(payload: str) -> None:
    error = await error_from(lambda body: (200, payload))
    assert "openai/m: the endpoint's reply is empty or breaks off" in str(error)
    assert (error.retry, error.fatal) == (True, False)


async def test_replies_that_break_off_are_bought_again_until_one_is_whole() -> None:
    replies = iter([(200, ""), (200, '{"choices": [{"mess'), (200, ""), "done"])
    with StandInServer(lambda body: next(replies)) as server:
        model = make(server.url)
        answer = await Gateway(retry=RetryPolicy(first=0.001)).ask(
            "judge", model, make_request("i", [("user", "x")], PLAIN)
        )
        await model.close()
    assert answer.text == "done"


async def test_a_refusal_in_the_field_of_its_own_is_the_answer() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    found, _ = await ask_server(lambda body: (200, {"choices": [{"message": message}]}))
    assert isinstance(found, Answer)
    assert found.text == message["refusal"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_text_follows_a_redirect(status: int) -> None:
    with StandInServer(lambda body: "yes") as other:
        there = {"Location": f"http://me:secret@{other.url.removeprefix('http://')}/chat/completions"}
        error = await error_from(lambda body: (status, "", there))
    assert other.bodies == []
    assert f"redirects (HTTP {status}) to {other.url}/chat/completions" in str(error)
    assert error.fatal
    assert "secret" not in str(error)


async def test_logprobs_of_a_wrong_form_are_an_error() -> None:
    bad = {"content": [{"token": "yes", "top_logprobs": [{"token": "yes", "logprob": "high"}]}]}
    error = await error_from(lambda body: reply(logprobs=bad), FULL)
    assert "not an OpenAI chat completion" in str(error)


@pytest.mark.parametrize(
    ("error", "retry", "fatal"),
    [
        ({"message": "slow down", "code": 429}, True, False),
        ({"message": "slow down", "code": "503"}, True, False),
        ({"message": "slow down", "code": 401}, False, True),
        ({"message": "slow down"}, False, False),
        ("slow down", False, False),
    ],
)
async def test_an_error_that_comes_with_status_200_is_one(error: Any, retry: bool, fatal: bool) -> None:
    found = await error_from(lambda body: (200, {"error": error}))
    assert "slow down" in str(found)
    assert (found.retry, found.fatal) == (retry, fatal)


@pytest.mark.parametrize(
    ("status", "retry", "fatal", "said"),
    [
        (400, False, False, "HTTP 400: why"),
        (401, False, True, "Check OPENAI_API_KEY"),
        (403, False, True, "Check OPENAI_API_KEY"),
        (404, False, True, "does not know this model or address"),
        (408, True, False, "HTTP 408: why"),
        (429, True, False, "HTTP 429: why"),
        (500, True, False, "HTTP 500: why"),
        (503, True, False, "HTTP 503: why"),
    ],
)
async def test_each_status_is_told_in_a_sentence(status: int, retry: bool, fatal: bool, said: str) -> None:
    error = await error_from(lambda body: (status, {"error": {"message": "why"}}))
    assert said in str(error)
    assert (error.retry, error.fatal, error.status) == (retry, fatal, status)


@pytest.mark.parametrize("body", ["plain words", '{"error": "plain words"}', '{"error": {"message": "plain words"}}'])
async def test_the_endpoints_own_words_are_shown_in_whatever_form(body: str) -> None:
    assert "plain words" in str(await error_from(lambda _: (400, body)))
    assert "no message" in str(await error_from(lambda _: (400, "")))


async def test_an_endpoint_that_hangs_is_left_after_the_time_limit() -> None:
    with StandInServer(lambda body: "late", delay=30) as server:
        model = make(server.url, timeout=0.1)
        start = time.monotonic()
        with pytest.raises(ModelError) as caught:
            await ask(model)
        await model.close()
    assert time.monotonic() - start < 3
    assert str(caught.value) == f"openai/m: no answer within 0.1 s from {server.url}."
    assert caught.value.retry


async def test_a_refused_connection_is_worth_another_try() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = make(url)
    with pytest.raises(ModelError, match="cannot reach") as caught:
        await ask(model)
    await model.close()
    assert caught.value.retry


async def test_an_address_that_is_none_ends_the_run() -> None:
    model = make("http://")
    with pytest.raises(ModelError, match="no usable address") as caught:
        await ask(model)
    await model.close()
    assert caught.value.fatal


async def test_the_wish_to_wait_is_read_from_the_header_and_honoured() -> None:
    replies = iter([(429, {"error": {"message": "busy"}}, {"Retry-After": "0.2"}), "done"])
    with StandInServer(lambda body: next(replies)) as server:
        model = make(server.url)
        start = time.monotonic()
        gateway = Gateway(retry=RetryPolicy(first=0.001))
        answer = await gateway.ask("judge", model, make_request("i", [("user", "x")], PLAIN))
        await model.close()
    assert answer.text == "done"
    assert time.monotonic() - start >= 0.2


def test_retry_after_is_seconds_or_a_date() -> None:
    assert read_retry_after("2.5") == 2.5
    assert read_retry_after("-1") == 0
    soon = read_retry_after(formatdate(time.time() + 100, usegmt=True))
    assert soon is not None
    assert 97 < soon < 101
    assert read_retry_after(formatdate(0, usegmt=True)) == 0
    for nothing in (None, "", "soon", "inf", "nan", "Mon, 99 Xxx 2026"):
        assert read_retry_after(nothing) is None


def test_a_date_to_wait_for_counts_from_the_clock_that_it_is_of() -> None:
    wrong = time.time() + 40 * 86_400
    said, until = (formatdate(wrong + seconds, usegmt=True) for seconds in (0, 30))
    assert read_retry_after(until, said) == 30
    assert read_retry_after("7", said) == 7
    unsure = read_retry_after(until, "no date")
    assert unsure is not None and unsure > 86_400


@pytest.mark.parametrize("kind", ["200, a page", "200, NULs"])
async def test_a_page_from_an_endpoint_that_has_answered_before_is_a_fault_of_the_moment(kind: str) -> None:
    with FaultyServer(lambda body: "done", share=1.0, kinds=[kind]) as server:
        model = make(server.url)
        with pytest.raises(ModelError, match="Is --api-base right") as first:
            await ask(model)
        server.share = 0
        assert (await ask(model)).text == "done"
        server.share = 1
        with pytest.raises(ModelError) as later:
            await ask(model)
        await model.close()
    assert (first.value.retry, later.value.retry) == (False, True)


# --- what an endpoint refuses is learnt ---------------------------------------------------------------------------


def refusing(*fields: str, message: str = "Unsupported parameter: '{}'") -> Script:
    """An endpoint that names the first of these fields that it is sent."""

    def script(body: Mapping[str, Any]) -> Any:
        bad = next((field for field in fields if field in body), None)
        if bad:
            return 400, {"error": {"message": message.format(bad)}}
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


# --- the key is nobody's business ---------------------------------------------------------------------------------


def everything_said(error: BaseException) -> str:
    """All that a log or a debugger shows of an error: its chain, and the values in it."""
    texts = []
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or each in seen:
            continue
        seen.append(each)
        texts += [str(each), repr(each), repr(each.args), repr(vars(each)), *traceback.format_exception(each)]
        todo += [each.__cause__, each.__context__]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "script",
    [
        lambda body: (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        lambda body: (400, f"headers were Bearer {KEY}"),
        lambda body: (500, "x" * 290 + KEY),
        lambda body: (200, "x" * 190 + KEY),
        lambda body: (200, {"error": KEY}),
        lambda body: time.sleep(0.3) or "late",
    ],
)
async def test_no_error_holds_the_key(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with StandInServer(script) as server:
        model = make(server.url, timeout=0.2)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        await model.close()
    said = everything_said(caught.value) + repr(model) + str(model) + caplog.text
    assert KEY not in said
    assert KEY[:12] not in said


async def test_no_connection_error_holds_the_key() -> None:
    for url in ("http://127.0.0.1:1/v1", "http://", "http://no-such-host.invalid/v1"):
        model = make(url, timeout=2)
        with pytest.raises(ModelError) as caught:
            await ask(model)
        await model.close()
        assert KEY not in everything_said(caught.value)


def test_an_address_is_shown_without_what_may_be_a_secret() -> None:
    assert shown_address("https://user:pass@host:8000/v1?key=abc#x") == "https://host:8000/v1"
    assert shown_address("http://host/v1") == "http://host/v1"
    assert shown_address("http://[x]/v1") == "http://[x]/v1"
    for address in (
        "http://me:se/cret@host/v1",
        "http://me:se?cret@host/v1",
        "http://me:se#cret@host",
        "http://h?k=se@cret",
    ):
        assert "se" not in shown_address(address) and "cret" not in shown_address(address), address


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://me:secret@host/v1", "holds no user's name, password or query"),
        ("http://secret@host/v1", "holds no user's name"),
        ("http://host/v1?key=secret", "holds no user's name"),
        ("http://me:secret@[x]/v1", "no usable address"),
        ("http://me:se/secret@host/v1", "no usable address"),
        ("http://[x]/v1", r"--api-base http://\[x\]/v1: this is no usable address"),
        ("http://host:99999/v1", "no usable address"),
        ("http:///v1", "no usable address"),
        ("http://a b/v1", "no usable address"),
        ("localhost:8000", "begins with http"),
        ("ftp://me:secret@host", "begins with http"),
    ],
)
def test_an_address_that_cannot_be_kept_or_used_is_refused_and_no_password_shown(address: str, said: str) -> None:
    for refuse in (check_address, lambda given: ModelOptions(api_base=given)):
        with pytest.raises(InputError, match=said) as caught:
            refuse(address)
        assert "secret" not in everything_said(caught.value)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8000/v1", "https://[::1]:8000/v1", "https://host.example/a-b/v1/"]
)
def test_an_address_that_can_be_used_is_given_back(address: str) -> None:
    assert check_address(address) == address


# --- connections --------------------------------------------------------------------------------------------------


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


def test_the_base_url_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://here/v1")
    assert default_base_url() == "http://here/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert default_base_url() == "https://api.openai.com/v1"


def test_the_body_is_json_whatever_is_in_the_texts() -> None:
    body = make("http://x")._body(make_request("i", [("user", "\ud800\u2028\x00")], PLAIN), ())
    assert json.loads(json.dumps(body).encode()) == body
