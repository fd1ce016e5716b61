"""Several samples of one note, and the one with which most of them agree."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ..models.base import CallError
from ..models.structured import ask_for
from .rule_text import likeness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..models.base import Message, Model
    from ..models.gateway import Gateway

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
