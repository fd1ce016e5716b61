"""The embedded models of a run: llama.cpp in child processes, one for each GGUF file, as OpenAI-compatible servers."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from ...prompts.errors import AskanceError, InputError, MissingExtraError
from ..files import cache_directory

logger = logging.getLogger(__name__)

STOP_SECONDS = 5.0
GGUF_MAGIC = b"GGUF"


def available_processors() -> list[int]:
    """The processors that this process may use (its affinity where the system tells it)."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def available_threads() -> int:
    """Return how many processors this process may use."""
    return len(available_processors())


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server. It answers one request at a time, as all would share the same processors."""

    context: int = 4096
    """Tokens that a prompt and its answer may have together."""
    threads: int = field(default_factory=available_threads)
    ready_seconds: float = 120.0
    """Seconds that loading may take."""


class EmbeddedServer:
    """One GGUF file served by one child process, from `start` to `stop`."""

    def __init__(
        self,
        path: Path,
        settings: ServerSettings | None = None,
        *,
        log_directory: Path | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        """Take the settings without starting anything. ``command`` is a child process for tests.

        ``log_directory`` takes the output of llama.cpp; by default ``logs`` in the cache, else the system's temporary
        folder.
        """
        self.path = path
        self.settings = settings or ServerSettings()
        self._log_directory = log_directory
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._starts = 0
        self._base_url: str | None = None

    @property
    def base_url(self) -> str:
        """The address for an OpenAI-compatible client, with ``/v1``; raises `AskanceError` if not started."""
        if self._base_url is None:
            raise AskanceError(f"The embedded server for {self.path.name} is not running; start it first.")
        return self._base_url

    @property
    def is_running(self) -> bool:
        """Whether the child was started and has not ended."""
        return self._base_url is not None and self._child is not None and self._child.poll() is None

    @property
    def process_id(self) -> int | None:
        """The child's process id, or None if there is no child."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the child and wait until the model answers.

        Raises MissingExtraError where xllamacpp is not installed, InputError where the file is missing or no GGUF file,
        and AskanceError, with the last words of llama.cpp, where it could not load it, or not within ``ready_seconds``.
        """
        if self._command is None:
            _require_gguf(self.path)
            if importlib.util.find_spec("xllamacpp") is None:
                raise MissingExtraError("local", "xllamacpp")
        child = self._spawn()
        self._child = child
        assert child.stdout is not None
        try:
            line = await asyncio.wait_for(asyncio.to_thread(child.stdout.readline), self.settings.ready_seconds)
        except TimeoutError:
            child.kill()  # while it loads it does not notice that its input ended
            await self._end()
            raise AskanceError(
                f"The embedded server did not load {self.path.name} within {self.settings.ready_seconds:g} "
                f"s. Use a smaller model or a smaller context.{self.last_log_lines()}"
            ) from None
        except BaseException:  # cancelled: leave no process behind
            child.kill()
            child.wait()
            _close_pipes(child)
            self._child = None
            raise
        self._base_url = await self._read_announcement(line)
        child.stdout.close()
        logger.info("%s is served by process %d at %s.", self.path.name, child.pid, self._base_url)

    async def stop(self) -> None:
        """End the child at once, even while it answers, and delete its log. The log of a child that died is kept."""
        died = not self.is_running
        await self._end()
        if self._log is not None and not died:
            self._log.unlink(missing_ok=True)
            self._log = None

    def describe_end(self) -> str:
        """Return a clause saying how the child ended and what it printed last; for a server that died."""
        code = None if self._child is None else self._child.poll()
        how = "ended" if code is None else f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{how}.{self.last_log_lines()}"

    def last_log_lines(self) -> str:
        """Return `` It said: …`` with the last five lines the child printed, or an empty string."""
        if self._log is None or not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - 8192))
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        said = [re.sub(r"^[\d.]+ [A-Z] ", "", line) for line in lines[-5:]]  # without time and level
        return f" It said: {'; '.join(said)} (log: {self._log})." if said else ""

    def _spawn(self) -> subprocess.Popen[bytes]:
        given = json.dumps({**asdict(self.settings), "path": str(self.path)})
        # -P: a file in the working directory must not be taken for a module
        command = self._command or [sys.executable, "-P", "-m", "askance.models.embedded.server_process", given]
        with self._open_log() as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its end tells the child to end
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal reaches only us
            )

    def _open_log(self) -> IO[bytes]:
        directory = self._log_directory or cache_directory() / "logs"
        self._starts += 1  # the log of one that died is not written over
        name = f"embedded-{self.path.stem[:64]}-{os.getpid()}-{id(self):x}-{self._starts}.log"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._log = directory / name
            return self._log.open("wb")
        except OSError:  # a cache that cannot be written
            self._log = Path(tempfile.gettempdir()) / name
            return self._log.open("wb")

    async def _read_announcement(self, line: bytes) -> str:
        try:
            message = json.loads(line) if line else {"error": "it ended without a word"}
        except ValueError:
            message = {"error": f"it said {line!r} instead of its address"}
        if "url" in message:
            return f"{message['url']}/v1"
        await self._end()
        raise AskanceError(
            f"The embedded server could not load {self.path}: {str(message['error']).rstrip('.')}."
            f"{self.last_log_lines()} If the file is "
            f"damaged, fetch it again; if memory is short, use a smaller model."
        )

    async def _end(self) -> None:
        child = self._child
        self._base_url = None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        try:
            await asyncio.to_thread(child.wait, STOP_SECONDS if child.poll() is None else 0)
        except subprocess.TimeoutExpired:
            child.kill()
            await asyncio.to_thread(child.wait)
        _close_pipes(child)
        self._child = None


class EmbeddedServerPool:
    """The embedded models of a run: one child process for each GGUF file, however many roles use it.

    Example::

        async with EmbeddedServerPool() as servers:
            url = await servers.url_for(path)
    """

    def __init__(self, settings: ServerSettings | None = None, *, log_directory: Path | None = None) -> None:
        """Take the settings for every server, without starting one."""
        self.settings = settings or ServerSettings()
        self._log_directory = log_directory
        self._servers: dict[Path, EmbeddedServer] = {}
        self._locks: dict[Path, asyncio.Lock] = {}
        self._restarted: set[Path] = set()

    async def __aenter__(self) -> EmbeddedServerPool:
        """Return the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every child process."""
        await self.close()

    async def url_for(self, path: Path) -> str:
        """Return the address (with ``/v1``) of the server for this file, starting it if need be.

        A server that died since is started again, once. Cheap when it runs; call it before each request. Raises
        AskanceError as `EmbeddedServer.start`, and where the server died a second time.
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


def _close_pipes(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise InputError(f"The model file {path} cannot be read: {error.strerror or error}.") from error
    if magic != GGUF_MAGIC:
        raise InputError(f"The file {path} is not a GGUF model file, or it is damaged; fetch it again.")
