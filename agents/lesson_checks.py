"""Checks of a new lesson: is it a duplicate (BinEval §3.3, Dedup), a contradiction, or impossible to follow?

Embeddings find the neighbours of a lesson, and a model decides. If two lessons contradict each other, the evidence
decides elsewhere which of them goes. "Maintain an internal counter" does not make a model able to count (BinEval §5.5
and A.2.4). Such lessons are computational: they are reported and not written into the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.lessons import Lesson, foreign_order
from ..prompts.templates import render, template
from .agent import Agent
from .rules import DIRECTIONS, Direction


class Relation(BaseModel):
    """Relation of a new lesson to the lessons that it resembles."""

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
        """Decide how a lesson relates to its neighbours.

        Returns the relation and the neighbour that it concerns (None for "new"). Without neighbours no call is made.
        ``free`` lessons have no given form, so their merged text may begin with any words. Raises ParseError if the
        reply does not name a neighbour, or has no usable merged text, where the relation needs it."""
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
    """Return the order of a judge's rule, e.g. "Answer no if"; of any other text, its first three words."""
    orders = (order for each in DIRECTIONS if text.startswith(f"{(order := _order(each))} "))
    return next(orders, " ".join(text.split()[:3]))


@dataclass(frozen=True)
class Contradiction:
    """Whether two lessons contradict each other, and why."""

    contradicts: bool
    reason: str
    by: Literal["rule", "model"]
    """``rule`` if the words of the lessons decided without a call."""


class _ContradictionReply(BaseModel):
    model_config = ConfigDict(title="comparison of two instructions")

    reason: str = Field(max_length=300)
    contradicts: bool


class ContradictionFinder(Agent):
    """A model that decides whether two similar lessons contradict each other."""

    role = "deduplicator"

    async def compare(self, first: Lesson, second: Lesson | str) -> Contradiction:
        """Decide whether a lesson contradicts another lesson, or a line of a prompt, given as text.

        No call is needed in three cases: both say the same; both speak of the same case with opposite directions; or
        the prompt's line has the lesson's direction, so that both ask for the same answer. Raises ParseError if the
        model's replies cannot be used."""
        if settled := _by_words(first, second):
            return settled
        # sorted, so that the order of the two lessons does not change the request
        one, other = sorted((first.text, second if isinstance(second, str) else second.text))
        case = render("contradictions_case", first=one, second=other)
        reply = await self._ask(template("contradictions"), case, _ContradictionReply, max_tokens=120)
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
    """Return the direction of a line of a prompt; None if the line is not a rule."""
    found = (each for each in DIRECTIONS if re.match(_BULLET + _order(each), text, re.IGNORECASE))
    return next((each.name for each in found), None)


def _order(direction: Direction) -> str:
    return direction.opening.removesuffix(" the output")


def _case(text: str) -> str:
    """Return the case that a rule speaks of: its words without the order."""
    for direction in DIRECTIONS:
        text = re.sub(rf"{_BULLET}{_order(direction)}\s+(?:the output\s+)?", "", text, flags=re.IGNORECASE)
    return " ".join(re.findall(r"\w+", text.lower()))


LessonKind = Literal["promptable", "computational"]


@dataclass(frozen=True)
class LessonClass:
    """The kind of a lesson, with the reason."""

    kind: LessonKind
    reason: str
    by: Literal["rule", "model"]
    """``rule`` if patterns decided without a call."""


class _ClassReply(BaseModel):
    model_config = ConfigDict(title="kind of lesson")

    reason: str = Field(max_length=200)
    kind: LessonKind


_FINE = (
    r"(?:word|character|letter|syllable|vowel|consonant|digit|token|noun|verb|adjective|adverb|pronoun|conjunction|"
    r"comma|capital|occurrence|repetition|stop ?word|keyword|number)s?"
)
"""Small units, which a model cannot count while it writes."""
_COARSE = r"(?:sentence|paragraph|line|bullet|item|section|stanza|point|time|example|question|row|column|step)s?"
"""Units that a model may be able to count if there are few."""
_SPELLED = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|fifty|hundred|several|"
    r"this many|that many)"
)
_BOUND = r"(?:exactly|at least|at most|no more than|no fewer than|fewer than|more than|up to|under|over|only)"
_AMOUNT = (
    rf"(?:{_BOUND}\s+(?:the |an? )?(?:\d[\d,.]*|{_SPELLED})|\d[\d,.]*(?:\s*(?:to|or|-|–)\s*\d+)?|"
    r"(?:number|amount|count) of)"
)
"""An exact amount. "One" is no amount, because "answer in one word" can be followed."""
_ORDINAL = r"(?:\d+(?:st|nd|rd|th)|n-?th|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)"
_COMPUTATIONAL = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), what)
    for pattern, what in (
        (
            r"count (?!as\b)(?:how|the|each|every|your|them|all|off|up|\w+s)|tally|(?:internal |running )counter",
            "counting",
        ),
        (r"keep (?:a |an |your )?(?:\w+ )?(?:count|counter|tally|track of how many)", "counting"),
        (rf"{_AMOUNT}\s+(?:\w+\s+)?{_FINE}", "an exact count of small units"),
        (rf"(?:as many|more|fewer)\s+{_FINE}\s+(?:as|than)", "comparing counts of small units"),
        (r"(?:word|character|letter|syllable)s?\s+(?:counts?|limits?)", "an exact count of small units"),
        (
            rf"ratios? (?:of|between|from|that)|\d+\s*:\s*\d+|"
            rf"(?:percent|percentage|per cent|%|half|proportion) of (?:the |all |your )*(?:{_FINE}|{_COARSE}|text|output)",
            "keeping a ratio",
        ),
        (rf"(?:every|each)\s+(?:{_ORDINAL}|other|alternate)\s+{_FINE}", "finding positions"),
        (rf"{_ORDINAL}\s+(?:word|character|letter|syllable|vowel|consonant|position)", "finding positions"),
        (r"palindromes?|prime numbers?|syllables?|anagrams?|alphabetical(?:ly)?", "testing letters or numbers"),
        (r"calculate|compute|add up|sum up the|multiply|divide by", "calculation"),
    )
)
_DOUBTFUL = re.compile(
    rf"\b(?:{_AMOUNT}\s+(?:\w+\s+)?{_COARSE}|{_SPELLED}\s+(?:\w+\s+)?(?:{_FINE}|{_COARSE})|as many|counts?|"
    r"how (?:many|often|long)|once|twice|half|longer than|shorter than|length|positions?|order of|sort(?:ed)?|vowels?|"
    r"consonants?|letters?|characters?|rhymes?|times|average|ratios?|proportions?|percent\w*|increasing|decreasing|\d+\s*%)(?!\w)",
    re.IGNORECASE,
)


class LessonClassifier(Agent):
    """Agent that decides the clear cases by patterns, and asks a model in other cases."""

    role = "note_taker"

    async def classify(self, lesson: Lesson) -> LessonClass:
        """Classify a lesson by its text, mostly without a call. Raises ParseError if the replies cannot be used."""
        if settled := class_by_rule(lesson.text):
            return settled
        case = render("lesson_class_case", lesson=lesson.text)
        reply = await self._ask(template("lesson_class"), case, _ClassReply, max_tokens=80)
        return LessonClass(reply.kind, " ".join(reply.reason.split()), "model")


def class_by_rule(text: str) -> LessonClass | None:
    """Classify a lesson by its words alone; None if a model must be asked.

    A single thing needs no counting ("answer in one word"). A lesson that counts, compares and places nothing is
    promptable.
    """
    for pattern, what in _COMPUTATIONAL:
        if match := pattern.search(text):
            return LessonClass("computational", f'it needs {what} ("{match[0].strip()}")', "rule")
    if _DOUBTFUL.search(text):
        return None
    return LessonClass("promptable", "nothing has to be counted, measured or placed", "rule")
