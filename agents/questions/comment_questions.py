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
SENTENCE_SHOTS = (
    ("You reach Mrs Adams at 0171 223 19.|Our number is 555-0134.", "give a phone number"),
    ("What a fool the mayor has made of himself!|Only an idiot would have signed that.", "insult a person"),
    (
        "Bake it at 180 degrees.|The oven has to be at 220 degrees before the bread goes in.",
        "say how hot the oven must be",
    ),
    ("Many thanks to all who carried chairs.|We are grateful to the helpers in the kitchen.", "thank someone"),
)
"""Sentences from other fields, and what is asked after each of them."""
LONGEST_SENTENCE = 200
"""Characters of a sentence that are shown."""
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


class QuestionAgent(Agent):
    """A model that answers with questions, one a line, each about what an output says or does."""

    role = "note_taker"

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        noun: str,
        *,
        template: str,
        shots: Sequence[tuple[str, str]],
        seed: int | None = None,
    ) -> None:
        """What the model is told, and shown.

        Args:
            gateway: Pays and keeps.
            model: Who writes.
            noun: What an output is called in the questions, e.g. "reply".
            template: The orders.
            shots: What is asked and how it is answered, with the verbs of the questions parted by ``|``.
            seed: Sent along where given.
        """
        super().__init__(gateway, model, seed=seed)
        self._opening = f"Does the {noun}"
        shown = [(asked, self._shown(answer)) for asked, answer in shots]
        self._echoes = {line for _, answer in shown for line in answer.splitlines()}
        self._orders: list[Message] = [("system", render(template, noun=noun))]
        for asked, answer in shown:
            self._orders += [("user", asked), ("assistant", answer)]

    def _shown(self, answer: str) -> str:
        return "\n".join(f"{self._opening} {what}?" for what in answer.split("|")) if answer else "none"

    async def _lines(self, asked: str) -> list[str]:
        messages: list[Message] = [*self._orders, ("user", asked)]
        request = make_request(self._model.identity, messages, Parameters(_TOKENS, 0.0, self._seed))
        return self.read((await self._gateway.ask(self.role, self._model, request)).text)

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


class CommentReader(QuestionAgent):
    """Turns comments into questions, one call a remark."""

    def __init__(self, gateway: Gateway, model: Model, noun: str, *, seed: int | None = None) -> None:
        """``noun`` is what an output is called in the questions, e.g. "reply"."""
        shots = [(f"Comment: {comment}", answer) for comment, answer in SHOTS]
        super().__init__(gateway, model, noun, template="comment_questions", shots=shots, seed=seed)

    async def questions(self, comment: str) -> list[str]:
        """Questions whether an output has what the comment speaks of; none where it speaks of nothing.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: The call failed for good.
        """
        found = [await self._lines(f"Comment: {remark}") for remark in remarks(comment)]
        return list(dict.fromkeys(line for lines in found for line in lines))


class SentenceReader(QuestionAgent):
    """Turns like sentences of several outputs into the question whether another output says such a thing."""

    def __init__(self, gateway: Gateway, model: Model, noun: str, *, seed: int | None = None) -> None:
        """``noun`` is what an output is called in the questions, e.g. "reply"."""
        shots = [(self._asked(given.split("|")), answer) for given, answer in SENTENCE_SHOTS]
        super().__init__(gateway, model, noun, template="sentence_questions", shots=shots, seed=seed)

    @staticmethod
    def _asked(given: Sequence[str]) -> str:
        return "Sentences:\n" + "\n".join(f"- {each}" for each in given)

    async def questions(self, given: Sequence[str]) -> list[str]:
        """Questions whether an output has what the sentences have in common.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: The call failed for good.
        """
        return await self._lines(self._asked([told([each], LONGEST_SENTENCE) for each in given]))


def remarks(comment: str) -> Sequence[str]:
    """The comment, or its first sentences where it is long: each may speak of another thing."""
    line = told([comment])
    if len(line.split()) <= LONG_REMARK:
        return [line]
    return [each for each in sentences(line) if len(each.split()) > 1][:MOST_REMARKS]
