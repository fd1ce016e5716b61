"""The course of a run, and what is missing in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.budget import count
from .report_scores import figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .report_candidates import Candidate
    from .report_data import RunData

SHOWN_CHARACTERS = 6_000
"""Of a text behind a disagreement; the rest is in the run's inputs."""


@dataclass(frozen=True)
class Iteration:
    """What happened in one round of the loop."""

    number: int
    found: int
    read: int
    notes: int
    new_lessons: int
    trials: int
    """Lessons that were tried on their own disagreements."""
    passed: int
    """Those of them that passed."""
    tried: Sequence[Candidate]

    @property
    def outcome(self) -> str:
        """In a few words."""
        accepted = sum(each.accepted for each in self.tried)
        if accepted:
            return f"{count(accepted, 'candidate')} accepted"
        if self.tried:
            return "nothing accepted"
        if self.trials and not self.passed:
            return "no lesson passed its trial"
        return "no candidate" if self.read else "nothing left to read"


def iterations(data: RunData, tried: Sequence[Candidate]) -> list[Iteration]:
    """Rounds of the loop, as the journal tells them."""
    rounds: list[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = []
    for event in data.events:
        if event.get("event") == "disagreements":
            rounds.append((event, [], []))
        elif event.get("event") == "lesson" and rounds:
            rounds[-1][1].append(event)
        elif event.get("event") == "trial" and rounds:
            rounds[-1][2].append(event)
    return [
        Iteration(
            number=event["iteration"],
            found=event["found"],
            read=len(event["read"]),
            notes=len(notes),
            new_lessons=sum(note["relation"] == "new" for note in notes),
            trials=len(trials),
            passed=sum(trial["result"]["passed"] for trial in trials),
            tried=[each for each in tried if each.iteration == event["iteration"]],
        )
        for event, notes, trials in rounds
    ]


def missing(data: RunData, rounds: Sequence[Iteration]) -> list[str]:
    """What is not there, and why: nothing in a report is silently left out."""
    result = data.result
    said = []
    what = "correlation" if data.is_judge else "mean score"
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
                sides = " on both sides" if data.is_judge else ""
                said.append(f"{where}: {size - measure['n']} of {count(size, 'example')} have no score{sides}.")
            undefined = {"all dimensions": measure, **measure["dimensions"]}
            said += [
                f"{where}, {name}: the {what} is undefined ({values.get('reason', 'no reason given')})."
                for name, values in undefined.items()
                if figure(values) is None
            ]
    said += _lost(data, rounds)
    failures = sum(ledger["failures"] for ledger in (result.get("roles") or {}).values())
    if failures:
        said.append(f"Over all roles, {count(failures, 'call')} failed for good, after all retries.")
    return said


def _lost(data: RunData, rounds: Sequence[Iteration]) -> list[str]:
    """Disagreements without a note, and lessons without an edit, with the reasons."""
    said = []
    failed = data.of("no_note")
    told = failed or data.of("learned")  # journals of older runs do not tell
    lost = len(failed) if told else sum(each.read - each.notes for each in rounds)
    if lost > 0:
        why = f" ({_reasons(failed)})" if failed else ""
        said.append(f"From {count(lost, 'disagreement')} no usable note could be drawn{why}.")
    refused = data.of("no_edit")
    if refused:
        said.append(f"For {count(len(refused), 'lesson')} no edit could be made ({_reasons(refused)}).")
    return said


def _reasons(events: Sequence[Mapping[str, Any]]) -> str:
    """The most frequent reasons, the commonest first."""
    counted = Counter(" ".join(str(event["reason"]).split())[:200] for event in events)
    shown = [f"{reason}, {n} times" if n > 1 else reason for reason, n in counted.most_common(3)]
    return "; ".join(shown) + ("; and others" if len(counted) > 3 else "")


def why_unexplained(data: RunData) -> str | None:
    """Why there are no explanations, where there are none."""
    if any(event["target"] or event["reference"] for event in data.of("reasons")):
        return None
    if data.config.get("explain") == "never":
        return "Explanations were not bought (explain: never)."
    return "This run's journal holds no explanations of the judges."


def clip(text: str) -> tuple[str, int]:
    """The beginning of a text and the number of characters left out."""
    return text[:SHOWN_CHARACTERS], max(0, len(text) - SHOWN_CHARACTERS)


@dataclass(frozen=True)
class Who:
    """Whose prompt was worked on, and what it was held against."""

    mine: str
    """Its model."""
    mine_role: str
    """``the judge`` or ``the generator``."""
    theirs: str
    """The model on the other side; empty for people."""
    theirs_role: str
    """``the source``, ``people``, ``the judge`` or ``the checker``."""


def who(data: RunData) -> Who:
    """The two sides of a run."""
    config = data.config
    if data.is_judge:
        mine = str(config.get("target") or config.get("model") or "")
        source = str(config.get("source") or "")
        return Who(mine, "the judge", source, "the source" if source else "people")
    judge, checker = str(config.get("judge") or ""), str(config.get("checker") or "")
    return Who(
        str(config.get("generator") or ""),
        "the generator",
        judge or file_name(checker),
        "the judge" if judge else "the checker",
    )


def file_name(checker: str) -> str:
    """A checker's name without the directory that its file is in."""
    return checker.replace("\\", "/").rpartition("/")[2]
