"""The store of answers, as the gateway sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..prompts.errors import AskanceError
from .base import Answer
from .wire.thinking import ThinkingFacts


class StoreAwayError(AskanceError):
    """A store does not answer now, e.g. because its server is restarted; what was to be done can be done again."""


class AnswerStore(Protocol):
    """Where answers are kept: a SQLite file (:class:`askance.memory.verdict_store.VerdictStore`) or a PostgreSQL
    database (:class:`askance.memory.postgres_store.PostgresStore`). Each method may raise :class:`StoreAwayError`."""

    def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, Answer]:
        """Look up answers; a key that has none is left out."""
        ...

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, and let go of the claim on it; it is safe when this returns."""
        ...

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers that turned out to be of no use."""
        ...

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Facts of the model with this identity; None where nothing was learned."""
        ...

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        """Keep what was learned of a model: the most room, and answers and tokens beside those that are known."""
        ...

    def claim(self, key: bytes) -> bool:
        """Whether an answer may be bought now; where not, another process that shares the store is buying it."""
        ...

    def renew(self, keys: Sequence[bytes]) -> None:
        """Keep claims alive: a claim that is not renewed lapses after its lease."""
        ...

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Give up claims on answers that are not to be bought, or that are there now."""
        ...
