"""The texts of the simulated world: signs of faults, rules about these signs, comments and questions.

A comment names a fault of its output, or says nothing, or names another thing. A question is *usable* if it names a
kind of thing that the judge can find in other outputs. It is *spoilt* if its writer missed the meaning: the judge's
answer then has nothing to do with this kind of thing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Kind:
    """One kind of thing that an output may have; a question is about some of them."""

    sign: str
    """Word in an output that stands for the thing; the simulated judge reads this word."""
    is_fault: bool
    """Whether the right answer to its question is no; a harmless kind only looks like a fault."""
    phrases: tuple[str, ...]
    """Names of this kind. A rule with one of these names is about this kind."""


@dataclass(frozen=True)
class Topic:
    """The subject of a starting question."""

    id: str
    question: str
    kinds: tuple[Kind, ...]
    distraction: str
    """Guidance with these words makes a judge's answers to this question unrelated to the output's faults."""

    def of(self, *, faults: bool) -> tuple[Kind, ...]:
        """Return the topic's kinds of faults, or its harmless kinds."""
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
"""Guidance with these words makes a judge say no more often, and tell good from bad less well."""
LENIENCY = "is imperfect in some respect"
"""Guidance with these words makes a judge say yes more often, and tell good from bad less well."""
TRUISMS = {True: "is not right in what was asked", False: "is right in what was asked"}
"""Rules without content: True for a rule that orders no, False for yes."""
TAILS = ("", ", wherever it stands", ", whatever the rest of it is like")
"""Endings of a rule that do not change its meaning."""

KINDS = tuple(kind for topic in TOPICS for kind in topic.kinds)
"""All kinds of faults and of harmless things."""
_KIND_OF = {phrase: kind for kind in KINDS for phrase in kind.phrases}
_DISTRACTIONS = {topic.distraction: topic.id for topic in TOPICS}
_LENIENT = re.compile(r"\byes even\b|\bno fault\b|\bharmless\b|\bdo not answer no\b", re.IGNORECASE)


@dataclass(frozen=True)
class Guidance:
    """The orders in a text, as the simulated judge understands them."""

    faults: frozenset[str]
    """Signs that the text calls faults."""
    harmless: frozenset[str]
    """Signs that the text calls harmless."""
    distracted: frozenset[str]
    """Ids of the questions that the text leads astray."""
    shift: int
    """Number of orders to be lenient, less the number of orders to be severe."""
    blur: int
    """Number of orders to be lenient or severe."""


@lru_cache(maxsize=8192)
def read_guidance(text: str) -> Guidance:
    """Read a text's orders, by sentence. Known phrases, in any case, name faults unless the sentence is lenient."""
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
    """Whether two rules give the same orders."""
    return read_guidance(one) == read_guidance(other)


def contradict(one: str, other: str) -> bool:
    """Whether one rule calls a sign a fault that the other rule calls harmless."""
    a, b = read_guidance(one), read_guidance(other)
    return bool(a.faults & b.harmless or a.harmless & b.faults)


# --- comments, and questions that a small model makes of them ---

OPENERS = ("Has", "There is", "What I do not want to see:")
VAGUE = ("hm", "no", "not what I would have written", "I stopped halfway", "weak, honestly", "please look at it again")
"""Comments without content."""
VERBS = ("have", "show")
FILLERS = ("tell what happened", "name somebody", "report a result", "keep to the point", "give some background")
"""Things that are true of many texts and say nothing about their quality."""
_OPENING = re.compile(r'begins with "(Does the [^"]+)"')
_COMMENT = re.compile(r"(?:^|\n)Comment: (.*)\Z", re.DOTALL)
_BESIDE_OTHERS = re.compile(r"Text: .*\n(?:Input|Context|Reference): ")
"""A request that shows a comment with its output and the output's sources."""
_LEARNED = re.compile(r"Question: (Does the [^\n]*\?)")
SIGNS = re.compile(r"Summary \[\w+\]: ([\w ]*)\.")
"""An output with its signs."""


@dataclass(frozen=True)
class AskedThing:
    """A question that is not one of the starting questions."""

    text: str
    kind: Kind | None
    """The kind of thing that the question asks for; None if it names no kind of this world."""
    usable: bool
    """Whether the judge understands the question as meant."""


def comment_of(kind: Kind, chance: random.Random) -> str:
    """Return a comment that names a kind of thing, in one of several wordings."""
    return f"{chance.choice(OPENERS)} {chance.choice(kind.phrases)}."


def read_learned(text: str) -> AskedThing | None:
    """Read the last question in a text that is not a starting question; None if there is none."""
    found = _LEARNED.findall(text)
    if not found:
        return None
    low = _plain(found[-1])
    for usable, phrases in ((True, _PHRASES), (False, _SPOILT)):
        kind = next((kind for phrase, kind in phrases.items() if phrase in low), None)
        if kind is not None:
            return AskedThing(found[-1], kind, usable)
    return AskedThing(found[-1], None, usable=False)


def write_questions(
    messages: Sequence[tuple[str, str]], usable: float, seen: float, chance: random.Random
) -> str | None:
    """Return the reply of a model that is asked for questions, one per line; None if the messages ask for something
    else. ``usable`` is the share of usable questions among those written from a comment; the others are spoilt.
    ``seen`` is the share of an output's things that a model names when it is shown the output."""
    asked = messages[-1][1]
    opening, comment, signs = _OPENING.search(messages[0][1]), _COMMENT.search(asked), SIGNS.search(asked)
    things = [kind for kind in KINDS if signs and kind.sign in signs[1].split()]
    if opening is not None and asked.startswith(opening[1]):
        return "none"  # asked to make a question more general: this world's questions are general already
    if comment is not None and _BESIDE_OTHERS.match(asked):
        return "none"  # this world's faults are only in the output
    if comment is None:
        return None if signs is None or not asked.startswith("Text: ") else _kinds(things, seen, chance)
    if opening is None:
        return None
    named = next((kind for phrase, kind in _PHRASES.items() if phrase in _plain(comment[1])), None)
    if named is None and things and chance.random() < seen:
        named = chance.choice(things)
    if named is None:
        if chance.random() < 0.5:
            return "none"
        return f"{opening[1]} {_verb(spoil(chance.choice(chance.choice(KINDS).phrases)), chance)}?"
    lines = []
    for _ in range(chance.choice((1, 2))):
        phrase = chance.choice(named.phrases)
        lines.append(f"{opening[1]} {_verb(phrase if chance.random() < usable else spoil(phrase), chance)}?")
    return "\n".join(lines)


def _kinds(there: Sequence[Kind], seen: float, chance: random.Random) -> str:
    """Return three lines that describe a text. Few of them say something about its quality."""
    found = [_verb(min(kind.phrases, key=len), chance) for kind in there if chance.random() < seen]
    return "\n".join([*found, *chance.sample(FILLERS, len(FILLERS))][:3])


def _verb(phrase: str, chance: random.Random) -> str:
    return f"{chance.choice(VERBS)} {phrase}"


def spoil(phrase: str) -> str:
    """Change a phrase so that no judge understands it."""
    return " ".join([*phrase.split()[:-1], "matter"])


def _plain(text: str) -> str:
    """Put a text in lower case and remove each "not", which writers of questions are told to avoid."""
    return re.sub(r"\bnot\s+", "", text.lower())


_PHRASES = {_plain(phrase): kind for kind in KINDS for phrase in kind.phrases}
_SPOILT = {_plain(spoil(phrase)): kind for kind in KINDS for phrase in kind.phrases}
