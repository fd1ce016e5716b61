"""The changes of a target's prompt: the failures that led to each, and its effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..memory.result_file import FINISH_SENTENCES
from ..prompts.formatting import Figure, count, names_text, percent
from .run_candidates import EditView, ShownCandidate, candidates

if TYPE_CHECKING:
    from ..memory.records import AdditionRecord, InstructionRecord
    from .certificate_data import ShownTarget
    from .run_data import RunData

MOST_FAILURES = 6
"""Failures that are named behind a change."""


@dataclass(frozen=True)
class Cause:
    """A lesson behind a change, with the failures that it was drawn from."""

    text: str
    """Empty where the line is the lesson."""
    requirement: str | None
    """Words of the requirement that it states; None where a note-taker drew it."""
    failures: str


@dataclass(frozen=True)
class ShownLine:
    """A change of the prompt."""

    edit: EditView
    causes: Sequence[Cause]
    effects: Sequence[str]
    """What it did to the requirement that it is about."""


@dataclass(frozen=True)
class LinesOfTarget:
    """The changes of a target's prompt, by accepted candidate, and everything that was tried."""

    target: str
    accepted: Sequence[tuple[ShownCandidate, Sequence[ShownLine]]]
    tried: Sequence[ShownCandidate]
    additions: Sequence[AdditionRecord]
    """Settings and texts after the input, in the order in which they were tried on development."""
    ended: str
    """Why the run ended."""

    @property
    def ends(self) -> list[float | None]:
        """Ends of the intervals of all gains, for their axis."""
        gains = [each.gain for each, _ in self.accepted if each.gain]
        return [end for gain in gains for end in (gain.low, gain.value, gain.high)]


def lines_of(target: ShownTarget) -> LinesOfTarget:
    """The changes of a target's prompt, from its run. ``target.run`` is there."""
    run = target.run
    if run is None:
        raise ValueError(f"{target.name} has no run here")
    tried = candidates(run)
    accepted = [
        (each, [shown_line(run, edit) for edit in each.edits if edit.pruning is None or not edit.pruning.removed])
        for each in tried
        if each.accepted
    ]
    reason = run.result.finish_reason
    return LinesOfTarget(target.name, accepted, tried, run.result.additions, FINISH_SENTENCES.get(reason, reason))


def addition_rows(lines: LinesOfTarget) -> list[dict[str, Any]]:
    """Every trial of a setting or a text after the input, as rows of a table."""
    return [
        {
            "added": " + ".join([*each.beside, each.kind]),
            "in the prompt": "yes" if each.accepted else "no",
            "before": None if each.before is None else Figure(each.before, form=".2f"),
            "after": None if each.after is None else Figure(each.after, form=".2f"),
            "n": each.n or None,
            "reason": each.reason,
        }
        for each in lines.additions
    ]


def failures_of(names: Sequence[str]) -> str:
    """Development examples behind a line, counted and named."""
    return (
        f"{count(len(names), 'failure')} on development: {names_text(names, MOST_FAILURES)}"
        if names
        else "no failure on development"
    )


def trial_rows(lines: LinesOfTarget) -> list[dict[str, Any]]:
    """Every candidate of the acceptance test, as rows of a table."""
    return [
        {
            "candidate": each.name,
            "accepted": "yes" if each.accepted else "no",
            "gain": None if each.gain is None else Figure.of(each.gain, "+.3f"),
            "examples judged": each.judged,
            "reason": each.reason,
        }
        for each in lines.tried
    ]


def shown_line(run: RunData, edit: EditView) -> ShownLine:
    """One change with its causes and effects."""
    lessons = {each.id: each for each in run.result.lessons}
    added = "".join(each.text for each in edit.pieces if each.kind == "added")
    causes = []
    for each in (lessons[name] for name in edit.lessons if name in lessons):
        asked = run.shared_questions.get(each.requirement or "", (each.requirement or "", ""))[0]
        text = "" if each.text in added else each.text
        causes.append(Cause(text, asked or None, failures_of(each.evidence)))
    effects = [_effect(each) for each in run.result.instructions if each.lesson in edit.lessons]
    return ShownLine(edit, causes, [each for each in effects if each])


def _effect(row: InstructionRecord) -> str:
    rates = [(split, rate) for split, rate in (("validation", row.validation), ("test", row.test)) if rate is not None]
    said = [f"{percent(rate.before)} to {percent(rate.after)} on {split} (n = {rate.n})" for split, rate in rates]
    return f"Outputs that keep “{row.asked}”: {'; '.join(said)}." if said else ""
