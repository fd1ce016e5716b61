"""How two lessons stand to each other: the same, to be merged, new (BinEval §3.3, Dedup), or in contradiction.

Embeddings find the neighbours of a lesson, a model decides. Which of two that contradict each other goes is decided by
evidence, not here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.lessons import Lesson
from ..prompts.orders import foreign_order
from ..prompts.templates import render, template
from .agent import Agent
from .rules import DIRECTIONS, Direction


class Relation(BaseModel):
    """How a new lesson relates to those it resembles."""

    model_config = ConfigDict(title="comparison of lessons")

    relation: Literal["duplicate", "merge", "new"]
    of: int = Field(ge=0)
    merged: str = Field(max_length=400)


class Deduplicator(Agent):
    """A model that compares a lesson with its neighbours in the memory."""

    role = "deduplicator"

    async def compare(
        self, lesson: Lesson, neighbours: Sequence[Lesson], *, free: bool = False
    ) -> tuple[Relation, Lesson | None]:
        """Decide what a lesson is to its neighbours.

        Returns the relation and the neighbour that it concerns (None for "new"). Without neighbours no call is made.
        ``free`` lessons are no rules, so that a merged one may begin as it likes.

        Raises:
            ParseError: The reply names no neighbour where it has to, or has no merged text.
            ModelError: No reply.
        """
        if not neighbours:
            return Relation(relation="new", of=0, merged=""), None

        def is_complete(relation: Relation) -> None:
            if relation.relation != "new" and not 1 <= relation.of <= len(neighbours):
                raise ValueError(f'"of" must be a number from 1 to {len(neighbours)}')
            if relation.relation != "merge":
                return
            if order := foreign_order(relation.merged, lesson.text):
                raise ValueError(f'"merged" cannot be used: {order}')
            if free and len(relation.merged.split()) < 3:
                raise ValueError('"merged" must be the one sentence that says both')
            if not free and _beginning(relation.merged) != (begins := _beginning(lesson.text)):
                raise ValueError(f'"merged" must be one rule that begins like the new lesson: "{begins}"')

        listed = "\n".join(f"{number}. {each.text}" for number, each in enumerate(neighbours, 1))
        case = render("deduplicator_case", lesson=lesson.text, listed=listed)
        relation = await self._ask(template("deduplicator"), case, Relation, max_tokens=200, check=is_complete)
        return relation, None if relation.relation == "new" else neighbours[relation.of - 1]


def _beginning(text: str) -> str:
    """What a rule orders, e.g. "Answer no if"; of what is no judge's rule, the first three words."""
    orders = (order for each in DIRECTIONS if text.startswith(f"{(order := _order(each))} "))
    return next(orders, " ".join(text.split()[:3]))


@dataclass(frozen=True)
class Contradiction:
    """What two lessons are to each other."""

    contradicts: bool
    reason: str
    by: Literal["rule", "model"]
    """Whether their words settled it without a call."""


class _Reply(BaseModel):
    model_config = ConfigDict(title="comparison of two instructions")

    reason: str = Field(max_length=300)
    contradicts: bool


class ContradictionFinder(Agent):
    """A model that is shown two lessons that resemble each other."""

    role = "deduplicator"

    async def compare(self, first: Lesson, second: Lesson | str) -> Contradiction:
        """Whether following both makes sense. The order of the two does not matter: they are shown by their text.

        Two that say the same take no call, and neither do two of opposite direction about the very same words, nor a
        lesson and a line of a prompt, given as its text, that begins like it: both ask for the same answer.

        Raises:
            ParseError: The model's replies cannot be used.
            ModelError: No reply.
        """
        if settled := _by_words(first, second):
            return settled
        one, other = sorted((first.text, second if isinstance(second, str) else second.text))
        case = render("contradictions_case", first=one, second=other)
        reply = await self._ask(template("contradictions"), case, _Reply, max_tokens=120)
        return Contradiction(reply.contradicts, " ".join(reply.reason.split()), "model")


def _by_words(first: Lesson, second: Lesson | str) -> Contradiction | None:
    text = second if isinstance(second, str) else second.text
    direction = _direction(text) if isinstance(second, str) else second.direction
    cases = [_case(each) for each in (first.text, text)]
    if cases[0] != cases[1]:
        alike = isinstance(second, str) and direction == first.direction
        return Contradiction(False, "both ask for the same answer", "rule") if alike else None
    if first.direction == direction or direction is None:
        return Contradiction(False, "both say the same", "rule")
    return Contradiction(True, f'they give opposite answers to the same case ("{cases[0]}")', "rule")


_BULLET = r"^\s*(?:(?:[-*•]|\d+[.)])\s+)?"


def _direction(text: str) -> str | None:
    """Which way a line of a prompt goes, where it is a rule; None where it is none."""
    found = (each for each in DIRECTIONS if re.match(_BULLET + _order(each), text, re.IGNORECASE))
    return next((each.name for each in found), None)


def _order(direction: Direction) -> str:
    return direction.opening.removesuffix(" the output")


def _case(text: str) -> str:
    """A rule without its order: the case it speaks of."""
    for direction in DIRECTIONS:
        text = re.sub(rf"{_BULLET}{_order(direction)}\s+(?:the output\s+)?", "", text, flags=re.IGNORECASE)
    return " ".join(re.findall(r"\w+", text.lower()))
