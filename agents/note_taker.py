"""The note-taker: from one disagreement to one general rule (BinEval §3.3, step 3).

The paper asks for free-form lessons. A small model then writes truisms; asked first to quote the words that decide,
then what the input says of them, then to name the kind of case and only then to finish a rule whose beginning is
given, it writes rules that can be used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from ..models.structured import ParseError, ask_for
from ..prompts.leaks import copied_words
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.prompt import Prompt, frame
from ..prompts.templates import render, template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.checklist import Question
    from ..prompts.examples import Example

LONGEST_RULE = 240
"""Characters; a rule is one sentence."""


class _Note(BaseModel):
    quote: str = Field(max_length=300)
    fact: str = Field(max_length=300)
    kind: str = Field(max_length=80)


class StricterNote(_Note):
    """The judge said yes where no is right."""

    answer_no_if: str = Field(min_length=10, max_length=LONGEST_RULE)


class LenientNote(_Note):
    """The judge said no where yes is right."""

    answer_yes_even_if: str = Field(min_length=10, max_length=LONGEST_RULE)


class NoteTaker:
    """A model that reads a disagreement in context and generalises it."""

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the checklist's task, so that the note-taker knows what is judged."""
        self._gateway = gateway
        self._model = model
        self._task = task
        self._seed = seed

    async def take_note(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        lesson_id: str,
    ) -> Lesson:
        """Draw one lesson.

        Args:
            disagreement: What the target and its reference said.
            example: The example they said it of.
            question: The question they were asked.
            reasons: Explanations under ``target`` and ``reference``, where they were bought.
            lesson_id: Id of the lesson to be.

        Raises:
            ParseError: The model's notes cannot be used, e.g. because the rule copies the example.
            ModelError: No reply.
        """
        stricter = disagreement.target
        record: type[StricterNote] | type[LenientNote] = StricterNote if stricter else LenientNote
        field = "answer_no_if" if stricter else "answer_yes_even_if"
        opening = "Answer no if the output" if stricter else "Answer yes even if the output"

        def is_general(note: BaseModel) -> None:
            rule = _rule(opening, getattr(note, field))
            copied = copied_words(rule, [example.input, example.output or "", example.context or ""])
            if copied:
                raise ValueError(f'"{field}" copies the example ("{copied}"); say it in general words')

        messages = [
            ("system", template("note_taker")),
            ("user", self._case(disagreement, example, question, reasons, field, opening)),
        ]
        note = await ask_for(
            self._gateway,
            "note_taker",
            self._model,
            messages,
            record,
            max_tokens=400,
            seed=self._seed,
            check=is_general,
        )
        return Lesson(
            id=lesson_id,
            text=_rule(opening, getattr(note, field)),
            direction="stricter" if stricter else "more lenient",
            dimension=question.dimension,
            evidence=(disagreement.key,),
        )

    def _case(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        field: str,
        opening: str,
    ) -> str:
        def reason(side: str) -> str:
            return f" ({reasons[side]})" if reasons.get(side) else ""

        return render(
            "note_taker_case",
            task=self._task,
            example=frame(Prompt(""), example).before.strip(),
            question=question.text,
            target_answer="yes" if disagreement.target else "no",
            target_reason=reason("target"),
            reference_answer="yes" if disagreement.reference else "no",
            reference_reason=reason("reference"),
            rule_field=field,
            rule_opening=opening,
        )


def _rule(opening: str, rest: str) -> str:
    """One sentence from its given opening and the model's ending, which may repeat part of the opening."""
    rest = " ".join(rest.split()).strip(" .\"'")
    rest = re.sub(r"^(?:answer\s+(?:no|yes\s+even)\s+if\s+)?(?:the\s+)?(?:output|it)\s+", "", rest, flags=re.IGNORECASE)
    rest = re.sub(r"^answer\s+(?:no|yes\s+even)\s+if\s+", "", rest, flags=re.IGNORECASE)
    subject = re.match(r"(?:the|a|an|any|there|some)\b", rest, re.IGNORECASE)
    start = opening.removesuffix(" the output") if subject else opening
    return f"{start} {rest[:1].lower()}{rest[1:]}."


__all__ = ["LenientNote", "NoteTaker", "ParseError", "StricterNote"]
