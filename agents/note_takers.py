"""Note-takers: from disagreements to general rules (BinEval §3.3, step 3).

:class:`NoteTaker` reads one disagreement. Asked for a lesson in free form, a small model writes truisms. Asked first to
quote the words that decide, then what the input says of them, then to name the kind of case and only then to finish a
rule whose beginning is given, it writes rules that can be used (one call lists the kinds of a question).

:class:`FreeNoteTaker`, the papers' own, is shown whole cases: an output with every question on which the two sides
differ, their answers and explanations. Its lessons have no given form; what nobody may order a prompt is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import Model, ModelError
from ..models.gateway import Gateway
from ..prompts.checklist import Question
from ..prompts.lessons import Lesson, foreign_order
from ..prompts.prompt import render_example
from ..prompts.templates import FencedText, joined, render, template
from ..prompts.text import copied_words, fill
from .agent import Agent
from .notes import Assignment, Case, NoteAgent, both_answers
from .rules import FaultKinds, NoteFields, RuleMaker, polarity_words


class NoteTaker(NoteAgent):
    """A model that reads a disagreement in context and generalises it."""

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the checklist's, so that the model knows what is judged."""
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

    async def _assignment(self, case: Case) -> Assignment:
        direction = case.direction
        kinds = await self._kinds(case.question, harmless=not direction.stricter)
        shown = (case.example.input, case.example.output or "", case.example.context or "")
        judged = " ".join([self._task, case.question.text, *kinds])
        maker = RuleMaker(direction, case.question, shown, judged, kinds)

        def rule(note: NoteFields) -> str:
            return maker.rule(getattr(note, direction.field), note.kind)

        return Assignment("note_taker", self._told(case, kinds), direction.record, rule, direction)

    def _told(self, case: Case, kinds: Sequence[str]) -> str:
        return render(
            "note_taker_case",
            task=self._task,
            example=render_example(case.example),
            question=case.question.text,
            **both_answers(case),
            kinds=f", one of: {'; '.join(kinds)}; or another" if kinds else "",
            rule_field=case.direction.field,
            rule_opening=case.direction.opening,
        )


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
        return [
            _lesson(
                lesson_id, each.lesson, [case for number in dict.fromkeys(each.cases) for case in items[number - 1]]
            )
            for lesson_id, each in zip(lesson_ids, reply.lessons, strict=False)
        ]


def _told(case: Case) -> FencedText:
    """One question of an example: what was answered, and what should have been."""
    return render("free_notes_question", question=case.question.text, **both_answers(case))


def _lesson(lesson_id: str, text: str, cases: Sequence[Case]) -> Lesson:
    """Direction and dimension are those of its first case: they are for the record alone."""
    return Lesson(
        id=lesson_id,
        text=" ".join(text.split()),
        direction=cases[0].direction.name,
        dimension=cases[0].question.dimension,
        evidence=tuple(case.disagreement.key for case in cases),
    )
