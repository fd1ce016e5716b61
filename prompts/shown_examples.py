"""Judged examples that a judge is shown before the output that it judges: which, how they are cut, and how they read.

Either the same few for every output (``fixed``), or for each output the remembered ones that are nearest to it
(``retrieved``; what MemAlign calls episodic memory). Only answers that are known are shown: one overall label does not
answer every question.
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
"""Characters of a case's input, and of its context, that are shown: the sentences that speak of its output."""
MOST_OUTPUT = 800
"""Characters of its output."""
MOST_REASON = 160
"""Characters of what people wrote of it."""

Said = Literal["accepted", "rejected"]
Texts = tuple[str, str, str]


class RememberedCase(BaseModel):
    """An output that people judged, cut to what is shown of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    """Id of the example that it was made of."""
    document: str | None = None
    """It is not shown where another output of that document is judged."""
    input: str
    context: str = ""
    output: str
    verdicts: dict[str, Said] = {}
    """People's verdicts, by dimension."""
    reason: str | None = None
    """Why, in people's words."""
    answers: dict[str, Literal["yes", "no"]] = {}
    """The right answers that are known, by the text of the question."""

    @model_validator(mode="after")
    def _says_something(self) -> RememberedCase:
        if not self.verdicts and not self.answers:
            raise ValueError("a case needs 'verdicts' or 'answers'; it says nothing without")
        return self

    @property
    def is_accepted(self) -> bool:
        """Whether nothing that is known speaks against it."""
        return "rejected" not in self.verdicts.values()


class ShownExamples(BaseModel):
    """The cases that a judge may be shown, and how they are chosen; part of the judge's identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["fixed", "retrieved"]
    at_once: int = Field(ge=1)
    """Cases that are shown with one output at most."""
    embedder: str | None = None
    """Name of the embedder that finds the nearest ones; for ``retrieved`` alone."""
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
        """As in "4 fixed examples" or "the 4 nearest of 60 examples"."""
        if self.mode == "fixed":
            return f"{len(self.cases)} fixed example{'s' if len(self.cases) > 1 else ''}"
        return f"the {self.at_once} nearest of {len(self.cases)} examples"


class Shows(Protocol):
    """Chooses the cases that are shown with an output."""

    @property
    def record(self) -> ShownExamples:
        """The cases that it chooses from, and how."""

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """The cases, in the order in which they are shown; never the example itself."""


@dataclass(frozen=True)
class FixedExamples:
    """Shows one set of cases with every output, so that all share one beginning; never an output itself."""

    record: ShownExamples

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """All that may be shown."""
        return allowed(self.record.cases, example)


def allowed(cases: Sequence[RememberedCase], example: Example) -> list[RememberedCase]:
    """The cases that are neither the example itself nor another output of its document."""
    texts, document = cut(example), named_document(example.metadata)
    return [
        each
        for each in cases
        if (each.input, each.context, each.output) != texts
        and (document is None or each.document is None or each.document != document)
    ]


def cut(example: Example) -> Texts:
    """The texts of an example that are shown: input and context, cut to what speaks of the output, and the output."""
    output = example.output or ""
    return (
        excerpt(example.input, output, MOST_TEXT),
        excerpt(example.context or "", output, MOST_TEXT),
        shorten(output, MOST_OUTPUT),
    )


def shown_text(cases: Sequence[RememberedCase], sees: Sees = "all") -> str:
    """The cases as a judge reads them, each text and reason fenced; empty where there are none.

    For a question that ``sees`` the output alone, that is all that it is shown of them.
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
