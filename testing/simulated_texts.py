"""What can be wrong in the simulated world, in words: signs in the outputs, the rules that speak of them, and their sense."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Kind:
    """One kind of thing that an output may have; a question is about some of them."""

    sign: str
    """How it shows in an output: a reader sees the thing, a simulated judge sees this sign of it."""
    is_fault: bool
    """Whether the right answer to its question is no; a harmless kind only looks like a fault."""
    phrases: tuple[str, ...]
    """Ways to name it; a rule that has one of them speaks of it."""


@dataclass(frozen=True)
class Topic:
    """What a question is about."""

    id: str
    question: str
    kinds: tuple[Kind, ...]
    distraction: str
    """Guidance with these words makes a judge answer this question by something that has nothing to do with it."""

    def of(self, *, faults: bool) -> tuple[Kind, ...]:
        """Its kinds of faults, or its harmless kinds."""
        return tuple(kind for kind in self.kinds if kind.is_fault == faults)


TOPICS = (
    Topic(
        "names",
        "Are the people and places right?",
        (
            Kind("n1", True, ("a person swapped for another", "somebody's deed given to somebody else")),
            Kind("n2", True, ("a place that was changed", "the scene moved to another town or country")),
            Kind("n3", True, ("a role or title mixed up", "someone called by an office they do not hold")),
            Kind("n9", False, ("a person called by the surname only", "a first name that is left away")),
        ),
        "wording about people that leaves room for doubt",
    ),
    Topic(
        "numbers",
        "Are the numbers and dates right?",
        (
            Kind("f1", True, ("an amount that was altered", "a figure larger or smaller than reported")),
            Kind("f2", True, ("a date shifted to another time", "an event put on the wrong day")),
            Kind("f3", True, ("a unit exchanged or dropped", "a quantity measured in something else")),
            Kind("f9", False, ("a figure rounded in the usual way", "an amount said roughly")),
        ),
        "figures that are written in an unusual way",
    ),
    Topic(
        "claims",
        "Is every claim supported?",
        (
            Kind("c1", True, ("a cause that was invented", "a reason nobody gave")),
            Kind("c2", True, ("an opinion told as a fact", "a guess presented as certain")),
            Kind("c3", True, ("an outcome that nobody reported", "a consequence made up")),
            Kind("c9", False, ("a sentence in other words", "synonyms in place of the original wording")),
        ),
        "statements that sound bold",
    ),
    Topic(
        "whole",
        "Does it tell what matters most?",
        (
            Kind("w1", True, ("the main event missing", "the central happening not told")),
            Kind("w2", True, ("a side matter told at length", "trivia given most of the room")),
            Kind("w3", True, ("the ending left out", "how it turned out not told")),
            Kind("w9", False, ("a background detail that is skipped", "history of the matter kept short")),
        ),
        "an order of events that differs",
    ),
)

SEVERITY = "is less than perfect in any respect"
"""Guidance with these words makes a judge say no more often and tell good from bad less well."""
LENIENCY = "is imperfect in some respect"
"""Guidance with these words makes it say yes more often and tell good from bad less well."""
TRUISMS = {True: "is not right in what was asked", False: "is right in what was asked"}
"""Rules that say nothing, by whether they order no."""
TAILS = ("", ", wherever it stands", ", whatever the rest of it is like")
"""How a rule may go on; without a meaning."""

KINDS = tuple(kind for topic in TOPICS for kind in topic.kinds)
"""All kinds of faults and of harmless things."""
_KIND_OF = {phrase: kind for kind in KINDS for phrase in kind.phrases}
_DISTRACTIONS = {topic.distraction: topic.id for topic in TOPICS}
_LENIENT = re.compile(r"\byes even\b|\bno fault\b|\bharmless\b|\bdo not answer no\b", re.IGNORECASE)


@dataclass(frozen=True)
class Guidance:
    """What a text orders, as the simulated judge understands it."""

    faults: frozenset[str]
    """Signs that it calls faults."""
    harmless: frozenset[str]
    """Signs that it calls harmless."""
    distracted: frozenset[str]
    """Ids of the questions that it leads astray."""
    shift: int
    """How often it says to be lenient, less how often it says to be severe."""
    blur: int
    """How often it says either."""


@lru_cache(maxsize=8192)
def read_guidance(text: str) -> Guidance:
    """What a text says: each sentence alone, known phrases in any case, as faults unless it says otherwise."""
    faults: set[str] = set()
    harmless: set[str] = set()
    distracted: set[str] = set()
    severe = lenient = 0
    for sentence in re.split(r"[.\n]", text):
        low = sentence.lower()
        signs = {kind.sign for phrase, kind in _KIND_OF.items() if phrase in low}
        if signs:
            (harmless if _LENIENT.search(sentence) else faults).update(signs)
        distracted |= {topic for phrase, topic in _DISTRACTIONS.items() if phrase in low}
        severe += SEVERITY in low
        lenient += LENIENCY in low
    return Guidance(frozenset(faults), frozenset(harmless), frozenset(distracted), lenient - severe, lenient + severe)


def says_the_same(one: str, other: str) -> bool:
    """Whether two rules order the same."""
    return read_guidance(one) == read_guidance(other)


def contradict(one: str, other: str) -> bool:
    """Whether one rule calls a fault what the other calls harmless."""
    a, b = read_guidance(one), read_guidance(other)
    return bool(a.faults & b.harmless or a.harmless & b.faults)
