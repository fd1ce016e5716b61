"""Rows of a data set, from a local file (JSON, JSONL, CSV) or the Hugging Face hub, and records made from rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...prompts.errors import AskanceError, InputError
from ...prompts.examples import Example
from ...prompts.field_map import FIELDS
from ...prompts.preferences import Preference
from ...prompts.rows import hub_rows, validate_row
from ...prompts.tables import read_rows
from ...prompts.text_files import read_text

Source = str | Path | Iterable[Mapping[str, Any]] | None
"""A local file, any iterable of mappings, or None for the data set's home."""


@dataclass(frozen=True, slots=True)
class Hub:
    """The place of a data set on the hub."""

    path: str
    split: str
    name: str | None = None
    """Configuration, if the data set has several."""
    file: str = ""
    """Description of a local file with the same data."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A data set that its authors publish as files, not on the hub."""

    name: str
    file: str
    """The file's name."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row with its place, for error messages."""

    where: str
    values: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        """Return the value of a field. Raises InputError if it is missing or null."""
        value = self.values.get(field)
        if value is None:
            have = ", ".join(sorted(self.values))
            raise InputError(f"{self.where}: the field '{field}' is missing (there are: {have}).")
        return value

    def text(self, field: str) -> str:
        """Return a field that must be text. Raises InputError."""
        value = self[field]
        if not isinstance(value, str):
            raise InputError(f"{self.where}: the field '{field}' must be text, not {type(value).__name__}.")
        return value

    def items(self, field: str) -> list[Any]:
        """Return a field that must be a list. Raises InputError."""
        value = self[field]
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InputError(f"{self.where}: the field '{field}' must be a list, not {type(value).__name__}.")
        return list(value)

    def has(self, *fields: str) -> bool:
        """Return True if all these fields have a value."""
        return all(self.values.get(field) is not None for field in fields)


def rows_of(source: Source, home: Hub | Elsewhere) -> Iterator[Row]:
    """Yield the rows of a local file (``.json``: one list of objects; else one object a line, or CSV), of an iterable
    of mappings, or, if ``source`` is None, of the hub.

    Raises InputError if the file is missing or has another form, or if no file is named and the data set is not on the
    hub. Raises AskanceError if the hub cannot be reached, or ``datasets`` is missing; the message says which file to
    name instead.
    """
    if source is None and isinstance(home, Elsewhere):
        raise InputError(
            f"{home.name} is not on the hub in a form that is known here. "
            f"Download its authors' {home.file} and name it."
        )
    if source is None and isinstance(home, Hub):
        for number, row in enumerate(_from_hub(home), 1):
            yield Row(f"{home.path} ({home.split}), row {number}", row)
    elif isinstance(source, (str, Path)) and Path(source).suffix.lower() == ".json":
        for number, row in enumerate(_json_list(Path(source)), 1):
            yield Row(f"{source}, entry {number}", row)
    elif isinstance(source, (str, Path)):
        for number, row in read_rows(Path(source)):
            yield Row(f"{source}, line {number}", row)
    elif source is not None:
        for number, row in enumerate(source, 1):
            yield Row(f"row {number}", row)


def _from_hub(home: Hub) -> Iterable[Mapping[str, Any]]:
    try:
        return hub_rows(home.path, home.name, home.split)
    except AskanceError as error:
        if home.file:
            error.args = (f"{error} In the experiments that is --data FILE, {home.file}; it may lie anywhere.",)
        raise


def _json_list(path: Path) -> list[Mapping[str, Any]]:
    try:
        data = json.loads(read_text(path))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise InputError(f"{path}: a list of JSON objects is needed.")
    return data


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
    """Make an example. ``document`` goes into its metadata, where the statistics look for it. Raises InputError for a
    value of a wrong type."""
    fields: dict[str, Any] = {"id": name, "input": source, "output": output, "context": context, "system": system}
    fields["human"] = {dimension: list(ratings) for dimension, ratings in human.items()}
    fields["metadata"] = {} if document is None else {"document": document}
    return validate_row(Example, fields, row.where)


def own_example(row: Row, dimensions: Sequence[str], *, keep: Sequence[str] = ()) -> Example:
    """Make an example from a row in askance's own format, with only these dimensions.

    If the row has every expert's ratings beside the means (``human_experts``), the single ratings are used. ``keep``
    names further dimensions to keep if the row has them. Raises InputError if the row has another form, or lacks a
    human score on one of ``dimensions``."""
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
    """Return all annotators' ratings of one dimension. Raises InputError if an annotator left it out."""
    ratings = []
    for number, annotation in enumerate(annotations, 1):
        value = annotation.get(dimension) if isinstance(annotation, Mapping) else None
        if value is None:
            raise InputError(f"{row.where}: annotator {number} gave no rating of '{dimension}'.")
        ratings.append(value)
    return ratings


def scores_of(row: Row, field: str, dimensions: Sequence[str]) -> dict[str, list[float]]:
    """Return the human scores of a row in UniEval's form. Raises InputError if a dimension is missing."""
    scores = row[field]
    if not isinstance(scores, Mapping) or any(scores.get(dimension) is None for dimension in dimensions):
        raise InputError(f"{row.where}: '{field}' must have a number for each of {', '.join(dimensions)}.")
    return {dimension: [scores[dimension]] for dimension in dimensions}


def pair(row: Row, **fields: Any) -> Preference:
    """Make a preference pair. Raises InputError for a value of a wrong type."""
    return validate_row(Preference, fields, row.where)


def own_pair(row: Row) -> Preference:
    """Make a preference pair from a row in askance's own format. Raises InputError for any other format."""
    return validate_row(Preference, dict(row.values), row.where)


def chat(messages: list[Any]) -> str:
    """Return a conversation as text: one paragraph a message, with its role in front."""
    return "\n\n".join(f"{str(each['role']).capitalize()}: {each['content']}" for each in messages)
