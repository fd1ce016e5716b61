"""Notes: what one is taken of, who takes it and how, and what it comes to.

A note-taker is told of a case and asked for a rule. Beyond one call, several samples of a note can be taken, of which
the one is kept that most of them agree with, and a critique can look at the rule before it becomes a lesson.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import CallError, Model
from ..models.gateway import Gateway
from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.lessons import Disagreement, Lesson
from ..prompts.templates import FencedText, render, template
from ..prompts.text import shorten
from .agent import Agent, ParseError
from .rules import Direction, direction_of, likeness


@dataclass(frozen=True)
class Case:
    """A disagreement with all that a note-taker may be told of it."""

    disagreement: Disagreement
    """The answers of the target and its reference."""
    example: Example
    """The example that they judged."""
    question: Question
    """The question that they were asked; for a generator it may be the description of a check."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Explanations under ``target`` and ``reference``, where they were bought."""
    contrast: Example | None = None
    """An example on which both gave the answer that is wrong here."""

    @property
    def direction(self) -> Direction:
        """Which way a judge's rule has to go."""
        return direction_of(self.question, self.disagreement.target)

    @property
    def examples(self) -> list[Example]:
        """The example and, where there is one, the other beside it."""
        return [self.example, *([self.contrast] if self.contrast else [])]

    def lesson(self, lesson_id: str, text: str, direction: Direction) -> Lesson:
        """The lesson that was drawn from it."""
        return Lesson(
            id=lesson_id,
            text=text,
            direction=direction.name,
            dimension=self.question.dimension,
            evidence=(self.disagreement.key,),
        )


class TakesNotes(Protocol):
    """A note-taker: one of ours (:class:`NoteAgent`), or one that was compiled with DSPy."""

    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """One lesson from one case.

        Raises:
            ParseError: No usable note, e.g. because the rule copies the example, or its critique refused it
                (``RefusedRuleError``).
            ModelError: No reply.
        """
        ...

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Get ready for notes on questions where the target was too kind, and on those where it was too severe.

        Raises:
            ModelError: Every further call would fail too.
        """
        ...


@dataclass(frozen=True)
class NoteTaking:
    """Work done for a note beyond one call; each part can be switched alone, so that it can be measured."""

    kinds: bool = True
    """The note names one of the kinds of faults that were first listed for the question: one call a question."""
    samples: int = 1
    """Notes taken of each disagreement, of which the one is kept with which most agree: so many calls."""
    contrast: bool = False
    """Where a case of the other kind is given, it is shown too, so that the rule says what separates them."""
    critique: bool = False
    """A second, short call checks the rule; truisms are refused without one."""
    choose_quote: bool = False
    """The quote is chosen among the output's own parts, so that it cannot be made up."""

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ValueError: ``samples`` is below 1.
        """
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, but at least one note has to be taken")


ONE_CALL = NoteTaking()
"""The settings where none are given."""


@dataclass(frozen=True)
class Sample:
    """One usable note: a rule that passed its guards, and what it was drawn from."""

    text: str
    quote: str
    fact: str
    kind: str


@dataclass(frozen=True)
class Assignment:
    """A request about a case, and how its replies are read."""

    system: str
    """Name of the template."""
    user: str
    record: type[BaseModel]
    """The note's schema."""
    read: Callable[[Any], Sample]
    """Raises ``ValueError`` with what is wrong with a note, which is told to the model once."""
    direction: Direction
    """Direction of the lesson."""
    doubts: Callable[[Sample], str]
    """Makes the critique's request about a sample."""
    mend: Callable[[str], str]
    """Makes a rule of the critique's better wording; raises ``ValueError`` where the guards refuse it."""


class NoteAgent(Agent, TakesNotes):
    """A model that takes notes of one case at a time."""

    role = "note_taker"

    def __init__(
        self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None, settings: NoteTaking = ONE_CALL
    ) -> None:
        """``task`` is the checklist's, so that the model knows what is judged."""
        super().__init__(gateway, model, seed=seed)
        self._task = task
        self._settings = settings
        self._critic = Critic(gateway, model, seed=seed)

    @abstractmethod
    async def _assignment(self, case: Case) -> Assignment:
        """The assignment for a case; it may itself ask for what has to be known before."""

    async def take_note(self, case: Case, lesson_id: str) -> Lesson:
        """Draw one lesson."""
        asked = await self._assignment(case)
        system = template(asked.system)

        async def sample(number: int) -> Sample:
            reply = await self._ask(system, asked.user, asked.record, max_tokens=400, check=asked.read, number=number)
            return asked.read(reply)

        best = most_agreed(await take_samples(sample, self._settings.samples))
        text = best.text
        if self._settings.critique:
            has_other = case.contrast is not None
            text = await self._critic.review(text, asked.doubts(best), asked.mend, has_other=has_other)
        return case.lesson(lesson_id, text, asked.direction)

    async def prepare(self, questions: Iterable[Question], lenient: Iterable[Question] = ()) -> None:
        """Nothing has to be known before."""

    def _shown_beside(self, case: Case, name: str, **values: str) -> FencedText:
        """The other example as a paragraph of the case, from a template; empty where it is not to be shown."""
        if case.contrast is None or not self._settings.contrast:
            return FencedText()
        return render(name, output=show_output(case.contrast), **values) + "\n"


def doubted_beside(case: Case, verdict: str, hits: str) -> dict[str, str]:
    """Values of a critique's case about the other example: what is right there, and when the rule would wrongly hit
    it."""
    if case.contrast is None:
        return {"contrast": "", "hits_other": "false, as there is no second output."}
    beside = render("critique_contrast", verdict=verdict, output=show_output(case.contrast))
    return {"contrast": beside + "\n", "hits_other": hits}


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


SHOWN_OUTPUT = 800
"""Characters of an output that is shown beside the one in question."""


def show_output(example: Example) -> str:
    """An example's output alone, shortened: what is shown of an example where tokens count."""
    return shorten(example.output or "", SHOWN_OUTPUT)


ALIKE = 0.5
"""Shared words over all words from which two rules say the same."""


async def take_samples(take: Callable[[int], Awaitable[Sample]], count: int) -> list[Sample]:
    """Have a note taken ``count`` times at once; returns those that can be used, in the order of their numbers.

    Raises:
        ParseError: No note can be used; the message is the first one's.
        ModelError: No reply to any.
    """
    notes = await asyncio.gather(*map(take, range(count)), return_exceptions=True)  # a call under way is paid for
    failures = [note for note in notes if isinstance(note, BaseException)]
    for failure in failures:
        if not isinstance(failure, CallError) or failure.fatal:
            raise failure
    if len(failures) == count:
        raise failures[0]
    return [note for note in notes if not isinstance(note, BaseException)]


def most_agreed(samples: Sequence[Sample]) -> Sample:
    """The sample that most samples agree with.

    Samples agree where they name the same kind or their rules share half of their words. Ties go to the sample whose
    words are nearest to those of all that agree with it, then to the earliest.
    """

    def support(sample: Sample) -> tuple[int, float]:
        near = [likeness(sample.text, other.text) for other in samples if agree(sample, other)]
        return len(near), sum(near)

    if not samples:
        raise ValueError("there are no samples to choose from")
    return max(samples, key=support)


def agree(one: Sample, other: Sample) -> bool:
    """Whether two samples name the same kind or say the same."""
    kinds = [" ".join(sample.kind.lower().split()).strip(" .\"'") for sample in (one, other)]
    return kinds[0] == kinds[1] != "" or likeness(one.text, other.text) >= ALIKE


class RefusedRuleError(ParseError):
    """The critique found a rule wanting, and no better one came of it."""


class Critique(BaseModel):
    """Findings about a rule."""

    model_config = ConfigDict(title="check of a rule")

    settles: bool
    """It is true of the case that it was made for."""
    hits_other: bool
    """It would wrongly hit the case shown beside it."""
    says_more: bool
    """It says more than the question does."""
    reason: str = Field(max_length=300)
    better: str = Field(max_length=300)


class Critic(Agent):
    """A model that checks one rule in one short call: it sees outputs, never documents."""

    role = "note_taker"

    async def review(self, rule: str, case: str, mend: Callable[[str], str], *, has_other: bool) -> str:
        """Check a rule; returns it, or the better one that the critique proposes.

        ``case`` is the question about it, as text: the case it was made for and, where it ``has_other``, the one that
        it must leave alone. ``mend`` makes a rule of the critique's better wording, or raises ``ValueError``.

        Raises:
            RefusedRuleError: It is not good, and neither is what the critique would say instead.
            ParseError: The critique itself cannot be used.
            ModelError: No reply.
        """
        found = await self._ask(template("critique"), case, Critique, max_tokens=250)
        problem = _problem(found, has_other=has_other)
        if problem is None:
            return rule
        why = f"{problem} ({' '.join(found.reason.split())})"
        try:
            better = mend(found.better)
        except ValueError as error:
            raise RefusedRuleError(f"{why}, and its revision cannot be used: {error}") from None
        if better == rule:
            raise RefusedRuleError(f"{why}: {rule}")
        return better


def _problem(found: Critique, *, has_other: bool) -> str | None:
    if not found.settles:
        return "the rule is not true of its own case"
    if has_other and found.hits_other:
        return "the rule also hits a case that is right"
    if not found.says_more:
        return "the rule says no more than the question"
    return None
