"""The rows of exported files, the tool that they are from, and what they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from ...prompts.errors import InputError
from ...prompts.tables import is_numbered_by_row, read_rows, suffix_of, text_encoding
from . import langfuse, langsmith, mlflow, openai, openinference
from .spans import Part, counted, first_of

FORMATS = {each.NAME: each for each in (langfuse, langsmith, openinference, mlflow, openai)}
"""By name; each has ``parts``, which says what a row holds, or that it is none of its own."""
LISTS = ("data", "traces", "runs", "spans", "items", "feedback", "annotations")
"""Names under which an API's answer has its rows."""


def rows_of_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a file, each with its place: of a table or JSONL, or the objects that one JSON document holds.

    Raises:
        InputError: It cannot be read.
    """
    if suffix_of(path) in (".json", ".jsonl", ".ndjson") and (whole := _document(path)) is not None:
        for number, each in enumerate(_unwrapped(whole), 1):
            if not isinstance(each, Mapping):
                raise InputError(f"{path}, row {number}: a JSON object is needed, not {type(each).__name__}.")
            yield f"{path}, row {number}", _plain(each)
        return
    unit = "row" if is_numbered_by_row(path) else "line"
    for number, row in read_rows(path, as_text=()):
        for each in _unwrapped(row):
            yield f"{path}, {unit} {number}", _plain(each)


def _plain(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """With None where a number is none, as what was written from a data frame has NaN where nothing is; and bytes as texts."""
    left: list[Any] = [row]
    while left:
        holder = left.pop()
        for place, value in [*(holder.items() if isinstance(holder, dict) else enumerate(holder))]:
            if isinstance(value, (dict, list)):
                left.append(value)
            elif isinstance(value, float) and not isfinite(value):
                holder[place] = None
            elif isinstance(value, bytes):
                holder[place] = value.decode("utf-8", "backslashreplace")
    return row


def _document(path: Path) -> Any:
    """The one JSON document that a file holds; None where it is lines, or cannot be read."""
    try:
        return json.loads(path.read_text(encoding=text_encoding(path)))
    except (OSError, ValueError, RecursionError):
        return None


def _unwrapped(value: Any) -> list[Any]:
    """The rows in a list, or in an API's answer."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping) and "id" not in value:
        name = next((each for each in LISTS if isinstance(value.get(each), list)), None)
        if name is not None and not any(_knows(each, value) for each in FORMATS.values()):  # a row may have spans, too
            return list(value[name])
    return [value]


def read_parts(rows: list[tuple[str, Mapping[str, Any]]], source: str | None) -> tuple[str, list[Part], list[str]]:
    """The format, the parts in all rows, and what is said of rows that are none of its own."""
    if source is None:
        source = _detected(rows)
    read = FORMATS[source].parts
    parts: list[Part] = []
    strange = []
    for where, row in rows:
        try:
            found = read(row)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: not as {source} exports it ({type(error).__name__}: {error}).") from None
        if found is None:
            strange.append(where)
        else:
            parts += found
    if not parts:
        raise InputError(f"{rows[0][0]}: not as {source} exports it; it has: {', '.join(map(str, rows[0][1]))}.")
    said = [f"Left out: {counted(len(strange), 'row')} not of {source} ({first_of(strange)})."] if strange else []
    return source, parts, said


def _detected(rows: list[tuple[str, Mapping[str, Any]]]) -> str:
    """The format that knows the first rows of every file."""
    files = {where.rpartition(", ")[0]: row for where, row in reversed(rows)}
    possible: list[str] = [name for name, each in FORMATS.items() if all(_knows(each, row) for row in files.values())]
    if len(possible) == 1:
        return possible[0]
    where, row = rows[0]
    if not possible:
        raise InputError(
            f"{where}: no export of {', '.join(FORMATS)} looks like this (it has: {', '.join(map(str, row))}). Name its "
            "format with --from; a table with a column for each field needs no import: askance evaluate FILE --field ..."
        )
    raise InputError(f"{where}: this may be of {' or '.join(possible)}; say which with --from.")


def _knows(format_of: Any, row: Mapping[str, Any]) -> bool:
    try:
        return bool(format_of.parts(row))
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
