"""From a reviewer's comment to questions that find what it speaks of in other outputs.

The comment is shown alone first: with the output beside it a small model copies the case in place of naming its kind. A
comment from which nothing came is read again beside its output. Whether the thing is a fault or a merit is not asked;
the output that the comment is about tells (METHOD part 4: a question of its own that detects a fault is worth more than
the same lesson in a prompt).
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
"""Characters of an output that are shown."""
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
"""Common remarks on an output beside a request, its source or a reference, whatever the case is about.

A small writer names the case, or copies an example of its orders. Of a hundred comments read by hand, on answers and on
summaries, over ninety say one of these. They join the candidates where a comment speaks of such a relation.
"""
LONGEST_OTHER = 600
"""Characters of another text that are shown beside it."""
RECURS = 3
"""Different comments from which a name or number stands for something that recurs."""
MOST_RECURRING = 12
"""Names and numbers that a question may have at most."""
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
MOST_WORDS_OF_PART = 25
"""Words of a definition, or of a case, that stand with a question."""
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
"""A line of a rich question."""
_CALLED: Mapping[str, Sees] = {"question": "input", "source": "context"}
"""Other words for a text by which a reply may call it."""
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
    """The orders; below them shots, which are texts from other fields and what is asked after each."""

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
            recurring: Names and numbers that a question may have, as of :func:`recurring_names`.
            texts: Texts that every example has and a question may hold the output against.
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
            and not _REFUSED.search(plain := self._without_recurring(text))
            and not _NAME.search(plain)
            and not _ASKS_NOTHING.fullmatch(text.removeprefix(self._opening))
            and foreign_order(text) is None
        )

    def view_of(self, question: str) -> Sees:
        """The text that a question holds the output against, by the rule of :func:`looks_at`."""
        return looks_at(question.removeprefix(self._opening), self._texts, self._noun)

    def _without_recurring(self, text: str) -> str:
        return _WORD.sub(lambda each: "" if each[0].casefold() in self._recurring else each[0], text)


class CommentReader(QuestionAgent):
    """Turns comments into questions, one call a remark."""

    template = "comment_questions"

    async def questions(self, comment: str) -> list[str]:
        """Questions whether an output has what the comment speaks of; none where it speaks of nothing."""
        found = [await self._lines(f"Comment: {remark}") for remark in remarks(comment)]
        return list(dict.fromkeys(line for lines in found for line in lines))


class BesideReader(QuestionAgent):
    """Turns a comment and the output that it is about into questions: some comments say nothing by themselves."""

    template = "beside_questions"

    async def questions(self, comment: str, output: str) -> list[str]:
        """Questions whether an output has what the comment on this one speaks of; none where it speaks of nothing."""
        shown = shorten(" ".join(output.split()), LONGEST_OUTPUT)
        return await self._lines(f"Text: {shown}\nComment: {told([comment])}")


class AskedBeside(NamedTuple):
    """A question, and the text that it holds the output against; ``all`` where it is about the output alone."""

    text: str
    sees: Sees


class RelationReader(QuestionAgent):
    """Turns a comment, its output and the texts that belong to it into questions that say what they look at.

    Most comments of real people are about a relation, as in "is about masks, not about linen". Beside the output alone
    a writer makes a question about masks of it.
    """

    template = "relation_questions"

    async def relations(self, comment: str, output: str, texts: Mapping[Sees, str]) -> list[AskedBeside]:
        """Questions whether another output has what the comment on this one speaks of, with what each looks at.

        ``texts`` are the other texts of the output's example, by their names.
        """
        found = await self._read(comment, output, texts, _TOKENS)
        sees = dict.fromkeys(each.sees for each in found if each.sees in texts)
        common = [each for name in sees for each in self._common(name, texts[name], output)]
        return list({each.text: each for each in [*found, *common]}.values())

    async def _read(self, comment: str, output: str, texts: Mapping[Sees, str], tokens: int) -> list[AskedBeside]:
        """Ask about a comment, beside as much of the texts as is shown."""
        shown = shorten(" ".join(output.split()), LONGEST_OUTPUT)
        beside = [
            f"{name.capitalize()}: {excerpt(' '.join(text.split()), shown, LONGEST_OTHER)}"
            for name, text in texts.items()
        ]
        asked = "\n".join([f"Text: {shown}", *beside, f"Comment: {told([comment])}"])
        return self.read_views((await self._say([*self._orders, ("user", asked)], max_tokens=tokens)).text)

    def _common(self, sees: Sees, text: str, output: str) -> list[AskedBeside]:
        """The common relations to a text. One that is longer than the output and no question is a source."""
        is_request = text.rstrip().endswith("?") or len(text.split()) <= len(output.split())
        kind = "reference" if sees == "reference" else "request" if sees == "input" and is_request else "source"
        return [AskedBeside(f"{self._opening} {each.format(text=sees)}?", sees) for each in COMMON_RELATIONS[kind]]

    def read_views(self, reply: str) -> list[AskedBeside]:
        """The usable questions of a reply; the rule of :func:`looks_at` decides where a line does not say."""
        said: dict[str, Sees] = {}
        for line in reply.splitlines():
            mark = _LOOKS_AT.search(line)
            for text in self.read(f"{line[: mark.start()].rstrip('? ')}?" if mark else line):
                if text not in self._shown_alone:
                    said.setdefault(text, self._view(text, mark[1].lower() if mark else None))
        return [AskedBeside(text, sees) for text, sees in said.items()][:MOST_QUESTIONS]

    @cached_property
    def _shown_alone(self) -> set[str]:
        """Questions of the shots about a text alone: a small writer repeats them where it has none of its own."""
        lines = (line for role, said in self._orders if role == "assistant" for line in said.splitlines())
        return {line.replace(" (text)", "") for line in lines if line.endswith("(text)?")}

    def _view(self, text: str, said: str | None) -> Sees:
        named = _CALLED.get(said or "", said)
        return next((each for each in self._texts if each == named), None) or self.view_of(text)


class RichReader(RelationReader):
    """Turns a comment, its output and what belongs to it into one question with a definition and two short cases.

    A small writer cannot do that. It is for a writer that is another model than the judge: what a word means, and
    where it ends, then stands in the question, and the judge need not guess it.
    """

    template = "rich_questions"

    async def relations(self, comment: str, output: str, texts: Mapping[Sees, str]) -> list[AskedBeside]:
        """One question whether another output has what the comment on this one speaks of; none where it speaks of
        nothing, or the reply lacks a part."""
        return await self._read(comment, output, texts, _RICH_TOKENS)

    def read_views(self, reply: str) -> list[AskedBeside]:
        """The question of a reply with its definition and cases in brackets; it begins and ends as questions do."""
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
    """Says in general words what an output does: what many accepted and no rejected ones do is what these lack."""

    template = "kinds_of_things"

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

    async def questions(self, question: str) -> list[str]:
        """More general questions than this one; none where the reply has none."""
        return [each for each in await self._lines(question) if each != question]


def _positive(negated: re.Match[str]) -> str:
    return "can" if negated[0] == "cannot" else _POSITIVE.get(negated[1] or "", "")


def looks_at(question: str, texts: Collection[Sees], noun: str = "") -> Sees:
    """Return the text that a question holds the output against, by its words; ``all`` where they name none of the
    ``texts`` that the examples have. ``noun`` is the word for an output: where that is an article, "the article" is it.
    """
    low = question.lower().replace(f"the {noun.lower()}", "") if noun else question.lower()
    source: Sees = "context" if "context" in texts else "input"
    for words, name in ((_OF_REFERENCE, "reference"), (_OF_SOURCE, source), (_OF_INPUT, "input")):
        if name in texts and words.search(low):
            return name  # type: ignore[return-value]
    return "all"


def recurring_names(comments: Iterable[str]) -> list[str]:
    """Return the names and numbers that :data:`RECURS` different comments have, the most frequent first.

    One of them stands for something that people look for again and again; any other name belongs to its case.
    """
    held: Counter[str] = Counter()
    for comment in {one_line(each) for each in comments}:
        held.update(set(capitalised(comment)))
    found = [name for name, times in held.items() if times >= RECURS]
    return sorted(found, key=lambda name: (-held[name], name))[:MOST_RECURRING]


def remarks(comment: str) -> Sequence[str]:
    """The comment and, where it has several, its first sentences, as each may speak of another thing.

    A long comment is read by its sentences alone.
    """
    line = told([comment])
    parts = [each for each in sentences(line) if len(each.split()) >= FEWEST_WORDS and each != line][:MOST_REMARKS]
    return parts if parts and len(line.split()) > LONG_REMARK else [line, *parts]
