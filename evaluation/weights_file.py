"""Weights read from a file, and put on a checklist."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from ..prompts.checklist import Checklist
from ..prompts.errors import InputError, did_you_mean
from ..prompts.rows import validate_row
from ..prompts.text_files import read_object

if TYPE_CHECKING:
    from ..prompts.examples import Example

logger = logging.getLogger(__name__)

ScoreKind = Literal["given", "hard", "soft", "expected", "pairwise"]
"""Kind of scores that weights were learned from: scores in the file, a judge's scores of each output alone, or its
comparisons of two outputs, which do not tell how to weigh scores of single outputs."""


def _not_all_zero(weights: dict[str, float]) -> dict[str, float]:
    if not any(weights.values()):
        raise ValueError("every weight is 0, so there is no score")
    return weights


Weights = Annotated[
    dict[str, Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]],
    Field(min_length=1),
    AfterValidator(_not_all_zero),
]


class _Section(BaseModel):
    weights: Weights


class _WeightsFile(_Section):
    """A ``weights.json``; a plain object from test id to number is its ``weights``."""

    scores: ScoreKind | None = None
    sections: dict[str, _Section] | None = None


def weighted_by(
    checklist: Checklist, path: str | Path, *, scores: ScoreKind | None = None, examples: Sequence[Example] = ()
) -> Checklist:
    """Put the weights of a file on a checklist: the overall ones on its questions, and those of every section.

    A warning is logged where the weights were learned from another kind of scores than ``scores``, and where some of
    the examples are in none of the sections that have weights. Raises InputError where the file cannot be read, its
    weights were learned from comparisons of two outputs, or one is not a number of at least 0; or as
    :func:`with_weights`.
    """
    data = read_object(path, "weights file")
    read = validate_row(_WeightsFile, data if "weights" in data else {"weights": data}, str(path))
    learned = read.scores
    if learned == "pairwise":
        raise InputError(
            f"{path}: these weights were learned from comparisons of two outputs (weigh --pairwise), but here each "
            "output is judged alone. Learn weights for that with `askance weigh` without --pairwise."
        )
    if scores is not None and learned not in (None, "given", scores):
        logger.warning(
            "%s: these weights were learned from %s scores, but here scores are %s. Use --scores %s, or learn weights "
            "from %s scores.", path, learned, scores, learned, scores
        )  # fmt: skip
    by_section = {name: each.weights for name, each in (read.sections or {}).items()}
    try:
        weighted = with_weights(checklist, read.weights, by_section)
    except InputError as error:
        raise InputError(f"{path}: {error} Weights belong to the checklist that they were learned with.") from None
    _say_where_sections_are_missing(weighted, path, examples)
    return weighted


def _say_where_sections_are_missing(checklist: Checklist, path: str | Path, examples: Sequence[Example]) -> None:
    if not checklist.section_weights or not examples:
        return
    n_missing = sum(checklist.section_of(example.metadata) is None for example in examples)
    if n_missing:
        logger.warning(
            "%s: there are weights for sections (%s), but %s of %d examples %s in none of these by metadata.section "
            "or metadata.dataset; they get the overall weights.",
            path,
            ", ".join(checklist.section_weights),
            n_missing if n_missing < len(examples) else "all",
            len(examples),
            "is" if n_missing == 1 else "are",
        )


def with_weights(
    checklist: Checklist, weights: Mapping[str, float], sections: Mapping[str, Mapping[str, float]] | None = None
) -> Checklist:
    """Put ``weights``, by question id, on a checklist, scaled to a mean of 1; ``sections`` have weights of their own.

    Raises InputError where a question has no weight, or a weight belongs to no question.
    """
    overall = _scaled(checklist, weights)
    questions = [question.model_copy(update={"weight": overall[question.id]}) for question in checklist.questions]
    by_section = {name: _scaled(checklist, each) for name, each in (sections or {}).items()}
    return checklist.model_copy(update={"questions": tuple(questions), "section_weights": by_section})


def _scaled(checklist: Checklist, weights: Mapping[str, float]) -> dict[str, float]:
    """Weights by question id, in the order of the checklist, with a mean of 1."""
    ids = [question.id for question in checklist.questions]
    for missing in (each for each in ids if each not in weights):
        raise InputError(f"There is no weight for the question '{missing}'.{did_you_mean(missing, weights)}")
    for unknown in (each for each in weights if each not in ids):
        raise InputError(
            f"The weights name '{unknown}', but the checklist has no such question.{did_you_mean(unknown, ids)}"
        )
    total = sum(weights.values())
    return {each: weights[each] * len(ids) / total for each in ids}
