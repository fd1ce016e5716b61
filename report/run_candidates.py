"""Candidates of the acceptance test: their edits word by word, and what pruning did to them afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Literal

from ..memory.records import CriterionRecord, PrunedRecord
from ..memory.result_file import RunRecord
from ..stats.differences import Difference
from .run_data import RunData

AROUND = 90
"""Characters shown on each side of a change when a long unchanged stretch is shortened."""
Kind = Literal["same", "added", "removed"]

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
KEPT_WORDS = 3
"""Fewest words between two changes that are shown as kept. Fewer words are easier to read as part of the change."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that was kept, added or removed."""

    text: str
    kind: Kind = "same"
    edit: int | None = None
    """Number of the edit that added or removed it."""


class MarksError(ValueError):
    """The edits do not lead from one prompt to the other."""


def word_changes(old: str, new: str, edit: int | None = None) -> list[Piece]:
    """Return the differences between two texts, word by word. The ``same`` and ``removed`` pieces make ``old``; the
    ``same`` and ``added`` pieces make ``new``."""
    left, right = _TOKEN.findall(old), _TOKEN.findall(new)
    head = _common(left, right)
    tail = _common(left[head:][::-1], right[head:][::-1])
    runs = _runs(left[head : len(left) - tail], right[head : len(right) - tail])
    runs = [_Run(left[:head], [], []), *runs, _Run(left[len(left) - tail :], [], [])]
    for run, following in pairwise(runs):
        _slide(run, following.same)
    pieces = []
    for run in runs:
        pieces += [
            Piece("".join(run.same)),
            Piece("".join(run.gone), "removed", edit),
            Piece("".join(run.come), "added", edit),
        ]
    return _joined(pieces)


def shortened(pieces: Iterable[Piece]) -> list[Piece]:
    """Cut long unchanged stretches down to the text next to a change."""
    made = []
    for piece in pieces:
        text = piece.text
        if piece.kind == "same" and len(text) > 2 * AROUND + 20:
            text = f"{text[:AROUND]} \N{HORIZONTAL ELLIPSIS} {text[-AROUND:]}"
        made.append(Piece(text, piece.kind, piece.edit))
    return made


@dataclass(frozen=True)
class Stretch:
    """A stretch of words that are, or were, in a prompt."""

    text: str
    by: int = 0
    """Number of the change that added the words; 0 for the starting prompt."""
    gone: int = 0
    """Number of the change that removed the words; 0 if they are still there."""


def text_of(stretches: Iterable[Stretch]) -> str:
    """Join the words that are still there."""
    return "".join(each.text for each in stretches if not each.gone)


def replaced(
    stretches: Sequence[Stretch], offset: int, removed: str, added: str, number: int
) -> tuple[list[Stretch], set[int]]:
    """Replace words at an offset of the present text by the change ``number``. Return the new stretches, and the
    numbers of the earlier changes whose words it replaces or stands among."""
    before, rest = _cut(stretches, offset)
    covered, after = _cut(rest, len(removed))
    needs = {each.by for each in covered if not each.gone}
    around = {_by([*reversed(before)]), _by(after)}
    if not removed and len(around) == 1:  # within the words of one change
        needs |= around
    went = [each if each.gone else replace(each, gone=number) for each in covered]
    came = [Stretch(added, number)] if added else []
    return [*before, *went, *came, *after], needs - {0}


def _cut(stretches: Sequence[Stretch], length: int) -> tuple[list[Stretch], list[Stretch]]:
    """Divide stretches after ``length`` characters of the words that are still there."""
    first: list[Stretch] = []
    for place, stretch in enumerate(stretches):
        if not length:
            return first, [*stretches[place:]]
        if not stretch.gone and len(stretch.text) > length:
            first.append(replace(stretch, text=stretch.text[:length]))
            return first, [replace(stretch, text=stretch.text[length:]), *stretches[place + 1 :]]
        length -= 0 if stretch.gone else len(stretch.text)
        first.append(stretch)
    return first, []


def _by(stretches: Sequence[Stretch]) -> int:
    """Return the number of the change that added the first words still there; 0 for words of the start, or no words."""
    return next((each.by for each in stretches if not each.gone), 0)


def replacements(old: str, new: str) -> Iterator[tuple[str, str, int]]:
    """Yield each place that differs as (removed words, added words, unchanged characters since the last place)."""
    removed, added, before = "", "", 0
    for piece in [*word_changes(old, new), Piece("")]:
        if piece.kind == "removed":
            removed += piece.text
        elif piece.kind == "added":
            added += piece.text
        else:
            if removed or added:
                yield removed, added, before
                removed, added, before = "", "", 0
            before += len(piece.text)


def mark_edits(start: str, edits: Iterable[tuple[str, str] | None], end: str) -> list[Piece]:
    """Apply edits (old text, new text) in order, and mark the words that each edit added or removed. Edits are
    numbered from 1; None leaves its number out. Words that one edit added and a later edit removed are not shown.
    Raises MarksError if an old text does not occur exactly once, or if the edits do not lead to ``end``."""
    stretches = [Stretch(start)]
    for number, edit in enumerate(edits, 1):
        if edit is None:
            continue
        old, new = edit
        current = text_of(stretches)
        if not old or current.count(old) != 1:
            raise MarksError(f"the old text of edit {number} does not occur once")
        here = current.index(old)
        for removed, added, before in replacements(old, new):
            stretches, _ = replaced(stretches, here + before, removed, added, number)
            here += before + len(added)
    if text_of(stretches) != end:
        raise MarksError("the edits do not lead to the accepted prompt")
    shown = [each for each in stretches if not (each.by and each.gone)]
    return _joined(
        Piece(each.text, "added" if each.by else "removed" if each.gone else "same", each.by or each.gone or None)
        for each in shown
    )


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


@dataclass
class _Run:
    """Unchanged tokens, and the change after them."""

    same: list[str]
    gone: list[str]
    come: list[str]


def _runs(left: Sequence[str], right: Sequence[str]) -> list[_Run]:
    """List the changes in order. A short unchanged stretch between two changes becomes part of the change."""
    runs: list[_Run] = []
    common: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            common = list(left[a:b])
            continue
        if runs and sum(token[0].isalnum() for token in common) < KEPT_WORDS:
            runs[-1].gone += [*common, *left[a:b]]
            runs[-1].come += [*common, *right[c:d]]
        else:
            runs.append(_Run(common, list(left[a:b]), list(right[c:d])))
        common = []
    if common:
        runs.append(_Run(common, [], []))
    return runs


def _slide(run: _Run, following: list[str]) -> None:
    """Move a pure insertion or deletion to the beginning of a line or sentence, if the text around it allows that.
    "a.[ b.]" and "a[. b]." are the same change, and the first is easier to read."""
    moved = run.come or run.gone
    if bool(run.come) == bool(run.gone):
        return
    while run.same and run.same[-1] == moved[-1]:
        following.insert(0, moved.pop())
        moved.insert(0, run.same.pop())
    best, shift, worth = 0, 0, _worth(run.same, moved)
    while shift < len(following) and following[shift] == moved[shift % len(moved)]:
        shift += 1
        turned = shift % len(moved)
        now = _worth([*run.same, *following[:shift]][-1:], moved[turned:] + moved[:turned])
        if now > worth:
            best, worth = shift, now
    for _ in range(best):
        run.same.append(moved.pop(0))
        moved.append(following.pop(0))


def _worth(before: Sequence[str], moved: Sequence[str]) -> int:
    """Rate the place of a change from 0 to 3 by the token before it and by its first token."""
    previous = before[-1] if before else "\n"
    if "\n" in moved[0] or "\n" in previous:
        return 3
    if previous in ".!?:;":
        return 2
    return int(previous.isspace() or moved[0].isspace())


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Join neighbouring pieces of the same kind and edit, and drop empty pieces."""
    made: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if made and (made[-1].kind, made[-1].edit) == (piece.kind, piece.edit):
            made[-1] = replace(piece, text=made[-1].text + piece.text)
        else:
            made.append(piece)
    return made


@dataclass(frozen=True)
class EditView:
    """One edit of a candidate."""

    number: int | None
    """Number of the edit in the marked prompt; None if it was not accepted."""
    pieces: Sequence[Piece]
    lessons: Sequence[str]
    trial: Mapping[str, Any] | None = None
    """Result on the lessons' own disagreements and on controls; None if the edit was not tried on them."""
    pruning: PrunedRecord | None = None
    """Whether pruning took the edit out at the end, and why; None if that was not tried."""


@dataclass(frozen=True)
class ShownCandidate:
    """A version that went through the acceptance test."""

    iteration: int
    accepted: bool
    reason: str
    gain: Difference | None
    edits: Sequence[EditView]
    judged: int | None
    """Validation examples that were judged before the decision."""
    dropped: bool
    name: str
    questions: Sequence[CriterionRecord] = ()
    """Learned questions of the candidate; none if the candidate is made of edits."""

    @property
    def lessons(self) -> list[str]:
        """Ids of the lessons behind its edits, each once."""
        return list(dict.fromkeys(lesson for edit in self.edits for lesson in edit.lessons))


def candidates(data: RunData) -> list[ShownCandidate]:
    """Return all candidates in the order in which they were tried. Edits of accepted candidates are numbered from 1."""
    result = data.result
    decisions = [bool(event["accepted"]) for event in data.of("decision")]
    if (decisions.count(True), decisions.count(False)) == (len(result.accepted_edits), len(result.rejected_edits)):
        left = {True: iter(result.accepted_edits), False: iter(result.rejected_edits)}
        rows = [(passed, next(left[passed])) for passed in decisions]
    else:
        rows = [*((True, row) for row in result.accepted_edits), *((False, row) for row in result.rejected_edits)]
        rows.sort(key=lambda each: each[1].iteration)
    trials = {tuple(event["lessons"]): event["result"] for event in data.of("trial") if event["result"]["passed"]}
    pruned = {row.edit: row for row in result.pruned_edits}
    size = data.split_size("validation")
    made, number = [], 0
    for passed, row in rows:
        edits = []
        for edit in row.edits:
            number += passed
            label = number if passed else None
            pieces = shortened(word_changes(edit.old, edit.new, label))
            pruning = pruned.get(edit) if passed else None
            edits.append(EditView(label, pieces, edit.lessons, trials.get(edit.lessons), pruning))
        dropped = not passed and row.judged is not None and size is not None and row.judged < size
        made.append(
            ShownCandidate(
                row.iteration,
                passed,
                row.reason,
                row.gain,
                edits,
                row.judged or None,
                dropped,
                ", ".join(dict.fromkeys(row.lessons)) or result.name_of(row),
                result.questions_of(row),
            )
        )
    return made


def marked_prompt(result: RunRecord) -> list[Piece]:
    """Mark in the starting prompt all accepted edits that are still in the prompt. If the edits do not lead to the
    accepted prompt, return the plain differences, without the edits' numbers."""
    before, after = result.baseline.prompt, result.best.prompt
    accepted = [edit for row in result.accepted_edits for edit in row.edits]
    removed = [row.edit for row in result.pruned_edits if row.removed]
    gone = set(removed)
    # An edit that was taken out again is passed over, so that the others keep their numbers.
    kept = [None if edit in gone else (edit.old, edit.new) for edit in accepted]
    whole = [(edit.old, edit.new) for edit in accepted] + [(edit.new, edit.old) for edit in removed]
    for steps in (kept, whole):
        try:
            return mark_edits(before, steps, after)
        except MarksError:
            continue
    return word_changes(before, after)
