"""Answers of models that may think first, with as much room (tokens for thinking) as each model turns out to need.

If thinking uses up all tokens, the request is repeated with more room. The store keeps the room that a model needs, so
the next command asks with that room at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable
from math import isfinite
from typing import Any

from ..prompts.errors import AskanceError, BudgetExceededError, InputError
from ..prompts.formatting import count
from .base import A_WORD, Answer, AnswerStore, EmptyAnswerError, Model, ModelError, Request, ThinkingFacts
from .budget import Budget, highest_cost, reserved_tokens
from .request_form import Thinking

SETTLED = 10  # number of answers after which the user is told once of a corrected average of a model's thinking


class ThinkingRoom:
    """Asks models within the budget. Models that think get room for it; the room that each model needs is learned."""

    def __init__(
        self,
        budget: Budget,
        store: AnswerStore | None,
        notify: Callable[[str], bool],
        has_answered: Callable[[str, Model], bool],
    ) -> None:
        """Start without facts about models. ``notify`` passes a sentence on to the user and returns whether somebody
        listens. ``has_answered`` says whether a role already has an answer from a model; if it has, one answer without
        enough room does not end the command."""
        self.budget = budget
        self._store = store
        self._notify = notify
        self._has_answered = has_answered
        self._facts: dict[str, ThinkingFacts | None] = {}  # by identity; None: the store knows nothing
        self._tried: set[str] = set()  # identities of the models that were tried with more room after a truncated reply
        self._trials: dict[str, asyncio.Lock] = {}
        self._told: set[str] = set()  # notices that were passed on
        self._told_of: dict[str, ThinkingFacts] = {}  # facts about a model's thinking that were told, by identity

    def facts(self, model: Model) -> ThinkingFacts | None:
        """Return the facts about a model's thinking. The room is 0 if it does not think; None if it was never asked."""
        if model.identity not in self._facts:
            self._facts[model.identity] = None
            if self._store is not None and _steps(model):
                with suppress(AskanceError):  # the look-up of an answer reports a store that is away or damaged
                    self._facts[model.identity] = self._store.learned(model.identity)
        return self._facts[model.identity]

    def thinks(self, model: Model) -> bool:
        """Whether a model is known to think before it answers."""
        facts = self.facts(model)
        return facts is not None and facts.room > 0

    def average(self, model: Model) -> int | None:
        """Return the average tokens of thinking for an answer: 0 for a model that cannot think, None for another model
        that was never asked."""
        facts = self.facts(model)
        if facts is None:
            return None if _steps(model) and getattr(model, "template_may_think", True) else 0
        return facts.average

    def tokens(self, model: Model) -> int:
        """Return the tokens that a model may think now."""
        facts, steps = self.facts(model), _steps(model)
        if not steps:
            return 0
        return max(0 if facts is None else min(facts.room, steps[-1]), int(getattr(model, "first_room", 0)))

    async def ask(self, role: str, model: Model, request: Request) -> Answer:
        """Return one answer. Ask with more room if thinking used up the tokens, or may have. Raises ModelError without
        a usable answer, and BudgetExceededError, before the call is made, if it would pass a cap."""
        answer = await self._within_budget(role, model, request)
        if request.parameters.max_tokens > A_WORD and may_be_thought(model, answer):
            return await self.ask_again(role, model, request, answer)
        return answer

    async def ask_again(
        self, role: str, model: Model, request: Request, answer: Answer, *, is_booked: bool = False
    ) -> Answer:
        """Ask again with room after a reply that was cut off; return the same reply if the model does not think. The
        first such reply of a model is a trial: only if the model then thinks, its other cut replies are asked again.
        The returned answer holds the tokens of all calls. ``is_booked`` says whether the first reply is already booked
        as paid."""
        async with self._trials.setdefault(model.identity, asyncio.Lock()):
            if not self.thinks(model):
                if model.identity in self._tried:
                    return answer
                self._tried.add(model.identity)
                room = _steps(model)[0]
                try:
                    second_answer = await self._one_call(model, replace(request, room=room), answer)
                except (ModelError, BudgetExceededError):  # e.g. more than the model can write: the first reply stays
                    return answer
                if not second_answer.reasoning_tokens:
                    return _together(second_answer, answer)._replace(reasoning_tokens=0)
                is_whole = not needs_room(second_answer, request.parameters.max_tokens)
                self._learn(
                    model, ThinkingFacts(room, int(is_whole), second_answer.reasoning_tokens if is_whole else 0)
                )
                if is_whole:
                    self._tell(model)
                    return _together(answer, second_answer)
                answer = _together(second_answer, answer)
        try:
            return _together(answer, await self._within_budget(role, model, request))
        except AskanceError:
            if not is_booked:
                self.budget.paid(role, answer)
            raise

    async def _within_budget(self, role: str, model: Model, request: Request) -> Answer:
        """Return one answer. If thinking uses up the tokens, ask again with more room; this is no failure. The answer
        holds the tokens of all these calls, so that it counts the same when it comes from the store."""
        lost, steps, room, thinks = Answer(""), _steps(model), self.tokens(model), self.thinks(model)
        try:
            while True:
                try:
                    answer = await self._one_call(model, replace(request, room=room), lost)
                except ModelError as error:
                    if not lost.completion_tokens or error.retry or room <= self.tokens(model):
                        raise
                    raise self._out_of_room(role, model, lost, f"more of it is refused ({error})") from None
                thinks = thinks or answer.reasoning_tokens > 0
                whole = _together(lost, answer)
                if not steps or not needs_room(answer, request.parameters.max_tokens):
                    break
                lost = whole
                if answer.reasoning_tokens and room:
                    self._learn(model, ThinkingFacts(room))
                larger = [step for step in (self.tokens(model), *steps) if step > room]
                if not larger:
                    raise self._out_of_room(role, model, lost, f"that is the last step of its room, {room:,}")
                room, thinks = larger[0], True
            lost = Answer("")
        finally:
            if lost.prompt_tokens or lost.completion_tokens:
                self.budget.paid(role, lost)
        # if one token was asked for, a blank is the beginning of an answer
        if answer.is_empty and not (answer.text and answer.finish == "length" and request.parameters.max_tokens == 1):
            self.budget.paid(role, whole)
            raise _nothing_said(model, answer, request.parameters.temperature)
        notice = getattr(model, "notice", None)
        if notice and notice not in self._told and self._notify(notice):
            self._told.add(notice)
        if steps and not thinks:
            if self.facts(model) is None:
                self._learn(model, ThinkingFacts(0))
        elif steps:
            self._learn(model, ThinkingFacts(room or steps[0], 1, answer.reasoning_tokens))
            self._tell(model)
        return whole

    async def _one_call(self, model: Model, request: Request, lost: Answer) -> Answer:
        """Make one call within the budget. The ``lost`` answer before it is not booked yet, so it is reserved too."""
        tokens = reserved_tokens(request) + lost.prompt_tokens + lost.completion_tokens
        cost = highest_cost(model, request) + (lost.cost_usd or 0.0)
        if getattr(model, "gathers", 0):  # waiting would block: its calls come back only when no more are asked
            self.budget.reserve(tokens, cost)
        else:
            await self.budget.reserve_in_turn(tokens, cost)
        try:
            return await _answer(model, request)
        finally:
            self.budget.release(tokens, cost)

    def _learn(self, model: Model, new: ThinkingFacts) -> None:
        known = self.facts(model)
        self._facts[model.identity] = new if known is None else known.and_these(new)
        if self._store is not None:
            with suppress(AskanceError):  # the next command learns it again
                self._store.learn(model.identity, new)

    def _tell(self, model: Model) -> None:
        """Tell the user once that a model thinks, and again after ten answers if the average changed by a quarter."""
        facts, previous = self.facts(model), self._told_of.get(model.identity)
        if facts is None:
            return
        takes = f"about {facts.average:,} tokens an answer (by {count(facts.answers, 'answer')} so far)"
        if previous is None:
            text = f"{model.name} thinks before it answers, {takes}; its calls get room for {facts.room:,} more."
        elif (
            previous.answers < SETTLED <= facts.answers and abs(facts.average - previous.average) > previous.average / 4
        ):
            text = f"{model.name} thinks {takes}; estimates made before counted {previous.average:,}."
        else:
            return
        if self._notify(text):
            self._told_of[model.identity] = facts

    def _out_of_room(self, role: str, model: Model, lost: Answer, why: str) -> EmptyAnswerError:
        """Return the error if thinking uses up all room; it is fatal while the model has given no answer yet."""
        took = f", after {lost.completion_tokens:,} tokens of thinking" if lost.completion_tokens else ""
        text = (
            f"{model.name}: the answer was cut off before its first word{took}; {why}. Give it more with its setting "
            "thinking_room, or let it think less (thinking: low, or off)."
        )
        return EmptyAnswerError(text, fatal=not self._has_answered(role, model))


def may_be_thought(model: Model, answer: Answer) -> bool:
    """Whether a reply may be the beginning of a thought: it was cut off, and no sign of a finished thought is in it."""
    its_template_may_think = getattr(model, "template_may_think", True) and bool(_steps(model))
    return its_template_may_think and answer.finish == "length" and not answer.reasoning_tokens


def _steps(model: Model) -> tuple[int, ...]:
    """Return the steps of a model's room; none if it never thinks."""
    steps: tuple[int, ...] = getattr(model, "thinking_room", ROOM)
    return steps


def _together(lost: Answer, answer: Answer) -> Answer:
    """Add the tokens and cost of a ``lost`` reply to an answer. All tokens of the lost reply count as thinking."""
    if not (lost.prompt_tokens or lost.completion_tokens):
        return answer
    cost = None if lost.cost_usd is None or answer.cost_usd is None else lost.cost_usd + answer.cost_usd
    return answer._replace(
        prompt_tokens=lost.prompt_tokens + answer.prompt_tokens,
        completion_tokens=lost.completion_tokens + answer.completion_tokens,
        cost_usd=cost,
        reasoning_tokens=lost.completion_tokens + answer.reasoning_tokens,
    )


def _nothing_said(model: Model, answer: Answer, temperature: float) -> EmptyAnswerError:
    """Return the error for an empty answer. Asking again may help, unless the model would repeat itself."""
    if answer.finish == "length":
        text = "the answer was cut off before its first word."
    elif answer.finish == "content_filter":
        text = "a filter of the endpoint held the answer back."
    else:
        again = temperature > 0 or not getattr(model, "repeats_itself", False)
        return EmptyAnswerError(f"{model.name}: the reply is empty.", retry=again)
    return EmptyAnswerError(f"{model.name}: {text}")


ROOM = (2_000, 8_000, 32_000)
"""Tokens for thinking in a call, in addition to the answer's. If the first number is too few, the next is tried."""
TAKES = {"low": 1_024, "medium": 2_048, "high": 4_096}
"""Tokens of thinking for an effort with Anthropic and Gemini, by LiteLLM's table; a call needs more room."""
SLOWEST = 20  # slowest rate of a server, in tokens a second; a call's timeout grows by the time for its room
MOST_TOKENS = 10**9  # more than any call takes: this or a larger number cannot be a number of tokens


def tokens_of(said: Any) -> int:
    """Read a number of tokens from an endpoint's reply; 0 if it cannot be a number of tokens."""
    try:
        tokens = int(float(said or 0))
    except (ValueError, TypeError, OverflowError):
        return 0
    return tokens if 0 <= tokens < MOST_TOKENS else 0


def tokens_thought(usage: Mapping[str, Any], raw: str, answer: str, *, apart: bool) -> int:
    """Return the tokens of thinking in a reply: the endpoint's count, else an estimate. It is at least 1 if the text
    ``raw`` has more than the ``answer``, or if the model thought ``apart`` from the text."""

    details = usage.get("completion_tokens_details")
    said = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    counted = tokens_of(said) if isinstance(said, (int, float)) and isfinite(said) else 0
    if counted or not (apart or len(raw.strip()) > len(answer.strip())):
        return counted
    written, final_text = tokens_of(usage.get("completion_tokens")), answer.strip()
    if not final_text:
        return max(1, written)
    share = 1 / 4 if apart else written / len(raw.strip())  # tokens a character
    return max(1, written - max(1, round(share * len(final_text))))


async def _answer(model: Model, request: Request) -> Answer:
    """Ask once. Raises InputError if a user's model has an ``answer`` that is not async, or returns no Answer."""
    coroutine = model.answer(request)
    if not isawaitable(coroutine):
        raise InputError(f"model: 'answer' of {type(model).__name__} is not asynchronous; write async def answer.")
    answer = await coroutine
    if not isinstance(answer, Answer):
        raise InputError(
            f"model: 'answer' of {type(model).__name__} returned {type(answer).__name__}; an askance.models.base.Answer "
            "is needed."
        )
    return answer


def seconds_for(room: int, timeout: float) -> float:
    """Return the seconds that a call may take: its ``timeout`` plus the time in which a slow server fills its room."""
    return timeout + room / SLOWEST


def needs_room(answer: Answer, cap: int) -> bool:
    """Whether thinking cut a reply off: before the answer, or within the answer before it reached ``cap`` tokens."""
    if answer.finish != "length":
        return False
    thought, is_blank = answer.reasoning_tokens, bool(answer.text) and cap == 1
    # if one token was asked for, a blank is the beginning of an answer
    return (answer.is_empty and not is_blank) or (thought > 0 and answer.completion_tokens - thought < cap)


def first_room(thinking: Thinking, steps: Sequence[int], *, given: bool) -> int:
    """Return the first call's room: 0 unless a setting implies thinking, else the first step above its usual need."""
    if thinking in ("auto", "off") and not given:
        return 0
    takes = thinking if isinstance(thinking, int) else TAKES.get(thinking, 0)
    return next((step for step in steps if step > takes), steps[-1])
