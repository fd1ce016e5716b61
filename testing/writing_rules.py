"""The rules of the prompts that write in a :class:`~askance.testing.WritersWorld`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..prompts.checklist import ComputedCheck, Question

_LONG = (
    "There is much more of it to be told, and all of it is told here at length, though it is of no use to anybody who "
)
_LONG += (
    "asked a short question and hoped for a short answer, as most people do on most days, and so it goes on and on."
)


@dataclass(frozen=True)
class WritingRule:
    """A rule of a prompt that writes."""

    order: str
    """The rule as the prompt states it."""
    said: str
    """Pattern of texts that speak of it."""
    criterion: Question
    """A check that code decides, or a question for :class:`WritersJudge`."""
    kept: str = ""
    """Its piece of an output that keeps it; ``{n}`` is a number that differs from input to input."""
    broken: str = ""
    """Its piece of an output that does not."""

    @property
    def id(self) -> str:
        """The id of its criterion."""
        return self.criterion.id

    @property
    def is_check(self) -> bool:
        """Whether code decides it."""
        return isinstance(self.criterion, ComputedCheck)

    def speaks_in(self, text: str) -> bool:
        """Whether a text speaks of it."""
        return re.search(self.said, text, re.IGNORECASE) is not None

    def is_kept(self, output: str) -> bool:
        """Whether an output has the piece that keeps the rule, or lacks the piece that breaks it."""
        return self.broken not in output if self.broken else self.kept.partition("{")[0] in output


def _check(name: str, kind: str, value: str | None, good: str = "yes") -> ComputedCheck:
    return ComputedCheck.model_validate({"id": name, "kind": kind, "value": value, "good": good})


def _asked(name: str, text: str, good: Literal["yes", "no"] = "yes") -> Question:
    return Question(id=name, text=text, dimension="content", good=good)


REPLY = (
    WritingRule('Begin with "Dear reader,".', r"Dear reader", _check("begins", "begins", "Dear reader,"), "Dear reader,", "Hello,"),
    WritingRule(
        "Thank the reader for the question.", r"\bthank", _asked("thanks", "Does the reply thank the reader?"),
        "Thank you for asking on day {n}.",
    ),
    WritingRule("Name the deadline.", r"\bdeadline", _asked("deadline", "Does the reply name a deadline?"), "It ends on day {n}."),
    WritingRule("Say what to do next.", r"\bnext\b", _asked("next_step", "Does the reply say what to do next?"), "Now fill in form {n}."),
    WritingRule(
        "Do not blame the reader.", r"\bblam", _asked("blame", "Does the reply blame the reader?", "no"),
        broken="It was your own mistake.",
    ),
    WritingRule("Write at most 50 words.", r"\bwords\b(?! like)|\bshort\b|\blong", _check("length", "length", "at most 50 words"), broken=_LONG),
    WritingRule(
        'Never use the word "unfortunately".', r"unfortunately", _check("forbidden", "matches", "(?i)unfortunately", "no"),
        broken="Unfortunately it takes a while.",
    ),
    WritingRule(
        "Give no web address.", r"\bweb\b|\blinks?\b|https?:", _check("links", "matches", "https?://", "no"),
        broken="See https://example.org for more.",
    ),
    WritingRule('End with "Your help desk".', r"Your help desk", _check("ends", "ends", "Your help desk"), "Your help desk", "Best wishes"),
)  # fmt: skip
FACTS = (
    WritingRule(
        "Reply with one JSON object and nothing else, without a code fence.", r"\bJSON\b|code fence", _check("bare", "json", None),
        broken="```json\n",
    ),
    WritingRule(
        '"headline": at most 6 words,', r"headline", _check("headline", "matches", r'"headline": "[^\s"]+(?: [^\s"]+){0,5}"'),
        broken=" after a long day of talks that nobody had foreseen at all in this quiet town",
    ),
    WritingRule(
        '"tone": one of "good", "bad", "neutral",', r"\btone\b", _check("tone", "matches", r'"tone": "(?:good|bad|neutral)"'),
        broken="rather mixed",
    ),
    WritingRule(
        '"summary": at most 40 words.', r'"summary"|summary[^.]{0,30}\bwords\b|\bshort\b', _check("summary", "matches", r'"summary": "[^\s"]+(?: [^\s"]+){0,39}"'),
        broken=_LONG,
    ),
    WritingRule("The summary names the place.", r"\bplace\b", _asked("place", "Does the summary name the place?"), "It was in town {n}."),
    WritingRule("The summary tells how it ended.", r"\bend(?:ed|s)?\b|outcome", _asked("outcome", "Does the summary tell how it ended?"), "All of it went well on day {n}."),
    WritingRule(
        "The summary gives no opinion.", r"\bopinion", _asked("opinion", "Does the summary give an opinion?", "no"),
        broken="I think it is a pity.",
    ),
)  # fmt: skip
