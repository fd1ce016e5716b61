"""``local/NAME`` as a model: where its server keeps each example, and when it may compute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

from filelock import FileLock, Timeout

from ..base import Answer, Request
from ..budget import FREE
from ..direct import DirectModel
from ..files import cache_directory
from ..request_form import ThinkingFields
from .servers import EmbeddedServerPool, available_processors

TURN_SECONDS = 60.0
"""Longest time to wait for other processes to compute. A stopped process (Ctrl-Z) keeps its turn."""
LOOK_SECONDS = 0.002
"""Seconds between two looks at whose turn it is: a call takes at least ten times as long."""


class EmbeddedModel(DirectModel):
    """``local/NAME``: a GGUF file, served by a child process that starts when the first answer is bought."""

    repeats_itself = True
    """Whether the same request gets the same answer at temperature 0."""
    slots = 1

    template_may_think = True
    """Whether the template in the file may begin a thought, so that a reply shows only its end."""

    def __init__(
        self,
        name: str,
        path: Path,
        sha256: str,
        servers: EmbeddedServerPool,
        timeout: float,
        thinking: ThinkingFields | None = None,
    ) -> None:
        """``sha256`` of the weights is what the answers depend on, wherever the file is and the server listens."""
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
        """Ask once, one at a time.
        Raises ModelError where there is no usable answer, and AskanceError where the server does not start."""
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
    """Choice of a server's two slots for a request, so that the text it has read of an example is kept for later
    questions.

    One request is under way at a time.

    Left alone, llama.cpp's server keeps a conversation only where the next one shares less than half of it, so examples
    judged with a long prompt push each other out. When it searches its memory for a kept conversation, it takes that
    out, and may use it up for a few more common tokens of another example. (``get_available_slot`` and
    ``server_prompt_cache::load`` of the llama.cpp in xllamacpp 2026.10.) So each request names its slot:

    - The example is in a slot: that slot. Only the text after the shared part is read. - The example is new: the slot
    that was not used last. The other one is idle then, and llama.cpp saves idle slots into
      its memory (``--cache-idle-slots``), each conversation once.
    - The example was in a slot before: no slot is named. With a similarity of 0 llama.cpp takes the slot not used last
    and
      loads the conversation from its memory that shares most.

    A wrong guess costs time, never an answer: llama.cpp compares the tokens themselves.
    """

    def __init__(self) -> None:
        """Both slots are empty."""
        self._held: list[int | None] = [None, None]
        self._last = 1
        self._seen: set[int] = set()

    def slot_for(self, prefix: str) -> int | None:
        """The slot, 0 or 1, for a request that begins with ``prefix``; None leaves it to the server."""
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
    """Lets the models of all processes on the same processors compute in turn, each with a thread for each processor.

    Two commands at once would wait in each other's threads. Processes with another affinity, and other users, have
    turns of their own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """The locks are in ``folder``; by default ``turns`` in the cache directory."""
        self._folder = folder
        self._is_patient = True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn, which ends with the block; without a lock, or after too long, go on."""
        try:
            following, computing = self._lock("next"), self._lock("now")
        except OSError:  # a cache that cannot be written
            yield
            return
        until = monotonic() + (TURN_SECONDS if self._is_patient else 0.0)
        try:
            # who waits holds the first lock, so that who has just computed comes after him
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
