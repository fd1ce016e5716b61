"""What a worker of a Ray cluster does, and how a pool shares out requests, without Ray."""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from askance import __version__
from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.ray_pool import NodeWorker, RayPool, _from_there, _Worker
from askance.models.resolve import Models
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


class PretendRay(type(sys)):  # type: ignore[misc]
    """As much of Ray as a pool needs: actors on this event loop, each call a task that ends with an error when killed."""

    class RayError(Exception):
        """The base of Ray's errors."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = self
        self.actors: list[PretendActor] = []
        self.cancelled: list[Any] = []
        self.closing: list[asyncio.Task[None]] = []

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "here", "NodeManagerAddress": "10.0.0.1", "Alive": True}]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def remote(self, made: Any) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *how: PretendActor(self, made(*how))))

    def kill(self, actor: PretendActor) -> None:
        for future, task in actor.calls:
            if not future.done():
                future.set_exception(self.RayError("the actor died"))
            task.cancel()
        actor.is_dead = True
        self.closing.append(asyncio.create_task(actor.worker.close()))  # its process would be gone

    def cancel(self, call: Any) -> None:
        self.cancelled.append(call)


class PretendActor:
    def __init__(self, ray: PretendRay, worker: NodeWorker) -> None:
        self.ray, self.worker, self.is_dead = ray, worker, False
        self.calls: list[tuple[concurrent.futures.Future[Any], asyncio.Task[None]]] = []
        ray.actors.append(self)

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=partial(self._begin, name))

    def _begin(self, name: str, *given: Any) -> Any:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        async def do() -> None:
            said = await getattr(self.worker, name)(*given)
            if not future.done():
                future.set_result(said)

        if self.is_dead:
            future.set_exception(self.ray.RayError("the actor died"))
        else:
            self.calls.append((future, asyncio.create_task(do())))
        return SimpleNamespace(future=lambda: future)


@asynccontextmanager
async def pool_on(ray: PretendRay, url: str, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> AsyncIterator[Any]:
    """The model ``openai/m`` on two workers of a pretended cluster."""
    monkeypatch.setitem(sys.modules, "ray", ray)
    strategies = type(sys)("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda *_, **__: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    pool = RayPool(url, 10.0, 2, said.append)
    async with Models(api_base=url, reach=pool.reach) as models:
        yield models.get("openai/m")
        await pool.close()
        await asyncio.gather(*ray.closing)


async def test_a_lost_worker_is_replaced_once_and_its_calls_may_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, said = PretendRay(), list[str]()
    with StandInServer(lambda _: "Yes", delay=0.1) as server:
        async with pool_on(ray, server.url, monkeypatch, said) as model:
            asked = [asyncio.create_task(model.answer(request(f"text {n}"))) for n in range(6)]
            await asyncio.sleep(0.05)
            ray.kill(ray.actors[0])
            found = await asyncio.gather(*asked, return_exceptions=True)
            lost = [each for each in found if isinstance(each, ModelError)]
            assert lost and all(each.retry and not each.fatal for each in lost)
            assert {each.text for each in found if isinstance(each, Answer)} <= {"Yes"}
            assert len(ray.actors) == 3 and len(said) == 1
            again = await asyncio.gather(*(model.answer(request(f"text {n}")) for n in range(6)))
            assert {each.text for each in again} == {"Yes"}


async def test_workers_that_are_lost_again_and_again_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, said = PretendRay(), list[str]()
    with StandInServer(lambda _: "Yes") as server:
        async with pool_on(ray, server.url, monkeypatch, said) as model:
            errors = []
            for number in range(20):
                call = asyncio.create_task(model.answer(request(f"text {number}")))
                await asyncio.sleep(0)
                for actor in [*ray.actors]:
                    ray.kill(actor)
                errors += await asyncio.gather(call, return_exceptions=True)
            assert says(errors[-1], "workers", "ended", "10.0.0.1") and not isinstance(errors[-1], ModelError)


async def test_a_call_that_nobody_waits_for_is_cancelled_on_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = PretendRay()
    with StandInServer(lambda _: "Yes", delay=0.2) as server:
        async with pool_on(ray, server.url, monkeypatch, []) as model:
            call = asyncio.create_task(model.answer(request("text")))
            await asyncio.sleep(0.1)
            call.cancel()
            assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)
            assert len(ray.cancelled) == 1
