"""Tables as rows: JSONL, CSV with any separator, JSON lists, Excel, Parquet and data frames.

An empty cell (in a data frame also NaN, NaT and NA) is None. :func:`read_rows`, at the end, reads any file.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from zipfile import BadZipFile, ZipFile

from .csv_tables import CSV_SUFFIXES, HEADER_CHARS, SEPARATORS, csv_rows, is_empty, parsed, rows_of_cells, told_apart
from .errors import InputError, import_optional, like_named, not_text
from .json_documents import YAML_SUFFIXES, document, rows_of

logger = logging.getLogger(__name__)

Row = dict[str, Any]
Say = Callable[[str], None] | None
LARGEST_BOOK = 2**30
"""Maximum size, in bytes, of an Excel workbook or another zip after unpacking."""
EXCEL_SUFFIXES = (".xlsx", ".xlsm")
PARQUET_SUFFIXES = (".parquet", ".pq")
INSPECT = ".eval"
"""Suffix of a log of Inspect: a zip with a JSON document for each sample."""
NOTHING = ("NaTType", "NAType")
"""Names of the pandas types for a missing value, beside NaN."""


STANDARD_INPUT = "standard input"
"""The source that ``-`` stands for."""


def source_name(source: object) -> str:
    """Return the name of a source for errors: its path, or :data:`STANDARD_INPUT` for ``-``."""
    return STANDARD_INPUT if str(source) == "-" else str(source)


def is_numbered_by_row(path: str | Path) -> bool:
    """Whether errors count the rows of this file; in other files they count lines."""
    return suffix_of(path) in (*EXCEL_SUFFIXES, *PARQUET_SUFFIXES, *YAML_SUFFIXES, ".json", INSPECT)


def file_and_sheet(path: str | Path) -> tuple[str, str]:
    """Split ``book.xlsx#Sheet`` or ``data.json#results.rows`` into the file and the part, which may be empty.

    A ``#`` in the file's own name stays in the name.
    """
    found = re.fullmatch(
        r"(.*?\.(?:xls[xm]|(?:jsonl?|ndjson)(?:\.gz)?|ya?ml))#(.*)", str(path), re.IGNORECASE | re.DOTALL
    )
    if found is None or (not found[1].lower().endswith(EXCEL_SUFFIXES) and Path(path).exists()):
        return str(path), ""
    return found[1], found[2]


def suffix_of(path: str | Path) -> str:
    """Return a file's suffix in lower case, without the sheet in ``book.xlsx#Sheet`` and without ``.gz``."""
    found = re.search(r"(\.\w+)(?:\.gz)?$", file_and_sheet(path)[0], re.IGNORECASE)
    return found[1].lower() if found else ""


def encoding_of(file: IO[bytes]) -> str:
    """Return the encoding of a text file by its byte order mark; UTF-8 without a mark."""
    found = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    file.seek(0)
    return found


def opened(path: Path) -> tuple[IO[bytes], str]:
    """Open a file, unpacked, at its beginning; returns it with the suffix of its kind. A pipe may be opened again, as
    its content is kept. Raises InputError if a ``.zip`` does not hold exactly one file, and OSError if it cannot be
    opened."""
    if str(path) == STANDARD_INPUT:
        content = _standard_input(sys.stdin.buffer)
        return BytesIO(content), _kind(content)
    suffix = suffix_of(path)
    if path.is_dir():
        raise IsADirectoryError
    if path.exists() and not path.is_file():
        status = path.stat()  # part of the cache's key, as another pipe may have the same path
        content = _piped(str(path), status.st_dev, status.st_ino)
        return BytesIO(content), suffix or _kind(content)
    if suffix in (INSPECT, ".zip"):
        with ZipFile(path) as archive:
            _check_size(path, archive)
            names = [each for each in archive.namelist() if not each.endswith("/")]
            if suffix == INSPECT:
                samples = sorted(each for each in names if each.startswith("samples/"))
                return BytesIO(b"[" + b",".join(map(archive.read, samples)) + b"]"), ".json"
            names = [each for each in names if not each.startswith("__MACOSX")]
            if len(names) != 1:
                inside = ", ".join(names[:6]) or "none"
                raise InputError(f"{path}: one file is needed in a .zip, and there are {len(names)}: {inside}.")
            return BytesIO(archive.read(names[0])), suffix_of(names[0])
    return (cast("IO[bytes]", gzip.open(path)) if str(path).lower().endswith(".gz") else path.open("rb")), suffix


@cache
def _standard_input(stream: BinaryIO) -> bytes:
    """Return the content of standard input. It is cached, because it can be read only once."""
    if stream.isatty():
        logger.warning("The data are read from standard input; Ctrl+D ends them.")
    return _unpacked(stream.read())


@cache
def _piped(path: str, device: int, node: int) -> bytes:
    """Return the content of a pipe. It is cached, because it can be read only once."""
    return _unpacked(Path(path).read_bytes())


def _unpacked(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _kind(content: bytes) -> str:
    """Guess the file suffix from the content of a pipe."""
    if content[:2] == b"PK":
        return ".xlsx"
    if content[:4] == b"PAR1":
        return ".parquet"
    return ".json" if content.lstrip()[:1] in (b"[", b"{") else ".txt"


# --- Excel and Parquet --------------------------------------------------------------------------------------------


def excel_rows(path: Path, file: IO[bytes], as_text: Collection[str], say: Say = None) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a sheet, each with its number: the sheet named in ``book.xlsx#Sheet``, else the first one.
    Raises as :func:`read_rows`."""
    openpyxl = import_optional("openpyxl", "files", "openpyxl", "; or save the sheet as CSV.")
    place, wanted = file_and_sheet(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about drop-down lists and the like, which hold no data
        try:
            with ZipFile(file) as archive:
                _check_size(place, archive)
            file.seek(0)
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
                return plain(parsed(value) if isinstance(value, str) else value)
            if isinstance(value, _ExcelError):  # as after pasting a text that begins with =
                raise InputError(
                    f"{where}: the cell holds Excel's error {value}, not a text. Format the column as text and enter "
                    "it again."
                )
            return as_written(value)

        cells = (
            [_ExcelError(cell.value) if cell.data_type == "e" else cell.value for cell in row]
            for row in sheet.iter_rows()
        )
        yield from rows_of_cells(f"{place}, row", enumerate(cells, 1), read)


def _check_size(place: object, archive: ZipFile) -> None:
    """Refuse a workbook or a zip that would fill the memory."""
    size = sum(each.file_size for each in archive.infolist())  # no part can unpack to more than its stated size
    if size > LARGEST_BOOK:
        raise InputError(
            f"{place}: this unpacks to {size / 2**30:.1f} GiB, more than {LARGEST_BOOK / 2**30:g}. Unpack it first, or "
            "save it as CSV or JSONL."
        )


class _ExcelError(str):
    """The text that Excel shows for a formula that failed."""

    __slots__ = ()


def parquet_package() -> Any:
    """Import the package that reads and writes Parquet. Raises MissingExtraError if ``pyarrow`` is not installed."""
    return import_optional("pyarrow.parquet", "files", "pyarrow", "; or save the table as JSONL.")


def parquet_rows(path: Path, file: IO[bytes], as_text: Collection[str]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a Parquet file, counted from 1. Raises as :func:`read_rows`."""
    parquet = parquet_package()
    number = 0
    try:
        whole = parquet.ParquetFile(file)
        told_apart(whole.schema_arrow.names, str(path))
        for batch in whole.iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield number, _typed(row, as_text)
    except (ValueError, OSError) as error:  # pyarrow raises ValueErrors for a bad file, and OSErrors without a number
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(f"{path}: not a Parquet file that can be read ({error}).") from None


ROWS = 2**16
"""Rows of a Parquet file that are written at once."""


def write_parquet(file: BinaryIO, columns: Mapping[str, Iterator[Any]], types: Mapping[str, str]) -> None:
    """Write columns of equal length as Parquet, a part at a time. ``types`` are Arrow type names; a column without one
    holds text. Raises MissingExtraError if ``pyarrow`` is not installed."""
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
    """Return the rows of a pandas or polars data frame or an Arrow table; None for any other source.

    The index of a pandas data frame becomes a column if it has a name that no column has. Raises InputError if two
    columns have the same name.
    """
    if hasattr(source, "collect_schema") and hasattr(source, "collect") and not hasattr(source, "iter_rows"):
        source = source.collect()  # a lazy frame of polars
    rows: Iterable[Any]
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):
        rows = source.iter_rows(named=True)
    elif hasattr(source, "to_dict") and hasattr(source, "notna") and hasattr(source, "columns"):
        told_apart(map(str, source.columns), "the data frame")
        levels = [name for name in source.index.names if name is not None and name not in source.columns]
        named = source.reset_index(level=levels) if levels else source
        rows = named.astype(object).where(named.notna(), None).to_dict("records")
    elif hasattr(source, "to_pylist") and hasattr(source, "column_names"):
        told_apart(source.column_names, "the table")
        rows = source.to_pylist()
    else:
        return None
    return (_typed(row, as_text) for row in rows)


def _typed(row: Row, as_text: Collection[str]) -> Row:
    found = {str(name): plain(value) for name, value in row.items()}
    filled = {name: None if is_empty(value) else value for name, value in found.items()}
    return {name: as_written(value) if name in as_text else value for name, value in filled.items()}


def plain(value: Any) -> Any:
    """Turn a value into one of JSON: dates become ISO 8601 texts, arrays become lists, NaN and NA become None."""
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


def as_written(value: Any) -> Any:
    """Turn a number or truth value into its text (TRUE, FALSE, 3, 0.5); any other value becomes :func:`plain`."""
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

    Blank lines are skipped. Cells that hold JSON objects or arrays are parsed; other cells stay as they are, and empty
    cells are None.

    Args:
        path: The file; ``book.xlsx#Sheet`` is one sheet of a workbook, and ``-`` is standard input.
        as_text: Columns that hold texts: in them, JSON stays text and numbers become text.
        say: Called with a sentence on what was detected about the file.
        quick: Reads a line of JSONL faster, into any object; if it returns None, the line is parsed as usual.

    Raises:
        InputError: The file is missing, not UTF-8 (UTF-16 needs its byte order mark), not of its format, or a line is
            not a JSON object.
        MissingExtraError: Excel and Parquet need packages of the extra ``files``.
    """
    path = Path(source_name(path))
    file, part = Path(file_and_sheet(path)[0]), file_and_sheet(path)[1]
    encoding = "utf-8-sig"
    try:
        content, suffix = opened(file)
        with content:
            if suffix in EXCEL_SUFFIXES:
                yield from excel_rows(path, content, as_text, say)
            elif suffix in PARQUET_SUFFIXES:
                yield from parquet_rows(path, content, as_text)
            elif suffix == ".xls":
                raise InputError(f"{path}: this is Excel's old format; save it as .xlsx or as CSV UTF-8.")
            else:
                encoding = encoding_of(content)
                with TextIOWrapper(content, encoding, newline="") as text:
                    yield from _text_rows(file, part, text, suffix, as_text, say, quick)
    except FileNotFoundError:
        raise InputError(f"{file}: there is no such file.{like_named(file)}") from None
    except IsADirectoryError:
        raise InputError(f"{file}: this is a directory, a file with a table is needed (JSONL, CSV, ...).") from None
    except UnicodeDecodeError:
        hint = " In Excel: save as 'CSV UTF-8', or as .xlsx." if suffix in CSV_SUFFIXES else ""
        raise not_text(file, encoding, hint) from None
    except (gzip.BadGzipFile, BadZipFile, EOFError, zlib.error) as error:
        raise InputError(f"{file}: cannot be unpacked ({error}).") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}).") from None


def _text_rows(
    path: Path,
    part: str,
    file: TextIOWrapper,
    suffix: str,
    as_text: Collection[str],
    say: Say,
    quick: Callable[[str], Any] | None,
) -> Iterator[tuple[int, Any]]:
    beginning = file.read(HEADER_CHARS).lstrip("\ufeff \t\r\n")
    file.seek(0)
    has_header = any(each in beginning.partition("\n")[0] for each in SEPARATORS)
    if suffix in CSV_SUFFIXES or (suffix in (".txt", "") and beginning[:1] not in ("{", "[", "") and has_header):
        yield from csv_rows(path, file, suffix, as_text, say)
    elif (
        part
        or suffix in YAML_SUFFIXES
        or (suffix == ".json" and (beginning.startswith("[") or _is_whole(file)))
        or _is_cut(file, beginning)
    ):
        yield from rows_of(path, file.read(), part, as_text, say)
    else:
        yield from _json_rows(path, file, quick)


def _is_whole(file: TextIOWrapper) -> bool:
    """Whether the file has only one line, and it holds objects."""
    lines = list(islice((line for line in file if line.strip()), 2))
    file.seek(0)
    return len(lines) == 1 and _is_document(lines[0])


def _is_cut(file: TextIOWrapper, beginning: str) -> bool:
    """Whether the first line alone is not valid JSON (an object goes on, or another follows), but the whole file is."""
    if not beginning.startswith("{"):
        return False
    first = next((line for line in file if line.strip()), "")
    try:
        json.loads(first)
        is_cut = False
    except (ValueError, RecursionError):
        file.seek(0)
        is_cut = first.rstrip().endswith(("{", ",", "[", "}")) and _is_document(file.read())
    file.seek(0)
    return is_cut


def _is_document(text: str) -> bool:
    try:
        return all(isinstance(each, dict) for each in document(text))
    except (ValueError, RecursionError):
        return False


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
    """Return advice if a line begins a JSON list, else an empty text."""
    return " A list of objects is read from a file whose name ends in .json." if line.lstrip().startswith("[") else ""
