"""The note-taker: from one disagreement to one general rule (BinEval §3.3, step 3).

The paper asks for free-form lessons. A small model then writes truisms; asked first to quote the words that decide,
then what the input says of them, then to name the kind of case and only then to finish a rule whose beginning is given,
it writes rules that can be used. What helps beyond that can be switched on and measured:
:class:`~askance.agents.notes.NoteTaking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import create_model

from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.prompt import render_example
from ..prompts.templates import render, template
from ..prompts.text import clauses, copied_words, fill
from .notes import Assignment, Case, NoteAgent, Sample, both_answers, doubted_beside, show_output
from .rules import Direction, FaultKinds, ListedKinds, NoteFields, RuleMaker, is_truism, polarity_words

MOST_QUOTES = 12
"""Parts of an output among which a quote is chosen."""


class NoteTaker(NoteAgent):
    """A model that reads a disagreement in context and generalises it."""

    @cached_property
    def _kinds(self) -> ListedKinds:
        return ListedKinds(self._list_kinds)

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Have the kinds of faults of some questions listed, one after the other, before notes are taken at once.

        ``lenient`` are questions on which the target was too severe: what is no fault is listed for these.
        """
        if self._settings.kinds:
            await self._kinds.prepare(questions)
            await self._kinds.prepare(lenient, harmless=True)

    async def _list_kinds(self, question: Question, harmless: bool) -> list[str]:
        """Choosing from a list before writing the rule keeps a small model from retelling the example.

        With the critique, kinds that say no more than the question are left out.
        """
        name = "harmless_kinds" if harmless else "fault_kinds"
        words = polarity_words(question)
        case = render(name, task=self._task, question=question.text, **words)
        own_words = fill(template(name), {"task": "{task}", "question": "{question}", **words})
        found = await self._ask(None, case, FaultKinds, max_tokens=200)
        kinds = dict.fromkeys(" ".join(kind.split()).rstrip(".") for kind in found.kinds)
        own = [kind for kind in kinds if kind and not copied_words(kind, [own_words], run=4)]
        return [kind for kind in own if not (self._settings.critique and is_truism(kind, question.text))]

    async def _assignment(self, case: Case) -> Assignment:
        direction = case.direction
        maker = await self._maker(direction, case.question, case.examples)

        def read(note: NoteFields) -> Sample:
            return Sample(maker.rule(getattr(note, direction.field), note.kind), note.quote, note.fact, note.kind)

        return Assignment(
            "note_taker",
            self._told(case, maker.kinds),
            self._record(direction, case.example),
            read,
            direction,
            doubts=lambda sample: self._doubts(case, sample),
            mend=maker.mended,
        )

    async def _maker(self, direction: Direction, question: Question, examples: Sequence[Example]) -> RuleMaker:
        kinds = await self._kinds.of(question, harmless=not direction.stricter) if self._settings.kinds else []
        shown = [text for each in examples for text in (each.input, each.output or "", each.context or "")]
        judged = " ".join([self._task, question.text, *kinds])
        return RuleMaker(direction, question, shown, judged, kinds, self._settings.critique)

    def _record(self, direction: Direction, example: Example) -> type[NoteFields]:
        """The note's schema; with ``choose_quote`` its quote is one of the output's parts."""
        parts = clauses(example.output or "", MOST_QUOTES) if self._settings.choose_quote else []
        if len(parts) < 2:
            return direction.record
        quote: Any = (Literal[tuple(parts)], ...)
        return create_model(direction.record.__name__, __base__=direction.record, quote=quote)

    def _told(self, case: Case, kinds: Sequence[str]) -> str:
        answer, other = case.direction.answers
        return render(
            "note_taker_case",
            task=self._task,
            example=render_example(case.example),
            question=case.question.text,
            **both_answers(case),
            contrast=self._shown_beside(case, "note_taker_contrast", answer=other, other=answer),
            kinds=one_of(kinds),
            rule_field=case.direction.field,
            rule_opening=case.direction.opening,
        )

    def _doubts(self, case: Case, sample: Sample) -> str:
        answer, other = case.direction.answers
        return render(
            "critique_case",
            task=self._task,
            question=case.question.text,
            rule=sample.text,
            answer=answer,
            other=other,
            output=show_output(case.example),
            quote=sample.quote,
            fact=sample.fact,
            opening=case.direction.opening,
            **doubted_beside(
                case,
                f"The right answer is {other}, and the judge said so.",
                f"true if the rule, as written, would give the answer {answer} for the second output too; else false.",
            ),
        )


def one_of(kinds: Sequence[str]) -> str:
    """The end of the order to name a kind, where some are listed."""
    return f", one of: {'; '.join(kinds)}; or another" if kinds else ""
