"""How a judge's rule is asked for in either direction, and made of what a model answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from .fault_kinds import listed_kind
from .rule_text import LONGEST_RULE, beside_the_point, is_truism, noun_phrase, rule_sentence, speaks_of, too_special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..prompts.checklist import Question


class NoteFields(BaseModel):
    """What every note begins with, in this order."""

    quote: str = Field(max_length=300)
    fact: str = Field(max_length=300)
    kind: str = Field(max_length=80)


class StricterNote(NoteFields):
    """The judge said yes where no is right."""

    answer_no_if: str = Field(min_length=10, max_length=LONGEST_RULE)


class LenientNote(NoteFields):
    """The judge said no where yes is right."""

    answer_yes_even_if: str = Field(min_length=10, max_length=LONGEST_RULE)


@dataclass(frozen=True)
class Direction:
    """How a rule of one direction is asked for and written."""

    name: Literal["stricter", "more lenient"]
    record: type[StricterNote] | type[LenientNote]
    field: str
    opening: str

    @property
    def stricter(self) -> bool:
        """Whether the rule makes the judge say no."""
        return self.name == "stricter"

    @property
    def answers(self) -> tuple[str, str]:
        """The right answer, and the one that the judge gave."""
        return ("no", "yes") if self.stricter else ("yes", "no")


STRICTER = Direction("stricter", StricterNote, "answer_no_if", "Answer no if the output")
LENIENT = Direction("more lenient", LenientNote, "answer_yes_even_if", "Answer yes even if the output")


@dataclass(frozen=True)
class RuleMaker:
    """Turns a note's ending into a rule, or says why it cannot be one."""

    direction: Direction
    question: Question
    shown: Sequence[str]
    """Texts of the examples, from which nothing may be copied."""
    judged: str
    """Words that any rule may use."""
    kinds: Sequence[str] = ()
    refuse_truisms: bool = False

    def rule(self, ending: str, kind: str) -> str:
        """The model's rule where it is general, else the rule that its kind makes.

        Raises:
            ValueError: Neither can be used; the message is told to the model.
        """
        text = rule_sentence(self.direction.opening, ending)
        problem = self._problem(text)
        follows = not self.kinds or not self.direction.stricter or speaks_of(kind, text)
        if problem is None and follows:
            return text
        known = listed_kind(kind, self.kinds)
        if known is not None:
            instead = f"{self.direction.opening} has {noun_phrase(known)}."
            problem = self._problem(instead, listed=True)
            if problem is None:
                return instead
        raise ValueError(problem or f'"{self.direction.field}" does not say what "kind" says')

    def mended(self, better: str) -> str:
        """The rule that a critique proposes.

        Raises:
            ValueError: It is no general rule.
        """
        if len(better) > LONGEST_RULE or len(better.split()) < 3:
            raise ValueError("it is no sentence")
        text = rule_sentence(self.direction.opening, better)
        if problem := self._problem(text):
            raise ValueError(problem)
        return text

    def _problem(self, text: str, *, listed: bool = False) -> str | None:
        """``listed``: the words are a kind's, which was listed without a look at any example."""
        special = beside_the_point(text, self.judged)
        if special is None and not listed:
            special = too_special(text, self.shown, self.question.violation or "", self.judged)
        if special is None and self.refuse_truisms and is_truism(text, self.question.text):
            return "the rule says no more than the question; name what to look for"
        return special
