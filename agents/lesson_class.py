"""Whether a lesson can be followed at all: promptable, or computational (BinEval §5.5 and A.2.4).

"Maintain an internal counter" does not make a model able to count. Such lessons made the paper's prompt long until it
collapsed; here they are reported, with their counts, and not written into the prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.lessons import Lesson
from ..prompts.templates import render, template
from .agent import Agent

LessonKind = Literal["promptable", "computational"]


@dataclass(frozen=True)
class LessonClass:
    """What a lesson is, and why."""

    kind: LessonKind
    reason: str
    by: Literal["rule", "model"]
    """Whether a rule settled it without a call."""


class _Reply(BaseModel):
    model_config = ConfigDict(title="kind of lesson")

    reason: str = Field(max_length=200)
    kind: LessonKind


_FINE = (
    r"(?:word|character|letter|syllable|vowel|consonant|digit|token|noun|verb|adjective|adverb|pronoun|conjunction|"
    r"comma|capital|occurrence|repetition|stop ?word|keyword|number)s?"
)
"""What a model cannot count while it writes."""
_COARSE = r"(?:sentence|paragraph|line|bullet|item|section|stanza|point|time|example|question|row|column|step)s?"
"""What it may be able to count where there are few of them."""
_SPELLED = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|fifty|hundred|several|"
    r"this many|that many)"
)
_BOUND = r"(?:exactly|at least|at most|no more than|no fewer than|fewer than|more than|up to|under|over|only)"
_AMOUNT = (
    rf"(?:{_BOUND}\s+(?:the |an? )?(?:\d[\d,.]*|{_SPELLED})|\d[\d,.]*(?:\s*(?:to|or|-|–)\s*\d+)?|"
    r"(?:number|amount|count) of)"
)
"""How many, said exactly. One is no amount: "answer in one word" can be followed."""
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
    """Settles the clear cases by rules and asks a model in the others."""

    role = "note_taker"

    async def classify(self, lesson: Lesson) -> LessonClass:
        """The class of a lesson by its text; most take no call.

        Raises:
            ParseError: The model's replies cannot be used.
            ModelError: No reply.
        """
        if settled := class_by_rule(lesson.text):
            return settled
        case = render("lesson_class_case", lesson=lesson.text)
        reply = await self._ask(template("lesson_class"), case, _Reply, max_tokens=80)
        return LessonClass(reply.kind, " ".join(reply.reason.split()), "model")


def class_by_rule(text: str) -> LessonClass | None:
    """The class where words alone tell; None where a model has to be asked.

    One word, one letter or one of anything else is no counting ("answer in one word"). Where nothing is counted,
    compared or placed at all, a lesson is promptable.
    """
    for pattern, what in _COMPUTATIONAL:
        if match := pattern.search(text):
            return LessonClass("computational", f'it needs {what} ("{match[0].strip()}")', "rule")
    if _DOUBTFUL.search(text):
        return None
    return LessonClass("promptable", "nothing has to be counted, measured or placed", "rule")
