"""Rules for judges: their two directions, how a rule is made of a model's end of a sentence, and the guards.

A rule must be general and say more than the question. A small model does not retell the example if it first chooses a
kind of fault from a list, which was made from the task and the question without the example.
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
"""Most characters of a rule, which is one sentence."""
ECHO_RUN = 6
"""Number of words in a row from our own orders that make a rule an echo; "When the request asks for" has five."""
STEM = 5
"""Number of first letters that are compared: words with the same beginning count as the same word."""

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
"""Words that say only that something is right or wrong, and words that every rule needs."""


def rule_sentence(opening: str, rest: str) -> str:
    """Make a sentence of its given opening and the model's ending, which may repeat parts of the opening."""
    rest = " ".join(rest.split()).strip(" .\"'")
    orders = r"yes|no\s+even" if opening in (STRICTER_ON_FAULT.opening, LENIENT_ON_FAULT.opening) else r"no|yes\s+even"
    rest = re.sub(_REPEATED_OPENING.format(orders=orders), "", rest, flags=re.IGNORECASE)
    rest = _REPEATED_ORDER.sub("", rest).rstrip(" ,;:")
    subject = re.match(r"(?:the|a|an|any|there|some)\b", rest, re.IGNORECASE)
    start = opening.removesuffix(" the output") if subject else opening
    return f"{start} {rest if rest[1:2].isupper() else rest[:1].lower() + rest[1:]}."


def too_special(rule: str, shown: Sequence[str], violation: str, judged: str) -> str | None:
    """Return why a rule is too special; None if it is general.

    A rule is too special if it copies the examples' texts ``shown``, or the question's example of a ``violation``. Any
    rule may use the words of ``judged``: the task, the question and the kinds of faults.
    """
    copied = (
        copied_words(rule, shown)
        or copied_words(rule, [violation], run=3)
        or copied_names(rule, [*shown, violation], judged)
        or next(iter(topic_words(rule, " ".join(shown), judged)), None)
    )
    return f'the rule is about this example alone ("{copied}"); say it in general words' if copied else None


def echoed(text: str, orders: Iterable[str]) -> str | None:
    """Return the words that a model repeated from our own orders (names of templates); None if there are none."""
    return copied_words(text, [template(name) for name in orders], run=ECHO_RUN)


def noun_phrase(kind: str) -> str:
    """Turn a kind of fault into a thing that an output may have: "a name is wrong" into "a name that is wrong"."""
    return _CLAUSE.sub(r"\1 that \2", kind)


def beside_the_point(rule: str, judged: str) -> str | None:
    """Return why a rule is no rule for a judge; None if it is one.

    It is no rule if it repeats our orders, asks a question, or speaks of rules, examples or judges. A small model
    repeats orders about notes ("... if the rule must help on other examples"). Any rule may use the words of
    ``judged``, because a task may be about rules.
    """
    if echo := echoed(rule, _ORDERS):
        return f'the rule repeats what you were told ("{echo}"); say what to look for in an output'
    if "?" in rule:
        return "the rule asks a question; write what to look for as a statement"
    words = {word.removesuffix("s") for word in re.findall(r"\w+", judged.lower())}
    said = next((found for found in _OF_NOTES.finditer(rule) if found[1].lower().removesuffix("s") not in words), None)
    return f'the rule speaks of its own making ("{said[0]}"); say what to look for in an output' if said else None


def speaks_of(kind: str, rule: str) -> bool:
    """Return whether the rule has a word of its kind. E.g. "does not match the input" has none of "a changed name"."""
    words = {word for word in re.findall(r"\w+", kind.lower()) if len(word) > 3}
    return bool(words & set(re.findall(r"\w+", rule.lower())))


def content_stems(text: str) -> set[str]:
    """Return the beginnings of a text's content words: without words of up to two letters and words of every rule."""
    return {_stem(word) for word in re.findall(r"\w+", text.lower()) if len(word) > 2} - _EMPTY_STEMS


def _stem(word: str) -> str:
    return word.removesuffix("s")[:STEM]


_EMPTY_STEMS = frozenset(map(_stem, _EMPTY_WORDS.split()))


class FaultKinds(BaseModel):
    """Kinds of faults that a question is about, in general words."""

    model_config = ConfigDict(title="kinds of faults")

    kinds: list[str] = Field(min_length=2, max_length=10)


def listed_kind(kind: str, kinds: Iterable[str]) -> str | None:
    """Return the listed kind that a model named, ignoring case and full stops; None if it named another kind."""
    return next((each for each in kinds if each.lower() == kind.strip(" .\"'").lower()), None)


class NoteFields(BaseModel):
    """Fields at the beginning of every note, in this order."""

    model_config = ConfigDict(title="note")

    quote: str = Field(max_length=300)
    fact: str = Field(max_length=300)
    kind: str = Field(max_length=80)


@dataclass(frozen=True)
class Direction:
    """A direction of rules, with the words for asking for such a rule and for writing it."""

    name: Literal["stricter", "more lenient"]
    field: str
    """The last field of a note, which holds the end of the rule."""
    opening: str
    on_fault: bool = False
    """Whether yes speaks against the output."""

    @cached_property
    def record(self) -> type[NoteFields]:
        """Schema of the note."""
        rule: Any = (str, Field(min_length=10, max_length=LONGEST_RULE))
        return create_model("Note", __base__=NoteFields, **{self.field: rule})

    @property
    def stricter(self) -> bool:
        """Whether the rule makes the judge speak against an output."""
        return self.name == "stricter"

    @property
    def answers(self) -> tuple[str, str]:
        """The right answer, and the judge's wrong answer."""
        return ("no", "yes") if self.stricter != self.on_fault else ("yes", "no")


STRICTER = Direction("stricter", "answer_no_if", "Answer no if the output")
LENIENT = Direction("more lenient", "answer_yes_even_if", "Answer yes even if the output")
STRICTER_ON_FAULT = Direction("stricter", "answer_yes_if", "Asked about a fault, answer yes if the output", True)
LENIENT_ON_FAULT = Direction(
    "more lenient", "answer_no_even_if", "Asked about a fault, answer no even if the output", True
)
"""Directions for fault questions. Their openings say so, because a prompt's rules are read with all its questions."""
STRICTER_RATING = Direction("stricter", "answer_no_if", "Give a bad rating if the output")
LENIENT_RATING = Direction("more lenient", "answer_yes_even_if", "Give a good rating even if the output")
"""Directions for judges in people's own words, which do not answer yes or no."""
DIRECTIONS = (STRICTER, LENIENT, STRICTER_ON_FAULT, LENIENT_ON_FAULT, STRICTER_RATING, LENIENT_RATING)


def direction_of(question: Polar, answer: bool) -> Direction:
    """Return the direction of a rule for a judge whose ``answer`` was wrong."""
    if question.is_fault:
        return LENIENT_ON_FAULT if answer else STRICTER_ON_FAULT
    return STRICTER if answer else LENIENT


def polarity_words(question: Polar) -> dict[str, str]:
    """Return values for the templates that list kinds of faults: the good and the bad answer, a similar question."""
    if question.is_fault:
        return {"good": "no", "bad": "yes", "like": "Would it go wrong, cooked as written?"}
    return {"good": "yes", "bad": "no", "like": "Can it be cooked as written?"}


@dataclass(frozen=True)
class RuleMaker:
    """Turns a note's end of a sentence into a rule, or says why that is not possible."""

    direction: Direction
    question: Question
    shown: Sequence[str]
    """Texts of the examples, from which nothing may be copied."""
    judged: str
    """Words that any rule may use."""
    kinds: Sequence[str] = ()

    def rule(self, ending: str, kind: str) -> str:
        """Return the model's rule if it is general, else a rule made of its kind. Raises ValueError, with a message for
        the model, if neither can be used."""
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
        """Return why a rule cannot be used; else None. ``listed``: its words come from a kind that was listed without
        an example, so they are not too special."""
        if re.findall(r"\w+", text) == re.findall(r"\w+", self.direction.opening):
            return f'"{self.direction.field}" says nothing; say what to look for in an output'
        special = foreign_order(text, self.judged) or beside_the_point(text, self.judged)
        if special is None and not listed:
            special = too_special(text, self.shown, self.question.violation or "", self.judged)
        return special
