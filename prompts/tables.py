"""Tables as rows: JSONL, CSV with any separator, JSON lists, Excel, Parquet and data frames.

A cell that is empty (in a data frame also NaN, NaT and NA) is None. :func:`read_rows`, at the end, reads any file.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from .errors import InputError, import_optional, like_named, not_text

Row = dict[str, Any]
Say = Callable[[str], None] | None
LONGEST_CELL = 2**31 - 1
"""Characters in a CSV cell; the csv module's own limit is shorter than many a document."""
LARGEST_BOOK = 2**30
"""Bytes of an Excel workbook, unpacked."""
HEADER_CHARS = 2**16
"""So much of a CSV file is looked at for its separator."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
CSV_SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
"""With the separator that is expected."""
EXCEL_SUFFIXES = (".xlsx", ".xlsm")
PARQUET_SUFFIXES = (".parquet", ".pq")
NOTHING = ("NaTType", "NAType")
"""Types of what pandas has where nothing is, beside NaN."""
_QUOTED = re.compile(r'"[^"]*"')


def is_numbered_by_row(path: str | Path) -> bool:
    """Whether a place in this file is a row; in other files it is a line."""
    return suffix_of(path) in (*EXCEL_SUFFIXES, *PARQUET_SUFFIXES, ".json")


def file_and_sheet(path: str | Path) -> tuple[str, str]:
    """The file of ``book.xlsx#Sheet``, and the sheet's name, which may be empty; a ``#`` in a file's own name stays there."""
    found = re.fullmatch(r"(.*?\.xls[xm])#(.*)", str(path), re.IGNORECASE | re.DOTALL)
    return (found[1], found[2]) if found else (str(path), "")


def suffix_of(path: str | Path) -> str:
    """The suffix, in lower case, without the sheet's name in ``book.xlsx#Sheet``."""
    found = re.search(r"\.\w+$", file_and_sheet(path)[0])
    return found[0].lower() if found else ""


def text_encoding(path: Path) -> str:
    """The encoding of a text file, told from its byte order mark; UTF-8 where it has none.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


# --- CSV ----------------------------------------------------------------------------------------------------------


def csv_rows(path: Path, file: Any, as_text: Collection[str], say: Say = None) -> Iterator[tuple[int, Row]]:
    """The rows of a CSV file that is open, each with its line.

    The separator is the one that the header has most of, quoted names aside; ``sep=;`` in the first line, as Excel
    writes it, names it. Cells that hold JSON objects or arrays are parsed, except in the columns ``as_text``.

    Raises:
        InputError: It is not valid CSV, or JSON Lines, or a row has cells beyond the header.
    """
    csv.field_size_limit(LONGEST_CELL)
    beginning = file.read(HEADER_CHARS)
    if beginning.startswith('{"'):
        raise InputError(f"{path}: this is JSON Lines and no CSV; give the file a name that ends in .jsonl.")
    file.seek(0)
    named = re.match(r"sep=(.)\r?\n", beginning, re.IGNORECASE)
    header = _QUOTED.sub("", beginning).lstrip("\r\n").partition("\n")[0]
    expected = CSV_SUFFIXES.get(suffix_of(path), ",")
    most = max(SEPARATORS, key=lambda each: (header.count(each), each == expected))
    separator = named[1] if named else most
    if named:
        file.readline()
    elif separator != expected and say is not None:
        say(f"{path}: read with {SEPARATORS[separator]} between the cells.")
    reader = csv.reader(file, delimiter=separator, strict=True)
    skipped = 1 if named else 0

    def records() -> Iterator[tuple[int, Sequence[Any]]]:
        try:
            for cells in reader:
                yield reader.line_num + skipped, cells
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num + skipped}: not valid CSV ({error}).") from None

    def read(name: str, value: str, where: str) -> Any:
        return value if name in as_text else _parsed(value)

    yield from _rows_of_cells(f"{path}, line", records(), read)


def _rows_of_cells(
    where: str, records: Iterable[tuple[int, Sequence[Any]]], read: Callable[[str, Any, str], Any]
) -> Iterator[tuple[int, Row]]:
    """Rows of the cells under a header, each with its number; without the empty ones."""
    header: list[str] | None = None
    for number, cells in records:
        if all(_is_empty(cell) for cell in cells):
            continue
        if header is None:
            header = ["" if _is_empty(cell) else str(cell).strip("\ufeff \t\r\n") for cell in cells]
            _told_apart([name for name in header if name], f"{where} {number}")
            continue
        row: Row = dict.fromkeys(name for name in header if name)
        for place, cell in enumerate(cells):
            if _is_empty(cell):
                continue
            if place >= len(header):
                raise InputError(f"{where} {number}: more cells than the header has columns.")
            name = header[place] or f"column {place + 1}"  # without a name, as the index of a data frame
            row[name] = read(name, cell, f"{where} {number}, column '{name}'")
        yield number, row


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _parsed(value: str) -> Any:
    """The object or array that a cell holds as JSON, else its text."""
    if value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


# --- JSON lists ---------------------------------------------------------------------------------------------------


def json_list(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    """The objects of a JSON array, counted from 1.

    Raises:
        InputError: It is not valid JSON, or holds something else.
    """
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise InputError(f"{path}, row {number}: a JSON object is needed, not {type(entry).__name__}.")
        yield number, entry


# --- Excel and Parquet --------------------------------------------------------------------------------------------


def excel_rows(path: Path, as_text: Collection[str], say: Say = None) -> Iterator[tuple[int, Row]]:
    """The rows of a sheet, each with its number there: the sheet in ``book.xlsx#Sheet``, else the first one.

    Raises:
        MissingExtraError: ``openpyxl`` is not installed.
        InputError: It is no Excel workbook, has no such sheet, or a cell of ``as_text`` holds an error.
        OSError: It cannot be opened.
    """
    openpyxl = import_optional("openpyxl", "files", "openpyxl", "; or save the sheet as CSV.")
    place, wanted = file_and_sheet(path)
    with Path(place).open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of drop-down lists and the like, which hold no data
        try:
            _check_unpacked(place, file)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (BadZipFile, KeyError, ValueError, TypeError, SyntaxError) as error:
            raise InputError(
                f"{place}: not an Excel workbook (.xlsx) that can be read ({error}); one with a password cannot."
            ) from None
        names = [sheet.title for sheet in book.worksheets]
        if wanted and wanted not in names:
            raise InputError(f"{place}: there is no sheet '{wanted}' in it; there are: {', '.join(names)}.")
        if not wanted and len(names) > 1 and say is not None:
            say(f"{place}: the sheet '{names[0]}' is read, the first of {len(names)}; {place}#NAME takes another.")
        sheet = book[wanted or names[0]]
        sheet.reset_dimensions()  # some programs write wrong ones

        def read(name: str, value: Any, where: str) -> Any:
            if name not in as_text:
                return plain(_parsed(value) if isinstance(value, str) else value)
            if isinstance(value, _ExcelError):  # as after pasting a text that begins with =
                raise InputError(
                    f"{where}: the cell holds Excel's error {value}, not a text. Format the column as text and enter it "
                    "again."
                )
            return as_written(value)

        cells = ([_value(cell) for cell in row] for row in sheet.iter_rows())
        yield from _rows_of_cells(f"{place}, row", enumerate(cells, 1), read)


def _check_unpacked(place: str, file: Any) -> None:
    """Refuse a workbook that would fill the memory; what a zip states about its parts, it cannot go beyond."""
    with ZipFile(file) as archive:
        size = sum(each.file_size for each in archive.infolist())
    if size > LARGEST_BOOK:
        raise InputError(
            f"{place}: this workbook unpacks to {size / 2**30:.1f} GiB, more than {LARGEST_BOOK / 2**30:g}. Save the sheet as "
            "CSV."
        )
    file.seek(0)


class _ExcelError(str):
    """What Excel shows where a formula failed."""

    __slots__ = ()


def _value(cell: Any) -> Any:
    return _ExcelError(cell.value) if cell.data_type == "e" else cell.value


def parquet_package() -> Any:
    """What reads and writes Parquet.

    Raises:
        MissingExtraError: ``pyarrow`` is not installed.
    """
    return import_optional("pyarrow.parquet", "files", "pyarrow", "; or save the table as JSONL.")


def parquet_rows(path: Path, as_text: Collection[str]) -> Iterator[tuple[int, Row]]:
    """The rows of a Parquet file, counted from 1.

    Raises:
        MissingExtraError: ``pyarrow`` is not installed.
        InputError: It is no Parquet file.
        OSError: It cannot be opened.
    """
    parquet = parquet_package()
    number = 0
    with path.open("rb") as file:
        try:
            whole = parquet.ParquetFile(file)
            _told_apart(whole.schema_arrow.names, str(path))
            for batch in whole.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield number, _typed(row, as_text)
        except (
            ValueError,
            OSError,
        ) as error:  # pyarrow's own errors of a file: ValueErrors, and OSErrors without a number
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(f"{path}: not a Parquet file that can be read ({error}).") from None


ROWS = 2**16
"""Rows of a Parquet file that are put together at once."""


def write_parquet(file: BinaryIO, columns: Mapping[str, Iterator[Any]], types: Mapping[str, str]) -> None:
    """Write columns of one length as Parquet, a part at a time.

    Args:
        file: Open for writing.
        columns: The values of each, by name.
        types: Arrow's name of the type of a column; texts where there is none.

    Raises:
        MissingExtraError: ``pyarrow`` is not installed.
    """
    parquet = parquet_package()
    arrow = import_optional("pyarrow", "files", "pyarrow")
    schema = arrow.schema([(name, arrow.type_for_alias(types.get(name, "string"))) for name in columns])
    with parquet.ParquetWriter(file, schema, compression="zstd") as out:
        while len((part := [list(islice(each, ROWS)) for each in columns.values()])[0]):
            try:
                table = arrow.table(part, schema=schema)
            except UnicodeEncodeError:  # half a surrogate pair becomes its escape
                table = arrow.table([[_with_escapes(value) for value in each] for each in part], schema=schema)
            out.write_table(table)


def _with_escapes(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


# --- values with types --------------------------------------------------------------------------------------------


def frame_rows(source: Any, as_text: Collection[str] = ()) -> Iterator[Row] | None:
    """The rows of a pandas or polars data frame or an Arrow table; None where it is none of these.

    The index of a pandas data frame is a column where it has a name that no other column has.

    Raises:
        InputError: Two columns have one name.
    """
    if hasattr(source, "collect_schema") and hasattr(source, "collect") and not hasattr(source, "iter_rows"):
        source = source.collect()  # a lazy frame of polars
    rows: Iterable[Any]
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):
        rows = source.iter_rows(named=True)
    elif hasattr(source, "to_dict") and hasattr(source, "notna") and hasattr(source, "columns"):
        _told_apart(map(str, source.columns), "the data frame")
        levels = [name for name in source.index.names if name is not None and name not in source.columns]
        named = source.reset_index(level=levels) if levels else source
        rows = named.astype(object).where(named.notna(), None).to_dict("records")
    elif hasattr(source, "to_pylist") and hasattr(source, "column_names"):
        _told_apart(source.column_names, "the table")
        rows = source.to_pylist()
    else:
        return None
    return (_typed(row, as_text) for row in rows)


def _told_apart(names: Iterable[str], where: str) -> None:
    """Refuse columns of one name: a row would hold one of them alone."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: two columns are called '{name}'.")
        seen.add(name)


def _typed(row: Row, as_text: Collection[str]) -> Row:
    found = {str(name): plain(value) for name, value in row.items()}
    filled = {name: None if _is_empty(value) else value for name, value in found.items()}
    return {name: as_written(value) if name in as_text else value for name, value in filled.items()}


def plain(value: Any) -> Any:
    """A value as JSON has it: dates as ISO 8601 texts, arrays as lists, and None for what is not a number."""
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        value = value.tolist()
    if type(value).__name__ in NOTHING:
        return None
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, Decimal):
        return None if value.is_nan() else float(value)
    return None if isinstance(value, float) and value != value else value


def at(value: Any, path: str) -> Any:
    """What a row has in a column, else in that column in another case, else at a path such as ``output.answer`` or
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


def as_written(value: Any) -> Any:
    """A number or truth value as the text that it shows; anything else as it is."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, (int, float)) else plain(value)


# --- any file -------------------------------------------------------------------------------------------------------


def read_rows(
    path: Path,
    as_text: Collection[str] = (),
    *,
    say: Callable[[str], None] | None = None,
    quick: Callable[[str], Any] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(line or row number, object)`` from a file: JSONL, or by its suffix CSV, a JSON list, Excel or Parquet.

    Blank lines are skipped. Cells that hold JSON objects or arrays are parsed, others stay what they are; empty ones
    are None.

    Args:
        path: The file; ``book.xlsx#Sheet`` is one sheet of a workbook.
        as_text: Columns that hold texts: in them, JSON stays text and numbers become text.
        say: Told in a sentence what was found out about the file.
        quick: Makes something better than an object of a line of JSONL; where it gives None, the line is read as ever.

    Raises:
        InputError: The file is missing, not UTF-8 (UTF-16 needs its byte order mark), not of its format, or a line is
            not a JSON object.
        MissingExtraError: Excel and Parquet need packages of the extra ``files``.
    """
    suffix = suffix_of(path)
    file = Path(file_and_sheet(path)[0])
    try:
        if suffix in EXCEL_SUFFIXES:
            yield from excel_rows(path, as_text, say)
        elif suffix in PARQUET_SUFFIXES:
            yield from parquet_rows(path, as_text)
        else:
            yield from _text_rows(path, as_text, say, quick)
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file.{like_named(file)}") from None
    except IsADirectoryError:
        raise InputError(f"{file}: this is a directory, a file with a table is needed (JSONL, CSV, ...).") from None
    except UnicodeDecodeError:
        hint = " In Excel: save as 'CSV UTF-8', or as .xlsx." if suffix in CSV_SUFFIXES else ""
        raise not_text(file, text_encoding(file), hint) from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}).") from None


def _text_rows(
    path: Path,
    as_text: Collection[str],
    say: Callable[[str], None] | None,
    quick: Callable[[str], Any] | None,
) -> Iterator[tuple[int, Any]]:
    suffix = suffix_of(path)
    if suffix == ".xls":
        raise InputError(f"{path}: this is Excel's old format; save it as .xlsx or as CSV UTF-8.")
    with path.open(encoding=text_encoding(path), newline="") as file:
        if suffix in CSV_SUFFIXES:
            yield from csv_rows(path, file, as_text, say)
        elif suffix == ".json" and (text := file.read()).lstrip().startswith("["):
            yield from json_list(path, text)
        else:
            file.seek(0)
            yield from _json_rows(path, file, quick)


def _json_rows(path: Path, file: Any, quick: Callable[[str], Any] | None) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        if quick is not None and (made := quick(line)) is not None:
            yield number, made
            continue
        try:
            row = json.loads(line.rstrip())
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {number}: not valid JSON ({error.msg.removesuffix(' at')} at column {error.colno}). "
                f"Each line must be one JSON object.{_as_list(line)}"
            ) from None
        except (ValueError, RecursionError):
            raise InputError(
                f"{path}, line {number}: a number in it is too long, or it is nested too deeply."
            ) from None
        if not isinstance(row, dict):
            raise InputError(
                f"{path}, line {number}: a JSON object is needed, not {type(row).__name__}.{_as_list(line)}"
            )
        yield number, row


def _as_list(line: str) -> str:
    """What to do where a line begins a JSON list."""
    return " A list of objects is read from a file whose name ends in .json." if line.lstrip().startswith("[") else ""
