"""All that a lesson memory holds: lessons and questions that runs have learned, with what became of them in each.

What a run adds is known by the run's fingerprint and the id that it has there: adding it again changes nothing.
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
"""Whose prompts lessons are for: ``migrate`` and ``align`` improve judges, ``tune`` a generator."""
Direction = Literal["stricter", "more lenient"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class InRun(_Part):
    """One run that had to do with an entry."""

    run: str
    """Name of its directory."""
    fingerprint: str
    """Beginning of the fingerprint of its inputs and settings, which stays where the directory is moved."""
    command: str
    models: dict[str, str]
    """Models by argument, e.g. ``source`` and ``target``."""
    name: str
    """The id that the entry has there."""
    iteration: int | None = None
    """When it was learned; None where that is not known."""


class RefusedEdit(_Part):
    """An edit that was tried alone and gained nothing."""

    before: str
    """Identity of the prompt that it was an edit of, with the questions that were asked (:func:`state_of`)."""
    old: str
    new: str
    reason: str


class LessonInRun(InRun):
    """A lesson's fate in a run."""

    text: str
    status: LessonStatus
    reason: str | None = None
    evidence: tuple[str, ...] = ()
    """Keys of the disagreements, of the run's own examples."""
    asked: dict[str, str] = {}
    """The questions that they are about, by id."""
    edits: tuple[Edit, ...] = ()
    """Edits that the run accepted because of it."""
    refused: tuple[RefusedEdit, ...] = ()
    """Edits that the run refused for good: not those whose gain may be noise."""

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
    """Earlier words, from before other lessons were merged into it."""


class RememberedLesson(_Entry):
    """A lesson, and what became of it in every run that had to do with it."""

    entry: Literal["lesson"] = "lesson"
    about: About
    direction: Direction
    kind: Literal["promptable", "computational"] = "promptable"
    kind_reason: str | None = None
    requirement: str | None = None
    """The question or check whose own words it states."""
    requirement_text: str | None = None
    """Words of that question; None of a check, whose name says it."""
    runs: tuple[LessonInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["lesson"], About, Direction, str]:
        """Kind of lesson: only lessons of one kind may be the same."""
        return ("lesson", self.about, self.direction, self.dimension)

    @property
    def helped(self) -> bool:
        """Whether the last run that tried the lesson accepted it."""
        tried = [run.status for run in self.runs if run.was_tried]
        return tried[-1:] == ["applied"]


class RememberedQuestion(_Entry):
    """A question that joined a judge, and what became of it in every run that tried it."""

    entry: Literal["question"] = "question"
    good: GoodAnswer
    runs: tuple[QuestionInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["question"]]:
        """Kind of entry: any two questions may be the same."""
        return ("question",)

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good)

    @property
    def joined(self) -> tuple[bool, int]:
        """Whether the last run that tried the question kept it, and the number of runs that did."""
        kept = [run.joined for run in self.runs]
        return kept[-1], sum(kept)


class RemovedEntry(_Part):
    """An entry that people removed, so that it is not learned again."""

    entry: Literal["removed"] = "removed"
    id: str
    key: tuple[Literal["question"]] | tuple[Literal["lesson"], About, Direction, str]
    """The key of the lessons or questions that it may be."""
    texts: tuple[str, ...] = Field(min_length=1)
    """All the words that it had, the last ones first."""
    requirement: str | None = None
    requirement_text: str | None = None


Entry = RememberedLesson | RememberedQuestion
ENTRIES: dict[str, type[RememberedLesson] | type[RememberedQuestion] | type[RemovedEntry]] = {
    "lesson": RememberedLesson,
    "question": RememberedQuestion,
    "removed": RemovedEntry,
}
"""Classes by the word under ``entry``."""


def state_of(prompt: str, questions: Iterable[str]) -> str:
    """Identity of a prompt's text and of the questions that are asked beside it: 16 digits of a hash."""
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
    """Return a run's lesson as an entry. ``facts`` come from :func:`facts_of_run`, ``questions`` has the words of the
    run's questions by id, ``edits`` all that it accepted, ``refused`` the refused edits of this lesson."""
    behind = {
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
        asked={question: text for question, text in questions.items() if question in behind},
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
    """Everything that a memory holds."""

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
        """Replace the entries that a run had added before by its present ones.

        Entries that people removed stay out. A lesson that the run merged into a loaded lesson gets the new words,
        unless another run has changed them since. A question that is not known and did not join is left out.

        Args:
            found: The run's lessons and questions, each with one entry under ``runs``. Loaded ones have their id here.
            loaded: Words of the lessons that the run began with, by id.
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
        now = []
        for entry in kept.entries.values():
            # Entries that the run added on an earlier way, and not again, are dropped.
            runs = [run for run in entry.runs if run.fingerprint != fingerprint or (entry.id, run.name) in fresh]
            now += [entry.model_copy(update={"runs": tuple(runs)})] if runs else []
        return MemoryContents(tuple(sorted(now, key=lambda entry: entry.entry)), self.removed)

    def without(self, entry_id: str) -> tuple[MemoryContents, Entry]:
        """Remove an entry with all its words, which are not to be learned again. Returns the rest and the entry. Raises
        InputError where there is none with this id."""
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
        """Remove the mark of a removal, so that the entry may be learned again. Raises InputError where nothing with
        this id was removed."""
        if all(mark.id != entry_id for mark in self.removed):
            hint = did_you_mean(entry_id, [mark.id for mark in self.removed])
            raise InputError(f"Nothing with the id '{entry_id}' was removed.{hint}")
        return MemoryContents(self.entries, tuple(mark for mark in self.removed if mark.id != entry_id))

    def search(self, text: str, embedder: Embedder) -> list[tuple[Entry, float]]:
        """Lessons and questions with the cosine of their words to a text, in [-1, 1], the nearest first. Raises
        InputError where there is nothing in the text to embed."""
        wanted = embedder.embed([text])[0]
        if not self.entries:
            return []
        cosines = embedder.embed([each.text for each in self.entries]) @ wanted
        found = zip(self.entries, (min(1.0, max(-1.0, float(each))) for each in cosines), strict=True)
        return sorted(found, key=lambda each: -each[1])


class _Homes:
    """Entries by id, found again by their words and by the run that made them, however many there are."""

    def __init__(self, entries: Iterable[Entry], fingerprint: str) -> None:
        """Take the entries known so far, and the ``fingerprint`` of the run whose entries look for their home."""
        self.entries: dict[str, Entry] = {}
        self._fingerprint = fingerprint
        self._places: dict[str, int] = {}
        self._said: dict[tuple[Any, str], str] = {}
        """The first entry with a key and words, present or earlier."""
        self._made: dict[tuple[Any, str], list[str]] = {}
        """The entries that the run deals with, by key and name in the run."""
        for each in entries:
            self.put(each)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one with its id."""
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
        """The entry that something belongs to: that was loaded, that has its words, or that this run alone has made."""
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
    """Make an id from the entry's words, so that it never means another entry."""
    digest = sha256(json.dumps([*entry.key, entry.text]).encode()).hexdigest()
    prefix = "M" if isinstance(entry, RememberedLesson) else "Q"
    names = (prefix + digest[:length] for length in range(ID_DIGITS, len(digest) + 1))
    return next(name for name in names if not any(name in ids for ids in taken))


def _with_run_of(home: Entry, new: Entry, loaded: Mapping[str, str]) -> Entry:
    """An entry with the run of a new one, and its words where the run has changed them."""
    record = new.runs[0]
    place = (record.fingerprint, record.name)
    before = next((each for each in home.runs if (each.fingerprint, each.name) == place), None)
    runs = [record if each is before else each for each in home.runs] + ([record] if before is None else [])
    update: dict[str, Any] = {"runs": tuple(runs)}
    known = before.text if isinstance(before, LessonInRun) else loaded.get(home.id)
    if known == home.text != new.text:
        update |= {"text": new.text, "wordings": (*home.wordings, home.text)}
    return home.model_copy(update=update)
