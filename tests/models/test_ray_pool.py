"""What a worker of a Ray cluster does, and how a pool shares out requests, without Ray."""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from askance import __version__
from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.ray_pool import NodeWorker, RayPool, _from_there, _Worker
from askance.models.session import ModelOptions, session
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from askance.prompts.prompt import Framing
from askance.testing import ScriptedModel, StandInServer
from tests.said import says

ASKED = Parameters(5, 0.0, 7, 5, {"type": "object", "properties": {"kinds": {"type": "array"}}})


def request(text: str) -> Request:
    return make_request("openai/m", [("system", "Judge."), ("user", text)], ASKED, framing=Framing("Judge.", "", ""))


@asynccontextmanager
async def worker_at(url: str) -> AsyncIterator[tuple[NodeWorker, str]]:
    """A worker, and the identity by which a command knows its model."""
    worker = NodeWorker(url, 10.0)
    assert await worker.open(__version__) is None
    try:
        yield worker, f"openai:{url}:m"
    finally:
        await worker.close()


async def test_calls_are_answered_at_once() -> None:
    with StandInServer(lambda body: body["messages"][-1]["content"].upper(), delay=0.05) as server:
        async with worker_at(server.url) as (worker, identity):
            asked = (worker.ask("openai/m", identity, request(f"text {n}")) for n in range(20))
            found = await asyncio.gather(*asked)
            assert [answer.text for answer in found] == [f"TEXT {n}" for n in range(20)]
    assert len(server.bodies) == 20


async def test_failures_are_outcomes_that_arrive_as_they_are() -> None:
    busy = (429, {"error": {"message": "slow down"}}, {"Retry-After": "3"})
    with StandInServer(lambda _: busy) as server:
        async with worker_at(server.url) as (worker, identity):
            first = await worker.ask("openai/m", identity, request("text"))
            other = await worker.ask("openai/m", "openai:else:m", request("x"))
            unknown = await worker.ask("no-model", "?", request("y"))
            first, other, unknown = pickle.loads(pickle.dumps((first, other, unknown)))
    assert isinstance(first, ModelError)
    assert (first.retry, first.retry_after, first.status) == (True, 3.0, 429) and "slow down" in str(first)
    assert isinstance(other, InputError) and says(other, "another model")
    assert isinstance(unknown, InputError) and says(unknown, "no model name")


async def test_a_package_that_is_missing_on_another_machine_is_said_here(monkeypatch: pytest.MonkeyPatch) -> None:
    async def missing(_: Request) -> Answer:
        raise MissingExtraError("local", "xllamacpp")

    async with worker_at("http://127.0.0.1:9/v1") as (worker, identity):
        monkeypatch.setattr(worker._models.get("openai/m"), "answer", missing)
        found = pickle.loads(pickle.dumps(await worker.ask("openai/m", identity, request("text"))))
    assert isinstance(found, MissingExtraError) and "pip install 'askance[local]'" in str(found)
    said = _from_there(_Worker(None, {"NodeManagerAddress": "10.0.0.2"}, True, Any), found)
    assert isinstance(said, InputError) and str(said).startswith("On 10.0.0.2: This needs the package xllamacpp")


async def test_what_nobody_foresaw_is_a_failure_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Request) -> Answer:
        raise ZeroDivisionError("by zero")

    async with worker_at("http://127.0.0.1:9/v1") as (worker, identity):
        monkeypatch.setattr(worker._models.get("openai/m"), "answer", broken)
        found = await worker.ask("openai/m", identity, request("text"))
    assert type(found) is AskanceError and "ZeroDivisionError: by zero" in str(found)


async def test_a_worker_of_another_version_refuses() -> None:
    refused = await NodeWorker(None, 10.0).open("0.0.1")
    assert isinstance(refused, InputError) and says(refused, "same on all")


async def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'askance\[ray\]'"):
        async with session(ModelOptions(engine="ray"), None):
            pass


async def test_models_on_the_workers_are_given_enough_to_go_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint keeps its own limit of calls; a model that each worker has for itself gets a line of calls."""
    monkeypatch.setitem(sys.modules, "ray", type(sys)("ray"))
    options = ModelOptions(engine="ray", api_base="http://127.0.0.1:9/v1", max_concurrency=3)
    async with session(options, None) as (models, gateway):
        model = models.get("openai/m")
        assert gateway.concurrency(model) == 3 and model.identity == "openai:http://127.0.0.1:9/v1:m"
        own = RayPool("http://127.0.0.1:9/v1", 10.0, None, None).reach(ScriptedModel(lambda _: "Yes", slots=1))
        assert gateway.concurrency(own) == 256


async def test_ray_is_not_ended_while_a_worker_is_still_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, happened = type(sys)("ray"), []
    ray.kill = lambda actor: happened.append(f"killed {actor}")  # type: ignore[attr-defined]
    ray.shutdown = lambda: happened.append("shut down")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)

    async def listening() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            happened.append("listened to the end")

    pool, worker = RayPool(None, 10.0, None, None), _Worker("the actor", {}, True, asyncio.create_task(listening()))
    pool._workers, pool._is_ours = [worker], True
    await asyncio.sleep(0)
    await pool.close()
    assert happened == ["listened to the end", "killed the actor", "shut down"]
