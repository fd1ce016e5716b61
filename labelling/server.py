"""The page, on this machine alone: no other host, no other site and nobody without the address can use it."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from ..prompts.errors import AskanceError, InputError
from ..prompts.rows import explain
from .labels_file import MOST_COMMENT

logger = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_BYTES = 8 * MOST_COMMENT
PAGE = {
    "": ("label.html", "text/html"),
    "label.js": ("label.js", "text/javascript"),
    "label.css": ("label.css", "text/css"),
}


class Said(BaseModel):
    """What the page sends."""

    model_config = ConfigDict(extra="forbid")

    example: str
    human: dict[str, StrictBool] = {}
    comment: str = Field("", max_length=MOST_COMMENT)


def new_token() -> str:
    """What makes the address one that nobody guesses."""
    return secrets.token_urlsafe(24)


def application(token: str, say: Callable[[str, Said | None], dict[str, Any]]) -> web.Application:
    """The page and what it asks for.

    Args:
        token: First part of every path.
        say: Told what the rater does (``state``, ``label``, ``draft``, ``skip``, ``undo``) and, where it is about an output,
            what was said; gives the state that the page shows.
    """

    async def page(request: web.Request) -> web.StreamResponse:
        name, kind = PAGE[request.match_info.get("file", "")]
        text = files(__package__).joinpath("page", name).read_text("utf-8")
        return web.Response(text=text, content_type=kind, charset="utf-8")

    async def state(request: web.Request) -> web.StreamResponse:
        return web.json_response(say("state", None))

    async def act(request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":
            return _problem(415, "JSON is needed.")
        action = request.match_info["action"]
        try:
            said = None if action == "undo" else Said.model_validate_json(await request.read())
            return web.json_response(say(action, said))
        except ValidationError as error:
            return _problem(400, explain(error))
        except InputError as error:
            return _problem(400, str(error))
        except AskanceError as error:
            logger.error("%s", error)
            return _problem(507, str(error))

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = _refusal(request, token) or await handler(request)
        except web.HTTPException as error:
            answer = _problem(error.status, error.reason)
        answer.headers.update(HEADERS)
        return answer

    app = web.Application(middlewares=[guard], client_max_size=MOST_BYTES)
    app.router.add_get("/{token}/{file:(label[.](js|css))?}", page)
    app.router.add_get("/{token}/api/state", state)
    app.router.add_post("/{token}/api/{action:label|draft|skip|undo}", act)
    return app


def _refusal(request: web.Request, token: str) -> web.Response | None:
    """Why a request is not answered; None where it is from the page.

    The host must be this machine's name, as another site's may lead here (DNS rebinding); a browser says from which site a
    request comes, and only the page itself may send any.
    """
    transport = request.transport
    port = transport.get_extra_info("sockname")[1] if transport is not None else 0
    hosts = (f"{LOOPBACK}:{port}", f"localhost:{port}")
    if request.host not in hosts:
        return _problem(403, f"This page is at {hosts[0]} alone. Through a tunnel: the same port at both ends.")
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.host}":
        return _problem(403, "Another site may not use this page.")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return _problem(403, "Another site may not lead here. Paste the address into the browser.")
    given = request.path.split("/")[1]
    if not secrets.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return _problem(404, "There is nothing here. The address that was printed when it began has the key in it.")
    return None


def _problem(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=json.dumps({"error": text}), content_type="application/json")
