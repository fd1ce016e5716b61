"""The agents' own prompts, one Markdown file each, readable without opening the code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ..text import fill


@cache
def template(name: str) -> str:
    """Text of ``NAME.md``, without the newline at its end."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def render(name: str, /, **values: str) -> str:
    """Fill a template.

    Raises:
        KeyError: A variable of the template was not given.
    """
    return fill(template(name), values)
