"""Rows of a data set: from a local file (JSON, JSONL, CSV) or, through ``datasets``, from the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...prompts.errors import AskanceError, InputError
from ...prompts.rows import hub_rows, read_rows, read_text

Source = str | Path | Iterable[Mapping[str, Any]] | None
"""A local file, any iterable of mappings, or None for the data set's home."""


@dataclass(frozen=True, slots=True)
class Hub:
    """Where a data set is on the hub."""

    path: str
    split: str
    name: str | None = None
    """Configuration, where the data set has several."""
    file: str = ""
    """What a local file must hold, for those who cannot reach the hub."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A data set that its authors publish as files, not on the hub."""

    name: str
    file: str
    """What the file is called."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row with where it stands, for errors."""

    where: str
    values: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        """The value of a field.

        Raises:
            InputError: There is none, or it is null.
        """
        value = self.values.get(field)
        if value is None:
            have = ", ".join(sorted(self.values))
            raise InputError(f"{self.where}: the field '{field}' is missing (there are: {have}).")
        return value

    def text(self, field: str) -> str:
        """A field that must be text.

        Raises:
            InputError: It is missing or not text.
        """
        value = self[field]
        if not isinstance(value, str):
            raise InputError(f"{self.where}: the field '{field}' must be text, not {type(value).__name__}.")
        return value

    def items(self, field: str) -> list[Any]:
        """A field that must be a list.

        Raises:
            InputError: It is missing or no list.
        """
        value = self[field]
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InputError(f"{self.where}: the field '{field}' must be a list, not {type(value).__name__}.")
        return list(value)

    def has(self, *fields: str) -> bool:
        """Whether all these fields are there."""
        return all(self.values.get(field) is not None for field in fields)


def rows_of(source: Source, home: Hub | Elsewhere) -> Iterator[Row]:
    """The rows of a local file, of any iterable of mappings, or, where ``source`` is None, of the hub.

    A file ``.json`` holds one list of objects; any other holds one object a line, or is a CSV file.

    Raises:
        InputError: The file is missing or not of this form, or no file is named and the data set is not on the hub.
        MissingExtraError: The hub is asked for and ``datasets`` is not installed.
        AskanceError: The hub cannot be reached; the message says what file to name instead.
    """
    if source is None and isinstance(home, Elsewhere):
        raise InputError(
            f"{home.name} is not on the hub in a form that is known here. Download its authors' {home.file} and name it."
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
    """The rows; an error also says what file can be named instead."""
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
