"""Open batches: a record of each is on disk before anybody waits for it; its answers are fetched and handed out."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Collection, Container, Coroutine, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any

from pydantic import FiniteFloat, TypeAdapter

from ...prompts.errors import AskanceError, InputError
from ...prompts.formatting import count
from ...prompts.text_files import write_whole
from ..base import Answer, LeftOutError, ModelError, Request
from ..direct import DirectModel
from ..files import cache_directory
from .endpoint import BatchEndpoint, BatchState, as_object


@dataclass(frozen=True)
class BatchRecord:
    """A record of a batch that was, or may have been, paid for: enough to find and match its answers, without texts."""

    identity: str  # identity of the model: address and name
    input_file: str  # id of the uploaded requests at the endpoint; it finds a batch whose own id was never received
    requests: tuple[str, ...]  # keys, in hex, of the requests whose answers nobody has taken, in the order of sending
    sent: FiniteFloat  # seconds since 1970
    batch: str | None = None  # the batch's id; None if the record was written before the endpoint made the batch

    def only(self, keys: Collection[str]) -> BatchRecord:
        """Return this record with only the requests in ``keys``."""
        return replace(self, requests=tuple(key for key in self.requests if key in keys))


_RECORD = TypeAdapter(BatchRecord)


class BatchJournal:
    """The records of one model's batches. Each is a file in the folder ``batches`` of the cache directory."""

    def __init__(self, identity: str) -> None:
        """``identity`` is the model's identity."""
        self._identity = identity
        self._folder = cache_directory() / "batches"
        self._beginning = sha256(identity.encode()).hexdigest()[:16]

    def write(self, record: BatchRecord) -> None:
        """Write a record, in place of the batch's earlier one, safe from power failures. Raises AskanceError."""
        try:
            write_whole(self._path(record), _RECORD.dump_json(record).decode())
        except AskanceError as error:
            raise AskanceError(f"{error} Nothing is sent that could not be found again.") from None
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def drop(self, record: BatchRecord) -> None:
        """Delete a batch's record."""
        self._path(record).unlink(missing_ok=True)

    def read(self, known: Collection[str] = ()) -> list[BatchRecord]:
        """Read the records, oldest first, without those of the input files ``known``. Raises InputError for a damaged
        record."""
        # no record is dropped for its age: the endpoint says which batches it no longer has
        passed_over = {self._name(file) for file in known}
        records = []
        for path in sorted(self._folder.glob(f"{self._beginning}-*.json")):
            if path.name in passed_over:
                continue
            record = _read(path)
            if record is not None and record.identity == self._identity:
                records.append(record)
        return sorted(records, key=lambda record: (record.sent, record.input_file))

    def _path(self, record: BatchRecord) -> Path:
        return self._folder / self._name(record.input_file)

    def _name(self, input_file: str) -> str:
        return f"{self._beginning}-{sha256(input_file.encode()).hexdigest()[:16]}.json"


def keys_in_batches(identity: str) -> Container[str]:
    """Return the keys, in hex, of the requests in a model's open batches; none if a record is damaged."""
    with suppress(InputError):
        return {key for record in BatchJournal(identity).read() for key in record.requests}
    return ()


def _read(path: Path) -> BatchRecord | None:
    """Read one record; None if it was dropped in the meantime."""
    try:
        return _RECORD.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: this record of a batch cannot be read ({type(error).__name__}). What the batch has answered is "
            "still at the endpoint; move the file away to buy it again."
        ) from None


TOO_MUCH_QUEUED = "token_limit_exceeded"
"""Error code of a batch that failed because too many tokens of this account are already queued at the endpoint."""
LEAST_HALVED = 10  # fewest requests for which a batch that the endpoint cannot queue is sent again in halves
WINDOW = 86_400.0  # seconds that a batch may take if the endpoint names no end
OVERDUE = 3600.0  # seconds past its end after which a batch is cancelled; its answers so far are kept


@dataclass(frozen=True)
class Pace:
    """Waiting times, in seconds."""

    still: float = 1.0  # time without a new request after which the gathered requests are sent
    first: float = 1.0  # before the first look at a batch; each further wait is half as long again
    longest: float = 60.0  # longest time between two looks


@dataclass(eq=False)
class AwaitedRequest:
    """A request whose answer a caller awaits."""

    request: Request
    form: frozenset[str]
    full_price: bool  # whether the full price was set aside for it
    answer: asyncio.Future[Answer]
    batch: OpenBatch | None = None  # the batch in which the request waits

    @property
    def key(self) -> str:
        """Hash of the request, in hex: the ``custom_id`` of its line in the batch."""
        return self.request.key.hex()

    def fail(self, error: Exception) -> None:
        """Raise the error at the caller, if it still waits."""
        if not self.answer.done():
            # an error of its own for each caller, as raising it adds a traceback to it
            self.answer.set_exception(replace(error) if isinstance(error, ModelError) else error)
            self.answer.exception()


@dataclass(eq=False)
class OpenBatch:
    """A batch that callers wait for, or that has answers which nobody has taken yet."""

    record: BatchRecord
    left: set[str]  # keys whose answers nobody has taken yet
    waiting: dict[str, list[AwaitedRequest]] = field(default_factory=dict)
    replies: dict[str, dict[str, Any]] | None = None  # lines that came back, by key; None until the batch is fetched
    over: asyncio.Event = field(default_factory=asyncio.Event)  # set when nobody waits for the batch any more
    end: str = ""  # why a request has no line, once the lines are fetched
    is_from_before: bool = False  # whether an earlier process sent it
    is_cancelled: bool = False  # whether this process cancelled the batch

    @property
    def all_waiting(self) -> list[AwaitedRequest]:
        """All requests that still wait for an answer from this batch."""
        return [request for group in self.waiting.values() for request in group if not request.answer.done()]

    def await_here(self, each: AwaitedRequest) -> None:
        """Let a request wait for this batch."""
        each.batch = self
        self.waiting.setdefault(each.key, []).append(each)


class OpenBatches:
    """The batches of one model that are not over, or have answers which nobody has taken yet."""

    def __init__(
        self,
        model: DirectModel,
        endpoint: BatchEndpoint,
        journal: BatchJournal,
        pace: Pace,
        say: Callable[[str], None],
        gather: Callable[[Sequence[AwaitedRequest]], None],
    ) -> None:
        """``model`` reads the replies. ``gather`` gets the requests that must be asked in another batch."""
        self._model, self._endpoint, self._journal = model, endpoint, journal
        self._pace, self._say, self._gather = pace, say, gather
        self._by_file: dict[str, OpenBatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.most: int | None = None
        """Most requests in one batch, after the endpoint refused more; each batch then waits for the batch before. None
        if nothing was refused."""

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task, at most until :meth:`close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def go_on(self, keys: Set[str]) -> None:
        """Wait for batches of earlier processes that hold any of these keys. Raises InputError for a damaged record."""
        for record in self._journal.read(self._by_file):
            if keys.isdisjoint(record.requests):
                continue
            batch = OpenBatch(record, set(record.requests), is_from_before=True)
            self._by_file[record.input_file] = batch
            size = count(len(record.requests), "request")
            self._say(f"Going on with the batch of {clock(record.sent)} ({size} to {self._model.name}).")
            self.start(self._follow(batch))

    def add(self, record: BatchRecord, state: BatchState, group: Sequence[AwaitedRequest]) -> None:
        """Wait for a batch that the endpoint has just made."""
        batch = OpenBatch(record, set(record.requests))
        self._heard_id(batch, state)  # before anybody waits for the batch, as writing the id may fail
        for each in group:
            batch.await_here(each)
        self._by_file[record.input_file] = batch
        ends = clock(state.expires or record.sent + WINDOW)
        self._say(
            f"Waiting for the batch {state.id}: {count(len(group), 'request')} to {self._model.name}, until {ends} "
            "at the latest. Stopped, the same command goes on with it."
        )
        self.start(self._follow(batch, state))

    def take_in(self, waiting: AwaitedRequest) -> bool:
        """Whether an open batch has, or will have, the answer to a request. The request then waits for that batch."""
        batch = next((one for one in self._by_file.values() if waiting.key in one.left), None)
        if batch is None:
            return False
        batch.await_here(waiting)
        if batch.replies is not None:
            self._deliver(batch, waiting.key)
        return True

    async def all_over(self) -> None:
        """Wait until no batch is waited for."""
        await asyncio.gather(*(batch.over.wait() for batch in self._by_file.values()))

    async def close(self) -> None:
        """Stop waiting. Batches that are not over go on at the endpoint; the user is told, and their records stay."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for batch in self._by_file.values():
            self._journal.write(batch.record.only(batch.left))
            if batch.replies is None and batch.record.batch is not None:
                self._say(
                    f"The batch {batch.record.batch} ({count(len(batch.record.requests), 'request')}) goes on at the "
                    "endpoint; the same command with --engine batch goes on with it and buys nothing twice."
                )
        self._by_file.clear()

    def _heard_id(self, batch: OpenBatch, state: BatchState) -> None:
        batch.record = replace(batch.record, batch=state.id)
        self._journal.write(batch.record)

    async def _follow(self, batch: OpenBatch, state: BatchState | None = None) -> None:
        """Wait for a batch and hand out its answers. An error goes to all callers that wait for this batch."""
        try:
            if state is None and (state := await self._found_again(batch)) is None:
                self._ask_again(batch)
                return
            state = await self._over(batch, state)
            if state.status == "failed":
                self._not_taken(batch, state)
            else:
                await self._take(batch, state)
        except ModelError as error:
            if error.status == 404 and batch.is_from_before:
                self._say(
                    f"The endpoint has the batch {batch.record.batch} no more; what it was to answer is asked again."
                )
                self._ask_again(batch)
            else:
                self._fail(batch, replace(error, fatal=True, retry=False))
        except Exception as error:
            self._fail(batch, error)
        finally:
            batch.over.set()

    async def _found_again(self, batch: OpenBatch) -> BatchState | None:
        """Look up an earlier process's batch; None if that process was stopped before the batch was made."""
        if batch.record.batch is not None:
            return await self._endpoint.look(batch.record.batch)
        state = await self._endpoint.find(batch.record.input_file)
        if state is not None:
            self._heard_id(batch, state)
        return state

    async def _over(self, batch: OpenBatch, state: BatchState) -> BatchState:
        """Wait until a batch is over and return its last state. A batch that is overdue is cancelled."""
        wait = self._pace.first
        ends = (state.expires or batch.record.sent + WINDOW) + OVERDUE
        while not state.is_over:
            if time() > ends and not batch.is_cancelled:
                batch.is_cancelled = True
                self._say(f"The batch {state.id} is overdue and is cancelled; what it has answered by now is kept.")
                with suppress(ModelError):
                    await self._endpoint.cancel(state.id)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, self._pace.longest)
            state = await self._endpoint.look(state.id)
        return state

    def _not_taken(self, batch: OpenBatch, state: BatchState) -> None:
        """Handle a batch that failed as a whole. If it was too large, ask its requests again in halves, one after the
        other; else give the error to all callers."""
        self._journal.drop(batch.record)
        size = len(batch.record.requests)
        reasons = "; ".join(text for _, text in state.errors[:3]) or "no reason given"
        if any(code == TOO_MUCH_QUEUED for code, _ in state.errors) and size >= LEAST_HALVED:
            self.most = max(LEAST_HALVED // 2, -(-size // 2))
            self._say(
                f"The batch {state.id} was too much at once ({reasons}); it is sent again in parts of {self.most:,}."
            )
            self._ask_again(batch)
            return
        del self._by_file[batch.record.input_file]
        self._fail(batch, ModelError(f"{self._model.name}: the batch {state.id} failed: {reasons}", fatal=True))

    async def _take(self, batch: OpenBatch, state: BatchState) -> None:
        """Fetch a batch's lines and hand them out as they come; then tell all other callers that there is no answer."""
        batch.end = "expired" if state.status == "expired" or batch.is_cancelled else state.status
        batch.replies = {}
        answered = number = 0
        for file, expected in ((state.output_file, state.answered), (state.error_file, 0)):
            for written in await self._endpoint.lines(file, expected) if file is not None else ():
                number += 1
                if number % 100 == 0:
                    await asyncio.sleep(0)
                line = as_object(written) or {}
                key = line.get("custom_id")
                if not isinstance(key, str) or key not in batch.left or key in batch.replies:
                    continue
                response = line.get("response")
                answered += isinstance(response, dict) and response.get("status_code") == 200
                batch.replies[key] = line
                self._deliver(batch, key)
        self._say(
            f"The batch {state.id} is {state.status}: {answered:,} of {count(len(batch.record.requests), 'request')} "
            "answered."
        )
        for key in batch.record.requests:
            self._deliver(batch, key)

    def _deliver(self, batch: OpenBatch, key: str) -> None:
        """Give the callers of a request its answer, or the reason why there is none."""
        assert batch.replies is not None
        for waiting in batch.waiting.pop(key, ()):
            if waiting.answer.done():
                continue
            try:
                answer = self._answer_in(batch, batch.replies.get(key), waiting.request)
            except ModelError as error:
                waiting.fail(error)
            else:
                waiting.answer.set_result(answer)

    def taken(self, batch: OpenBatch, key: str) -> None:
        """Note that a request is done: its caller and the store have the answer, or there is none. A batch without open
        requests is dropped."""
        batch.left.discard(key)
        if batch.replies is not None:
            batch.replies.pop(key, None)
        if not batch.left:
            self._journal.drop(batch.record)
            self._by_file.pop(batch.record.input_file, None)

    def _answer_in(self, batch: OpenBatch, line: dict[str, Any] | None, request: Request) -> Answer:
        """Return the answer in a line. Raises ModelError without one; it is fatal if somebody cancelled the batch."""
        name = batch.record.batch
        response = None if line is None else line.get("response")
        if not isinstance(response, dict) and batch.end == "cancelled":
            raise ModelError(
                f"{self._model.name}: the batch {name} was cancelled at the endpoint. What it had answered is kept; "
                "the same command asks for the rest.",
                fatal=True,
            )
        if not isinstance(response, dict):
            error = None if line is None else line.get("error")
            said = error.get("message") or error.get("code") if isinstance(error, dict) else f"no answer ({batch.end})"
            raise LeftOutError(
                f"{self._model.name}: the batch {name}: {self._model.clean(str(said))[:300]}", retry=True
            )
        payload, status = json.dumps(response.get("body")).encode(), response.get("status_code")
        try:
            if status == 200:
                return self._model.read(payload, request)
            raise self._model.explain(status if isinstance(status, int) else 0, {}, payload)
        except ModelError as error:
            if error.fatal:
                raise
            raise LeftOutError(error.message, retry=error.retry, status=error.status) from None

    def _ask_again(self, batch: OpenBatch) -> None:
        """Drop a batch that gives no answers, and gather its waiting requests again."""
        self._journal.drop(batch.record)
        self._by_file.pop(batch.record.input_file, None)
        waiting = batch.all_waiting
        for each in waiting:
            each.batch = None
        batch.waiting.clear()
        self._gather(waiting)

    def _fail(self, batch: OpenBatch, error: Exception) -> None:
        """Give an error to all waiting callers. This changes neither the batch's record nor its answers."""
        for waiting in batch.all_waiting:
            waiting.batch = None
            waiting.fail(error)


def clock(seconds: float) -> str:
    """Format a time in seconds since 1970 as local date and time of day."""
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
