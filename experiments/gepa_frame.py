"""The part of a prompt that GEPA may rewrite, and the part around it that it never sees."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..prompts.errors import InputError
from ..prompts.prompt import Prompt, fill

_PLACEHOLDER = re.compile(r"(?<!\{)\{[A-Za-z_]\w*\}(?!\})")
_NAME_IN_BRACES = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Frame:
    """What stays as it is before and after the guidance: the placeholders with their headings."""

    before: str
    after: str

    def prompt(self, guidance: str) -> Prompt:
        """The whole prompt; ``{name}`` in the guidance is text and never becomes a placeholder."""
        return Prompt(self.before + literal(guidance) + self.after)


def literal(text: str) -> str:
    """The text as it is written in a prompt, so that no ``{name}`` in it is a placeholder."""
    return _NAME_IN_BRACES.sub(r"{{\1}}", text)


def cut_out_guidance(prompt: Prompt) -> tuple[Frame, str]:
    """Cut a prompt at its placeholders; the longest text between them is the guidance.

    A prompt without placeholders is guidance as a whole. Put back, the guidance gives the very same prompt.

    Raises:
        InputError: There is no text between the placeholders.
    """
    text = prompt.text
    cuts = [0, *(place for match in _PLACEHOLDER.finditer(text) for place in match.span()), len(text)]
    stretches = zip(cuts[::2], cuts[1::2], strict=True)
    start, end = max(stretches, key=lambda stretch: len(text[stretch[0] : stretch[1]].strip()))
    guidance = text[start:end].strip()
    if not guidance:
        raise InputError("The prompt is made of placeholders alone, so there is no text that GEPA could improve.")
    start = text.index(guidance, start)
    return Frame(text[:start], text[start + len(guidance) :]), fill(guidance, {})
