"""The files of a migration as its page needs them: the certificate, each target's run, and outputs side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING

from ..memory.certificate_file import TARGETS, read_certificate, target_folder
from ..prompts.checklist import YES_IS_GOOD
from ..prompts.errors import InputError
from ..prompts.messages import told
from ..prompts.tables import read_rows
from ..prompts.verdicts import read_verdicts
from .run_candidates import KEPT_WORDS, Piece
from .run_data import RunData, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..memory.certificate_file import CertificateRecord, KeptRequirement, TargetRecord
    from ..prompts.verdicts import Verdict

OLD_OUTPUTS = "outputs.jsonl"
"""Old outputs, in the root of a migration."""
OLD_VERDICTS = "verdicts/old-test.jsonl"
"""Verdicts on the old test outputs, in a target's run."""
_WORD = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")


@dataclass(frozen=True)
class OldOutput:
    """One row of the old outputs."""

    input: str
    output: str


@dataclass(frozen=True)
class ShownTarget:
    """A target with what its run kept."""

    name: str
    record: TargetRecord
    run: RunData | None
    """None where its directory is not there."""
    has_page: bool
    """Whether the run has a page of its own."""
    requirements: Mapping[str, KeptRequirement]
    """The ones that count, by id."""
    old_verdicts: Sequence[Verdict] = ()
    """On the old test outputs; empty where they were not kept."""

    @property
    def folder(self) -> str:
        """Name of its directory."""
        return target_folder(self.name)

    @cached_property
    def _answers(self) -> Mapping[tuple[str, str], Verdict]:
        return {} if self.run is None else self.run.kept.answers(self.run.kept.best)

    @cached_property
    def passed(self) -> dict[tuple[str, str], tuple[bool | None, bool | None]]:
        """Whether the old and the new test output keep a requirement, by example and requirement. None is a missing
        verdict; without a run there is nothing."""
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
        """Test examples on which a requirement has these two answers, by requirement; most frequent first."""
        found: dict[str, list[str]] = {}
        for (example, requirement), both in self.passed.items():
            if both == (old, new):
                found.setdefault(requirement, []).append(example)
        return dict(sorted(found.items(), key=lambda each: -len(each[1])))

    @cached_property
    def failed(self) -> dict[str, list[KeptRequirement]]:
        """The requirements that the old output keeps and the new one fails, by example."""
        found: dict[str, list[KeptRequirement]] = {}
        for (example, requirement), both in self.passed.items():
            if both == (True, False):
                found.setdefault(example, []).append(self.requirements[requirement])
        return found

    def why(self, example: str, requirement: str) -> str | None:
        """The reason for the verdict on the new output; None where none was bought."""
        verdict = self._answers.get((example, requirement))
        return (verdict.explanation or verdict.error) if verdict else None

    def output(self, example: str) -> str | None:
        """The new output, as it was judged."""
        return None if self.run is None else self.run.kept.outputs.get((self.run.kept.best, example))


@dataclass(frozen=True)
class MigrationData:
    """A migration as it lies on disk."""

    name: str
    """Name of the directory; its path is not told."""
    certificate: CertificateRecord
    old: Mapping[str, OldOutput]
    """By example; empty where a prompt that judges was migrated."""
    targets: Sequence[ShownTarget]


def read_migration(run: Path) -> MigrationData:
    """Read a migration's directory. Raises InputError where it has no certificate, or a file of it is damaged."""
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
    """Two texts with the words that differ marked: ``removed`` in the old one, ``added`` in the new one.

    Up to two words that both have between two differences are marked too, so that a sentence in other words is one
    difference.
    """
    left, right = _WORD.findall(old), _WORD.findall(new)
    blocks = SequenceMatcher(
        None, [each.strip() for each in left], [each.strip() for each in right], autojunk=False
    ).get_matching_blocks()
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    ends = (0, 0)
    for start, other, size in blocks:
        at_an_end = (start, other) == (0, 0) or (start + size, other + size) == (len(left), len(right))
        if size < KEPT_WORDS and not at_an_end:
            continue
        for side, words, begin, end, kind in (
            (sides[0], left, start, ends[0], "removed"),
            (sides[1], right, other, ends[1], "added"),
        ):
            for text, what in (("".join(words[end:begin]), kind), ("".join(words[begin : begin + size]), "same")):
                if text:
                    side.append(Piece(text, what))  # type: ignore[arg-type]
        ends = (start + size, other + size)
    return sides
