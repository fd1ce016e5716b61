"""What every edit that a model proposes must pass before a verdict is bought, small edit or rewrite."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..prompts.leaks import copied_words
from ..prompts.prompt import check_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..prompts.lessons import Edit
    from ..prompts.prompt import Prompt

_RATES = re.compile(r"\b(?:rate|rates|rating|score|scores|grade|scale)\b", re.IGNORECASE)
_RANGE = re.compile(r"\b\d+(?:\s*(?:to|-|\N{EN DASH}|and|through|out of)\s*|/)\d+\b", re.IGNORECASE)
_JSON = re.compile(r"\bJSON\b", re.IGNORECASE)


def check_edit(prompt: Prompt, edit: Edit, max_chars: int | None, examples: Sequence[str]) -> None:
    """Check an edit against the prompt that it is made for.

    Args:
        prompt: What is edited.
        edit: The edit.
        max_chars: Longest prompt; None where there is no limit.
        examples: Texts of development examples, from which nothing may be copied.

    Raises:
        ValueError: It cannot be applied, makes the prompt too long, changes or moves the answer format, a scale or a
            placeholder, orders another format beside it, or copies an example. The message is told to the model.
    """
    changed = check_length(prompt.apply(edit), max_chars)
    if changed.placeholders != prompt.placeholders:
        raise ValueError("it moves a placeholder")
    altered = [each for each in prompt.answer_format if each not in changed.answer_format]
    if altered:
        raise ValueError(f"it changes the answer format ({altered[0]!r})")
    if _scales(prompt.text) != _scales(changed.text):
        raise ValueError("it changes the scale, or brings in another")
    if any(_JSON.search(each) for each in changed.answer_format if each not in prompt.answer_format):
        raise ValueError("it orders another answer format")
    copied = copied_words(edit.new.replace(edit.old, ""), examples)
    if copied:
        raise ValueError(f'the edit copies an example ("{copied}")')


def _scales(text: str) -> list[str]:
    """The ranges of numbers in sentences about rating, in order."""
    return [
        " ".join(found.lower().split())
        for sentence in re.split(r"[.\n]", text)
        if _RATES.search(sentence)
        for found in _RANGE.findall(sentence)
    ]


__all__ = ["check_edit"]
