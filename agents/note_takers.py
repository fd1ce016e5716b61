"""Note-takers: from disagreements to general rules (BinEval §3.3, step 3).

:class:`NoteTaker` reads one disagreement. Asked for a lesson in free form, a small model writes truisms. Asked first to
quote the words that decide, then what the input says of them, then to name the kind of case and only then to finish a
rule whose beginning is given, it writes rules that can be used (one call lists the kinds of a question).

:class:`BatchNoteTaker` reads several disagreements on one question in one call, as the paper's self update does
(BinEval App. B). A document costs most of a call's tokens, so of each input only the sentences nearest to its output
are shown.

:class:`FreeNoteTaker`, the papers' own, is shown whole cases: an output with every question on which the two sides
differ, their answers and explanations. Its lessons have no given form; what nobody may order a prompt is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..models.base import Model, ModelError
from ..models.gateway import Gateway
from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.lessons import Lesson, foreign_order
from ..prompts.prompt import render_example
from ..prompts.templates import FencedText, joined, render, template
from ..prompts.text import copied_words, excerpt, fill
from .agent import Agent
from .notes import Assignment, Case, NoteAgent, both_answers, given_reason, show_output
from .rules import LONGEST_RULE, Direction, FaultKinds, NoteFields, RuleMaker, polarity_words


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
        maker = await self._maker(direction, case.question, [case.example])

        def rule(note: NoteFields) -> str:
            return maker.rule(getattr(note, direction.field), note.kind)

        return Assignment("note_taker", self._told(case, maker.kinds), direction.record, rule, direction)

    async def _maker(self, direction: Direction, question: Question, examples: Sequence[Example]) -> RuleMaker:
        kinds = await self._kinds(question, harmless=not direction.stricter)
        shown = [text for each in examples for text in (each.input, each.output or "", each.context or "")]
        judged = " ".join([self._task, question.text, *kinds])
        return RuleMaker(direction, question, shown, judged, kinds)

    def _told(self, case: Case, kinds: Sequence[str]) -> str:
        return render(
            "note_taker_case",
            task=self._task,
            example=render_example(case.example),
            question=case.question.text,
            **both_answers(case),
            kinds=one_of(kinds),
            rule_field=case.direction.field,
            rule_opening=case.direction.opening,
        )


def one_of(kinds: Sequence[str]) -> str:
    """The end of the order to name a kind, where some are listed."""
    return f", one of: {'; '.join(kinds)}; or another" if kinds else ""


MOST_RULES = 3
MOST_LESSONS = 3
"""Free lessons that are drawn from one case at most."""
EXCERPT = 500
"""Characters of each input that are shown."""


class _BatchRule(BaseModel):
    items: list[int] = Field(min_length=1)
    quote: str = Field(max_length=300)
    kind: str = Field(max_length=80)


class BatchNoteTaker(NoteTaker):
    """A model that reads several disagreements at once and finds what they have in common."""

    async def take_notes(self, cases: Sequence[Case], lesson_ids: Sequence[str]) -> list[Lesson]:
        """Draw up to ``MOST_RULES`` lessons in one call.

        Args:
            cases: On one question and in one direction. Of the reasons the reference's alone are shown.
            lesson_ids: Ids of the lessons to be, as many as there may be rules; those left over stay unused.

        Returns:
            Lessons, the best supported first. The evidence of each is those disagreements alone that the model named.

        Raises:
            ValueError: There are no cases, or of several questions or directions, or too few ids.
            ParseError: No rule can be used.
            ModelError: No reply.
        """
        _check(cases, lesson_ids)
        direction, question = cases[0].direction, cases[0].question
        maker = await self._maker(direction, question, [case.example for case in cases])

        def support(reply: BaseModel) -> dict[str, list[int]]:
            return _support(reply, maker, len(cases))

        reply = await self._ask(
            template("batch_notes"),
            self._told_of_all(cases, maker.kinds),
            _record(direction),
            max_tokens=200 * MOST_RULES,
            check=support,
        )
        found = sorted(support(reply).items(), key=lambda rule: -len(rule[1]))
        lessons = []
        for lesson_id, (text, items) in zip(lesson_ids, found, strict=False):
            evidence = tuple(cases[number - 1].disagreement.key for number in items)
            lessons.append(cases[0].lesson(lesson_id, text, direction).model_copy(update={"evidence": evidence}))
        return lessons

    def _told_of_all(self, cases: Sequence[Case], kinds: Sequence[str]) -> str:
        items = []
        for number, case in enumerate(cases, 1):
            source = "\n".join(filter(None, (case.example.context, case.example.input)))
            item = render(
                "batch_notes_item",
                number=str(number),
                output=show_output(case.example),
                excerpt=excerpt(source, case.example.output or "", EXCERPT),
                why=given_reason(case, "reference", "Why: "),
            )
            items.append(FencedText(item.rstrip()))
        direction = cases[0].direction
        answer, other = direction.answers
        return render(
            "batch_notes_case",
            task=self._task,
            question=cases[0].question.text,
            target_answer=other,
            reference_answer=answer,
            items=joined(items, "\n\n"),
            most=str(MOST_RULES),
            kinds=one_of(kinds),
            rule_field=direction.field,
            rule_opening=direction.opening,
        )


def _check(cases: Sequence[Case], lesson_ids: Sequence[str]) -> None:
    if not cases:
        raise ValueError("there are no disagreements to take notes of")
    if len({(case.question.id, case.disagreement.target) for case in cases}) > 1:
        raise ValueError("a batch has disagreements on one question and in one direction")
    if len(lesson_ids) < MOST_RULES:
        raise ValueError(f"{len(lesson_ids)} ids were given for up to {MOST_RULES} lessons")


def _support(reply: BaseModel, maker: RuleMaker, count: int) -> dict[str, list[int]]:
    """The rules that can be used, each with the numbers of what supports it; the same rule twice is one.

    Raises:
        ValueError: None can be used; the first one's problem is told to the model.
    """
    found: dict[str, list[int]] = {}
    problem = ""
    for rule in reply.rules:  # type: ignore[attr-defined]
        items = [number for number in dict.fromkeys(rule.items) if 1 <= number <= count]
        try:
            if not items:
                raise ValueError(f'"items" must be numbers from 1 to {count}')
            text = maker.rule(getattr(rule, maker.direction.field), rule.kind)
        except ValueError as error:
            problem = problem or str(error)
            continue
        found[text] = list(dict.fromkeys([*found.get(text, []), *items]))
    if not found:
        raise ValueError(problem)
    return found


def _record(direction: Direction) -> type[BaseModel]:
    ending = (str, Field(min_length=10, max_length=LONGEST_RULE))
    rule = create_model("Rule", __base__=_BatchRule, **{direction.field: ending})  # type: ignore[call-overload]
    rules: Any = (list[rule], Field(min_length=1, max_length=MOST_RULES))  # type: ignore[valid-type]
    return create_model("BatchNotes", __config__=ConfigDict(title="notes"), rules=rules)


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
        """L_note(x, y, A_src, A_tgt, Δ) of one or several examples, in one call.

        Args:
            task: What the outputs were to do.
            items: The disagreements on each example; every list is about one example and not empty.
            lesson_ids: Ids of the lessons to be, ``MOST_LESSONS`` an example; those left over stay unused.

        Returns:
            The lessons, perhaps none. The evidence of each is every disagreement on the examples that the model named.

        Raises:
            ParseError: The reply names examples that are not there, has too many lessons, or orders what none may.
            ModelError: No reply.
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
