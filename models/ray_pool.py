"""Models asked by workers on the machines of a Ray cluster. Everything else stays in the command's own process.

The gateway in the command's process does the rest for all workers together: store, caps, concurrency and retries. A
worker only asks. If it is killed, its open requests are lost and the gateway asks them again. Ray itself repeats
nothing (``max_restarts`` and ``max_task_retries`` are 0), because repetitions that the gateway does not see would be
paid for without being counted.

Requests on one example go to one worker, so that its model reads the example once. A new example goes to the worker
with the fewest calls under way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..prompts.errors import AskanceError, InputError, import_optional
from ..prompts.formatting import count
from .base import Answer, Model, ModelError, Request
from .named import NamedModel
from .resolve import Models

logger = logging.getLogger(__name__)


class NodeWorker:
    """The models of a command on a worker's machine, with this machine's keys, files and embedded servers."""

    def __init__(self, api_base: str | None, timeout: float, named: Mapping[str, NamedModel] | None = None) -> None:
        """Take the arguments of :class:`~askance.models.resolve.Models`."""
        self._models = Models(api_base=api_base, timeout=timeout, named=named)

    async def open(self, version: str) -> AskanceError | None:
        """Get ready for a command of askance ``version``. Returns an error if this machine has another version."""
        if version != __version__:
            return InputError(f"askance {__version__} is installed there, and {version} here. Install the same on all.")
        await self._models.__aenter__()
        return None

    async def ask(self, name: str, identity: str, request: Request) -> Answer | AskanceError:
        """Ask the model with this name and identity once. A failure is returned, so that it arrives unchanged."""
        try:
            model = self._models.get(name)
            if model.identity != identity:
                raise InputError(f"{name} is another model there ({model.identity}) than here ({identity}).")
            return await model.answer(request)
        except AskanceError as error:
            return error
        except Exception as error:  # Ray's log of this worker has the traceback
            logger.exception("a call failed")
            return AskanceError(f"{name}: {type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close connections and embedded servers."""
        await self._models.__aexit__(None, None, None)


IN_LINE = 256  # calls to embedded models that are sent at once, so that each worker always has one to go on with
MOST_CALLS = 1000  # most calls that a worker has under way
KNOWN_HERE = (
    *("thinking_room", "first_room", "template_may_think", "takes_images", "takes_tools"),
    *("max_concurrency", "requests_per_minute", "tokens_per_minute"),
)
"""Attributes of a model on the cluster that the gateway in this process needs."""
EXAMPLES = 10_000  # number of examples whose worker is remembered
REACHED_WITHIN = 10.0  # seconds for a cluster to take a connection
OPENS_WITHIN = 180.0  # seconds that a worker may take to start
CLOSES_WITHIN = 10.0  # seconds that it may take to end
LOSSES = 3  # the run stops after more losses than this per worker, without any answer in between
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": ".*"}
"""Environment of Ray: no usage reports to its makers, and no log lines among the results on standard output."""
LOGS = "/tmp/ray/session_latest/logs"  # folder of the logs of Ray's own processes


@dataclass(eq=False)
class _Worker:
    """A worker, from the command's side."""

    actor: Any
    node: dict[str, Any]
    is_first_there: bool
    """Whether this is the first worker on its machine. Only the first one has an embedded model: two models would
    compete for the processors."""
    opening: asyncio.Task[AskanceError | None]  # its start; the result says why it cannot be used, or is None
    under_way: int = 0
    refused: AskanceError | None = None  # why it cannot be replaced after it was lost

    @property
    def place(self) -> str:
        return str(self.node.get("NodeManagerAddress") or self.node["NodeID"])


class RayPool:
    """The workers of one command, started when the first answer is bought."""

    def __init__(
        self,
        api_base: str | None,
        timeout: float,
        workers: int | None,
        say: Callable[[str], None] | None,
        named: Mapping[str, NamedModel] | None = None,
    ) -> None:
        """Set up a pool; nothing is started. ``workers`` None is one for each machine; ``say`` gets messages about lost
        ones. Workers reach ``api_base`` themselves, with the keys of their machine. Raises MissingExtraError without
        Ray."""
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        self._ray = import_optional("ray", "ray", "ray")
        self._how = (api_base, timeout, dict(named or {}))
        self._wanted = workers
        self._say = say or (lambda _: None)
        self._workers: list[_Worker] = []
        self._with: dict[str, _Worker] = {}  # the worker that last had an example, by the beginning of its requests
        self._lost = 0
        self._is_ours = False

    def reach(self, model: Model) -> RayModel:
        """Return a model that asks ``model`` on the workers."""
        return RayModel(model, self)

    async def ask(self, name: str, identity: str, request: Request, *, once_a_node: bool) -> Answer:
        """Ask a worker; with ``once_a_node``, only the first of a machine. Raises ModelError without a usable answer,
        or if the worker ended meanwhile, and AskanceError if no worker can be used, or they end again and again."""
        worker = self._choose(request.prefix, once_a_node)
        call: Any = None
        answer: Any = worker.refused
        worker.under_way += 1
        try:
            answer = answer or await asyncio.shield(worker.opening)
            if answer is None:
                call = worker.actor.ask.remote(name, identity, request)
                answer = await _reply(call)
                self._lost = 0
        except asyncio.CancelledError:
            if call is not None:
                self._ray.cancel(call)
            raise
        except self._ray.exceptions.RayError as error:
            answer = worker.refused or self._after_loss(worker, f"{error}".strip().partition("\n")[0])
        finally:
            worker.under_way -= 1
        if isinstance(answer, Answer):
            return answer
        raise answer if isinstance(answer, ModelError) else _from_there(worker, answer)

    async def close(self) -> None:
        """End the workers, and Ray if this process started it."""
        workers, self._workers = self._workers, []
        opened = [each for each in workers if each.opening.done() and not each.opening.cancelled()]
        for worker in workers:
            worker.opening.cancel()
        # await these tasks first: they ask Ray, which may be gone afterwards
        await asyncio.gather(*(worker.opening for worker in workers), return_exceptions=True)
        closing = [asyncio.wrap_future(worker.actor.close.remote().future()) for worker in opened]
        if closing:
            await asyncio.wait(closing, timeout=CLOSES_WITHIN)
        for worker in workers:
            self._ray.kill(worker.actor)
        if self._is_ours:
            self._ray.shutdown()
            self._is_ours = False

    # --- who is asked -------------------------------------------------------------------------------------------------

    def _choose(self, example: str, once_a_node: bool) -> _Worker:
        if not self._workers:
            self._start()
        there = [each for each in self._workers if each.is_first_there or not once_a_node]
        had = self._with.pop(example, None) if example else None
        chosen = had if had in there else min(there, key=lambda each: (not each.opening.done(), each.under_way))
        assert chosen is not None
        if example:
            self._with[example] = chosen
            if len(self._with) > EXAMPLES:
                del self._with[next(iter(self._with))]
        return chosen

    # --- workers come and go ------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._connect()
        nodes = self._nodes()
        for number in range(self._wanted or len(nodes)):
            self._workers.append(self._new(nodes[number % len(nodes)], number < len(nodes)))

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        address = os.environ.get("RAY_ADDRESS", "")
        problem = f"The Ray cluster at {address} (RAY_ADDRESS) is not reached" if address else "Ray does not start"
        host, _, port = address.rpartition(":")
        try:
            if port.isdigit() and "/" not in host:  # test the address first: Ray would try for minutes
                socket.create_connection((host, int(port)), REACHED_WITHIN).close()
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray raises all kinds, also Exception itself
            reason = f"{error}".strip().partition("\n")[0].rstrip(".")
            hint = (
                " If it asks for a token: RAY_AUTH_MODE=token."
                if address
                else f" Its own logs are in {LOGS}; `ray stop` forgets a cluster that is gone."
            )
            raise AskanceError(f"{problem}: {reason}.{hint}") from None
        self._is_ours = True

    def _nodes(self) -> list[dict[str, Any]]:
        """Return the cluster's machines that are alive, this one first. Raises AskanceError if there is none."""
        own_id = self._ray.get_runtime_context().get_node_id()
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        if not alive:
            raise AskanceError("The Ray cluster has no machine that is alive (`ray status`).")
        return sorted(alive, key=lambda node: (node["NodeID"] != own_id, node["NodeID"]))

    def _new(self, node: dict[str, Any], is_first_there: bool) -> _Worker:
        strategies = import_optional("ray.util.scheduling_strategies", "ray", "ray")
        actor = self._ray.remote(NodeWorker).options(
            num_cpus=0,  # the worker only waits; the model computes
            max_concurrency=MOST_CALLS,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        made = actor.remote(*self._how)
        return _Worker(made, node, is_first_there, asyncio.get_running_loop().create_task(_opened(made)))

    def _after_loss(self, worker: _Worker, why: str) -> AskanceError:
        """Replace a lost worker, once; return the error for a caller that waited for it."""
        if worker in self._workers:
            self._ray.kill(worker.actor)  # a worker that is only out of reach must not go on buying
            try:
                self._replace(worker, why)
            except AskanceError as hopeless:
                worker.refused = hopeless
        return worker.refused or ModelError(f"A worker on {worker.place} ended before it answered.", retry=True)

    def _replace(self, worker: _Worker, why: str) -> None:
        """Replace a lost worker, or go on without its machine. Raises AskanceError if too many workers are lost."""
        self._lost += 1
        if self._lost > LOSSES * len(self._workers):
            raise AskanceError(
                f"{count(self._lost, 'worker')} ended one after the other without an answer between, so the run stops "
                f"here; what was bought is kept. Ray said: {why} Its own logs are in {LOGS}."
            )
        place = self._workers.index(worker)
        nodes = {node["NodeID"]: node for node in self._nodes()}
        remaining = [other for other in self._workers if other is not worker]
        if worker.node["NodeID"] in nodes:
            self._say(f"A worker on {worker.place} ended; another one takes its place.")
            self._workers[place] = self._new(worker.node, worker.is_first_there)
        elif any(other.is_first_there for other in remaining):
            self._workers = remaining
            self._say(f"The machine {worker.place} is gone; {count(len(remaining), 'worker')} left.")
        else:
            new = self._workers[place] = self._new(next(iter(nodes.values())), worker.is_first_there)
            self._say(f"The machine {worker.place} is gone; its worker starts anew on {new.place}.")


class RayModel:
    """A model of :class:`~askance.models.resolve.Models`, asked on the workers of a cluster."""

    def __init__(self, model: Model, pool: RayPool) -> None:
        """Copy the facts about ``model``: its name, price and limits. The model in this process is not asked."""
        self.name, self.identity = model.name, model.identity
        self.price = getattr(model, "price", None)
        self.repeats_itself: bool = getattr(model, "repeats_itself", False)
        self.gathers = IN_LINE if hasattr(model, "slots") else 0
        for name in KNOWN_HERE:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self._pool = pool

    async def answer(self, request: Request) -> Answer:
        """Ask once. Raises as :meth:`RayPool.ask`."""
        return await self._pool.ask(self.name, self.identity, request, once_a_node=self.gathers > 0)


async def _opened(actor: Any) -> AskanceError | None:
    """Wait until a worker has started; return why it cannot be used."""
    try:
        refused: AskanceError | None = await asyncio.wait_for(_reply(actor.open.remote(__version__)), OPENS_WITHIN)
    except TimeoutError:
        return AskanceError(f"the worker did not start within {OPENS_WITHIN:.0f} s.")
    return refused


async def _reply(message: Any) -> Any:
    """Await an actor's reply. Cancelling stops only the waiting, not the actor's method."""
    return await asyncio.wrap_future(message.future())


def _from_there(worker: _Worker, error: AskanceError) -> AskanceError:
    """Return an error that ends the run and names the machine it comes from."""
    kind = InputError if error.exit_code == InputError.exit_code else AskanceError
    return kind(f"On {worker.place}: {error}")
