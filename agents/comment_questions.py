"""Turn a reviewer's comment into questions that find the same fault or merit in other outputs.

First the model sees the comment alone: with the output beside it, a small model copies the case and does not name its
kind. A comment without questions is read again beside its output. The model is not asked whether the thing is a fault
or a merit; the output of the comment tells. (METHOD part 4: a question of its own that detects a fault is worth more
than the same lesson in a prompt.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple

from ..models.base import Message, Model
from ..models.gateway import Gateway
from ..prompts.checklist import TEXTS, Checklist, Sees
from ..prompts.human_feedback import one_line, told
from ..prompts.lessons import foreign_order
from ..prompts.templates import render
from ..prompts.text import capitalised, excerpt, sentences, shorten
from .agent import Agent

LONGEST_OUTPUT = 1200
"""Most characters of an output that are shown."""
COMMON_RELATIONS: Mapping[str, tuple[str, ...]] = {
    "request": (
        "speak of the same thing as the question",
        "answer what was asked",
        "leave out a part of what was asked",
    ),
    "source": (
        "say something that the {text} lacks",
        "name a person, place or title that the {text} lacks",
        "give a number or date that the {text} lacks",
    ),
    "reference": ("give another answer than the reference", "leave out something that the reference says"),
}
"""Common relations of an output to a request, to its source or to a reference, for any topic.

A small writer names the case, or copies an example from its orders. Of a hundred comments read by hand, on answers and
on summaries, over ninety say one of these. They join the candidates if a comment speaks of such a relation.
"""
LONGEST_OTHER = 600
"""Most characters of another text that are shown beside the output."""
RECURS = 3
"""A name or number is recurring if at least this many different comments have it."""
MOST_RECURRING = 12
"""Most recurring names and numbers that questions may contain."""
MOST_KINDS = 3
"""Most things that are listed for one output."""
MOST_KIND_WORDS = 8
"""Most words for one thing."""
MOST_QUESTIONS = 2
"""Most questions made of one remark."""
MOST_REMARKS = 4
"""Most remarks of one comment that are read."""
LONG_REMARK = 30
"""A comment with more words is read only sentence by sentence."""
FEWEST_WORDS = 3
"""Fewest words of a sentence that is read alone."""
MOST_WORDS = 25
"""Most words of a question."""
MOST_WORDS_OF_PART = 25
"""Most words of the definition, or of each case, in a rich question."""
_TOKENS = 60
_RICH_TOKENS = 200
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_NEGATED = re.compile(r"\b(ca|wo|sha)n['’]t\b|\bcannot\b|\bnot\s+|n['’]t\b")
_POSITIVE = {"ca": "can", "wo": "will", "sha": "shall"}
"""Verbs of "can't", "won't" and "shan't" without their negation."""
_REFUSED = re.compile(r"\d|[\"“”«»]|\b(?:avoid|avoids|refrain|refrains|never|without)\b", re.IGNORECASE)
_NAME = re.compile(r"\s[A-Z][a-z]+")
_WORD = re.compile(r"\w+(?:[.,']\w+)*")
_LOOKS_AT = re.compile(r"\s*[(\[](text|output|input|question|context|source|reference)[)\]][\s?.]*$", re.IGNORECASE)
_PART = re.compile(r"^\W*(question|means|yes|no|looks at)\W*:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
"""Matches a line of a reply with a rich question."""
_CALLED: Mapping[str, Sees] = {"question": "input", "source": "context"}
"""Texts by the other words with which a reply may name them."""
_OF_REFERENCE = re.compile(r"\b(?:the|a|its) (?:reference|sample|model|expected) (?:answer|text|output|version)\b")
_OF_SOURCE = re.compile(
    r"\b(?:the|its|a) (?:\w+ )?(?:source|article|document|passage|context|material)s?\b|\b(?:supported|backed) by\b|"
    r"\bcontradict\w*\b(?! (?:itself|themselves))"
)
_OF_INPUT = re.compile(
    r"\b(?:what|as|that) (?:was|is|were|had been) (?:asked|requested|wanted|ordered)\b|\b(?:was|were|is|been) asked\b|"
    r"\basked (?:for|about)\b|\b(?:the|this|that|\w+'s) (?:\w+ )?(?:question|request|query|input)s?\b|"
    r"\b(?:off|on)[- ]topic\b"
)
_ASKS_NOTHING = re.compile(
    r"(?:\W*\b(?:a|about|an|and|any|anybody|anyone|anything|are|be|been|details?|do|does|done|everything|for|give|has|have|he|her|him|i|in|"
    r"information|is|it|its|make|me|mention|of|on|one|or|our|people|reader|say|she|some|somebody|someone|something|speak|state|talk|tell|"
    r"that|the|their|them|there|they|things?|this|to|us|we|with|you|your)\b)*\W*",
    re.IGNORECASE,
)
"""Matches a question that names nothing particular, e.g. "say something": the answer is yes for every output."""
_SPEAKS_OF = re.compile(r"\b(?:the|this)\s+([a-z]{3,20})\b(?:\s+([a-z]{3,20})\b)?")
_NO_NOUNS = frozenset(
    {"same", "first", "last", "user", "customer", "input", "context", "best", "whole", "given", "main"}
)


def noun_of(checklist: Checklist) -> str:
    """Return the checklist's own word for an output, e.g. "reply"; "text" if its questions have none."""
    found = [noun for each in checklist.questions if (noun := _SPEAKS_OF.search(each.text))]
    task = checklist.task.lower()
    nouns = [
        noun[1] if noun[2] is None or f" {noun[1]} {noun[2]}" not in task else f"{noun[1]} {noun[2]}"
        for noun in found
        if noun[1] not in _NO_NOUNS
    ]
    return max(dict.fromkeys(nouns), key=nouns.count) if nouns else "text"


class QuestionAgent(Agent):
    """A model that replies with questions, one per line, about what an output says or does."""

    role = "note_taker"
    template: ClassVar[str]
    """Name of the template: orders, then few-shot examples from other fields, each with its questions."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        noun: str,
        *,
        seed: int | None = None,
        recurring: Sequence[str] = (),
        texts: Sequence[Sees] = (),
    ) -> None:
        """Set up the orders.

        Args:
            noun: The word for an output in the questions, e.g. "reply".
            recurring: Names and numbers that a question may contain, from :func:`recurring_names`.
            texts: Texts that every example has, with which a question may compare the output.
        """
        super().__init__(gateway, model, seed=seed)
        self._noun = noun
        self._opening = f"Does the {noun}"
        self._recurring = {each.casefold() for each in recurring}
        self._texts = tuple(texts)
        written = render(self.template, noun=noun, listed=") or (".join(("text", *self._texts)))
        orders, *shots = written.split("\n---\n")
        if recurring:
            orders += f" These recur in many comments, and a question may name them: {', '.join(recurring)}."
        self._orders: list[Message] = [("system", orders)]
        missing = [f"\n{name.capitalize()}: " for name in TEXTS if name not in self._texts]
        for shot in shots:
            asked, answer = shot.split("\n\n", 1)
            if not any(name in asked for name in missing):
                self._orders += [("user", asked), ("assistant", answer)]

    async def _lines(self, asked: str) -> list[str]:
        return self.read((await self._say([*self._orders, ("user", asked)], max_tokens=_TOKENS)).text)

    def read(self, reply: str) -> list[str]:
        """Return the usable questions of a reply. A "not" is removed from a question, because judges overlook "not"."""
        lines = [" ".join(_BULLET.sub("", line).split()) for line in reply.splitlines()]
        kept = [text for line in lines if (text := _NEGATED.sub(_positive, line)) and self._is_usable(text)]
        return list(dict.fromkeys(kept))[:MOST_QUESTIONS]

    def _is_usable(self, text: str) -> bool:
        return (
            text.startswith(self._opening + " ")
            and text.endswith("?")
            and len(text.split()) <= MOST_WORDS
            and not _REFUSED.search(plain := self._without_recurring(text))
            and not _NAME.search(plain)
            and not _ASKS_NOTHING.fullmatch(text.removeprefix(self._opening))
            and foreign_order(text) is None
        )

    def view_of(self, question: str) -> Sees:
        """Return the text with which a question compares the output, by the rule of :func:`looks_at`."""
        return looks_at(question.removeprefix(self._opening), self._texts, self._noun)

    def _without_recurring(self, text: str) -> str:
        return _WORD.sub(lambda each: "" if each[0].casefold() in self._recurring else each[0], text)


class CommentReader(QuestionAgent):
    """Turns comments into questions, one call per remark."""

    template = "comment_questions"

    async def questions(self, comment: str) -> list[str]:
        """Write questions whether an output has the thing that the comment speaks of; none if it names nothing."""
        found = [await self._lines(f"Comment: {remark}") for remark in remarks(comment)]
        return list(dict.fromkeys(line for lines in found for line in lines))


class BesideReader(QuestionAgent):
    """Turns a comment with its output into questions, because some comments cannot be understood alone."""

    template = "beside_questions"

    async def questions(self, comment: str, output: str) -> list[str]:
        """Write questions whether another output has the thing that the comment on this output speaks of."""
        shown = shorten(" ".join(output.split()), LONGEST_OUTPUT)
        return await self._lines(f"Text: {shown}\nComment: {told([comment])}")


class AskedBeside(NamedTuple):
    """A question, with the text that it compares the output with; ``all`` if it is about the output alone."""

    text: str
    sees: Sees


class RelationReader(QuestionAgent):
    """Turns a comment, its output and the example's other texts into questions with the text that each looks at.

    Most comments of real people are about a relation, e.g. "is about masks, not about linen". A writer that sees only
    the output would turn this comment into a question about masks.
    """

    template = "relation_questions"

    async def relations(self, comment: str, output: str, texts: Mapping[Sees, str]) -> list[AskedBeside]:
        """Write questions whether another output has the thing that the comment on this output speaks of.

        ``texts`` are the other texts of the output's example, by name.
        """
        found = await self._read(comment, output, texts, _TOKENS)
        sees = dict.fromkeys(each.sees for each in found if each.sees in texts)
        common = [each for name in sees for each in self._common(name, texts[name], output)]
        return list({each.text: each for each in [*found, *common]}.values())

    async def _read(self, comment: str, output: str, texts: Mapping[Sees, str], tokens: int) -> list[AskedBeside]:
        """Ask about a comment beside excerpts of the output and the texts."""
        shown = shorten(" ".join(output.split()), LONGEST_OUTPUT)
        excerpts = [
            f"{name.capitalize()}: {excerpt(' '.join(text.split()), shown, LONGEST_OTHER)}"
            for name, text in texts.items()
        ]
        asked = "\n".join([f"Text: {shown}", *excerpts, f"Comment: {told([comment])}"])
        return self.read_views((await self._say([*self._orders, ("user", asked)], max_tokens=tokens)).text)

    def _common(self, sees: Sees, text: str, output: str) -> list[AskedBeside]:
        """Return the questions about common relations to a text. An input counts as a source if it is longer than the
        output and does not end with a question mark."""
        is_request = text.rstrip().endswith("?") or len(text.split()) <= len(output.split())
        kind = "reference" if sees == "reference" else "request" if sees == "input" and is_request else "source"
        return [AskedBeside(f"{self._opening} {each.format(text=sees)}?", sees) for each in COMMON_RELATIONS[kind]]

    def read_views(self, reply: str) -> list[AskedBeside]:
        """Return the usable questions of a reply with the text that each looks at. If a line does not name the text,
        :func:`looks_at` finds it."""
        views: dict[str, Sees] = {}
        for line in reply.splitlines():
            mark = _LOOKS_AT.search(line)
            for text in self.read(f"{line[: mark.start()].rstrip('? ')}?" if mark else line):
                if text not in self._shown_alone:
                    views.setdefault(text, self._view(text, mark[1].lower() if mark else None))
        return [AskedBeside(text, sees) for text, sees in views.items()][:MOST_QUESTIONS]

    @cached_property
    def _shown_alone(self) -> set[str]:
        """Questions of the few-shot examples about the output alone. A small writer without an idea repeats them."""
        lines = (line for role, said in self._orders if role == "assistant" for line in said.splitlines())
        return {line.replace(" (text)", "") for line in lines if line.endswith("(text)?")}

    def _view(self, text: str, said: str | None) -> Sees:
        named = _CALLED.get(said or "", said)
        return next((each for each in self._texts if each == named), None) or self.view_of(text)


class RichReader(RelationReader):
    """Turns a comment, its output and the example's other texts into a question with a definition and two short cases.

    A small writer cannot do that. It is for a writer that is another model than the judge: the question then says what
    its words mean and where the limit is, so that the judge need not guess.
    """

    template = "rich_questions"

    async def relations(self, comment: str, output: str, texts: Mapping[Sees, str]) -> list[AskedBeside]:
        """Write one question whether another output has the thing that the comment speaks of; none if the comment names
        nothing, or if the reply lacks a part."""
        return await self._read(comment, output, texts, _RICH_TOKENS)

    def read_views(self, reply: str) -> list[AskedBeside]:
        """Return the question of a reply, with its definition and cases in brackets before the question mark."""
        parts = {name.lower(): " ".join(said.split()) for name, said in _PART.findall(reply)}
        means, yes, no = (parts.get(name, "").strip(" .?\"“”'") for name in ("means", "yes", "no"))
        plain = self.read(parts.get("question", ""))
        whole = [means, yes, no]
        if not plain or not all(whole) or max(len(each.split()) for each in whole) > MOST_WORDS_OF_PART:
            return []
        text = f"{plain[0].removesuffix('?')} ({means}; yes: “{yes}”; no: “{no}”)?"
        if foreign_order(text) is not None:
            return []
        return [AskedBeside(text, self._view(plain[0], parts.get("looks at", "").strip("()[] .").lower() or None))]


class KindReader(QuestionAgent):
    """Lists in general words what an output does, to find what accepted outputs do and rejected outputs do not."""

    template = "kinds_of_things"

    async def questions(self, output: str) -> list[str]:
        """Write questions whether another output does the things that this output does."""
        return await self._lines(f"Text: {shorten(' '.join(output.split()), LONGEST_OUTPUT)}")

    def read(self, reply: str) -> list[str]:
        """Make a question of each line that names a thing that the text does."""
        lines = [" ".join(_BULLET.sub("", line).split()).rstrip(".") for line in reply.splitlines()]
        texts = [
            f"{self._opening} {line[0].lower()}{line[1:]}?"
            for line in lines
            if 2 <= len(line.split()) <= MOST_KIND_WORDS
        ]
        return [text for text in dict.fromkeys(texts) if self._is_usable(text)][:MOST_KINDS]


class Generaliser(QuestionAgent):
    """Turns a question about the single thing of a comment into a question about its kind."""

    template = "general_questions"

    async def questions(self, question: str) -> list[str]:
        """Write more general questions than this one; none if the reply has none."""
        return [each for each in await self._lines(question) if each != question]


def _positive(negated: re.Match[str]) -> str:
    return "can" if negated[0] == "cannot" else _POSITIVE.get(negated[1] or "", "")


def looks_at(question: str, texts: Collection[Sees], noun: str = "") -> Sees:
    """Return the text with which a question compares the output, by its words; ``all`` if it names none of ``texts``.

    ``texts`` are the texts that the examples have. ``noun`` is the word for an output: if it is "article", then "the
    article" means the output and not a source.
    """
    low = question.lower().replace(f"the {noun.lower()}", "") if noun else question.lower()
    source: Sees = "context" if "context" in texts else "input"
    for words, name in ((_OF_REFERENCE, "reference"), (_OF_SOURCE, source), (_OF_INPUT, "input")):
        if name in texts and words.search(low):
            return name  # type: ignore[return-value]
    return "all"


def recurring_names(comments: Iterable[str]) -> list[str]:
    """Return the names and numbers that are in at least :data:`RECURS` different comments, the most frequent first.

    People look for these again and again. Any other name belongs to its own case.
    """
    held: Counter[str] = Counter()
    for comment in {one_line(each) for each in comments}:
        held.update(set(capitalised(comment)))
    found = [name for name, times in held.items() if times >= RECURS]
    return sorted(found, key=lambda name: (-held[name], name))[:MOST_RECURRING]


def remarks(comment: str) -> Sequence[str]:
    """Return the comment and its first sentences, if it has several, because each may speak of another thing.

    Of a long comment, only the sentences are returned.
    """
    line = told([comment])
    parts = [each for each in sentences(line) if len(each.split()) >= FEWEST_WORDS and each != line][:MOST_REMARKS]
    return parts if parts and len(line.split()) > LONG_REMARK else [line, *parts]
