"""askance's own evaluator prompt, for those who bring none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .prompt import Prompt
from .templates import template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .examples import Example


def default_prompt(examples: Iterable[Example]) -> Prompt:
    """A neutral prompt that shows what the examples have, then says how to judge, then asks.

    The example comes before the guidance. All prompt versions then share the example as their prefix, which a
    prompt cache keeps, and a small model reads the guidance just before the question.
    """
    examples = list(examples)
    shown = [name for name in ("context", "input", "reference") if any(getattr(each, name) for each in examples)]
    parts = [f"{name.capitalize()}:\n{{{name}}}" for name in (*shown, "output")]
    return Prompt("\n\n".join([*parts, template("evaluator"), "{question}"]) + "\n")
