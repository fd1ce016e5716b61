"""A lesson memory in its own directory, for later runs; and the lessons and questions of one run in the same form.

``memory.jsonl`` has one entry per line. The file is read, changed and replaced as a whole under a lock, so that runs
at the same time do not lose each other's entries.
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
    """Read a ``memory.jsonl``. Raises InputError if it is missing, or with the line and field if it is damaged."""
    entries: list[Any] = []
    ids: set[str] = set()
    for number, row in read_rows(file):
        location, kind = f"{file}, line {number}", row.get("entry")
        if kind == "memory":
            if row.get("format") != FORMAT:
                raise InputError(f"{location}: not written by this askance; update askance to read it.")
        elif kind in ENTRIES:
            entries.append(validate_row(ENTRIES[kind], row, location))
            if entries[-1].id in ids:
                raise InputError(f"{location}, field 'id': '{entries[-1].id}' is there twice.")
            ids.add(entries[-1].id)
        else:
            raise InputError(f"{location}: field 'entry': must be {', '.join(ENTRIES)}, not {kind!r}.")
    removed = tuple(entry for entry in entries if isinstance(entry, RemovedEntry))
    return MemoryContents(tuple(entry for entry in entries if not isinstance(entry, RemovedEntry)), removed)


@dataclass(frozen=True)
class MemoryDirectory:
    """A memory on disk. Each change raises :class:`AskanceError` if the file cannot be written or another process keeps
    it locked, and :class:`InputError` if it is damaged."""

    path: Path
    _lock: FileLock = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the lock, with which writing processes take turns."""
        object.__setattr__(self, "_lock", FileLock(self.path / ".lock", timeout=PATIENCE))

    @classmethod
    def create(cls, path: str | Path) -> MemoryDirectory:
        """Return the memory in a directory, and create the directory if it is missing. Raises InputError if the path is
        a file or a run's directory, or if the directory cannot be created."""
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
        """Return the contents that :meth:`create` and :meth:`touch` would find, without creating or writing anything.

        Raises InputError if the path is a file or a run's directory, if the memory is damaged, or if the directory
        could not be created. Raises AskanceError if it could not be written.
        """
        path = Path(path)
        existing_path = next(each for each in (path, *path.parents) if os.path.exists(each))
        if existing_path == path and path.is_dir():
            cls.create(path)
        elif not existing_path.is_dir():
            raise _no_directory(path, "there is a file" if existing_path == path else f"{existing_path} is a file")
        if not os.access(existing_path, os.W_OK | os.X_OK):
            if existing_path == path:
                raise AskanceError(f"{path}: cannot be written (Permission denied).")
            raise _no_directory(path, "Permission denied")
        return cls(path).read()

    @property
    def file(self) -> Path:
        """The file with the entries."""
        return self.path / MEMORY_FILE

    def read(self) -> MemoryContents:
        """Read the contents; empty if nothing was added yet. Raises InputError if the file is damaged."""
        return read_memory(self.file) if self.file.is_file() else MemoryContents()

    def touch(self) -> MemoryContents:
        """Read the contents and write them back, so that a file that cannot be written is found before a run begins."""
        with self._locked():
            held = self.read()
            write_whole(self.file, held.to_text())
        return held

    def add(
        self, fingerprint: str, found: Iterable[Entry], loaded: Mapping[str, str]
    ) -> tuple[MemoryContents, MemoryContents]:
        """Add a run's entries (:meth:`MemoryContents.with_run`). Returns the contents before and after."""
        with self._locked():
            before = self.read()
            after = before.with_run(fingerprint, found, loaded)
            write_whole(self.file, after.to_text())
        return before, after

    def remove(self, entry_id: str) -> Entry:
        """Remove an entry, keep runs from adding it again, and return it. Raises InputError if no entry has this id."""
        with self._locked():
            after, gone = self.read().without(entry_id)
            write_whole(self.file, after.to_text())
        return gone

    def forget_removal(self, entry_id: str) -> None:
        """Let runs add a removed entry again. Raises InputError if no entry with this id was removed."""
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
    """Open the lesson memory in a directory, to read, search and correct it. Raises InputError if there is none."""
    memory = MemoryDirectory(path_of(path, "memory"))
    if memory.path.is_file():
        raise InputError(f"{path}: this is a file; a directory is needed.")
    if not memory.file.is_file():
        raise InputError(f"{path}: there is no lesson memory (no {MEMORY_FILE}).{like_named(path)}")
    return memory


def facts_of_run(directory: RunDirectory) -> dict[str, Any]:
    """Return the :class:`InRun` fields that all entries of a run share, from its ``config.yaml``. Raises InputError if
    there is no run."""
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
    """Read the lessons and questions of one run in the form of a memory, with the run's own ids. Raises InputError if
    there is no run, or if a file of the run is damaged."""
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
