"""The one way to a model: answers come from the store or are bought, within the budget, with retries."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Protocol

from ..prompts.errors import AskanceError
from .base import Answer, Model, ModelError, Request
from .budget import Budget, highest_cost, reserved_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..prompts.verdicts import Provenance


HOPELESS = 10
"""After so many calls in a row without an answer the endpoint is taken to be down."""


class AnswerStore(Protocol):
    """Where answers are kept; :class:`askance.memory.verdict_store.VerdictStore` is one."""

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Those of the answers that are there."""
        ...

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer; it is safe when this returns."""
        ...

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers that turned out to be of no use."""
        ...


class RetryPolicy:
    """How often and how long to wait: exponential with full jitter, the endpoint's wish first."""

    def __init__(self, attempts: int = 6, first: float = 0.5, longest: float = 60.0) -> None:
        """``attempts`` counts the first one; waits are in seconds."""
        self.attempts = attempts
        self._first = first
        self._longest = longest

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after failed attempt number ``attempt`` (from 1)."""
        if asked is not None:
            return asked + random.uniform(0, 0.25)
        return random.uniform(0.5, 1.0) * min(self._longest, self._first * 2.0 ** (attempt - 1))


class Gateway:
    """Asks models for all roles: store first, then budget, slot, call, retry.

    One semaphore per model identity; a slot is never held while waiting to retry. The same request asked twice at
    once is bought once.
    """

    def __init__(
        self,
        store: AnswerStore | None = None,
        budget: Budget | None = None,
        *,
        retry: RetryPolicy | None = None,
        max_concurrency: int = 16,
        stored_answers_are_ours: bool = False,
        brought: Iterable[bytes] = (),
    ) -> None:
        """What is asked, and who pays.

        ``stored_answers_are_ours``: the store belongs to one run, whose ledger counts each answer once as paid, but for
        those under the keys ``brought``, which an earlier run has paid for.
        """
        self.store = store
        self.budget = budget or Budget()
        self.max_concurrency = max_concurrency
        self.provenance: dict[str, Provenance] = {}
        """Where p_yes of each model comes from, by identity; settled once, by its first answer."""
        self.on_wait: Callable[[str, float], None] | None = None
        """Called with a message and the seconds when a call has to wait for its next attempt."""
        self._retry = retry or RetryPolicy()
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._under_way: dict[bytes, asyncio.Future[Answer]] = {}
        self._count_stored = stored_answers_are_ours
        self._brought = set(brought)
        self._counted: set[bytes] = set()
        self._failed_in_a_row: dict[str, int] = {}

    def concurrency(self, model: Model) -> int:
        """How many calls a model takes at once: its own limit, or the common one."""
        return min(getattr(model, "slots", self.max_concurrency), self.max_concurrency)

    def stored(self, role: str, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Those answers that need no call; each is booked as reused."""
        if self.store is None:
            return {}
        found = self.store.get_many(keys)
        there = [key for key in keys if key in found]
        if not self._count_stored:
            self.budget.role(role).cached_calls += len(there)
            return found
        for key in there:
            self._book(role, key, found[key])
        return found

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers from which no verdict could be read: a failure is not kept, so it is asked again next time."""
        self._brought.difference_update(keys)
        if self.store is not None:
            self.store.forget(keys)

    async def ask(self, role: str, model: Model, request: Request) -> Answer:
        """An answer from the store, or bought.

        Raises:
            ModelError: No answer after all attempts.
            BudgetExceededError: The call would pass a cap; it was not made.
        """
        return self.stored(role, [request.key]).get(request.key) or await self.buy(role, model, request)

    async def buy(self, role: str, model: Model, request: Request) -> Answer:
        """Like :meth:`ask` for a request that was not in the store when it was looked up."""
        while (other := self._under_way.get(request.key)) is not None:
            await asyncio.wait([other])
            if not other.cancelled() and other.exception() is None:
                self.budget.role(role).cached_calls += 1
                return other.result()
        if request.key in self._counted and (bought := self.stored(role, [request.key])):
            return bought[request.key]
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._under_way[request.key] = future
        try:
            answer = await self._attempts(role, model, request)
            self._counted.add(request.key)
            self.budget.paid(role, answer)
            if self.store is not None:
                self.store.put(request.key, answer)
            future.set_result(answer)
            return answer
        except AskanceError as error:
            future.set_exception(error)
            future.exception()
            raise
        except BaseException:
            future.cancel()
            raise
        finally:
            del self._under_way[request.key]

    async def _attempts(self, role: str, model: Model, request: Request) -> Answer:
        ledger = self.budget.role(role)
        slot = self._slots.setdefault(model.identity, asyncio.Semaphore(self.concurrency(model)))
        for attempt in range(1, self._retry.attempts + 1):
            try:
                async with slot:
                    answer = await self._within_budget(model, request)
                self._failed_in_a_row[model.identity] = 0
                return answer
            except ModelError as error:
                if not error.retry or attempt == self._retry.attempts:
                    ledger.failures += 1
                    raise self._given_up(model, error) from None
                seconds = self._retry.wait(attempt, error.retry_after)
                ledger.retries += 1
                if self.on_wait:
                    self.on_wait(str(error), seconds)
            await asyncio.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    def _given_up(self, model: Model, error: ModelError) -> ModelError:
        """The error to raise; after ``HOPELESS`` failures in a row one that ends the run."""
        failed = self._failed_in_a_row.get(model.identity, 0) + 1
        self._failed_in_a_row[model.identity] = failed
        if error.fatal or failed < HOPELESS:
            return error
        text = f"{failed} calls in a row failed, so the run stops here. The last one said: {error}"
        return ModelError(text, fatal=True, status=error.status)

    async def _within_budget(self, model: Model, request: Request) -> Answer:
        tokens, cost = reserved_tokens(request), highest_cost(model, request)
        self.budget.reserve(tokens, cost)
        try:
            return await model.answer(request)
        finally:
            self.budget.release(tokens, cost)

    def _book(self, role: str, key: bytes, answer: Answer) -> None:
        if key in self._counted or key in self._brought:
            self.budget.role(role).cached_calls += 1
        else:
            self._counted.add(key)
            self.budget.paid(role, answer)
