"""Note-takers: agents that turn disagreements into general rules (BinEval §3.3, step 3).

:class:`NoteTaker` reads one disagreement. A small model writes truisms if it is asked for a lesson in free form. It
writes usable rules if it works in steps: quote the words that decide, say what the input says about them, name the kind
of case, and then finish a rule whose beginning is given. (One call lists the kinds of a question.)

:class:`FreeNoteTaker` follows the papers. It sees whole cases: an output with every question on which the two sides
differ, their answers and explanations. Its lessons have no given form, but forbidden orders are refused.
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
    """A disagreement with everything that a note-taker may see."""

    disagreement: Disagreement
    """Answers of the target and of its reference."""
    example: Example
    question: Question
    """Question behind the answers; for a generator it may be the description of a check."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Explanations by side (``target``, ``reference``), if they were bought."""

    @property
    def direction(self) -> Direction:
        """Direction that a judge's rule must have."""
        if is_own_question(self.question):
            return STRICTER_RATING if self.disagreement.target else LENIENT_RATING
        return direction_of(self.question, self.disagreement.target)

    def reason(self, side: str, before: str = "") -> FencedText:
        """Return the reason of ``target`` or ``reference`` after the text ``before``; empty if there is no reason."""
        reason = self.reasons.get(side)
        return FencedText(before) + render("given_reason", reason=reason) if reason else FencedText()

    @property
    def both_answers(self) -> dict[str, str]:
        """Values for templates: the answers and reasons of both sides."""
        return {
            "target_answer": "yes" if self.disagreement.target else "no",
            "target_reason": self.reason("target", " "),
            "reference_answer": "yes" if self.disagreement.reference else "no",
            "reference_reason": self.reason("reference", " "),
        }


def _lesson(lesson_id: str, text: str, cases: Sequence[Case], direction: Direction) -> Lesson:
    """Make the lesson that was drawn from some cases. Its dimension is that of the first case, only for the record."""
    return Lesson(
        id=lesson_id,
        text=text,
        direction=direction.name,
        dimension=cases[0].question.dimension,
        evidence=tuple(case.disagreement.key for case in cases),
    )


class NoteAgent(Agent):
    """A model that takes a note on one case at a time."""

    role = "note_taker"

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the checklist's task, so that the model knows what is judged."""
        super().__init__(gateway, model, seed=seed)
        self._task = task

    @abstractmethod
    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """Draw one lesson from a case. Raises ParseError without a usable note, e.g. if the rule copies the example."""

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Prepare for notes on ``questions``, where the target was too kind, and ``lenient``, where it was too severe.
        Raises ModelError if every further call would fail too."""

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
            asked: Name of the template with the orders, and the text about the case.
            record: Schema of the note.
            rule: Function that reads the rule from a note. It raises ``ValueError`` with a message, which the model
                gets once.
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
        """List the kinds of faults of questions, one after the other, before notes are taken in parallel.

        ``lenient`` are questions on which the target was too severe. For these, kinds of harmless differences are
        listed.
        """
        for harmless, asked in ((False, questions), (True, lenient)):
            for question in asked:
                try:
                    await self._kinds(question, harmless=harmless)
                except ModelError as error:
                    if error.fatal:
                        raise

    async def _kinds(self, question: Question, *, harmless: bool) -> list[str]:
        """Return the kinds of faults, or of harmless differences; empty if there is no usable list."""
        # A small model that first chooses from a list does not retell the example in its rule.
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

        message = render(
            "note_taker_case",
            task=self._task,
            example=render_example(case.example),
            question=case.question.text,
            **case.both_answers,
            kinds=f", one of: {'; '.join(kinds)}; or another" if kinds else "",
            rule_field=direction.field,
            rule_opening=direction.opening,
        )
        asked = ("note_taker", message)
        return await self._note(case, lesson_id, asked=asked, record=direction.record, rule=rule, direction=direction)


MOST_LESSONS = 3
"""Most free lessons that are drawn from one example."""


class _FreeLesson(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    cases: list[int] = Field(min_length=1)
    lesson: str = Field(min_length=10, max_length=400)


class _FreeLessons(BaseModel):
    model_config = ConfigDict(title="lessons")

    lessons: list[_FreeLesson]


class FreeNoteTaker(Agent):
    """A model that reads whole cases and writes lessons in free form."""

    role = "note_taker"

    async def take_notes(self, task: str, items: Sequence[Sequence[Case]], lesson_ids: Sequence[str]) -> list[Lesson]:
        """Draw lessons from one or several examples in one call: the paper's L_note(x, y, A_src, A_tgt, Δ).

        Raises ParseError if the reply names examples that do not exist, has too many lessons, or gives a forbidden
        order.

        Args:
            items: The disagreements on each example. Every list is about one example and not empty.
            lesson_ids: Ids for the lessons, ``MOST_LESSONS`` per example. Some may stay unused.

        Returns:
            The lessons, perhaps none. The evidence of a lesson is all disagreements on the examples that the model
            named for it.
        """
        limit = MOST_LESSONS * len(items)

        def can_be_used(reply: _FreeLessons) -> None:
            if len(reply.lessons) > limit:
                raise ValueError(f'"lessons" must be at most {limit}')
            for draft in reply.lessons:
                if not all(1 <= number <= len(items) for number in draft.cases):
                    raise ValueError(f'"cases" must be numbers from 1 to {len(items)}')
                if order := foreign_order(draft.lesson, task):
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
        case = render("free_notes_case", task=task, items=joined(shown, "\n\n"), most=str(limit))
        orders = template("free_notes")
        reply = await self._ask(orders, case, _FreeLessons, max_tokens=150 * limit + 50, check=can_be_used)
        lessons = []
        for lesson_id, draft in zip(lesson_ids, reply.lessons, strict=False):
            cases = [case for number in dict.fromkeys(draft.cases) for case in items[number - 1]]
            lessons.append(_lesson(lesson_id, " ".join(draft.lesson.split()), cases, cases[0].direction))
        return lessons


def _told(case: Case) -> FencedText:
    """Write one question of an example, with the given answer and the right answer."""
    return render("free_notes_question", question=case.question.text, **case.both_answers)
