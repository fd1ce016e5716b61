"""The lesson memory: every lesson once, found again by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..prompts.lessons import Lesson, LessonStatus
from .embedders import Embedder, NeighbourIndex, blocking_similarity

MOST_OPPOSED = 3
"""Lessons, or parts of a prompt, that are looked at for whether they order the opposite of a lesson."""


class LessonMemory:
    """Lessons in the order they came, with the embeddings of their sentences."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the embedder. Lessons nearer than its measured threshold are shown to the deduplicator together."""
        self._embedder = embedder
        self._at_least = blocking_similarity(embedder.name)
        self._lessons: dict[str, Lesson] = {}
        self._recalled: dict[str, Lesson] = {}
        self._indexes: dict[tuple[str, str], NeighbourIndex] = {}
        """Indexes by direction and dimension: no lesson of another dimension is ever near."""
        self._embedded: tuple[str, NDArray[np.float32]] | None = None
        """The last text with its vector: it is looked up before it is added."""
        self._in_prompt: dict[str, str] = {}
        """Lessons in the prompt, with the words that they had when they were accepted."""

    def __len__(self) -> int:
        return len(self._lessons)

    @property
    def lessons(self) -> list[Lesson]:
        """All lessons, in the order they came."""
        return list(self._lessons.values())

    @property
    def learned(self) -> list[Lesson]:
        """Lessons that this run made or changed: all but the recalled lessons that it left as they were."""
        return [lesson for lesson in self.lessons if self._recalled.get(lesson.id) != lesson]

    def is_recalled(self, lesson: Lesson) -> bool:
        """Whether a lesson came from another run's memory."""
        return lesson.id in self._recalled

    def recall(self, lesson: Lesson) -> None:
        """Know a lesson that another run has learned, or that people removed."""
        self._recalled[lesson.id] = self.add(lesson)

    def forget(self, lesson_id: str) -> None:
        """Know a lesson no more."""
        gone = self._lessons.pop(lesson_id)
        self._in_prompt.pop(lesson_id, None)
        self._indexes[gone.direction, gone.dimension].remove(lesson_id)

    def get(self, lesson_id: str) -> Lesson:
        """The lesson with this id. Raises KeyError where there is none."""
        return self._lessons[lesson_id]

    def nearest(self, lesson: Lesson, k: int = 10) -> list[Lesson]:
        """Lessons that may say the same: near in meaning, of the same dimension and direction.

        A rule that makes the judge stricter and one that makes it more lenient are never the same lesson, however
        alike their words are; measured, opposites have higher cosines than paraphrases. A requirement's own words that
        gained nothing are left out: a note-taker's other words for it are not the same.
        """

        def may_be_it(known: Lesson) -> bool:
            return not (known.requirement and known.is_closed) or known.status == "removed"

        return self._near(lesson, lesson.direction, k, may_be_it)

    def opposed(self, lesson: Lesson) -> list[Lesson]:
        """Lessons that may order the opposite: near in meaning, of the same dimension and the other direction."""
        other = "more lenient" if lesson.direction == "stricter" else "stricter"
        return self._near(lesson, other, MOST_OPPOSED, lambda known: known.status != "removed")

    def like(self, lesson: Lesson, texts: Sequence[str]) -> list[int]:
        """Places of the texts that are near a lesson in meaning, the nearest first; from 0."""
        if not texts:
            return []
        near = self._embedder.embed(texts) @ self._vector(lesson.text)
        ordered = sorted(range(len(texts)), key=lambda place: -float(near[place]))
        return [place for place in ordered if near[place] >= self._at_least][:MOST_OPPOSED]

    def _near(self, lesson: Lesson, direction: str, k: int, fits: Callable[[Lesson], bool]) -> list[Lesson]:
        """Lessons of a direction that are near in meaning and of the same dimension, the nearest first."""
        index = self._indexes.get((direction, lesson.dimension))
        if index is None:
            return []
        found = index.search(self._vector(lesson.text), k, self._at_least, lambda each: fits(self._lessons[each]))
        return [self._lessons[each] for each in found]

    def _vector(self, text: str) -> NDArray[np.float32]:
        if self._embedded is None or self._embedded[0] != text:
            self._embedded = text, self._embedder.embed([text])[0]
        return self._embedded[1]

    def add(self, lesson: Lesson) -> Lesson:
        """Keep a lesson that is new."""
        key = lesson.direction, lesson.dimension
        vector = self._vector(lesson.text)
        if key not in self._indexes:
            self._indexes[key] = NeighbourIndex(len(vector))
        self._indexes[key].add(lesson.id, vector)
        self._lessons[lesson.id] = lesson
        if lesson.status == "applied":
            self._in_prompt[lesson.id] = lesson.text
        return lesson

    def merge(self, known: str, new: Lesson, text: str | None = None) -> Lesson:
        """Give a known lesson the evidence of a new one, and new words where ``text`` is given.

        The lesson is then open again, unless it is applied and keeps its words: then the prompt says it already. One
        that was rejected or retired comes back only with evidence that it did not have.
        """
        lesson = self._lessons[known]
        if lesson.is_closed and set(new.evidence) <= set(lesson.evidence):
            return lesson
        same_words = text is None or text == lesson.text
        update: dict[str, object] = {"evidence": tuple(dict.fromkeys(lesson.evidence + new.evidence))}
        if lesson.status != "applied" or not same_words:
            update |= {"status": "merged", "reason": None}
        merged = lesson.model_copy(update=update)
        if same_words:
            self._lessons[known] = merged
            return merged
        self._indexes[lesson.direction, lesson.dimension].remove(known)
        return self.add(merged.model_copy(update={"text": text}))

    def mark(self, lesson_ids: Iterable[str], status: LessonStatus, reason: str | None = None) -> None:
        """Set the status of lessons, with the reason."""
        for lesson_id in lesson_ids:
            update = {"status": status, "reason": reason}
            lesson = self._lessons[lesson_id] = self._lessons[lesson_id].model_copy(update=update)
            if status == "applied":
                self._in_prompt[lesson_id] = lesson.text
            elif lesson.is_closed:
                self._in_prompt.pop(lesson_id, None)

    def reject(self, lesson_ids: Iterable[str], reason: str) -> None:
        """Give lessons up, with the reason; one that stands in the prompt stays, in the words that it has there."""
        for lesson_id in lesson_ids:
            lesson, words = self._lessons[lesson_id], self._in_prompt.get(lesson_id)
            if words is None:
                self.mark([lesson_id], "rejected", reason)
            elif words != lesson.text:
                self._indexes[lesson.direction, lesson.dimension].remove(lesson_id)
                self.add(lesson.model_copy(update={"text": words}))
                self.mark([lesson_id], "applied", f'it stands in the prompt; "{lesson.text}" was given up: {reason}')

    def words_in_prompt(self, lesson_id: str) -> str:
        """The words in which a lesson was accepted, else its present words."""
        return self._in_prompt.get(lesson_id, self._lessons[lesson_id].text)

    def put_off(self, lesson_ids: Iterable[str], reason: str) -> None:
        """Say why lessons could not be tried; they stay as open as they are."""
        for lesson_id in lesson_ids:
            self.mark([lesson_id], self._lessons[lesson_id].status, reason)
