"""OpenAI-compatible servers on loopback for askance's own tests: one with faults, one with batches."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from askance.testing.servers import ServerReply, StandInServer, web_reply

# --- faults ---

Fault = Callable[["FaultyServer", Any, bytes], Awaitable[Any]]
"""Maps the server, aiohttp's request and the right answer to a reply."""
NEVER = 600.0
"""Seconds of a reply that nobody waits for."""
_HTML = "<html><body>Bad gateway</body></html>"


def _sends(status: int, content: Any, headers: Mapping[str, str] | None = None) -> Fault:
    async def fault(server: FaultyServer, http: Any, right: bytes) -> Any:
        return web_reply((status, content, headers))

    return fault


async def _too_many_until(server: FaultyServer, http: Any, right: bytes) -> Any:
    return web_reply((429, "slow down", {"Retry-After": formatdate(time.time() + 1, usegmt=True)}))


async def _reset(server: FaultyServer, http: Any, right: bytes) -> Any:
    http.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    http.transport.abort()
    return web_reply((200, ""))


async def _closed(server: FaultyServer, http: Any, right: bytes) -> Any:
    http.transport.close()
    return web_reply((200, ""))


async def _refused(server: FaultyServer, http: Any, right: bytes) -> Any:
    await server.refuse(0.2)
    return await _reset(server, http, right)


async def _begun(http: Any, length: int | None) -> Any:
    from aiohttp import web

    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    if length is None:
        reply.enable_chunked_encoding()
    else:
        reply.content_length = length
    await reply.prepare(http)
    return reply


def _half(*, in_chunks: bool) -> Fault:
    async def fault(server: FaultyServer, http: Any, right: bytes) -> Any:
        reply = await _begun(http, None if in_chunks else len(right))
        await reply.write(right[: len(right) // 2])
        http.transport.close()
        return reply

    return fault


async def _too_short(server: FaultyServer, http: Any, right: bytes) -> Any:
    return web_reply((200, right[: len(right) * 2 // 3].decode("utf-8", "ignore")))


async def _silence(server: FaultyServer, http: Any, right: bytes) -> Any:
    await asyncio.sleep(NEVER)
    return web_reply((200, right.decode()))


async def _trickle(server: FaultyServer, http: Any, right: bytes) -> Any:
    reply = await _begun(http, len(right))
    for place in range(len(right)):
        await reply.write(right[place : place + 1])
        await asyncio.sleep(NEVER / len(right))
    return reply


FAULTS: Mapping[str, Fault] = {
    "reset": _reset,
    "closed without a word": _closed,
    "refused for a moment": _refused,
    "no answer in time": _silence,
    "a byte now and then": _trickle,
    "half a body": _half(in_chunks=False),
    "half of its chunks": _half(in_chunks=True),
    "wrong length": _too_short,
    "429": _sends(429, "slow down"),
    "429, Retry-After in seconds": _sends(429, "slow down", {"Retry-After": "1"}),
    "429, Retry-After as a date": _too_many_until,
    "500": _sends(500, {"error": {"message": "internal"}}),
    "502 as a page": _sends(502, _HTML, {"Content-Type": "text/html"}),
    "503": _sends(503, "overloaded", {"Retry-After": "soon"}),
    "504": _sends(504, ""),
    "200, an error in it": _sends(200, {"error": {"message": "overloaded", "code": 503}}),
    "200, empty": _sends(200, ""),
    "200, no choices": _sends(200, {"choices": []}),
    "200, nothing said": _sends(200, {"choices": [{"message": {"role": "assistant", "content": ""}}]}),
    "200, no JSON": _sends(200, '{"choices": [{"message": {"content": Yes}}]}'),
    "200, a page": _sends(200, _HTML, {"Content-Type": "text/html"}),
    "200, NULs": _sends(200, "\0" * 64),
}
"""Faults that are gone the next time, by name."""
FINAL: Mapping[str, Fault] = {
    "key refused": _sends(401, {"error": {"message": "no such key"}}),
    "unknown model": _sends(404, {"error": {"message": "The model does not exist"}}),
    "redirect": _sends(307, "", {"Location": "http://127.0.0.1:9/v1/chat/completions"}),
}
"""Faults that asking again does not mend, by name."""


class FaultyServer(StandInServer):
    """A :class:`StandInServer` some of whose replies are faults, drawn from a seed in order of arrival.

    Example::

        with FaultyServer(lambda body: 0.9, share=0.3) as server:
            ...  # server.url; server.made counts the faults by name
    """

    def __init__(
        self,
        script: Callable[[Mapping[str, Any]], ServerReply],
        *,
        share: float = 0.3,
        kinds: Sequence[str] = tuple(FAULTS),
        seed: int = 0,
    ) -> None:
        """``share``: of the replies, 0 to 1; ``kinds``: names in :data:`FAULTS` or :data:`FINAL`, all equally often."""
        super().__init__(script)
        self.share = share
        self.made: Counter[str] = Counter()
        """Faults so far, by name."""
        self.answered: list[Mapping[str, Any]] = []
        """The bodies of the requests that were answered as they should be."""
        self._faults = {name: {**FAULTS, **FINAL}[name] for name in kinds}
        self._chance = random.Random(seed)

    _shares_port = hasattr(socket, "SO_REUSEPORT") or None

    async def refuse(self, seconds: float) -> None:
        """Take no new connection for a while, where the system lets a port be kept for that."""
        from aiohttp import web

        if self._site is None or not self._shares_port:
            return
        kept = socket.socket()  # or somebody else has the port by then
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", self._port))
        site, self._site = self._site, None
        await site.stop()

        async def open_again() -> None:
            try:
                await asyncio.sleep(seconds)
                self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_port=True)
                await self._site.start()
            finally:
                kept.close()

        self._opening = asyncio.ensure_future(open_again())

    async def _send(self, http: Any, body: Mapping[str, Any], reply: tuple[Any, ...]) -> Any:
        if self._chance.random() >= self.share:
            self.answered.append(body)
            return web_reply(reply)
        name = self._chance.choice([*self._faults])
        self.made[name] += 1
        content = reply[1] if isinstance(reply[1], str) else json.dumps(reply[1])
        try:
            return await self._faults[name](self, http, content.encode())
        except ConnectionError:  # who asked is gone
            return web_reply((200, ""))


# --- batches ---

_NOT_EXECUTED = {
    "expired": "This request could not be executed in time.",
    "cancelled": "The batch was cancelled before this request was executed.",
}
"""Error of each request that had no answer when its batch ended."""
Tamper = Callable[[str, str], tuple[Any, ...] | None]
"""Maps method and path of a call to another reply (status, body, perhaps headers), or to None."""


@dataclass
class ServedBatch:
    """A batch at the server."""

    id: str
    input_file: str
    requests: list[Mapping[str, Any]]
    """The lines of its file."""
    status: str = "validating"
    looks: int = 0
    """Number of looks at the batch so far."""
    output_file: str | None = None
    error_file: str | None = None
    errors: list[Mapping[str, Any]] = field(default_factory=list)
    completed: int = 0
    failed: int = 0


class BatchServer(StandInServer):
    """A :class:`StandInServer` with files and batches, as in OpenAI's documentation, answered by the same function.

    A batch is done when it was looked at ``looks`` times; its answers come in an order of their own. What the function
    gives with another status than 200 stands in the file of errors.
    """

    def __init__(self, script: Callable[[Mapping[str, Any]], ServerReply], *, looks: int = 2) -> None:
        """Take the script; a batch says ``looks`` times that it is not done yet."""
        super().__init__(script)
        self.looks = looks
        self.batches: list[ServedBatch] = []
        """Batches in the order in which they were made."""
        self.files: dict[str, str] = {}
        """Contents of files that were uploaded and written, by id."""
        self.end: Callable[[ServedBatch], str] = lambda batch: "completed"
        """The end of a batch: ``completed``, ``expired``, ``failed`` (with its ``errors``) or ``cancelled``."""
        self.is_answered: Callable[[ServedBatch, int], bool] = lambda batch, number: True
        """Whether a request, by its place in the file, is answered before an end other than ``completed``."""
        self.leaves_out: Callable[[ServedBatch, int], bool] = lambda batch, number: False
        """Whether the result has no line at all for a request."""
        self.before: Tamper = lambda method, path: None
        """A reply in place of the call, which is then not made."""
        self.after: Tamper = lambda method, path: None
        """A reply in place of the real one, after the call was made."""

    def _routes(self, router: Any) -> None:
        super()._routes(router)
        router.add_post("/v1/files", self._tampered(self._upload))
        router.add_get("/v1/files/{id}/content", self._tampered(self._content))
        router.add_post("/v1/batches", self._tampered(self._create))
        router.add_get("/v1/batches", self._tampered(self._list))
        router.add_get("/v1/batches/{id}", self._tampered(self._look))
        router.add_post("/v1/batches/{id}/cancel", self._tampered(self._cancel))

    def _tampered(self, do: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def handle(http: Any) -> Any:
            reply = self.before(http.method, http.path)
            if reply is None:
                made = await do(http)
                reply = self.after(http.method, http.path) or made
            return web_reply(reply)

        return handle

    async def _upload(self, http: Any) -> tuple[Any, ...]:
        form = await http.post()
        if form.get("purpose") != "batch":
            return 400, _error("purpose must be batch")
        text = form["file"].file.read().decode()
        return 200, {"id": self._keep(text), "object": "file", "bytes": len(text), "purpose": "batch"}

    def _keep(self, text: str) -> str:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = text
        return name

    async def _content(self, http: Any) -> tuple[Any, ...]:
        name = http.match_info["id"]
        return (200, self.files[name]) if name in self.files else (404, _error(f"No such File object: {name}"))

    async def _create(self, http: Any) -> tuple[Any, ...]:
        asked = json.loads(await http.read())
        file = asked["input_file_id"]
        if asked["endpoint"] != "/v1/chat/completions" or asked["completion_window"] != "24h" or file not in self.files:
            return 400, _error("bad endpoint, completion_window or input_file_id")
        lines = [json.loads(line) for line in self.files[file].splitlines()]
        batch = ServedBatch(f"batch_{len(self.batches) + 1}", file, lines)
        names = [line["custom_id"] for line in lines]
        if len(set(names)) < len(names) or len(names) > 50_000 or max(map(len, names)) > 64:
            batch.errors = [{"code": "invalid_request", "message": "custom ids must differ and be short", "line": 1}]
        self.batches.append(batch)
        return 200, self._shown(batch)

    async def _list(self, http: Any) -> tuple[Any, ...]:
        newest = self.batches[::-1]
        names = [batch.id for batch in newest]
        begin = names.index(http.query["after"]) + 1 if "after" in http.query else 0
        page = newest[begin : begin + int(http.query.get("limit", 20))]
        more = begin + len(page) < len(newest)
        return 200, {"object": "list", "data": [self._shown(batch) for batch in page], "has_more": more}

    async def _look(self, http: Any) -> tuple[Any, ...]:
        batch = self._batch(http)
        if batch is None:
            return 404, _error("No such Batch object")
        batch.looks += 1
        if batch.status == "cancelling":
            self._finish(batch, "cancelled")
        elif batch.status in ("validating", "in_progress"):
            batch.status = "in_progress"
            if batch.errors:
                batch.status = "failed"
            elif batch.looks > self.looks:
                self._finish(batch, self.end(batch))
        return 200, self._shown(batch)

    async def _cancel(self, http: Any) -> tuple[Any, ...]:
        batch = self._batch(http)
        if batch is None:
            return 404, _error("No such Batch object")
        batch.status = "cancelling"
        return 200, self._shown(batch)

    def _batch(self, http: Any) -> ServedBatch | None:
        return next((each for each in self.batches if each.id == http.match_info["id"]), None)

    def _finish(self, batch: ServedBatch, end: str) -> None:
        batch.status = end
        if end == "failed":
            return
        answers: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for number, line in enumerate(batch.requests):
            if self.leaves_out(batch, number):
                continue
            name = line["custom_id"]
            if end != "completed" and not self.is_answered(batch, number):
                reason = {"code": f"batch_{end}", "message": _NOT_EXECUTED[end]}
                errors.append({"id": f"req_{number}", "custom_id": name, "response": None, "error": reason})
                continue
            self.bodies.append(line["body"])
            status, body, *_ = self._reply_to(line["body"])
            response = {"status_code": status, "request_id": f"r{number}", "body": body}
            place = answers if status == 200 else errors
            place.append({"id": f"req_{number}", "custom_id": name, "response": response, "error": None})
        random.Random(batch.id).shuffle(answers)
        batch.completed, batch.failed = len(answers), len(errors)
        for lines, kind in ((answers, "output_file"), (errors, "error_file")):
            if lines:
                setattr(batch, kind, self._keep("".join(json.dumps(line) + "\n" for line in lines)))

    def _shown(self, batch: ServedBatch) -> dict[str, Any]:
        counts = {"total": len(batch.requests), "completed": batch.completed, "failed": batch.failed}
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "errors": {"object": "list", "data": batch.errors} if batch.status == "failed" else None,
            "input_file_id": batch.input_file,
            "completion_window": "24h",
            "status": batch.status,
            "output_file_id": batch.output_file,
            "error_file_id": batch.error_file,
            "created_at": int(time.time()),
            "expires_at": int(time.time()) + 86_400,
            "request_counts": counts,
        }


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
