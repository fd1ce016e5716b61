"""From a reviewer's comment to questions that find what it speaks of in other outputs.

The comment is shown alone: with the output beside it a small model copies the case in place of naming its kind. Whether
the thing is a fault or a merit is not asked; the output that the comment is about tells (METHOD part 4: a question of
its own that detects a fault is worth more than the same lesson in a prompt).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...models.base import Parameters, make_request
from ...prompts.comments import told
from ...prompts.templates import render
from ...prompts.text import sentences
from ..agent import Agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...models.base import Message, Model
    from ...models.gateway import Gateway
    from ...prompts.checklist import Checklist

SHOTS = (
    ("You can't write that about the mayor, that's an insult. Nice photo though", "insult a person"),
    ("where's the oven temperature??", "say how hot the oven must be|give a temperature"),
    ("meh", ""),
    (
        "Gives away the murderer again... and the ending is far too long, I fell asleep",
        "tell who did it|have a long ending",
    ),
    ("We don't print phone numbers. Ever.", "give a phone number"),
    ("he names the donor?! donors are private, we leave that to the office", "name a donor"),
    ("lovely, it thanks the helpers", "thank someone"),
)
"""Comments from other fields, and what is asked after each of them."""
MOST_QUESTIONS = 2
"""From one remark."""
MOST_REMARKS = 4
"""Of one comment that are read."""
LONG_REMARK = 30
"""Words from which a comment is read sentence by sentence."""
MOST_WORDS = 25
"""Of a question."""
_TOKENS = 60
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_NEGATED = re.compile(r"\bnot\s+|n't\b")
_REFUSED = re.compile(r"\d|[\"“”«»]|\b(?:avoid|avoids|refrain|refrains|never|without)\b", re.IGNORECASE)
_NAME = re.compile(r"\s[A-Z][a-z]+")
_SPEAKS_OF = re.compile(r"\b(?:the|this)\s+([a-z]{3,20})\b")
_NO_NOUNS = frozenset(
    {"same", "first", "last", "user", "customer", "input", "context", "best", "whole", "given", "main"}
)


def noun_of(checklist: Checklist) -> str:
    """What an output is called in the checklist's own questions, e.g. "reply"; "text" where they have no word for it."""
    found = [noun for each in checklist.questions if (noun := _SPEAKS_OF.search(each.text))]
    nouns = [noun[1] for noun in found if noun[1] not in _NO_NOUNS]
    return max(dict.fromkeys(nouns), key=nouns.count) if nouns else "text"


class CommentReader(Agent):
    """A model that turns comments into questions, one call a remark."""

    role = "note_taker"

    def __init__(self, gateway: Gateway, model: Model, noun: str, *, seed: int | None = None) -> None:
        """``noun`` is what an output is called in the questions, e.g. "reply"."""
        super().__init__(gateway, model, seed=seed)
        self._opening = f"Does the {noun}"
        shots = [(f"Comment: {comment}", self._shown(answer)) for comment, answer in SHOTS]
        self._echoes = {line for _, answer in shots for line in answer.splitlines()}
        self._orders: list[Message] = [("system", render("comment_questions", noun=noun).strip())]
        for comment, answer in shots:
            self._orders += [("user", comment), ("assistant", answer)]

    def _shown(self, answer: str) -> str:
        return "\n".join(f"{self._opening} {what}?" for what in answer.split("|")) if answer else "none"

    async def questions(self, comment: str) -> list[str]:
        """Questions whether an output has what the comment speaks of; none where it speaks of nothing.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: The call failed for good.
        """
        found: dict[str, None] = {}
        for remark in remarks(comment):
            messages = [*self._orders, ("user", f"Comment: {remark}")]
            request = make_request(self._model.identity, messages, Parameters(_TOKENS, 0.0, self._seed))
            answer = await self._gateway.ask(self.role, self._model, request)
            found |= dict.fromkeys(self.read(answer.text))
        return list(found)

    def read(self, reply: str) -> list[str]:
        """The usable questions of a reply; one that asks for "not" a thing asks for the thing, as judges overlook it."""
        lines = [" ".join(_BULLET.sub("", line).split()) for line in reply.splitlines()]
        kept = [text for line in lines if (text := _NEGATED.sub("", line)) and self._is_usable(text)]
        return list(dict.fromkeys(kept))[:MOST_QUESTIONS]

    def _is_usable(self, text: str) -> bool:
        return (
            text.startswith(self._opening + " ")
            and text.endswith("?")
            and len(text.split()) <= MOST_WORDS
            and text not in self._echoes
            and not _REFUSED.search(text)
            and not _NAME.search(text)
        )


def remarks(comment: str) -> Sequence[str]:
    """The comment, or its first sentences where it is long: each may speak of another thing."""
    line = told([comment])
    if len(line.split()) <= LONG_REMARK:
        return [line]
    return [each for each in sentences(line) if len(each.split()) > 1][:MOST_REMARKS]
