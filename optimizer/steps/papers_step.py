"""The papers' loop, to compare with: BinEval's Algorithm 1 (App. C) as App. B runs it, line by line.

The loop has no trial, no test, no second look and no memory beyond an iteration. Every disagreement is read, the
lessons go into the prompt, and the version stays unless the held-out figure falls. Only the guards without which
nothing works are ours: placeholders, protected text and answer format survive, and forbidden lessons are refused. The
numbers beside the code are the lines of Algorithm 1; ``docs/explanation/method.md`` has the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...agents.lesson_checks import Deduplicator
from ...agents.note_takers import MOST_LESSONS, Case, FreeNoteTaker
from ...models.base import CallError, Model
from ...prompts.lessons import Disagreement, Edit, Lesson
from ...prompts.prompt import Prompt
from ..contest import WritesQuestions, edited
from ..events import DisagreementsFound, LessonKept, LessonLearned, NoteFailed, ReasonsGiven, answer_or_none
from ..mode import LoopRound, RunContext, Turn
from ..signals import Reasons, Signal
from ..subject import Observation
from .edits import edit_writer
from .lessons import BATCH, last_number, read_all, task_of


@dataclass
class PapersStep:
    """One iteration of the papers' loop. It ends the run where the held-out figure falls."""

    context: RunContext
    signal: Signal
    helper: Model
    """Takes the roles that have no model of their own."""
    again: WritesQuestions | None
    """Writes the questions anew from each new prompt. None where they stay."""

    def __post_init__(self) -> None:
        """Make the agents; nothing is asked yet."""
        context, options = self.context, self.context.job.options
        gateway, seed = context.gateway, options.seed
        self._options, self._events = options, context.events
        self._note_taker = FreeNoteTaker(gateway, context.helper("note_taker", self.helper), seed=seed)
        self._deduplicator = Deduplicator(gateway, context.helper("deduplicator", self.helper), seed=seed)
        self._writer = edit_writer(context, self.helper, options.max_prompt_chars, free=True)
        self._count = last_number(context.memory)
        """Highest number that a lesson has had."""

    async def take(self, now: LoopRound) -> Turn:
        """Read every disagreement (lines 12-18), make the lessons unique (19-29), and update the prompt (30-33)."""
        best, number, signal, seen = now.best, now.number, self.signal, now.seen
        found = signal.disagreements(best.draft, seen)  # 12-13
        self._events.emit(DisagreementsFound(number, len(found), len(seen.verdicts), found))
        if not found:
            return Turn(best, "no_disagreements")
        reasons = await signal.reasons(best.draft, seen, found)
        self._events.emit(ReasonsGiven(reasons.mine, reasons.theirs))
        drawn = await self._notes(seen, found, reasons)  # 15-18
        if drawn is None:
            return Turn(best, "notes_failed")
        unique = await self._unique(drawn)  # 19-29
        kept = sorted(unique, key=lambda each: -each.support)[: self._options.max_lessons]  # App. B: up to 10
        for lesson in unique:
            self.context.memory.add(lesson)
            self._events.emit(LessonLearned(lesson))
        self._mark([each for each in unique if each not in kept], f"not among the {self._options.max_lessons} retained")
        edits = await self._update(best.prompt, kept)  # 30-33, or App. B, step 4
        if not edits:
            return Turn(best, "no_edit")
        draft = edited(best.draft, edits)
        if self.again is not None:  # App. B, step 5
            draft = await self.again.propose(draft, number) or draft
        winner = await now.contest.challenge(best, edits, number, draft)  # App. B, early stopping
        decision_reason = now.contest.tried[-1].reason
        held = [self.context.memory.get(name) for edit in edits for name in edit.lessons]
        if winner is best:
            self._mark(held, decision_reason)
            return Turn(best, "figure_fell")
        self.context.memory.mark([each.id for each in held], "applied", decision_reason)
        return Turn(winner)

    async def _notes(self, seen: Observation, found: Sequence[Disagreement], reasons: Reasons) -> list[Lesson] | None:
        """Return L_all: the lessons of all examples with a disagreement. One call reads an example or a batch. None if
        all calls failed."""
        by_id = {each.id: each for each in seen.examples}
        cases: dict[str, list[Case]] = {name: [] for name in by_id}
        for each in found:
            question = seen.question(each.example, each.question)
            cases[each.example].append(Case(each, by_id[each.example], question, reasons.said(each.key)))
        disputed = [of_example for of_example in cases.values() if of_example]
        size = BATCH if self._options.notes == "batched" else 1
        batches = [disputed[start : start + size] for start in range(0, len(disputed), size)]
        ids = [f"L{self._count + 1 + number}" for number in range(MOST_LESSONS * size * len(batches))]
        self._count += len(ids)
        task, each_ids = task_of(self.context.job.checklist), MOST_LESSONS * size
        works = [(batch, ids[number * each_ids :][: MOST_LESSONS * len(batch)]) for number, batch in enumerate(batches)]
        self._events.phase("taking notes", len(disputed))
        answered = await read_all(
            works, lambda work: self._note_taker.take_notes(task, *work), lambda work: len(work[0]), self._events
        )
        lessons: list[Lesson] = []
        failed = [each for each in answered if isinstance(each, CallError)]
        for batch, answer in zip(batches, answered, strict=True):
            if not isinstance(answer, CallError):
                lessons += answer
                continue
            if answer.fatal:
                raise answer
            for case in (case for cases in batch for case in cases):
                self._events.emit(NoteFailed(case.disagreement.key, str(answer)))
        if len(failed) == len(answered):
            await self.context.forget_replies(failed)
            return None
        return lessons

    async def _unique(self, drawn: Sequence[Lesson]) -> list[Lesson]:
        """Return L_unique: each lesson is compared with all in the memory M, which is empty at the start of an
        iteration."""
        self._events.phase("comparing lessons", len(drawn))
        memory: list[Lesson] = []
        for number, lesson in enumerate(drawn, 1):
            compared = self._deduplicator.compare(lesson, memory, free=True)  # line 21
            otherwise = f"lesson {lesson.id} was not compared and is kept as new"
            relation, known = await answer_or_none(compared, otherwise, self._events) or (None, None)
            kept = lesson
            if known is None or relation is None:
                memory.append(lesson)  # 26
            else:  # 22-23
                update: dict[str, object] = {"evidence": tuple(dict.fromkeys(known.evidence + lesson.evidence))}
                if relation.relation == "merge":
                    update["text"] = " ".join(relation.merged.split())
                kept = known.model_copy(update=update)
                memory[memory.index(known)] = kept
            how = relation.relation if relation is not None else "new"
            self._events.emit(LessonKept(lesson.id, lesson.text, lesson.evidence, how, kept.id, kept.text))
            self._events.advance(number, len(drawn))
        return memory

    async def _update(self, prompt: Prompt, lessons: Sequence[Lesson]) -> tuple[Edit, ...]:
        """Return one edit per lesson, each for the prompt after the edit before; or one rewrite with all lessons."""
        batches = [list(lessons)] if self._options.update == "rewrite" else [[each] for each in lessons]
        edits: list[Edit] = []
        for batch in batches:
            written = await self._writer.write(prompt, batch, ())
            for edit in written.edits:
                prompt = prompt.apply(edit)
                edits.append(edit)
            self._mark(
                [self.context.memory.get(name) for name in written.refused], "no edit that keeps the prompt whole"
            )
        return tuple(edits)

    def _mark(self, lessons: Sequence[Lesson], reason: str) -> None:
        self.context.memory.mark([each.id for each in lessons], "rejected", reason)
