"""The deduplicator: embeddings find neighbours, the model decides duplicate, merge or new (BinEval §3.3, Dedup)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from ..models.structured import ask_for
from ..prompts.templates import render, template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.lessons import Lesson


class Relation(BaseModel):
    """How a new lesson relates to those it resembles."""

    relation: Literal["duplicate", "merge", "new"]
    of: int = Field(ge=0)
    merged: str = Field(max_length=400)


class Deduplicator:
    """A model that compares a lesson with its neighbours in the memory."""

    def __init__(self, gateway: Gateway, model: Model, *, seed: int | None = None) -> None:
        """Make one; it keeps nothing."""
        self._gateway = gateway
        self._model = model
        self._seed = seed

    async def compare(self, lesson: Lesson, neighbours: Sequence[Lesson]) -> tuple[Relation, Lesson | None]:
        """Decide what a lesson is to its neighbours.

        Returns the relation and the neighbour that it concerns (None for "new"). Without neighbours no call is made.

        Raises:
            ParseError: The reply names no neighbour where it has to, or has no merged text.
            ModelError: No reply.
        """
        if not neighbours:
            return Relation(relation="new", of=0, merged=""), None

        def is_complete(relation: Relation) -> None:
            if relation.relation != "new" and not 1 <= relation.of <= len(neighbours):
                raise ValueError(f'"of" must be a number from 1 to {len(neighbours)}')
            if relation.relation == "merge" and _beginning(relation.merged) != _beginning(lesson.text):
                raise ValueError(
                    f'"merged" must be one rule that begins like the new lesson: "{_beginning(lesson.text)}"'
                )

        listed = "\n".join(f"{number}. {each.text}" for number, each in enumerate(neighbours, 1))
        relation = await ask_for(
            self._gateway,
            "deduplicator",
            self._model,
            [
                ("system", template("deduplicator")),
                ("user", render("deduplicator_case", lesson=lesson.text, listed=listed)),
            ],
            Relation,
            max_tokens=200,
            seed=self._seed,
            check=is_complete,
        )
        return relation, None if relation.relation == "new" else neighbours[relation.of - 1]


def _beginning(text: str) -> str:
    """The first three words: what a rule orders, e.g. "Answer no if"."""
    return " ".join(text.split()[:3])
