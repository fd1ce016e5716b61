"""A judge's rule: how it is asked for in either direction, made of the end of a sentence that a model wrote, and
guarded.

A rule must be general, and say more than the question. A small model that first chooses one of the kinds of faults that
a question may be about, listed from the task alone, does not retell the example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..prompts.checklist import Polar, Question
from ..prompts.lessons import foreign_order
from ..prompts.templates import template
from ..prompts.text import copied_names, copied_words, topic_words

LONGEST_RULE = 240
"""Characters; a rule is one sentence."""
ECHO_RUN = 6
"""Words in a row of our own orders to a model that make its rule an echo; "When the request asks for" has five."""
STEM = 5
"""Letters; words that begin alike are taken for the same word."""

_REPEATED_OPENING = (
    r"^(?:(?:asked\s+about\s+a\s+fault,?\s+)?answer\s+(?:{orders})\s+|give\s+a\s+(?:bad|good)\s+rating\s+(?:even\s+)?)?"
    r"(?:if\s+)?(?:(?:the\s+)?output\s+|it\s+)?(?:if\s+(?:the\s+)?output\s+)?"
)
_REPEATED_ORDER = re.compile(
    r",?\s*(?:then\s+)?(?:please\s+)?(?:the\s+)?(?:right\s+)?answer\s+(?:is\s+)?(?:no|yes)$", re.IGNORECASE
)
_CLAUSE = re.compile(r"^((?:an?|the|some)(?: (?!that\b|which\b|who\b)[\w-]+){1,3}) ((?:is|are|was|were|does|do)\b)")
_ORDERS = ("note_taker", "note_taker_case", "given_reason")
_OF_NOTES = re.compile(r"\b(?:this|the|an|a|other) (rules?|examples?|judges?)\b", re.IGNORECASE)
_EMPTY_WORDS = (
    "accurate accurately answer appropriate appropriately claim clear clearly content correct correctly criteria "
    "criterion detail details does doesn error errors expected fact facts fail fails false fulfil fulfill good have "
    "important inaccurate include included includes incorrect incorrectly information instruction instructions "
    "judgement judgment make makes meet meets mentioned must necessary needed output please point points poor properly "
    "provide provided provides quality question reflect reflected reflects relevant request requested requirement "
    "requirements respond response right rule should statement statements suitable support supported task text that "
    "their there they this thing things true unclear unsupported valid well what which with wrong wrongly main never "
    "always follow follows followed following given gives give says said state states stated sure contain contains "
    "ensure match matches every anything something everything without from into only than when your user asked asks "
    "even some more most other source document article summary input the and not are has its any all but for was can "
    "who how did yes one it's isn aren nor also each both been being will would could that's key"
)
"""Words that say no more than that something is right or wrong, and those that every rule needs."""


def rule_sentence(opening: str, rest: str) -> str:
    """One sentence from its given opening and the model's ending, which may repeat parts of the opening."""
    rest = " ".join(rest.split()).strip(" .\"'")
    orders = r"yes|no\s+even" if opening in (STRICTER_ON_FAULT.opening, LENIENT_ON_FAULT.opening) else r"no|yes\s+even"
    rest = re.sub(_REPEATED_OPENING.format(orders=orders), "", rest, flags=re.IGNORECASE)
    rest = _REPEATED_ORDER.sub("", rest).rstrip(" ,;:")
    subject = re.match(r"(?:the|a|an|any|there|some)\b", rest, re.IGNORECASE)
    start = opening.removesuffix(" the output") if subject else opening
    return f"{start} {rest if rest[1:2].isupper() else rest[:1].lower() + rest[1:]}."


def too_special(rule: str, shown: Sequence[str], violation: str, judged: str) -> str | None:
    """Why a rule is about the examples it was drawn from, whose texts are ``shown``; None where it is general.

    It may not repeat the question's example of a ``violation`` either. Words that are ``judged`` any rule may use: the
    task, the question and the kinds of faults.
    """
    copied = (
        copied_words(rule, shown)
        or copied_words(rule, [violation], run=3)
        or copied_names(rule, [*shown, violation], judged)
        or next(iter(topic_words(rule, " ".join(shown), judged)), None)
    )
    return f'the rule is about this example alone ("{copied}"); say it in general words' if copied else None


def echoed(text: str, orders: Iterable[str]) -> str | None:
    """Words of our own orders, templates by name, that a model gave back; None where it did not."""
    return copied_words(text, [template(name) for name in orders], run=ECHO_RUN)


def noun_phrase(kind: str) -> str:
    """A kind of fault as what an output may have: "a name is wrong" becomes "a name that is wrong"."""
    return _CLAUSE.sub(r"\1 that \2", kind)


def beside_the_point(rule: str, judged: str) -> str | None:
    """Why a rule is none for a judge: it asks a question, or speaks of rules, examples or judges; None where it is one.

    A small model repeats what it was told about its notes ("... if the rule must help on other examples"). ``judged``
    are words that any rule may use: a task may be about rules.
    """
    if echo := echoed(rule, _ORDERS):
        return f'the rule repeats what you were told ("{echo}"); say what to look for in an output'
    if "?" in rule:
        return "the rule asks a question; write what to look for as a statement"
    words = {word.removesuffix("s") for word in re.findall(r"\w+", judged.lower())}
    said = next((found for found in _OF_NOTES.finditer(rule) if found[1].lower().removesuffix("s") not in words), None)
    return f'the rule speaks of its own making ("{said[0]}"); say what to look for in an output' if said else None


def speaks_of(kind: str, rule: str) -> bool:
    """Whether the rule has a word of its kind: "does not match the input" has none of "a changed name"."""
    words = {word for word in re.findall(r"\w+", kind.lower()) if len(word) > 3}
    return bool(words & set(re.findall(r"\w+", rule.lower())))


def content_stems(text: str) -> set[str]:
    """The beginnings of the words in a text that say something: not the short ones, nor those in every rule."""
    return {_stem(word) for word in re.findall(r"\w+", text.lower()) if len(word) > 2} - _EMPTY_STEMS


def _stem(word: str) -> str:
    return word.removesuffix("s")[:STEM]


_EMPTY_STEMS = frozenset(map(_stem, _EMPTY_WORDS.split()))


class FaultKinds(BaseModel):
    """Kinds of faults that a checklist is about, in general words."""

    model_config = ConfigDict(title="kinds of faults")

    kinds: list[str] = Field(min_length=2, max_length=10)


def listed_kind(kind: str, kinds: Iterable[str]) -> str | None:
    """The kind of the list that a model named, whatever its case and full stop; None where it named another."""
    return next((each for each in kinds if each.lower() == kind.strip(" .\"'").lower()), None)


class NoteFields(BaseModel):
    """Fields that every note begins with, in this order."""

    model_config = ConfigDict(title="note")

    quote: str = Field(max_length=300)
    fact: str = Field(max_length=300)
    kind: str = Field(max_length=80)


@dataclass(frozen=True)
class Direction:
    """How a rule of one direction is asked for and written."""

    name: Literal["stricter", "more lenient"]
    field: str
    """The last field of a note, which holds the end of the rule."""
    opening: str
    on_fault: bool = False
    """Whether yes speaks against the output."""

    @cached_property
    def record(self) -> type[NoteFields]:
        """The note's schema."""
        rule: Any = (str, Field(min_length=10, max_length=LONGEST_RULE))
        return create_model("Note", __base__=NoteFields, **{self.field: rule})

    @property
    def stricter(self) -> bool:
        """Whether the rule makes the judge speak against an output."""
        return self.name == "stricter"

    @property
    def answers(self) -> tuple[str, str]:
        """The right answer, and the one that the judge gave."""
        return ("no", "yes") if self.stricter != self.on_fault else ("yes", "no")


STRICTER = Direction("stricter", "answer_no_if", "Answer no if the output")
LENIENT = Direction("more lenient", "answer_yes_even_if", "Answer yes even if the output")
STRICTER_ON_FAULT = Direction("stricter", "answer_yes_if", "Asked about a fault, answer yes if the output", True)
LENIENT_ON_FAULT = Direction(
    "more lenient", "answer_no_even_if", "Asked about a fault, answer no even if the output", True
)
"""Both say what they are about, as the rules of a prompt are read with questions of either kind."""
STRICTER_RATING = Direction("stricter", "answer_no_if", "Give a bad rating if the output")
LENIENT_RATING = Direction("more lenient", "answer_yes_even_if", "Give a good rating even if the output")
"""For judges in people's own words, who answer neither yes nor no."""
DIRECTIONS = (STRICTER, LENIENT, STRICTER_ON_FAULT, LENIENT_ON_FAULT, STRICTER_RATING, LENIENT_RATING)


def direction_of(question: Polar, answer: bool) -> Direction:
    """The direction of a rule for a judge that wrongly gave this answer."""
    if question.is_fault:
        return LENIENT_ON_FAULT if answer else STRICTER_ON_FAULT
    return STRICTER if answer else LENIENT


def polarity_words(question: Polar) -> dict[str, str]:
    """Values of the templates that list kinds of faults: a question's answers, and a question like it."""
    if question.is_fault:
        return {"good": "no", "bad": "yes", "like": "Would it go wrong, cooked as written?"}
    return {"good": "yes", "bad": "no", "like": "Can it be cooked as written?"}


@dataclass(frozen=True)
class RuleMaker:
    """Turns a note's ending into a rule, or says why it cannot be one."""

    direction: Direction
    question: Question
    shown: Sequence[str]
    """Texts of the examples, from which nothing may be copied."""
    judged: str
    """Words that any rule may use."""
    kinds: Sequence[str] = ()

    def rule(self, ending: str, kind: str) -> str:
        """The model's rule where it is general, else the rule that its kind makes. Raises ValueError where neither can
        be used; the message is told to the model."""
        text = rule_sentence(self.direction.opening, ending)
        problem = self._problem(text)
        follows = not self.kinds or not self.direction.stricter or speaks_of(kind, text)
        if problem is None and follows:
            return text
        known = listed_kind(kind, self.kinds)
        if known is not None:
            instead = f"{self.direction.opening} has {noun_phrase(known)}."
            problem = self._problem(instead, listed=True)
            if problem is None:
                return instead
        raise ValueError(problem or f'"{self.direction.field}" does not say what "kind" says')

    def _problem(self, text: str, *, listed: bool = False) -> str | None:
        """``listed``: the words are a kind's, which was listed without a look at any example."""
        if re.findall(r"\w+", text) == re.findall(r"\w+", self.direction.opening):
            return f'"{self.direction.field}" says nothing; say what to look for in an output'
        special = foreign_order(text, self.judged) or beside_the_point(text, self.judged)
        if special is None and not listed:
            special = too_special(text, self.shown, self.question.violation or "", self.judged)
        return special
