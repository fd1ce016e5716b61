"""Buying answers: estimates, the verdicts of one ask, and several workers at once.

A reply that cannot be read is asked for again once. A question that a batched reply left out is asked alone.
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
    """Buys the verdicts of one ask after the other, all in the same way of asking."""

    gateway: Gateway
    role: str
    """Role in the ledger of calls."""
    model: Model
    asking: Asking
    provenance: Provenance
    """Source of P(yes)."""
    advice: str
    """Advice for the user if an answer has no log-probabilities although they are needed."""

    def stored(self, ask: Ask, answer: Answer) -> list[Told] | None:
        """Read the verdicts from a stored answer; None if a further call is needed."""
        try:
            readings = self.asking.read(ask, answer)
        except ValueError:
            return None
        if len(readings) < len(ask.questions):
            return None
        return [self._said(readings[question.id]) for question in ask.questions]

    async def bought(self, ask: Ask, answer: Answer | None) -> list[Told]:
        """Buy the verdicts of an ask, starting from its stored ``answer`` if there is one. A reply that cannot be read
        is asked for again once.

        Questions that are missing in the reply are asked alone. Raises BudgetExceededError if a cap is reached, and
        ModelError if the endpoint refuses every call."""
        name = self.model.identity
        if answer is None and name in self.gateway.need_room and ask.is_short:
            ask = ask.with_room(name)
        keys = [ask.key]
        try:
            if answer is None and ask.parameters.max_tokens == ROOM:  # an earlier command may have stored this answer
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
            if problem is not None:  # the answer may be the beginning of a thought
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
            # if the questions share a call only because the model thinks, each of them is asked alone now
            chosen_here = isinstance(self.asking, BatchedAsking) and self.asking.most is not None
            if not chosen_here or ask.wants_a_quote:
                return [Told(None, status="parse_error", error=problem)] * len(ask.questions)
        verdicts = []
        for question in ask.questions:
            if question.id in readings:
                verdicts.append(self._said(readings[question.id]))
            else:
                verdicts.extend(await self._alone(ask, question.id))
        return verdicts

    async def _alone(self, ask: Ask, question_id: str) -> list[Told]:
        assert isinstance(self.asking, BatchedAsking), "only an answer to several questions can leave one out"
        buyer = replace(self, asking=self.asking.alone(question_id))
        alone = next(buyer.asking.asks(self.model.identity, ask.example, ask.index, ask.replicate))
        return await buyer.bought(alone, (await self.gateway.stored(self.role, [alone.key])).get(alone.key))

    async def _read(self, ask: Ask, request: Request, answer: Answer) -> tuple[Answer, dict[str, Reading], str | None]:
        """Return the answer with the needed log-probabilities, its readings, and the problem if it cannot be used."""
        answer = await self._with_logprobs(request, answer)
        try:
            return answer, self.asking.read(ask, answer), None
        except ValueError as error:
            return answer, {}, str(error)

    async def _with_logprobs(self, request: Request, answer: Answer) -> Answer:
        """Return the answer, or a second answer if the first lacks the log-probabilities for P(yes).

        An answer without them cannot be used, so it is deleted from the store. A second answer is bought if the model
        is known to give log-probabilities. Raises ModelError if there are none in the end.
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
        if p_yes is None:  # e.g. a quote has no stated probability
            provenance: Provenance = "hard" if self.provenance == "stated" else self.provenance
            return Told(answer, float(answer), provenance, explanation)
        return Told(answer, p_yes, self.provenance, explanation, value=value)


@dataclass(frozen=True)
class Estimate:
    """Estimated calls, tokens and money of a step that buys answers."""

    verdicts: int
    calls: int
    """Calls that would be bought, without answers that are in the store."""
    stored: int
    """Answers that need no call: they are in the store, or their request is the same as an earlier one."""
    tokens: int
    """Prompt and completion tokens of the calls: an estimate for each text, plus the longest possible answers."""
    cost_usd: float | None = None
    """US dollars for these tokens; None if a price is not known."""
    without_thinking: tuple[str, ...] = ()
    """Models that were never asked, so that their thinking tokens are not in the estimate."""
    known_usd: float = 0.0
    """US dollars of the calls with a known price."""
    unpriced: tuple[str, ...] = ()
    """Models without a known price."""

    @classmethod
    def priced(
        cls, verdicts: int, calls: int, stored: int, sent: int, written: int, model: Model, gateway: Gateway
    ) -> Estimate:
        """Make an estimate, with the model's average thinking tokens; the cost is 0 without calls."""
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
"""Estimate of a step that buys nothing."""


def estimate_asks(asks: Iterator[Ask], verdicts: int, model: Model, gateway: Gateway) -> Estimate:
    """Estimate the calls, tokens and money of asks, if no answer has to be asked for again."""
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
    """Do all items, ``workers`` of them at once. An item is taken from the iterator when a worker is free.

    Raises BudgetExceededError if a cap is reached: then no further item begins, and running items finish, because their
    calls are paid for. Raises the first other error of an item, and cancels the other items.
    """
    turn = asyncio.Lock()
    over_budget: list[BudgetExceededError] = []
    sentinel = object()

    async def work() -> None:
        while True:
            async with turn:
                item = sentinel if over_budget else await anext(items, sentinel)
            if item is sentinel:
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
    """Do all items as :func:`work_together` does, with the same errors. Returns the results in the order of the items.

    ``on_done`` is called with the number of finished items and the number of all.
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
"""Number of answers looked up in the store at once, in the order of their keys.

In a store of a million answers, neighbours then share pages of the file, so that a lookup takes a fifth less time.
"""
TURN = 100
"""Number of stored answers read before other tasks on the event loop have their turn; about 2 ms."""
NO_LOGPROBS = "Use --p-yes hard, or --p-yes sampled --samples 5, if the endpoint gives none."
"""Advice about an endpoint without log-probabilities."""


def in_blocks(asks: Iterable[Ask], size: int = LOOKUP_BLOCK) -> Iterator[list[Ask]]:
    """Yield the asks in lists of at most ``size``."""
    asks = iter(asks)
    while block := list(islice(asks, size)):
        yield block
