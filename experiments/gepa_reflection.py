"""The model that GEPA reflects with, asked through our gateway: every call is kept, counted and capped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.base import ModelError, Parameters, make_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..models.session import BackgroundLoop

REFUSED = (400, 413, 422)
"""Statuses of a request that is itself at fault, e.g. longer than the context: the next one may be answered, however
many in a row were not."""


@dataclass
class Counts:
    """What happened in a search."""

    rollouts: int = 0
    """Examples that were run, again ones included."""
    unscored: int = 0
    """Rollouts without a score, for which GEPA was given 0."""
    reflections: int = 0
    failed_reflections: int = 0


@dataclass
class Halt:
    """Remembers what GEPA, which logs an exception and goes on, must not go on after."""

    error: BaseException | None = None

    def guard(self, work: Callable[[], Any]) -> Any:
        """Do some work; an error in it ends the search."""
        try:
            return work()
        except BaseException as error:
            self.error = error
            raise


@dataclass(frozen=True)
class Reflecting:
    """How the reflection model is asked. GEPA sends neither setting, which leaves both to the endpoint."""

    temperature: float = 1.0
    """What an OpenAI endpoint takes where none is sent."""
    max_tokens: int = 2048


@dataclass
class Reflection:
    """The reflection model, asked through the gateway; each call has a seed of its own, so none repeats another."""

    gateway: Gateway
    model: Model
    settings: Reflecting
    seed: int
    loop: BackgroundLoop
    halt: Halt
    counts: Counts

    def __call__(self, prompt: str | Sequence[Mapping[str, str]]) -> str:
        """One reply. A call that fails is GEPA's to handle: it tries once more and then leaves the proposal out.

        Raises:
            AskanceError: The call failed; the search ends where every further one would too.
        """
        messages = [("user", prompt)] if isinstance(prompt, str) else [(m["role"], m["content"]) for m in prompt]
        parameters = Parameters(
            self.settings.max_tokens, self.settings.temperature, self.seed + self.counts.reflections
        )
        self.counts.reflections += 1
        request = make_request(self.model.identity, messages, parameters)
        try:
            answer = self.loop.run(self.gateway.ask("reflection", self.model, request))
        except ModelError as error:
            self.counts.failed_reflections += 1
            if error.fatal and error.status not in REFUSED:
                self.halt.error = error
            raise
        except BaseException as error:
            self.halt.error = error
            raise
        return answer.text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent on
