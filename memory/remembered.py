"""What a lesson memory holds: lessons and questions that runs have learned, with what became of them in each run.

What a run adds is known by the run's fingerprint and the id that it has there: adding it again changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.checklist import GoodAnswer, marked
from ..prompts.errors import InputError, did_you_mean
from ..prompts.lessons import Edit, Lesson, LessonStatus
from .result_file import WorthRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .embedders import Embedder

FORMAT = 1
ID_DIGITS = 6
About = Literal["judge", "generator"]
"""Whose prompts lessons are for: ``migrate`` and ``align`` improve judges, ``tune`` a generator."""
Direction = Literal["stricter", "more lenient"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class InRun(_Part):
    """What one run had to do with an entry."""

    run: str
    """Name of its directory."""
    fingerprint: str
    """Beginning of the fingerprint of its inputs and settings, which stays where the directory is moved."""
    command: str
    models: dict[str, str]
    """By argument, e.g. ``source`` and ``target``."""
    name: str
    """The id that the entry has there."""
    iteration: int | None = None
    """When it was learned; None where that is not known."""


class LessonInRun(InRun):
    """What became of a lesson in a run."""

    text: str
    status: LessonStatus
    reason: str | None = None
    evidence: tuple[str, ...] = ()
    """Keys of the disagreements, of the run's own examples."""
    asked: dict[str, str] = {}
    """The questions that they are about, by id."""
    edits: tuple[Edit, ...] = ()
    """Those that the run accepted because of it."""

    @property
    def was_tried(self) -> bool:
        """Whether an edit of it came to a trial or to the gate."""
        return self.status in ("applied", "rejected", "retired") and not (self.reason or "").startswith("no edit")


class QuestionInRun(InRun):
    """What became of a question in a run."""

    origin: str = Field(alias="from")
    """``comment``, ``contrast``, or ``memory`` where an earlier run had learned it."""
    sources: tuple[str, ...] = ()
    """Ids of the run's examples that it came from."""
    comments: tuple[str, ...] = ()
    joined: bool
    """Whether the run's judge asks it."""
    reason: str | None = None
    """Why not."""
    worth: WorthRecord = WorthRecord()


class RememberedLesson(_Part):
    """A lesson, and what became of it in every run that had to do with it."""

    entry: Literal["lesson"] = "lesson"
    id: str
    text: str = Field(min_length=1)
    about: About
    direction: Direction
    dimension: str
    kind: Literal["promptable", "computational"] = "promptable"
    kind_reason: str | None = None
    requirement: str | None = None
    """The question or check whose own words it states."""
    requirement_text: str | None = None
    """What that question asks; None of a check, whose name says it."""
    wordings: tuple[str, ...] = ()
    """What it said before other lessons were merged into it."""
    runs: tuple[LessonInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["lesson"], About, Direction, str]:
        """What lessons have in common that may be the same."""
        return ("lesson", self.about, self.direction, self.dimension)

    @property
    def helped(self) -> bool:
        """Whether the last run that tried it accepted it."""
        tried = [each.status for each in self.runs if each.was_tried]
        return tried[-1:] == ["applied"]


class RememberedQuestion(_Part):
    """A question that joined a judge, and what became of it in every run that tried it."""

    entry: Literal["question"] = "question"
    id: str
    text: str = Field(min_length=1)
    dimension: str
    good: GoodAnswer
    wordings: tuple[str, ...] = ()
    runs: tuple[QuestionInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["question"]]:
        """What questions have in common that may be the same."""
        return ("question",)

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good)

    @property
    def joined(self) -> tuple[bool, int]:
        """Whether the last run that tried it kept it, and how many did."""
        kept = [each.joined for each in self.runs]
        return kept[-1], sum(kept)


class RemovedEntry(_Part):
    """What people removed, so that it is not learned again."""

    entry: Literal["removed"] = "removed"
    id: str
    key: tuple[Literal["question"]] | tuple[Literal["lesson"], About, Direction, str]
    """Which lessons or questions it may be, as their own key."""
    texts: tuple[str, ...] = Field(min_length=1)
    """All the words that it had, the last ones first."""
    requirement: str | None = None
    requirement_text: str | None = None

    def forbids(self, other: RememberedLesson | RememberedQuestion) -> bool:
        """Whether the other is this one, or says the same word for word."""
        same = other.key == self.key and not {other.text, *other.wordings}.isdisjoint(self.texts)
        return other.id == self.id or same


Entry = RememberedLesson | RememberedQuestion
ENTRIES: dict[str, type[RememberedLesson] | type[RememberedQuestion] | type[RemovedEntry]] = {
    "lesson": RememberedLesson,
    "question": RememberedQuestion,
    "removed": RemovedEntry,
}
"""By the word under ``entry``."""


@dataclass(frozen=True)
class MemoryContents:
    """Everything that a memory holds."""

    lessons: tuple[RememberedLesson, ...] = ()
    questions: tuple[RememberedQuestion, ...] = ()
    removed: tuple[RemovedEntry, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Lessons and questions."""
        return (*self.lessons, *self.questions)

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
        """With what a run has learned so far, in place of what it had added before.

        What people removed stays out. A lesson that the run merged into one that it had loaded gets the new words, unless
        another run has changed them since.

        Args:
            fingerprint: Of the run.
            found: Its lessons and questions, each with one entry under ``runs``. Those that it had loaded have their id
                here; a question that is not known and did not join is left out.
            loaded: Words of the lessons that the run began with, by id.
        """
        kept: dict[str, Entry] = {each.id: each for each in self.entries}
        fresh: set[tuple[str, str]] = set()
        for each in found:
            if any(gone.forbids(each) for gone in self.removed):
                continue
            home = _home(kept.values(), each, fingerprint)
            if home is None:
                if isinstance(each, RememberedQuestion) and not each.runs[0].joined:
                    continue
                home = each.model_copy(update={"id": self._new_id(each, kept), "wordings": ()})
            kept[home.id] = _with_run_of(home, each, loaded or {})
            fresh.add((home.id, each.runs[0].name))
        now = [_without_others(each, fingerprint, fresh) for each in kept.values()]
        return MemoryContents(
            tuple(each for each in now if isinstance(each, RememberedLesson) and each.runs),
            tuple(each for each in now if isinstance(each, RememberedQuestion) and each.runs),
            self.removed,
        )

    def without(self, entry_id: str) -> tuple[MemoryContents, Entry]:
        """Without an entry and all its words, which are not to be learned again; returns it, too.

        Raises:
            InputError: There is none with this id.
        """
        gone = next((each for each in self.entries if each.id == entry_id), None)
        if gone is None:
            if any(each.id == entry_id for each in self.removed):
                raise InputError(f"'{entry_id}' was removed before.")
            known = [each.id for each in self.entries]
            raise InputError(f"The memory has nothing with the id '{entry_id}'.{did_you_mean(entry_id, known)}")
        said = [each.text for each in gone.runs] if isinstance(gone, RememberedLesson) else []
        texts = tuple(dict.fromkeys([gone.text, *reversed(gone.wordings), *said]))
        mark = RemovedEntry(id=gone.id, key=gone.key, texts=texts)
        if isinstance(gone, RememberedLesson):
            stated = {"requirement": gone.requirement, "requirement_text": gone.requirement_text}
            mark = mark.model_copy(update=stated)
        return self._but(entry_id, (*self.removed, mark)), gone

    def forgetting_removal(self, entry_id: str) -> MemoryContents:
        """Without the mark of a removal: what was removed may be learned again.

        Raises:
            InputError: Nothing with this id was removed.
        """
        if all(each.id != entry_id for each in self.removed):
            hint = did_you_mean(entry_id, [each.id for each in self.removed])
            raise InputError(f"Nothing with the id '{entry_id}' was removed.{hint}")
        return self._but(entry_id, tuple(each for each in self.removed if each.id != entry_id))

    def search(self, text: str, embedder: Embedder) -> list[tuple[Entry, float]]:
        """Lessons and questions with the cosine of their words to a text, in [-1, 1], the nearest first.

        Raises:
            InputError: There is nothing in the text to embed.
        """
        wanted = embedder.embed([text])[0]
        if not self.entries:
            return []
        cosines = embedder.embed([each.text for each in self.entries]) @ wanted
        found = zip(self.entries, (min(1.0, max(-1.0, float(each))) for each in cosines), strict=True)
        return sorted(found, key=lambda each: -each[1])

    def _but(self, entry_id: str, removed: tuple[RemovedEntry, ...]) -> MemoryContents:
        return MemoryContents(
            tuple(each for each in self.lessons if each.id != entry_id),
            tuple(each for each in self.questions if each.id != entry_id),
            removed,
        )

    def _new_id(self, entry: Entry, kept: Mapping[str, Entry]) -> str:
        """Made of what it says, so that it means nothing else when an entry has gone."""
        digest = sha256(json.dumps([*entry.key, entry.text]).encode()).hexdigest()
        taken = {*kept, *(each.id for each in self.removed)}
        prefix = "M" if isinstance(entry, RememberedLesson) else "Q"
        names = (prefix + digest[:length] for length in range(ID_DIGITS, len(digest) + 1))
        return next(each for each in names if each not in taken)


def _home(kept: Iterable[Entry], new: Entry, fingerprint: str) -> Entry | None:
    """The entry that something belongs to: that was loaded, that has its words, or that this run alone has made."""
    alike = [each for each in kept if each.key == new.key]
    mine = {(fingerprint, new.runs[0].name)}
    tests = (
        lambda each: each.id == new.id,
        lambda each: new.text in (each.text, *each.wordings),
        lambda each: {(run.fingerprint, run.name) for run in each.runs} == mine,
    )
    return next((each for test in tests for each in alike if test(each)), None)


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


def _without_others(entry: Entry, fingerprint: str, fresh: set[tuple[str, str]]) -> Entry:
    """Without what the run added when it went another way."""
    runs = [each for each in entry.runs if each.fingerprint != fingerprint or (entry.id, each.name) in fresh]
    return entry.model_copy(update={"runs": tuple(runs)})


def remembered_lesson(
    facts: Mapping[str, Any],
    lesson: Lesson,
    *,
    iteration: int | None,
    questions: Mapping[str, str],
    edits: Sequence[Edit],
) -> RememberedLesson:
    """A run's lesson as an entry.

    Args:
        facts: As :func:`facts_of_run` gives them.
        lesson: With the id that it has in the run.
        iteration: When it was learned.
        questions: The words of the run's questions, by id.
        edits: All that the run accepted.
    """
    behind = (each for each in questions if any(key.endswith(f"/{each}") for key in lesson.evidence))
    record = LessonInRun(
        **facts,
        name=lesson.id,
        iteration=iteration,
        text=lesson.text,
        status=lesson.status,
        reason=lesson.reason,
        evidence=lesson.evidence,
        asked={each: questions[each] for each in behind},
        edits=tuple(each for each in edits if lesson.id in each.lessons),
    )
    return RememberedLesson(
        about="generator" if facts["command"] == "tune" else "judge",
        requirement_text=questions.get(lesson.requirement or ""),
        runs=(record,),
        **lesson.model_dump(include={"id", "text", "direction", "dimension", "kind", "kind_reason", "requirement"}),
    )
