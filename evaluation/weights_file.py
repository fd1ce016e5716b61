"""Weights read from a file, and put on a checklist."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from sys import float_info
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..prompts.checklist import Checklist
from ..prompts.errors import InputError, did_you_mean
from ..prompts.text_files import read_object

if TYPE_CHECKING:
    from ..prompts.examples import Example

logger = logging.getLogger(__name__)

ScoreKind = Literal["given", "hard", "soft", "expected", "pairwise"]
"""Kind of scores that weights were learned from: scores in the file, a judge's scores of each output alone, or its
comparisons of two outputs, which say nothing of how to weigh the scores of one."""


def _weights_in(data: dict[str, Any], path: str | Path, section: str | None = None) -> dict[str, float]:
    """The weights of a file that was read, those of a section where one is named."""
    if _kind(data, path) == "pairwise":
        raise InputError(
            f"{path}: these weights were learned from comparisons of two outputs (weigh --pairwise), but here each "
            "output is judged alone. Learn weights for that with `askance weigh` without --pairwise."
        )
    if section is not None:
        data = _sections(data)[section]
    weights = data.get("weights", data) if isinstance(data, dict) else data
    return _checked(weights, str(path), "weights" if section is None else f"sections.{section}.weights")


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
    overall, learned = _weights_in(data, path), _kind(data, path)
    if scores is not None and learned not in (None, "given", scores):
        logger.warning(
            "%s: these weights were learned from %s scores, but here scores are %s. Use --scores %s, or learn weights "
            "from %s scores.", path, learned, scores, learned, scores
        )  # fmt: skip
    by_section = {name: _weights_in(data, path, name) for name in _sections(data)}
    try:
        weighted = with_weights(checklist, overall, by_section)
    except InputError as error:
        raise InputError(f"{path}: {error} Weights belong to the checklist that they were learned with.") from None
    _say_where_sections_are_missing(weighted, path, examples)
    return weighted


def _say_where_sections_are_missing(checklist: Checklist, path: str | Path, examples: Sequence[Example]) -> None:
    if not checklist.section_weights or not examples:
        return
    without = sum(checklist.section_of(example.metadata) is None for example in examples)
    if without:
        logger.warning(
            "%s: there are weights for sections (%s), but %s of %d examples %s in none of these by metadata.section "
            "or metadata.dataset; they get the overall weights.",
            path,
            ", ".join(checklist.section_weights),
            without if without < len(examples) else "all",
            len(examples),
            "is" if without == 1 else "are",
        )


def _kind(data: Mapping[str, Any], path: str | Path) -> ScoreKind | None:
    """Kind of scores that the weights were learned from; None where the file does not say."""
    kind: ScoreKind | None = data.get("scores") if "weights" in data else None
    if kind is not None and kind not in get_args(ScoreKind):
        raise InputError(f"{path}, field 'scores': {kind!r} is none of {', '.join(get_args(ScoreKind))}.")
    return kind


def _sections(data: dict[str, Any]) -> dict[str, Any]:
    """The sections of a ``weights.json``; none of a plain object from test id to number."""
    sections = data.get("sections") if "weights" in data else None
    return sections if isinstance(sections, dict) else {}


def _checked(weights: Any, where: str, field: str) -> dict[str, float]:
    if not isinstance(weights, dict) or not weights:
        raise InputError(f"{where}, field '{field}': an object from test id to number is needed.")
    for test, value in weights.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value <= float_info.max:
            raise InputError(f"{where}, field '{field}.{test}': {value!r:.40} is not a number of at least 0.")
    if not any(weights.values()):
        raise InputError(f"{where}, field '{field}': every weight is 0, so there is no score.")
    return {str(test): float(value) for test, value in weights.items()}


def with_weights(
    checklist: Checklist, weights: Mapping[str, float], sections: Mapping[str, Mapping[str, float]] | None = None
) -> Checklist:
    """Put ``weights``, by question id, on a checklist, scaled to a mean of 1; examples of one of the ``sections`` get
    its own.

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
