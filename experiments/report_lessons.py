"""The lessons of a run: what became of each, why, and what is behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .report_evidence import evidence_by_key, group_by_example

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .report_candidates import Candidate
    from .report_data import RunData
    from .report_evidence import Evidence

SHOWN_EXAMPLES = 12
"""Examples shown in full behind one lesson; further disagreements are named."""
STATUSES = ("applied", "failed its trial", "rejected", "retired", "beyond the prompt", "not tried")
"""What may become of a lesson, in the order of the report."""


@dataclass(frozen=True)
class LessonView:
    """A lesson with what became of it and what is behind it."""

    number: int
    id: str
    text: str
    direction: str
    dimension: str
    status: str
    """One of ``STATUSES``."""
    reason: str | None
    support: int
    notes: int
    """Notes that said the same and were joined in it."""
    cases: Sequence[tuple[str, Sequence[Evidence]]]
    """Example id with the disagreements on it."""
    further: Sequence[str]
    """Keys of the disagreements that are not shown."""
    edit: int | None
    """Number of the accepted edit that carries it."""
    trial: Mapping[str, Any] | None = None
    """Its last trial on its own disagreements and on controls."""

    @property
    def reason_is_its_trial(self) -> bool:
        """Whether the reason says of the trial all there is to say."""
        return self.status == "failed its trial"


def lessons(data: RunData, tried: Sequence[Candidate]) -> list[LessonView]:
    """All lessons, the applied ones first, then by support."""
    evidence = evidence_by_key(data)
    joined = [event["kept_as"] for event in data.of("lesson")]
    trials = {name: event["result"] for event in data.of("trial") for name in event["lessons"]}
    made = []
    for number, row in enumerate(data.result["lessons"], 1):
        status, reason, edit = _fate(row, tried)
        known = [evidence[key] for key in row["evidence"] if key in evidence]
        cases = group_by_example(known)
        shown = {each.key for _, group in cases[:SHOWN_EXAMPLES] for each in group}
        made.append(
            LessonView(
                number=number,
                id=row["id"],
                text=row["text"],
                direction=row["direction"],
                dimension=row["dimension"],
                status=status,
                reason=reason,
                support=len(row["evidence"]),
                notes=joined.count(row["id"]),
                cases=cases[:SHOWN_EXAMPLES],
                further=[key for key in row["evidence"] if key not in shown],
                edit=edit,
                trial=trials.get(row["id"]),
            )
        )
    return sorted(made, key=lambda each: (STATUSES.index(each.status), -each.support))


def _fate(row: Mapping[str, Any], tried: Sequence[Candidate]) -> tuple[str, str | None, int | None]:
    """What became of a lesson: read off the candidates, because a later merge changes its written status."""
    if row.get("kind") == "computational":
        return "beyond the prompt", row.get("kind_reason"), None
    refusal = None
    for candidate in tried:
        for edit in candidate.edits:
            if row["id"] not in edit.lessons:
                continue
            if candidate.accepted and edit.pruning and edit.pruning["removed"]:
                return "retired", f"taken out again at the end: {edit.pruning['reason']}", edit.number
            if candidate.accepted:
                return "applied", candidate.reason, edit.number
            alone = len(candidate.edits) == 1
            refusal = candidate.reason if alone or refusal is None else refusal
    if row["status"] == "retired":
        return "retired", row["reason"], None
    if refusal is not None:
        return "rejected", refusal, None
    if row["status"] == "rejected":
        reason = row["reason"] or ""
        if reason.startswith("failed its trial"):
            return "failed its trial", reason.removeprefix("failed its trial: "), None
        return "rejected", reason, None
    return "not tried", row["reason"] or "no edit was made of it before the run ended, or no room was left for it", None
