"""A lesson memory in a directory of its own, for runs to come; and what one run has learned, in the same form.

``memory.jsonl`` has an entry a line. It is read, changed and replaced as a whole under a lock, so that runs at the same
time lose nothing of each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..prompts.errors import AskanceError, InputError, like_named
from ..prompts.lessons import Edit
from ..prompts.rows import validate_row
from ..prompts.tables import read_rows
from ..prompts.text_files import path_of, write_whole
from .memory_contents import (
    ENTRIES,
    FORMAT,
    Entry,
    MemoryContents,
    QuestionInRun,
    RememberedQuestion,
    RemovedEntry,
    remembered_lesson,
)
from .run_directory import RunDirectory

MEMORY_FILE = "memory.jsonl"
PATIENCE = 30.0
"""Seconds to wait for another process that writes."""


def read_memory(file: Path) -> MemoryContents:
    """Read a ``memory.jsonl``. Raises InputError with the line and field at fault where it is missing or damaged."""
    entries: list[Any] = []
    ids: set[str] = set()
    for number, row in read_rows(file):
        where, kind = f"{file}, line {number}", row.get("entry")
        if kind == "memory":
            if row.get("format") != FORMAT:
                raise InputError(f"{where}: not written by this askance; update askance to read it.")
        elif kind in ENTRIES:
            entries.append(validate_row(ENTRIES[kind], row, where))
            if entries[-1].id in ids:
                raise InputError(f"{where}, field 'id': '{entries[-1].id}' is there twice.")
            ids.add(entries[-1].id)
        else:
            raise InputError(f"{where}: field 'entry': must be {', '.join(ENTRIES)}, not {kind!r}.")
    removed = tuple(entry for entry in entries if isinstance(entry, RemovedEntry))
    return MemoryContents(tuple(entry for entry in entries if not isinstance(entry, RemovedEntry)), removed)


@dataclass(frozen=True)
class MemoryDirectory:
    """A memory on disk. Where it is changed, :class:`AskanceError` says that it cannot be written, or that another
    process does not let go of it, and :class:`InputError` that the file is damaged."""

    path: Path
    _lock: FileLock = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Two runs that write take turns."""
        object.__setattr__(self, "_lock", FileLock(self.path / ".lock", timeout=PATIENCE))

    @classmethod
    def create(cls, path: str | Path) -> MemoryDirectory:
        """The memory in a directory, which is made where there is none. Raises InputError where it is a file, a run's
        directory, or cannot be made."""
        path = Path(path)
        if (path / "config.yaml").exists():
            raise InputError(f"{path}: this is the directory of a run; give the memory one of its own.")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _no_directory(path, error.strerror) from None
        return cls(path)

    @classmethod
    def foresee(cls, path: str | Path) -> MemoryContents:
        """Find what :meth:`create` and :meth:`touch` would find, or refuse as they do; nothing is made or written.
        Raises InputError where it is a file, a run's directory or damaged, or cannot be made. Raises AskanceError where
        it cannot be written."""
        path = Path(path)
        there = next(each for each in (path, *path.parents) if os.path.exists(each))
        if there == path and path.is_dir():
            cls.create(path)
        elif not there.is_dir():
            raise _no_directory(path, "there is a file" if there == path else f"{there} is a file")
        if not os.access(there, os.W_OK | os.X_OK):
            if there == path:
                raise AskanceError(f"{path}: cannot be written (Permission denied).")
            raise _no_directory(path, "Permission denied")
        return cls(path).read()

    @property
    def file(self) -> Path:
        """The file with the entries."""
        return self.path / MEMORY_FILE

    def read(self) -> MemoryContents:
        """Read its contents; empty where nothing was added yet. Raises InputError where the file is damaged."""
        return read_memory(self.file) if self.file.is_file() else MemoryContents()

    def touch(self) -> MemoryContents:
        """Read its contents, and write the file: what cannot be written is said before a run begins."""
        with self._locked():
            held = self.read()
            write_whole(self.file, held.to_text())
        return held

    def add(
        self, fingerprint: str, found: Iterable[Entry], loaded: Mapping[str, str]
    ) -> tuple[MemoryContents, MemoryContents]:
        """Add what a run has learned so far, as :meth:`MemoryContents.with_run`; returns what was there and what is
        now."""
        with self._locked():
            before = self.read()
            after = before.with_run(fingerprint, found, loaded)
            write_whole(self.file, after.to_text())
        return before, after

    def remove(self, entry_id: str) -> Entry:
        """Remove an entry with all its words and mark it as not to be learned again. Returns the entry. Raises
        InputError where there is none with this id."""
        with self._locked():
            after, gone = self.read().without(entry_id)
            write_whole(self.file, after.to_text())
        return gone

    def forget_removal(self, entry_id: str) -> None:
        """Let what was removed be learned again. Raises InputError where nothing with this id was removed."""
        with self._locked():
            write_whole(self.file, self.read().forgetting_removal(entry_id).to_text())

    def _locked(self) -> Any:
        try:
            return self._lock.acquire()
        except Timeout:
            raise AskanceError(f"{self.path}: another process has been writing for {PATIENCE:.0f} seconds.") from None
        except OSError as error:
            raise AskanceError(f"{self.path}: cannot be written ({error.strerror}).") from None


def _no_directory(path: Path, why: str | None) -> InputError:
    return InputError(f"{path}: cannot be made a directory for a memory ({why}).")


def load_memory(path: str | Path) -> MemoryDirectory:
    """Open the lesson memory in a directory, to read, search and correct it. Raises InputError where there is none."""
    memory = MemoryDirectory(path_of(path, "memory"))
    if memory.path.is_file():
        raise InputError(f"{path}: this is a file; a directory is needed.")
    if not memory.file.is_file():
        raise InputError(f"{path}: there is no lesson memory (no {MEMORY_FILE}).{like_named(path)}")
    return memory


def facts_of_run(directory: RunDirectory) -> dict[str, Any]:
    """The fields of :class:`InRun` that are the same for everything in a run, from its ``config.yaml``. Raises
    InputError where there is no run."""
    header = directory.read_config()
    config = header["config"]
    models = {name: config[name] for name in ("source", "target", "model", "generator", "judge") if config.get(name)}
    return {
        "run": directory.path.resolve().name,
        "fingerprint": header["fingerprint"][:16],
        "command": config["command"],
        "models": models,
    }


def contents_of_run(directory: RunDirectory) -> MemoryContents:
    """Read the lessons and questions of one run in the form of a memory; ids are the run's own. Raises InputError where
    there is no run, or a file of it is damaged."""
    facts, lessons, questions = facts_of_run(directory), [], []
    _, checklist, _ = directory.read_inputs()
    asked = {question.id: question.text for question in checklist.questions} if checklist else {}
    edits: list[Edit] = []
    if directory.finished:
        result = directory.read_result()
        gone = {pruned.edit for pruned in result.pruned_edits if pruned.removed}
        edits = [edit for tried in result.accepted_edits for edit in tried.edits if edit not in gone]
        for question in result.learned:
            kept = question.model_dump(include={"iteration", "origin", "sources", "comments", "joined", "worth"})
            record = QuestionInRun.model_validate({**facts, **kept, "name": question.id})
            entry = question.model_dump(include={"id", "text", "dimension"}) | {"good": question.good or "yes"}
            questions.append(RememberedQuestion.model_validate({**entry, "runs": (record,)}))
    for lesson in directory.read_lessons():
        lessons.append(remembered_lesson(facts, lesson, iteration=None, questions=asked, edits=edits))
    return MemoryContents((*lessons, *questions))
