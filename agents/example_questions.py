"""Questions that are written for one example, from the requirements in its input, and judging by them.

Sources: BinEval App. B (IFBench), and LMUnit's query-level unit tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..models.base import CallError, Model, ModelError
from ..models.gateway import Gateway
from ..prompts.checklist import Checklist, Question
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..prompts.templates import render
from ..prompts.text import letters
from ..prompts.verdicts import VerdictColumns, fields_of
from .agent import Agent
from .buying import Estimate, all_together
from .evaluator import Evaluator
from .judging import Judging
from .question_writer import questions_record, wording

DIMENSION = "instructions"
"""Dimension of every question that is written for one example."""
MOST = 6
"""Most questions that are written for one example, unless another number is given."""
OWN = Checklist(questions=(Question(id="q1", text="Is what the input asks for done?", dimension=DIMENSION),))
"""Stand-in for the examples' own checklists where only the dimension matters. It is never asked."""
_TOKENS_A_QUESTION = 120
_QUESTION_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")
"""Question marks in English, Chinese and Arabic, as questions are written in the language of the instruction."""


class _Draft(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    text: str = Field(min_length=8, max_length=400)
    violation: str = Field(min_length=3, max_length=300)


class ExampleQuestions(Agent):
    """A model that turns an example's input, read as an instruction, into a checklist for this example."""

    role = "writer"
    forgets = True

    def __init__(self, gateway: Gateway, model: Model, *, max_questions: int = MOST, seed: int | None = None) -> None:
        """``max_questions`` is the most questions for one example, at least 1."""
        super().__init__(gateway, model, seed=seed)
        self._most = max_questions

    async def write(
        self,
        examples: Sequence[Example],
        on_failed: Callable[[str, str], None] | None = None,
        on_done: Callable[[int, int], None] | None = None,
    ) -> dict[str, Checklist]:
        """Write a checklist for every example: one atomic yes/no question for each explicit requirement of its input.

        Only the input is read, so the questions are the same for every output. Their ids are ``q1``, ``q2``, ... in the
        order written. A question that repeats an earlier wording is left out. Returns checklists by example id, in
        input order. Failed examples are left out; ``on_failed`` is called with the id and the reason.
        """

        async def write_one(example: Example) -> Checklist | None:
            try:
                return await self._write(example)
            except CallError as error:
                if error.fatal:
                    raise
                if on_failed:
                    on_failed(example.id, str(error))
                return None

        written = await all_together(examples, write_one, self._gateway.concurrency(self._model), on_done)
        return {example.id: own for example, own in zip(examples, written, strict=True) if own is not None}

    async def _write(self, example: Example) -> Checklist:
        reply = await self._ask(
            render("example_questions", most=str(self._most)),
            render("example_questions_case", instruction=example.input),
            questions_record(_Draft, self._most),
            max_tokens=_TOKENS_A_QUESTION * self._most,
            check=_ask_something,
        )
        drafts: list[_Draft] = reply.questions  # type: ignore[attr-defined]
        # Not by embedding: requirements that differ in one word or number are nearer than most paraphrases are.
        different = {wording(draft.text): draft for draft in reversed(drafts)}
        kept = [draft for draft in drafts if different[wording(draft.text)] is draft]
        questions = tuple(
            Question(id=f"q{number}", text=draft.text, dimension=DIMENSION, violation=draft.violation)
            for number, draft in enumerate(kept, 1)
        )
        return Checklist(task=example.input, questions=questions)


def _ask_something(reply: Any) -> None:
    """Refuse statements and orders, because yes or no is no answer to them."""
    for draft in reply.questions:
        if not draft.text.endswith(_QUESTION_MARKS):
            raise ValueError(f"'{draft.text[:60]}' is not a question; end each with a question mark")


async def judge_by_own(
    evaluator: Evaluator,
    examples: Sequence[Example],
    own: Mapping[str, Checklist],
    on_examples: Callable[[int, int], None] | None = None,
) -> VerdictColumns:
    """Ask the questions of each example's ``own`` checklist. Each verdict holds the text that was ``asked``.

    ``on_examples`` is called with the number of finished examples and the number of all. Errors are those of
    :meth:`Evaluator.judge`.
    """

    async def judge(example: Example) -> VerdictColumns:
        return await replace(evaluator, checklist=own[example.id]).judge([example])

    first: dict[str, VerdictColumns] = {}
    for place, example in enumerate(examples, 1):  # one first, as the first answer settles the source of P(yes) for all
        try:
            first[example.id] = await judge(example)
            break
        except ModelError as error:
            if error.fatal or place == len(examples):
                raise

    async def judge_or_known(example: Example) -> VerdictColumns:
        return first[example.id] if example.id in first else await judge(example)

    workers = evaluator.gateway.concurrency(evaluator.model)
    verdicts = VerdictColumns()
    for example, some in zip(examples, await all_together(examples, judge_or_known, workers, on_examples), strict=True):
        texts = {question.id: question.text for question in own[example.id].questions}
        for each in some:
            verdicts.append(fields_of(replace(each, asked=texts[each.question])))
    return verdicts


def estimate_unwritten(examples: Sequence[Example], prompt: Prompt, judging: Judging) -> Estimate:
    """Estimate the writing and asking of :data:`MOST` questions for each example.

    If ``p_yes`` is ``auto``, log-probabilities are assumed, as in :meth:`Evaluator.estimate`.
    """
    draws = judging.draws("logprob" if judging.p_yes == "auto" else judging.p_yes)
    asked = judging.repeat * draws * (1 if judging.mode == "batched" else MOST)
    length = sum(letters(each.input) + letters(prompt.text) for each in examples) // 4 + 50
    calls = asked * len(examples) + len({each.input for each in examples})
    verdicts = MOST * len(examples) * judging.repeat
    return Estimate(verdicts, calls, 0, (asked + 1) * length, None if examples else 0.0)
