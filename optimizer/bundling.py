"""Edits that can stand in one prompt together, and those that wait to be tried together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..prompts.prompt import EditRefusedError, check_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..prompts.lessons import Edit
    from ..prompts.prompt import Prompt


@dataclass(frozen=True)
class Waiting:
    """Edits that together gain something on the best version, but no more than noise may."""

    edits: tuple[Edit, ...] = ()
    gain: float = 0.0
    reason: str = ""
    """What the gate said."""

    @property
    def lessons(self) -> set[str]:
        """Ids of the lessons behind them."""
        return {lesson for edit in self.edits for lesson in edit.lessons}


def bundle(prompt: Prompt, edits: Sequence[Edit], max_chars: int | None = None) -> tuple[Edit, ...]:
    """Those of the edits that can be applied one after the other, as long as the prompt stays short enough."""
    applied = []
    for edit in edits:
        if problem_of(prompt, edit, max_chars) is None:
            prompt = prompt.apply(edit)
            applied.append(edit)
    return tuple(applied)


def problem_of(prompt: Prompt, edit: Edit, max_chars: int | None = None) -> str | None:
    """Why an edit cannot be applied to a prompt; None where it can."""
    try:
        check_length(prompt.apply(edit), max_chars)
    except EditRefusedError as error:
        return str(error)
    return None
