"""The public test doubles behave like what they stand for."""

from __future__ import annotations

import asyncio
import doctest
import json
import socket
import threading
import urllib.error
import urllib.request
from math import log
from typing import Any

import pytest

from askance.models.base import Answer, ModelError, Parameters, make_request
from askance.models.direct import DirectModel
from askance.models.gateway import Gateway, RetryPolicy
from askance.testing import (
    ScriptedModel,
    StandInServer,
    as_answer,
    completion,
    scripted,
    simulated,
    simulated_judge,
)
from tests.doubles import FAULTS, FINAL, FaultyServer

REQUEST = make_request("m", [("user", "four" * 4)], Parameters(1, top_logprobs=2))


def test_the_example_in_the_docstring_runs() -> None:
    modules = [scripted, simulated, simulated_judge]
    results = [doctest.testmod(module) for module in modules]
    assert all(result.attempted and not result.failed for result in results)


async def test_a_list_of_replies_is_given_out_in_the_order_of_asking_even_when_asked_at_once() -> None:
    model = ScriptedModel(["a", "b", "c"], delay=0.005)
    answers = await asyncio.gather(*(model.answer(REQUEST) for _ in "abc"))
    assert [answer.text for answer in answers] == ["a", "b", "c"]
    assert model.requests == [REQUEST] * 3
    with pytest.raises(IndexError):
        await model.answer(REQUEST)


async def test_an_error_among_the_replies_is_raised() -> None:
    with pytest.raises(ModelError, match="no"):
        await ScriptedModel([ModelError("no")]).answer(REQUEST)


@pytest.mark.parametrize(("reply", "word"), [(0.9, "Yes"), (0.5, "Yes"), (0.1, "No"), (1, "Yes"), (0.0, "No")])
def test_a_probability_is_one_token_with_log_probabilities(reply: float, word: str) -> None:
    answer = as_answer(reply, REQUEST)
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == (word, 4, 1)
    assert answer.logprobs is not None
    assert answer.logprobs[0][0] == word
    if 0 < reply < 1:
        assert dict(answer.logprobs[0][1])["Yes"] == round(log(reply), 4)


def test_log_probabilities_are_given_only_where_asked_for() -> None:
    assert as_answer(0.9, make_request("m", [("user", "x")], Parameters(1))).logprobs is None
    assert as_answer("words", REQUEST).logprobs is None
    whole = Answer("x")
    assert as_answer(whole, REQUEST) is whole


def post(url: str, body: Any) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url}/chat/completions", data, {"Content-Type": "application/json", "X-Who": "me"}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


BODY = {"model": "m", "messages": [{"role": "user", "content": "four" * 4}]}


def test_a_server_answers_as_its_script_says() -> None:
    replies: list[Any] = [
        "words",
        0.25,
        (200, {"own": 1}),
        (418, "teapot"),
        (503, {"error": "x"}, {"Retry-After": "1"}),
    ]
    with StandInServer(lambda body: replies.pop(0)) as server:
        found = [post(server.url, BODY | {"logprobs": True}) for _ in range(5)]
    assert found[0][1] == completion(BODY, "words")
    assert found[1][1]["choices"][0]["logprobs"]["content"][0]["token"] == "No"
    assert found[1][1]["usage"] == {"prompt_tokens": 4, "completion_tokens": 1}
    assert found[2:] == [(200, {"own": 1}), (418, "teapot"), (503, '{"error": "x"}')]
    assert [body["model"] for body in server.bodies] == ["m"] * 5
    assert server.headers[0]["X-Who"] == "me"


def test_a_server_is_gone_after_its_block_even_while_it_is_asked() -> None:
    threads = threading.active_count()
    with StandInServer(lambda body: "late", delay=30) as server:

        def ask() -> None:
            with pytest.raises(OSError):  # noqa: PT011 -- the connection ends, in whatever way
                post(server.url, BODY)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        while not server.bodies:
            threading.Event().wait(0.005)
    asking.join(5)
    assert threading.active_count() == threads
    with pytest.raises(urllib.error.URLError):
        post(server.url, BODY)


def test_two_servers_do_not_disturb_each_other() -> None:
    with StandInServer(lambda body: "one") as one, StandInServer(lambda body: "two") as two:
        texts = [post(server.url, BODY)[1]["choices"][0]["message"]["content"] for server in (one, two)]
    assert texts == ["one", "two"]


NAMES_A_TIME = ("429, Retry-After in seconds", "429, Retry-After as a date")


@pytest.mark.parametrize("kind", NAMES_A_TIME)
async def test_an_endpoint_that_names_a_time_to_wait_is_waited_for_whatever_the_retries(kind: str) -> None:
    with FaultyServer(lambda body: 0.9, share=1.0, kinds=[kind]) as server:
        model = DirectModel("openai/m", "m", server.url, identity="m", timeout=0.3)
        asked = asyncio.create_task(Gateway(retry=RetryPolicy(attempts=1)).ask("judge", model, REQUEST))
        while not server.made:
            await asyncio.sleep(0.01)
        server.share = 0.0
        answer = await asyncio.wait_for(asked, 10)
        await model.close()
    assert answer.text == "Yes" and server.made == {kind: 1} and len(server.answered) == 1


@pytest.mark.parametrize("kind", [each for each in (*FAULTS, *FINAL) if each not in NAMES_A_TIME])
async def test_an_endpoint_fails_as_it_is_told_and_is_well_again(kind: str) -> None:
    with FaultyServer(lambda body: 0.9, share=1.0, kinds=[kind]) as server:
        model = DirectModel("openai/m", "m", server.url, identity="m", timeout=0.3)
        gateway = Gateway(retry=RetryPolicy(attempts=1))
        with pytest.raises(ModelError):
            await gateway.ask("judge", model, REQUEST)
        assert server.made == {kind: 1} and server.answered == []
        server.share = 0.0
        answer = await Gateway(retry=RetryPolicy(first=0.1)).ask("judge", model, REQUEST)
        await model.close()
    assert answer.text == "Yes" and len(server.answered) == 1


async def test_an_endpoint_that_takes_no_connection_refuses_it_and_keeps_its_port() -> None:
    with FaultyServer(lambda body: 0.9, share=1.0, kinds=["refused for a moment"]) as server:
        for _ in range(3):
            with pytest.raises((ConnectionError, urllib.error.URLError, TimeoutError)):
                await asyncio.to_thread(post, server.url, BODY)
            with pytest.raises(urllib.error.URLError, match="refused"):
                await asyncio.to_thread(post, server.url, BODY)
            await asyncio.sleep(0.4)
        server.share = 0.0
        assert (await asyncio.to_thread(post, server.url, BODY))[0] == 200


def test_a_server_that_has_settled_has_taken_in_what_a_dead_process_sent() -> None:
    body = json.dumps({"model": "judge", "messages": [{"role": "user", "content": "x" * 100_000}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with StandInServer(lambda _: 0.5) as server:
        address = ("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
        for times in range(1, 6):
            for _ in range(4):
                with socket.create_connection(address) as sender:
                    sender.sendall((head + body).encode())
            server.settle()
            assert len(server.bodies) == 4 * times
