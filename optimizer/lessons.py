"""From disagreements to lessons in the memory: note-taker, then deduplicator (Algorithm 1, lines 12-26)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..agents.deduplicator import Relation
from ..models.base import ModelError
from ..models.structured import ParseError
from ..prompts.lessons import Lesson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..agents.deduplicator import Deduplicator
    from ..agents.note_taker import NoteTaker
    from ..memory.journal import Journal
    from ..memory.lesson_memory import LessonMemory
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.lessons import Disagreement
    from .progress import Watcher


class LessonDesk:
    """Takes notes and keeps the memory free of repeats."""

    def __init__(
        self,
        note_taker: NoteTaker,
        deduplicator: Deduplicator,
        memory: LessonMemory,
        checklist: Checklist,
        examples: Mapping[str, Example],
        journal: Journal,
        watcher: Watcher,
    ) -> None:
        """``examples`` are the development examples by id."""
        self.memory = memory
        self._note_taker = note_taker
        self._deduplicator = deduplicator
        self._checklist = checklist
        self._examples = examples
        self._journal = journal
        self._watcher = watcher
        self._count = 0

    async def learn(
        self,
        disagreements: Sequence[Disagreement],
        target_reasons: Mapping[str, str],
        reference_reasons: Mapping[str, str],
    ) -> list[Lesson]:
        """Draw lessons from disagreements; returns those that are new or have changed, in the order they came.

        A note that cannot be used is left out and said so.
        """
        self._watcher.phase("taking notes", len(disagreements))
        disputed = dict.fromkeys(each.question for each in disagreements if each.target)
        await self._note_taker.prepare(self._checklist.question(name) for name in disputed)
        done = 0

        async def note(disagreement: Disagreement, lesson_id: str) -> Lesson | None:
            nonlocal done
            lesson = await self._note(disagreement, target_reasons, reference_reasons, lesson_id)
            done += 1
            self._watcher.advance(done, len(disagreements))
            return lesson

        first = self._count + 1
        self._count += len(disagreements)
        works = (note(each, f"L{number}") for number, each in enumerate(disagreements, first))
        notes = await asyncio.gather(*works, return_exceptions=True)  # a call under way is paid for: let it end
        touched: dict[str, None] = {}
        for lesson in notes:
            if isinstance(lesson, BaseException):
                raise lesson
        for lesson in notes:
            if isinstance(lesson, Lesson):
                touched[await self._remember(lesson)] = None
        return [self.memory.get(lesson_id) for lesson_id in touched]

    async def _note(
        self,
        disagreement: Disagreement,
        target_reasons: Mapping[str, str],
        reference_reasons: Mapping[str, str],
        lesson_id: str,
    ) -> Lesson | None:
        key = disagreement.key
        reasons = {"target": target_reasons.get(key, ""), "reference": reference_reasons.get(key, "")}
        question = self._checklist.question(disagreement.question)
        example = self._examples[disagreement.example]
        try:
            return await self._note_taker.take_note(disagreement, example, question, reasons, lesson_id)
        except (ParseError, ModelError) as error:
            if isinstance(error, ModelError) and error.fatal:
                raise
            self._watcher.say(f"no note on {key}: {error}")
            return None

    async def _remember(self, lesson: Lesson) -> str:
        """Add a lesson to the memory, or its evidence to one that is there; returns the id it is under."""
        try:
            relation, known = await self._compare(lesson)
        except (ParseError, ModelError) as error:
            if isinstance(error, ModelError) and error.fatal:
                raise
            self._watcher.say(f"lesson {lesson.id} was not compared and is kept as new: {error}")
            relation, known = None, None
        if known is None or relation is None:
            kept = self.memory.add(lesson)
        elif relation.relation == "merge":
            kept = self.memory.merge(known.id, lesson, " ".join(relation.merged.split()))
        else:
            kept = self.memory.merge(known.id, lesson)
        self._journal.write(
            "lesson",
            id=lesson.id,
            text=lesson.text,
            evidence=list(lesson.evidence),
            relation=relation.relation if relation else "new",
            kept_as=kept.id,
            kept_text=kept.text,
        )
        return kept.id

    async def _compare(self, lesson: Lesson) -> tuple[Relation, Lesson | None]:
        """The same words are the same lesson without a call; otherwise the deduplicator decides."""
        neighbours = self.memory.nearest(lesson)
        for known in neighbours:
            if known.text == lesson.text:
                return Relation(relation="duplicate", of=1, merged=""), known
        return await self._deduplicator.compare(lesson, neighbours)
