"""Rows made into examples and preference pairs, with every error naming the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.field_map import FIELDS
from ...prompts.preferences import Preference
from ...prompts.rows import validate_row
from .sources import Row


def example(
    row: Row,
    name: str,
    source: str,
    output: str,
    human: Mapping[str, Sequence[float]],
    *,
    context: str | None = None,
    system: str | None = None,
    document: str | None = None,
) -> Example:
    """An example; ``document`` is kept in its metadata, where the statistics look for it.

    Raises:
        InputError: A value has the wrong type.
    """
    fields: dict[str, Any] = {"id": name, "input": source, "output": output, "context": context, "system": system}
    fields["human"] = {dimension: list(ratings) for dimension, ratings in human.items()}
    fields["metadata"] = {} if document is None else {"document": document}
    return validate_row(Example, fields, row.where)


def own_example(row: Row, dimensions: Sequence[str], *, keep: Sequence[str] = ()) -> Example:
    """A row that is in askance's own format already; only these dimensions are kept.

    Where every expert's ratings stand beside the means (``human_experts``), the single ratings are taken. ``keep``
    names further dimensions that are kept where the row has them.

    Raises:
        InputError: It is not, or people did not rate all of ``dimensions``.
    """
    for field in ("id", "input", "output", "human"):
        row[field]
    values = {name: value for name, value in row.values.items() if value is not None}
    human = values["human"]
    experts = values.pop("human_experts", None)
    if experts is not None:
        human = {dimension: ratings_of(row, experts, dimension) for dimension in dimensions}
    missing = [dimension for dimension in dimensions if dimension not in human]
    if missing:
        raise InputError(f"{row.where}: there is no human score on '{missing[0]}'.")
    wanted = [*dimensions, *(each for each in keep if each in human)]
    known = {name: value for name, value in values.items() if name in FIELDS}
    extra = {name: value for name, value in values.items() if name not in FIELDS}
    known["human"] = {dimension: human[dimension] for dimension in wanted}
    known["metadata"] = {**extra, **known.get("metadata", {})}
    return validate_row(Example, known, row.where)


def ratings_of(row: Row, annotations: Sequence[Any], dimension: str) -> list[float]:
    """The ratings of one dimension by all annotators.

    Raises:
        InputError: An annotator left it out.
    """
    ratings = []
    for number, annotation in enumerate(annotations, 1):
        value = annotation.get(dimension) if isinstance(annotation, Mapping) else None
        if value is None:
            raise InputError(f"{row.where}: annotator {number} gave no rating of '{dimension}'.")
        ratings.append(value)
    return ratings


def scores_of(row: Row, field: str, dimensions: Sequence[str]) -> dict[str, list[float]]:
    """The human scores of a row in UniEval's form.

    Raises:
        InputError: A dimension is missing.
    """
    scores = row[field]
    if not isinstance(scores, Mapping) or any(scores.get(dimension) is None for dimension in dimensions):
        raise InputError(f"{row.where}: '{field}' must have a number for each of {', '.join(dimensions)}.")
    return {dimension: [scores[dimension]] for dimension in dimensions}


def pair(row: Row, **fields: Any) -> Preference:
    """A preference pair.

    Raises:
        InputError: A value has the wrong type.
    """
    return validate_row(Preference, fields, row.where)


def own_pair(row: Row) -> Preference:
    """A row that is in askance's own format already.

    Raises:
        InputError: It is not.
    """
    return validate_row(Preference, dict(row.values), row.where)


def chat(messages: list[Any]) -> str:
    """A conversation as text: one paragraph a message, with who says it."""
    return "\n\n".join(f"{str(each['role']).capitalize()}: {each['content']}" for each in messages)
