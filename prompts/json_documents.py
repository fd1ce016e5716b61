"""Rows of a JSON document that is not one object a line: a list, and what stands around or in place of one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from .errors import InputError
from .messages import messages_of

Row = dict[str, Any]
_BEGIN = re.compile(r"[^\s,]")
DEEP = 3
"""Objects around a list of rows."""
LOOKED_AT = 20
"""Rows that tell whether texts are JSON."""


def at(value: Any, path: str) -> Any:
    """The value of a row in a column, else in that column in another case, else at a path such as ``output.answer`` or
    ``messages.0.content``; None where nothing is there.
    """
    if isinstance(value, Mapping):
        if path in value:
            return value[path]
        alike = [name for name in value if str(name).casefold() == path.casefold()]
        if len(alike) == 1:
            return value[alike[0]]
        parts = path.split(".")
        heads = ((".".join(parts[:cut]), ".".join(parts[cut:])) for cut in range(len(parts) - 1, 0, -1))
        return next((found for head, rest in heads if (found := at(at(value, head), rest)) is not None), None)
    if isinstance(value, (list, tuple)):
        head, _, rest = path.partition(".")
        if head.lstrip("-").isdigit() and -len(value) <= int(head) < len(value):
            return at(value[int(head)], rest) if rest else value[int(head)]
    return None


def document(text: str) -> list[Any]:
    """The value of a JSON document, or of several that follow each other.

    Raises:
        ValueError: It is not valid JSON.
    """
    read, found, place = json.JSONDecoder(), [], 0
    while (begun := _BEGIN.search(text, place)) is not None:
        value, place = read.raw_decode(text, begun.start())
        found.append(value)
    return found


def rows_of(
    path: Path, text: str, part: str, as_text: Collection[str], say: Callable[[str], None] | None
) -> Iterator[tuple[int, Row]]:
    """The rows of a document, counted from 1.

    Args:
        path: The file, for errors.
        text: What it holds.
        part: Where in it the list of rows is, such as ``results.results``; found out where it is empty.
        as_text: Columns of texts; an object that has one of them is a row.
        say: Told what was taken for the rows.

    Raises:
        InputError: It is not valid JSON, or holds no rows.
    """
    try:
        values = document(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    whole = values[0] if len(values) == 1 else values
    if part:
        inner = at(whole, part)
        if not isinstance(inner, (list, Mapping)):
            raise InputError(f"{path}: there is no list or object at '{part}' in it.")
        whole = inner
    entries = whole if isinstance(whole, list) else _of_object(path, whole, as_text, say or (lambda _: None))
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise InputError(f"{path}, row {number}: a JSON object is needed, not {type(entry).__name__}.")
        yield number, entry["row"] if _is_wrapped(entry) else entry


def _is_wrapped(entry: Row) -> bool:
    """Whether this is a row as the Hugging Face hub's API answers it."""
    return isinstance(entry.get("row"), dict) and entry.keys() <= {"row", "row_idx", "truncated_cells"}


def _of_object(path: Path, whole: Any, as_text: Collection[str], say: Callable[[str], None]) -> list[Any]:
    """The rows in one object: by columns, by ids, the one list in it, or the object itself."""
    if not isinstance(whole, dict):
        raise InputError(f"{path}: a JSON object or a list of objects is needed, not {type(whole).__name__}.")
    names, table = whole.get("columns"), whole.get("data")
    if isinstance(names, list) and isinstance(table, list) and all(isinstance(each, list) for each in table):
        say(f"{path}: read as a table of 'columns' and 'data'.")
        return [dict(zip(map(str, names), each, strict=True)) if len(each) == len(names) else each for each in table]
    is_row = any(at(whole, name) is not None for name in as_text if name not in ("id", "system"))
    if is_row and (rows := _by_columns(whole)):
        say(f"{path}: read by columns, {len(rows)} rows.")
        return rows
    if is_row:
        return [whole]
    if rows := _by_ids(whole, as_text):
        say(f"{path}: read as rows by their ids, {len(rows)} rows.")
        return rows
    lists = dict(_lists(whole))
    if len(lists) == 1:
        [(name, rows)] = lists.items()
        say(f"{path}: the list '{name}' in it is read, {len(rows)} rows.")
        return rows
    if lists:
        few = ", ".join(f"'{name}' ({len(rows)})" for name, rows in list(lists.items())[:6])
        raise InputError(
            f"{path}: this is one JSON object with {len(lists)} lists of objects: {few}. Name the one with the rows: "
            f"{path}#{next(iter(lists))}"
        )
    return [whole]


def _by_ids(whole: Row, as_text: Collection[str]) -> list[Any] | None:
    """The rows of ``{"e1": {…}, "e2": {…}}``, each with a column of texts or all with the same names."""
    rows = list(whole.values())
    if not rows or not all(isinstance(each, dict) for each in rows):
        return None
    texts = [name for name in as_text if name not in ("id", "system")]
    if all(any(at(row, name) is not None for name in texts) for row in rows) or (
        len(rows) > 1 and len({tuple(row) for row in rows}) == 1
    ):
        return [row if "id" in row else {"id": name} | row for name, row in whole.items()]
    return None


def _by_columns(whole: Row) -> list[Any] | None:
    """The rows of ``{"input": {"0": …}, …}`` or ``{"input": […], …}``; None where it is no such table."""
    columns = list(whole.values())
    if all(isinstance(each, dict) and each for each in columns):
        index = list(columns[0])
        if all(list(each) == index for each in columns) and all(name.isdigit() for name in index):
            return [{name: each[place] for name, each in whole.items()} for place in index]
    if len(columns) > 1 and all(isinstance(each, list) and not messages_of(each) for each in columns):
        return (
            [dict(zip(whole, values, strict=True)) for values in zip(*columns, strict=True)]
            if len({*map(len, columns)}) == 1
            else None
        )
    return None


def _lists(value: Row, before: str = "", depth: int = DEEP) -> Iterator[tuple[str, list[Any]]]:
    """The lists of objects in an object, by their paths; messages are none."""
    for name, each in value.items():
        if isinstance(each, list) and each and all(isinstance(row, dict) for row in each) and not messages_of(each):
            yield f"{before}{name}", each
        elif isinstance(each, dict) and depth > 1:
            yield from _lists(each, f"{before}{name}.", depth - 1)


def without_marks(value: Any) -> Any:
    """The value that a text holds as JSON, decoded twice where the first is a text that holds an object. A text that
    holds no JSON is returned as it is."""
    try:
        inner = json.loads(value)
        return json.loads(inner) if isinstance(inner, str) and inner[:1] in ("{", "[") else inner
    except (ValueError, TypeError, RecursionError):
        return value


def looked_at(rows: Iterator[tuple[str, Any]], columns: Sequence[str]) -> tuple[bool, Iterator[tuple[str, Any]]]:
    """Whether the texts of a source went through JSON once too often, and its rows from the first.

    They did where in its first rows all that stands in the columns is JSON in a text, and a line break or mark is
    escaped.
    """
    first: list[tuple[str, Any]] = []
    problem: Exception | None = None
    try:
        first += islice(rows, LOOKED_AT)
    except Exception as error:  # it is raised where it was met
        problem = error

    def again() -> Iterator[tuple[str, Any]]:
        yield from first
        if problem is not None:
            raise problem
        yield from rows

    values = [at(row, name) for _, row in first if isinstance(row, Mapping) for name in columns]
    given = [each for each in values if each is not None]
    marked = [each for each in given if isinstance(each, str) and each[:1] == '"' and "\\" in each]
    twice = bool(marked) and all(
        isinstance(each, str) and (each[:1] in ('"', "{", "[") or each == "null") and without_marks(each) is not each
        for each in given
    )
    return twice, again()
