"""Note-takers: from disagreements to general rules (BinEval §3.3, step 3).

:class:`NoteTaker` reads one disagreement. Asked for a lesson in free form, a small model writes truisms. Asked first to
quote the words that decide, then what the input says of them, then to name the kind of case and only then to finish a
rule whose beginning is given, it writes rules that can be used (one call lists the kinds of a question).

:class:`FreeNoteTaker`, the papers' own, is shown whole cases: an output with every question on which the two sides
differ, their answers and explanations. Its lessons have no given form; what nobody may order a prompt is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import Model, ModelError
from ..models.gateway import Gateway
from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.lessons import Disagreement, Lesson, foreign_order
from ..prompts.prompt import render_example
from ..prompts.templates import FencedText, joined, render, template
from ..prompts.text import copied_words, fill
from .agent import Agent, Reply
from .own_words import is_own_question
from .rules import (
    LENIENT_RATING,
    STRICTER_RATING,
    Direction,
    FaultKinds,
    NoteFields,
    RuleMaker,
    direction_of,
    polarity_words,
)


@dataclass(frozen=True)
class Case:
    """A disagreement with all that a note-taker may be told of it."""

    disagreement: Disagreement
    """The answers of the target and its reference."""
    example: Example
    question: Question
    """The question that they were asked; for a generator it may be the description of a check."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Explanations under ``target`` and ``reference``, where they were bought."""

    @property
    def direction(self) -> Direction:
        """The direction that a judge's rule has to take."""
        if is_own_question(self.question):
            return STRICTER_RATING if self.disagreement.target else LENIENT_RATING
        return direction_of(self.question, self.disagreement.target)

    def reason(self, side: str, before: str = "") -> FencedText:
        """The reason of ``target`` or ``reference``, after words of our own; empty where there is none."""
        reason = self.reasons.get(side)
        return FencedText(before) + render("given_reason", reason=reason) if reason else FencedText()

    @property
    def both_answers(self) -> dict[str, str]:
        """Values of the templates about the two sides: their answers and reasons."""
        return {
            "target_answer": "yes" if self.disagreement.target else "no",
            "target_reason": self.reason("target", " "),
            "reference_answer": "yes" if self.disagreement.reference else "no",
            "reference_reason": self.reason("reference", " "),
        }


def _lesson(lesson_id: str, text: str, cases: Sequence[Case], direction: Direction) -> Lesson:
    """The lesson that was drawn from some cases; its dimension, for the record alone, is that of the first."""
    return Lesson(
        id=lesson_id,
        text=text,
        direction=direction.name,
        dimension=cases[0].question.dimension,
        evidence=tuple(case.disagreement.key for case in cases),
    )


class NoteAgent(Agent):
    """A model that takes notes of one case at a time."""

    role = "note_taker"

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the checklist's, so that the model knows what is judged."""
        super().__init__(gateway, model, seed=seed)
        self._task = task

    @abstractmethod
    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """Draw one lesson from one case. Raises ParseError where there is no usable note, e.g. because the rule copies
        the example."""

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Get ready for notes on questions where the target was too kind, and on those where it was too severe. Raises
        ModelError where every further call would fail too."""

    async def _note(
        self,
        case: Case,
        lesson_id: str,
        *,
        asked: tuple[str, str],
        record: type[Reply],
        rule: Callable[[Reply], str],
        direction: Direction,
    ) -> Lesson:
        """Ask for a note, and make a lesson of it.

        Args:
            asked: Name of the template with the orders, and what is told of the case.
            record: The note's schema.
            rule: Reads the rule from a note; raises ``ValueError`` with what is wrong, which the model is told once.
        """
        orders, told = asked
        reply = await self._ask(template(orders), told, record, max_tokens=400, check=rule)
        return _lesson(lesson_id, rule(reply), [case], direction)


class NoteTaker(NoteAgent):
    """A model that reads a disagreement in context and generalises it."""

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """See :class:`NoteAgent`."""
        super().__init__(gateway, model, task, seed=seed)
        self._listed: dict[tuple[str, bool], list[str]] = {}

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Have the kinds of faults of some questions listed, one after the other, before notes are taken at once.

        ``lenient`` are questions on which the target was too severe: differences that are no fault are listed for
        these.
        """
        for harmless, asked in ((False, questions), (True, lenient)):
            for question in asked:
                try:
                    await self._kinds(question, harmless=harmless)
                except ModelError as error:
                    if error.fatal:
                        raise

    async def _kinds(self, question: Question, *, harmless: bool) -> list[str]:
        """Kinds of faults, or of differences that are no fault; empty where there is no usable list.

        Choosing from a list before writing the rule keeps a small model from retelling the example.
        """
        key = (question.text, harmless)
        if key not in self._listed:
            try:
                self._listed[key] = await self._list_kinds(question, harmless)
            except ValueError:
                self._listed[key] = []
        return self._listed[key]

    async def _list_kinds(self, question: Question, harmless: bool) -> list[str]:
        name = "harmless_kinds" if harmless else "fault_kinds"
        words = polarity_words(question)
        case = render(name, task=self._task, question=question.text, **words)
        own_words = fill(template(name), {"task": "{task}", "question": "{question}", **words})
        found = await self._ask(None, case, FaultKinds, max_tokens=200)
        kinds = dict.fromkeys(" ".join(kind.split()).rstrip(".") for kind in found.kinds)
        return [kind for kind in kinds if kind and not copied_words(kind, [own_words], run=4)]

    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """See :meth:`NoteAgent.take_note`."""
        direction = case.direction
        kinds = await self._kinds(case.question, harmless=not direction.stricter)
        shown = (case.example.input, case.example.output or "", case.example.context or "")
        judged = " ".join([self._task, case.question.text, *kinds])
        maker = RuleMaker(direction, case.question, shown, judged, kinds)

        def rule(note: NoteFields) -> str:
            return maker.rule(getattr(note, direction.field), note.kind)

        told = render(
            "note_taker_case",
            task=self._task,
            example=render_example(case.example),
            question=case.question.text,
            **case.both_answers,
            kinds=f", one of: {'; '.join(kinds)}; or another" if kinds else "",
            rule_field=direction.field,
            rule_opening=direction.opening,
        )
        asked = ("note_taker", told)
        return await self._note(case, lesson_id, asked=asked, record=direction.record, rule=rule, direction=direction)


MOST_LESSONS = 3
"""Free lessons that are drawn from one case at most."""


class _FreeLesson(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    cases: list[int] = Field(min_length=1)
    lesson: str = Field(min_length=10, max_length=400)


class _FreeLessons(BaseModel):
    model_config = ConfigDict(title="lessons")

    lessons: list[_FreeLesson]


class FreeNoteTaker(Agent):
    """A model that reads cases whole and writes down what it learns from them."""

    role = "note_taker"

    async def take_notes(self, task: str, items: Sequence[Sequence[Case]], lesson_ids: Sequence[str]) -> list[Lesson]:
        """L_note(x, y, A_src, A_tgt, Δ) of one or several examples, in one call. Raises ParseError where the reply
        names examples that are not there, has too many lessons, or orders what none may.

        Args:
            items: The disagreements on each example; every list is about one example and not empty.
            lesson_ids: Ids of the lessons to be, ``MOST_LESSONS`` an example; those left over stay unused.

        Returns:
            The lessons, perhaps none. The evidence of each is every disagreement on the examples that the model named.
        """
        most = MOST_LESSONS * len(items)

        def can_be_used(reply: _FreeLessons) -> None:
            if len(reply.lessons) > most:
                raise ValueError(f'"lessons" must be at most {most}')
            for each in reply.lessons:
                if not all(1 <= number <= len(items) for number in each.cases):
                    raise ValueError(f'"cases" must be numbers from 1 to {len(items)}')
                if order := foreign_order(each.lesson, task):
                    raise ValueError(f'"lesson" cannot be used: {order}')

        shown = [
            render(
                "free_notes_item",
                number=str(number),
                example=render_example(item[0].example),
                items=joined(map(_told, item), "\n\n"),
            )
            for number, item in enumerate(items, 1)
        ]
        case = render("free_notes_case", task=task, items=joined(shown, "\n\n"), most=str(most))
        orders = template("free_notes")
        reply = await self._ask(orders, case, _FreeLessons, max_tokens=150 * most + 50, check=can_be_used)
        lessons = []
        for lesson_id, each in zip(lesson_ids, reply.lessons, strict=False):
            cases = [case for number in dict.fromkeys(each.cases) for case in items[number - 1]]
            lessons.append(_lesson(lesson_id, " ".join(each.lesson.split()), cases, cases[0].direction))
        return lessons


def _told(case: Case) -> FencedText:
    """One question of an example: what was answered, and what should have been."""
    return render("free_notes_question", question=case.question.text, **case.both_answers)
