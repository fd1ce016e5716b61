"""All that a lesson memory holds, and how what a run has learned is put into it.

What a run adds is known by the run's fingerprint and the id that it has there: adding it again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ..prompts.errors import InputError, did_you_mean
from .embedders import Embedder
from .remembered import Entry, LessonInRun, RememberedLesson, RememberedQuestion, RemovedEntry

FORMAT = 1
ID_DIGITS = 6


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
        kept, removed = _Homes(self.entries, fingerprint), _Removed(self.removed)
        fresh: set[tuple[str, str]] = set()
        for each in found:
            if removed.forbid(each):
                continue
            home = kept.home_of(each)
            if home is None:
                if isinstance(each, RememberedQuestion) and not each.runs[0].joined:
                    continue
                home = each.model_copy(update={"id": _new_id(each, kept.entries, removed.ids), "wordings": ()})
            kept.put(_with_run_of(home, each, loaded or {}))
            fresh.add((home.id, each.runs[0].name))
        now = [_without_others(each, fingerprint, fresh) for each in kept.entries.values()]
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


class _Homes:
    """Entries by id, found again by what they say and by who made them, however many there are."""

    def __init__(self, entries: Iterable[Entry], fingerprint: str) -> None:
        """``fingerprint`` is that of the run whose entries look for their home."""
        self.entries: dict[str, Entry] = {}
        self._fingerprint = fingerprint
        self._places: dict[str, int] = {}
        self._said: dict[tuple[Any, str], str] = {}
        """By key and words, the first entry that has them or had them."""
        self._made: dict[tuple[Any, str], list[str]] = {}
        """By key and name in the run, the entries that the run has to do with."""
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


class _Removed:
    """What people removed, found again by id and by words."""

    def __init__(self, removed: Iterable[RemovedEntry]) -> None:
        self.ids = {each.id for each in removed}
        self._said = {(each.key, text) for each in removed for text in each.texts}

    def forbid(self, other: Entry) -> bool:
        """Whether something is one of them, or says the same word for word."""
        return other.id in self.ids or any((other.key, text) in self._said for text in (other.text, *other.wordings))


def _new_id(entry: Entry, *taken: Collection[str]) -> str:
    """Made of what it says, so that it means nothing else when an entry has gone."""
    digest = sha256(json.dumps([*entry.key, entry.text]).encode()).hexdigest()
    prefix = "M" if isinstance(entry, RememberedLesson) else "Q"
    names = (prefix + digest[:length] for length in range(ID_DIGITS, len(digest) + 1))
    return next(each for each in names if not any(each in ids for ids in taken))


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
