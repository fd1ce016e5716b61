"""Rows of CSV, with any separator, and of any cells under a header."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import InputError

Row = dict[str, Any]
LONGEST_CELL = 2**31 - 1
"""Maximum number of characters in a CSV cell; the csv module's own limit is shorter than many documents."""
HEADER_CHARS = 2**16
"""Characters at the beginning of a CSV file that are read to find its separator."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
CSV_SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""Suffixes of CSV files, with the expected separator."""
_QUOTED = re.compile(r'"[^"]*"')


def csv_rows(
    path: Path, file: Any, suffix: str, as_text: Collection[str], say: Callable[[str], None] | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of an open CSV file, each with its line number.

    The separator is the most frequent one in the header, without quoted names. A first line ``sep=;``, which Excel
    writes, names it instead. Cells that hold JSON objects or arrays are parsed, except in the columns ``as_text``.
    Raises InputError if the file is not valid CSV or is JSON Lines, or a row has cells beyond the header.
    """
    csv.field_size_limit(LONGEST_CELL)
    beginning = file.read(HEADER_CHARS)
    if beginning.startswith('{"'):
        raise InputError(f"{path}: this is JSON Lines and no CSV; give the file a name that ends in .jsonl.")
    file.seek(0)
    named = re.match(r"sep=(.)\r?\n", beginning, re.IGNORECASE)
    header = _QUOTED.sub("", beginning).lstrip("\r\n").partition("\n")[0]
    expected = CSV_SUFFIXES.get(suffix, ",")
    most = max(SEPARATORS, key=lambda each: (header.count(each), each == expected))
    separator = named[1] if named else most
    if named:
        file.readline()
    elif separator != expected and say is not None:
        say(f"{path}: read with {SEPARATORS[separator]} between the cells.")
    skipped = 1 if named else 0
    form: dict[str, Any] = {"delimiter": separator, "strict": True}
    start = file.tell()
    if _has_escapes(file, form):
        form |= {"escapechar": "\\", "doublequote": False}
        if say is not None:
            say(f"{path}: read with backslashes before quotation marks.")
    file.seek(start)
    reader = csv.reader(file, **form)

    def records() -> Iterator[tuple[int, Sequence[Any]]]:
        try:
            for cells in reader:
                yield reader.line_num + skipped, cells
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num + skipped}: not valid CSV ({error}).") from None

    def read(name: str, value: str, where: str) -> Any:
        return value if name in as_text else parsed(value)

    yield from rows_of_cells(f"{path}, line", records(), read)


def _has_escapes(file: Any, form: Mapping[str, Any]) -> bool:
    """Whether a table can only be read if a backslash escapes quotes, as Spark writes them."""
    start = file.tell()
    if not any('\\"' in line for line in iter(file.readline, "")):
        return False

    def is_table(**more: Any) -> bool:
        file.seek(start)
        try:
            widths = [len(cells) for cells in csv.reader(file, **{**form, **more}) if cells]
        except csv.Error:
            return False
        return max(widths) <= widths[0]

    return not is_table() and is_table(escapechar="\\", doublequote=False)


def rows_of_cells(
    where: str, records: Iterable[tuple[int, Sequence[Any]]], read: Callable[[str, Any, str], Any]
) -> Iterator[tuple[int, Row]]:
    """Yield the rows under a header, each with its number; empty rows are left out. Raises InputError if two columns
    have the same name, or a row has cells beyond the header."""
    header: list[str] | None = None
    for number, cells in records:
        if all(is_empty(cell) for cell in cells):
            continue
        if header is None:
            header = ["" if is_empty(cell) else str(cell).strip("\ufeff \t\r\n") for cell in cells]
            told_apart([name for name in header if name], f"{where} {number}")
            continue
        row: Row = dict.fromkeys(name for name in header if name)
        for place, cell in enumerate(cells):
            if is_empty(cell):
                continue
            if place >= len(header):
                raise InputError(f"{where} {number}: more cells than the header has columns.")
            name = header[place] or f"column {place + 1}"  # no name: e.g. the index of a data frame
            row[name] = read(name, cell, f"{where} {number}, column '{name}'")
        yield number, row


def is_empty(cell: Any) -> bool:
    """Whether a cell is None or blank."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def parsed(value: str) -> Any:
    """Return the object or array that a cell holds as JSON, else its text."""
    if value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def told_apart(names: Iterable[str], where: str) -> None:
    """Raise InputError if two columns have the same name, because a row could hold only one of them."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: two columns are called '{name}'.")
        seen.add(name)
