"""Models asked by workers on the machines of a Ray cluster, while everything else stays in the command's own process.

The gateway looks into the store, holds caps and concurrency, retries and keeps what comes back, so all of that holds over
all workers as it does over one. A worker asks, and nothing else: killed, it takes with it what it had under way, which the
gateway asks for again. Ray itself repeats nothing (``max_restarts`` and ``max_task_retries`` are 0), as what it repeats
unseen would be paid for unseen.

Requests on one example go to one worker, so that its model reads the example once; a new example goes where least is
under way.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...prompts.errors import AskanceError, InputError, import_optional
from ..base import ModelError
from ..budget import count, highest_cost
from .node_worker import NodeWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..base import Answer, Model, Request

IN_LINE = 256
"""Calls that models on the workers themselves are given at once, over all of them, however many each answers at a time: so
many that each always has one to go on with."""
EXAMPLES = 10_000
"""So many examples are remembered with the worker that had them."""
OPENS_WITHIN = 180.0
"""Seconds that a worker may take to start."""
CLOSES_WITHIN = 10.0
"""Seconds that it may take to end."""
LOSSES = 3
"""Workers lost for each there is, without any answer between, after which the run stops."""


@dataclass(eq=False)
class _Worker:
    """One worker, as the command sees it."""

    actor: Any
    node: dict[str, Any]
    is_first_there: bool
    """On its machine; that one alone has a model of its own, as two would fight for the same processors."""
    opened: asyncio.Task[None] | None = None
    under_way: int = 0

    @property
    def is_open(self) -> bool:
        return self.opened is not None and self.opened.done()


class RayPool:
    """The workers of one command, started when the first answer is bought."""

    def __init__(
        self, api_base: str | None, timeout: float, workers: int | None, say: Callable[[str], None] | None
    ) -> None:
        """Nothing is started yet.

        Args:
            api_base: As of :class:`~askance.models.resolve.Models`; it is reached from the workers.
            timeout: Seconds of one call.
            workers: How many; None is one for each machine of the cluster.
            say: Told when workers are lost.

        Raises:
            MissingExtraError: Ray is not installed.
        """
        self._ray = import_optional("ray", "ray", "ray")
        self._how = (api_base, timeout)
        self._wanted = workers
        self._say = say or (lambda _: None)
        self._workers: list[_Worker] = []
        self._with: dict[str, _Worker] = {}
        """By the beginning of its requests, who had an example last."""
        self._lost = 0
        self._is_ours = False

    def reach(self, model: Model) -> RayModel:
        """The same model, asked on the workers."""
        return RayModel(model, self)

    async def ask(self, name: str, identity: str, request: Request, *, once_a_node: bool) -> Answer:
        """Ask a worker once; ``once_a_node`` leaves it to the first one of each machine.

        Raises:
            ModelError: No usable answer; also where the worker ended meanwhile, and asking again may help.
            AskanceError: There are no workers, or they end again and again.
        """
        worker = self._choose(request.prefix, once_a_node)
        worker.under_way += 1
        asked = None
        try:
            assert worker.opened is not None
            await asyncio.shield(worker.opened)
            asked = worker.actor.answer.remote(name, identity, request)
            answer: Answer | AskanceError = await asked
        except self._ray.exceptions.RayActorError:
            self._replace(worker)
            raise ModelError(f"{name}: a worker on {_place(worker)} ended before it answered.", retry=True) from None
        except asyncio.CancelledError:
            if asked is not None:
                self._ray.cancel(asked)
            raise
        finally:
            worker.under_way -= 1
        self._lost = 0
        if isinstance(answer, ModelError):
            raise answer
        if isinstance(answer, AskanceError):
            raise _from_there(worker, answer)
        return answer

    async def close(self) -> None:
        """End the workers, and Ray where it was started here."""
        workers, self._workers = self._workers, []
        for each in workers:
            if each.opened is not None:
                each.opened.cancel()
        closing = [each.actor.close.remote() for each in workers if each.is_open]
        if closing:
            with suppress(self._ray.exceptions.RayError, TimeoutError):
                await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), CLOSES_WITHIN)
        for each in workers:
            self._ray.kill(each.actor)
        if self._is_ours:
            self._ray.shutdown()
            self._is_ours = False

    # --- who is asked -------------------------------------------------------------------------------------------------

    def _choose(self, example: str, once_a_node: bool) -> _Worker:
        if not self._workers:
            self._start()
        there = [each for each in self._workers if each.is_first_there or not once_a_node]
        had = self._with.pop(example, None) if example else None
        chosen = had if had in there else min(there, key=lambda each: (not each.is_open, each.under_way))
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
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray raises all kinds, also Exception itself
            where = os.environ.get("RAY_ADDRESS")
            what = f"The Ray cluster at {where} (RAY_ADDRESS) is not reached" if where else "Ray does not start"
            said = f"{error}".strip().partition("\n")[0]
            raise AskanceError(f"{what}: {said} Its own logs are in /tmp/ray/session_latest/logs.") from None
        self._is_ours = True

    def _nodes(self) -> list[dict[str, Any]]:
        """The machines that there are, this one first."""
        here = self._ray.get_runtime_context().get_node_id()
        alive = [each for each in self._ray.nodes() if each["Alive"]]
        if not alive:
            raise AskanceError("The Ray cluster has no machine that is alive (`ray status`).")
        return sorted(alive, key=lambda each: (each["NodeID"] != here, each["NodeID"]))

    def _new(self, node: dict[str, Any], is_first_there: bool) -> _Worker:
        strategies = import_optional("ray.util.scheduling_strategies", "ray", "ray")
        there = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        actor = self._ray.remote(NodeWorker).options(
            num_cpus=0,  # it waits; what computes is the model
            max_concurrency=10_000,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=there,
        )
        worker = _Worker(actor.remote(*self._how), node, is_first_there)
        worker.opened = asyncio.get_running_loop().create_task(self._open(worker))
        return worker

    async def _open(self, worker: _Worker) -> None:
        opening = worker.actor.open.remote(__version__)
        try:
            refused = await asyncio.wait_for(asyncio.wrap_future(opening.future()), OPENS_WITHIN)
        except TimeoutError:
            raise AskanceError(f"A worker on {_place(worker)} did not start within {OPENS_WITHIN:.0f} s.") from None
        if refused is not None:
            raise _from_there(worker, refused)

    def _replace(self, worker: _Worker) -> None:
        """Put another one in the place of a worker that is gone; where its machine is gone too, the others go on."""
        if worker not in self._workers:
            return
        self._lost += 1
        if self._lost > LOSSES * len(self._workers):
            raise AskanceError(
                f"{count(self._lost, 'worker')} ended one after the other without an answer between, so the run stops here; "
                "what was bought is kept. Ray says why in /tmp/ray/session_latest/logs, e.g. that memory ran out."
            )
        self._ray.kill(worker.actor)  # one that is only out of reach must not go on buying
        place = self._workers.index(worker)
        nodes = {each["NodeID"]: each for each in self._nodes()}
        if worker.node["NodeID"] in nodes:
            self._say(f"A worker on {_place(worker)} ended; another one takes its place.")
            self._workers[place] = self._new(worker.node, worker.is_first_there)
        elif len(self._workers) > 1 and any(each.is_first_there for each in self._workers if each is not worker):
            del self._workers[place]
            self._say(f"The machine {_place(worker)} is gone; {count(len(self._workers), 'worker')} left.")
        else:
            self._workers[place] = self._new(next(iter(nodes.values())), worker.is_first_there)
            self._say(f"The machine {_place(worker)} is gone; its worker starts on {_place(self._workers[place])}.")


class RayModel:
    """A model as :class:`~askance.models.resolve.Models` gives it, asked on the workers of a cluster."""

    def __init__(self, model: Model, pool: RayPool) -> None:
        """``model`` is asked nothing here; what it is, and what its answers may cost, is known from it."""
        self.name, self.identity = model.name, model.identity
        self.price = getattr(model, "price", None)
        self.repeats_itself: bool = getattr(model, "repeats_itself", False)
        self.gathers = IN_LINE if hasattr(model, "slots") else 0
        self._model, self._pool = model, pool

    async def answer(self, request: Request) -> Answer:
        """Ask once.

        Raises:
            As of :meth:`RayPool.ask`.
        """
        return await self._pool.ask(self.name, self.identity, request, once_a_node=self.gathers > 0)

    def highest_cost(self, request: Request) -> float:
        """US dollars that an answer may cost; 0 where the price is not known."""
        return highest_cost(self._model, request)


def _place(worker: _Worker) -> str:
    return str(worker.node.get("NodeManagerAddress") or worker.node["NodeID"])


def _from_there(worker: _Worker, error: AskanceError) -> AskanceError:
    """An error that ends the run, with the machine that it comes from."""
    kind = InputError if isinstance(error, InputError) else AskanceError
    return kind(f"On {_place(worker)}: {error}")
