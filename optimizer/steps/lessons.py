"""From disagreements to lessons in the memory: note-taker, then deduplicator (Algorithm 1, lines 12-26).

A disagreement is made a case, which may be shown beside an example on which both sides gave the answer that is wrong
here; a lesson that is drawn from it is new, or further evidence of one that is there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ...agents.lesson_checks import ContradictionFinder, Deduplicator, LessonClassifier, Relation
from ...agents.note_takers import BatchNoteTaker
from ...agents.notes import Case, TakesNotes
from ...memory.lesson_memory import LessonMemory
from ...models.base import CallError, ModelError
from ...prompts.checklist import Checklist
from ...prompts.examples import Example
from ...prompts.lessons import Disagreement, Lesson
from ...prompts.verdicts import Verdict
from ..events import LessonKept, LessonLearned, LessonRetired, NoteFailed, Teller, answer_or_none
from ..signals import Reasons, Signal
from ..subject import Draft, Observation
from ..trial import agreed


def find_contrast(
    disagreement: Disagreement,
    seen: Observation,
    reference: Callable[[str, str], float | None],
    *,
    answer: bool | None = None,
    is_like: Callable[[Verdict], bool] = lambda verdict: True,
) -> Example | None:
    """An example beside which a disagreement shows what decides; None where there is none.

    Args:
        disagreement: Where the target is wrong.
        seen: The target's verdicts, and the examples they are about.
        reference: How likely the good answer should be for an example id and a question id; None where that is not
            known.
        answer: The answer that has to be right there; by default the one that the target wrongly gave.
        is_like: Whether the distance of a verdict from its reference says something.

    Returns:
        Of the examples on which target and reference agree on that answer to the same question, the one whose output
        is nearest in length, so that length is not what separates the two.
    """
    wanted_answer = disagreement.target if answer is None else answer
    question = seen.polarity(disagreement.example, disagreement.question)
    by_id = {example.id: example for example in seen.examples}
    right = []
    for verdict in seen.verdicts:
        if verdict.question != disagreement.question or verdict.example == disagreement.example or verdict.replicate:
            continue
        wanted = reference(verdict.example, verdict.question)
        if verdict.answer is not wanted_answer or wanted is None or verdict.p_yes is None:
            continue
        if agreed(verdict, wanted, question, is_like=is_like(verdict)):
            right.append(by_id[verdict.example])
    length = len(by_id[disagreement.example].output or "")
    return min(right, key=lambda other: (abs(len(other.output or "") - length), other.id), default=None)


BATCH = 4
"""Disagreements in a batch."""


def task_of(checklist: Checklist | None) -> str:
    """Return the task in a note-taker's eyes, where the checklist may not name one."""
    return (checklist.task if checklist is not None else "") or "Follow the instruction."


@dataclass
class LessonDesk:
    """Takes notes and keeps the memory free of repeats and of contradictions."""

    note_taker: TakesNotes
    deduplicator: Deduplicator
    memory: LessonMemory
    events: Teller
    signal: Signal
    contrast: bool = False
    """Whether a case on which both sides agree, as the signal has it, is shown beside each disagreement."""
    classifier: LessonClassifier | None = None
    """Tells lessons that no prompt can carry; None where all are taken for promptable."""
    contradictions: ContradictionFinder | None = None
    """Tells lessons that order opposite things; None where nobody looks."""
    batches: BatchNoteTaker | None = None
    """Takes the notes instead of ``note_taker`` where they are taken in batches."""
    failed: dict[str, CallError] = field(default_factory=dict, init=False)
    """Disagreements that were to be read last, and of which there is no note, by key."""
    has_notes: bool = field(default=False, init=False)
    """Whether any note could be had so far."""
    _count: int = field(default=0, init=False)
    """Disagreements that were read so far."""

    def __post_init__(self) -> None:
        """Ids go on from those of the lessons that are there already."""
        self._count = last_number(self.memory)

    async def learn(
        self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement], reasons: Reasons
    ) -> list[Lesson]:
        """Draw lessons from disagreements; returns those that are new or have changed, best supported first.

        A note that cannot be used is left out and said so.
        """
        self.events.phase("taking notes", len(disagreements))
        asked = [(seen.question(each.example, each.question), each.target) for each in disagreements]
        strict, lenient = (
            {question.id: question for question, target in asked if question.is_good(target) is side}
            for side in (True, False)
        )
        await self.note_taker.prepare(strict.values(), lenient.values())
        notes = await self._notes(draft, seen, disagreements, reasons)
        touched: dict[str, None] = {}
        for lesson in notes:
            if (kept := await self._remember(lesson)) is not None:
                touched[kept] = None
        lessons = [lesson for lesson in map(self.memory.get, touched) if not lesson.is_closed]
        for lesson in lessons:
            self.events.emit(LessonLearned(lesson))
        return sorted(lessons, key=lambda each: -each.support)

    async def _notes(
        self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement], reasons: Reasons
    ) -> list[Lesson]:
        """The notes that can be used, in the order of the disagreements; all are asked for at once."""
        cases = [self._case(draft, seen, each, reasons) for each in disagreements]
        works = [_Work((each,), f"L{self._count + number}") for number, each in enumerate(cases, 1)]
        if self.batches is not None:
            works = list(_batches(cases, BATCH, self._count))
        self._count += len(disagreements)
        done = 0

        async def note(work: _Work) -> list[Lesson]:
            nonlocal done
            lessons = await self._one(work)
            done += len(work.cases)
            self.events.advance(done, len(disagreements))
            return lessons

        found = await asyncio.gather(*map(note, works), return_exceptions=True)  # a call under way is paid for
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, CallError):
                raise each
        lessons: list[Lesson] = []
        self.failed = {}
        for work, each in zip(works, found, strict=True):  # events in the order of the work, however they came
            if isinstance(each, CallError):
                if each.fatal:
                    raise each
                for case in work.cases:
                    self.failed[case.disagreement.key] = each
                    self.events.emit(NoteFailed(case.disagreement.key, str(each), isinstance(each, ModelError)))
            elif not isinstance(each, BaseException):
                self.has_notes = True
                lessons += each
        return lessons

    def _case(self, draft: Draft, seen: Observation, disagreement: Disagreement, reasons: Reasons) -> Case:
        example = next(each for each in seen.examples if each.id == disagreement.example)
        contrast = None
        if self.contrast:
            question = seen.polarity(disagreement.example, disagreement.question)
            failed = not question.is_good(disagreement.target)
            right = question.p_good(disagreement.reference_p_yes) == 1.0
            answer = question.is_good(True) if failed and right else None
            known = partial(self.signal.reference, draft)
            contrast = find_contrast(disagreement, seen, known, answer=answer, is_like=self.signal.is_like)
        key = disagreement.key
        said = {"target": reasons.mine.get(key, ""), "reference": reasons.theirs.get(key, "")}
        return Case(disagreement, example, seen.question(disagreement.example, disagreement.question), said, contrast)

    async def _one(self, work: _Work) -> list[Lesson]:
        if self.batches is not None:
            return await self.batches.take_notes(work.cases, [f"{work.lesson_id}{letter}" for letter in "abc"])
        return [await self.note_taker.take_note(work.cases[0], work.lesson_id)]

    async def _remember(self, lesson: Lesson) -> str | None:
        """Add a lesson to the memory, or its evidence to one that is there; returns the id it is under.

        None where people have removed what it says.
        """
        otherwise = f"lesson {lesson.id} was not compared and is kept as new"
        compared = await answer_or_none(self._compare(lesson), otherwise, self.events)
        relation, known = compared or (None, None)
        if known is not None and known.status == "removed":
            for key in lesson.evidence:
                self.events.emit(NoteFailed(key, f"people removed what it says from the memory ({known.id})"))
            return None
        if known is None or relation is None:
            kept = self.memory.add(await self._classified(lesson))
        elif relation.relation == "merge":
            kept = self.memory.merge(known.id, lesson, " ".join(relation.merged.split()))
        else:
            kept = self.memory.merge(known.id, lesson)
        self.events.emit(
            LessonKept(
                lesson.id,
                lesson.text,
                lesson.evidence,
                relation.relation if relation else "new",
                kept.id,
                kept.text,
            )
        )
        return kept.id

    async def _compare(self, lesson: Lesson) -> tuple[Relation, Lesson | None]:
        """The same words are the same lesson without a call; otherwise the deduplicator decides."""
        neighbours = self.memory.nearest(lesson)
        for known in neighbours:
            if known.text == lesson.text:
                return Relation(relation="duplicate", of=1, merged=""), known
        return await self.deduplicator.compare(lesson, neighbours)

    async def _classified(self, lesson: Lesson) -> Lesson:
        """The lesson with its class; where the classifier cannot tell it is tried like any other."""
        if self.classifier is None:
            return lesson
        otherwise = f"lesson {lesson.id} was not classified and is taken for promptable"
        found = await answer_or_none(self.classifier.classify(lesson), otherwise, self.events)
        if found is None:
            return lesson
        return lesson.model_copy(update={"kind": found.kind, "kind_reason": found.reason})

    async def resolve(
        self, lessons: Sequence[str], strength: Callable[[str], tuple[float, ...]], overwritten: Collection[str] = ()
    ) -> set[str]:
        """Of lessons that order opposite things, retire the weaker one; returns those that were retired.

        Only lessons that are about to be written into the prompt, or are in it, are compared, and a model decides
        whether two of them contradict each other: it is asked late because a small one sees contradictions everywhere.

        Args:
            lessons: Ids of those that are about to be written, the strongest first.
            strength: What speaks for a lesson, largest first; one that is in the prompt already has passed the acceptance test
                and does not give way.
            overwritten: Ids of lessons whose lines the new edits take out: the acceptance test decides between them.

        Raises:
            ModelError: An endpoint refuses every call.
        """
        retired: set[str] = set()
        asked: set[frozenset[str]] = set()
        if self.contradictions is None:
            return retired
        for lesson_id in lessons:
            for other in self.memory.opposed(self.memory.get(lesson_id)):
                stands = other.status == "applied" and other.id not in overwritten
                competes = stands or other.id in lessons
                pair = frozenset((lesson_id, other.id))
                if not competes or pair & retired or pair in asked:
                    continue
                asked.add(pair)
                compared = self.contradictions.compare(self.memory.get(lesson_id), other)
                otherwise = f"lessons {lesson_id} and {other.id} were not compared"
                found = await answer_or_none(compared, otherwise, self.events)
                if found is None or not found.contradicts:
                    continue
                weaker, stronger = sorted((other.id, lesson_id), key=strength)  # of equals the first stays
                stays = "for which more speaks" if strength(weaker) < strength(stronger) else "which came first"
                if other.status == "applied":
                    weaker, stronger, stays = lesson_id, other.id, "which stands in the prompt"
                why = f"it contradicts {stronger}, {stays} ({found.reason})"
                self.memory.mark([weaker], "retired", why)
                self.events.emit(LessonRetired(weaker, why))
                retired.add(weaker)
        return retired


def last_number(memory: LessonMemory) -> int:
    """The highest number of a lesson that is there already; 0 where there is none."""
    taken = [re.match(r"L(\d+)", each.id) for each in memory.lessons]
    return max((int(each[1]) for each in taken if each), default=0)


@dataclass(frozen=True)
class _Work:
    """Cases that are read in one call."""

    cases: tuple[Case, ...]
    lesson_id: str


def _batches(cases: Sequence[Case], size: int, count: int) -> Iterable[_Work]:
    """Cases on the same question and of the same direction, so many at a time."""
    groups: dict[tuple[str, bool], list[Case]] = {}
    for each in cases:
        groups.setdefault((each.question.id, each.disagreement.target), []).append(each)
    number = count
    for group in groups.values():
        for start in range(0, len(group), size):
            number += 1
            yield _Work(tuple(group[start : start + size]), f"L{number}")
