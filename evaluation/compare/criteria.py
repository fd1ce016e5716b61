"""What is judged, in words: each dimension with a description for ratings and a Boolean question for UniEval's way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...prompts.checklist import Checklist, Question

_KNOWN = {
    "coherence": (
        "the sentences follow from one another and make one well-ordered text; a reply follows from what was said",
        "Is the output coherent, each part following from what comes before?",
    ),
    "consistency": (
        "every statement of the output is supported by the input; nothing is made up or changed",
        "Is everything that the output states supported by the input?",
    ),
    "fluency": (
        "the single sentences are well formed: no errors of grammar, spelling, repetition or layout",
        "Is the output written in fluent, correct language?",
    ),
    "relevance": (
        "the output holds what is important in the input, and little else",
        "Does the output hold the important content of the input and little else?",
    ),
    "naturalness": (
        "the output sounds like something a person would say in this place",
        "Does the output sound like something a person would say here?",
    ),
    "engagingness": (
        "the output is interesting and makes one want to go on with the conversation",
        "Is the output interesting enough to keep the conversation going?",
    ),
    "groundedness": (
        "the output makes use of the facts that are given with the input",
        "Does the output make use of the facts that were given?",
    ),
    "understandability": (
        "a reader who knows the input understands what the output says",
        "Can one understand what the output says, given the input?",
    ),
    "overall": (
        "how good the output is, all things considered",
        "All things considered, is this a good output?",
    ),
}
"""Dimensions of the usual data sets, in our own words."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One dimension in words."""

    dimension: str
    description: str
    """Completes "Rate the output on DIMENSION: …"."""
    question: str
    """A yes/no question; yes is good."""


def criteria_for(dimensions: Sequence[str], given: str | None = None) -> tuple[Criterion, ...]:
    """The criteria of some dimensions.

    Args:
        dimensions: Their names. One that is not among the usual ones is described by its name alone.
        given: A description by the user (``--criteria``); it takes the place of ours for every dimension.
    """
    return tuple(_criterion(dimension, given) for dimension in dimensions)


def boolean_checklist(task: str, criteria: Sequence[Criterion]) -> Checklist:
    """One question for each dimension, as in UniEval (Zhong et al. 2022)."""
    questions = [
        Question(id=f"unieval_{each.dimension}", text=each.question, dimension=each.dimension) for each in criteria
    ]
    return Checklist(task=task, questions=tuple(questions))


def _criterion(dimension: str, given: str | None) -> Criterion:
    words = dimension.replace("_", " ")
    if given is not None:
        text = given.strip().rstrip(".")
        return Criterion(dimension, text, f"Is the output good as to its {words}: {text}?")
    if dimension.lower() in _KNOWN:
        return Criterion(dimension, *_KNOWN[dimension.lower()])
    return Criterion(dimension, f"how good the {words} of the output is", f"Is the {words} of the output good?")
