"""Answers to the page Prompt: a certificate, outputs side by side, and the prompt, whose changes a person can undo."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from aiohttp import web
from pydantic import Field

from ..labelling.local_server import PageMessage, add_act, add_read
from ..memory.certificate_file import CERTIFICATE_FILE, TARGETS, CertificateRecord, is_migration, target_folder
from ..memory.certificate_file import read_certificate as read_certificate_file
from ..memory.decision import decide
from ..memory.run_directory import RunDirectory, prompt_file
from ..optimizer.migration.certificate import WORDS, headline, measured
from ..prompts.checklist import YES_IS_GOOD
from ..prompts.errors import InputError
from ..prompts.tables import read_rows
from ..prompts.text_files import append_line, write_whole
from ..report.certificate_data import MigrationData, read_migration, shown_line, side_by_side
from ..report.run_candidates import Piece, candidates
from ..report.run_data import RunData, read_run
from .found_runs import changed_at, saving
from .prompt_changes import ChangedPrompt, without

AT_ONCE = 5
"""Most outputs that are sent at once."""
MOST_OUTPUT = 4_000
"""Most characters of one output that are sent."""
MOST_COMPARED = 2_000
"""Most characters of one output that are compared word by word: the time grows with their square."""
MOST_OPEN = 2
"""Most runs that are kept in memory."""
HISTORY_FILE = "prompt-history.jsonl"
"""File that says who changed a run's prompt by hand, and how; it only grows."""


class AskedPrompt(PageMessage):
    """A message of the page: the changes to take out of the shown prompt."""

    run: str
    target: str = ""
    vetoed: tuple[int, ...] = Field(max_length=10_000)
    of: str
    """Hash of the run's prompt that the page showed."""


@dataclass(frozen=True)
class OutputPair:
    """An example with its old and its new output."""

    example: str
    input: str
    old: str | None
    new: str | None
    failed: Sequence[tuple[str, bool | None, str | None]]
    """Questions that the new output fails: text, whether the old output kept it, and the judge's reason. Questions that
    the old output kept come first."""

    @property
    def worse(self) -> int:
        """Number of questions that the old output kept and the new output fails."""
        return sum(bool(kept) for _, kept, _ in self.failed)


@dataclass(frozen=True)
class OpenedPrompt:
    """A run, or one target of a migration, with the changes of its prompt."""

    folder: Path
    data: RunData
    certificate: CertificateRecord | None
    migration: MigrationData | None
    target: str
    """Name of the target; empty if the run is no migration."""
    changes: ChangedPrompt

    @property
    def hash(self) -> str:
        """Hash of the accepted prompt."""
        return sha256(self.data.result.best.prompt.encode()).hexdigest()[:16]

    @cached_property
    def cases(self) -> list[OutputPair]:
        """All examples with an old and a new output, those that got worse first."""
        found = [*(self._migrated() if self.migration is not None else self._tuned())]
        return sorted(found, key=lambda each: (-each.worse, -len(each.failed)))

    def _migrated(self) -> list[OutputPair]:
        """Pair the test outputs of the old model and of the target."""
        assert self.migration is not None
        shown = next(each for each in self.migration.targets if each.name == self.target)
        failed: dict[str, list[tuple[str, bool | None, str | None]]] = {}
        for (example, name), (old, new) in sorted(shown.passed.items(), key=lambda each: not each[1][0]):
            if new is False:
                row = shown.requirements[name].text, old, shown.why(example, name)
                failed.setdefault(example, []).append(row)
        return [
            OutputPair(name, old.input, old.output, shown.output(name), failed.get(name, ()))
            for name, old in self.migration.old.items()
            if shown.output(name) is not None
        ]

    def _tuned(self) -> list[OutputPair]:
        """Pair the development outputs of the first and the accepted prompt."""
        # Test outputs are not shown: a prompt that a person changes after seeing them could not be measured on them.
        kept = self.data.kept
        if self.data.is_judge:  # a judge writes no outputs
            return []
        before, after = (kept.answers(version, "development") for version in (kept.first, kept.best))
        good = {} if self.data.checklist is None else {each.id: each for each in self.data.checklist.questions}
        failed: dict[str, list[tuple[str, bool | None, str | None]]] = {}
        for (example, name), new in after.items():
            polar, old = good.get(name, YES_IS_GOOD), before.get((example, name))
            rows = failed.setdefault(example, [])
            if polar.is_good(new.answer) is False:
                was = None if old is None else polar.is_good(old.answer)
                rows.append((self.data.question(example, name)[0], was, new.explanation or new.error))
        rows_of = {row["id"]: row for _, row in read_rows(self.folder / "inputs" / "examples.jsonl")}
        outputs = kept.outputs
        return [
            OutputPair(
                name,
                str(rows_of.get(name, {}).get("input", "")),
                outputs.get((kept.first, name)),
                outputs.get((kept.best, name)),
                sorted(rows, key=lambda each: not each[1]),
            )
            for name, rows in failed.items()
        ]


@dataclass
class PromptPage:
    """The page Prompt. Its methods may be called from any thread; those that answer requests return JSON."""

    folder_of: Callable[[str], Path]
    """Returns the directory of a run by the run's name."""
    by: str
    _kept: dict[tuple[Path, str], tuple[tuple[float, ...], OpenedPrompt]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def add_to(self, app: web.Application) -> None:
        """Have an application answer the page's requests."""
        add_read(app, "prompts", self.prompts, ("run", "target"))
        add_read(app, "prompt_outputs", self.outputs, ("run", "target", "show", "start"))
        add_act(app, "save_prompt", AskedPrompt, self.save)

    def prompts(self, run: str, target: str) -> dict[str, Any]:
        """Return the certificate, and the new prompt with its changes."""
        opened = self._open(run, target)
        result, found = opened.data.result, opened.certificate
        return {
            "run": run,
            "target": opened.target,
            "targets": [] if opened.migration is None else [*opened.migration.certificate.targets],
            "answer": decide(result).headline if found is None else headline(found),
            "reason": result.decision_reason if found is None else None,
            "decided": decide(result).choice if found is None else None,
            "certificate": None if found is None else certificate_json(found),
            "stretches": [asdict(each) for each in opened.changes.stretches],
            "changes": [*_changes(opened)],
            "of": opened.hash,
            "file": prompt_file(opened.folder).name,
            "history": read_history(opened.folder),
            "outputs": {name: len(_shown(opened.cases, name)) for name in ("worse", "failing", "all")},
            "split": "development" if opened.migration is None else "test",
            "is_judge": result.is_judge,
        }

    def outputs(self, run: str, target: str, show: str, start: str) -> dict[str, Any]:
        """Return some outputs side by side, with the words that differ marked."""
        opened = self._open(run, target)
        cases, begin = _shown(opened.cases, show), int(start) if start.isdecimal() else 0
        rows = [_case(each) for each in cases[begin : begin + AT_ONCE]]
        return {"show": show, "start": begin, "count": len(cases), "at_once": AT_ONCE, "outputs": rows}

    def save(self, asked: AskedPrompt) -> dict[str, Any]:
        """Save the prompt without the vetoed changes, as a new file beside the run's own."""
        opened = self._open(asked.run, asked.target)
        if asked.of != opened.hash:
            raise InputError("The run has another prompt by now. Open the page again.")
        prompt = without(RunDirectory(opened.folder).read_start(), opened.changes, {*asked.vetoed})
        words = {each["number"]: each["words"] for each in _changes(opened)}
        row = {
            "by": self.by,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "of": opened.hash,
            "what": [f"took out change {number}: {words[number]}" for number in sorted({*asked.vetoed})],
        }
        file = _save(opened.folder, prompt.file_text, prompt.suffix, row)
        return {"file": file.name, "path": str(file), "history": read_history(opened.folder)}

    def _open(self, run: str, target: str) -> OpenedPrompt:
        folder = self.folder_of(run)
        with self._lock:
            stamp = tuple(changed_at(each) for each in (folder / "result.json", folder / CERTIFICATE_FILE))
            kept = self._kept.pop((folder, target), None)
            if kept is None or kept[0] != stamp:
                kept = stamp, opened_prompt(folder, target)
            self._kept[folder, target] = kept
            while len(self._kept) > MOST_OPEN:
                del self._kept[next(iter(self._kept))]
        return kept[1]


def opened_prompt(folder: Path, target: str) -> OpenedPrompt:
    """Open a finished run, or a migration's target (by default the first). Raises InputError if there is none."""
    if not is_migration(folder):
        data = read_run(folder)
        found = read_certificate_file(folder) if (folder / CERTIFICATE_FILE).is_file() else None
        return OpenedPrompt(folder, data, found, None, "", ChangedPrompt.of(data.result))
    migration = read_migration(folder)
    names = [each.name for each in migration.targets]
    if target and target not in names:
        raise InputError(f"The migration has no target '{target}'. It has: {', '.join(names)}.")
    shown = next(each for each in migration.targets if each.name == (target or names[0]))
    if shown.run is None:
        raise InputError(f"{folder / TARGETS / shown.folder}: the run of {shown.name} is not there.")
    changes = ChangedPrompt.of(shown.run.result)
    place = folder / TARGETS / target_folder(shown.name)
    return OpenedPrompt(place, shown.run, migration.certificate, migration, shown.name, changes)


def certificate_json(found: CertificateRecord) -> dict[str, Any]:
    """Return the certificate as JSON: for each target the decision, its reason and figures, and its losses."""
    texts = {record.id: record.text for record in found.requirements}
    targets = []
    for name, record in found.targets.items():
        sides = {measured(found): record.pass_rate, "Contract": record.contract, "Questions": record.questions}
        worse = [row for row in record.by_requirement if None not in (row.after, row.old)]
        targets.append(
            {
                "target": name,
                "decision": record.decision,
                "word": WORDS[record.decision],
                "reason": record.reason,
                "difference": record.difference.model_dump(),
                "figures": [
                    {"name": what, **both.model_dump(mode="json")} for what, both in sides.items() if both is not None
                ],
                "regressions": len(record.regressions),
                "gains": len(record.gains),
                "requirements": [
                    row.model_dump() | {"text": texts.get(row.requirement, row.requirement)}
                    for row in sorted(worse, key=lambda row: (row.after or 0) - (row.old or 0))
                ],
                "proved": [texts.get(one, one) for one in record.worst],
            }
        )
    return {"targets": targets, "max_loss": found.max_loss, "level": found.level, "looks": found.looks}


def _changes(opened: OpenedPrompt) -> list[dict[str, Any]]:
    """Return the changes, each with its words, the failures that led to it, and its effect."""
    edits = [edit for each in candidates(opened.data) if each.accepted for edit in each.edits]
    rows = []
    for each in opened.changes.changes:
        added, removed = (
            "".join(one.text for one in opened.changes.stretches if getattr(one, name) == each.number)
            for name in ("by", "gone")
        )
        words = f"“{added.strip()}”" if added.strip() else ""
        if removed.strip():
            words = f"“{removed.strip()}” → {words or 'nothing'}"
        row: dict[str, Any] = {
            "number": each.number,
            "needs": [*each.needs],
            "words": words,
            "causes": [],
            "effects": [],
        }
        if each.edit is not None and each.edit < len(edits):
            line = shown_line(opened.data, edits[each.edit])
            row |= {"causes": [asdict(cause) for cause in line.causes], "effects": [*line.effects]}
        rows.append(row)
    return rows


def _shown(cases: Sequence[OutputPair], show: str) -> Sequence[OutputPair]:
    if show == "all":
        return cases
    return [each for each in cases if (each.worse if show == "worse" else each.failed)]


def _case(each: OutputPair) -> dict[str, Any]:
    texts = [each.old or "", each.new or ""]
    sides: Iterable[Sequence[Piece]] = [[Piece(text[:MOST_COMPARED])] for text in texts]
    if each.old is not None and each.new is not None:
        sides = side_by_side(each.old[:MOST_COMPARED], each.new[:MOST_COMPARED])
    shown = [[[piece.kind, piece.text] for piece in side] for side in sides]
    for side, text in zip(shown, texts, strict=True):
        side.append(["rest", text[MOST_COMPARED:MOST_OUTPUT]])
    old, new = ([pair for pair in side if pair[1]] for side in shown)
    return {
        "id": each.example,
        "input": each.input[:MOST_OUTPUT],
        "failed": [{"text": text, "worse": bool(kept), "why": why} for text, kept, why in each.failed],
        "old": old,
        "new": new,
        "left_out": sum(max(0, len(text) - MOST_OUTPUT) for text in texts),
        "not_compared": MOST_COMPARED if any(len(text) > MOST_COMPARED for text in texts) else 0,
    }


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Read who changed the run's prompt by hand, a row for each saved prompt. Raises InputError if a row is damaged."""
    file = folder / HISTORY_FILE
    return [row for _, row in read_rows(file)] if file.is_file() and file.stat().st_size else []


def _save(folder: Path, text: str, suffix: str, row: Mapping[str, Any]) -> Path:
    """Write the prompt as a new file, and a row about it. Two windows that save at once get a file each."""
    with saving(folder, ".prompts.lock"):
        read_history(folder)  # a line after a damaged one would be lost
        names = [re.fullmatch(r"prompt-(\d+)\..*", each.name) for each in folder.glob("prompt-*")]
        number = max((int(found[1]) for found in names if found), default=0) + 1
        file = folder / f"prompt-{number}{suffix}"
        write_whole(file, text)
        try:
            append_line(folder / HISTORY_FILE, {"file": file.name, **row})
        except OSError:
            file.unlink(missing_ok=True)  # nobody would know where it comes from
            raise
    return file
