"""What a report needs from a run directory: the result, what the journal saw, and the examples behind disagreements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..memory.journal import read_events
from ..memory.run_directory import RunDirectory
from ..prompts.checklist import load_checklist
from ..prompts.errors import InputError
from ..prompts.jsonl import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..prompts.checklist import Checklist

_NEEDED = (
    *("mode", "finish_reason", "iterations", "reference", "baseline", "best", "accepted_edits", "rejected_edits"),
    *("lessons", "calls", "cached_calls", "tokens", "cost_usd", "coverage"),
)

Event = dict[str, Any]


@dataclass(frozen=True)
class RunData:
    """A finished run as it lies on disk."""

    name: str
    """Name of the directory; its path is not told."""
    config: Mapping[str, Any]
    fingerprint: str
    result: Mapping[str, Any]
    events: Sequence[Event]
    checklist: Checklist
    examples: Mapping[str, Mapping[str, Any]]
    """Input, output and the like of the examples that a disagreement was read on, by id."""

    def of(self, kind: str) -> list[Event]:
        """Events of one kind, in order."""
        return [event for event in self.events if event.get("event") == kind]

    def split_size(self, split: str) -> int | None:
        """Number of examples in ``development``, ``validation`` or ``test``."""
        found = self.of("split")
        return len(found[-1][split]) if found else None


def read_run(path: Path) -> RunData:
    """Read a finished run.

    Raises:
        InputError: There is no run, it is not finished, or a file of it is damaged.
    """
    directory = RunDirectory(path)
    header = directory.read_config()
    try:
        result = directory.read_result()
        events = read_events(path / "journal.jsonl")
    except ValueError as error:
        raise InputError(f"{path}: result.json or journal.jsonl is damaged ({error}).") from None
    if result is None:
        raise InputError(f"{path}: this run is not finished. Go on with it: askance resume {path}")
    lacking = [name for name in _NEEDED if name not in result]
    if lacking:
        raise InputError(f"{path / 'result.json'}: not written by askance, it has no '{lacking[0]}'.")
    wanted = {
        row["example"] for event in events if event.get("event") == "disagreements" for row in event.get("read", ())
    }
    return RunData(
        name=path.resolve().name,
        config=header["config"],
        fingerprint=str(header["fingerprint"]),
        result=result,
        events=events,
        checklist=load_checklist(path / "inputs" / "checklist.yaml"),
        examples=_examples(path / "inputs" / "examples.jsonl", wanted),
    )


def _examples(path: Path, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Those examples alone."""
    return {row["id"]: row for _, row in read_rows(path) if row.get("id") in wanted} if wanted else {}


@dataclass(frozen=True)
class Answer:
    """What one side said of a disagreement."""

    yes: bool
    p_yes: float | None
    """None in the journals of older runs."""
    explanation: str | None

    @property
    def words(self) -> str:
        """``yes``, ``no``, or where only that is known, what it leaned to."""
        answer = "yes" if self.yes else "no"
        return answer if self.p_yes is not None else f"towards {answer}"


@dataclass(frozen=True)
class Evidence:
    """One disagreement behind a lesson."""

    key: str
    example: str
    question: str
    question_text: str | None
    iteration: int | None
    target: Answer | None
    reference: Answer | None
    note: str | None
    """The lesson that was drawn from it alone, where other words were kept."""

    @property
    def apart(self) -> float | None:
        """How far apart the two P(yes) are; None where they are not known."""
        if not (self.target and self.reference) or self.target.p_yes is None or self.reference.p_yes is None:
            return None
        return abs(self.target.p_yes - self.reference.p_yes)

    @property
    def same_side(self) -> bool:
        """Whether both gave the same answer and differ only in how sure they are."""
        return bool(self.target and self.reference and self.target.yes == self.reference.yes)


def evidence_by_key(data: RunData) -> dict[str, Evidence]:
    """Every disagreement that was read, by its key ``example/question``."""
    said = data.of("reasons")
    mine = {key: text for event in said for key, text in event.get("target", {}).items()}
    theirs = {key: text for event in said for key, text in event.get("reference", {}).items()}
    notes = {
        key: event["text"]
        for event in data.of("lesson")
        if event["text"] != event.get("kept_text")
        for key in event["evidence"]
    }
    questions = {question.id: question.text for question in data.checklist.questions}
    found = {}
    for event in data.of("disagreements"):
        for row in event.get("read", ()):
            key = f"{row['example']}/{row['question']}"
            found[key] = Evidence(
                key=key,
                example=row["example"],
                question=row["question"],
                question_text=questions.get(row["question"]),
                iteration=event.get("iteration"),
                target=_answer(row["target"], row.get("target_p_yes"), mine.get(key)),
                reference=_answer(row["reference"], row.get("reference_p_yes"), theirs.get(key)),
                note=notes.get(key),
            )
    return found


def _answer(leaning: bool, p_yes: float | None, explanation: str | None) -> Answer:
    """A side's answer. Judges also disagree where both say the same, so only a known P(yes) makes it certain."""
    return Answer(leaning if p_yes is None else p_yes >= 0.5, p_yes, explanation or None)


def group_by_example(evidence: Sequence[Evidence]) -> list[tuple[str, list[Evidence]]]:
    """Evidence on the same example together, in order of first appearance."""
    groups: dict[str, list[Evidence]] = {}
    for each in evidence:
        groups.setdefault(each.example, []).append(each)
    return list(groups.items())
