"""How notes are taken, by whatever note-taker, and what one comes to.

Several samples of one note, and the one with which most of them agree.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ..models.base import CallError
from ..models.structured import ask_for
from ..prompts.text import fence, shorten
from .rules import likeness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..models.base import Message, Model
    from ..models.gateway import Gateway
    from ..prompts.examples import Example
    from ..prompts.lessons import Lesson
    from .critique import Reviewed


SHOWN_OUTPUT = 800
"""Characters of an output that is shown beside the one in question."""


@dataclass(frozen=True)
class NoteTaking:
    """What is done for a note beyond one call; each can be switched alone, so that each can be measured."""

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


@dataclass(frozen=True)
class Note:
    """A lesson with what it was drawn from."""

    lesson: Lesson
    quote: str
    fact: str
    kind: str
    usable: int
    """Samples that passed the guards."""
    agreeing: int
    """Those of them that agree with the one that was kept, itself included."""
    review: Reviewed | None = None
    """What the critique said, where it was asked."""


ONE_CALL = NoteTaking()
"""The settings where none are given."""


def show_output(example: Example, most_chars: int = SHOWN_OUTPUT) -> str:
    """An example's output alone, shortened and fenced: what is shown of an example where tokens count."""
    return fence(shorten(example.output or "", most_chars))


Reply = TypeVar("Reply", bound=BaseModel)

ALIKE = 0.5
"""Shared words over all words from which two rules say the same."""
SAMPLE_TEMPERATURE = 0.8
"""Of every sample but the first, which is taken at temperature 0."""


@dataclass(frozen=True)
class Sample:
    """One usable note: a rule that passed its guards, and what it was drawn from."""

    text: str
    quote: str
    fact: str
    kind: str


async def take_samples(
    gateway: Gateway,
    model: Model,
    messages: Sequence[Message],
    record: type[Reply],
    read: Callable[[Reply], Sample],
    *,
    count: int = 1,
    seed: int | None = None,
) -> list[Sample]:
    """Ask for a note ``count`` times; returns those that can be used, in the order of their numbers.

    Args:
        gateway: Pays and keeps.
        model: Who takes notes.
        messages: The case.
        record: The note's schema.
        read: Makes a sample of a note; raises ``ValueError`` with what is wrong with it, which is told to the model once.
        count: Number of notes, 1 or more; each has a seed of its own.
        seed: Of the first one.

    Raises:
        ParseError: No note can be used; the message is the first one's.
        ModelError: No reply to any.
    """
    works = [
        ask_for(
            gateway,
            "note_taker",
            model,
            messages,
            record,
            max_tokens=400,
            temperature=SAMPLE_TEMPERATURE if number else 0.0,
            seed=seed if seed is None else seed + number,
            replicate=number,
            check=read,
        )
        for number in range(count)
    ]
    notes = await asyncio.gather(*works, return_exceptions=True)  # a call under way is paid for: let it end
    failures = [note for note in notes if isinstance(note, BaseException)]
    for failure in failures:
        if not isinstance(failure, CallError) or failure.fatal:
            raise failure
    if len(failures) == count:
        raise failures[0]
    return [read(note) for note in notes if not isinstance(note, BaseException)]


def most_agreed(samples: Sequence[Sample]) -> tuple[Sample, int]:
    """The sample that most samples agree with, and how many do, itself included.

    Samples agree where they name the same kind or their rules share half of their words. Ties go to the sample whose
    words are nearest to those of all that agree with it, then to the earliest.
    """
    best: tuple[int, float, int] | None = None
    for place, sample in enumerate(samples):
        near = [likeness(sample.text, other.text) for other in samples if agree(sample, other)]
        rank = (len(near), sum(near), -place)
        best = rank if best is None or rank > best else best
    if best is None:
        raise ValueError("there are no samples to choose from")
    return samples[-best[2]], best[0]


def agree(one: Sample, other: Sample) -> bool:
    """Whether two samples name the same kind or say the same."""
    kinds = [" ".join(sample.kind.lower().split()).strip(" .\"'") for sample in (one, other)]
    return kinds[0] == kinds[1] != "" or likeness(one.text, other.text) >= ALIKE
