"""The gateway for all calls to models: answers come from the store or are bought, within the budget, with retries."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from ..prompts.errors import AskanceError
from ..prompts.formatting import sentence
from .base import Answer, AnswerStore, EmptyAnswerError, LeftOutError, Model, ModelError, Request, StoreAwayError
from .budget import Budget, PerMinute, per_minute, reserved_tokens
from .refusals import LONGEST_WAIT
from .thinking_room import ThinkingRoom, may_be_thought

if TYPE_CHECKING:
    from ..prompts.verdicts import Provenance

Result = TypeVar("Result")

BETWEEN_LOOKS = (0.1, 1.0)  # seconds between two looks for an answer that another process is buying: at first, at last
RENEWS_EVERY = 30.0  # seconds after which a claim on an answer that is still being bought is renewed
STORE_PATIENCE = 300.0  # seconds that a store may be away before the run stops
AHEAD = 20_000  # stored answers that are told apart; a million keys take 130 MB, and nobody needs the distinction
WRITER_ROLE = "generator"  # the role whose calls write outputs
HOPELESS = 10  # calls in a row without an answer after which the endpoint is down; refusals for one example count once


_INSTEAD = {
    "hard": "is the yes or no itself, 1 or 0",
    "sampled": "is counted from samples",
    "stated": "is the one that it states with each answer",
}
"""Words for the user about a probability of yes that is not from log-probabilities, by its provenance."""


@dataclass(frozen=True)
class RetryPolicy:
    """Number of attempts, including the first one, and length of waits in seconds. Waits grow exponentially; chance
    shortens each by up to half. A wait that the endpoint asks for goes first. No wait is longer than ``longest``."""

    attempts: int = 6
    first: float = 0.5
    longest: float = 60.0

    @property
    def patience(self) -> float:
        """Seconds without any answer from a model after which a failed call is not repeated."""
        return self.longest * (self.attempts - 1)

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after failed attempt number ``attempt`` (from 1)."""
        if asked is not None:
            return min(asked, self.longest) + random.uniform(0, 0.25)
        return random.uniform(0.5, 1.0) * min(self.longest, self.first * 2.0 ** min(attempt - 1, 1000))


@dataclass
class _Line:
    """State of the calls to one model."""

    slot: asyncio.Semaphore
    under_way: int = 0
    answered: bool = False  # whether the endpoint ever gave an answer
    heard: float = 0.0  # when it last answered, or was first asked after a time without calls; of the monotonic clock
    limited: float = 0.0  # when it last refused a call because of its limits: an endpoint that does is not down
    per_minute: PerMinute | None = None
    failed_in_a_row: int = 0
    refused: set[str] = field(default_factory=set)  # beginnings (``prefix``) of requests refused since the last answer
    in_batches: Container[str] = ()  # keys, in hex, of its requests in batches that this process does not wait for


class Gateway:
    """Asks models for all roles: store first, then budget, slot, call, retry. One semaphore per model identity; a slot
    is never held while waiting to retry. The same request asked twice at once is bought once."""

    def __init__(
        self,
        store: AnswerStore | None = None,
        budget: Budget | None = None,
        *,
        retry: RetryPolicy | None = None,
        max_concurrency: int = 16,
        stored_answers_are_ours: bool = False,
        brought: Container[bytes] = (),
    ) -> None:
        """Set up a gateway; no model is asked yet. ``stored_answers_are_ours``: the store belongs to one run. Its
        ledger counts each answer once as paid, except answers under the keys ``brought``, which an earlier run has paid
        for."""
        self.store = store
        self.budget = budget or Budget()
        self.max_concurrency = max_concurrency
        self.provenance: dict[str, Provenance] = {}  # source of p_yes by the model's identity, settled once
        self.thinkers: dict[str, bool] = {}  # whether a model is asked as one that thinks, by identity, settled once
        self.need_room: set[str] = set()  # identities of models whose answers begin with a mark, a blank or a label
        self.on_wait: Callable[[str, float], None] | None = None  # told why a call has to wait, and the seconds
        self.on_notice: Callable[[str], None] | None = None  # called with messages for the user about the answers
        self.seconds: dict[bytes, float] = {}  # that each bought output of a generator took, by the request's key
        self.in_batches: Callable[[str], Container[str]] = lambda _: ()  # keys in a model's open batches
        self._retry = retry or RetryPolicy()
        self._lines: dict[str, _Line] = {}
        self._under_way: dict[bytes, asyncio.Future[Answer]] = {}
        self._count_stored = stored_answers_are_ours
        self._waits = False
        self._store_is_away = False
        self._claimed: set[bytes] = set()
        self._renewal: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self._brought = brought
        self._counted: set[bytes] = set()
        self._found: set[bytes] = set()
        self._probed: set[bytes] = set()  # answers that a model was tried by, not to be counted as reused
        self._ahead: Counter[str] = Counter()  # number of stored answers by role, minus one for each refused call
        self.room = ThinkingRoom(self.budget, store, self._notify, self._has_answered)
        """Asks with room where a model thinks, and knows the room that it needs."""

    def _notify(self, text: str) -> bool:
        """Pass a message on to the user; returns whether somebody listens."""
        if self.on_notice:
            self.on_notice(text)
        return self.on_notice is not None

    def _has_answered(self, role: str, model: Model) -> bool:
        """Whether a role has had an answer from a model: in this process or, as the store shows, in an earlier one."""
        line = self._lines.get(model.identity)
        return (line is not None and line.answered) or bool(self._ahead[role])

    def concurrency(self, model: Model) -> int:
        """Return how many calls a model takes at once: its ``gathers``, its own limit, or the common limit."""
        if gathers := getattr(model, "gathers", 0):
            return int(gathers)
        if own := getattr(model, "max_concurrency", None):
            return int(own)
        return min(getattr(model, "slots", self.max_concurrency), self.max_concurrency)

    def give_room(self, model: Model) -> None:
        """Ask a model for more than one token from now on, because its answers begin with a mark, a blank or a label.
        A model with ``reads_one_token`` still gives one token, except for the one answer that needs more: another
        program writes its longer answers, with other probabilities."""
        if not getattr(model, "reads_one_token", False):
            self.need_room.add(model.identity)

    def settle(self, model: Model, provenance: Provenance) -> Provenance:
        """Keep and return a model's first source of P(yes). Tell the user if it is not log-probabilities."""
        if model.identity not in self.provenance:
            self.provenance[model.identity] = provenance
            if provenance != "logprob":
                apart = " that tell answers apart" * self.thinkers.get(model.identity, False)
                why = f"gives no log-probabilities{apart}"
                self._notify(f"{model.name} {why}, so the probability of yes {_INSTEAD[provenance]}.")
        return self.provenance[model.identity]

    async def has(self, key: bytes) -> bool:
        """Whether an answer is in the store. The look-up is not booked."""
        return self.store is not None and key in await self._once_there(partial(self.store.get_many, [key]))

    async def stored(self, role: str, keys: Sequence[bytes]) -> Mapping[bytes, Answer]:
        """Look up answers in the store and book them as reused."""
        if self.store is None:
            return {}
        answers = await self._once_there(partial(self.store.get_many, keys))
        present = [key for key in keys if key in answers]
        if len(self._found) < AHEAD:
            new = {key for key in present if key not in self._counted} - self._found
            self._found |= new
            self._ahead[role] += len(new)
        for key in self._probed.intersection(present):
            present.remove(key)
            self._probed.discard(key)
        if not self._count_stored:
            self.budget.role(role).cached_calls += len(present)
            return answers
        for key in present:
            self._book(role, key, answers[key])
        return answers

    async def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers from which no verdict could be read: a failure is not kept, so it is asked again next time."""
        if self.store is not None:
            await self._once_there(partial(self.store.forget, keys))

    async def ask(self, role: str, model: Model, request: Request) -> Answer:
        """Return an answer from the store, or buy it. Raises ModelError if all attempts fail, and BudgetExceededError,
        before the call is made, if it would pass a cap."""
        stored = await self.stored(role, [request.key])
        return stored.get(request.key) or await self.buy(role, model, request)

    async def probe(self, role: str, model: Model, request: Request) -> Answer:
        """Ask like :meth:`ask`, to try a model. When the same request comes again, it is not counted as reused."""
        answer = await self.ask(role, model, request)
        self._probed.add(request.key)
        return answer

    async def buy(self, role: str, model: Model, request: Request) -> Answer:
        """Ask like :meth:`ask`, for a request that was looked up and not found in the store."""
        while (purchase := self._under_way.get(request.key)) is not None:
            await asyncio.wait([purchase])
            if not purchase.cancelled() and purchase.exception() is None:
                self.budget.role(role).cached_calls += 1
                return purchase.result()
        if request.key in self._counted and (bought := await self.stored(role, [request.key])):
            return bought[request.key]
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._under_way[request.key] = future
        try:
            answer = await self._bought_by_another(role, request.key) or await self._bought(role, model, request)
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

    async def _bought(self, role: str, model: Model, request: Request) -> Answer:
        is_kept = False
        try:
            answer = await self._attempts(role, model, request)
            if len(self._counted) >= AHEAD and not self._count_stored:  # a service asks without end
                self._counted.clear()
            self._counted.add(request.key)
            self.budget.paid(role, answer)
            if self.store is not None:
                await self._once_there(partial(self.store.put, request.key, answer))
            is_kept = True
            if (kept := getattr(model, "kept", None)) is not None:
                kept(request)
            return answer
        finally:
            self._claimed.discard(request.key)
            if not is_kept:
                self._let_go(request.key)

    async def _bought_by_another(self, role: str, key: bytes) -> Answer | None:
        """Return an answer that another process has bought or is buying; None where this process has claimed it."""
        if self.store is None:
            return None
        pause, longest = BETWEEN_LOOKS
        while not await self._once_there(partial(self.store.claim, key)):
            if not self._waits:
                self._notify("Another process is buying the same answers; this one waits for them.")
            self._waits = True
            await asyncio.sleep(pause)
            pause = min(longest, 1.5 * pause)
        try:
            answer = (await self._once_there(partial(self.store.get_many, [key]))).get(key)
        except BaseException:
            self._let_go(key)
            raise
        if answer is None:
            self._claimed.add(key)
            self._renew_later()
        else:
            self._let_go(key)
            self.budget.role(role).cached_calls += 1
        return answer

    def _let_go(self, key: bytes) -> None:
        """Give up a claim. If the store is away, the claim lapses by itself."""
        if self.store is not None:
            with suppress(StoreAwayError):
                self.store.let_go([key])

    def _renew_later(self) -> None:
        """Renew the claims as long as there are any."""
        loop = asyncio.get_running_loop()
        if self._renewal is None or self._renewal[0] is not loop:
            self._renewal = loop, loop.call_later(RENEWS_EVERY, self._renew)

    def _renew(self) -> None:
        self._renewal = None
        if self._claimed and self.store is not None:
            with suppress(AskanceError):  # putting an answer reports the same error
                self.store.renew([*self._claimed])
            self._renew_later()

    async def _once_there(self, do: Callable[[], Result]) -> Result:
        """Call ``do``, again while the store is away. Raises AskanceError after ``STORE_PATIENCE`` seconds."""
        start, pause = monotonic(), 0.25
        while True:
            try:
                found = do()
                self._store_is_away = False
                return found
            except StoreAwayError as error:
                silence = monotonic() - start
                if silence > STORE_PATIENCE:
                    raise AskanceError(
                        f"{error} That is so for {silence / 60:.0f} minutes, so the run stops here; what was bought "
                        "before is kept."
                    ) from None
                if not self._store_is_away:
                    self._notify(f"The store: {error} It is waited for.")
                self._store_is_away = True
            await asyncio.sleep(pause)
            pause = min(5.0, 1.5 * pause)

    async def _attempts(self, role: str, model: Model, request: Request) -> Answer:
        ledger = self.budget.role(role)
        line = self._line(model)
        if request.key.hex() in line.in_batches:
            line.in_batches = ()
            self._notify(
                f"{model.name}: some of what is asked is in a batch that is open, and is bought here as well. The same "
                "command with --engine batch waits for the batch instead."
            )
        if not line.under_way:
            line.heard = monotonic()
        line.under_way += 1
        try:
            failures = 0
            for attempt in count(1):
                try:
                    answer = await self._in_turn(line, role, model, request)
                    line.answered, line.heard, line.failed_in_a_row = True, monotonic(), 0
                    line.refused.clear()
                    return answer
                except ModelError as error:
                    if error.retry and error.status == 429:
                        line.limited = monotonic()
                        if (too_long_limited := self._end_of_patience(line, model, error)) is not None:
                            ledger.failures += 1
                            raise too_long_limited from None
                    else:
                        failures += 1
                    silence = monotonic() - max(line.heard, line.limited)
                    is_too_long = (
                        failures > 1 and silence > self._retry.patience and not isinstance(error, LeftOutError)
                    )
                    if not error.retry or is_too_long or failures == self._retry.attempts:
                        ledger.failures += 1
                        if isinstance(error, EmptyAnswerError) and self._ahead[role]:
                            raise  # it has answered before, if in an earlier process
                        if (not error.retry or (error.status == 200 and not is_too_long)) and self._ahead[role]:
                            # Successful calls came between these failures in the earlier run. They are in the store
                            # now, so the failures alone are left, and do not count as failures in a row.
                            self._ahead[role] -= 1
                            raise
                        if request.prefix and error.status is not None and not error.retry:
                            if request.prefix in line.refused:
                                raise  # the example is too long, say, whatever is asked of it
                            line.refused.add(request.prefix)
                        raise _given_up(line, model, error, silence if is_too_long else None) from None
                    seconds = self._retry.wait(attempt, error.retry_after)
                    ledger.retries += 1
                    if self.on_wait:
                        asks = error.retry_after if (error.retry_after or 0) > self._retry.longest else None
                        wish = f" It asks to wait {asks:,.0f} s." if asks else ""
                        self.on_wait(f"{sentence(str(error))}{wish}", seconds)
                await asyncio.sleep(seconds)
        finally:
            line.under_way -= 1
        raise AssertionError("the last attempt returns or raises")

    def _line(self, model: Model) -> _Line:
        """Return the state of the calls to a model."""
        line = self._lines.get(model.identity)
        if line is None:
            line = self._lines[model.identity] = _Line(asyncio.Semaphore(self.concurrency(model)))
            line.in_batches, line.per_minute = self.in_batches(model.identity), per_minute(model)
        return line

    async def _in_turn(self, line: _Line, role: str, model: Model, request: Request) -> Answer:
        """Make one call when the model's limits and slots allow it."""
        tokens = reserved_tokens(replace(request, room=self.room.tokens(model)))
        took = None if line.per_minute is None else await line.per_minute.turn(tokens)
        async with line.slot:
            began = monotonic()
            answer = await self.room.ask(role, model, request)
            if role == WRITER_ROLE:
                self.seconds[request.key] = monotonic() - began
        if took is not None:
            took(answer.prompt_tokens + answer.completion_tokens)
        return answer

    def _end_of_patience(self, line: _Line, model: Model, error: ModelError) -> ModelError | None:
        """Return the error that ends the wait for an endpoint's limits, or None to go on waiting. A refusal because of
        limits is no failed attempt. The wait lasts as long as for a silent endpoint; it lasts an hour if the endpoint
        names a time or has answered before."""
        named, waited = error.retry_after, monotonic() - line.heard
        may_wait = named is not None or (line.answered and self._retry.attempts > 1)
        if named is not None and named > LONGEST_WAIT:
            reason = f"asks to wait {named / 3600:.1f} hours because of its limits"
        elif waited > (LONGEST_WAIT if may_wait else self._retry.patience):
            if self._retry.attempts == 1:
                return error
            reason = f"has refused every call because of its limits for {waited / 60:.0f} minutes"
        else:
            return None
        text = f"{model.name} {reason}, so the run stops here; what was bought before is kept. It said: {error}"
        return ModelError(text, fatal=True, status=error.status)

    async def with_room(self, role: str, model: Model, request: Request, answer: Answer) -> Answer:
        """Ask again with room for thinking if an unreadable answer may be thought (:meth:`ThinkingRoom.ask_again`). A
        template may begin the thinking, and a reply that was cut off then shows no sign of it."""
        if not may_be_thought(model, answer):
            return answer
        async with self._line(model).slot:
            longer = await self.room.ask_again(role, model, request, answer, is_booked=True)
        if longer is answer:
            return answer
        surplus = longer._replace(
            prompt_tokens=longer.prompt_tokens - answer.prompt_tokens,
            completion_tokens=longer.completion_tokens - answer.completion_tokens,
            cost_usd=None if longer.cost_usd is None else longer.cost_usd - (answer.cost_usd or 0.0),
        )
        self.budget.paid(role, surplus, calls=0)
        if self.store is not None:
            await self._once_there(partial(self.store.forget, [request.key]))
            await self._once_there(partial(self.store.put, request.key, longer))
        return longer

    def _book(self, role: str, key: bytes, answer: Answer) -> None:
        if key in self._counted or key in self._brought:
            self.budget.role(role).cached_calls += 1
        else:
            self._counted.add(key)
            self.budget.paid(role, answer)


class StoredAnswers(Gateway):
    """A gateway that returns stored answers and buys none."""

    async def buy(self, role: str, model: Model, request: Request) -> Answer:
        """Refuse to buy. Raises ModelError always."""
        raise ModelError(f"{model.name}: this answer is not in the store, and none is bought")


def _given_up(line: _Line, model: Model, error: ModelError, silent: float | None) -> ModelError:
    """Return the error to raise; it ends the run if the endpoint is down. An endpoint is down after ``HOPELESS``
    failures in a row. It is also down if a call waited too long (``silent`` seconds) and another call failed just
    before, or no call was ever answered. An endpoint that has answered before and now sends an empty answer is not
    down: a prompt can silence a model."""
    if error.fatal or isinstance(error, LeftOutError) or (isinstance(error, EmptyAnswerError) and line.answered):
        return error
    line.failed_in_a_row += 1
    if silent is not None and (line.failed_in_a_row > 1 or not line.answered):
        text = f"{model.name} has not answered for {silent / 60:.0f} minutes, so the run stops here. It said: {error}"
    elif line.failed_in_a_row >= HOPELESS:
        text = f"{line.failed_in_a_row} calls in a row failed, so the run stops here. The last one said: {error}"
    else:
        return error
    return ModelError(text, fatal=True, status=error.status)
