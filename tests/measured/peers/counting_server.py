"""The embedded model's server with a counter in front: every call of another tool is counted here, and kept.

A tool is given ``CountingServer.url``. It says by ``POST /phase/NAME`` what its next calls are for; so learning and
judging are counted apart, whatever the tool does inside. Each call is one line of a log: phase, a hash of the request,
tokens as the model's server counts them, begin and end, and its answer. A second start with the same log gives those
answers again, in the same order, so that a stopped run goes on where it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from askance.memory.embedders import Embedder, embedder
from askance.prompts.errors import InputError

LEARN = "learn"
"""The phase in which a tool may sample. In others the likeliest answer is given if the tool names no temperature."""
TEST = "test"
"""The phase in which it judges."""
MOST_TOKENS = 1024
"""Longest answer where a request names no limit: a small model may never end a text by itself."""
SEED = 0
_LIMITS = ("max_tokens", "max_completion_tokens")


class CountingServer:
    """An OpenAI-compatible address on loopback that passes chat calls on, answers embeddings itself, and counts both.

    Example::

        async with CountingServer(upstream, log) as server:
            ...  # a tool asks server.url
        server.calls("learn")
    """

    def __init__(self, upstream: str, log: Path, *, embeddings: str = "minilm") -> None:
        """Read the log, where there is one.

        Args:
            upstream: Address of the model's server, with ``/v1``. log: File of calls, JSON lines; made where it is not
                there. embeddings: Name of the embedder that answers ``/v1/embeddings``, as of
                :func:`~askance.memory.embedders.embedder`.

        Raises:
            InputError: A line of the log is no call.
        """
        self.upstream, self.log, self.phase = upstream.rstrip("/"), log, LEARN
        self.url = ""
        self.made: list[dict[str, Any]] = []
        """The calls of this session, given again or not, in order of their end."""
        self._kept = _read(log)
        self._given: Counter[tuple[str, str]] = Counter()
        self._embeddings = embeddings
        self._embedder: Embedder | None = None
        self._runner: Any = None
        self._session: Any = None

    async def __aenter__(self) -> CountingServer:
        from aiohttp import ClientSession, ClientTimeout, web

        self._session = ClientSession(timeout=ClientTimeout(total=None))
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/phase/{name}", self._set_phase)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embed)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def counted(self, phase: str) -> dict[str, Any]:
        """Sum up the calls of a phase: ``calls``, ``failed``, ``tokens``, ``embeddings`` (texts) and ``seconds``.

        Tokens are those of prompts and answers as the model's server counts them, prompts that it had in memory
        included; seconds those in which it was busy with at least one of these calls.
        """
        calls = [each for each in self.made if each["phase"] == phase]
        chats = [each for each in calls if "texts" not in each]
        return {
            "calls": len(chats),
            "failed": sum(each["status"] != 200 for each in chats),
            "tokens": sum(each["prompt_tokens"] + each["answer_tokens"] for each in chats),
            "answer_tokens": sum(each["answer_tokens"] for each in chats),
            "cut_off": sum(bool(each["cut_off"]) for each in chats),
            "embeddings": sum(each.get("texts", 0) for each in calls),
            "seconds": round(busy_seconds((each["begin"], each["end"]) for each in calls), 1),
        }

    async def _set_phase(self, http: Any) -> Any:
        from aiohttp import web

        self.phase = http.match_info["name"]
        return web.json_response({"phase": self.phase})

    async def _chat(self, http: Any) -> Any:
        from aiohttp import web

        body = await http.json()
        phase, key = self.phase, _key(body)
        call = self._kept_answer(phase, key)
        if call is None:
            began = time.time()
            async with self._session.post(f"{self.upstream}/chat/completions", json=_settled(body, phase)) as answer:
                text, status = await answer.text(), answer.status
            call = {"phase": phase, "key": key, "status": status, "begin": began, "end": time.time(), "answer": text}
            call |= _usage(text) if status == 200 else {"prompt_tokens": 0, "answer_tokens": 0, "cut_off": False}
            self._keep(call)
        self.made.append(call)
        return web.Response(status=call["status"], text=call["answer"], content_type="application/json")

    async def _embed(self, http: Any) -> Any:
        from aiohttp import web

        body = await http.json()
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        began = time.time()
        if self._embedder is None:
            self._embedder = await asyncio.to_thread(embedder, self._embeddings)
        vectors = await asyncio.to_thread(self._embedder.embed, texts)
        self.made.append({"phase": self.phase, "texts": len(texts), "begin": began, "end": time.time()})
        data = [
            {"object": "embedding", "index": place, "embedding": [float(each) for each in row]}
            for place, row in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return web.json_response({"object": "list", "data": data, "model": self._embeddings, "usage": usage})

    def _kept_answer(self, phase: str, key: str) -> dict[str, Any] | None:
        """The next answer of the log to the same request, in the order in which they were given."""
        place = self._given[phase, key]
        self._given[phase, key] += 1
        answers = self._kept.get((phase, key), [])
        return answers[place] if place < len(answers) else None

    def _keep(self, call: Mapping[str, Any]) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(call) + "\n")


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of (begin, end) spans, in their unit."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _settled(body: Mapping[str, Any], phase: str) -> dict[str, Any]:
    """The request with what it leaves open: a seed, a longest answer, and outside of learning no sampling."""
    settled = {"seed": SEED, **body}
    if all(settled.get(name) is None for name in _LIMITS):
        settled["max_tokens"] = MOST_TOKENS
    if phase != LEARN and settled.get("temperature") is None:
        settled["temperature"] = 0
    return settled


def _usage(text: str) -> dict[str, Any]:
    answer = json.loads(text)
    usage = answer["usage"]
    ends = [choice["finish_reason"] for choice in answer["choices"]]
    return {
        "prompt_tokens": usage["prompt_tokens"],
        "answer_tokens": usage["completion_tokens"],
        "cut_off": "length" in ends,
    }


def _key(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32]


def _read(log: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    kept: dict[tuple[str, str], list[dict[str, Any]]] = {}
    if not log.is_file():
        return kept
    for number, line in enumerate(log.read_text(encoding="utf-8").splitlines(), 1):
        try:
            call = json.loads(line)
            if call["status"] == 200:
                kept.setdefault((call["phase"], call["key"]), []).append(call)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{log}, line {number}: this is no call. Take the line out to go on without it."
            ) from error
    return kept
