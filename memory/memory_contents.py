"""Contents of a lesson memory: lessons and questions that runs have learned, with their fate in each run.

The fingerprint of a run and the id in that run identify an entry of the run. Adding the same entry again changes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.checklist import GoodAnswer, marked
from ..prompts.errors import InputError, did_you_mean
from ..prompts.lessons import Edit, Lesson, LessonStatus
from .embedders import Embedder
from .records import Fate

About = Literal["judge", "generator"]
"""Kind of prompt that a lesson is for: ``migrate`` and ``align`` improve a judge, ``tune`` improves a generator."""
Direction = Literal["stricter", "more lenient"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class InRun(_Part):
    """A run that learned or tried an entry."""

    run: str
    """Name of the run's directory."""
    fingerprint: str
    """Beginning of the fingerprint of the run's inputs and settings. It stays the same when the directory moves."""
    command: str
    models: dict[str, str]
    """Models by argument, e.g. ``source`` and ``target``."""
    name: str
    """Id of the entry in the run."""
    iteration: int | None = None
    """Iteration in which the entry was learned; None if not known."""


class RefusedEdit(_Part):
    """An edit that was tried alone and gained nothing."""

    before: str
    """Identity of the prompt before the edit and of the questions that were asked (:func:`state_of`)."""
    old: str
    new: str
    reason: str


class LessonInRun(InRun):
    """A lesson's fate in a run."""

    text: str
    status: LessonStatus
    reason: str | None = None
    evidence: tuple[str, ...] = ()
    """Keys of the disagreements on the run's own examples."""
    asked: dict[str, str] = {}
    """Texts of the questions that the disagreements are about, by id."""
    edits: tuple[Edit, ...] = ()
    """Edits that the run accepted because of the lesson."""
    refused: tuple[RefusedEdit, ...] = ()
    """Edits that the run refused for good. Edits whose gain may be noise are not among them."""

    @property
    def was_tried(self) -> bool:
        """Whether an edit of the lesson came to a trial or to the acceptance test."""
        return self.status in ("applied", "rejected", "retired") and not (self.reason or "").startswith("no edit")


class QuestionInRun(InRun, Fate):
    """A question's origin and fate in a run."""

    model_config = _Part.model_config


class _Entry(_Part):
    id: str
    text: str = Field(min_length=1)
    dimension: str
    wordings: tuple[str, ...] = ()
    """Earlier texts of the entry, from before other lessons were merged into it."""


class RememberedLesson(_Entry):
    """A lesson, with its fate in every run that learned or tried it."""

    entry: Literal["lesson"] = "lesson"
    about: About
    direction: Direction
    kind: Literal["promptable", "computational"] = "promptable"
    kind_reason: str | None = None
    requirement: str | None = None
    """Id of the question, or name of the check, that the lesson states in its own words."""
    requirement_text: str | None = None
    """Text of that question; None for a check."""
    runs: tuple[LessonInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["lesson"], About, Direction, str]:
        """Key of the lesson. Only lessons with the same key can be the same lesson."""
        return ("lesson", self.about, self.direction, self.dimension)

    @property
    def helped(self) -> bool:
        """Whether the last run that tried the lesson accepted it."""
        tried = [run.status for run in self.runs if run.was_tried]
        return tried[-1:] == ["applied"]


class RememberedQuestion(_Entry):
    """A question that joined a judge, with its fate in every run that tried it."""

    entry: Literal["question"] = "question"
    good: GoodAnswer
    runs: tuple[QuestionInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["question"]]:
        """Key of the question. All questions have the same key, so any two of them can be the same question."""
        return ("question",)

    @property
    def criterion(self) -> str:
        """The text, marked if yes is a fault."""
        return marked(self.text, self.good)

    @property
    def joined(self) -> tuple[bool, int]:
        """Whether the last run that tried the question kept it, and the number of runs that kept it."""
        kept = [run.joined for run in self.runs]
        return kept[-1], sum(kept)


class RemovedEntry(_Part):
    """Mark of an entry that people removed. Runs do not add the entry again."""

    entry: Literal["removed"] = "removed"
    id: str
    key: tuple[Literal["question"]] | tuple[Literal["lesson"], About, Direction, str]
    """Key of the removed entry. Only entries with this key are kept out."""
    texts: tuple[str, ...] = Field(min_length=1)
    """All texts that the entry had, the latest first."""
    requirement: str | None = None
    requirement_text: str | None = None


Entry = RememberedLesson | RememberedQuestion
ENTRIES: dict[str, type[RememberedLesson] | type[RememberedQuestion] | type[RemovedEntry]] = {
    "lesson": RememberedLesson,
    "question": RememberedQuestion,
    "removed": RemovedEntry,
}
"""Classes by the value of ``entry``."""


def state_of(prompt: str, questions: Iterable[str]) -> str:
    """Return the identity of a prompt's text with the questions asked beside it: 16 hex digits of a SHA-256 hash."""
    return sha256(json.dumps([prompt, sorted(questions)]).encode()).hexdigest()[:16]


def remembered_lesson(
    facts: Mapping[str, Any],
    lesson: Lesson,
    *,
    iteration: int | None,
    questions: Mapping[str, str],
    edits: Sequence[Edit],
    refused: Sequence[RefusedEdit] = (),
) -> RememberedLesson:
    """Make a memory entry of a run's lesson.

    Args:
        facts: Facts about the run, from :func:`facts_of_run`.
        questions: Texts of the run's questions by id.
        edits: All edits that the run accepted.
        refused: Refused edits of this lesson.
    """
    asked_ids = {
        # The longest id that fits: the key of "style/names" also ends with "/names".
        max((question for question in questions if key.endswith(f"/{question}")), key=len, default=None)
        for key in lesson.evidence
    }
    record = LessonInRun(
        **facts,
        name=lesson.id,
        iteration=iteration,
        text=lesson.text,
        status=lesson.status,
        reason=lesson.reason,
        evidence=lesson.evidence,
        asked={question: text for question, text in questions.items() if question in asked_ids},
        edits=tuple(edit for edit in edits if lesson.id in edit.lessons),
        refused=tuple(refused),
    )
    return RememberedLesson(
        about="generator" if facts["command"] == "tune" else "judge",
        requirement_text=questions.get(lesson.requirement or ""),
        runs=(record,),
        **lesson.model_dump(include={"id", "text", "direction", "dimension", "kind", "kind_reason", "requirement"}),
    )


FORMAT = 1
ID_DIGITS = 6


@dataclass(frozen=True)
class MemoryContents:
    """Contents of a lesson memory."""

    entries: tuple[Entry, ...] = ()
    """Lessons, then questions."""
    removed: tuple[RemovedEntry, ...] = ()

    @property
    def lessons(self) -> tuple[RememberedLesson, ...]:
        """The lessons alone."""
        return tuple(each for each in self.entries if isinstance(each, RememberedLesson))

    @property
    def questions(self) -> tuple[RememberedQuestion, ...]:
        """The questions alone."""
        return tuple(each for each in self.entries if isinstance(each, RememberedQuestion))

    def to_text(self) -> str:
        """The content of ``memory.jsonl``."""
        rows: list[dict[str, Any]] = [{"entry": "memory", "format": FORMAT}]
        rows += [
            {"entry": each.entry, **each.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
            for each in (*self.entries, *self.removed)
        ]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def with_run(
        self, fingerprint: str, found: Iterable[Entry], loaded: Mapping[str, str] | None = None
    ) -> MemoryContents:
        """Replace the entries that a run added before by its present entries.

        Entries that people removed stay out. If the run merged a lesson into a loaded lesson, the loaded lesson gets
        the new words, unless another run has changed them since. A new question that did not join is left out.

        Args:
            found: The run's lessons and questions, each with one record under ``runs``. An entry that the run had
                loaded from this memory has its id in the memory.
            loaded: Texts of the lessons that the run loaded from the memory, by id.
        """
        kept, removed = _Homes(self.entries, fingerprint), {mark.id for mark in self.removed}
        unwanted = {(mark.key, text) for mark in self.removed for text in mark.texts}
        fresh: set[tuple[str, str]] = set()
        for new in found:
            if new.id in removed or any((new.key, text) in unwanted for text in (new.text, *new.wordings)):
                continue
            home = kept.home_of(new)
            if home is None:
                if isinstance(new, RememberedQuestion) and not new.runs[0].joined:
                    continue
                home = new.model_copy(update={"id": _new_id(new, kept.entries, removed), "wordings": ()})
            kept.put(_with_run_of(home, new, loaded or {}))
            fresh.add((home.id, new.runs[0].name))
        entries = []
        for entry in kept.entries.values():
            # Entries that an earlier pass of the same run added, and this one did not add again, are dropped.
            runs = [run for run in entry.runs if run.fingerprint != fingerprint or (entry.id, run.name) in fresh]
            entries += [entry.model_copy(update={"runs": tuple(runs)})] if runs else []
        return MemoryContents(tuple(sorted(entries, key=lambda entry: entry.entry)), self.removed)

    def without(self, entry_id: str) -> tuple[MemoryContents, Entry]:
        """Remove an entry and keep its texts out of the memory from now on. Returns the new contents and the removed
        entry. Raises InputError if no entry has this id."""
        gone = next((entry for entry in self.entries if entry.id == entry_id), None)
        if gone is None:
            if any(entry.id == entry_id for entry in self.removed):
                raise InputError(f"'{entry_id}' was removed before.")
            known = [entry.id for entry in self.entries]
            raise InputError(f"The memory has nothing with the id '{entry_id}'.{did_you_mean(entry_id, known)}")
        said = [entry.text for entry in gone.runs] if isinstance(gone, RememberedLesson) else []
        texts = tuple(dict.fromkeys([gone.text, *reversed(gone.wordings), *said]))
        mark = RemovedEntry(id=gone.id, key=gone.key, texts=texts)
        if isinstance(gone, RememberedLesson):
            mark = mark.model_copy(update=gone.model_dump(include={"requirement", "requirement_text"}))
        return MemoryContents(tuple(each for each in self.entries if each is not gone), (*self.removed, mark)), gone

    def forgetting_removal(self, entry_id: str) -> MemoryContents:
        """Let runs add a removed entry again. Raises InputError if no entry with this id was removed."""
        if all(mark.id != entry_id for mark in self.removed):
            hint = did_you_mean(entry_id, [mark.id for mark in self.removed])
            raise InputError(f"Nothing with the id '{entry_id}' was removed.{hint}")
        return MemoryContents(self.entries, tuple(mark for mark in self.removed if mark.id != entry_id))

    def search(self, text: str, embedder: Embedder) -> list[tuple[Entry, float]]:
        """Return all lessons and questions with the cosine similarity to a text, in [-1, 1], the nearest first. Raises
        InputError if the text has nothing to embed."""
        wanted = embedder.embed([text])[0]
        if not self.entries:
            return []
        cosines = embedder.embed([each.text for each in self.entries]) @ wanted
        found = zip(self.entries, (min(1.0, max(-1.0, float(each))) for each in cosines), strict=True)
        return sorted(found, key=lambda each: -each[1])


class _Homes:
    """Entries by id, with indexes that find an entry by its words or by the run that made it."""

    def __init__(self, entries: Iterable[Entry], fingerprint: str) -> None:
        """Index the known entries; ``fingerprint`` belongs to the run whose entries are to be placed."""
        self.entries: dict[str, Entry] = {}
        self._fingerprint = fingerprint
        self._places: dict[str, int] = {}
        self._said: dict[tuple[Any, str], str] = {}
        """Id of the first entry that has or had these words, by key and words."""
        self._made: dict[tuple[Any, str], list[str]] = {}
        """Ids of the entries of this run, by key and name in the run."""
        for each in entries:
            self.put(each)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the entry with the same id."""
        place = self._places.setdefault(entry.id, len(self._places))
        self.entries[entry.id] = entry
        for text in (entry.text, *entry.wordings):
            first = self._said.setdefault((entry.key, text), entry.id)
            if self._places[first] > place:
                self._said[entry.key, text] = entry.id
        for name in [each.name for each in entry.runs if each.fingerprint == self._fingerprint]:
            made = self._made.setdefault((entry.key, name), [])
            if entry.id not in made:
                made.append(entry.id)

    def home_of(self, new: Entry) -> Entry | None:
        """Find the known entry for a new one: the entry that the run had loaded, else an entry with the same words,
        else an entry that only this run has made; else None."""
        name = new.runs[0].name
        loaded = self.entries.get(new.id)
        if loaded is not None and loaded.key == new.key:
            return loaded
        said = self._said.get((new.key, new.text))
        if said is not None:
            return self.entries[said]
        made = sorted(self._made.get((new.key, name), ()), key=self._places.__getitem__)
        mine = {(self._fingerprint, name)}
        alone = (self.entries[each] for each in made)
        return next((each for each in alone if {(run.fingerprint, run.name) for run in each.runs} == mine), None)


def _new_id(entry: Entry, *taken: Collection[str]) -> str:
    """Make an id from a hash of the entry's words, longer if a shorter one is taken."""
    digest = sha256(json.dumps([*entry.key, entry.text]).encode()).hexdigest()
    prefix = "M" if isinstance(entry, RememberedLesson) else "Q"
    names = (prefix + digest[:length] for length in range(ID_DIGITS, len(digest) + 1))
    return next(name for name in names if not any(name in ids for ids in taken))


def _with_run_of(home: Entry, new: Entry, loaded: Mapping[str, str]) -> Entry:
    """Add the run of a new entry to a known entry, with the new words if the run has changed them."""
    record = new.runs[0]
    place = (record.fingerprint, record.name)
    before = next((each for each in home.runs if (each.fingerprint, each.name) == place), None)
    runs = [record if each is before else each for each in home.runs] + ([record] if before is None else [])
    update: dict[str, Any] = {"runs": tuple(runs)}
    known = before.text if isinstance(before, LessonInRun) else loaded.get(home.id)
    if known == home.text != new.text:
        update |= {"text": new.text, "wordings": (*home.wordings, home.text)}
    return home.model_copy(update=update)
