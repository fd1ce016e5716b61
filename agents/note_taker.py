"""The note-taker: from one disagreement to one general rule (BinEval §3.3, step 3).

The paper asks for free-form lessons. A small model then writes truisms; asked first to quote the words that decide,
then what the input says of them, then to name the kind of case and only then to finish a rule whose beginning is
given, it writes rules that can be used. What helps beyond that can be switched on and measured: :class:`NoteTaking`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import create_model

from ..models.structured import ParseError
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.prompt import Prompt, frame
from ..prompts.templates import render, template
from ..prompts.text import clauses
from .critique import Critic, Reviewed
from .notes import ONE_CALL, Note, NoteTaking, Sample, most_agreed, show_output, take_samples
from .rules import (
    LENIENT,
    STRICTER,
    Direction,
    FaultKinds,
    KindLister,
    LenientNote,
    NoteFields,
    RuleMaker,
    StricterNote,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.checklist import Question
    from ..prompts.examples import Example

MOST_QUOTES = 12
"""Parts of an output among which a quote is chosen."""


class NoteTaker:
    """A model that reads a disagreement in context and generalises it."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        task: str,
        *,
        seed: int | None = None,
        settings: NoteTaking = ONE_CALL,
    ) -> None:
        """``task`` is the checklist's task, so that the note-taker knows what is judged."""
        self._gateway = gateway
        self._model = model
        self._task = task
        self._seed = seed
        self._settings = settings
        self._lister = KindLister(gateway, model, task, seed=seed, truisms=not settings.critique)
        self._critic = Critic(gateway, model, seed=seed)

    async def take_note(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        lesson_id: str,
        *,
        contrast: Example | None = None,
    ) -> Lesson:
        """Draw one lesson.

        Args:
            disagreement: What the target and its reference said.
            example: The example they said it of.
            question: The question they were asked.
            reasons: Explanations under ``target`` and ``reference``, where they were bought.
            lesson_id: Id of the lesson to be.
            contrast: An example on which both gave the answer that the target wrongly gave here.

        Raises:
            ParseError: The model's notes cannot be used, e.g. because the rule copies the example, or its critique
                refused it (``RefusedRuleError``).
            ModelError: No reply.
        """
        return (await self.write_note(disagreement, example, question, reasons, lesson_id, contrast=contrast)).lesson

    async def write_note(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        lesson_id: str,
        *,
        contrast: Example | None = None,
    ) -> Note:
        """Like :meth:`take_note`; returns the lesson with the quote, the kind, the support and the critique."""
        direction = STRICTER if disagreement.target else LENIENT
        kinds = await self.kinds(question, harmless=not direction.stricter) if self._settings.kinds else []
        maker = self._maker(direction, question, [example, *([contrast] if contrast else [])], kinds)

        def read(note: NoteFields) -> Sample:
            return Sample(maker.rule(getattr(note, direction.field), note.kind), note.quote, note.fact, note.kind)

        shown = contrast if self._settings.contrast else None
        user = self._case(disagreement, example, question, reasons, direction, kinds, shown)
        samples = await take_samples(
            self._gateway,
            self._model,
            [("system", template("note_taker")), ("user", user)],
            self._record(direction, example),
            read,
            count=self._settings.samples,
            seed=self._seed,
        )
        best, agreeing = most_agreed(samples)
        review = await self._review(best, maker, example, contrast) if self._settings.critique else None
        lesson = Lesson(
            id=lesson_id,
            text=review.text if review else best.text,
            direction=direction.name,
            dimension=question.dimension,
            evidence=(disagreement.key,),
        )
        return Note(lesson, best.quote, best.fact, best.kind, len(samples), agreeing, review)

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Have the kinds of faults of some questions listed, one after the other, before notes are taken at once.

        ``lenient`` are questions to which the target wrongly said no: what is no fault is listed for these.

        Raises:
            ModelError: Every further call would fail too.
        """
        if self._settings.kinds:
            await self._lister.prepare(questions)
            await self._lister.prepare(lenient, harmless=True)

    async def kinds(self, question: Question, *, harmless: bool = False) -> list[str]:
        """Kinds of faults that a question may be about, or kinds of things that are none, from the task alone.

        Choosing from a list before writing the rule keeps a small model from retelling the example. Where the model
        gives no usable list, the notes do without. With the critique, kinds that say no more than the question go.

        Raises:
            ModelError: No reply.
        """
        return await self._lister.kinds(question, harmless=harmless)

    def _maker(
        self, direction: Direction, question: Question, examples: Sequence[Example], kinds: Sequence[str]
    ) -> RuleMaker:
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

    async def _review(self, sample: Sample, maker: RuleMaker, example: Example, contrast: Example | None) -> Reviewed:
        answer, other = maker.direction.answers
        beside, hits = "", "false, as there is no second output."
        if contrast is not None:
            beside = render(
                "critique_contrast",
                verdict=f"The right answer is {other}, and the judge said so.",
                output=show_output(contrast),
            )
            hits = (
                f"true if the rule, as written, would give the answer {answer} for the second output too; else false."
            )
        case = render(
            "critique_case",
            task=self._task,
            question=maker.question.text,
            rule=sample.text,
            answer=answer,
            other=other,
            output=show_output(example),
            quote=sample.quote,
            fact=sample.fact,
            contrast=f"{beside}\n" if beside else "",
            hits_other=hits,
            opening=maker.direction.opening,
        )
        return await self._critic.review(sample.text, case, maker.mended, has_other=contrast is not None)

    def _case(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        direction: Direction,
        kinds: Sequence[str],
        contrast: Example | None,
    ) -> str:
        def reason(side: str) -> str:
            return f" ({reasons[side]})" if reasons.get(side) else ""

        answer, other = direction.answers
        beside = (
            render("note_taker_contrast", answer=other, other=answer, output=show_output(contrast)) if contrast else ""
        )
        return render(
            "note_taker_case",
            task=self._task,
            example=frame(Prompt(""), example).before.strip(),
            question=question.text,
            target_answer="yes" if disagreement.target else "no",
            target_reason=reason("target"),
            reference_answer="yes" if disagreement.reference else "no",
            reference_reason=reason("reference"),
            contrast=f"{beside}\n" if beside else "",
            kinds=f", one of: {'; '.join(kinds)}; or another" if kinds else "",
            rule_field=direction.field,
            rule_opening=direction.opening,
        )


__all__ = ["FaultKinds", "LenientNote", "Note", "NoteTaker", "NoteTaking", "ParseError", "StricterNote"]
