"""Rows of any source, and records made of them, with errors that name the file, line and field.

A source is a file (:mod:`~askance.prompts.tables`), a data frame, a data set on the Hugging Face hub (read by the
package ``datasets``), or any iterable of mappings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from .errors import AskanceError, InputError, did_you_mean, import_optional
from .tables import frame_rows, is_numbered_by_row, plain, read_rows, source_name

Record = TypeVar("Record", bound=BaseModel)

MOST_TOLD = 6
"""Maximum number of problems of a record that an error names; a file of another kind has dozens."""
PREFIX = "hf:"
_NAME = re.compile(r"(?P<path>[\w.-]+(?:/[\w.-]+)?)(?:/(?P<name>[\w.-]+))?:(?P<split>[\w.%\[\]:+-]+)")


def column(records: Iterable[Any], field: str) -> Iterator[Any]:
    """Return a field of each record, in order. A table with a ``column`` method does so without making the records."""
    whole: Callable[[str], Iterator[Any]] | None = getattr(records, "column", None)
    return (getattr(each, field) for each in records) if whole is None else whole(field)


def source_rows(
    source: Any, as_text: Collection[str] = (), *, say: Callable[[str], None] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield ``(where, row)`` from a file, the hub, a data frame or any iterable of mappings.

    Args:
        source: A path (``-`` is standard input), ``hf:OWNER/NAME[/CONFIG]:SPLIT``, a pandas or polars data frame, an
            Arrow table, or rows.
        as_text: Columns that hold texts: in them, JSON stays text and numbers become text.
        say: Called with a sentence on what was detected about a file, such as its separator.

    Raises:
        InputError: As :func:`read_rows` and :func:`rows_of_name`, or ``source`` is a mapping.
        MissingExtraError: A package that reads such a source is not installed.
        AskanceError: The hub cannot be reached.
    """
    if is_on_hub(source):
        yield from ((f"{source}, row {number}", _plain(row)) for number, row in enumerate(rows_of_name(source), 1))
    elif isinstance(source, (str, Path)):
        unit = "row" if is_numbered_by_row(source) else "line"
        for number, row in read_rows(Path(source), as_text, say=say):
            yield f"{source_name(source)}, {unit} {number}", row
    elif isinstance(source, Mapping):
        first = next(iter(source), "test")
        raise InputError(
            f"row 1: a mapping from field to value is needed, not {first!r}, as rows come in a list: [row]. Where this "
            f"holds several sets, name one: data[{first!r}]."
        )
    else:
        frame = frame_rows(source, as_text)
        for number, row in enumerate(_each(source) if frame is None else frame, 1):
            yield f"row {number}", row


def _each(source: Any) -> Iterator[Any]:
    try:
        rows = iter(source)
    except TypeError:
        kind = type(source).__name__
        raise InputError(f"the data: a file, a data frame or rows are needed, not {kind}.") from None
    return map(_plain, rows)


def _plain(row: Any) -> Any:
    """Turn the values of a mapping into values of JSON; anything else stays as it is."""
    return {name: plain(value) for name, value in row.items()} if isinstance(row, Mapping) else row


def is_on_hub(source: object) -> bool:
    """Whether this names a data set on the hub: ``hf:OWNER/NAME[/CONFIG]:SPLIT``."""
    return isinstance(source, str) and source.startswith(PREFIX)


def rows_of_name(source: str) -> Iterable[Mapping[str, Any]]:
    """Load the rows of ``hf:OWNER/NAME[/CONFIG]:SPLIT``; the split may be a slice, such as ``test[:100]``. Raises
    InputError if the name does not have this form, else as :func:`hub_rows`."""
    match = _NAME.fullmatch(source.removeprefix(PREFIX))
    if match is None:
        raise InputError(f"{source}: write hf:OWNER/NAME:SPLIT or hf:OWNER/NAME/CONFIG:SPLIT, e.g. hf:owner/data:test.")
    return hub_rows(match["path"], match["name"], match["split"])


def hub_rows(path: str, name: str | None, split: str) -> Iterable[Mapping[str, Any]]:
    """Load the rows of one split; ``name`` is the configuration, if the data set has several. Raises MissingExtraError
    without ``datasets``, and AskanceError if the hub cannot be reached, or has no such data set."""
    package = import_optional("datasets", "datasets", "datasets", f"; or download {path} yourself and name the file.")
    try:
        rows: Iterable[Mapping[str, Any]] = package.load_dataset(path, name, split=split)
    except (OSError, ValueError) as error:  # not found, not reachable, or no such split
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise AskanceError(
            f"{path}: cannot be had from the Hugging Face hub ({said}). Download the file yourself and name it."
        ) from None
    return rows


def validate_row(record: type[Record], row: dict[str, Any], where: str) -> Record:
    """Make a ``record`` of ``row``. Raises InputError, a sentence with ``where`` in front that names the field, if a
    field is missing or has the wrong type."""
    try:
        return record.model_validate(row)
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, record)}") from None


def explain(error: ValidationError, record: type[BaseModel] | None = None) -> str:
    """Write a pydantic error as one sentence, with a part per problem. For an unknown field, the nearest name of
    ``record`` is proposed."""
    parts = []
    problems = error.errors(include_url=False)
    for problem in problems:
        place, field = _place(problem["loc"])
        if problem["type"] == "too_short":  # pydantic also says this if there are entries, but all are wrong
            if not any(len(each["loc"]) > len(problem["loc"]) for each in problems):
                parts.append(f"{place}field '{field}': there must be at least {problem['ctx']['min_length']}")
            continue
        if problem["type"] == "missing":
            parts.append(f"{place}the field '{field}' is missing")
        elif problem["type"] == "extra_forbidden":
            hint = did_you_mean(str(problem["loc"][-1]), _fields_at(record, problem["loc"]))
            parts.append(f"{place}the field '{field}' is not known" + (f" ({hint.strip()})" if hint else ""))
        else:
            message = plain_message(problem)
            message = message[:1].lower() + message[1:]
            parts.append(f"{place}field '{field}': {message}" if field else f"{place}{message}")
    if others := len(parts[MOST_TOLD:]):
        parts[MOST_TOLD:] = [f"and {others} other {'problem' if others == 1 else 'problems'}"]
    return "; ".join(parts) + "."


def plain_message(problem: Any) -> str:
    """Return pydantic's message on a value; for a field, in the words of YAML and JSON (list, mapping)."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return message
    if problem["type"] == "model_type":
        return f"A mapping from field to value is needed, not {problem['input']!r:.60}"
    return message.replace("a valid tuple", "a list").replace("a valid dictionary", "a mapping")


def _fields_at(record: Any, loc: tuple[int | str, ...]) -> list[str]:
    """Return the field names of the record at the place of a problem, also inside lists; empty if it is no record."""
    for part in loc[:-1]:
        if isinstance(part, str):
            fields = getattr(record, "model_fields", {})
            named = next((each for name, each in fields.items() if part in (name, each.alias)), None)
            record = None if named is None else named.annotation
        while get_args(record):
            record = next((each for each in get_args(record) if each is not Ellipsis), None)
    return list(getattr(record, "model_fields", {}))


def _place(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """Split a pydantic location into place and field, with entries counted from 1: ``"entry 2 of 'questions': "`` and
    ``"text"`` for ("questions", 1, "text")."""
    place = ""
    names: list[str] = []
    for part in loc:
        if isinstance(part, int):
            place += f"entry {part + 1} of '{'.'.join(names)}': " if names else f"entry {part + 1}: "
            names = []
        else:
            names.append(part)
    return place, ".".join(names)
