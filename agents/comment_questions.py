"""From a reviewer's comment to questions that find what it speaks of in other outputs.

The comment is shown alone first: with the output beside it a small model copies the case in place of naming its kind. A
comment from which nothing came is read again beside its output. Whether the thing is a fault or a merit is not asked;
the output that the comment is about tells (METHOD part 4: a question of its own that detects a fault is worth more than
the same lesson in a prompt).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from ..models.base import Message, Model
from ..models.gateway import Gateway
from ..prompts.checklist import Checklist
from ..prompts.human_feedback import told
from ..prompts.lessons import foreign_order
from ..prompts.templates import render
from ..prompts.text import sentences, shorten
from .agent import Agent

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
BESIDE_SHOTS = (
    (
        "The mayor has made a fool of himself again. The council laughed for minutes.",
        "sure, let's get sued",
        "insult a person|make fun of someone",
    ),
    (
        "Mix flour and butter, add the eggs and bake it for twenty minutes.",
        "at what heat??",
        "say how hot the oven must be|give a temperature",
    ),
    (
        "A fine novel of three hundred pages. In the end it was the gardener.",
        "well, no need to buy the book any more",
        "tell how the story ends|tell who did it",
    ),
    ("The choir sang in the town hall on Sunday. Many guests came.", "meh", ""),
    ("We thank Mrs Adams for her gift of 500 euros.", "did she agree to be in the paper?", "name a donor"),
    (
        "Come and join us! Ring Paul on 0171 223 after six.",
        "his private line. are you mad. nice tone though",
        "give a phone number",
    ),
    (
        "The bridge is closed from Monday on. Take the road by the mill.",
        "good that it says how to get round",
        "say which other way to take",
    ),
)
"""Texts from other fields, comments on them, and what is asked after each."""
KIND_SHOTS = (
    (
        "The mayor has made a fool of himself again. Ring Paul on 0171 223 if you want to hear the tape.",
        "insult a person|give a phone number|say how to hear more",
    ),
    (
        "Mix flour and butter, add the eggs and bake it at 180 degrees for twenty minutes. Your guests will love it!",
        "give a temperature|say how long it takes|praise the result",
    ),
    (
        "We are sorry that the choir could not sing on Sunday. The hall was too cold, and the heating is being "
        "repaired.",
        "apologise for something|give a reason|say what is being done",
    ),
)
"""Texts from other fields, and what they do."""
GENERAL_SHOTS = (
    ("call the mayor a clown", "insult somebody|speak badly of a person"),
    ("say that the oven must be at 180 degrees", "give a temperature|say how hot something must be"),
    ("mention that the gardener did it", "tell who did it|give away how the story ends"),
    ("say who to ask if the bus is late on Sunday", "say who to ask|name somebody who can help"),
    ("thank Mrs Adams for her gift", "name a person|speak of a gift"),
    ("mention the new car of the neighbour", "speak of what somebody owns|mention a neighbour"),
    ("tell the reader to fry the fish in butter", "tell the reader how to cook something|give advice on cooking"),
)
"""Words by which a question of another field, or a more general one, is known."""
LONGEST_OUTPUT = 1200
"""Characters of an output that are shown."""
MOST_KINDS = 3
"""Things that are said of one output."""
MOST_KIND_WORDS = 8
"""Words for one thing."""
MOST_QUESTIONS = 2
"""Questions made of one remark."""
MOST_REMARKS = 4
"""Remarks of one comment that are read."""
LONG_REMARK = 30
"""Words from which a comment is read by its sentences alone."""
FEWEST_WORDS = 3
"""Words of a sentence that is read alone."""
MOST_WORDS = 25
"""Words of a question."""
_TOKENS = 60
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_NEGATED = re.compile(r"\b(ca|wo|sha)n['’]t\b|\bcannot\b|\bnot\s+|n['’]t\b")
_POSITIVE = {"ca": "can", "wo": "will", "sha": "shall"}
"""Verbs of "can't", "won't" and "shan't" without their negation."""
_REFUSED = re.compile(r"\d|[\"“”«»]|\b(?:avoid|avoids|refrain|refrains|never|without)\b", re.IGNORECASE)
_NAME = re.compile(r"\s[A-Z][a-z]+")
_ASKS_NOTHING = re.compile(
    r"(?:\W*\b(?:a|about|an|and|any|anybody|anyone|anything|are|be|been|details?|do|does|done|everything|for|give|has|have|he|her|him|i|in|"
    r"information|is|it|its|make|me|mention|of|on|one|or|our|people|reader|say|she|some|somebody|someone|something|speak|state|talk|tell|"
    r"that|the|their|them|there|they|things?|this|to|us|we|with|you|your)\b)*\W*",
    re.IGNORECASE,
)
"""Verbs of an output that does nothing in particular: every one "says something"."""
_SPEAKS_OF = re.compile(r"\b(?:the|this)\s+([a-z]{3,20})\b(?:\s+([a-z]{3,20})\b)?")
_NO_NOUNS = frozenset(
    {"same", "first", "last", "user", "customer", "input", "context", "best", "whole", "given", "main"}
)


def noun_of(checklist: Checklist) -> str:
    """The checklist's own word for an output, e.g. "reply"; "text" where its questions have none."""
    found = [noun for each in checklist.questions if (noun := _SPEAKS_OF.search(each.text))]
    task = checklist.task.lower()
    nouns = [
        noun[1] if noun[2] is None or f" {noun[1]} {noun[2]}" not in task else f"{noun[1]} {noun[2]}"
        for noun in found
        if noun[1] not in _NO_NOUNS
    ]
    return max(dict.fromkeys(nouns), key=nouns.count) if nouns else "text"


class QuestionAgent(Agent):
    """A model that answers with questions, one a line, each about what an output says or does."""

    role = "note_taker"
    template: ClassVar[str]
    """The orders."""

    def __init__(self, gateway: Gateway, model: Model, noun: str, *, seed: int | None = None) -> None:
        """``noun`` is what an output is called in the questions, e.g. "reply"."""
        super().__init__(gateway, model, seed=seed)
        self._opening = f"Does the {noun}"
        self._orders: list[Message] = [("system", render(self.template, noun=noun))]
        for asked, answer in self._shots():
            self._orders += [("user", asked), ("assistant", self._shown(answer))]

    @abstractmethod
    def _shots(self) -> list[tuple[str, str]]:
        """Examples of a request and its answer, with the verbs of the questions parted by ``|``."""

    def _shown(self, answer: str) -> str:
        return "\n".join(f"{self._opening} {what}?" for what in answer.split("|")) if answer else "none"

    async def _lines(self, asked: str) -> list[str]:
        return self.read((await self._say([*self._orders, ("user", asked)], max_tokens=_TOKENS)).text)

    def read(self, reply: str) -> list[str]:
        """The usable questions of a reply. One that asks for "not" a thing asks for the thing: judges overlook
        "not"."""
        lines = [" ".join(_BULLET.sub("", line).split()) for line in reply.splitlines()]
        kept = [text for line in lines if (text := _NEGATED.sub(_positive, line)) and self._is_usable(text)]
        return list(dict.fromkeys(kept))[:MOST_QUESTIONS]

    def _is_usable(self, text: str) -> bool:
        return (
            text.startswith(self._opening + " ")
            and text.endswith("?")
            and len(text.split()) <= MOST_WORDS
            and not _REFUSED.search(text)
            and not _NAME.search(text)
            and not _ASKS_NOTHING.fullmatch(text.removeprefix(self._opening))
            and foreign_order(text) is None
        )


class CommentReader(QuestionAgent):
    """Turns comments into questions, one call a remark."""

    template = "comment_questions"

    def _shots(self) -> list[tuple[str, str]]:
        return [(f"Comment: {comment}", answer) for comment, answer in SHOTS]

    async def questions(self, comment: str) -> list[str]:
        """Questions whether an output has what the comment speaks of; none where it speaks of nothing."""
        found = [await self._lines(f"Comment: {remark}") for remark in remarks(comment)]
        return list(dict.fromkeys(line for lines in found for line in lines))


class BesideReader(QuestionAgent):
    """Turns a comment and the output that it is about into questions: some comments say nothing by themselves."""

    template = "beside_questions"

    def _shots(self) -> list[tuple[str, str]]:
        return [(self._asked(comment, text), answer) for text, comment, answer in BESIDE_SHOTS]

    @staticmethod
    def _asked(comment: str, output: str) -> str:
        return f"Text: {output}\nComment: {comment}"

    async def questions(self, comment: str, output: str) -> list[str]:
        """Questions whether an output has what the comment on this one speaks of; none where it speaks of nothing."""
        return await self._lines(self._asked(told([comment]), shorten(" ".join(output.split()), LONGEST_OUTPUT)))


class KindReader(QuestionAgent):
    """Says in general words what an output does: what many accepted and no rejected ones do is what these lack."""

    template = "kinds_of_things"

    def _shots(self) -> list[tuple[str, str]]:
        return [(f"Text: {text}", answer) for text, answer in KIND_SHOTS]

    def _shown(self, answer: str) -> str:
        return answer.replace("|", "\n")

    async def questions(self, output: str) -> list[str]:
        """Whether another output does each of the things that this one does."""
        return await self._lines(f"Text: {shorten(' '.join(output.split()), LONGEST_OUTPUT)}")

    def read(self, reply: str) -> list[str]:
        """A question for each line that says what a text does."""
        lines = [" ".join(_BULLET.sub("", line).split()).rstrip(".") for line in reply.splitlines()]
        texts = [
            f"{self._opening} {line[0].lower()}{line[1:]}?"
            for line in lines
            if 2 <= len(line.split()) <= MOST_KIND_WORDS
        ]
        return [text for text in dict.fromkeys(texts) if self._is_usable(text)][:MOST_KINDS]


class Generaliser(QuestionAgent):
    """Asks for the kind of thing where a question asks for the one thing that a comment spoke of."""

    template = "general_questions"

    def _shots(self) -> list[tuple[str, str]]:
        return [(f"{self._opening} {thing}?", kinds) for thing, kinds in GENERAL_SHOTS]

    async def questions(self, question: str) -> list[str]:
        """More general questions than this one; none where the reply has none."""
        return [each for each in await self._lines(question) if each != question]


def _positive(negated: re.Match[str]) -> str:
    return "can" if negated[0] == "cannot" else _POSITIVE.get(negated[1] or "", "")


def remarks(comment: str) -> Sequence[str]:
    """The comment and, where it has several, its first sentences, as each may speak of another thing.

    A long comment is read by its sentences alone.
    """
    line = told([comment])
    parts = [each for each in sentences(line) if len(each.split()) >= FEWEST_WORDS and each != line][:MOST_REMARKS]
    return parts if parts and len(line.split()) > LONG_REMARK else [line, *parts]
