"""The page Examples: what it asks for, of the runs of the workbench or of one file that is labelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from aiohttp import web
from pydantic import ValidationError

from ..labelling.label_session import Labeller, LabelSession, Said
from ..labelling.local_server import problem, told
from ..prompts.errors import AskanceError, InputError
from ..prompts.rows import explain
from .examples_table import AskedExamples, ExamplesTable

logger = logging.getLogger(__name__)

FILES = {name: name for name in ("examples.js", "labels.js", "examples.css")}
SAVE_EVERY = 0.5
"""Seconds between two looks at whether the labelled data are to be written; the labels themselves are on the disk."""


class ExamplesRoom(Protocol):
    """The tables that the page can show."""

    def table(self, run: str) -> ExamplesTable:
        """The examples of a run. Raises InputError where there is none."""

    def listed(self, asked: AskedExamples) -> dict[str, Any]:
        """The rows that pass the filters, and what the page says around them."""

    def one(self, asked: AskedExamples) -> dict[str, Any]:
        """One example."""

    def sessions(self) -> Iterable[LabelSession]:
        """All that is labelled in now."""


class FileExamples:
    """One file that is labelled: nothing is said of a judge, and one rater is at the desk."""

    def __init__(self, session: LabelSession) -> None:
        session.alone = True
        self._session = session
        self._table = ExamplesTable(session.desk.asked, session=session, blind=True)

    def table(self, run: str) -> ExamplesTable:
        """The table, whatever the name."""
        return self._table

    def listed(self, asked: AskedExamples) -> dict[str, Any]:
        """The rows."""
        desk = self._session.seat(asked.rater)
        return self._table.listed(asked, None, None) | {"alone": True, "labelling": self._session.about(desk)}

    def one(self, asked: AskedExamples) -> dict[str, Any]:
        """One example."""
        return self._table.one(asked, None, None)

    def sessions(self) -> Iterable[LabelSession]:
        """The one."""
        return (self._session,)


def add_examples(app: web.Application, room: ExamplesRoom) -> None:
    """Let an application answer what the page asks for; labelled data are written while it runs, and at its end."""

    async def read(request: web.Request) -> web.StreamResponse:
        does: Callable[[AskedExamples], dict[str, Any]] = getattr(
            room, {"examples": "listed", "example": "one"}[_name(request)]
        )
        return await answered(lambda: does(AskedExamples.model_validate(dict(request.query))))

    async def state(request: web.Request) -> web.StreamResponse:
        def look() -> dict[str, Any]:
            said = Labeller.model_validate(dict(request.query))
            session = _session(room, said.run)
            return session.figures() if _name(request) == "progress" else session.say("state", said)

        return await answered(look)

    async def act(request: web.Request) -> web.StreamResponse:
        action = _name(request)

        async def do(said: Labeller) -> dict[str, Any]:
            return await asyncio.to_thread(lambda: _session(room, said.run).say(action, said))

        return await told(request, Labeller if action == "undo" else Said, do)

    app.router.add_get("/{token}/api/{name:examples|example}", read)
    app.router.add_get("/{token}/api/{name:state|progress}", state)
    app.router.add_post("/{token}/api/{name:label|draft|skip|undo}", act)
    app.cleanup_ctx.append(partial(_keeping, room))


def _name(request: web.Request) -> str:
    return request.match_info["name"]


def _session(room: ExamplesRoom, run: str) -> LabelSession:
    table = room.table(run)
    if table.session is None:
        raise InputError(f"Nothing can be labelled here: {table.why_shut}")
    return table.session


async def answered(do: Callable[[], dict[str, Any]]) -> web.StreamResponse:
    """The answer to a question of the page, as JSON; what is wrong is said in words."""
    try:
        return web.json_response(await asyncio.to_thread(do))
    except ValidationError as error:
        return problem(400, explain(error))
    except InputError as error:
        return problem(400, str(error))
    except AskanceError as error:
        return problem(500, str(error))


async def _keeping(room: ExamplesRoom, app: web.Application) -> AsyncIterator[None]:
    """Write the labelled data after labels, and let the files go in the end."""

    async def keep() -> None:
        while True:
            await asyncio.sleep(SAVE_EVERY)
            await asyncio.to_thread(write_labelled, room.sessions())

    keeping = asyncio.create_task(keep())
    yield
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping
    write_labelled(room.sessions())
    for each in room.sessions():
        each.file.close()


def write_labelled(sessions: Iterable[LabelSession]) -> None:
    """Write labelled data that changed; one that cannot be written is said on its page and in the terminal."""
    for each in [*sessions]:
        before = each.problem
        try:
            each.write()
        except AskanceError as error:
            if each.problem != before:
                logger.error("%s", error)
