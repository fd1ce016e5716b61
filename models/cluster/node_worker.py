"""What asks models on one machine of a cluster, for a command on another; Ray makes an actor of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import __version__
from ...prompts.errors import AskanceError, InputError
from ..resolve import Models

if TYPE_CHECKING:
    from ..base import Answer, Request


class NodeWorker:
    """The models of a command on this machine: the same names, this machine's keys, files and embedded servers.

    Failures are given back, not raised, so that they arrive as they are.
    """

    def __init__(self, api_base: str | None, timeout: float) -> None:
        """As of :class:`~askance.models.resolve.Models`."""
        self._models = Models(api_base=api_base, timeout=timeout)

    async def open(self, version: str) -> AskanceError | None:
        """Be ready, for a command of an askance of this ``version``."""
        if version != __version__:
            return InputError(f"askance {__version__} is installed there, and {version} here. Install the same on all.")
        await self._models.__aenter__()
        return None

    async def answer(self, name: str, identity: str, request: Request) -> Answer | AskanceError:
        """Ask the model of that name once; ``identity`` is the one that the command knows it by."""
        try:
            model = self._models.get(name)
            if model.identity != identity:
                return InputError(f"{name} is another model there ({model.identity}) than here ({identity}).")
            return await model.answer(request)
        except AskanceError as error:
            return error

    async def close(self) -> None:
        """Close connections and embedded servers."""
        await self._models.__aexit__(None, None, None)
