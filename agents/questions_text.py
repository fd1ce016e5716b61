"""How questions are put to an evaluator, and in what form it has to answer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from ..prompts.templates import template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..prompts.checklist import Question

YES_NO = {"type": "string", "enum": ["yes", "no"]}
EXPLAINED = {
    "type": "object",
    "properties": {"answer": YES_NO, "explanation": {"type": "string", "maxLength": 300}},
    "required": ["answer", "explanation"],
    "additionalProperties": False,
}


def question_block(question: Question) -> str:
    """One question with its rubric, reference answer and violation example, where it has them."""
    lines = [f"Question: {question.text}"]
    if question.rubric:
        lines.append(f"Rubric: {question.rubric}")
    if question.reference:
        lines.append(f"Reference answer: {question.reference}")
    if question.violation:
        lines.append(f"A violation would be: {question.violation}")
    return "\n".join(lines)


def each_format(*, explained: bool) -> str:
    """The sentence that says how to answer one question."""
    return template("answer_explained" if explained else "answer_word")


def batched_format(*, explained: bool) -> str:
    """The sentence that says how to answer all questions at once."""
    return template("answer_batched_explained" if explained else "answer_batched")


def batched_block(questions: Sequence[Question]) -> str:
    """All questions, each under its id."""
    return "\n\n".join(f"[{question.id}] {question_block(question)}" for question in questions)


def batched_schema(questions: Sequence[Question], *, explained: bool) -> dict[str, Any]:
    """JSON schema of the answers, keyed by question id in the order asked."""
    return {
        "type": "object",
        "properties": {question.id: EXPLAINED if explained else YES_NO for question in questions},
        "required": [question.id for question in questions],
        "additionalProperties": False,
    }


def shuffled(questions: Sequence[Question], seed: int, example: str, replicate: int) -> list[Question]:
    """The questions in an order that depends on the seed, the example and the replicate alone."""
    order = list(questions)
    random.Random(f"{seed}/{example}/{replicate}").shuffle(order)
    return order
