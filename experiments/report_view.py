"""From a run's data to what each section of the report shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .marked_prompt import MarksError, Piece, mark_edits, word_changes
from .report_data import evidence_by_key, group_by_example
from .report_words import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .report_data import Evidence, RunData

SHOWN_CHARACTERS = 6_000
"""Of a text behind a disagreement; the rest is in the run's inputs."""
SHOWN_EXAMPLES = 12
"""Examples shown in full behind one lesson; further disagreements are named."""


@dataclass(frozen=True)
class EditView:
    """One edit of a candidate."""

    number: int | None
    """Its number in the marked prompt; None where it was not accepted."""
    pieces: Sequence[Piece]
    lessons: Sequence[str]


@dataclass(frozen=True)
class Candidate:
    """A prompt that went through the gate."""

    iteration: int
    accepted: bool
    reason: str
    gain: Mapping[str, Any] | None
    edits: Sequence[EditView]
    version: int | None

    @property
    def lessons(self) -> list[str]:
        """Ids of the lessons behind its edits, each once."""
        return list(dict.fromkeys(lesson for edit in self.edits for lesson in edit.lessons))


def candidates(data: RunData) -> list[Candidate]:
    """All candidates in the order in which they were tried; the accepted ones' edits are numbered from 1."""
    accepted, rejected = iter(data.result["accepted_edits"]), iter(data.result["rejected_edits"])
    decisions = data.of("decision")
    known = sum(event["accepted"] for event in decisions)
    rows: list[tuple[bool, Mapping[str, Any], int | None]]
    if (known, len(decisions) - known) == (len(data.result["accepted_edits"]), len(data.result["rejected_edits"])):
        rows = [
            (event["accepted"], next(accepted if event["accepted"] else rejected), event["version"])
            for event in decisions
        ]
    else:
        rows = [(True, row, None) for row in accepted] + [(False, row, None) for row in rejected]
        rows.sort(key=lambda each: each[1]["iteration"])
    made, number = [], 0
    for passed, row, version in rows:
        edits = []
        for edit in row["edits"]:
            number += passed
            label = number if passed else None
            edits.append(EditView(label, shortened(word_changes(edit["old"], edit["new"], label)), edit["lessons"]))
        made.append(Candidate(row["iteration"], passed, row["reason"], row["gain"], edits, version))
    return made


def marked_prompt(result: Mapping[str, Any]) -> list[Piece]:
    """The starting prompt with every accepted edit marked.

    Where the edits do not account for the accepted prompt, the plain differences, without the edits' numbers.
    """
    before, after = result["baseline"]["prompt"], result["best"]["prompt"]
    edits = [(edit["old"], edit["new"]) for row in result["accepted_edits"] for edit in row["edits"]]
    try:
        return mark_edits(before, edits, after)
    except MarksError:
        return word_changes(before, after)


def shortened(pieces: Iterable[Piece], around: int = 90) -> list[Piece]:
    """Long unchanged stretches cut down to what stands next to a change."""
    made = []
    for piece in pieces:
        text = piece.text
        if piece.kind == "same" and len(text) > 2 * around + 20:
            text = f"{text[:around]} \N{HORIZONTAL ELLIPSIS} {text[-around:]}"
        made.append(Piece(text, piece.kind, piece.edit))
    return made


@dataclass(frozen=True)
class LessonView:
    """A lesson with what became of it and what is behind it."""

    number: int
    id: str
    text: str
    direction: str
    dimension: str
    status: str
    """``applied``, ``rejected`` or ``not tried``."""
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


def lessons(data: RunData, tried: Sequence[Candidate]) -> list[LessonView]:
    """All lessons, the applied ones first, then by support."""
    evidence = evidence_by_key(data)
    joined = [event["kept_as"] for event in data.of("lesson")]
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
            )
        )
    order = ("applied", "rejected", "not tried")
    return sorted(made, key=lambda each: (order.index(each.status), -each.support))


def _fate(row: Mapping[str, Any], tried: Sequence[Candidate]) -> tuple[str, str | None, int | None]:
    """What became of a lesson: read off the candidates, because a later merge changes its written status."""
    refusal = None
    for candidate in tried:
        for edit in candidate.edits:
            if row["id"] not in edit.lessons:
                continue
            if candidate.accepted:
                return "applied", candidate.reason, edit.number
            alone = len(candidate.edits) == 1
            refusal = candidate.reason if alone or refusal is None else refusal
    if refusal is not None:
        return "rejected", refusal, None
    if row["status"] in ("rejected", "retired"):
        return "rejected", row["reason"], None
    return "not tried", "no edit was made of it before the run ended, or no room was left for it", None


@dataclass(frozen=True)
class Iteration:
    """What happened in one round of the loop."""

    number: int
    found: int
    read: int
    notes: int
    new_lessons: int
    tried: Sequence[Candidate]

    @property
    def outcome(self) -> str:
        """In a few words."""
        accepted = sum(each.accepted for each in self.tried)
        if accepted:
            return f"{count(accepted, 'candidate')} accepted"
        if self.tried:
            return "nothing accepted"
        return "no candidate" if self.read else "nothing left to read"


def iterations(data: RunData, tried: Sequence[Candidate]) -> list[Iteration]:
    """Rounds of the loop, as the journal tells them."""
    rounds: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for event in data.events:
        if event.get("event") == "disagreements":
            rounds.append((event, []))
        elif event.get("event") == "lesson" and rounds:
            rounds[-1][1].append(event)
    return [
        Iteration(
            number=event["iteration"],
            found=event["found"],
            read=len(event["read"]),
            notes=len(notes),
            new_lessons=sum(note["relation"] == "new" for note in notes),
            tried=[each for each in tried if each.iteration == event["iteration"]],
        )
        for event, notes in rounds
    ]


def missing(data: RunData, rounds: Sequence[Iteration]) -> list[str]:
    """What is not there, and why: nothing in a report is silently left out."""
    result = data.result
    said = []
    kinds = {"abstained": "abstention", "parse_error": "unreadable answer", "api_error": "failed call"}
    counted = result.get("missing") or {}
    gone = [count(counted[name], what) for name, what in kinds.items() if counted.get(name)]
    if gone:
        said.append(f"Verdicts: {', '.join(gone)}. None of them was counted as a yes or a no.")
    versions = [("starting", "baseline")] + ([("accepted", "best")] if result["accepted_edits"] else [])
    for split in ("test", "validation"):
        for label, side in versions:
            measure = result[side][split]
            where = f"{split.capitalize()}, {label} prompt"
            if measure is None:
                said.append(f"{where}: {result[side].get('reason') or 'not judged'}.")
                continue
            size = data.split_size(split)
            if size is not None and measure["n"] < size:
                said.append(f"{where}: {size - measure['n']} of {count(size, 'example')} have no score on both sides.")
            undefined = {"all dimensions": measure, **measure["dimensions"]}
            said += [
                f"{where}, {name}: the correlation is undefined ({values.get('reason', 'no reason given')})."
                for name, values in undefined.items()
                if values["spearman"] is None
            ]
    lost = sum(each.read - each.notes for each in rounds)
    if lost > 0:
        said.append(f"From {count(lost, 'disagreement')} no usable note could be drawn.")
    failures = sum(ledger["failures"] for ledger in (result.get("roles") or {}).values())
    if failures:
        said.append(f"Over all roles, {count(failures, 'call')} failed for good, after all retries.")
    return said


def why_unexplained(data: RunData) -> str | None:
    """Why there are no explanations, where there are none."""
    if data.of("reasons"):
        return None
    if data.config.get("explain") == "never":
        return "Explanations were not bought (explain: never)."
    return "This run's journal holds no explanations of the judges."


def clip(text: str) -> tuple[str, int]:
    """The beginning of a text and the number of characters left out."""
    return text[:SHOWN_CHARACTERS], max(0, len(text) - SHOWN_CHARACTERS)
