"""The lesson memory of a run, which keeps every lesson once and finds lessons by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..prompts.lessons import Lesson, LessonStatus
from .embedders import Embedder, NeighbourIndex, blocking_similarity

MOST_OPPOSED = 3
"""Most lessons, or parts of a prompt, that are checked for ordering the opposite of a lesson."""


class LessonMemory:
    """Lessons in the order in which they came, with their embeddings."""

    def __init__(self, embedder: Embedder) -> None:
        """Start empty. The embedder's measured threshold decides which lessons count as near."""
        self._embedder = embedder
        self._at_least = blocking_similarity(embedder.name)
        self._lessons: dict[str, Lesson] = {}
        self._recalled: dict[str, Lesson] = {}
        self._indexes: dict[tuple[str, str], NeighbourIndex] = {}
        """Indexes by direction and dimension, because lessons of different dimensions are never compared."""
        self._embedded: tuple[str, NDArray[np.float32]] | None = None
        """The last text with its vector, because a lesson is looked up and then added."""
        self._in_prompt: dict[str, str] = {}
        """Words of the lessons in the prompt, as they were accepted, by id."""

    def __len__(self) -> int:
        return len(self._lessons)

    @property
    def lessons(self) -> list[Lesson]:
        """All lessons, in the order in which they came."""
        return list(self._lessons.values())

    @property
    def learned(self) -> list[Lesson]:
        """Lessons that this run made or changed, without recalled lessons that it did not change."""
        return [lesson for lesson in self.lessons if self._recalled.get(lesson.id) != lesson]

    def is_recalled(self, lesson: Lesson) -> bool:
        """Return whether a lesson came from another run's memory."""
        return lesson.id in self._recalled

    def recall(self, lesson: Lesson) -> None:
        """Add a lesson that another run has learned, or that people removed."""
        self._recalled[lesson.id] = self.add(lesson)

    def forget(self, lesson_id: str) -> None:
        """Remove a lesson."""
        gone = self._lessons.pop(lesson_id)
        self._in_prompt.pop(lesson_id, None)
        self._indexes[gone.direction, gone.dimension].remove(lesson_id)

    def get(self, lesson_id: str) -> Lesson:
        """Return the lesson with this id. Raises KeyError if there is none."""
        return self._lessons[lesson_id]

    def nearest(self, lesson: Lesson, k: int = 10) -> list[Lesson]:
        """Return up to ``k`` lessons that may say the same: near in meaning, of the same dimension and direction.

        A stricter rule and a more lenient rule are never the same lesson, even with similar words: measured, opposites
        have higher cosines than paraphrases. Stated requirements that gained nothing are left out, unless people
        removed them.
        """

        # A note-taker's words for a requirement are another lesson than the requirement's own words, which gained
        # nothing.
        def may_be_it(known: Lesson) -> bool:
            return not (known.requirement and known.is_closed) or known.status == "removed"

        return self._near(lesson, lesson.direction, k, may_be_it)

    def opposed(self, lesson: Lesson) -> list[Lesson]:
        """Return up to ``MOST_OPPOSED`` lessons that may order the opposite: near in meaning, same dimension, other
        direction."""
        other = "more lenient" if lesson.direction == "stricter" else "stricter"
        return self._near(lesson, other, MOST_OPPOSED, lambda known: known.status != "removed")

    def like(self, lesson: Lesson, texts: Sequence[str]) -> list[int]:
        """Return the positions, from 0, of up to ``MOST_OPPOSED`` texts near a lesson in meaning, the nearest first."""
        if not texts:
            return []
        near = self._embedder.embed(texts) @ self._vector(lesson.text)
        ordered = sorted(range(len(texts)), key=lambda place: -float(near[place]))
        return [place for place in ordered if near[place] >= self._at_least][:MOST_OPPOSED]

    def _near(self, lesson: Lesson, direction: str, k: int, fits: Callable[[Lesson], bool]) -> list[Lesson]:
        """Return near lessons of a direction and the same dimension, the nearest first."""
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
        """Add a new lesson, and return it."""
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
        """Add the evidence of a new lesson to a known lesson, and give it new words if there is a ``text``.

        The lesson is then open again, unless it is applied and keeps its words: then the prompt already says it. A
        rejected or retired lesson is opened again only by new evidence.
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
        """Reject lessons, with the reason. A lesson that is in the prompt stays applied, in the words of the prompt."""
        for lesson_id in lesson_ids:
            lesson, words = self._lessons[lesson_id], self._in_prompt.get(lesson_id)
            if words is None:
                self.mark([lesson_id], "rejected", reason)
            elif words != lesson.text:
                self._indexes[lesson.direction, lesson.dimension].remove(lesson_id)
                self.add(lesson.model_copy(update={"text": words}))
                self.mark([lesson_id], "applied", f'it stands in the prompt; "{lesson.text}" was given up: {reason}')

    def words_in_prompt(self, lesson_id: str) -> str:
        """Return the words in which a lesson was accepted, else its present words."""
        return self._in_prompt.get(lesson_id, self._lessons[lesson_id].text)

    def put_off(self, lesson_ids: Iterable[str], reason: str) -> None:
        """Record why lessons could not be tried. Their status stays the same."""
        for lesson_id in lesson_ids:
            self.mark([lesson_id], self._lessons[lesson_id].status, reason)
