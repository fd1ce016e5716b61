"""What people write in the simulated world, and the questions that a small model makes of it.

A comment names a fault of its output, or says nothing, or speaks of another thing. A question is *usable* where it names
a kind of thing so that the judge finds it in other outputs, and *spoilt* where the writer missed what was meant: the judge
then answers by something that has nothing to do with it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .simulated_texts import KINDS, Kind

OPENERS = ("Has", "There is", "What I do not want to see:")
VAGUE = ("hm", "no", "not what I would have written", "I stopped halfway", "weak, honestly", "please look at it again")
"""Comments that help nothing."""
VERBS = ("have", "show")
FILLERS = ("tell what happened", "name somebody", "report a result", "keep to the point", "give some background")
"""What is true of many texts and tells nothing of their quality."""
_OPENING = re.compile(r'begins with "(Does the [^"]+)"')
_COMMENT = re.compile(r"(?:^|\n)Comment: (.*)\Z", re.DOTALL)
_LEARNED = re.compile(r"Question: (Does the [^\n]*\?)")
SIGNS = re.compile(r"Summary \[\w+\]: ([\w ]*)\.")
"""An output, with what it shows."""


@dataclass(frozen=True)
class AskedThing:
    """A question that is not among those of the start."""

    text: str
    kind: Kind | None
    """What it asks for; None where it is about nothing that outputs differ in."""
    usable: bool
    """Whether the judge understands it so."""


def comment_of(kind: Kind, chance: random.Random) -> str:
    """A remark that names a kind of thing, in one of several wordings."""
    return f"{chance.choice(OPENERS)} {chance.choice(kind.phrases)}."


def read_learned(text: str) -> AskedThing | None:
    """The last question of a text that is none of the start's; None where there is none."""
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
    """The reply of a model that is asked for questions, one a line; None where something else is asked for.

    Args:
        messages: The request's.
        usable: Share of the questions after a comment that are usable; the others are spoilt.
        seen: Share of an output's things that are named by a model that is shown it.
        chance: Decides.
    """
    asked = messages[-1][1]
    opening, comment, signs = _OPENING.search(messages[0][1]), _COMMENT.search(asked), SIGNS.search(asked)
    there = [kind for kind in KINDS if signs and kind.sign in signs[1].split()]
    if opening is not None and asked.startswith(opening[1]):
        return "none"  # asked to make a question more general: those of this world are about a kind of thing already
    if comment is None:
        return None if signs is None or not asked.startswith("Text: ") else _kinds(there, seen, chance)
    if opening is None:
        return None
    named = next((kind for phrase, kind in _PHRASES.items() if phrase in _plain(comment[1])), None)
    if named is None and there and chance.random() < seen:
        named = chance.choice(there)
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
    """Three lines that say what a text does: few of them what its quality depends on."""
    found = [_verb(min(kind.phrases, key=len), chance) for kind in there if chance.random() < seen]
    return "\n".join([*found, *chance.sample(FILLERS, len(FILLERS))][:3])


def _verb(phrase: str, chance: random.Random) -> str:
    return f"{chance.choice(VERBS)} {phrase}"


def spoil(phrase: str) -> str:
    """A phrase that no judge understands any more."""
    return " ".join([*phrase.split()[:-1], "matter"])


def _plain(text: str) -> str:
    """In small letters and without its "not": a writer of questions is not to use it."""
    return re.sub(r"\bnot\s+", "", text.lower())


_PHRASES = {_plain(phrase): kind for kind in KINDS for phrase in kind.phrases}
_SPOILT = {_plain(spoil(phrase)): kind for kind in KINDS for phrase in kind.phrases}
