"""Verdicts that are there already: read from a file or taken as given, those of one judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..prompts.errors import InputError
from ..prompts.prompt import load_prompt
from ..prompts.verdicts import Verdict, read_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..models.base import Model
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.prompt import Prompt


def given_verdicts(
    verdicts: str | Path | Iterable[Verdict],
    examples: Sequence[Example],
    checklist: Checklist,
    model: str | Model | None = None,
    prompt: str | Path | Prompt | None = None,
) -> list[Verdict]:
    """Verdicts on these questions, of one model or made with one prompt where that is asked for.

    Args:
        verdicts: File as ``askance evaluate -o`` writes it, or verdicts.
        examples: All that the file may be about.
        checklist: All that the file may answer.
        model: Name of the model whose verdicts are wanted; any where None.
        prompt: The evaluator prompt of those wanted; any where None.

    Raises:
        InputError: The file is wrong (with its line and field), or no verdict is by the model or with the prompt.
    """
    if isinstance(verdicts, (str, Path)):
        of_examples = {example.id: None for example in examples}
        of_questions = [question.id for question in checklist.questions]
        given = read_verdicts(verdicts, examples=of_examples, questions=of_questions)
    else:
        given = list(verdicts)
    name = model if model is None or isinstance(model, str) else model.name
    wanted = None if prompt is None else load_prompt(prompt).hash
    for field, value in (("model", name), ("prompt", wanted)):
        if value is None or not given:
            continue
        there = sorted({getattr(verdict, field) for verdict in given})
        given = [verdict for verdict in given if getattr(verdict, field) == value]
        if not given:
            raise InputError(f"No verdict is by the {field} {value}; there are some by {', '.join(there)}.")
    return given
