"""The embedded models of a run: llama.cpp in child processes, reached like any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import TracebackType

from ..prompts.errors import AskanceError
from .embedded_process import EmbeddedServer, ServerSettings

__all__ = ["EmbeddedServer", "EmbeddedServers", "ServerSettings"]

logger = logging.getLogger(__name__)


class EmbeddedServers:
    """The embedded models of a run: one child process for each GGUF file, however many roles use it.

    Example::

        async with EmbeddedServers() as servers:
            url = await servers.url_for(path)
    """

    def __init__(self, settings: ServerSettings | None = None, *, log_directory: Path | None = None) -> None:
        """Nothing is started yet; every server gets the same settings."""
        self.settings = settings or ServerSettings()
        self._log_directory = log_directory
        self._servers: dict[Path, EmbeddedServer] = {}
        self._locks: dict[Path, asyncio.Lock] = {}
        self._restarted: set[Path] = set()

    async def __aenter__(self) -> EmbeddedServers:
        """Return the pool itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every child process."""
        await self.close()

    async def url_for(self, path: Path) -> str:
        """Return the address (with ``/v1``) of the server for this file, starting it if need be.

        A server that died since is started again, once. Cheap when it runs; call it before each request.

        Raises:
            AskanceError: as `EmbeddedServer.start`, or the server died a second time.
        """
        key = path.resolve()  # noqa: ASYNC240 -- one look-up
        running = self._servers.get(key)
        if running is not None and running.is_running:
            return running.base_url
        async with self._locks.setdefault(key, asyncio.Lock()):
            server = self._servers.get(key)
            if server is None:
                server = self._make_server(key)
                await server.start()
                self._servers[key] = server
            elif not server.is_running:
                await self._start_again(key, server)
            return server.base_url

    async def close(self) -> None:
        """End every child process; the pool can be used again."""
        servers = list(self._servers.values())
        self._servers.clear()
        self._restarted.clear()
        await asyncio.gather(*(server.stop() for server in servers))

    def _make_server(self, path: Path) -> EmbeddedServer:
        return EmbeddedServer(path, self.settings, log_directory=self._log_directory)

    async def _start_again(self, key: Path, server: EmbeddedServer) -> None:
        end = server.describe_end()
        if key in self._restarted:
            raise AskanceError(
                f"The embedded server for {key.name} {end} This was the second time, so it is not "
                f"started again. If memory is short, use a smaller model or a smaller context, then resume the run."
            )
        self._restarted.add(key)
        logger.warning("The embedded server for %s %s It is started again.", key.name, end)
        await server.stop()
        await server.start()
