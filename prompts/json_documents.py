"""Rows of a JSON or YAML document that is not JSON Lines: a list, a list inside objects, or other forms of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from .errors import InputError
from .messages import messages_of
from .text_files import read_yaml

Row = dict[str, Any]
_BEGIN = re.compile(r"[^\s,]")
YAML_SUFFIXES = (".yaml", ".yml")
DEEP = 3
"""Depth to which lists of rows are looked for in nested objects."""
LOOKED_AT = 20
"""Number of first rows that tell whether the texts are JSON."""


class SeveralListsError(InputError):
    """A JSON object has several lists of objects, and the user has not said which one holds the rows."""

    def __init__(self, said: str, parts: tuple[str, ...]) -> None:
        super().__init__(said)
        self.parts = parts
        """The paths of the lists."""


def at(value: Any, path: str) -> Any:
    """Return the value in a column of a row, else in the same column in another case, else at a path; None without one.

    A path is ``output.answer`` or ``messages.0.content``. In a list, ``*`` takes every entry, ``:-1`` all but the last,
    and ``name=tone`` the entries whose ``name`` is ``tone``. Several values are returned as one flat list.
    """
    if isinstance(value, Mapping):
        if path in value:
            return value[path]
        for head, tail in [(path, ""), *_cuts(path)]:
            inner = _of_name(value, head)
            if inner is not None and (found := at(inner, tail) if tail else inner) is not None:
                return found
        return None
    if isinstance(value, (list, tuple)):
        for head, tail in [(path, ""), *_cuts(path)]:
            if _PLACE.fullmatch(head) and -len(value) <= int(head) < len(value):
                return at(value[int(head)], tail) if tail else value[int(head)]
            if entries := _entries(value, head):
                return _flat([at(each, tail) if tail else each for each in entries]) or None
    return None


_PLACE = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")


def _of_name(value: Mapping[str, Any], name: str) -> Any:
    """Return the value of a name, else of the only name that is equal in another case."""
    if name in value:
        return value[name]
    alike = [each for each in value if str(each).casefold() == name.casefold()]
    return value[alike[0]] if len(alike) == 1 else None


def _cuts(path: str) -> Iterator[tuple[str, str]]:
    """Return the two parts of a path, cut at each of its points; the longest first part comes first."""
    parts = path.split(".")
    return ((".".join(parts[:cut]), ".".join(parts[cut:])) for cut in range(len(parts) - 1, 0, -1))


def _entries(value: Sequence[Any], head: str) -> list[Any] | None:
    """Return the entries of a list that ``*``, a slice or ``name=value`` takes; None for any other part of a path."""
    if part := _SLICE.fullmatch(head):
        first, last = (int(each) if each else None for each in part.groups())
        return list(value[first:last])
    if head == "*":
        return list(value)
    name, equals, wanted = head.partition("=")
    if not equals or "." in name:
        return None
    return [each for each in value if isinstance(each, Mapping) and str(at(each, name)) == wanted]


def _flat(values: Sequence[Any]) -> list[Any]:
    """Flatten a list of values: None is dropped, and a list is replaced by its entries, but messages stay together."""
    given = [each for each in values if each is not None]
    lists = [list(each) if isinstance(each, list) and not messages_of(each) else [each] for each in given]
    return [each for part in lists for each in part]


def document(text: str) -> list[Any]:
    """Return the values of one or several JSON documents in a text. Raises ValueError if it is not valid JSON."""
    read, found, place = json.JSONDecoder(), [], 0
    while (begun := _BEGIN.search(text, place)) is not None:
        value, place = read.raw_decode(text, begun.start())
        found.append(value)
    return found


def rows_of(
    path: Path, text: str, part: str, as_text: Collection[str], say: Callable[[str], None] | None
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a document, counted from 1. Raises InputError if it is not valid JSON or YAML, or has no rows.

    ``part`` is the path of the list of rows, such as ``results.results``; if it is empty, the list is searched for. An
    object that has one of the columns ``as_text`` is a row. ``say`` is called with a sentence on the rows that were
    found.
    """
    values = _values(path, text)
    whole = values[0] if len(values) == 1 else values
    if part:
        inner = at(whole, part) if isinstance(whole, Mapping) else None
        whole = inner if isinstance(inner, (list, Mapping)) else [*_entries_at(whole, part)]
        if not whole:
            raise InputError(f"{path}: there is no list or object at '{part}' in it.")
    entries = whole if isinstance(whole, list) else _of_object(path, whole, as_text, say or (lambda _: None))
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise InputError(f"{path}, row {number}: a JSON object is needed, not {type(entry).__name__}.")
        yield number, entry["row"] if _is_wrapped(entry) else entry


def _values(path: Path, text: str) -> list[Any]:
    if path.name.lower().endswith(YAML_SUFFIXES):
        return [read_yaml(text, path, "data file")]
    try:
        return document(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None


def _entries_at(value: Any, part: str, outer: Row | None = None) -> Iterator[Any]:
    """Yield the rows at a path inside other rows; each row also gets the other fields of the outer rows."""
    if isinstance(value, list):
        for each in value:
            yield from _entries_at(each, part, outer or {})
    elif not part:
        yield {**(outer or {}), **value} if isinstance(value, Mapping) else value
    elif isinstance(value, Mapping):
        for head, rest in [(part, ""), *_cuts(part)]:
            if isinstance(inner := _of_name(value, head), (list, Mapping)):
                others = {name: each for name, each in value.items() if name.casefold() != head.casefold()}
                yield from _entries_at(inner, rest, None if outer is None else {**outer, **others})
                return


def _is_wrapped(entry: Row) -> bool:
    """Whether this is a row in the form of the Hugging Face hub's API, wrapped in an object."""
    return isinstance(entry.get("row"), dict) and entry.keys() <= {"row", "row_idx", "truncated_cells"}


def _of_object(path: Path, whole: Any, as_text: Collection[str], say: Callable[[str], None]) -> list[Any]:
    """Return the rows in one object: a table by columns, rows by ids, the only list in it, or the object itself."""
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
        raise SeveralListsError(
            f"{path}: this is one JSON object with {len(lists)} lists of objects: {few}. Name the one with the rows: "
            f"{path}#{next(iter(lists))}",
            tuple(lists),
        )
    return [whole]


def _by_ids(whole: Row, as_text: Collection[str]) -> list[Any] | None:
    """Return the rows of ``{"e1": {…}, "e2": {…}}`` if all have a column of texts or all have the same names."""
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
    """Return the rows of ``{"input": {"0": …}, …}`` or ``{"input": […], …}``; None for other objects."""
    columns = list(whole.values())
    if all(isinstance(each, dict) and each for each in columns):
        index = list(columns[0])
        if all(list(each) == index for each in columns) and all(name.isdigit() for name in index):
            return [{name: each[place] for name, each in whole.items()} for place in index]
    are_lists = len(columns) > 1 and all(isinstance(each, list) and not messages_of(each) for each in columns)
    if are_lists and len({*map(len, columns)}) == 1:
        return [dict(zip(whole, values, strict=True)) for values in zip(*columns, strict=True)]
    return None


def _lists(value: Row, before: str = "", depth: int = DEEP) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects in an object, with their paths; lists of messages are left out."""
    for name, part in value.items():
        if isinstance(part, list) and part and all(isinstance(row, dict) for row in part) and not messages_of(part):
            yield f"{before}{name}", part
        elif isinstance(part, dict) and depth > 1:
            yield from _lists(part, f"{before}{name}.", depth - 1)


def without_marks(value: Any) -> Any:
    """Decode a text that holds JSON; if the result is a text that holds an object or list, decode it again. A text
    without JSON is returned as it is."""
    try:
        inner = json.loads(value)
        return json.loads(inner) if isinstance(inner, str) and inner[:1] in ("{", "[") else inner
    except (ValueError, TypeError, RecursionError):
        return value


def looked_at(rows: Iterator[tuple[str, Any]], columns: Sequence[str]) -> tuple[bool, Iterator[tuple[str, Any]]]:
    """Return whether the texts of a source were encoded as JSON twice, and all its rows again.

    They were if, in the first rows, every value of the columns is a text that holds JSON, and at least one of them is a
    quoted text with an escape.
    """
    first: list[tuple[str, Any]] = []
    problem: Exception | None = None
    try:
        first += islice(rows, LOOKED_AT)
    except Exception as error:  # raised again at the same row
        problem = error

    def again() -> Iterator[tuple[str, Any]]:
        yield from first
        if problem is not None:
            raise problem
        yield from rows

    values = [at(row, name) for _, row in first if isinstance(row, Mapping) for name in columns]
    given = [each for each in values if each is not None]
    marked = [each for each in given if isinstance(each, str) and each[:1] == '"' and "\\" in each]
    is_encoded_twice = bool(marked) and all(
        isinstance(each, str) and (each[:1] in ('"', "{", "[") or each == "null") and without_marks(each) is not each
        for each in given
    )
    return is_encoded_twice, again()
