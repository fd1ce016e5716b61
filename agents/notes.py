"""A case: a disagreement that a note-taker reads; and how a note-taker turns one into a lesson."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from ..models.base import Model
from ..models.gateway import Gateway
from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.templates import FencedText, render, template
from .agent import Agent
from .own_words import is_own_question
from .rules import LENIENT_RATING, STRICTER_RATING, Direction, direction_of


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

    def lesson(self, lesson_id: str, text: str, direction: Direction) -> Lesson:
        """The lesson that was drawn from it."""
        return Lesson(
            id=lesson_id,
            text=text,
            direction=direction.name,
            dimension=self.question.dimension,
            evidence=(self.disagreement.key,),
        )


@dataclass(frozen=True)
class Assignment:
    """A request about a case, and how its replies are read."""

    system: str
    """Name of the template."""
    user: str
    record: type[BaseModel]
    """The note's schema."""
    rule: Callable[[Any], str]
    """Reads the rule from a note; raises ``ValueError`` with what is wrong, which is told to the model once."""
    direction: Direction


class NoteAgent(Agent):
    """A model that takes notes of one case at a time."""

    role = "note_taker"

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the checklist's, so that the model knows what is judged."""
        super().__init__(gateway, model, seed=seed)
        self._task = task

    @abstractmethod
    async def _assignment(self, case: Case) -> Assignment:
        """The assignment for a case; it may itself ask for what has to be known before."""

    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """Draw one lesson from one case. Raises ParseError where there is no usable note, e.g. because the rule copies
        the example."""
        asked = await self._assignment(case)
        reply = await self._ask(template(asked.system), asked.user, asked.record, max_tokens=400, check=asked.rule)
        return case.lesson(lesson_id, asked.rule(reply), asked.direction)

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Get ready for notes on questions where the target was too kind, and on those where it was too severe. Raises
        ModelError where every further call would fail too."""


def both_answers(case: Case) -> dict[str, str]:
    """Values of the templates about the two sides: their answers and reasons."""
    return {
        "target_answer": "yes" if case.disagreement.target else "no",
        "target_reason": given_reason(case, "target", " "),
        "reference_answer": "yes" if case.disagreement.reference else "no",
        "reference_reason": given_reason(case, "reference", " "),
    }


def given_reason(case: Case, side: str, before: str = "") -> FencedText:
    """The reason of ``target`` or ``reference``, after words of our own; empty where there is none."""
    reason = case.reasons.get(side)
    return FencedText(before) + render("given_reason", reason=reason) if reason else FencedText()
