"""The agents' own prompts, one Markdown file each, readable without opening the code.

What a variable of a template holds goes by its name, so that no text of others can get into a prompt unfenced: it is
ours, it is fenced here, or it is made of parts that are. A variable of any other name is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ..text import fence, fill, placeholders_of

FENCED = frozenset({"instruction", "output", "reason", "reasons"})
"""Judged texts, and what people, checkers and models said about them: they come as they are and are fenced here."""
PARTS = frozenset({"case", "example", "examples", "faults", "items", "reference_reason", "target_reason", "why"})
"""Made by :func:`render` and its like; a plain text is refused."""
_OURS = (
    "answer aspects bad check description dimension dimension_sentence fields first format good high kind kinds "
    "known lesson lessons like listed low most noun number opposed parts problem prompt question reference_answer "
    "requirement rule_field rule_opening second steps target_answer task verdict violation"
)
OURS = frozenset(_OURS.split())
"""The user's task, prompt and questions; lessons, which are guarded (:mod:`askance.prompts.lessons`); our words."""


class FencedText(str):
    """A part of a prompt in which every text of others is fenced."""

    __slots__ = ()

    def __add__(self, ours: str) -> FencedText:
        """This part and words of our own after it."""
        return FencedText(str(self) + ours)


@cache
def template(name: str) -> str:
    """Text of ``NAME.md``, without the newline at its end."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def render(name: str, /, **values: str) -> FencedText:
    """Fill a template; what is not ours is fenced.

    Raises:
        KeyError: A variable of the template was not given.
        TypeError: It is one whose name does not say what it holds, or a part that was not made here.
    """
    for variable in placeholders_of(template(name)):
        if variable not in FENCED | PARTS | OURS:
            raise TypeError(f"{name}.md: nothing says whether {{{variable}}} holds text of others")
        if variable in PARTS and values[variable] and not isinstance(values[variable], FencedText):
            raise TypeError(f"{name}.md: {{{variable}}} is a part that may hold text of others unfenced")
    fenced = {each: fence(value) if each in FENCED else value for each, value in values.items()}
    return FencedText(fill(template(name), fenced))


def joined(parts: Iterable[FencedText], between: str) -> FencedText:
    """Several parts as one, with words of our own between them."""
    return FencedText(between.join(parts))
