"""Costs and caps of calls: list prices, caps shared by all roles, the ledger of each role, limits a minute.

An unknown price never counts as 0. A model on this machine costs nothing. This module has OpenAI's prices; other
providers' prices come with LiteLLM.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from ..prompts.conversations.chat import IMAGE_TOKENS
from ..prompts.errors import BudgetExceededError
from ..prompts.formatting import count, money
from ..prompts.text import letters
from .base import Answer, Model, Request, images_in


def spending_of(result: Mapping[str, Any]) -> str:
    """Describe calls, reused answers, tokens and money in words, from the figures of a result file. E.g. ``12 calls,
    1 answer reused, 3,400 tokens, $0.0021``."""
    calls, reused, tokens = count(result["calls"], "call"), count(result["cached_calls"], "answer"), result["tokens"]
    return f"{calls}, {reused} reused, {count(tokens, 'token')}, {price_said(result)}"


def together(spent: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the figures of several budgets. The money is None if the price of any call is unknown."""
    each = list(spent)
    total = {name: sum(one[name] for one in each) for name in ("calls", "cached_calls", "tokens")}
    unpriced = sum(one.get("unpriced_calls", 0) for one in each)
    known = round(sum(one.get("known_usd", 0.0) if one["cost_usd"] is None else one["cost_usd"] for one in each), 9)
    if not unpriced:
        return {**total, "cost_usd": known}
    return {**total, "cost_usd": None, "unpriced_calls": unpriced, "known_usd": known}


def price_said(result: Mapping[str, Any]) -> str:
    """Describe money in words: ``cost_usd``, or, if it is None, ``known_usd`` and the calls with an unknown price
    (``unpriced_calls``, by role under ``roles``)."""
    if result["cost_usd"] is not None:
        return money(result["cost_usd"])
    if not (known := result.get("known_usd")):
        return "price unknown"
    roles = {name: each if isinstance(each, Mapping) else vars(each) for name, each in result.get("roles", {}).items()}
    names = [name for name, each in roles.items() if each.get("unpriced_calls")]
    of = f" of {' and '.join(names)}" if names else ""
    calls = count(result.get("unpriced_calls", 0), "call")
    return f"{money(known)} and what {calls}{of} cost, whose price is unknown"


CAPS = {"max_calls": "call_budget", "max_tokens": "token_budget", "max_cost": "cost_budget"}
"""Reasons for a run to end at a cap, each with the setting of the cap."""
GO_ON = "Raise the cap to go on; an answer that is stored is not bought again."
BEGIN_AGAIN = "Raise the cap to go on; with --no-cache no answer was kept, so that all are bought again."


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, 1 or more: each Chinese, Japanese or Korean character is a token, and every four
    other characters are one."""
    return max(1, letters(text) // 4)


def reserved_tokens(request: Request) -> int:
    """Return the tokens to set aside during a call: its estimated prompt, the room to think and the longest answer."""
    texts = sum(estimate_tokens(content) for _, content in request.messages)
    texts += sum(estimate_tokens(json.dumps(tool)) for tool in request.parameters.tools or ())
    return texts + IMAGE_TOKENS * images_in(request) + request.most_tokens


def highest_cost(model: Model, request: Request) -> float:
    """Return the US dollars to set aside during a call: by the model's ``highest_cost``, or its price; 0 if unknown."""
    own: Callable[[Request], float] | None = getattr(model, "highest_cost", None)
    price: Price | None = getattr(model, "price", None)
    if own is not None:
        return own(request)
    return 0.0 if price is None or price is FREE else price.highest(request)


@dataclass
class RoleLedger:
    """Calls, tokens and money of one role so far."""

    calls: int = 0  # answers that this run paid for, in this process or before an interruption
    cached_calls: int = 0  # answers that cost nothing, because they had been bought before
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0  # US dollars of the calls whose price is known
    unpriced_calls: int = 0  # calls whose price is not known

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures in the form of a result file. The cost is None if the price of any call is unknown."""
        # Rounded: the last digits of the sum depend on the order of the answers.
        money = {"cost_usd": None if self.unpriced_calls else round(self.cost_usd, 9)}
        return {name: value for name, value in (vars(self) | money).items() if name != "unpriced_calls" or value}


@dataclass
class Budget:
    """Counts and caps over all roles. A call beyond a cap is refused before it is made; no call is cut off later."""

    call_budget: int | None = None
    token_budget: int | None = None
    cost_budget: float | None = None
    roles: dict[str, RoleLedger] = field(default_factory=dict)
    keeps_answers: bool = True  # whether the next command can use the answers that were bought
    _reserved_calls: int = 0
    _reserved_tokens: int = 0
    _reserved_cost: float = 0.0
    _came_back: asyncio.Event = field(default_factory=asyncio.Event, repr=False, compare=False)
    """Set, and replaced by a new event, when a reservation is given back."""

    def role(self, name: str) -> RoleLedger:
        """Return the ledger of a role. It is made at the first use."""
        return self.roles.setdefault(name, RoleLedger())

    @property
    def sentence(self) -> str:
        """Calls, tokens and money of all roles in words."""
        return spending_of({**self.to_dict(), "roles": {name: vars(each) for name, each in self.roles.items()}})

    @property
    def calls(self) -> int:
        """Calls paid for, over all roles."""
        return sum(role.calls for role in self.roles.values())

    @property
    def cached_calls(self) -> int:
        """Answers reused, over all roles."""
        return sum(role.cached_calls for role in self.roles.values())

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens, over all roles."""
        return sum(role.prompt_tokens + role.completion_tokens for role in self.roles.values())

    @property
    def unpriced_calls(self) -> int:
        """Calls with an unknown price, over all roles."""
        return sum(role.unpriced_calls for role in self.roles.values())

    @property
    def cost_usd(self) -> float | None:
        """US dollars over all roles; None if the price of any call is unknown."""
        return None if self.unpriced_calls else self.known_cost

    @property
    def known_cost(self) -> float:
        """US dollars of the calls with a known price, over all roles."""
        return sum(role.cost_usd for role in self.roles.values())

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures of all roles in the form of a result file."""
        return {
            "calls": self.calls,
            "cached_calls": self.cached_calls,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            **({"unpriced_calls": self.unpriced_calls} if self.unpriced_calls else {}),
            **({"known_usd": round(self.known_cost, 9)} if self.unpriced_calls else {}),
        }

    def reserve(self, tokens: int, cost: float = 0.0) -> None:
        """Set aside a call, tokens and US dollars. Raises BudgetExceededError if a cap would be passed."""
        if self.call_budget is not None and self.calls + self._reserved_calls >= self.call_budget:
            raise BudgetExceededError("max_calls", f"The budget of {self.call_budget} calls is used up. {self._go_on}")
        if self.token_budget is not None and self.tokens + self._reserved_tokens + tokens > self.token_budget:
            reservation = f" and {self._reserved_tokens} set aside for calls under way" if self._reserved_tokens else ""
            raise BudgetExceededError(
                "max_tokens",
                f"The next call may need {tokens} tokens; of the budget of {self.token_budget}, {self.tokens} are used"
                f"{reservation}. {self._go_on}",
            )
        if self.cost_budget is not None:
            spent = self.known_cost
            if spent >= self.cost_budget:
                raise BudgetExceededError("max_cost", f"The budget of ${self.cost_budget:g} is used up. {self._go_on}")
            if spent + self._reserved_cost + cost > self.cost_budget:
                reservation = (
                    f" and ${self._reserved_cost:.4g} set aside for calls under way" if self._reserved_calls else ""
                )
                raise BudgetExceededError(
                    "max_cost",
                    f"The next call may cost ${cost:.2g}; of the budget of ${self.cost_budget:g}, ${spent:.4g} are used"
                    f"{reservation}. {self._go_on}",
                )
        self._reserved_calls += 1
        self._reserved_tokens += tokens
        self._reserved_cost += cost

    async def reserve_in_turn(self, tokens: int, cost: float = 0.0) -> None:
        """Like :meth:`reserve`, but wait if only the sums set aside for calls under way are in the way. Raises
        BudgetExceededError if a cap would be passed even without these sums."""
        while True:
            try:
                self.reserve(tokens, cost)
                return
            except BudgetExceededError:
                if not (self._reserved_calls and self._has_left(tokens, cost)):
                    raise
            await self._came_back.wait()

    def _has_left(self, tokens: int, cost: float) -> bool:
        """Whether one more call would keep to the caps, apart from the sums set aside."""
        return (
            (self.call_budget is None or self.calls < self.call_budget)
            and (self.token_budget is None or self.tokens + tokens <= self.token_budget)
            and (self.cost_budget is None or self.known_cost + cost <= self.cost_budget)
        )

    @property
    def _go_on(self) -> str:
        return GO_ON if self.keeps_answers else BEGIN_AGAIN

    def release(self, tokens: int, cost: float = 0.0) -> None:
        """Give back the sums that :meth:`reserve` set aside."""
        self._reserved_calls -= 1
        self._reserved_tokens -= tokens
        self._reserved_cost = self._reserved_cost - cost if self._reserved_calls else 0.0
        self._came_back.set()
        self._came_back = asyncio.Event()

    def paid(self, role: str, answer: Answer, *, calls: int = 1) -> None:
        """Book a paid answer. ``calls`` is 0 if it belongs to a call that is already booked."""
        ledger = self.role(role)
        ledger.calls += calls
        ledger.prompt_tokens += answer.prompt_tokens
        ledger.completion_tokens += answer.completion_tokens
        if answer.cost_usd is None:
            ledger.unpriced_calls += 1
        else:
            ledger.cost_usd += answer.cost_usd


MINUTE = 60.0


class PerMinute:
    """Limits on the calls and tokens of one model in any minute, over all roles that use the model."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        """``requests`` and ``tokens`` per minute; None is no limit."""
        self.requests = requests
        self.tokens = tokens
        self._begun: deque[list[float]] = deque()  # times and tokens of the calls of the last minute
        self._queue = asyncio.Lock()

    async def turn(self, tokens: int) -> Callable[[int], None]:
        """Wait until a call with ``tokens`` may be made. Returns a function that takes the tokens really used."""
        async with self._queue:  # in the order of asking
            while (seconds := self._seconds_to_wait(tokens)) > 0:  # noqa: ASYNC110 - time alone makes room
                await asyncio.sleep(seconds)
            call = [monotonic(), float(tokens)]
            self._begun.append(call)

        def took(tokens: int) -> None:
            call[1] = float(tokens)

        return took

    def _seconds_to_wait(self, tokens: int) -> float:
        moment = monotonic()
        while self._begun and self._begun[0][0] <= moment - MINUTE:
            self._begun.popleft()
        calls, taken, end = len(self._begun), sum(each for _, each in self._begun), moment
        for begun, spent in self._begun:  # let the oldest calls pass until there is room
            full = self.requests is not None and calls >= self.requests
            if not full and (self.tokens is None or taken + tokens <= self.tokens):
                break
            calls, taken, end = calls - 1, taken - spent, begun + MINUTE
        return end - moment


def per_minute(model: Any) -> PerMinute | None:
    """Return a model's limits per minute; None if it has none."""
    requests, tokens = (getattr(model, name, None) for name in ("requests_per_minute", "tokens_per_minute"))
    return PerMinute(requests, tokens) if requests or tokens else None


_PER_MILLION = {
    "gpt-3.5-turbo": (0.5, 1.5),
    "gpt-4": (30, 60),
    "gpt-4-turbo": (10, 30),
    "gpt-4.1": (2, 8),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
    "gpt-4o": (2.5, 10),
    "gpt-4o-2024-05-13": (5, 15),
    "gpt-4o-mini": (0.15, 0.6),
    "gpt-5": (1.25, 10),
    "gpt-5-mini": (0.25, 2),
    "gpt-5-nano": (0.05, 0.4),
    "gpt-5.1": (1.25, 10),
    "gpt-5.2": (1.75, 14),
    "gpt-5.4": (2.5, 15),
    "gpt-5.4-mini": (0.75, 4.5),
    "gpt-5.4-nano": (0.2, 1.25),
    "gpt-5.5": (5, 30),
    "o1": (15, 60),
    "o3": (2, 8),
    "o3-mini": (1.1, 4.4),
    "o4-mini": (1.1, 4.4),
}
"""US dollars for a million prompt tokens and a million tokens of answers, before any discount for cached prompts; as of
2026-11-23, in agreement with LiteLLM 1.104.5."""
BATCH_SHARE = 0.5  # share of these prices that OpenAI charges in a batch
_SNAPSHOT = re.compile(r"-20\d\d-\d\d-\d\d$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for one prompt token and for one token of an answer."""

    prompt: float
    answer: float

    def of(self, prompt_tokens: int, answer_tokens: int) -> float:
        """Return the US dollars for these numbers of tokens."""
        return prompt_tokens * self.prompt + answer_tokens * self.answer

    def highest(self, request: Request) -> float:
        """Return the most US dollars that an answer to a request may cost."""
        answer = request.most_tokens
        return self.of(reserved_tokens(request) - answer, answer)

    def times(self, share: float) -> Price:
        """Return a share of the price, e.g. a batch's half."""
        return Price(self.prompt * share, self.answer * share)


FREE = Price(0.0, 0.0)


def list_price(model: str, base_url: str) -> Price | None:
    """Return the list price of a model by its name at the endpoint; None if it is unknown, or the endpoint is not
    OpenAI's. A dated snapshot costs as much as its model, except the first snapshot of gpt-4o."""
    if urlsplit(base_url).hostname != "api.openai.com":
        return None
    found = _PER_MILLION.get(model) or _PER_MILLION.get(_SNAPSHOT.sub("", model))
    return None if found is None else Price(found[0] / 1e6, found[1] / 1e6)
