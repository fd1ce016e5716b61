"""What asks models on one machine of a cluster, for a command on another; Ray makes an actor of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from ... import __version__
from ...prompts.errors import AskanceError, InputError
from ..base import Answer, Request
from ..named import NamedModel
from ..resolve import Models

logger = logging.getLogger(__name__)

Call = tuple[int, str, str, Request]
"""A number, the model's name, the identity by which the command knows it, and what is asked."""
Outcome = tuple[int, Answer | AskanceError]
"""The number of the call, and what came of it."""


class NodeWorker:
    """The models of a command on this machine: the same names, this machine's keys, files and embedded servers.

    Calls are taken in with :meth:`take` and their outcomes handed out with :meth:`outcomes`, many at once, as one
    message to another machine costs more than what it holds. Failures are outcomes too, so that they arrive as they
    are.
    """

    def __init__(self, api_base: str | None, timeout: float, named: Mapping[str, NamedModel] | None = None) -> None:
        """The arguments are those of :class:`~askance.models.resolve.Models`."""
        self._models = Models(api_base=api_base, timeout=timeout, named=named)
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._over: list[Outcome] = []
        self._some_are_over = asyncio.Event()

    async def open(self, version: str) -> AskanceError | None:
        """Be ready, for a command of an askance of this ``version``."""
        if version != __version__:
            return InputError(f"askance {__version__} is installed there, and {version} here. Install the same on all.")
        await self._models.__aenter__()
        return None

    async def take(self, calls: Sequence[Call]) -> None:
        """Begin with these calls."""
        for call in calls:
            self._under_way[call[0]] = asyncio.create_task(self._ask(*call))

    async def drop(self, number: int) -> None:
        """Nobody waits for this call any more."""
        if task := self._under_way.pop(number, None):
            task.cancel()

    async def outcomes(self) -> list[Outcome]:
        """All outcomes that nobody has had, as soon as there is one."""
        await self._some_are_over.wait()
        self._some_are_over.clear()
        over, self._over = self._over, []
        return over

    async def close(self) -> None:
        """Close connections and embedded servers."""
        for task in self._under_way.values():
            task.cancel()
        await self._models.__aexit__(None, None, None)

    async def _ask(self, number: int, name: str, identity: str, request: Request) -> None:
        outcome: Answer | AskanceError
        try:
            model = self._models.get(name)
            if model.identity != identity:
                raise InputError(f"{name} is another model there ({model.identity}) than here ({identity}).")
            outcome = await model.answer(request)
        except AskanceError as error:
            outcome = error
        except Exception as error:  # where it went wrong stands in Ray's log of this worker
            logger.exception("a call failed")
            outcome = AskanceError(f"{name}: {type(error).__name__}: {error}")
        del self._under_way[number]
        self._over.append((number, outcome))
        self._some_are_over.set()
