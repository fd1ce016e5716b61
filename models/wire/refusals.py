"""Learn from refusals what an endpoint does not take, in one way for every path to a model."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base import Answer, ModelError
from .facts import Facts
from .thinking import ThinkingFields, is_out_of_room

AGAIN = 2
"""How often a request is repeated at once whose answer the endpoint itself could not use."""
_OWN_JSON = re.compile(r"json_validate_failed|failed_generation")
"""Groq's status 400 where the model wrote other JSON than was asked for."""


@dataclass(frozen=True)
class Refusal:
    """A reply that holds no answer."""

    status: int
    said: str
    """The whole reply, in the endpoint's words."""
    error: ModelError
    """To be raised where nothing can be learned from it."""


class Learner:
    """Asks an endpoint in the form that it takes."""

    def __init__(self, thinking: ThinkingFields | None = None) -> None:
        """Nothing is known yet; ``thinking`` is how the model is told to think."""
        self.facts = Facts()
        self.thinking = thinking or ThinkingFields("", "auto", ())

    async def ask(
        self, fields: Mapping[str, Any], send: Callable[[dict[str, Any]], Awaitable[Answer | Refusal]]
    ) -> Answer:
        """An answer to a request with these fields. A refusal is learned from once the request is taken without its
        cause.

        Raises:
            ModelError: No usable answer.
            InputError: How the model is to think is refused.
        """
        facts, repeats = self.facts, 0
        while True:
            form = self.thinking.place
            sent = {**facts.fit(fields), **self.thinking.fields}
            if repeats == AGAIN:
                sent.pop(
                    "response_format", None
                )  # the model's own JSON may do, where the endpoint's check is in its way
            reply = await send(sent)
            if isinstance(reply, Refusal) and is_out_of_room(reply.status, reply.said):
                reply = Answer("", cost_usd=None, finish="length")
            if isinstance(reply, Answer):
                self.facts = self.facts.and_also(facts)
                return reply
            if _OWN_JSON.search(reply.said):
                repeats += 1
                if repeats > AGAIN:
                    raise replace(reply.error, retry=True)
                continue
            learned = facts.learn(reply.status, reply.said, sent)
            if learned is None and not self.thinking.is_refused(reply.status, reply.said, str(reply.error), form):
                raise reply.error
            facts = learned or facts
