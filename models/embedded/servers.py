"""The embedded models of a run: llama.cpp in child processes, one for each GGUF file, as OpenAI-compatible servers.

A model ``local/NAME`` asks such a server. This module also chooses the slot that keeps each example (:class:`TwoSlots`)
and when a server may compute (:class:`ProcessorTurns`).
"""

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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import IO, Any

from filelock import FileLock, Timeout

from ...prompts.errors import AskanceError, InputError, MissingExtraError
from ..base import Answer, Request
from ..budget import FREE
from ..direct import DirectModel
from ..files import cache_directory
from ..request_form import ThinkingFields

logger = logging.getLogger(__name__)

STOP_SECONDS = 5.0
GGUF_MAGIC = b"GGUF"


def available_processors() -> list[int]:
    """Return the processors that this process may use: its affinity if the system tells it, else all."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def available_threads() -> int:
    """Return the number of processors that this process may use."""
    return len(available_processors())


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server. A server answers one request at a time, because all requests share the same processors."""

    context: int = 4096  # tokens that a prompt and its answer may have together
    threads: int = field(default_factory=available_threads)
    ready_seconds: float = 120.0  # seconds that loading may take


class EmbeddedServer:
    """A server for one GGUF file: one child process, from `start` to `stop`."""

    def __init__(
        self,
        path: Path,
        settings: ServerSettings | None = None,
        *,
        log_directory: Path | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        """Keep the settings; nothing is started. ``command`` replaces the child's command in tests. llama.cpp's output
        goes to ``log_directory``; by default ``logs`` in the cache, else the system's temporary folder."""
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
        """Address for an OpenAI-compatible client, with ``/v1``. Raises `AskanceError` if the server is not running."""
        if self._base_url is None:
            raise AskanceError(f"The embedded server for {self.path.name} is not running; start it first.")
        return self._base_url

    @property
    def is_running(self) -> bool:
        """Whether the child was started and has not ended."""
        return self._base_url is not None and self._child is not None and self._child.poll() is None

    @property
    def process_id(self) -> int | None:
        """Process id of the child, or None if there is no child."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the child and wait until the model answers. Raises MissingExtraError without xllamacpp, InputError for
        a file of another format, and AskanceError, with llama.cpp's last lines, if loading fails or takes too long."""
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
        """Return a clause that says how the child ended and which lines it printed last, for a server that died."""
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
        # -P: Python must not import a file of the working directory as a module
        command = self._command or [sys.executable, "-P", "-m", "askance.models.embedded.server_process", given]
        with self._open_log() as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # the child ends when its standard input ends
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal reaches only us
            )

    def _open_log(self) -> IO[bytes]:
        directory = self._log_directory or cache_directory() / "logs"
        self._starts += 1  # a new name, so that the log of a child that died is not overwritten
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
    """The servers of a run: one child process for each GGUF file, however many roles use the file.

    Example::

        async with EmbeddedServerPool() as servers:
            url = await servers.url_for(path)
    """

    def __init__(self, settings: ServerSettings | None = None, *, log_directory: Path | None = None) -> None:
        """Keep the settings for every server, without starting any."""
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
        """Return the address (with ``/v1``) of this file's server. The server is started if it is not running, and
        started again once if it died. Raises AskanceError like `EmbeddedServer.start`, and if it died a second time."""
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
        """End every child process. The pool can be used again afterwards."""
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


TURN_SECONDS = 60.0  # longest time to wait for other processes to compute. A stopped process (Ctrl-Z) keeps its turn.
LOOK_SECONDS = 0.002  # seconds between two looks at whose turn it is: a call takes at least ten times as long


class EmbeddedModel(DirectModel):
    """A model ``local/NAME``: a GGUF file, served by a child process that starts when the first answer is bought."""

    repeats_itself = True  # whether the same request gets the same answer at temperature 0
    slots = 1

    template_may_think = True  # whether the file's template may begin a thought, so that a reply shows only its end

    def __init__(
        self,
        name: str,
        path: Path,
        sha256: str,
        servers: EmbeddedServerPool,
        timeout: float,
        thinking: ThinkingFields | None = None,
    ) -> None:
        """``sha256`` is the hash of the weights. It makes the identity, so the path and the address do not matter."""
        super().__init__(
            name,
            path.stem,
            lambda: servers.url_for(path),
            identity=f"local:{sha256}",
            timeout=max(timeout, 600),
            price=FREE,
            thinking=thinking,
        )
        self.takes_images = False
        self._servers = servers
        self._path = path
        self._turn = asyncio.Semaphore(1)
        self._processors = ProcessorTurns()
        self._two_slots: tuple[str, TwoSlots] | None = None

    async def answer(self, request: Request) -> Answer:
        """Ask once; calls wait for each other. Raises ModelError, and AskanceError if the server does not start."""
        async with self._turn:
            url = await self._servers.url_for(self._path)
            if self._two_slots is None or self._two_slots[0] != url:  # a server started again has read nothing
                self._two_slots = url, TwoSlots()
            async with self._processors.turn():
                return await super().answer(request)

    def _body(self, request: Request) -> dict[str, Any]:
        body = super()._body(request)
        if self._two_slots is not None:
            slot = self._two_slots[1].slot_for(request.prefix or request.messages[0][1])
            if slot is not None:
                body["id_slot"] = slot
        return body


class TwoSlots:
    """Choice between a server's two slots, so that the server keeps an example's text for later questions on it. One
    request is under way at a time.

    By default llama.cpp's server keeps a conversation only if the next one shares less than half of it, so examples
    judged with a long prompt push each other out. A search of its memory also removes the conversation that it finds
    (``get_available_slot`` and ``server_prompt_cache::load`` of the llama.cpp in xllamacpp 2026.10). So each request
    names its slot:

    - If the example is in a slot, that slot. Only the text after the shared part is read.
    - If the example is new, the slot that was not used last. llama.cpp saves the other slot, which is then idle, into
      its memory (``--cache-idle-slots``), each conversation once.
    - If the example was in a slot earlier, no slot. With a similarity of 0 llama.cpp takes the slot not used last, and
      loads the conversation with the longest shared part from its memory.

    A wrong guess costs time, never an answer: llama.cpp compares the tokens themselves.
    """

    def __init__(self) -> None:
        """Start with two empty slots."""
        self._held: list[int | None] = [None, None]
        self._last = 1
        self._seen: set[int] = set()

    def slot_for(self, prefix: str) -> int | None:
        """Return the slot, 0 or 1, for a request that begins with ``prefix``; None leaves the choice to the server."""
        example = hash(prefix)
        if example in self._held:
            self._last = self._held.index(example)
            return self._last
        self._last = 1 - self._last
        self._held[self._last] = example
        if example in self._seen:
            return None
        self._seen.add(example)
        return self._last


class ProcessorTurns:
    """Turns of computing for all processes' models on the same processors: two at once would wait for each other's
    threads."""

    def __init__(self, folder: Path | None = None) -> None:
        """The locks are in ``folder``; by default ``turns`` in the cache directory."""
        self._folder = folder
        self._is_patient = True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for this process's turn; it ends with the block. Without locks, or after too long, go on anyway."""
        try:
            following, computing = self._lock("next"), self._lock("now")
        except OSError:  # a cache that cannot be written
            yield
            return
        until = monotonic() + (TURN_SECONDS if self._is_patient else 0.0)
        try:
            # the next process holds the first lock, so a process that has just computed comes after it
            self._is_patient = await _locked(following, until) and await _locked(computing, until)
            following.release()
            yield
        finally:
            following.release()
            computing.release()

    @cached_property
    def _place(self) -> Path:
        folder = self._folder or cache_directory() / "turns"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / sha256(repr(available_processors()).encode()).hexdigest()[:16]

    def _lock(self, name: str) -> FileLock:
        return FileLock(self._place.with_suffix(f".{name}"), thread_local=False)


async def _locked(lock: FileLock, until: float) -> bool:
    while True:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if monotonic() >= until:
                return False
        except (OSError, NotImplementedError):  # a file system without locks
            return False
        else:
            return True
        await asyncio.sleep(LOOK_SECONDS)
