"""The agents' own prompts, one Markdown file each, readable without opening the code.

The name of a template's variable decides how its value is treated, so that no foreign text gets into a prompt unfenced:
the value is ours, it is fenced here, or it is made of fenced parts. A variable with any other name is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ..text import fence, fill, placeholders_of

FENCED = frozenset({"instruction", "output", "reason", "reasons"})
"""Variables for judged texts, and for words of people, checkers and models on them: :func:`render` fences them."""
PARTS = frozenset({"case", "example", "examples", "faults", "items", "reference_reason", "target_reason", "why"})
"""Variables for parts that :func:`render` or a similar function made; a plain text is refused."""
_OURS = (
    "answer aspects bad check description dimension dimension_sentence fields first format good high kind kinds "
    "known lesson lessons like listed low most noun number opposed parts problem prompt question reference_answer "
    "requirement rule_field rule_opening second steps target_answer task verdict violation"
)
OURS = frozenset(_OURS.split())
"""Variables for the user's task, prompt and questions, for guarded lessons (:mod:`askance.prompts.lessons`), and for
our own words: they are not fenced."""


class FencedText(str):
    """A part of a prompt in which every foreign text is fenced."""

    __slots__ = ()

    def __add__(self, ours: str) -> FencedText:
        """Append words of our own."""
        return FencedText(str(self) + ours)


@cache
def template(name: str) -> str:
    """Read the text of ``NAME.md``, without the newline at its end."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def render(name: str, /, **values: str) -> FencedText:
    """Fill a template; foreign texts are fenced.

    Raises:
        KeyError: A variable of the template was not given.
        TypeError: A variable is in none of the three sets of names, or a part is not a :class:`FencedText`.
    """
    for variable in placeholders_of(template(name)):
        if variable not in FENCED | PARTS | OURS:
            raise TypeError(f"{name}.md: nothing says whether {{{variable}}} holds text of others")
        if variable in PARTS and values[variable] and not isinstance(values[variable], FencedText):
            raise TypeError(f"{name}.md: {{{variable}}} is a part that may hold text of others unfenced")
    fenced = {each: fence(value) if each in FENCED else value for each, value in values.items()}
    return FencedText(fill(template(name), fenced))


def joined(parts: Iterable[FencedText], between: str) -> FencedText:
    """Join several parts, with words of our own between them."""
    return FencedText(between.join(parts))
