"""Buying answers: what it would take, the verdicts of one ask, and several workers at it at once.

A reply that cannot be read is asked for again once, and what a batched answer left out is asked alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from ..models.base import Answer, Model, ModelError, Request
from ..models.gateway import Gateway
from ..models.replies.yes_no import ROOM
from ..prompts.errors import BudgetExceededError
from ..prompts.formatting import money
from ..prompts.text import letters
from ..prompts.verdicts import Provenance, Told
from .replies import Reading
from .requests import Ask, Asking, BatchedAsking


@dataclass(frozen=True)
class VerdictBuyer:
    """Buys the verdicts of asks, one at a time, all in one way of asking."""

    gateway: Gateway
    role: str
    """The ledger that calls are booked under."""
    model: Model
    asking: Asking
    provenance: Provenance
    """Where p_yes comes from."""
    advice: str
    """Advice where the endpoint gives no log-probabilities after all."""

    def stored(self, ask: Ask, answer: Answer) -> list[Told] | None:
        """Read a stored answer; None where it needs a re-ask."""
        try:
            readings = self.asking.read(ask, answer)
        except ValueError:
            return None
        if len(readings) < len(ask.questions):
            return None
        return [self._said(readings[question.id]) for question in ask.questions]

    async def bought(self, ask: Ask, answer: Answer | None) -> list[Told]:
        """Buy the answers to the questions of an ask, whose stored ``answer`` is known, with one re-ask if it cannot be
        read.

        Questions that are missing in the reply are asked alone. Raises BudgetExceededError where a cap was reached, and
        ModelError where the endpoint refuses every call."""
        name = self.model.identity
        if answer is None and name in self.gateway.need_room and ask.is_short:
            ask = ask.with_room(name)
        keys = [ask.key]
        try:
            if answer is None and ask.parameters.max_tokens == ROOM:  # an earlier command may have asked so
                answer = await self.gateway.ask(self.role, self.model, ask.request())
            elif answer is None:
                answer = await self.gateway.buy(self.role, self.model, ask.request())
            answer, readings, problem = await self._read(ask, ask.request(), answer)
            if self.asking.wants_room(ask, answer):
                self.gateway.give_room(self.model)
                ask = ask.with_room(name)
                keys.append(ask.key)
                answer = await self.gateway.ask(self.role, self.model, ask.request())
                answer, readings, problem = await self._read(ask, ask.request(), answer)
            if problem is not None:  # it may be the beginning of a thought
                whole = await self.gateway.with_room(self.role, self.model, ask.request(), answer)
                if whole is not answer:
                    answer, readings, problem = await self._read(ask, ask.request(), whole)
            if problem is not None and self.asking.form:
                again = ask.again(name, answer, problem, self.asking.form)
                keys.append(again.key)
                answer = await self.gateway.ask(self.role, self.model, again)
                answer, readings, problem = await self._read(ask, again, answer)
        except ModelError as error:
            if error.fatal:
                raise
            return [Told(None, status="api_error", error=str(error))] * len(ask.questions)
        if problem is not None:
            await self.gateway.forget(keys)
            # where several were asked at once only because the model thinks, each is asked alone
            chosen_here = isinstance(self.asking, BatchedAsking) and self.asking.most is not None
            if not chosen_here or ask.wants_a_quote:
                return [Told(None, status="parse_error", error=problem)] * len(ask.questions)
        said = []
        for question in ask.questions:
            if question.id in readings:
                said.append(self._said(readings[question.id]))
            else:
                said.extend(await self._alone(ask, question.id))
        return said

    async def _alone(self, ask: Ask, question_id: str) -> list[Told]:
        assert isinstance(self.asking, BatchedAsking), "only an answer to several questions can leave one out"
        buyer = replace(self, asking=self.asking.alone(question_id))
        alone = next(buyer.asking.asks(self.model.identity, ask.example, ask.index, ask.replicate))
        return await buyer.bought(alone, (await self.gateway.stored(self.role, [alone.key])).get(alone.key))

    async def _read(self, ask: Ask, request: Request, answer: Answer) -> tuple[Answer, dict[str, Reading], str | None]:
        """The answer with the log-probabilities that are needed, what it says, and why it says nothing usable."""
        answer = await self._with_logprobs(request, answer)
        try:
            return answer, self.asking.read(ask, answer), None
        except ValueError as error:
            return answer, {}, str(error)

    async def _with_logprobs(self, request: Request, answer: Answer) -> Answer:
        """The answer, or a second one where this one lacks the log-probabilities that p_yes is taken from.

        An answer without them is of no use, so it is not kept. A second one is bought where the model is known to give
        them.
        """
        if self.provenance != "logprob" or answer.logprobs:
            return answer
        await self.gateway.forget([request.key])
        if self.gateway.provenance.get(self.model.identity) == "logprob":
            answer = await self.gateway.buy(self.role, self.model, request)
            if answer.logprobs:
                return answer
            await self.gateway.forget([request.key])
        raise ModelError(
            f"{self.model.name}: an answer came without log-probabilities, although p_yes is taken from them in "
            f"this run. {self.advice}"
        )

    def _said(self, reading: Reading) -> Told:
        answer, p_yes, explanation, value = reading
        if answer is None:
            return Told(None, explanation=explanation, status="abstained")
        if p_yes is None:  # a quote comes without a number
            provenance: Provenance = "hard" if self.provenance == "stated" else self.provenance
            return Told(answer, float(answer), provenance, explanation)
        return Told(answer, p_yes, self.provenance, explanation, value=value)


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and money that judging would take."""

    verdicts: int
    calls: int
    """Calls that would be bought; answers already in the store are not among them."""
    stored: int
    """Answers that need no call: in the store already, or the same request as an earlier one."""
    tokens: int
    """Prompt and completion tokens of those calls: an estimate of each text, plus the longest answers."""
    cost_usd: float | None = None
    """US dollars for these tokens; None where a price is not known."""
    without_thinking: tuple[str, ...] = ()
    """Models that were never asked, so that what they may think before they answer is not counted."""
    known_usd: float = 0.0
    """US dollars of the calls whose price is known."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known."""

    @classmethod
    def priced(
        cls, verdicts: int, calls: int, stored: int, sent: int, written: int, model: Model, gateway: Gateway
    ) -> Estimate:
        """With what a model thinks on average, and the cost of so many tokens sent and written; nothing where no call
        is bought."""
        thought, price = gateway.room.average(model), getattr(model, "price", None)
        written += calls * (thought or 0)
        cost = 0.0 if not calls else None if price is None else price.of(sent, written)
        unknown = (model.name,) if calls and thought is None else ()
        unpriced = (model.name,) if cost is None else ()
        return cls(verdicts, calls, stored, sent + written, cost, unknown, cost or 0.0, unpriced)

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.verdicts + other.verdicts,
            self.calls + other.calls,
            self.stored + other.stored,
            self.tokens + other.tokens,
            None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd,
            tuple(dict.fromkeys((*self.without_thinking, *other.without_thinking))),
            self.known_usd + other.known_usd,
            tuple(dict.fromkeys((*self.unpriced, *other.unpriced))),
        )

    @property
    def size(self) -> str:
        """Tokens and dollars in words."""
        if not self.calls:
            return "no tokens"
        price = "price unknown"
        if self.cost_usd is not None:
            price = f"at most {money(self.cost_usd)}"
        elif self.known_usd and self.unpriced:
            unpriced = " and ".join(self.unpriced)
            price = f"at most {money(self.known_usd)} and what {unpriced} costs, whose price is unknown"
        names = " and ".join(self.without_thinking)
        unknown = f", without what {names} may think first, as that was never asked" if names else ""
        return f"about {self.tokens:,} tokens, {price}{unknown}"


NOTHING = Estimate(0, 0, 0, 0, 0.0)
"""Where nothing is to be bought."""


def estimate_asks(asks: Iterator[Ask], verdicts: int, model: Model, gateway: Gateway) -> Estimate:
    """Estimate what asks for so many verdicts would buy now, if every answer can be read and is kept."""
    store = gateway.store
    stored = calls = sent = written = 0
    counted: set[bytes] = set()
    for block in in_blocks(asks):
        found = store.get_many([ask.key for ask in block]) if store is not None else {}
        for ask in block:
            if ask.key in found or ask.key in counted:
                stored += 1
            else:
                calls += 1
                counted.add(ask.key)
                sent += (ask.framing.length + letters(ask.rest)) // 4
                written += ask.parameters.max_tokens
    return Estimate.priced(verdicts, calls, stored, sent, written, model, gateway)


Item = TypeVar("Item")
Result = TypeVar("Result")


async def work_together(items: AsyncIterator[Item], do: Callable[[Item], Awaitable[object]], workers: int) -> None:
    """Do all items, ``workers`` of them at once; each is taken when a worker is free for it. Raises BudgetExceededError
    where a cap was reached: no further item is begun, and those under way are brought to their end, as their calls are
    paid for. Raises the first other error of any item; the others are then cancelled."""
    turn = asyncio.Lock()
    over_budget: list[BudgetExceededError] = []
    nothing_left = object()

    async def work() -> None:
        while True:
            async with turn:
                item = nothing_left if over_budget else await anext(items, nothing_left)
            if item is nothing_left:
                return
            try:
                await do(item)  # type: ignore[arg-type]
            except BudgetExceededError as error:
                over_budget.append(error)

    tasks = [asyncio.ensure_future(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    if over_budget:
        raise over_budget[0]


async def all_together(
    items: Sequence[Item],
    do: Callable[[Item], Awaitable[Result]],
    workers: int,
    on_done: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Return the result of each item, in their order; done and ended as by :func:`work_together`.

    ``on_done`` is told how many of how many are done.
    """
    results: dict[int, Result] = {}

    async def places() -> AsyncIterator[int]:
        for place in range(len(items)):
            yield place

    async def do_one(place: int) -> None:
        results[place] = await do(items[place])
        if on_done:
            on_done(len(results), len(items))

    await work_together(places(), do_one, min(workers, len(items)))
    return [results[place] for place in range(len(items))]


LOOKUP_BLOCK = 5_000
"""Answers looked up in the store at once, in the order of their keys: of a million, neighbours then share pages of the
file, and a lookup takes four fifths of the time."""
TURN = 100
"""Stored answers read before others on the event loop have their turn; some 2 ms."""
NO_LOGPROBS = "Use --p-yes hard, or --p-yes sampled --samples 5, if the endpoint gives none."
"""Advice about an endpoint without log-probabilities."""


def in_blocks(asks: Iterable[Ask], size: int = LOOKUP_BLOCK) -> Iterator[list[Ask]]:
    """The asks, so many at a time."""
    asks = iter(asks)
    while block := list(islice(asks, size)):
        yield block
