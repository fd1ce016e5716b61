"""Edits of a prompt: one edit per lesson, one edit for all lessons, or plain lines (BinEval §3.3 and App. B).

A line of the prompt that orders the opposite of a lesson is corrected or taken out, since nobody can follow both.
Beyond the papers, failing requirements are first stated as plain lines in their own words. With a 1.5B model, such
lines made outputs meet most requirements that the prompt had left out, and rules written by the model were of no use
(METHOD, part 4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...agents.generator import RequirementWriter, as_it_stands, instruction_of
from ...agents.lesson_checks import ContradictionFinder
from ...agents.updater import Proposal, Rewriter, Updater, last_instruction, make_edit, split_parts
from ...evaluation.scoring import mean_score
from ...memory.lesson_memory import LessonMemory
from ...models.base import CallError, Model
from ...prompts.checklist import Checklist, ComputedCheck, Question
from ...prompts.examples import Example
from ...prompts.formats.several import NamedPart, sections
from ...prompts.lessons import Disagreement, Edit, Lesson
from ...prompts.prompt import Prompt
from ..contest import edited, problem_of
from ..events import EditProposed, EditRefused, RequirementStated, Teller, answer_or_none
from ..mode import LoopRound, RunContext
from ..signals import disputed
from ..subject import Observation, Subject

LEAST_FAILURES = 2
LEAST_SHARE = 0.1
"""Least share of failures, among the development examples that a requirement is asked on, before it is stated."""
LEAST_ASKED = 0.5
"""Least share of the development examples that a requirement is asked on: a wish of a few requests is no line for all.
"""


@dataclass
class WrittenEdits:
    """Edits made from lessons, and the lessons without one."""

    edits: list[Edit] = field(default_factory=list)
    """In the order of the lessons."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why there is no edit, by the id of the lesson."""


@dataclass(frozen=True)
class OpposedParts:
    """Finds the parts of a prompt that order the opposite of a lesson. A model decides about parts near in meaning."""

    finder: ContradictionFinder
    memory: LessonMemory
    events: Teller

    async def find(self, prompt: Prompt, lesson: Lesson) -> list[int]:
        """Return the places of these parts in the prompt, from 0. A failed comparison is reported and finds none."""
        parts, found = [prompt.text[start:end] for start, end in split_parts(prompt)], []
        for place in self.memory.like(lesson, parts):
            otherwise = f"lesson {lesson.id} was not compared with a part of the prompt"
            compared = await answer_or_none(self.finder.compare(lesson, parts[place]), otherwise, self.events)
            if compared is not None and compared.contradicts:
                found.append(place)
        return found


@dataclass(frozen=True)
class EditWriter:
    """Writes lessons into a prompt: one small edit per lesson, or with a rewriter one edit for all lessons."""

    model: Updater | Rewriter
    events: Teller
    opposed: OpposedParts | None = None
    """Finds the parts that a lesson contradicts; None: every lesson is added."""

    async def write(self, prompt: Prompt, lessons: Sequence[Lesson], texts: Sequence[str]) -> WrittenEdits:
        """Return edits of this prompt that can each be applied alone; ``lessons`` come best supported first.

        A lesson without an edit that passes the guards is left out, with an event that gives the reason. Edits may copy
        nothing from ``texts``, the texts of the development examples.
        """
        written = WrittenEdits()
        if isinstance(self.model, Rewriter):
            if lessons:
                self.events.phase("rewriting the prompt", 1)
                against = {place for lesson in lessons for place in await self._against(prompt, lesson)}
                proposal = self.model.propose(prompt, lessons, texts, sorted(against))
                await self._add(proposal, [lesson.id for lesson in lessons], written)
            return written
        self.events.phase("writing edits", len(lessons))
        for number, lesson in enumerate(lessons, 1):
            against_it = await self._against(prompt, lesson)
            await self._add(self.model.propose(prompt, lesson, texts, against_it), [lesson.id], written)
            self.events.advance(number, len(lessons))
        return written

    async def _against(self, prompt: Prompt, lesson: Lesson) -> list[int]:
        return [] if self.opposed is None else await self.opposed.find(prompt, lesson)

    async def _add(self, proposal: Awaitable[Edit], lessons: Sequence[str], written: WrittenEdits) -> None:
        try:
            edit = await proposal
        except CallError as error:
            if error.fatal:
                raise
            self.events.emit(EditRefused(lessons, str(error)))
            written.refused |= dict.fromkeys(lessons, f"no edit: {error}")
            return
        self.events.emit(EditProposed(edit))
        written.edits.append(edit)


def edit_writer(
    context: RunContext,
    helper: Model,
    max_prompt_chars: int | None,
    *,
    opposed: OpposedParts | None = None,
    free: bool = False,
) -> EditWriter:
    """Return the writer for the setting ``update``. A ``free`` writer is for the papers' loop and lacks our rules."""
    kind = Rewriter if context.job.options.update == "rewrite" else Updater
    how: dict[str, Any] = {"max_prompt_chars": max_prompt_chars, "seed": context.job.options.seed, "free": free}
    return EditWriter(kind(context.gateway, context.helper("updater", helper), **how), context.events, opposed)


def add_lines(
    prompt: Prompt,
    lessons: Sequence[Lesson],
    max_chars: int | None,
    events: Teller | None,
    within: tuple[int, int] | None = None,
) -> WrittenEdits:
    """Add lessons to a prompt as bullets, word for word and without a call.

    The bullets go where the prompt lists its instructions, else at its end. Each is an edit that can be applied alone.
    The end is the last line that may be edited and is no label such as "Summary:". So a protected part stays the last,
    and an example's input keeps its label. ``within`` limits the bullets to a span of the text. With ``events`` None no
    event is emitted.
    """
    written = WrittenEdits()
    # a small model follows a short list best at this place
    part = last_instruction(prompt, within)
    for lesson in lessons:
        line = prompt.as_written(lesson.text, ())
        problem = "all of the prompt is protected" if part is None else None
        if line in prompt.text:
            problem = "the prompt says it already, word for word"
        if part is not None and problem is None:
            proposal = Proposal.model_construct(part=1, action="add", text=line)
            edit = make_edit(prompt, part, proposal, lesson.id)
            problem = problem_of(prompt, edit, max_chars)
            if problem is None:
                if events is not None:
                    events.emit(EditProposed(edit))
                written.edits.append(edit)
                continue
        if events is not None:
            events.emit(EditRefused([lesson.id], str(problem)))
        written.refused[lesson.id] = f"no edit: {problem}"
    return written


@dataclass(frozen=True)
class PlainLines:
    """Turns failing requirements into lessons, at most one call each."""

    writer: RequirementWriter
    """Asked where a rule cannot turn the requirement into an order."""
    checklist: Checklist | None
    """The questions that are asked of every example. Questions of a single example are never stated."""
    memory: LessonMemory
    events: Teller

    async def learn(
        self, seen: Observation, failures: Sequence[Disagreement], waiting: Collection[str]
    ) -> list[Lesson]:
        """Return lessons from requirements to try now, the most frequent failures on development first. Each is tried
        once in a run. ``waiting`` are ids of lessons whose edits wait."""
        by_question: dict[str, list[Disagreement]] = {}
        for each in failures:
            by_question.setdefault(each.question, []).append(each)
        lessons = []
        for name, failed in sorted(by_question.items(), key=lambda item: -len(item[1])):
            requirement = seen.question(failed[0].example, name)
            known = next((each for each in self.memory.lessons if each.requirement == name), None)
            if known is not None:
                if known.status == "new" and known.id not in waiting:
                    lessons.append(known)
            elif self._is_for_all(requirement) and _fails_often(name, failed, seen):
                lessons.append(await self._state(requirement, failed, seen))
        return lessons

    def _is_for_all(self, requirement: Question) -> bool:
        return isinstance(requirement, ComputedCheck) or self._is_shared(requirement)

    def _is_shared(self, requirement: Question) -> bool:
        return self.checklist is not None and any(each.id == requirement.id for each in self.checklist.questions)

    async def _state(self, requirement: Question, failed: Sequence[Disagreement], seen: Observation) -> Lesson:
        # a checker's reasons, each once, in the order of the failures
        said = dict.fromkeys(each.explanation for each in disputed(seen, failed) if each.explanation)
        text, word_source = await self._line(requirement, list(said))
        number = sum(each.requirement is not None for each in self.memory.lessons) + 1
        lesson = self.memory.add(
            Lesson(
                id=f"R{number}",
                text=text,
                direction="stricter",
                dimension=requirement.dimension,
                evidence=tuple(each.key for each in failed),
                requirement=requirement.id,
            )
        )
        self.events.emit(RequirementStated(lesson, word_source))
        return lesson

    async def _line(
        self, requirement: Question, reasons: Sequence[str]
    ) -> tuple[str, Literal["words", "model", "quotation"]]:
        is_check = isinstance(requirement, ComputedCheck) and not self._is_shared(requirement)
        check = requirement.id if is_check else None
        return await line_of(self.writer, requirement, check, reasons, self.events)


async def line_of(
    writer: RequirementWriter, requirement: Question, check: str | None, reasons: Sequence[str], events: Teller
) -> tuple[str, Literal["words", "model", "quotation"]]:
    """Return a requirement as an order, and the source of the words: turned round by a rule, a model's, or quoted.
    ``check`` is the name of a check without a question. ``reasons`` are a checker's reasons for failed outputs."""
    if line := instruction_of(check or requirement.text, is_fault=requirement.is_fault):
        return line, "words"
    otherwise = f"the requirement {requirement.id} is quoted as it stands"
    written = await answer_or_none(writer.write(requirement, check, reasons), otherwise, events)
    return (as_it_stands(requirement, check), "quotation") if written is None else (written, "model")


def _fails_often(name: str, failed: Sequence[Disagreement], seen: Observation) -> bool:
    asked = sum(each.question == name and not each.replicate and each.answer is not None for each in seen.verdicts)
    of_all = asked >= LEAST_ASKED * len(seen.examples)
    return of_all and len(failed) >= max(LEAST_FAILURES, LEAST_SHARE * asked)


TRIED_ON = 8
"""Most failed outputs on which a line is tried in each prompt."""


@dataclass(frozen=True)
class Placing:
    """Adds lines to a prompt; with several prompts, each line to the prompt where it helps most."""

    subject: Subject
    """Writes and judges outputs with a line in one of the prompts."""
    max_chars: int | None
    """Most characters of the new prompt."""
    events: Teller

    async def add(self, now: LoopRound, lessons: Sequence[Lesson]) -> WrittenEdits:
        """Return edits that add the lessons to the best version's prompt; see :func:`~.edits.add_lines`."""
        prompt = now.best.prompt
        places = sections(prompt.text)
        if not places:
            return add_lines(prompt, lessons, self.max_chars, self.events)
        chosen = [await self._chosen(now, lesson, places) for lesson in lessons]
        written = WrittenEdits()
        for place in places:
            mine = [lesson for lesson, where in zip(lessons, chosen, strict=True) if where == place]
            some = add_lines(prompt, mine, self.max_chars, self.events, (place.start, place.end))
            written.edits += some.edits
            written.refused |= some.refused
        return written

    async def _chosen(self, now: LoopRound, lesson: Lesson, places: Sequence[NamedPart]) -> NamedPart:
        """Return the prompt in which a line mends most of the failed outputs that led to it. Of equals, the one with
        the higher mean score, then the last one."""
        failed = {key.rpartition("/")[0] for key in lesson.evidence}
        examples = [each for each in now.seen.examples if each.id in failed][:TRIED_ON]
        if not examples:
            return places[-1]
        found = []
        for number, place in enumerate(places):
            mended, score = await self._mended(now, lesson, examples, place)
            found.append((mended, score, number))
        mended, _, number = max(found)
        told = ", ".join(f"'{place.name}' {some}" for place, (some, _, _) in zip(places, found, strict=True))
        self.events.say(
            f"{lesson.id} was tried in each prompt on {len(examples)} outputs that failed; mended are in {told}. It goes "
            f"into '{places[number].name}'"
        )
        return places[number]

    async def _mended(
        self, now: LoopRound, lesson: Lesson, examples: Sequence[Example], place: NamedPart
    ) -> tuple[int, float]:
        """Return how many outputs pass the requirement with the line in this prompt, and the mean score of all; -1 and
        0 if the line cannot be added there."""
        draft = now.best.draft
        tried = add_lines(draft.prompt, [lesson], self.max_chars, None, (place.start, place.end))
        if not tried.edits:
            return -1, 0.0
        seen = await self.subject.observe(edited(draft, tried.edits), examples)
        passed = [
            seen.polarity(each.example, each.question).is_good(each.answer)
            for each in seen.verdicts
            if each.question == lesson.requirement and not each.replicate
        ]
        return sum(each is True for each in passed), mean_score(each.overall for each in seen.scores) or 0.0
