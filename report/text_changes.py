"""What changed between two texts, word by word, and which edit of a prompt did what."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

AROUND = 90
"""Characters of an unchanged stretch that stand next to a change."""
Kind = Literal["same", "added", "removed"]

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
KEPT_WORDS = 3
"""Words between two changes that are shown as kept; shorter islands are read more easily as part of the change."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that stayed, came or went."""

    text: str
    kind: Kind = "same"
    edit: int | None = None
    """Number of the edit that added or removed it."""


class MarksError(ValueError):
    """The edits do not lead from the one prompt to the other."""


def word_changes(old: str, new: str, edit: int | None = None) -> list[Piece]:
    """The differences between two texts, word by word.

    The ``same`` and ``removed`` pieces make ``old``, the ``same`` and ``added`` pieces make ``new``.
    """
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
    """Long unchanged stretches cut down to what stands next to a change."""
    made = []
    for piece in pieces:
        text = piece.text
        if piece.kind == "same" and len(text) > 2 * AROUND + 20:
            text = f"{text[:AROUND]} \N{HORIZONTAL ELLIPSIS} {text[-AROUND:]}"
        made.append(Piece(text, piece.kind, piece.edit))
    return made


def mark_edits(start: str, edits: Iterable[tuple[str, str] | None], end: str) -> list[Piece]:
    """Apply edits (old text, new text) one after the other, keeping track of which did what; numbered from 1.

    None in the place of an edit is passed over, with its number.

    What one edit added and a later one took away again is not shown.

    Raises:
        MarksError: An old text does not occur exactly once, or the edits do not lead to ``end``.
    """
    pieces = [Piece(start)]
    for number, edit in enumerate(edits, 1):
        if edit is None:
            continue
        old, new = edit
        current = _current(pieces)
        if not old or current.count(old) != 1:
            raise MarksError(f"the old text of edit {number} does not occur once")
        before, rest = _cut(pieces, current.index(old))
        inside, after = _cut(rest, len(old))
        pieces = _joined([*before, *_changed(inside, word_changes(old, new, number)), *after])
    if _current(pieces) != end:
        raise MarksError("the edits do not lead to the accepted prompt")
    return pieces


def _current(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces if piece.kind != "removed")


def _cut(pieces: Sequence[Piece], length: int) -> tuple[list[Piece], list[Piece]]:
    """Divide pieces after ``length`` characters of present text."""
    first: list[Piece] = []
    queue = deque(pieces)
    while queue and length:
        piece = queue.popleft()
        if piece.kind != "removed":
            if len(piece.text) > length:
                queue.appendleft(replace(piece, text=piece.text[length:]))
                piece = replace(piece, text=piece.text[:length])
            length -= len(piece.text)
        first.append(piece)
    return first, list(queue)


def _changed(pieces: Sequence[Piece], changes: Iterable[Piece]) -> list[Piece]:
    """Lay the changes of one edit over pieces that earlier edits left."""
    made: list[Piece] = []
    rest = list(pieces)
    for change in changes:
        if change.kind == "added":
            made.append(change)
            continue
        taken, rest = _cut(rest, len(change.text))
        if change.kind == "same":
            made += taken
        else:
            made += [
                replace(change, text=piece.text) if piece.kind == "same" else piece
                for piece in taken
                if piece.kind != "added"
            ]
    return made + rest


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


@dataclass
class _Run:
    """Tokens that stayed, and the change after them."""

    same: list[str]
    gone: list[str]
    come: list[str]


def _runs(left: Sequence[str], right: Sequence[str]) -> list[_Run]:
    """Changes in turn; short islands of sameness between two changes are folded into them."""
    runs: list[_Run] = []
    same: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            same = list(left[a:b])
            continue
        if runs and sum(token[0].isalnum() for token in same) < KEPT_WORDS:
            runs[-1].gone += [*same, *left[a:b]]
            runs[-1].come += [*same, *right[c:d]]
        else:
            runs.append(_Run(same, list(left[a:b]), list(right[c:d])))
        same = []
    if same:
        runs.append(_Run(same, [], []))
    return runs


def _slide(run: _Run, following: list[str]) -> None:
    """Move a pure insertion or deletion to where a line or sentence begins, as far as the text around it allows.

    "a.[ b.]" and "a[. b]." are the same change; people read the first.
    """
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
    """How good a place a change stands at, by what is before it and how it begins."""
    previous = before[-1] if before else "\n"
    if "\n" in moved[0] or "\n" in previous:
        return 3
    if previous in ".!?:;":
        return 2
    return int(previous.isspace() or moved[0].isspace())


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours of the same kind and edit as one; empty ones left out."""
    made: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if made and (made[-1].kind, made[-1].edit) == (piece.kind, piece.edit):
            made[-1] = replace(piece, text=made[-1].text + piece.text)
        else:
            made.append(piece)
    return made
