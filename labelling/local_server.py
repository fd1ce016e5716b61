"""A server of pages for this machine only: every address holds a key, other sites are refused, and only the pages' own
scripts run."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from ..prompts.errors import AskanceError, InputError
from ..prompts.rows import explain

logger = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Message = TypeVar("Message", bound="PageMessage")

LOOPBACK = "127.0.0.1"
POLICY = "Content-Security-Policy"
HEADERS = {
    POLICY: "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
"""Ending of a page's file to its content type."""


class PageMessage(BaseModel):
    """A message of a page; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def new_token() -> str:
    """Make a random token, so that nobody can guess the address."""
    return secrets.token_urlsafe(24)


def guarded_application(token: str, most_bytes: int) -> web.Application:
    """Make an application without routes that answers only its own pages: every path must begin with ``token``."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = _refusal(request, token) or await handler(request)
        except web.HTTPException as error:
            answer = problem(error.status, error.reason)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    return web.Application(middlewares=[guard], client_max_size=most_bytes)


def page_files(package: str, pages: Mapping[str, str]) -> Handler:
    """Make a handler for the files in a package's folder ``page``: ``pages`` by the path's ``{file}``, and styles and
    scripts."""
    folder = files(package).joinpath("page")

    async def page(request: web.Request) -> web.StreamResponse:
        asked = request.match_info.get("file", "")
        if asked not in pages and not (asked.endswith((".css", ".js")) and folder.joinpath(asked).is_file()):
            return problem(404, "There is no such page.")
        name = pages.get(asked, asked)
        text = folder.joinpath(name).read_text("utf-8")
        return web.Response(text=text, content_type=KINDS[name.rpartition(".")[2]], charset="utf-8")

    return page


def add_read(app: web.Application, name: str, make: Callable[..., Any], fields: Sequence[str] = ()) -> None:
    """Answer ``api/NAME`` with the result of ``make``, called in a thread with these fields of the query; a missing
    field is an empty text."""

    async def read(request: web.Request) -> web.StreamResponse:
        return await answered(lambda: make(*(request.query.get(each, "") for each in fields)))

    app.router.add_get(f"/{{token}}/api/{name}", read)


def add_query(app: web.Application, name: str, record: type[Message], make: Callable[[Message], Any]) -> None:
    """Answer ``api/NAME`` with the result of ``make``, called in a thread with the query as a ``record``."""

    async def read(request: web.Request) -> web.StreamResponse:
        return await answered(lambda: make(record.model_validate(dict(request.query))))

    app.router.add_get(f"/{{token}}/api/{name}", read)


def add_act(app: web.Application, name: str, record: type[Message], do: Callable[[Message], Any]) -> None:
    """Answer JSON messages to ``api/NAME`` with the result of ``do``, called in a thread with the message."""

    async def act(request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":
            return problem(415, "JSON is needed.")
        body = await request.read()
        return await answered(lambda: do(record.model_validate_json(body)), failed=507)

    app.router.add_post(f"/{{token}}/api/{name}", act)


async def answered(
    make: Callable[[], Any], answer: Callable[[Any], web.StreamResponse] = web.json_response, *, failed: int = 500
) -> web.StreamResponse:
    """Return ``answer`` of the result of ``make``, which runs in a thread; an error becomes an answer in words.
    ``failed`` is the status for an AskanceError. With the status 507 of an act, as on a full disk, it is logged too."""
    try:
        return answer(await asyncio.to_thread(make))
    except ValidationError as error:
        return problem(400, explain(error))
    except InputError as error:
        return problem(400, str(error))
    except AskanceError as error:
        if failed == 507:
            logger.error("%s", error)
        return problem(failed, str(error))


def problem(status: int, text: str) -> web.Response:
    """Make an answer with an error message."""
    return web.Response(status=status, text=json.dumps({"error": text}), content_type="application/json")


async def serve(app: web.Application, token: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; ``ready`` is called with the address. Raises AskanceError if the port is
    taken."""
    stop = asyncio.Event()
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
        except OSError as error:
            raise AskanceError(
                f"The page cannot be served on port {port} ({error.strerror}). Try another --port."
            ) from None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
                loop.add_signal_handler(number, stop.set)
        ready(f"http://{LOOPBACK}:{runner.addresses[0][1]}/{token}/")
        await stop.wait()
    finally:
        await runner.cleanup()


def _refusal(request: web.Request, token: str) -> web.Response | None:
    """Return the refusal of a request; None for a request of the page itself."""
    # another site's name may lead here (DNS rebinding), so the host must be this machine's name
    transport = request.transport
    port = transport.get_extra_info("sockname")[1] if transport is not None else 0
    hosts = (f"{LOOPBACK}:{port}", f"localhost:{port}")
    if request.host not in hosts:
        return problem(403, f"This page is at {hosts[0]} alone. Through a tunnel: the same port at both ends.")
    # a browser says which site sends a request; only the page itself may
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.host}":
        return problem(403, "Another site may not use this page.")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return problem(403, "Another site may not lead here. Paste the address into the browser.")
    given = request.path.split("/")[1]
    if not secrets.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return problem(404, "There is nothing here. The address that was printed when it began has the key in it.")
    return None
