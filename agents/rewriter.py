"""The rewriter: all lessons go into the prompt in one call (BinEval App. B); the updater's rival.

What comes back is held to the same guards as a small edit, so that a rewrite can lose no placeholder, no protected
part and no answer format, and it must keep most of what the prompt said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from ..models.structured import ask_for
from ..prompts.lessons import Edit
from ..prompts.templates import render, template
from .edit_guards import check_edit
from .rule_text import content_stems
from .updater import LEAST_KEPT, LEAST_SAID, shared_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.lessons import Lesson
    from ..prompts.prompt import Prompt


class Rewritten(BaseModel):
    """The whole prompt, rewritten."""

    prompt: str = Field(min_length=1)


class Rewriter:
    """A model that writes lessons into a prompt in one call."""

    def __init__(
        self, gateway: Gateway, model: Model, *, max_prompt_chars: int | None = None, seed: int | None = None
    ) -> None:
        """``max_prompt_chars``: longer prompts are refused before a verdict is bought."""
        self._gateway = gateway
        self._model = model
        self._max_prompt_chars = max_prompt_chars
        self._seed = seed

    async def propose(self, prompt: Prompt, lessons: Sequence[Lesson], examples: Sequence[str] = ()) -> Edit:
        """Rewrite the prompt so that it says the lessons; the edit is the part between what stayed the same.

        Args:
            prompt: The prompt to be rewritten.
            lessons: What it must say.
            examples: Texts of development examples, from which nothing may be copied.

        Raises:
            ParseError: The model's second rewrite was refused too; the message says why.
            ModelError: No reply.
        """

        def passes_guards(reply: Rewritten) -> None:
            text = reply.prompt.strip()
            if shared_words(prompt.text, text) < LEAST_KEPT:
                raise ValueError("the rewritten prompt drops too much of what the prompt said")
            unsaid = [lesson.text for lesson in lessons if not is_said(lesson.text, text)]
            if unsaid:
                raise ValueError(f"it does not say this lesson in full: {unsaid[0]}")
            edit = whole_edit(prompt.text, text, [lesson.id for lesson in lessons])
            check_edit(prompt, edit, self._max_prompt_chars, examples)

        listed = "\n".join(f"- {lesson.text}" for lesson in lessons)
        reply = await ask_for(
            self._gateway,
            "updater",
            self._model,
            [
                ("system", template("rewriter")),
                ("user", render("rewriter_case", prompt=prompt.text, lessons=listed)),
            ],
            Rewritten,
            max_tokens=len(prompt.text) // 2 + 200 * len(lessons) + 200,
            seed=self._seed,
            check=passes_guards,
        )
        return whole_edit(prompt.text, reply.prompt.strip(), [lesson.id for lesson in lessons])


def is_said(lesson: str, prompt: str) -> bool:
    """Whether a line of the prompt has most words of a lesson, among them most of those that tell it from others.

    The words of the whole prompt would not do: between them, other lessons have most words of any lesson.
    """
    telling = content_stems(lesson)
    for line in prompt.splitlines():
        shared = len(telling & content_stems(line)) / len(telling) if telling else 1.0
        if min(shared, shared_words(lesson, line)) >= LEAST_SAID:
            return True
    return False


def whole_edit(old: str, new: str, lessons: Sequence[str]) -> Edit:
    """The change from one text to another as one exact edit of whole lines; white space at the ends is kept."""
    before = old[: len(old) - len(old.lstrip())]
    after = old[len(old.rstrip()) :]
    lines, revised = old.splitlines(keepends=True), (before + new + after).splitlines(keepends=True)
    first = 0
    while first < min(len(lines), len(revised)) and lines[first] == revised[first]:
        first += 1
    last = 0
    while last < min(len(lines), len(revised)) - first and lines[-1 - last] == revised[-1 - last]:
        last += 1
    while True:
        mine = "".join(lines[first : len(lines) - last])
        if mine and old.find(mine) == old.rfind(mine):
            return Edit(old=mine, new="".join(revised[first : len(revised) - last]), lessons=tuple(lessons))
        if first > 0:
            first -= 1
        elif last > 0:
            last -= 1
        else:
            return Edit(old=old, new="".join(revised), lessons=tuple(lessons))
