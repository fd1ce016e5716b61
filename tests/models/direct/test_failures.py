from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

import pytest

from askance.models.base import Answer, ModelError, make_request
from askance.models.gateway import Gateway, RetryPolicy
from askance.testing import StandInServer
from tests.doubles import FaultyServer
from tests.said import naming, says

from .conftest import FULL, PLAIN, ask, ask_server, error_from, make, reply


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
        "[" * 100_000,
    ],
)
async def test_a_reply_that_is_no_completion_is_an_error_that_shows_it(payload: str) -> None:
    error = await error_from(lambda body: (200, payload))
    assert says(error, "openai/m", "chat completion")
    assert "--api-base" in str(error)
    assert str(error).endswith(payload[:200])
    assert (error.retry, error.fatal) == (False, False)


@pytest.mark.parametrize("payload", ["", " \n", '{"choices": []}', '{"choices": [{"message": {"content": "Y', "{"])
async def test_a_reply_that_is_empty_or_breaks_off_is_worth_another_try(payload: str) -> None:
    error = await error_from(lambda body: (200, payload))
    assert says(error, "openai/m", "empty", "breaks off")
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


@pytest.mark.parametrize("url", ["", "/v1/chat/completions"])
async def test_an_address_without_v1_or_with_too_much_is_told_how_it_ends(url: str) -> None:
    with StandInServer(lambda body: "yes") as server:
        model = make(server.url.removesuffix("/v1") + url)
        with pytest.raises(ModelError, match=naming("--api-base", "/v1")):
            await ask(model)
        await model.close()


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


@pytest.mark.parametrize("logprob", ["high", 0.0947, None, {}])
async def test_a_reply_whose_logprobs_cannot_be_used_is_its_words(logprob: Any) -> None:
    bad = {"content": [{"token": "yes", "top_logprobs": [{"token": "yes", "logprob": logprob}, {"token": "no"}]}]}
    found, _ = await ask_server(lambda body: reply(logprobs=bad), FULL)
    assert isinstance(found, Answer)
    assert (found.text, found.logprobs) == ("Yes", None)


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
    ("choice", "said", "retry"),
    [
        ({"finish_reason": "error"}, "the endpoint broke its answer off", True),
        ({"finish_reason": "error", "error": "plain words"}, "(finish_reason error): plain words.", True),
        ({"finish_reason": "error", "error": {"message": "overloaded", "code": 502}}, "HTTP 502: overloaded", True),
        ({"finish_reason": "stop", "error": {"message": "too long", "code": 400}}, "HTTP 400: too long", False),
    ],
)
async def test_an_answer_that_the_endpoint_could_not_finish_is_none(
    choice: dict[str, Any], said: str, retry: bool
) -> None:
    """As those in front of other endpoints send it, with status 200 and what there is of the answer."""
    error = await error_from(lambda body: reply(content="Y", **choice))
    assert said in str(error)
    assert (error.retry, error.fatal) == (retry, False)


@pytest.mark.parametrize(
    ("status", "retry", "fatal", "said"),
    [
        (400, False, False, "HTTP 400: why"),
        (401, False, True, "Check OPENAI_API_KEY"),
        (402, False, True, "too little money left (HTTP 402: why)"),
        (403, False, True, "Check OPENAI_API_KEY"),
        (404, False, True, "does not know this model or address"),
        (408, True, False, "HTTP 408: why"),
        (429, True, False, "HTTP 429: why"),
        (500, True, False, "HTTP 500: why"),
        (503, True, False, "HTTP 503: why"),
        (520, True, False, "HTTP 520: why"),
        (524, True, False, "HTTP 524: why"),
        (525, True, False, "HTTP 525: why"),
    ],
)
async def test_each_status_is_told_in_a_sentence(status: int, retry: bool, fatal: bool, said: str) -> None:
    error = await error_from(lambda body: (status, {"error": {"message": "why"}}))
    assert said in str(error)
    assert (error.retry, error.fatal, error.status) == (retry, fatal, status)


@pytest.mark.parametrize(
    "body",
    [
        "plain words",
        '{"error": "plain words"}',
        '{"error": {"message": "plain words"}}',
        '{"error": {"message": {"detail": "plain words"}}}',
        '{"error": {"message": ["plain words"]}}',
        '{"error": {"message": 5, "code": "plain words"}}',
        '{"error": {"message": null, "code": "plain words"}}',
        '{"error": null, "detail": "plain words"}',
    ],
)
async def test_the_endpoints_own_words_are_shown_in_whatever_form(body: str) -> None:
    assert "plain words" in str(await error_from(lambda _: (400, body)))
    assert "plain words" in str(await error_from(lambda _: (503, body)))
    assert "no message" in str(await error_from(lambda _: (400, "")))


async def test_an_endpoint_that_hangs_is_left_after_the_time_limit() -> None:
    with StandInServer(lambda body: "late", delay=30) as server:
        model = make(server.url, timeout=0.1)
        start = time.monotonic()
        with pytest.raises(ModelError) as caught:
            await ask(model)
        await model.close()
    assert time.monotonic() - start < 3
    assert says(caught.value, "openai/m", "no answer", "0.1 s", server.url)
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


@pytest.mark.parametrize("kind", ["200, a page", "200, NULs"])
async def test_a_page_from_an_endpoint_that_has_answered_before_is_a_fault_of_the_moment(kind: str) -> None:
    with FaultyServer(lambda body: "done", share=1.0, kinds=[kind]) as server:
        model = make(server.url)
        with pytest.raises(ModelError, match=naming("--api-base")) as first:
            await ask(model)
        server.share = 0
        assert (await ask(model)).text == "done"
        server.share = 1
        with pytest.raises(ModelError) as later:
            await ask(model)
        await model.close()
    assert (first.value.retry, later.value.retry) == (False, True)


@pytest.mark.parametrize(("idle", "connections"), [(5.0, 1), (0.02, 2)])
async def test_a_connection_that_was_idle_for_long_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch, idle: float, connections: int
) -> None:
    monkeypatch.setattr("askance.models.direct.IDLE_SECONDS", idle)
    payload = json.dumps(reply()[1]).encode()
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            await reader.readexactly(int(head.split(b"content-length:")[1].split()[0]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(payload), payload))
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    model = make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    await ask(model)
    await asyncio.sleep(0.2)
    await ask(model)
    await model.close()
    server.close()
    assert opened == connections
