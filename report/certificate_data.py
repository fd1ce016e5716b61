"""Read a migration's files for its page: the certificate, each target's run, outputs side by side, and the changes of
each prompt with the failures that led to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any

from ..memory.certificate_file import (
    TARGETS,
    CertificateRecord,
    KeptRequirement,
    TargetRecord,
    read_certificate,
    target_folder,
)
from ..memory.records import AdditionRecord, InstructionRecord
from ..memory.result_file import FINISH_SENTENCES
from ..prompts.checklist import YES_IS_GOOD
from ..prompts.errors import InputError
from ..prompts.formatting import Figure, count, names_text, percent
from ..prompts.messages import told
from ..prompts.tables import read_rows
from ..prompts.verdicts import Verdict, read_verdicts
from .run_candidates import KEPT_WORDS, EditView, Piece, ShownCandidate, candidates
from .run_data import RunData, read_run

OLD_OUTPUTS = "outputs.jsonl"
"""File of the old outputs, in a migration's directory."""
OLD_VERDICTS = "verdicts/old-test.jsonl"
"""File of the verdicts on the old test outputs, in a target's run."""
MOST_FAILURES = 6
"""Most failures that are named for one change."""
_WORD = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")


@dataclass(frozen=True)
class OldOutput:
    """One row of the old outputs."""

    input: str
    output: str


@dataclass(frozen=True)
class ShownTarget:
    """A target of a migration with the data of its run."""

    name: str
    record: TargetRecord
    run: RunData | None
    """None if the run's directory is missing."""
    has_page: bool
    requirements: Mapping[str, KeptRequirement]
    """The enforced requirements, by id."""
    old_verdicts: Sequence[Verdict] = ()
    """Verdicts on the old test outputs; empty if they were not kept."""

    @property
    def folder(self) -> str:
        """Name of the target's directory."""
        return target_folder(self.name)

    @cached_property
    def _answers(self) -> Mapping[tuple[str, str], Verdict]:
        return {} if self.run is None else self.run.kept.answers(self.run.kept.best)

    @cached_property
    def passed(self) -> dict[tuple[str, str], tuple[bool | None, bool | None]]:
        """Whether the old and the new test output keep a requirement, by example and requirement. None stands for a
        missing verdict. Empty without a run."""
        asked = self.run.checklist if self.run else None
        known = {each.id: each for each in asked.questions} if asked else {}
        found = {}
        for old in self.old_verdicts:
            new = self._answers.get((old.example, old.question))
            if old.question in self.requirements and new is not None and old.replicate == 0:
                polar = known.get(old.question, YES_IS_GOOD)  # a checker's own checks are in no checklist
                found[old.example, old.question] = (polar.is_good(old.answer), polar.is_good(new.answer))
        return found

    def cases(self, old: bool, new: bool) -> dict[str, list[str]]:
        """Return the test examples whose old and new output keep (True) or fail (False) a requirement as given. The
        examples are grouped by requirement, the largest group first."""
        found: dict[str, list[str]] = {}
        for (example, requirement), both in self.passed.items():
            if both == (old, new):
                found.setdefault(requirement, []).append(example)
        return dict(sorted(found.items(), key=lambda each: -len(each[1])))

    @cached_property
    def failed(self) -> dict[str, list[KeptRequirement]]:
        """Requirements that the old output keeps and the new output fails, by example."""
        found: dict[str, list[KeptRequirement]] = {}
        for (example, requirement), both in self.passed.items():
            if both == (True, False):
                found.setdefault(example, []).append(self.requirements[requirement])
        return found

    def why(self, example: str, requirement: str) -> str | None:
        """Return the reason for the verdict on the new output; None if there is no reason."""
        verdict = self._answers.get((example, requirement))
        return (verdict.explanation or verdict.error) if verdict else None

    def output(self, example: str) -> str | None:
        """Return the new output, as it was judged; None if it was not kept."""
        return None if self.run is None else self.run.kept.outputs.get((self.run.kept.best, example))


@dataclass(frozen=True)
class MigrationData:
    """A migration as it lies on disk."""

    name: str
    """Name of the directory, without its path."""
    certificate: CertificateRecord
    old: Mapping[str, OldOutput]
    """Old outputs by example; empty if the migrated prompt is a judge's."""
    targets: Sequence[ShownTarget]


def read_migration(run: Path) -> MigrationData:
    """Read a migration's directory. Raises InputError if it has no certificate, or if a file is damaged."""
    certificate = read_certificate(run)
    counted = {each.id: each for each in certificate.requirements if each.enforced}
    targets = []
    for name, record in certificate.targets.items():
        folder = run / TARGETS / target_folder(name)
        data = read_run(folder) if (folder / "result.json").is_file() else None
        old = folder / OLD_VERDICTS
        verdicts = read_verdicts(old) if old.is_file() and old.stat().st_size else ()
        targets.append(ShownTarget(name, record, data, (folder / "report.html").is_file(), counted, verdicts))
    return MigrationData(run.resolve().name, certificate, _old_outputs(run / OLD_OUTPUTS), targets)


def _old_outputs(file: Path) -> dict[str, OldOutput]:
    if not file.is_file():
        return {}
    found = {}
    for line, row in read_rows(file):
        lacking = next((each for each in ("id", "input", "output") if row.get(each) is None), None)
        if lacking is not None:
            raise InputError(f"{file}, line {line}: a row without '{lacking}'; not written by askance, or damaged.")
        found[row["id"]] = OldOutput(str(told(row["input"])), str(told(row["output"])))
    return found


def side_by_side(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """Mark the words that differ between two texts: ``removed`` in the old text, ``added`` in the new one. One or two
    common words between two differences are marked too, so that a reworded sentence is one difference."""
    left, right = _WORD.findall(old), _WORD.findall(new)
    blocks = SequenceMatcher(
        None, [each.strip() for each in left], [each.strip() for each in right], autojunk=False
    ).get_matching_blocks()
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    ends = (0, 0)
    for start, right_start, size in blocks:
        at_an_end = (start, right_start) == (0, 0) or (start + size, right_start + size) == (len(left), len(right))
        if size < KEPT_WORDS and not at_an_end:
            continue
        for side, words, begin, end, kind in (
            (sides[0], left, start, ends[0], "removed"),
            (sides[1], right, right_start, ends[1], "added"),
        ):
            for text, what in (("".join(words[end:begin]), kind), ("".join(words[begin : begin + size]), "same")):
                if text:
                    side.append(Piece(text, what))  # type: ignore[arg-type]
        ends = (start + size, right_start + size)
    return sides


@dataclass(frozen=True)
class Cause:
    """A lesson behind a change, with the failures that it was drawn from."""

    text: str
    """Text of the lesson; empty if the change adds this very text."""
    requirement: str | None
    """Text of the requirement that the lesson states; None if a note-taker drew the lesson."""
    failures: str


@dataclass(frozen=True)
class ShownLine:
    """A change of the prompt, with its causes and effects."""

    edit: EditView
    causes: Sequence[Cause]
    effects: Sequence[str]
    """Sentences on how the change moved its requirement's pass rate."""


@dataclass(frozen=True)
class LinesOfTarget:
    """The changes of a target's prompt, by accepted candidate, and all candidates and additions that were tried."""

    target: str
    accepted: Sequence[tuple[ShownCandidate, Sequence[ShownLine]]]
    tried: Sequence[ShownCandidate]
    additions: Sequence[AdditionRecord]
    """Settings and texts after the input, in the order in which they were tried on development."""
    ended: str

    @property
    def ends(self) -> list[float | None]:
        """Ends of the intervals of all gains, for their axis."""
        gains = [each.gain for each, _ in self.accepted if each.gain]
        return [end for gain in gains for end in (gain.low, gain.value, gain.high)]


def lines_of(name: str, run: RunData) -> LinesOfTarget:
    """Read the changes of a target's prompt from its run."""
    tried = candidates(run)
    accepted = [
        (each, [shown_line(run, edit) for edit in each.edits if edit.pruning is None or not edit.pruning.removed])
        for each in tried
        if each.accepted
    ]
    reason = run.result.finish_reason
    return LinesOfTarget(name, accepted, tried, run.result.additions, FINISH_SENTENCES.get(reason, reason))


def addition_rows(lines: LinesOfTarget) -> list[dict[str, Any]]:
    """Return all trials of a setting or a text after the input, as rows of a table."""
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
    """Count and name the development examples behind a change."""
    return (
        f"{count(len(names), 'failure')} on development: {names_text(names, MOST_FAILURES)}"
        if names
        else "no failure on development"
    )


def trial_rows(lines: LinesOfTarget) -> list[dict[str, Any]]:
    """Return all candidates of the acceptance test, as rows of a table."""
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
    """Return one change with its causes and effects."""
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
