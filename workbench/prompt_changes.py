"""Changes of a prompt one by one: the words that each change added and removed, and the prompt without some changes.

A run changes its prompt by edits, one after the other. Each stretch of words that an edit added or removed is a change;
several added lines are a change each. A later change may depend on words of an earlier change: then the earlier one
cannot be taken out alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import accumulate

from ..memory.result_file import RunRecord
from ..prompts.errors import InputError
from ..prompts.lessons import Edit
from ..prompts.prompt import EditRefusedError, Prompt
from ..report.run_candidates import Stretch, replaced, replacements

_FIRST_BREAK = re.compile(r"\n+[^\n]*")
_LAST_BREAK = re.compile(r"[^\n]*\n+|[^\n]+")


@dataclass(frozen=True)
class PromptChange:
    """One change of a prompt."""

    number: int
    """Number of the change from 1, in the order in which the changes were made."""
    edit: int | None
    """Place of the accepted edit that made the change, from 0; None for additions and rewritten texts."""
    needs: tuple[int, ...] = ()
    """Earlier changes whose words this change replaces or stands among. Without one of them, it cannot stay."""


@dataclass
class ChangedPrompt:
    """All changes between two prompts."""

    stretches: list[Stretch]
    changes: list[PromptChange] = field(default_factory=list)

    @classmethod
    def of(cls, result: RunRecord) -> ChangedPrompt:
        """Return the changes from a run's starting prompt to its accepted prompt. Accepted edits that were taken out
        again are left out. If the edits do not explain the whole difference, the rest is shown by lines, before the
        edits."""
        gone = {each.edit for each in result.pruned_edits if each.removed}
        edits = [edit for row in result.accepted_edits for edit in row.edits]
        kept = [(place, edit.old, edit.new) for place, edit in enumerate(edits) if edit not in gone]
        start, end = result.baseline.prompt, result.best.prompt
        begun = end
        for _, old, new in reversed(kept):  # undo the edits, which leaves the other changes
            if not new or begun.count(new) != 1:
                kept, begun = [], end
                break
            begun = begun.replace(new, old)
        made = cls([Stretch(start)])
        for offset, old, new in _by_lines(start, begun):
            made._change(offset, old, new, None)
        for place, old, new in kept:
            text = made.text()
            if text.count(old) != 1:
                return cls.of(result.model_copy(update={"accepted_edits": ()}))
            made._change(text.index(old), old, new, place)
        return made

    def text(self, vetoed: Collection[int] = ()) -> str:
        """Return the prompt without some changes. Raises InputError if a change that stays needs one of them."""
        for each in self.changes:
            if each.number not in vetoed and (missing := [name for name in each.needs if name in vetoed]):
                raise InputError(f"Change {each.number} stands on change {missing[0]}: take out both, or neither.")
        return "".join(
            each.text for each in self.stretches if each.by not in vetoed and (not each.gone or each.gone in vetoed)
        )

    def _change(self, offset: int, old: str, new: str, edit: int | None) -> None:
        """Record the changes by one edit at an offset of the present text."""
        position = offset
        for removed, added, before in replacements(old, new):
            position += before
            for part in [added] if removed else _lines(added) or [added]:
                number = len(self.changes) + 1
                self.stretches, needs = replaced(self.stretches, position, removed, part, number)
                self.changes.append(PromptChange(number, edit, tuple(sorted(needs))))
                position += len(part)


def _lines(text: str) -> list[str]:
    """Split added text into lines, each with its line break. A blank line stays with its neighbour."""
    found = (_FIRST_BREAK if text.startswith("\n") else _LAST_BREAK).findall(text)
    if "".join(found) != text or not all(each.strip() for each in found):
        return [text]
    return [str(each) for each in found]


def _by_lines(start: str, end: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lines that differ: offset in the text as changed so far, old lines, new lines."""
    old, new = (re.findall(r"[^\n]+|\n", text) for text in (start, end))
    ends = [0, *accumulate(len(each) for each in new)]
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield ends[c], "".join(old[a:b]), "".join(new[c:d])


def without(prompt: Prompt, changes: ChangedPrompt, vetoed: Collection[int]) -> Prompt:
    """Return a run's prompt without the ``vetoed`` changes. ``prompt`` is the starting prompt of the run. Raises
    InputError if there is no such change, no change is vetoed or left, another change needs a vetoed one, or a
    placeholder or protected part would be lost."""
    known = {each.number for each in changes.changes}
    if wrong := sorted({*vetoed} - known):
        raise InputError(f"There is no change {wrong[0]} of this prompt.")
    if not vetoed:
        raise InputError("Every change is kept, so there is nothing to save: the prompt is the run's.")
    text = changes.text(vetoed)
    if text == prompt.text:
        raise InputError("Every change is taken out: that is the prompt that the run began with.")
    try:
        return prompt.apply(Edit(old=prompt.text, new=text, lessons=()))
    except EditRefusedError as error:
        raise InputError(f"The prompt cannot be without this: {error}.") from None
