"""``openai/NAME`` asked in batches: callers await single answers, what they ask at the same time is bought together.

How it is gathered: requests are collected until none has come for :attr:`Pace.still` seconds, in which the event loop was
looked at several times, so that a busy machine is not taken for one that has asked everything; or until a batch is full.
Two kinds of requests are asked directly, at the full price: the first one of each form (the fields that it has), from which
is learnt what the endpoint refuses before a whole batch is refused for it; and one that nothing else was asked beside, as
all would wait up to a day to save half of one call. Answers are matched by the hash of the request, so they are those that
the same requests get one by one, and in the same order.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time
from typing import IO, TYPE_CHECKING, Any

from ..base import Answer, LeftOutError, ModelError
from ..budget import count
from ..direct import DirectModel
from ..prices import BATCH_SHARE
from .endpoint import ASKED, BatchEndpoint, BatchState, as_object
from .records import BatchJournal, BatchRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence, Set

    from ..base import Request
    from ..gateway import RetryPolicy
    from ..prices import Price

MOST_REQUESTS = 50_000
"""Requests in one batch (platform.openai.com/docs/guides/batch)."""
MOST_BYTES = 200_000_000
"""Bytes of its file."""
TOO_MUCH_QUEUED = "token_limit_exceeded"
"""Code of a batch that failed because the endpoint holds too many tokens of this account already."""
LEAST_HALVED = 10
"""Requests below which a batch that is too much for the endpoint is not sent in halves."""
WINDOW = 86_400.0
"""Seconds that a batch may take where the endpoint does not say."""
OVERDUE = 3600.0
"""Seconds after its end after which a batch that goes on is cancelled, for what it has answered by then."""


@dataclass(frozen=True)
class Pace:
    """How long is waited, in seconds."""

    still: float = 1.0
    """Without a new request, until what was gathered is sent."""
    first: float = 1.0
    """Until a batch is looked at again for the first time; each further time half as long again."""
    longest: float = 60.0
    """At most between two looks."""


@dataclass(eq=False)
class _Waiting:
    """A request that somebody awaits the answer of."""

    request: Request
    form: frozenset[str]
    full_price: bool
    """Whether the full price was set aside for it."""
    answer: asyncio.Future[Answer]
    batch: _Open | None = None
    """Where it waits."""

    @property
    def key(self) -> str:
        return self.request.key.hex()

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(replace(error) if isinstance(error, ModelError) else error)
            self.answer.exception()


@dataclass(eq=False)
class _Open:
    """A batch whose answers are waited for, or have not all been taken yet."""

    record: BatchRecord
    left: set[str]
    """Keys whose answers nobody has taken yet."""
    waiting: dict[str, list[_Waiting]] = field(default_factory=dict)
    replies: dict[str, dict[str, Any]] | None = None
    """The lines that came back, by key; None before that."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether it is waited for no more."""
    end: str = ""
    """Why a request has no line, once they came back."""
    is_from_before: bool = False
    """Whether an earlier process sent it."""
    is_cancelled: bool = False
    """Whether this one cancelled it."""

    @property
    def all_waiting(self) -> list[_Waiting]:
        return [each for some in self.waiting.values() for each in some if not each.answer.done()]

    def await_here(self, each: _Waiting) -> None:
        each.batch = self
        self.waiting.setdefault(each.key, []).append(each)


class BatchModel(DirectModel):
    """``openai/NAME`` at an endpoint that takes batches; half the price, and hours in place of seconds."""

    gathers = 2 * MOST_REQUESTS
    """How many callers may await their answers at once."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        *,
        identity: str,
        api_key: str | None = None,
        timeout: float = 120.0,
        price: Price | None = None,
        retry: RetryPolicy,
        say: Callable[[str], None] | None = None,
        on_wait: Callable[[str, float], None] | None = None,
        pace: Pace | None = None,
    ) -> None:
        """As :class:`~askance.models.direct.DirectModel`, and who is told.

        Args:
            name: As the user wrote it.
            model: Its name at the endpoint.
            base_url: The endpoint's address.
            identity: The same as without batches, as the answers are.
            api_key: Of the endpoint.
            timeout: Seconds of a call that is no file.
            price: Without batches; None where it is not known.
            retry: How calls about batches are made again.
            say: Told what is waited for.
            on_wait: Told of a call that is made again, and in how many seconds.
            pace: How long is waited.
        """
        half = None if price is None else price.times(BATCH_SHARE)
        super().__init__(name, model, base_url, identity=identity, api_key=api_key, timeout=timeout, price=half)
        self._full_price = price
        self._say = say or (lambda _: None)
        self._pace = pace or Pace()
        self._endpoint = BatchEndpoint(name, self._call, self._error, retry, on_wait or (lambda _, __: None))
        self._journal = BatchJournal(identity)
        self._tried: set[frozenset[str]] = set()
        self._gathered: list[_Waiting] = []
        self._forms: set[frozenset[str]] = set()
        """Of what is gathered."""
        self._came = 0
        self._gathering = False
        self._most = MOST_REQUESTS
        self._in_turn = False
        """Whether a batch waits for the one before to end."""
        self._turn = asyncio.Lock()
        self._open: dict[str, _Open] = {}
        """By the id of the input file."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, request: Request) -> Answer:
        """Ask together with what else is asked now, and wait.

        Raises:
            ModelError: No usable answer, or none before the batch expired.
            InputError: The record of an earlier batch is damaged.
            AskanceError: A batch cannot be written down; it was not sent.
        """
        form, loop = _form(request), asyncio.get_running_loop()
        waiting = _Waiting(request, form, self._may_be_direct(form), loop.create_future())
        self._gather([waiting])
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            waiting.batch = None  # nobody has it, so it stays in the record
            raise
        finally:
            if waiting.batch is not None:
                # whoever asked keeps the answer before anything else is done
                loop.call_soon(self._taken, waiting.batch, waiting.key)

    def highest_cost(self, request: Request) -> float:
        """US dollars that an answer may cost: the full price of what may be asked directly, else half of it."""
        price = self._full_price if self._may_be_direct(_form(request)) else self.price
        return 0.0 if price is None else price.highest(request)

    async def close(self) -> None:
        """Close the connections. Batches that are not over go on, and are said; their records stay."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for batch in self._open.values():
            if batch.left:
                self._journal.write(batch.record.only(batch.left))
            if batch.replies is None and batch.record.batch is not None:
                self._say(
                    f"The batch {batch.record.batch} ({count(len(batch.record.requests), 'request')}) goes on at the endpoint; "
                    "the same command with --engine batch goes on with it and buys nothing twice."
                )
        self._open.clear()
        await super().close()

    def _may_be_direct(self, form: frozenset[str]) -> bool:
        """Whether a request that comes now may be asked directly: the first of its form, or when nothing else waits."""
        return not self._gathered or form not in self._tried | self._forms

    # --- gathering ----------------------------------------------------------------------------------------------------

    def _gather(self, more: Iterable[_Waiting]) -> None:
        for each in more:
            self._gathered.append(each)
            self._forms.add(each.form)
            self._came += 1
        if not self._gathering and self._gathered:
            self._gathering = True
            self._do(self._until_still())

    async def _until_still(self) -> None:
        looks, still, came = 4, 0, -1
        while still < looks and len(self._gathered) < self._most:
            await asyncio.sleep(self._pace.still / looks)
            still, came = (still + 1 if came == self._came else 0), self._came
        group = [each for each in self._gathered if not each.answer.done()]
        self._gathered, self._gathering = [], False
        self._forms.clear()
        try:
            async with self._turn:
                await self._serve(group)
        except Exception as error:
            for each in group:
                if each.batch is None:
                    each.fail(error)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, group: Sequence[_Waiting]) -> None:
        """Answer what was gathered: from batches that are open, directly, or by new batches."""
        self._go_on({each.key for each in group})
        rest: list[_Waiting] = []
        for each in group:
            batch = next((one for one in self._open.values() if each.key in one.left), None)
            if batch is None:
                rest.append(each)
                continue
            batch.await_here(each)
            if batch.replies is not None:
                self._deliver(batch, each.key)
        if len(rest) == len(group) == 1 and rest[0].full_price:
            await self._directly(rest.pop())
        for each in [*rest]:
            if each.form not in self._tried:
                rest.remove(each)
                await self._endpoint.patiently(partial(self._directly, each, may_raise=True))
        for part in self._parts(rest):
            if self._in_turn:
                await asyncio.gather(*(one.over.wait() for one in self._open.values()))
            await self._send(part)

    def _go_on(self, keys: Set[str]) -> None:
        """Wait for the batches of earlier processes that hold one of these requests."""
        for record in self._journal.read(self._open):
            if keys.isdisjoint(record.requests):
                continue
            batch = _Open(record, set(record.requests), is_from_before=True)
            self._open[record.input_file] = batch
            self._say(
                f"Going on with the batch of {_clock(record.sent)} ({count(len(record.requests), 'request')} to {self.name})."
            )
            self._do(self._follow(batch))

    async def _directly(self, waiting: _Waiting, *, may_raise: bool = False) -> None:
        """Ask one request by itself, at the full price.

        Raises:
            ModelError: All would get it; or, where it ``may_raise``, asking again may help.
        """
        try:
            answer = await super().answer(waiting.request)
        except ModelError as error:
            if error.fatal or (may_raise and error.retry):
                raise
            waiting.fail(error)
            if not error.retry:
                self._tried.add(waiting.form)
            return
        self._tried.add(waiting.form)
        if self._full_price is not None:
            answer = replace(answer, cost_usd=self._full_price.of(answer.prompt_tokens, answer.completion_tokens))
        if not waiting.answer.done():
            waiting.answer.set_result(answer)

    def _parts(self, waiting: Iterable[_Waiting]) -> Iterator[tuple[list[_Waiting], IO[bytes]]]:
        """What one batch takes at a time, with its file."""
        part: list[_Waiting] = []
        file: IO[bytes] | None = None
        for each in waiting:
            line = self._line(each)
            if file is not None and (len(part) >= self._most or file.tell() + len(line) > MOST_BYTES):
                yield part, file
                part, file = [], None
            if file is None:
                file = NamedTemporaryFile(suffix=".jsonl")  # noqa: SIM115 - closed by who sends it
            part.append(each)
            file.write(line)
        if file is not None:
            yield part, file

    def _line(self, waiting: _Waiting) -> bytes:
        body = self._body(waiting.request, self._unsupported)
        line = {"custom_id": waiting.key, "method": "POST", "url": ASKED, "body": body}
        return json.dumps(line).encode() + b"\n"

    # --- one batch ----------------------------------------------------------------------------------------------------

    async def _send(self, part: tuple[list[_Waiting], IO[bytes]]) -> None:
        """Upload and send, with what is needed to find it again on disk before."""
        group, lines = part
        try:
            with lines:
                lines.flush()
                file = await self._endpoint.upload(Path(lines.name))
        except ModelError as error:
            raise self._no_batches(error) from None
        keys = tuple(each.key for each in group)
        batch = _Open(BatchRecord(self.identity, file, keys, time()), set(keys))
        self._journal.write(batch.record)
        try:
            state = await self._endpoint.create(file)
        except ModelError as error:
            if error.status is not None:
                self._journal.drop(batch.record)
            raise self._no_batches(error) from None
        for each in group:
            batch.await_here(each)
        self._open[file] = batch
        self._heard_id(batch, state)
        self._say(
            f"Waiting for the batch {state.id}: {count(len(group), 'request')} to {self.name}, until {_clock(state.expires or batch.record.sent + WINDOW)} "
            "at the latest. Stopped, the same command goes on with it."
        )
        self._do(self._follow(batch, state))

    def _no_batches(self, error: ModelError) -> ModelError:
        """What ends the run where a batch cannot be sent at all."""
        text = error.message
        if error.status in (404, 405, 501):
            text = f"{self.name}: the endpoint offers no batches (HTTP {error.status}). Leave out --engine batch. It said: {text}"
        elif error.retry:
            text = f"The batch was not taken, so the run stops here. {text}"
        return replace(error, message=text, fatal=True, retry=False)

    def _heard_id(self, batch: _Open, state: BatchState) -> None:
        batch.record = replace(batch.record, batch=state.id)
        self._journal.write(batch.record)

    async def _follow(self, batch: _Open, state: BatchState | None = None) -> None:
        """Wait for a batch and hand out its answers; what goes wrong goes to all who wait for one."""
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

    async def _found_again(self, batch: _Open) -> BatchState | None:
        """How it is with a batch of an earlier process; None where that one was stopped before it was made."""
        if batch.record.batch is not None:
            return await self._endpoint.look(batch.record.batch)
        state = await self._endpoint.find(batch.record.input_file)
        if state is not None:
            self._heard_id(batch, state)
        return state

    async def _over(self, batch: _Open, state: BatchState) -> BatchState:
        """The batch when nothing more comes; one that goes on after its time is cancelled."""
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

    def _not_taken(self, batch: _Open, state: BatchState) -> None:
        """A batch that failed before its first request: in halves, one after the other, where it was too much at once."""
        self._journal.drop(batch.record)
        size = len(batch.record.requests)
        said = "; ".join(text for _, text in state.errors[:3]) or "no reason given"
        if any(code == TOO_MUCH_QUEUED for code, _ in state.errors) and size >= LEAST_HALVED:
            self._most = max(LEAST_HALVED // 2, min(self._most, -(-size // 2)))
            self._say(
                f"The batch {state.id} was too much at once ({said}); it is sent again in parts of {self._most:,}."
            )
            self._in_turn = True
            self._ask_again(batch)
            return
        del self._open[batch.record.input_file]
        self._fail(batch, ModelError(f"{self.name}: the batch {state.id} failed: {said}", fatal=True))

    async def _take(self, batch: _Open, state: BatchState) -> None:
        """Fetch the lines and hand them out as they come; then say to all others that there is no answer for them."""
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
                answered += _is_answered(line)
                batch.replies[key] = line
                self._deliver(batch, key)
        self._say(
            f"The batch {state.id} is {state.status}: {answered:,} of {count(len(batch.record.requests), 'request')} answered."
        )
        for key in batch.record.requests:
            self._deliver(batch, key)

    def _deliver(self, batch: _Open, key: str) -> None:
        """Give those who wait for a request its answer, or say why there is none."""
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

    def _taken(self, batch: _Open, key: str) -> None:
        batch.left.discard(key)
        if batch.replies is not None:
            batch.replies.pop(key, None)
        if not batch.left:
            self._journal.drop(batch.record)
            self._open.pop(batch.record.input_file, None)

    def _answer_in(self, batch: _Open, line: dict[str, Any] | None, request: Request) -> Answer:
        """The answer in a line.

        Raises:
            ModelError: There is none; asked again unless the batch was cancelled by somebody else.
        """
        name = batch.record.batch
        if line is None and batch.end == "cancelled":
            raise ModelError(
                f"{self.name}: the batch {name} was cancelled at the endpoint. What it had answered is kept; the same command asks "
                "for the rest.",
                fatal=True,
            )
        response = None if line is None else line.get("response")
        if not isinstance(response, dict):
            error = None if line is None else line.get("error")
            said = error.get("message") or error.get("code") if isinstance(error, dict) else f"no answer ({batch.end})"
            raise LeftOutError(f"{self.name}: the batch {name}: {self._clean(str(said))[:300]}", retry=True)
        payload, status = json.dumps(response.get("body")).encode(), response.get("status_code")
        try:
            if status == 200:
                return self._read(payload, request)
            raise self._error(status if isinstance(status, int) else 0, {}, payload)
        except ModelError as error:
            if error.fatal:
                raise
            raise LeftOutError(error.message, retry=error.retry, status=error.status) from None

    def _ask_again(self, batch: _Open) -> None:
        """Drop a batch that gives no answers; what waits for it is gathered again."""
        self._journal.drop(batch.record)
        self._open.pop(batch.record.input_file, None)
        waiting = batch.all_waiting
        for each in waiting:
            each.batch = None
        batch.waiting.clear()
        self._gather(waiting)

    def _fail(self, batch: _Open, error: Exception) -> None:
        """Tell all who wait; what the batch holds is not lost by it."""
        for waiting in batch.all_waiting:
            waiting.batch = None
            waiting.fail(error)


def _form(request: Request) -> frozenset[str]:
    """Which of the fields that an endpoint may refuse a request has."""
    asked = request.parameters
    there = {"seed": asked.seed is not None, "logprobs": asked.top_logprobs > 0, "schema": asked.schema is not None}
    return frozenset(name for name, is_there in there.items() if is_there)


def _clock(seconds: float) -> str:
    """A time of day, local."""
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def _is_answered(line: dict[str, Any] | None) -> bool:
    response = None if line is None else line.get("response")
    return isinstance(response, dict) and response.get("status_code") == 200
