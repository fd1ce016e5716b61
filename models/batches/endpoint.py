"""Files and batches of an OpenAI-compatible endpoint (platform.openai.com/docs/guides/batch)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from ..base import ModelError
from ..gateway import RetryPolicy

Result = TypeVar("Result")
ASKED = "/v1/chat/completions"
"""Path that each line of a batch calls, whatever the endpoint's own address."""
OVER = frozenset({"completed", "failed", "expired", "cancelled"})
UNHEARD = 3600.0
"""Seconds for which a batch that was sent is asked for in vain before the command ends; the batch goes on."""
FILE_TIMEOUT = 1800.0
"""Seconds that a file may take on its way."""
DOWNLOADS = 3
"""Attempts to fetch a file that breaks off, before it is taken as far as it goes."""
LATEST = 1e11
"""Seconds since 1970 of a time after which no batch ends: the year 5138. Milliseconds are more."""
PAGES = 20
"""Pages, of a hundred batches each, that are searched for a batch whose id was never heard."""


@dataclass(frozen=True)
class BatchState:
    """State of a batch, as the endpoint reports it."""

    id: str
    status: str
    """``validating``, ``in_progress``, ``finalizing``, ``completed``, ``failed``, ``expired``, ``cancelling``,
    ``cancelled``."""
    input_file: str
    output_file: str | None = None
    """Id of the file with the answers."""
    error_file: str | None = None
    """Id of the file with what could not be answered."""
    answered: int = 0
    failed: int = 0
    errors: tuple[tuple[str, str], ...] = ()
    """Why it failed as a whole: codes, and what was said."""
    expires: float | None = None
    """Seconds since 1970."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.status in OVER


class BatchEndpoint:
    """Uploads, sends, looks and fetches; what fails on the way is tried again."""

    def __init__(
        self,
        name: str,
        call: Callable[..., Awaitable[tuple[int, Any, bytes]]],
        explain: Callable[[int, Any, bytes], ModelError],
        retry: RetryPolicy,
        on_wait: Callable[[str, float], None],
    ) -> None:
        """Take the functions for calls.

        ``call`` makes a call and returns status, headers and body; ``explain`` turns these into an error; ``on_wait``
        gets the reason and the seconds of a wait.
        """
        self._name = name
        self._call = call
        self._explain = explain
        self._retry = retry
        self._on_wait = on_wait
        self._has_batches = False
        """Whether the endpoint is known to offer batches. Any other reply then comes from something in front of it, and
        may pass."""

    async def upload(self, lines: Path) -> str:
        """The id of a file of requests, one a line. Raises ModelError where it was not taken."""
        import aiohttp

        async def once() -> str:
            with lines.open("rb") as file:
                form = aiohttp.FormData()
                form.add_field("purpose", "batch")
                form.add_field("file", file, filename="askance.jsonl", content_type="application/jsonl")
                return self._id(await self._json("POST", "files", form, seconds=FILE_TIMEOUT))

        taken = await self.patiently(once)
        self._has_batches = True
        return taken

    async def create(self, file: str) -> BatchState:
        """Send the requests of a file, once: where no reply came, it is looked for before it is sent again.
        Raises ModelError where it was not taken; without a status of the endpoint it may have been."""
        wanted = json.dumps({"input_file_id": file, "endpoint": ASKED, "completion_window": "24h"})
        unsure = False

        async def once() -> BatchState:
            nonlocal unsure
            if unsure and (found := await self._find(file)) is not None:
                return found
            try:
                return self._state(await self._json("POST", "batches", wanted))
            except ModelError as error:
                unsure = unsure or error.status in (None, 200) or error.status >= 500
                raise

        try:
            return await self.patiently(once)
        except ModelError as error:
            raise (replace(error, status=None) if unsure else error) from None

    async def look(self, batch: str) -> BatchState:
        """Ask for the state of a batch.

        Raises ModelError where the endpoint does not know it (status 404), refuses, or says nothing for an hour.
        """

        self._has_batches = True

        async def once() -> BatchState:
            return self._state(await self._json("GET", f"batches/{batch}"))

        return await self.patiently(once, UNHEARD)

    async def find(self, file: str) -> BatchState | None:
        """The batch that was made of an uploaded file; None where there is none.
        Raises ModelError where the endpoint refuses, or says nothing for an hour."""
        self._has_batches = True
        return await self.patiently(lambda: self._find(file), UNHEARD)

    async def cancel(self, batch: str) -> None:
        """Ask to end the batch; its answers so far are kept. Raises ModelError where that was refused."""
        await self.patiently(lambda: self._json("POST", f"batches/{batch}/cancel"))

    async def lines(self, file: str, expected: int) -> list[bytes]:
        """The lines of a file, at least ``expected``; fewer where it breaks off each time it is fetched.

        Raises ModelError where the endpoint does not have the file (status 404), refuses, or sends no line for an hour.
        """
        most: list[bytes] = []
        for _ in range(DOWNLOADS):
            lines = await self.patiently(lambda: self._content(file, expected), UNHEARD)
            most = max(most, lines, key=len)
            if len(lines) >= expected and (not lines or as_object(lines[-1]) is not None):
                return lines
        return most

    async def patiently(self, do: Callable[[], Awaitable[Result]], seconds: float | None = None) -> Result:
        """Try until it works, as often as other calls or, where given, for so many seconds.
        Raises ModelError where all attempts fail."""
        began, attempt = monotonic(), 0
        while True:
            attempt += 1
            try:
                return await do()
            except ModelError as error:
                tired = attempt >= self._retry.attempts if seconds is None else monotonic() - began >= seconds
                if not error.retry or tired:
                    raise
                wait = self._retry.wait(attempt, error.retry_after)
                self._on_wait(str(error), wait)
            await asyncio.sleep(wait)

    async def _content(self, file: str, expected: int) -> list[bytes]:
        status, headers, payload = await self._call("GET", f"files/{file}/content", seconds=FILE_TIMEOUT)
        if status != 200:
            raise self._explain(status, headers, payload)
        lines = payload.splitlines()
        if (expected or payload.strip()) and not any(as_object(line) for line in lines):
            # Sending the requests anew would pay for their answers twice.
            shown = payload[:200].decode("utf-8", "replace")
            raise ModelError(
                f"{self._name}: the file {file} of a batch's answers holds none. It said: {shown}", retry=True
            )
        return lines

    async def _find(self, file: str) -> BatchState | None:
        after = ""
        for _ in range(PAGES):
            page = await self._json("GET", f"batches?limit=100{after}")
            rows = page.get("data")
            if not isinstance(rows, list):
                raise self._unreadable(page)
            states = [self._state(row) for row in rows]
            for state in states:
                if state.input_file == file:
                    return state
            if not states or not page.get("has_more"):
                return None
            after = f"&after={states[-1].id}"
        return None

    async def _json(self, method: str, path: str, data: Any = None, *, seconds: float | None = None) -> dict[str, Any]:
        status, headers, payload = await self._call(method, path, data, seconds=seconds)
        if status not in (200, 201):
            raise self._explain(status, headers, payload)
        try:
            reply = json.loads(payload)
        except (ValueError, RecursionError):
            reply = payload.decode("utf-8", "replace")
        if not isinstance(reply, dict):
            raise self._unreadable(reply)
        return reply

    def _id(self, found: dict[str, Any]) -> str:
        if not isinstance(found.get("id"), str) or not found["id"]:
            raise self._unreadable(found)
        return str(found["id"])

    def _state(self, found: Any) -> BatchState:
        try:
            counts = found.get("request_counts") or {}
            errors = (found.get("errors") or {}).get("data") or []
            return BatchState(
                self._id(found),
                str(found["status"]).lower(),
                str(found["input_file_id"]),
                found.get("output_file_id") or None,
                found.get("error_file_id") or None,
                int(counts.get("completed") or 0),
                int(counts.get("failed") or 0),
                tuple((str(each.get("code")), _said(each)) for each in errors),
                _time(found.get("expires_at")),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        raise self._unreadable(found)

    def _unreadable(self, found: object) -> ModelError:
        return ModelError(
            f"{self._name}: the endpoint's reply is none of OpenAI's batch API. Does it offer batches, with /v1 at "
            f"the end of --api-base where it wants it? It said: {str(found)[:200]}",
            retry=self._has_batches,
            fatal=not self._has_batches,
            status=200,
        )


def _time(value: Any) -> float | None:
    """Seconds since 1970; None for a value that is no time, or a time in other units."""
    is_time = isinstance(value, (int, float)) and 1 < value < LATEST
    return float(value) if is_time else None


def _said(error: Any) -> str:
    place = "" if error.get("line") is None else f"line {error['line']}: "
    return f"{place}{error.get('message') or error.get('code') or 'no reason given'}"


def as_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None where the line breaks off or holds no object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
