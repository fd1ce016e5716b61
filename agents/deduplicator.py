"""The deduplicator: embeddings find neighbours, the model decides duplicate, merge or new (BinEval §3.3, Dedup).

Whether two lessons can stand in one prompt. Which of them goes is decided by evidence, not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from ..models.structured import ask_for
from ..prompts.templates import render, template
from .rules import LENIENT, STRICTER

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


@dataclass(frozen=True)
class Contradiction:
    """What two lessons are to each other."""

    contradicts: bool
    reason: str
    by: Literal["rule", "model"]
    """Whether their words settled it without a call."""


class _Reply(BaseModel):
    reason: str = Field(max_length=300)
    contradicts: bool


class ContradictionFinder:
    """A model that is shown two lessons that resemble each other."""

    def __init__(self, gateway: Gateway, model: Model, *, seed: int | None = None, role: str = "deduplicator") -> None:
        """``role`` is the ledger that its calls are booked under."""
        self._gateway = gateway
        self._model = model
        self._seed = seed
        self._role = role

    async def compare(self, first: Lesson, second: Lesson) -> Contradiction:
        """Whether following both makes sense. The order of the two does not matter: they are shown by their text.

        Two that say the same take no call, and neither do two of opposite direction about the very same words.

        Raises:
            ParseError: The model's replies cannot be used.
            ModelError: No reply.
        """
        if settled := _by_words(first, second):
            return settled
        one, other = sorted((first.text, second.text))
        reply = await ask_for(
            self._gateway,
            self._role,
            self._model,
            [("system", template("contradictions")), ("user", render("contradictions_case", first=one, second=other))],
            _Reply,
            max_tokens=120,
            seed=self._seed,
        )
        return Contradiction(reply.contradicts, " ".join(reply.reason.split()), "model")


def _by_words(first: Lesson, second: Lesson) -> Contradiction | None:
    cases = [_case(lesson.text) for lesson in (first, second)]
    if cases[0] != cases[1]:
        return None
    if first.direction == second.direction:
        return Contradiction(False, "both say the same", "rule")
    return Contradiction(True, f'they give opposite answers to the same case ("{cases[0]}")', "rule")


def _case(text: str) -> str:
    """A rule without its order: the case it speaks of."""
    for opening in (STRICTER.opening, LENIENT.opening):
        text = re.sub(rf"^{opening.removesuffix(' the output')}\s+(?:the output\s+)?", "", text, flags=re.IGNORECASE)
    return " ".join(re.findall(r"\w+", text.lower()))
