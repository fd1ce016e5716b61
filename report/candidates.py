"""The candidates that went through the acceptance test, with their edits, and what pruning did to them afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .text_changes import MarksError, mark_edits, shortened, word_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..memory.records import CriterionRecord, PrunedRecord
    from ..memory.result_file import RunRecord
    from ..stats.differences import Difference
    from .run_data import RunData
    from .text_changes import Piece


@dataclass(frozen=True)
class EditView:
    """One edit of a candidate."""

    number: int | None
    """Its number in the marked prompt; None where it was not accepted."""
    pieces: Sequence[Piece]
    lessons: Sequence[str]
    trial: Mapping[str, Any] | None = None
    """What became of the lessons' own disagreements and of controls; None where it was not tried on them."""
    pruning: PrunedRecord | None = None
    """Whether it was taken out again at the end, and why; None where that was not tried."""


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
    """Whether it was dropped before all of them were judged."""
    name: str
    """What it is known by: its lessons, or its questions."""
    questions: Sequence[CriterionRecord] = ()
    """Learned questions that it brought; none where it is one of edits."""

    @property
    def lessons(self) -> list[str]:
        """Ids of the lessons behind its edits, each once."""
        return list(dict.fromkeys(lesson for edit in self.edits for lesson in edit.lessons))


def candidates(data: RunData) -> list[ShownCandidate]:
    """All candidates in the order in which they were tried; the accepted ones' edits are numbered from 1."""
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
    """The starting prompt with every accepted edit marked that is still in it.

    Where the edits do not account for the accepted prompt, the plain differences, without the edits' numbers.
    """
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
