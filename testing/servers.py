"""An OpenAI-compatible server on loopback that answers from a function."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from ..prompts.messages import content_text

ServerReply = str | float | tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
"""A text, a probability of yes, or status and body (a text, or an object sent as JSON) with or without headers."""
TURNS = 50
"""Turns of the event loop to wait for; a request needs about five."""


class StandInServer:
    """An OpenAI-compatible server on loopback, in its own thread, that answers from a function.

    Use it as a context manager; ``url`` is the address for ``--api-base``. The function gets the request's JSON body
    and returns a text, a probability of yes, or status and body with or without headers.
    """

    _shares_port: bool | None = None

    def __init__(self, script: Callable[[Mapping[str, Any]], ServerReply], *, delay: float = 0.0) -> None:
        """``delay`` is the seconds that each answer takes."""
        self._script = script
        self._delay = delay
        self.bodies: list[Mapping[str, Any]] = []
        """Every request body, in order of arrival."""
        self.headers: list[Mapping[str, str]] = []
        """The headers of every request."""
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._stop: asyncio.Event | None = None
        self._runner: Any = None
        self._site: Any = None
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("The stand-in server did not start within 10 s.")
        return self

    def __exit__(self, *_: object) -> None:
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def settle(self) -> None:
        """Wait until the server has read all requests that have reached this machine, also from a dead process."""
        asyncio.run_coroutine_threadsafe(self._turns(), self._loop).result()

    async def _turns(self) -> None:
        for _ in range(TURNS):  # each turn of the loop reads all waiting connections, requests and bodies
            await asyncio.sleep(0)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=256 * 2**20)
        self._routes(app.router)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._runner, self._site = runner, web.TCPSite(runner, "127.0.0.1", 0, reuse_port=self._shares_port)
        await self._site.start()
        self._port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()
        late = asyncio.all_tasks() - {asyncio.current_task()}
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _routes(self, router: Any) -> None:
        router.add_post("/v1/chat/completions", self._complete)

    async def _complete(self, http: Any) -> Any:
        body = json.loads(await http.read())
        self.bodies.append(body)
        self.headers.append(dict(http.headers))
        if self._delay:
            await asyncio.sleep(self._delay)
        return await self._send(http, body, self._reply_to(body))

    def _reply_to(self, body: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return status, body and perhaps headers."""
        reply = self._script(body)
        return reply if isinstance(reply, tuple) else (200, completion(body, reply))

    async def _send(self, http: Any, body: Mapping[str, Any], reply: tuple[Any, ...]) -> Any:
        return web_reply(reply)


def web_reply(reply: tuple[Any, ...]) -> Any:
    """Turn status, body and perhaps headers into a reply for aiohttp. A body that is no text is sent as JSON."""
    from aiohttp import web

    status, content, *headers = reply
    if isinstance(content, str):
        return web.Response(status=status, text=content, headers=headers[0] if headers else None)
    return web.json_response(content, status=status, headers=headers[0] if headers else None)


def completion(body: Mapping[str, Any], reply: str | float) -> dict[str, Any]:
    """Return a chat completion in the form of an OpenAI-compatible server."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if isinstance(reply, str):
        text = reply
    else:
        text = "Yes" if reply >= 0.5 else "No"
        if body.get("logprobs"):
            both = {"Yes": math.log(max(reply, 1e-9)), "No": math.log(max(1 - reply, 1e-9))}
            top = [{"token": token, "logprob": logprob} for token, logprob in both.items()]
            choice["logprobs"] = {"content": [{"token": text, "logprob": both[text], "top_logprobs": top}]}
    choice["message"] = {"role": "assistant", "content": text}
    prompt_tokens = sum(len(content_text(message.get("content"))) for message in body["messages"]) // 4
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": max(1, len(text) // 4)}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}
