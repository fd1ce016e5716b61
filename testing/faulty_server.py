"""An OpenAI-compatible server on loopback that fails in many ways."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.utils import formatdate
from typing import Any

from .stand_in_server import ServerReply, StandInServer, web_reply

Fault = Callable[["FaultyServer", Any, bytes], Awaitable[Any]]
"""From the server, the request as aiohttp has it and the whole answer that would be right: the reply."""
NEVER = 600.0
"""Seconds that a reply takes which nobody waits for."""
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


async def _half(server: FaultyServer, http: Any, right: bytes) -> Any:
    reply = await _begun(http, len(right))
    await reply.write(right[: len(right) // 2])
    http.transport.close()
    return reply


async def _half_of_chunks(server: FaultyServer, http: Any, right: bytes) -> Any:
    reply = await _begun(http, None)
    await reply.write(right[: len(right) // 2])
    http.transport.close()
    return reply


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
    "half a body": _half,
    "half of its chunks": _half_of_chunks,
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
"""Faults of an endpoint that is well the next time it is asked, by name."""
FINAL: Mapping[str, Fault] = {
    "key refused": _sends(401, {"error": {"message": "no such key"}}),
    "unknown model": _sends(404, {"error": {"message": "The model does not exist"}}),
    "redirect": _sends(307, "", {"Location": "http://127.0.0.1:9/v1/chat/completions"}),
}
"""Faults that asking again does not mend, by name."""


class FaultyServer(StandInServer):
    """A :class:`~askance.testing.StandInServer` of whose replies a share are faults, drawn from a seed in order of arrival.

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
        """Take no connection for a while, where the system lets a port be kept for that; connections that are there stay."""
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
