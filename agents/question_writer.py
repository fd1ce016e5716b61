"""The question writer: task → requirements → atomic yes/no questions (BinEval §3.1).

The question proposer: yes/no questions from a few unlabelled examples (EIG §3.2 and App. A.5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..memory.neighbours import greedy_unique
from ..models.structured import ask_for
from ..prompts.checklist import Checklist, Question
from ..prompts.errors import AskanceError
from ..prompts.templates import render, template
from ..prompts.text import fence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..memory.embedders import Embedder
    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..prompts.examples import Example


SAME_QUESTION = 0.95
"""Cosine similarity from which two questions count as the same."""
MOST_REQUIREMENTS = 12
"""Requirements that are read from a task at most, unless another number is given."""
MOST_PARTS = 3
"""Questions for one requirement at most, and parts that a compound one is taken apart into."""
MOST_CALLS = 1 + MOST_REQUIREMENTS * (1 + MOST_PARTS)
"""Calls for a checklist at most, re-asks aside: the requirements, the questions for each, and each taken apart."""
_COMPOUND = re.compile(r"\b(?:and|or|both|as well as)\b|;", re.IGNORECASE)


class Requirements(BaseModel):
    """Step 1: what the task demands."""

    requirements: list[str] = Field(min_length=1)


class Split(BaseModel):
    """A question, or the questions that it holds."""

    questions: list[_Draft] = Field(min_length=1, max_length=MOST_PARTS)


class QuestionWriter:
    """A model that decomposes a task into a checklist."""

    def __init__(self, gateway: Gateway, model: Model, embedder: Embedder, *, seed: int | None = None) -> None:
        """``embedder`` finds questions that repeat each other."""
        self._gateway = gateway
        self._model = model
        self._embedder = embedder
        self._seed = seed

    async def write(
        self,
        task: str,
        dimensions: Sequence[str] = (),
        *,
        most_requirements: int = MOST_REQUIREMENTS,
        on_progress: Callable[[str], None] | None = None,
    ) -> Checklist:
        """Write a checklist for a task.

        Args:
            task: What the generator is asked to do.
            dimensions: Allowed dimensions; where there are none, the model proposes a word for each question.
            most_requirements: How many requirements step 1 may list.
            on_progress: Told what is being done.

        Raises:
            ParseError: The model's replies cannot be used.
            ModelError: No reply.
        """
        tell = on_progress or (lambda _: None)
        tell("reading the task's requirements")
        found = await ask_for(
            self._gateway,
            "writer",
            self._model,
            [
                ("system", render("requirements", most=str(most_requirements))),
                ("user", render("requirements_case", task=task)),
            ],
            Requirements,
            max_tokens=60 * most_requirements,
            seed=self._seed,
        )
        requirements = [text.strip() for text in found.requirements[:most_requirements] if text.strip()]
        drafts: list[tuple[str, str, str]] = []
        for number, requirement in enumerate(requirements, 1):
            tell(f"requirement {number} of {len(requirements)}: {requirement}")
            for text, violation, dimension in await self._decompose(task, requirement, dimensions):
                for part in await self._split(text, violation):
                    drafts.append((part.text, part.violation, dimension))
        return self._checklist(task, drafts)

    async def _decompose(self, task: str, requirement: str, dimensions: Sequence[str]) -> list[tuple[str, str, str]]:
        record = _drafts_record(dimensions)
        sentence, fields = ", and with the dimension of quality that it belongs to", '"text", "violation", "dimension"'
        if len(dimensions) > 1:
            sentence += f" (one of: {', '.join(dimensions)})"
        elif dimensions:
            sentence, fields = "", '"text", "violation"'
        reply = await ask_for(
            self._gateway,
            "writer",
            self._model,
            [
                ("system", render("decompose", dimension_sentence=sentence, fields=fields)),
                ("user", render("decompose_case", task=task, requirement=requirement)),
            ],
            record,
            max_tokens=500,
            seed=self._seed,
        )
        drafts: list[Any] = reply.questions  # type: ignore[attr-defined]
        if len(dimensions) == 1:
            return [(draft.text, draft.violation, dimensions[0]) for draft in drafts]
        if dimensions:
            return [(draft.text, draft.violation, draft.dimension) for draft in drafts]
        return [(draft.text, draft.violation, " ".join(draft.dimension.lower().split())) for draft in drafts]

    async def _split(self, text: str, violation: str) -> list[_Draft]:
        """Have a question that looks compound taken apart; others are kept without a call."""
        if not _COMPOUND.search(text):
            return [_Draft(text=text, violation=violation)]
        reply = await ask_for(
            self._gateway,
            "writer",
            self._model,
            [
                ("system", template("split_question")),
                ("user", render("split_question_case", question=text, violation=violation)),
            ],
            Split,
            max_tokens=400,
            seed=self._seed,
        )
        return reply.questions

    def _checklist(self, task: str, drafts: Sequence[tuple[str, str, str]]) -> Checklist:
        if not drafts:
            raise AskanceError(
                "The model wrote no questions for this task. Say more in the task, or use another model."
            )
        kept = greedy_unique(self._embedder.embed([text for text, _, _ in drafts]), SAME_QUESTION)
        numbers: dict[str, int] = {}
        questions = []
        for index in kept:
            text, violation, dimension = drafts[index]
            slug = re.sub(r"\W+", "-", dimension).strip("-") or "question"
            numbers[slug] = numbers.get(slug, 0) + 1
            questions.append(
                Question(id=f"{slug}-{numbers[slug]}", text=text, dimension=dimension, violation=violation)
            )
        return Checklist(task=task.strip(), questions=tuple(questions))


def _drafts_record(dimensions: Sequence[str]) -> type[BaseModel]:
    """Reply record of step 2; its dimension is one of the given ones, free, or left out."""
    fields: dict[str, object] = {}
    if len(dimensions) > 1:
        fields["dimension"] = (Literal[tuple(dimensions)], ...)
    elif not dimensions:
        fields["dimension"] = (str, Field(min_length=2, max_length=40))
    draft = create_model("Draft", __base__=_Draft, **fields)  # type: ignore[call-overload]
    questions = (list[draft], Field(min_length=1, max_length=MOST_PARTS))  # type: ignore[valid-type]
    return create_model("Drafts", questions=questions)


ROLE = "writer"
"""The ledger that proposals are booked under."""
_LONGEST = 6000
"""Characters of a text that are shown; a longer one is cut in its middle."""


class _Draft(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    text: str = Field(min_length=8, max_length=300)
    violation: str = Field(min_length=3, max_length=300)


@dataclass(frozen=True)
class Proposal:
    """One proposed question."""

    text: str
    violation: str
    dimension: str


class QuestionProposer:
    """A model that is shown examples without their scores and proposes questions to judge them by."""

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        *,
        task: str = "",
        dimensions: Sequence[str] = (),
        most: int = 8,
        seed: int | None = None,
    ) -> None:
        """``task`` is what the generator is asked to do; ``dimensions`` are the allowed ones, free where empty."""
        self._gateway = gateway
        self._model = model
        self._task = task.strip()
        self._dimensions = tuple(dimensions)
        self._most = most
        self._seed = seed

    async def propose(self, examples: Sequence[Example], known: Sequence[str]) -> list[Proposal]:
        """Propose questions on seeing some examples.

        Args:
            examples: What is shown of them is context, input, reference and output, never a score or the system's name.
            known: Questions that are there already.

        Raises:
            ParseError: The replies cannot be used.
            ModelError: No reply.
            BudgetExceededError: A cap was reached.
        """
        fields = '"text", "violation"'
        if len(self._dimensions) != 1:
            fields += ', "dimension" (the side of quality that it is about'
            fields += f": one of {', '.join(self._dimensions)})" if self._dimensions else ", one or two words)"
        system = render("propose", most=str(self._most), fields=fields)
        task = f"The task:\n{self._task}\n\n" if self._task else ""
        shown = "\n\n".join(_shown(number, example) for number, example in enumerate(examples, 1))
        listed = "\n".join(f"- {text}" for text in known) or "(none)"
        reply = await ask_for(
            self._gateway,
            ROLE,
            self._model,
            [("system", system), ("user", render("propose_case", task=task, examples=shown, known=listed))],
            self._record(),
            max_tokens=120 * self._most,
            seed=self._seed,
        )
        drafts: list[Any] = reply.questions  # type: ignore[attr-defined]
        if len(self._dimensions) == 1:
            return [Proposal(each.text, each.violation, self._dimensions[0]) for each in drafts]
        if self._dimensions:
            return [Proposal(each.text, each.violation, each.dimension) for each in drafts]
        return [Proposal(each.text, each.violation, " ".join(each.dimension.lower().split())) for each in drafts]

    def _record(self) -> type[BaseModel]:
        """Reply record; a question's dimension is one of the given ones, free, or left out."""
        extra: dict[str, object] = {}
        if len(self._dimensions) > 1:
            extra["dimension"] = (Literal[self._dimensions], ...)
        elif not self._dimensions:
            extra["dimension"] = (str, Field(min_length=2, max_length=40))
        draft = create_model("Draft", __base__=_Draft, **extra)  # type: ignore[call-overload]
        questions = (list[draft], Field(min_length=1, max_length=self._most))  # type: ignore[valid-type]
        return create_model("Proposals", questions=questions)


def _shown(number: int, example: Example) -> str:
    parts = [f"Example {number}"]
    for name in ("context", "input", "reference", "output"):
        text = getattr(example, name)
        if text:
            parts.append(f"{name.capitalize()}:\n{fence(_cut(text))}")
    return "\n\n".join(parts)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
