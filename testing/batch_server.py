"""An OpenAI-compatible server on loopback that takes batches, too, as OpenAI's documentation says."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .stand_in_server import ServerReply, StandInServer, web_reply

_NOT_EXECUTED = {
    "expired": "This request could not be executed in time.",
    "cancelled": "The batch was cancelled before this request was executed.",
}
"""What is said of each request that a batch ended before."""
Tamper = Callable[[str, str], tuple[Any, ...] | None]
"""From method and path of a call about files or batches: status, body and perhaps headers of another reply, or None."""


@dataclass
class ServedBatch:
    """A batch at the server."""

    id: str
    input_file: str
    requests: list[Mapping[str, Any]]
    """The lines of its file."""
    status: str = "validating"
    looks: int = 0
    """How often it was looked at."""
    output_file: str | None = None
    error_file: str | None = None
    errors: list[Mapping[str, Any]] = field(default_factory=list)
    completed: int = 0
    failed: int = 0


class BatchServer(StandInServer):
    """A :class:`~askance.testing.StandInServer` with files and batches, whose answers come from the same function.

    A batch is done when it was looked at ``looks`` times; its answers come in an order of their own. What the function
    gives with another status than 200 stands in the file of errors.
    """

    def __init__(self, script: Callable[[Mapping[str, Any]], ServerReply], *, looks: int = 2) -> None:
        """``looks``: how often a batch says that it is not done yet."""
        super().__init__(script)
        self.looks = looks
        self.batches: list[ServedBatch] = []
        """In the order in which they were made."""
        self.files: dict[str, str] = {}
        """What was uploaded and written, by id."""
        self.end: Callable[[ServedBatch], str] = lambda batch: "completed"
        """What becomes of a batch: ``completed``, ``expired``, ``failed`` (with its ``errors``) or ``cancelled``."""
        self.is_answered: Callable[[ServedBatch, int], bool] = lambda batch, number: True
        """Whether a request, by its place in the file, is answered before an end other than ``completed``."""
        self.leaves_out: Callable[[ServedBatch, int], bool] = lambda batch, number: False
        """Whether nothing at all comes back for a request."""
        self.before: Tamper = lambda method, path: None
        """A reply in place of what the call would do."""
        self.after: Tamper = lambda method, path: None
        """A reply in place of the one to a call that has done what it does."""

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
        names = [each.id for each in newest]
        begin = names.index(http.query["after"]) + 1 if "after" in http.query else 0
        page = newest[begin : begin + int(http.query.get("limit", 20))]
        more = begin + len(page) < len(newest)
        return 200, {"object": "list", "data": [self._shown(each) for each in page], "has_more": more}

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
