"""What every agent is: a model behind the gateway, asked in the name of a role for a record or for plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from ..models.base import Answer, Message, Model, Parameters, make_request
from ..models.gateway import Gateway
from ..models.structured import Reply, ask_for

SAMPLE_TEMPERATURE = 0.8
"""Of every further answer to the same request; the first is given at temperature 0."""


class Agent:
    """A model with a role."""

    role: ClassVar[str]
    """The ledger that its calls are booked under."""
    forgets: ClassVar[bool] = False
    """Whether replies that cannot be used are asked for anew the next time."""

    def __init__(self, gateway: Gateway, model: Model, *, seed: int | None = None) -> None:
        """``seed`` is sent along where given."""
        self._gateway = gateway
        self._model = model
        self._seed = seed

    async def _ask(
        self,
        system: str | None,
        user: str,
        record: type[Reply],
        *,
        max_tokens: int,
        check: Callable[[Reply], object] | None = None,
        number: int = 0,
    ) -> Reply:
        """One record; ``check`` and what is raised are those of :func:`~askance.models.structured.ask_for`.

        ``number`` above 0 asks for another answer to the same request, with a seed of its own.
        """
        orders: list[Message] = [] if system is None else [("system", system)]
        return await ask_for(
            self._gateway,
            self.role,
            self._model,
            [*orders, ("user", user)],
            record,
            max_tokens=max_tokens,
            temperature=SAMPLE_TEMPERATURE if number else 0.0,
            seed=None if self._seed is None else self._seed + number,
            replicate=number,
            check=check,
            forget=self.forgets,
        )

    async def _say(self, messages: Sequence[Message], *, max_tokens: int) -> Answer:
        """A reply in plain text, at temperature 0.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: No reply.
        """
        request = make_request(self._model.identity, messages, Parameters(max_tokens, 0.0, self._seed))
        return await self._gateway.ask(self.role, self._model, request)
