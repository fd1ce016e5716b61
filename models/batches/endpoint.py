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
from ..direct import DirectModel
from ..gateway import RetryPolicy

Result = TypeVar("Result")
ASKED = "/v1/chat/completions"  # path that each line of a batch calls, whatever the endpoint's own address
OVER = frozenset({"completed", "failed", "expired", "cancelled"})
UNHEARD = 3600.0  # seconds without a reply about a batch after which the command ends; the batch goes on
FILE_TIMEOUT = 1800.0  # seconds that a file's upload or download may take
DOWNLOADS = 3  # attempts to fetch a file that breaks off, before the longest part is used
LATEST = 1e11  # latest end of a batch in seconds since 1970 (year 5138); a larger number is in milliseconds
PAGES = 20  # pages of a hundred batches each that are searched for a batch whose id was never received


@dataclass(frozen=True)
class BatchState:
    """State of a batch, as the endpoint reports it."""

    id: str
    status: str
    """``validating``, ``in_progress``, ``finalizing``, ``completed``, ``failed``, ``expired``, ``cancelling``,
    ``cancelled``."""
    input_file: str
    output_file: str | None = None  # id of the file with the answers
    error_file: str | None = None  # id of the file with the requests that could not be answered
    answered: int = 0
    failed: int = 0
    errors: tuple[tuple[str, str], ...] = ()  # why it failed as a whole: codes and messages
    expires: float | None = None  # seconds since 1970

    @property
    def is_over(self) -> bool:
        """Whether the batch has ended, so that no more answers come."""
        return self.status in OVER


class BatchEndpoint:
    """Calls about batches: upload, create, look, cancel and fetch. Failed calls are tried again."""

    def __init__(self, model: DirectModel, retry: RetryPolicy, on_wait: Callable[[str, float], None]) -> None:
        """``model`` makes the calls; ``on_wait`` gets the reason and the seconds of a wait."""
        self._model, self._retry, self._on_wait = model, retry, on_wait
        self._has_batches = False
        """Whether the endpoint is known to offer batches. If so, a reply in another form comes from something in front
        of the endpoint, and may be temporary."""

    async def upload(self, lines: Path) -> str:
        """Upload a file of requests, one per line, and return its id. Raises ModelError if it was not taken."""
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
        """Make a batch of an uploaded file, once: if no reply comes, the batch is searched for before it is sent again.
        Raises ModelError if it was not taken. An error without a status means that it may have been taken."""
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
        """Ask for a batch's state. Raises ModelError for an unknown batch (404), a refusal, or no reply for an hour."""
        self._has_batches = True

        async def once() -> BatchState:
            return self._state(await self._json("GET", f"batches/{batch}"))

        return await self.patiently(once, UNHEARD)

    async def find(self, file: str) -> BatchState | None:
        """Find the batch of an uploaded file, or return None. Raises ModelError without a reply for an hour."""
        self._has_batches = True
        return await self.patiently(lambda: self._find(file), UNHEARD)

    async def cancel(self, batch: str) -> None:
        """Ask the endpoint to end a batch; its answers so far are kept. Raises ModelError if the endpoint refuses."""
        await self.patiently(lambda: self._json("POST", f"batches/{batch}/cancel"))

    async def lines(self, file: str, expected: int) -> list[bytes]:
        """Fetch the lines of a file: at least ``expected``, or fewer if every download breaks off. Raises ModelError if
        the endpoint does not have the file (status 404), refuses, or sends no line for an hour."""
        longest: list[bytes] = []
        for _ in range(DOWNLOADS):
            lines = await self.patiently(lambda: self._content(file, expected), UNHEARD)
            longest = max(longest, lines, key=len)
            if len(lines) >= expected and (not lines or as_object(lines[-1]) is not None):
                return lines
        return longest

    async def patiently(self, do: Callable[[], Awaitable[Result]], seconds: float | None = None) -> Result:
        """Try a call for ``seconds``, by default as often as other calls. Raises the last ModelError."""
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
        payload = await self._payload("GET", f"files/{file}/content", seconds=FILE_TIMEOUT)
        lines = payload.splitlines()
        if (expected or payload.strip()) and not any(as_object(line) for line in lines):
            # Do not treat this as a file without answers: the requests would be sent and paid for again.
            shown = payload[:200].decode("utf-8", "replace")
            raise ModelError(
                f"{self._model.name}: the file {file} of a batch's answers holds none. It said: {shown}", retry=True
            )
        return lines

    async def _find(self, file: str) -> BatchState | None:
        cursor = ""
        for _ in range(PAGES):
            page = await self._json("GET", f"batches?limit=100{cursor}")
            rows = page.get("data")
            if not isinstance(rows, list):
                raise self._unreadable(page)
            states = [self._state(row) for row in rows]
            for state in states:
                if state.input_file == file:
                    return state
            if not states or not page.get("has_more"):
                return None
            cursor = f"&after={states[-1].id}"
        return None

    async def _json(self, method: str, path: str, data: Any = None, *, seconds: float | None = None) -> dict[str, Any]:
        payload = await self._payload(method, path, data, seconds=seconds)
        reply = as_object(payload)
        if reply is None:
            raise self._unreadable(payload.decode("utf-8", "replace"))
        return reply

    async def _payload(self, method: str, path: str, data: Any = None, *, seconds: float | None = None) -> bytes:
        status, headers, payload = await self._model.call(method, path, data, seconds=seconds)
        if status not in (200, 201):
            raise self._model.explain(status, headers, payload)
        return payload

    def _id(self, found: dict[str, Any]) -> str:
        name = found.get("id")
        if not isinstance(name, str) or not name:
            raise self._unreadable(found)
        return name

    def _state(self, found: Any) -> BatchState:
        try:
            counts = found.get("request_counts") or {}
            errors, ends = (found.get("errors") or {}).get("data") or [], found.get("expires_at")
            return BatchState(
                self._id(found),
                str(found["status"]).lower(),
                str(found["input_file_id"]),
                found.get("output_file_id") or None,
                found.get("error_file_id") or None,
                int(counts.get("completed") or 0),
                int(counts.get("failed") or 0),
                tuple((str(each.get("code")), _said(each)) for each in errors),
                float(ends) if isinstance(ends, (int, float)) and 1 < ends < LATEST else None,
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._unreadable(found) from None

    def _unreadable(self, found: object) -> ModelError:
        return ModelError(
            f"{self._model.name}: the endpoint's reply is none of OpenAI's batch API. Does it offer batches, with /v1 at "
            f"the end of --api-base where it wants it? It said: {str(found)[:200]}",
            retry=self._has_batches,
            fatal=not self._has_batches,
            status=200,
        )


def _said(error: Any) -> str:
    place = "" if error.get("line") is None else f"line {error['line']}: "
    return f"{place}{error.get('message') or error.get('code') or 'no reason given'}"


def as_object(line: bytes) -> dict[str, Any] | None:
    """Parse the JSON object in a line; None if the line breaks off or holds no object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
