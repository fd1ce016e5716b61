"""Changes of a prompt one by one: which words each brought and took away, and the prompt without some of them.

A run changes its prompt by edits, one after the other. Each stretch of words that an edit brought or took away is a
change, and each further line that it added. A later change may stand on words of an earlier one: both go together.
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
    """One change."""

    number: int
    """From 1, in the order in which they were made."""
    edit: int | None
    """Place of the accepted edit that it is of, from 0; None for additions and rewritten texts."""
    needs: tuple[int, ...] = ()
    """Earlier changes whose words it changed or stands among: without one of them it cannot stay."""


@dataclass
class ChangedPrompt:
    """All changes between two prompts."""

    stretches: list[Stretch]
    changes: list[PromptChange] = field(default_factory=list)

    @classmethod
    def of(cls, result: RunRecord) -> ChangedPrompt:
        """The changes from a run's starting prompt to its accepted one. Accepted edits that were taken out again are
        none. Where the edits do not account for all of the difference, the rest is told by lines, before the edits."""
        gone = {each.edit for each in result.pruned_edits if each.removed}
        edits = [edit for row in result.accepted_edits for edit in row.edits]
        kept = [(place, edit.old, edit.new) for place, edit in enumerate(edits) if edit not in gone]
        start, end = result.baseline.prompt, result.best.prompt
        begun = end
        for _, old, new in reversed(kept):  # the prompt that the edits began from, other changes in it
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
        """The prompt without some changes. Raises InputError where another one needs one of them."""
        for each in self.changes:
            if each.number not in vetoed and (missing := [name for name in each.needs if name in vetoed]):
                raise InputError(f"Change {each.number} stands on change {missing[0]}: take out both, or neither.")
        return "".join(
            each.text for each in self.stretches if each.by not in vetoed and (not each.gone or each.gone in vetoed)
        )

    def _change(self, offset: int, old: str, new: str, edit: int | None) -> None:
        """Make the changes of one edit at an offset of the present text."""
        here = offset
        for removed, added, before in replacements(old, new):
            here += before
            for part in [added] if removed else _lines(added) or [added]:
                number = len(self.changes) + 1
                self.stretches, needs = replaced(self.stretches, here, removed, part, number)
                self.changes.append(PromptChange(number, edit, tuple(sorted(needs))))
                here += len(part)


def _lines(text: str) -> list[str]:
    """Added text by lines, each with its line break; a blank one stays with its neighbour."""
    found = (_FIRST_BREAK if text.startswith("\n") else _LAST_BREAK).findall(text)
    if "".join(found) != text or not all(each.strip() for each in found):
        return [text]
    return [str(each) for each in found]


def _by_lines(start: str, end: str) -> Iterator[tuple[int, str, str]]:
    """Lines that differ: offset in the text as changed so far, old and new lines."""
    old, new = (re.findall(r"[^\n]+|\n", text) for text in (start, end))
    ends = [0, *accumulate(len(each) for each in new)]
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield ends[c], "".join(old[a:b]), "".join(new[c:d])


def without(prompt: Prompt, changes: ChangedPrompt, vetoed: Collection[int]) -> Prompt:
    """A run's prompt without some of its changes; ``prompt`` is the one that the run began with. Raises InputError
    where there is no such change, another one needs it, nothing new would be left, or a placeholder or protected part
    would be lost."""
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
