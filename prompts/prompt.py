"""A prompt as text: its hash, its placeholders, its protected parts, and what an edit may do to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import InputError, did_you_mean
from .fences import fence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .examples import Example
    from .lessons import Edit

PLACEHOLDERS = ("input", "context", "output", "reference", "question")

_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_FILL = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
_PROTECTED = re.compile(r"<!-- protect -->(.*?)<!-- /protect -->", re.DOTALL)
_ANSWER_FORMAT = re.compile(
    r"[^.\n]*\b(?:answer|reply|respond|return|output)\b[^.\n]*(?:\byes\b[^.\n]*\bno\b|\bno\b[^.\n]*\byes\b|\bJSON\b)"
    r"[^.\n]*",
    re.IGNORECASE,
)


class EditRefusedError(ValueError):
    """An edit may not be applied; the message is the reason."""


@dataclass(frozen=True)
class Prompt:
    """An evaluator's or generator's prompt."""

    text: str

    @cached_property
    def hash(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the text."""
        return sha256(self.text.encode()).hexdigest()[:16]

    @cached_property
    def placeholders(self) -> list[str]:
        """Names in single braces, in order, each once. ``{{name}}`` is not one."""
        return list(dict.fromkeys(_PLACEHOLDER.findall(self.text)))

    @cached_property
    def protected(self) -> list[str]:
        """Text between ``<!-- protect -->`` and ``<!-- /protect -->``, in order."""
        return _PROTECTED.findall(self.text)

    @cached_property
    def answer_format(self) -> list[str]:
        """Sentences that say how to answer (both "yes" and "no", or JSON)."""
        return [sentence.strip() for sentence in _ANSWER_FORMAT.findall(self.text)]

    def check(self, name: str = "the prompt") -> Prompt:
        """Return this prompt if a judge can use it.

        Raises:
            InputError: It is empty, has an unknown placeholder or an unclosed protected part, or has placeholders
                but does not show the output.
        """
        if not self.text.strip():
            raise InputError(f"{name}: the prompt is empty.")
        for placeholder in self.placeholders:
            if placeholder not in PLACEHOLDERS:
                known = ", ".join("{" + each + "}" for each in PLACEHOLDERS)
                raise InputError(
                    f"{name}: '{{{placeholder}}}' is not a known placeholder (known: {known})."
                    f"{did_you_mean(placeholder, PLACEHOLDERS)} Write {{{{{placeholder}}}}} for the literal text."
                )
        if self.placeholders and "output" not in self.placeholders:
            raise InputError(f"{name}: the prompt has placeholders but no {{output}}, so nothing would be judged.")
        if self.text.count("{question}") > 1:
            raise InputError(f"{name}: {{question}} may occur once; it stands there more often.")
        if self.text.count("<!-- protect -->") != self.text.count("<!-- /protect -->"):
            raise InputError(f"{name}: a '<!-- protect -->' has no '<!-- /protect -->' (or the other way round).")
        return self

    def apply(self, edit: Edit) -> Prompt:
        """Replace ``edit.old`` by ``edit.new``.

        Raises:
            EditRefusedError: ``old`` does not occur exactly once, nothing would change, or a placeholder, a protected
                part or the answer format would be lost or a new placeholder made.
        """
        count = self.text.count(edit.old) if edit.old else 0
        if count != 1:
            raise EditRefusedError(f"the text to replace occurs {count} times in the prompt, not once")
        changed = Prompt(self.text.replace(edit.old, edit.new))
        if changed.text == self.text:
            raise EditRefusedError("it changes nothing")
        if sorted(_PLACEHOLDER.findall(changed.text)) != sorted(_PLACEHOLDER.findall(self.text)):
            raise EditRefusedError("it adds or removes a placeholder")
        if changed.protected != self.protected:
            raise EditRefusedError("it touches a protected part")
        lost = [sentence for sentence in self.answer_format if sentence not in changed.text]
        if lost:
            raise EditRefusedError(f"it changes the answer format ({lost[0]!r})")
        return changed


def load_prompt(path: str | Path) -> Prompt:
    """Read and check a prompt file.

    Raises:
        InputError: The file cannot be read or the prompt cannot be used.
    """
    path = Path(path)
    try:
        return Prompt(path.read_text(encoding="utf-8")).check(str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such prompt file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error}).") from None


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values in place of ``{name}``, and ``{name}`` in place of ``{{name}}``.

    One pass: text that was put in is never looked at again, whatever braces it holds.

    Raises:
        KeyError: A placeholder has no value.
    """
    return _FILL.sub(lambda match: "{" + match[1] + "}" if match[1] else values[match[2]], text)


@dataclass(frozen=True, slots=True)
class Framing:
    """What goes around the question: the same for all questions on one example."""

    system: str | None
    before: str
    after: str


def frame(prompt: Prompt, example: Example) -> Framing:
    """Lay out one example for judging: everything before the question comes first, so that it is cached.

    A prompt without placeholders is the system message and the fenced example follows in the user message; otherwise
    the prompt is the user message with the fenced texts put in.
    """
    texts = {
        "input": example.input,
        "context": example.context or "",
        "output": example.output or "",
        "reference": example.reference or "",
    }
    if not prompt.placeholders:
        shown = [name for name in ("context", "input", "reference", "output") if texts[name]]
        parts = [f"{name.capitalize()}:\n{fence(texts[name])}\n" for name in shown]
        return Framing(system=prompt.text, before="\n".join(parts) + "\n", after="")
    fenced = {name: fence(text) for name, text in texts.items()}
    before, mark, after = prompt.text.partition("{question}")
    if not mark:
        before += "\n\n"
    return Framing(system=None, before=fill(before, fenced), after=fill(after, fenced))
