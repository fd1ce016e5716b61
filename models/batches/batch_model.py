"""Models ``openai/NAME`` asked in batches: callers await single answers, and gathered requests are bought together.

Requests are gathered until a batch is full, or until no request has come for :attr:`Pace.still` seconds. In these
seconds the gathering looks several times, so that a busy machine is not mistaken for a finished one. Two kinds of
requests are sent directly, at the full price: the first request with each set of fields, so that a refused field is
known before a batch is sent; and a request that comes alone, as waiting up to a day would save half of one call.
Answers are matched by the hash of the request, so they are the answers to single requests, in the same order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time
from typing import IO, Any

from ...prompts.errors import AskanceError
from ..base import Answer, ModelError, Request
from ..budget import BATCH_SHARE, Price
from ..direct import DirectModel
from ..gateway import RetryPolicy
from ..thinking_room import needs_room
from .endpoint import ASKED, BatchEndpoint
from .open_batches import AwaitedRequest, BatchJournal, BatchRecord, OpenBatch, OpenBatches, Pace

MOST_REQUESTS = 50_000  # requests in one batch (platform.openai.com/docs/guides/batch)
MOST_BYTES = 200_000_000  # bytes of a batch's file


class BatchModel(DirectModel):
    """A model ``openai/NAME`` at an endpoint that takes batches: half the price, and hours instead of seconds."""

    gathers = 2 * MOST_REQUESTS  # most callers that may await their answers at once

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        *,
        price: Price | None = None,
        retry: RetryPolicy,
        say: Callable[[str], None] | None = None,
        on_wait: Callable[[str, float], None] | None = None,
        pace: Pace | None = None,
        **how: Any,
    ) -> None:
        """Take the arguments of DirectModel; nothing is sent yet. ``retry`` is for calls about batches, ``pace`` has
        the waiting times. ``say`` gets messages for the user, ``on_wait`` the reason and seconds of a wait."""
        half = None if price is None else price.times(BATCH_SHARE)
        super().__init__(name, model, base_url, price=half, **how)
        self._full_price = price
        self._pace = pace or Pace()
        self._endpoint = BatchEndpoint(self, retry, on_wait or (lambda _, __: None))
        self._journal = BatchJournal(self.identity)
        say = say or (lambda _: None)
        self._open = OpenBatches(self, self._endpoint, self._journal, self._pace, say, self._gather)
        self._tried: set[frozenset[str]] = set()
        self._thinks = False  # whether the last reply to a request that was asked directly was thought about first
        self._given: dict[str, OpenBatch] = {}  # batches of answers that may not be in the store yet, by key
        self._gathered: list[AwaitedRequest] = []
        self._forms: set[frozenset[str]] = set()  # forms of the requests that are gathered
        self._came = 0
        self._gathering = False
        self._turn = asyncio.Lock()

    async def answer(self, request: Request) -> Answer:
        """Ask in one batch with the other requests of this time. Raises ModelError without a usable answer in time,
        InputError if an earlier batch's record is damaged, and AskanceError if a batch's record could not be written;
        the batch is then not sent."""
        form, loop = _form(request), asyncio.get_running_loop()
        waiting = AwaitedRequest(request, form, self._may_be_direct(form), loop.create_future())
        self.kept(request)  # asked again: the first answer was useless
        self._gather([waiting])
        is_of_use = False
        try:
            answer = await waiting.answer
            is_of_use = not answer.is_empty
            return answer
        except asyncio.CancelledError:
            waiting.batch = None  # nobody has taken the answer, so the request stays in the record
            raise
        finally:
            if waiting.batch is not None:
                self._given[waiting.key] = waiting.batch
                if not is_of_use:
                    self.kept(request)

    def kept(self, request: Request) -> None:
        """Take note that the store has the answer, or that there is none to keep. The request's batch can forget it."""
        key = request.key.hex()
        if (batch := self._given.pop(key, None)) is not None:
            asyncio.get_running_loop().call_soon(self._open.taken, batch, key)

    def highest_cost(self, request: Request) -> float:
        """Most US dollars that an answer may cost: the full price if the request may be asked directly, else half."""
        price = self._full_price if self._may_be_direct(_form(request)) else self.price
        return 0.0 if price is None else price.highest(request)

    async def close(self) -> None:
        """Close the connections. Batches that are not over go on at the endpoint, with their records; the user is
        told."""
        try:
            await self._open.close()
        finally:
            await super().close()

    @property
    def _most(self) -> int:
        return MOST_REQUESTS if self._open.most is None else min(MOST_REQUESTS, self._open.most)

    def _may_be_direct(self, form: frozenset[str]) -> bool:
        """Whether a request that comes now may be asked directly: it is the first of its form, or no other waits."""
        return not self._gathered or form not in self._tried | self._forms

    # --- gathering ----------------------------------------------------------------------------------------------------

    def _gather(self, more: Iterable[AwaitedRequest]) -> None:
        for each in more:
            self._gathered.append(each)
            self._forms.add(each.form)
            self._came += 1
        if not self._gathering and self._gathered:
            self._gathering = True
            self._open.start(self._until_still())

    async def _until_still(self) -> None:
        looks, still, came = 4, 0, -1
        while still < looks and len(self._gathered) < self._most:
            await asyncio.sleep(self._pace.still / looks)
            still, came = (still + 1 if came == self._came else 0), self._came
        group = [waiting for waiting in self._gathered if not waiting.answer.done()]
        self._gathered, self._gathering = [], False
        self._forms.clear()
        try:
            async with self._turn:
                await self._serve(group)
        except Exception as error:
            if isinstance(error, OSError):
                error = AskanceError(f"The file of a batch cannot be written to the temporary folder ({error}).")
            for waiting in group:
                if waiting.batch is None:
                    waiting.fail(error)

    async def _serve(self, group: Sequence[AwaitedRequest]) -> None:
        """Answer the gathered requests: from open batches, directly, or by new batches."""
        self._open.go_on({request.key for request in group})
        unserved = [request for request in group if not self._open.take_in(request)]
        if len(unserved) == len(group) == 1 and unserved[0].full_price:
            await self._directly(unserved.pop())
        for request in [*unserved]:
            if request.form not in self._tried:
                unserved.remove(request)
                await self._endpoint.patiently(partial(self._directly, request, may_raise=True))
        if self._thinks and (truncated := [request for request in unserved if not request.request.room]):
            for request in truncated:  # thinking would use up a whole batch: these are asked again, with room to think
                unserved.remove(request)
                if not request.answer.done():
                    request.answer.set_result(Answer("", finish="length"))
        for part in self._parts(unserved):
            if self._open.most is not None:
                await self._open.all_over()
            await self._send(part)

    async def _directly(self, waiting: AwaitedRequest, *, may_raise: bool = False) -> None:
        """Ask one request at the full price. Raises ModelError if the error is fatal, or, with ``may_raise``, if asking
        again may help; any other error goes to the caller of this request."""
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
        self._thinks = bool(answer.reasoning_tokens) or needs_room(answer, waiting.request.parameters.max_tokens)
        if self._full_price is not None:
            answer = answer._replace(cost_usd=self._full_price.of(answer.prompt_tokens, answer.completion_tokens))
        if not waiting.answer.done():
            waiting.answer.set_result(answer)

    def _parts(self, waiting: Iterable[AwaitedRequest]) -> Iterator[tuple[list[AwaitedRequest], IO[bytes]]]:
        """Divide requests into batches of a size that the endpoint takes, each with its input file."""
        part: list[AwaitedRequest] = []
        file: IO[bytes] | None = None
        for request in waiting:
            line = self._line(request)
            if file is not None and (len(part) >= self._most or file.tell() + len(line) > MOST_BYTES):
                yield part, file
                part, file = [], None
            if file is None:
                file = NamedTemporaryFile(suffix=".jsonl")  # noqa: SIM115 - closed by who sends it
            part.append(request)
            file.write(line)
        if file is not None:
            yield part, file

    def _line(self, waiting: AwaitedRequest) -> bytes:
        body = {**self._learner.facts.fit(self._body(waiting.request)), **self._learner.thinking.fields}
        line = {"custom_id": waiting.key, "method": "POST", "url": ASKED, "body": body}
        return json.dumps(line).encode() + b"\n"

    # --- one batch ----------------------------------------------------------------------------------------------------

    async def _send(self, part: tuple[list[AwaitedRequest], IO[bytes]]) -> None:
        """Upload a batch and send it. The record that finds it again is written to disk before it is sent."""
        group, lines = part
        try:
            with lines:
                lines.flush()
                file = await self._endpoint.upload(Path(lines.name))
        except ModelError as error:
            raise self._no_batches(error) from None
        keys = tuple(each.key for each in group)
        record = BatchRecord(self.identity, file, keys, time())
        self._journal.write(record)
        try:
            state = await self._endpoint.create(file)
        except ModelError as error:
            if error.status is not None:
                self._journal.drop(record)
            raise self._no_batches(error) from None
        self._open.add(record, state, group)

    def _no_batches(self, error: ModelError) -> ModelError:
        """Return the error that ends the run if a batch cannot be sent at all."""
        text = error.message
        if error.status in (404, 405, 501):
            text = (
                f"{self.name}: the endpoint offers no batches (HTTP {error.status}). Leave out --engine batch. It "
                f"said: {text}"
            )
        elif not error.fatal:
            text = f"The batch was not taken, so the run stops here. {text}"
        return replace(error, message=text, fatal=True, retry=False)


def _form(request: Request) -> frozenset[str]:
    asked = request.parameters
    there = {"seed": asked.seed is not None, "logprobs": asked.top_logprobs > 0, "schema": asked.schema is not None}
    return frozenset(name for name, is_there in there.items() if is_there)
