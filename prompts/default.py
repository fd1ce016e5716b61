"""askance's own evaluator prompt, for those who bring none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .examples import Example
from .prompt import Prompt
from .rows import column
from .templates import template

SHOWN = ("context", "input", "reference")
"""In this order, before the output."""


def default_prompt(examples: Sequence[Example]) -> Prompt:
    """A neutral prompt that shows what the examples have, then says how to judge, then asks.

    The example comes before the guidance. All prompt versions then share the example as their prefix, which a prompt
    cache keeps, and a small model reads the guidance just before the question.
    """
    return prompt_showing([name for name in SHOWN if any(column(examples, name))])


def prompt_showing(fields: Collection[str]) -> Prompt:
    """The same prompt for examples that have these fields, and an output."""
    shown = [name for name in SHOWN if name in fields]
    parts = [f"{name.capitalize()}:\n{{{name}}}" for name in (*shown, "output")]
    return Prompt("\n\n".join([*parts, template("evaluator"), "{question}"]) + "\n")
