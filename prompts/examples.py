"""Examples: what a judge looks at, with the scores people gave it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .errors import InputError, did_you_mean
from .jsonl import read_rows, validate_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FIELDS = ("id", "input", "output", "context", "reference", "system", "metadata", "human")

Ratings = tuple[float, ...]


class Example(BaseModel):
    """One item: input x, output y and, where people rated it, their scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str = Field(min_length=1)
    """Unique within a file."""
    input: str
    """What the generator was given: a document, a dialogue, an instruction."""
    output: str | None = None
    """What is judged; None where a generator is still to make it."""
    context: str | None = None
    reference: str | None = None
    system: str | None = None
    """Which system made the output, for system-level correlations."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    human: dict[str, Ratings] = Field(default_factory=dict)
    """Dimension to ratings, one a rater, on the scale of the data."""

    @field_validator("human", mode="before")
    @classmethod
    def _ratings(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("an object from dimension to number (or list of numbers) is needed")
        ratings = {}
        for dimension, score in value.items():
            scores = score if isinstance(score, (list, tuple)) else [score]
            if not scores:
                raise ValueError(f"'{dimension}' has an empty list of ratings")
            if any(isinstance(each, bool) or not isinstance(each, (int, float)) for each in scores):
                raise ValueError(f"'{dimension}' must be a number or a list of numbers")
            ratings[dimension] = tuple(float(each) for each in scores)
        return ratings

    @model_validator(mode="before")
    @classmethod
    def _unknown_fields_are_metadata(cls, value: Any) -> Any:
        """Keep columns that are not ours under ``metadata``, where nothing reads them by accident."""
        if not isinstance(value, dict):
            return value
        extra = {name: value[name] for name in value if name not in FIELDS}
        if not extra:
            return value
        known = {name: value[name] for name in value if name in FIELDS}
        metadata = known.get("metadata") or {}
        return known | {"metadata": extra | metadata} if isinstance(metadata, dict) else value

    def human_score(self, dimension: str) -> float | None:
        """Mean rating on one dimension, on the scale of the data; None where nobody rated it."""
        ratings = self.human.get(dimension)
        return sum(ratings) / len(ratings) if ratings else None


def load_examples(
    source: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    need_output: bool = True,
) -> list[Example]:
    """Load examples from a JSONL or CSV file, a Hugging Face dataset or any iterable of mappings.

    Args:
        source: A path, or rows (a ``datasets.Dataset`` iterates as such).
        fields: Renames columns: our name to the column's name, e.g. ``{"output": "summary"}``.
            ``human.D`` maps a plain column to the human dimension ``D``.
        limit: Keep only the first ``limit`` examples.
        need_output: Whether every example must have an output to judge.

    Raises:
        InputError: Names the file, line and field of the first problem.
    """
    examples: list[Example] = []
    seen: dict[str, str] = {}
    for where, row in _rows(source):
        if limit is not None and len(examples) >= limit:
            break
        example = row if isinstance(row, Example) else _example(dict(row), fields or {}, where)
        if example.id in seen:
            raise InputError(f"{where}: the id '{example.id}' was used before, in {seen[example.id]}.")
        if need_output and example.output is None:
            raise InputError(f"{where}: the field 'output' is missing{_typo(row)}.")
        seen[example.id] = where
        examples.append(example)
    if not examples:
        name = source if isinstance(source, (str, Path)) else "the data"
        raise InputError(f"{name}: there are no examples in it.")
    return examples


def _rows(source: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(source, (str, Path)):
        for number, row in read_rows(Path(source)):
            yield f"{source}, line {number}", row
    else:
        for number, row in enumerate(source, 1):
            yield f"row {number}", row


def _example(row: dict[str, Any], fields: Mapping[str, str], where: str) -> Example:
    for ours, column in fields.items():
        name, _, dimension = ours.partition(".")
        if name not in FIELDS:
            raise InputError(f"Field map: '{ours}' is not one of our fields.{did_you_mean(name, FIELDS)}")
        if column not in row:
            raise InputError(f"{where}: there is no column '{column}' (field map: {ours}={column}).")
        value = row.pop(column)
        if dimension:
            row.setdefault(name, {})[dimension] = _number(value)
        else:
            row[name] = value
    if isinstance(row.get("id"), int):
        row["id"] = str(row["id"])
    for field in ("id", "input"):
        if field not in row:
            raise InputError(f"{where}: the field '{field}' is missing{_typo(row, field)}.")
    return validate_row(Example, row, where)


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _typo(row: Any, field: str = "output") -> str:
    extra = row.metadata if isinstance(row, Example) else {k: v for k, v in row.items() if k not in FIELDS}
    hint = did_you_mean(field, [str(name) for name in extra])
    return hint and f" ({hint.strip().removesuffix('?')}? A field map renames it)"


def human_dimensions(examples: Sequence[Example]) -> list[str]:
    """Dimensions that at least one example was rated on, in order of first appearance."""
    return list(dict.fromkeys(dimension for example in examples for dimension in example.human))


def parse_field_map(pairs: Iterable[str]) -> dict[str, str]:
    """Turn ``["output=summary", ...]`` into a field map.

    Raises:
        InputError: A pair is not of the form ``ours=column``.
    """
    mapping = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]+)=(.+)", pair)
        if not match:
            raise InputError(f"--field {pair}: write it as our_name=column, e.g. output=summary.")
        mapping[match[1].strip()] = match[2].strip()
    return mapping
