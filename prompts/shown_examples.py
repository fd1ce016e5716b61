"""Judged examples (cases) that a judge sees before the output that it judges: their choice, length and text.

Either every output gets the same few cases (``fixed``), or each output gets the remembered cases that are nearest to it
(``retrieved``; MemAlign calls this episodic memory). Only known answers are shown: one overall label does not answer
every question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .checklist import Sees
from .examples import Example, named_document
from .templates import FencedText, render, template
from .text import excerpt, fence, shorten

MOST_TEXT = 500
"""Maximum number of characters of a case's input, and of its context. The sentences that share most words with its
output are kept."""
MOST_OUTPUT = 800
"""Maximum number of characters of a case's output."""
MOST_REASON = 160
"""Maximum number of characters of people's reason for their verdict."""

Said = Literal["accepted", "rejected"]
Texts = tuple[str, str, str]


class RememberedCase(BaseModel):
    """An output that people judged, cut to the part that is shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    """Id of the example that the case was made of."""
    document: str | None = None
    """The case is not shown when another output of this document is judged."""
    input: str
    context: str = ""
    output: str
    verdicts: dict[str, Said] = {}
    """People's verdicts, by dimension."""
    reason: str | None = None
    """The reason for the verdicts, in people's words."""
    answers: dict[str, Literal["yes", "no"]] = {}
    """The known right answers, by the text of the question."""

    @model_validator(mode="after")
    def _says_something(self) -> RememberedCase:
        if not self.verdicts and not self.answers:
            raise ValueError("a case needs 'verdicts' or 'answers'; it says nothing without")
        return self

    @property
    def is_accepted(self) -> bool:
        """Whether no known verdict rejects the output."""
        return "rejected" not in self.verdicts.values()


class ShownExamples(BaseModel):
    """The cases that a judge may be shown, and how they are chosen; part of the judge's identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["fixed", "retrieved"]
    at_once: int = Field(ge=1)
    """Maximum number of cases that are shown with one output."""
    embedder: str | None = None
    """Name of the embedder that finds the nearest cases; for ``retrieved`` only."""
    cases: tuple[RememberedCase, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits_its_mode(self) -> ShownExamples:
        if (self.mode == "retrieved") != (self.embedder is not None):
            raise ValueError("embedder: retrieved examples need one, and fixed ones have none")
        ids = [each.id for each in self.cases]
        twice = next((each for each in ids if ids.count(each) > 1), None)
        if twice is not None:
            raise ValueError(f"cases: two have the id '{twice}'")
        return self

    @property
    def name(self) -> str:
        """Description such as "4 fixed examples" or "the 4 nearest of 60 examples"."""
        if self.mode == "fixed":
            return f"{len(self.cases)} fixed example{'s' if len(self.cases) > 1 else ''}"
        return f"the {self.at_once} nearest of {len(self.cases)} examples"


class Shows(Protocol):
    """Chooses the cases that are shown with an output."""

    @property
    def record(self) -> ShownExamples:
        """The cases to choose from, and the way of choosing."""

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """Return the cases for an example, in the order in which they are shown; never the example itself."""


@dataclass(frozen=True)
class FixedExamples:
    """Shows the same cases with every output, so that all prompts share a beginning; never the output itself."""

    record: ShownExamples

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """Return all cases that may be shown with the example."""
        return allowed(self.record.cases, example)


def allowed(cases: Sequence[RememberedCase], example: Example) -> list[RememberedCase]:
    """Return the cases that are neither the example itself nor another output of its document."""
    texts, document = cut(example), named_document(example.metadata)
    return [
        each
        for each in cases
        if (each.input, each.context, each.output) != texts
        and (document is None or each.document is None or each.document != document)
    ]


def cut(example: Example) -> Texts:
    """Return input, context and output of an example as they are shown. Input and context are cut to the sentences that
    share words with the output."""
    output = example.output or ""
    return (
        excerpt(example.input, output, MOST_TEXT),
        excerpt(example.context or "", output, MOST_TEXT),
        shorten(output, MOST_OUTPUT),
    )


def shown_text(cases: Sequence[RememberedCase], sees: Sees = "all") -> str:
    """Return the cases as a judge reads them, with each text and reason fenced; empty without cases.

    For a question that ``sees`` less than everything, the inputs and contexts of the cases are left out.
    """
    if not cases:
        return ""
    told = [render("shown_case", number=str(number), case=_told(each, sees)) for number, each in enumerate(cases, 1)]
    return "\n\n".join([template("shown_cases"), *told, template("shown_cases_end")])


def _told(case: RememberedCase, sees: Sees) -> FencedText:
    texts = {"Context": case.context, "Input": case.input} if sees == "all" else {}
    texts["Output"] = case.output
    parts = [f"{name}:\n{fence(text)}" for name, text in texts.items() if text or name == "Output"]
    whole = len(case.verdicts) == 1
    parts += [f"People{'' if whole else f' on {name}'}: {said}" for name, said in case.verdicts.items()]
    parts += [f"Why:\n{fence(case.reason)}"] if case.reason else []
    parts += [f"{question} {answer.capitalize()}" for question, answer in case.answers.items()]
    return FencedText("\n".join(parts))
