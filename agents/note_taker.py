"""The note-taker: from one disagreement to one general rule (BinEval §3.3, step 3).

The paper asks for free-form lessons. A small model then writes truisms; asked first to quote the words that decide,
then what the input says of them, then to name the kind of case and only then to finish a rule whose beginning is
given, it writes rules that can be used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from ..models.base import ModelError
from ..models.structured import ParseError, ask_for
from ..prompts.leaks import copied_names, copied_words, topic_words
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.prompt import Prompt, frame
from ..prompts.templates import render, template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.checklist import Question
    from ..prompts.examples import Example

LONGEST_RULE = 240
"""Characters; a rule is one sentence."""


_REPEATED_OPENING = re.compile(
    r"^(?:answer\s+(?:no|yes\s+even)\s+)?(?:if\s+)?(?:(?:the\s+)?output\s+|it\s+)?(?:if\s+(?:the\s+)?output\s+)?",
    re.IGNORECASE,
)
_REPEATED_ORDER = re.compile(r",?\s*(?:then\s+)?(?:please\s+)?answer\s+(?:no|yes)$", re.IGNORECASE)


class _Note(BaseModel):
    quote: str = Field(max_length=300)
    fact: str = Field(max_length=300)
    kind: str = Field(max_length=80)


class FaultKinds(BaseModel):
    """Kinds of faults that a checklist is about, in general words."""

    kinds: list[str] = Field(min_length=2, max_length=10)


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
        self._kinds: dict[str, list[str]] = {}

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

        kinds = await self.kinds(question) if stricter else []
        judged = " ".join([self._task, question.text, *kinds])

        def lesson_text(note: _Note) -> str:
            """The model's rule where it is general, else the rule that its kind makes."""
            rule = _rule(opening, getattr(note, field))
            problem = _too_special(rule, example, question, judged)
            if problem is None and (not kinds or _speaks_of(note.kind, rule)):
                return rule
            kind = next((each for each in kinds if each.lower() == note.kind.strip(" .").lower()), None)
            if kind is not None:
                return f"Answer no if the output has {kind}."
            raise ValueError(problem or f'"{field}" does not say what "kind" says')

        messages = [
            ("system", template("note_taker")),
            ("user", self._case(disagreement, example, question, reasons, field, opening, kinds)),
        ]
        note = await ask_for(
            self._gateway,
            "note_taker",
            self._model,
            messages,
            record,
            max_tokens=400,
            seed=self._seed,
            check=lesson_text,
        )
        return Lesson(
            id=lesson_id,
            text=lesson_text(note),
            direction="stricter" if stricter else "more lenient",
            dimension=question.dimension,
            evidence=(disagreement.key,),
        )

    async def prepare(self, questions: Iterable[Question]) -> None:
        """Have the kinds of faults of some questions listed, one after the other, before notes are taken at once.

        Raises:
            ModelError: Every further call would fail too.
        """
        for question in questions:
            try:
                await self.kinds(question)
            except ModelError as error:
                if error.fatal:
                    raise

    async def kinds(self, question: Question) -> list[str]:
        """Kinds of faults that a question may be about, from the question and the task alone.

        Choosing from a list before writing the rule keeps a small model from retelling the example. Where the model
        gives no usable list, the notes do without.

        Raises:
            ModelError: No reply.
        """
        if question.text not in self._kinds:
            self._kinds[question.text] = await self._list_kinds(question)
        return self._kinds[question.text]

    async def _list_kinds(self, question: Question) -> list[str]:
        try:
            found = await ask_for(
                self._gateway,
                "note_taker",
                self._model,
                [("user", render("fault_kinds", task=self._task, question=question.text))],
                FaultKinds,
                max_tokens=200,
                seed=self._seed,
            )
        except ParseError:
            return []
        kinds = dict.fromkeys(" ".join(kind.split()).rstrip(".") for kind in found.kinds)
        return [kind for kind in kinds if kind and not copied_words(kind, [template("fault_kinds")], run=4)]

    def _case(
        self,
        disagreement: Disagreement,
        example: Example,
        question: Question,
        reasons: Mapping[str, str],
        field: str,
        opening: str,
        kinds: Sequence[str],
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
            kinds=f", one of: {'; '.join(kinds)}; or another" if kinds else "",
            rule_field=field,
            rule_opening=opening,
        )


def _rule(opening: str, rest: str) -> str:
    """One sentence from its given opening and the model's ending, which may repeat parts of the opening."""
    rest = " ".join(rest.split()).strip(" .\"'")
    rest = _REPEATED_OPENING.sub("", rest)
    rest = _REPEATED_ORDER.sub("", rest)
    subject = re.match(r"(?:the|a|an|any|there|some)\b", rest, re.IGNORECASE)
    start = opening.removesuffix(" the output") if subject else opening
    return f"{start} {rest[:1].lower()}{rest[1:]}."


def _too_special(rule: str, example: Example, question: Question, judged: str) -> str | None:
    """Why a rule is about this one example; None where it is general."""
    shown = [example.input, example.output or "", example.context or ""]
    violation = [question.violation or ""]
    copied = (
        copied_words(rule, shown)
        or copied_words(rule, violation, run=3)
        or copied_names(rule, [*shown, *violation])
        or next(iter(topic_words(rule, " ".join(shown), judged)), None)
    )
    return f'the rule is about this example alone ("{copied}"); say it in general words' if copied else None


def _speaks_of(kind: str, rule: str) -> bool:
    """Whether the rule has a word of its kind: "does not match the input" has none of "a changed name"."""
    words = {word for word in re.findall(r"\w+", kind.lower()) if len(word) > 3}
    return bool(words & set(re.findall(r"\w+", rule.lower())))


__all__ = ["LenientNote", "NoteTaker", "ParseError", "StricterNote"]
