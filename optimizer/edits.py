"""From lessons to edits: one edit a lesson, or all lessons in one rewrite (BinEval §3.3 and App. B).

A line of the prompt that orders the opposite of a lesson is looked for first: it is corrected or taken out, since nobody
can follow both. Those that can stand in one prompt together are a bundle; those that gained too little wait to be tried with further ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..agents.lesson_checks import ContradictionFinder
from ..agents.updater import Proposal, Rewriter, Updater, last_instruction, make_edit, split_parts
from ..memory.lesson_memory import LessonMemory
from ..models.base import CallError, Model
from ..prompts.lessons import Edit, Lesson
from ..prompts.prompt import EditRefusedError, Prompt, check_length
from ..prompts.text import literal
from .events import EditProposed, EditRefused, Teller, answer_or_none
from .run_context import RunContext


@dataclass
class WrittenEdits:
    """What came of some lessons."""

    edits: list[Edit] = field(default_factory=list)
    """In the order of the lessons."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why there is no edit, by the id of the lesson."""


class EditWriter(Protocol):
    """Writes lessons into a prompt."""

    async def write(self, prompt: Prompt, lessons: Sequence[Lesson], texts: Sequence[str]) -> WrittenEdits:
        """Edits of this prompt, each of which can be applied alone.

        A lesson for which there is no edit that passes the guards is left out, with an event that says why.

        Args:
            prompt: What is edited.
            lessons: What is to be said, best supported first.
            texts: Development texts, from which nothing may be copied.
        """
        ...


@dataclass(frozen=True)
class OpposedParts:
    """Finds the parts of a prompt that order the opposite of a lesson: those near in meaning, then a model decides."""

    finder: ContradictionFinder
    memory: LessonMemory
    events: Teller

    async def find(self, prompt: Prompt, lesson: Lesson) -> list[int]:
        """Their places among the parts of the prompt, from 0; a comparison that cannot be had finds none, and is told.

        Raises:
            ModelError: An endpoint refuses every call.
            BudgetExceededError: A cap was reached.
        """
        parts, found = [prompt.text[start:end] for start, end in split_parts(prompt.text)], []
        for place in self.memory.like(lesson, parts):
            otherwise = f"lesson {lesson.id} was not compared with a part of the prompt"
            compared = await answer_or_none(self.finder.compare(lesson, parts[place]), otherwise, self.events)
            if compared is not None and compared.contradicts:
                found.append(place)
        return found


@dataclass(frozen=True)
class EditByEdit:
    """One small edit a lesson, each against the same prompt."""

    updater: Updater
    events: Teller
    opposed: OpposedParts | None = None
    """Finds what a lesson contradicts; None where every lesson is added to what is there."""

    async def write(self, prompt: Prompt, lessons: Sequence[Lesson], texts: Sequence[str]) -> WrittenEdits:
        """The edits, in the order of the lessons."""
        self.events.phase("writing edits", len(lessons))
        written = WrittenEdits()
        for number, lesson in enumerate(lessons, 1):
            against = await self.opposed.find(prompt, lesson) if self.opposed is not None else []
            await _propose(self.updater.propose(prompt, lesson, texts, against), [lesson.id], written, self.events)
            self.events.advance(number, len(lessons))
        return written


def add_lines(prompt: Prompt, lessons: Sequence[Lesson], max_chars: int | None, events: Teller) -> WrittenEdits:
    """Lessons as bullets, word for word and without a call: where the prompt lists its instructions, else at its end.

    A small model follows a short list there best. The end is the last line that may be edited and announces nothing
    ("Summary:"), so a protected part stays the last and an example's input keeps its label.

    Args:
        prompt: What is edited.
        lessons: Each becomes an edit of this prompt that can be applied alone.
        max_chars: Longest prompt; None where there is no limit.
        events: Told of each.
    """
    written = WrittenEdits()
    part = last_instruction(prompt.text)
    for lesson in lessons:
        line = literal(lesson.text)
        problem = "all of the prompt is protected" if part is None else None
        if line in prompt.text:
            problem = "the prompt says it already, word for word"
        if part is not None and problem is None:
            proposal = Proposal.model_construct(part=1, action="add", text=line)
            edit = make_edit(prompt.text, part, proposal, lesson.id)
            problem = problem_of(prompt, edit, max_chars)
            if problem is None:
                events.emit(EditProposed(edit))
                written.edits.append(edit)
                continue
        events.emit(EditRefused([lesson.id], str(problem)))
        written.refused[lesson.id] = f"no edit: {problem}"
    return written


@dataclass(frozen=True)
class WholeRewrite:
    """All lessons in one call, which gives one edit."""

    rewriter: Rewriter
    events: Teller
    opposed: OpposedParts | None = None
    """Finds what the lessons contradict; None where nobody looks."""

    async def write(self, prompt: Prompt, lessons: Sequence[Lesson], texts: Sequence[str]) -> WrittenEdits:
        """The one edit, or none."""
        written = WrittenEdits()
        if lessons:
            self.events.phase("rewriting the prompt", 1)
            names = [lesson.id for lesson in lessons]
            against: set[int] = set()
            if self.opposed is not None:
                for lesson in lessons:
                    against |= set(await self.opposed.find(prompt, lesson))
            await _propose(self.rewriter.propose(prompt, lessons, texts, sorted(against)), names, written, self.events)
        return written


def edit_writer(
    context: RunContext,
    helper: Model,
    max_prompt_chars: int | None,
    *,
    opposed: OpposedParts | None = None,
    free: bool = False,
) -> EditWriter:
    """Return the writer that ``update`` names; a ``free`` one is not held to our own loop's rules, as in the papers."""
    model = context.helper("updater", helper)
    how: dict[str, Any] = {"max_prompt_chars": max_prompt_chars, "seed": context.job.options.seed, "free": free}
    if context.job.options.update == "rewrite":
        return WholeRewrite(Rewriter(context.gateway, model, **how), context.events, opposed)
    return EditByEdit(Updater(context.gateway, model, **how), context.events, opposed)


async def _propose(proposal: Awaitable[Edit], lessons: Sequence[str], written: WrittenEdits, events: Teller) -> None:
    try:
        edit = await proposal
    except CallError as error:
        if error.fatal:
            raise
        events.emit(EditRefused(lessons, str(error)))
        written.refused |= dict.fromkeys(lessons, f"no edit: {error}")
        return
    events.emit(EditProposed(edit))
    written.edits.append(edit)


@dataclass(frozen=True)
class Waiting:
    """Edits that together gain something on the best version, but no more than noise may."""

    edits: tuple[Edit, ...] = ()
    gain: float = 0.0
    reason: str = ""
    """What the acceptance test said."""

    @property
    def lessons(self) -> set[str]:
        """Ids of the lessons behind them."""
        return {lesson for edit in self.edits for lesson in edit.lessons}


def change_of(edit: Edit) -> tuple[str, str]:
    """Old and new text: edits that change the same are one, whatever lessons they come from."""
    return edit.old, edit.new


def bundle(prompt: Prompt, edits: Sequence[Edit], max_chars: int | None = None) -> tuple[Edit, ...]:
    """Those of the edits that can be applied one after the other, as long as the prompt stays short enough."""
    applied = []
    for edit in edits:
        if problem_of(prompt, edit, max_chars) is None:
            prompt = prompt.apply(edit)
            applied.append(edit)
    return tuple(applied)


def problem_of(prompt: Prompt, edit: Edit, max_chars: int | None = None) -> str | None:
    """Why an edit cannot be applied to a prompt; None where it can."""
    try:
        check_length(prompt.apply(edit), max_chars)
    except EditRefusedError as error:
        return str(error)
    return None
