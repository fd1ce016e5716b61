"""Tables of records, read row by row with errors that name the file, line and field; and files written whole.

Tables are files (JSONL, or as :mod:`~askance.prompts.tables` reads them), data frames, or data sets on the Hugging Face
hub, through the package ``datasets``.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from .errors import AskanceError, InputError, did_you_mean, import_optional, like_named, not_text
from .tables import (
    CSV_SUFFIXES,
    EXCEL_SUFFIXES,
    PARQUET_SUFFIXES,
    csv_rows,
    excel_rows,
    file_and_sheet,
    frame_rows,
    is_numbered_by_row,
    json_list,
    parquet_rows,
    plain,
    suffix_of,
    text_encoding,
)

Record = TypeVar("Record", bound=BaseModel)

DEVICES = Path("/dev")
PARTIAL = ".part"
"""Ends the name of a file that is being written; a process's number comes before it."""
MOST_TOLD = 6
"""Problems of a record that are told; a file of another kind has dozens."""
PREFIX = "hf:"
_NAME = re.compile(r"(?P<path>[\w.-]+(?:/[\w.-]+)?)(?:/(?P<name>[\w.-]+))?:(?P<split>[\w.%\[\]:+-]+)")


def column(records: Iterable[Any], field: str) -> Iterator[Any]:
    """A field of each record, in order; from a table that has a ``column`` of it without making the records."""
    whole: Callable[[str], Iterator[Any]] | None = getattr(records, "column", None)
    return (getattr(each, field) for each in records) if whole is None else whole(field)


def write_whole(path: str | Path, text: str | Iterable[str]) -> None:
    """Write a text, whole or in parts, as :func:`whole_file` does; parts are never held together.

    Raises:
        AskanceError: It could not be written; what was there before is still there.
    """
    with whole_file(path) as out:
        for part in [text] if isinstance(text, str) else text:
            out.write(part.encode("utf-8", "backslashreplace"))  # half a surrogate pair, in JSON, becomes its escape


def remove_partial(folder: Path) -> None:
    """Remove what killed processes have left of files that they were writing, in a folder where no other process writes now."""
    for left in folder.rglob(f"*.[0-9]*-[0-9]*{PARTIAL}"):
        if f".{os.getpid()}-" not in left.name:  # another thread of this process may be at it
            with suppress(OSError):
                left.unlink()


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file whole or not at all, byte for byte; one that holds the same already is left alone.

    Of several processes that write it at once, the file is that of the last one. A link stays, and what it points to is
    written; a device or a pipe, such as ``/dev/stdout``, is written to and never replaced.

    Raises:
        AskanceError: It could not be written; what was there before is still there.
    """
    file = Path(path)
    try:
        is_stream = file.parent == DEVICES or (file.exists() and not (file.is_file() or file.is_dir()))
        file = file.resolve(strict=False) if file.is_symlink() and not is_stream else file
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError
        raise AskanceError(f"{file}: cannot be written ({getattr(error, 'strerror', error)}).") from None
    if is_stream:
        try:
            with file.open("wb") as out:
                yield out
        except OSError as error:
            raise AskanceError(f"{file}: cannot be written ({error.strerror}).") from None
        return
    partial = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}{PARTIAL}")  # others may write it, too
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if file.is_file() and filecmp.cmp(partial, file, shallow=False):
            partial.unlink()
        else:
            partial.replace(file)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise AskanceError(
            f"{file}: cannot be written ({error.strerror}). What was there before is kept; mend this and run the "
            "command again."
        ) from None


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        FileNotFoundError: It is missing; the caller knows what was wanted.
        InputError: It cannot be read, or holds a byte that cannot be; names the line.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise not_text(path) from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # a NUL in the path is a ValueError
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None


def read_object(path: str | Path, what: str) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Args:
        path: The file.
        what: What it is, e.g. ``calibration``.

    Raises:
        InputError: It is missing, cannot be read, or holds something else.
    """
    try:
        data = json.loads(read_text(path))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such {what}.{like_named(path)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a {what} of askance: an object is needed.")
    return data


def source_rows(
    source: Any, as_text: Collection[str] = (), *, say: Callable[[str], None] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield ``(where, row)`` from a file, the hub, a data frame or any iterable of mappings.

    Args:
        source: A path, ``hf:OWNER/NAME[/CONFIG]:SPLIT``, a pandas or polars data frame, an Arrow table, or rows.
        as_text: Columns that hold texts: in them, JSON stays text and numbers become text.
        say: Told in a sentence what was found out about a file, such as its separator.

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
            yield f"{source}, {unit} {number}", row
    elif isinstance(source, Mapping):
        first = next(iter(source), "test")
        raise InputError(
            f"row 1: a mapping from field to value is needed, not {first!r}, as rows come in a list: [row]. Where this holds "
            f"several sets, name one: data[{first!r}]."
        )
    else:
        frame = frame_rows(source, as_text)
        for number, row in enumerate(map(_plain, source) if frame is None else frame, 1):
            yield f"row {number}", row


def _plain(row: Any) -> Any:
    """A mapping with its values as JSON has them, as of a data frame; anything else as it is."""
    return {name: plain(value) for name, value in row.items()} if isinstance(row, Mapping) else row


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


def is_on_hub(source: object) -> bool:
    """Whether this names a data set on the hub: ``hf:OWNER/NAME[/CONFIG]:SPLIT``."""
    return isinstance(source, str) and source.startswith(PREFIX)


def rows_of_name(source: str) -> Iterable[Mapping[str, Any]]:
    """The rows of ``hf:OWNER/NAME[/CONFIG]:SPLIT``; the split may be a slice, such as ``test[:100]``.

    Raises:
        InputError: The name is not of this form.
        MissingExtraError: ``datasets`` is not installed.
        AskanceError: The hub cannot be reached, or has no such data set.
    """
    match = _NAME.fullmatch(source.removeprefix(PREFIX))
    if match is None:
        raise InputError(f"{source}: write hf:OWNER/NAME:SPLIT or hf:OWNER/NAME/CONFIG:SPLIT, e.g. hf:owner/data:test.")
    return hub_rows(match["path"], match["name"], match["split"])


def hub_rows(path: str, name: str | None, split: str) -> Iterable[Mapping[str, Any]]:
    """The rows of one split; ``name`` is the configuration, where the data set has several.

    Raises:
        MissingExtraError: ``datasets`` is not installed.
        AskanceError: The hub cannot be reached, or has no such data set.
    """
    package = import_optional("datasets", "datasets", "datasets", f"; or download {path} yourself and name the file.")
    try:
        rows: Iterable[Mapping[str, Any]] = package.load_dataset(path, name, split=split)
    except (OSError, ValueError) as error:  # what is not found, cannot be reached or has no such split
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise AskanceError(
            f"{path}: cannot be had from the Hugging Face hub ({said}). Download the file yourself and name it."
        ) from None
    return rows


def validate_row(record: type[Record], row: dict[str, Any], where: str) -> Record:
    """Make a ``record`` of ``row``; a validation error becomes a sentence that names the field.

    Raises:
        InputError: A field is missing or has the wrong type; ``where`` is put in front.
    """
    try:
        return record.model_validate(row)
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, record)}") from None


def explain(error: ValidationError, record: type[BaseModel] | None = None) -> str:
    """Put a pydantic error into one sentence per field; of a ``record``, the nearest name is told for an unknown one."""
    parts = []
    problems = error.errors(include_url=False)
    for problem in problems:
        place, field = _place(problem["loc"])
        if problem["type"] == "too_short":  # also said where entries are there, but each of them is wrong
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
    """What pydantic says of a value; of a field's, in the words of YAML and JSON."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:
        return message
    if problem["type"] == "model_type":
        return f"A mapping from field to value is needed, not {problem['input']!r:.60}"
    return message.replace("a valid tuple", "a list").replace("a valid dictionary", "a mapping")


def _fields_at(record: Any, loc: tuple[int | str, ...]) -> list[str]:
    """Names that a record has at the place of a problem, entries of lists included; none where it holds no record."""
    for part in loc[:-1]:
        if isinstance(part, str):
            record = record.model_fields[part].annotation if part in getattr(record, "model_fields", {}) else None
        while get_args(record):
            record = next((each for each in get_args(record) if each is not Ellipsis), None)
    return list(getattr(record, "model_fields", {}))


def _place(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """``"entry 2 of 'questions': ", "text"`` for ("questions", 1, "text"): entries are counted from 1."""
    place = ""
    names: list[str] = []
    for part in loc:
        if isinstance(part, int):
            place += f"entry {part + 1} of '{'.'.join(names)}': " if names else f"entry {part + 1}: "
            names = []
        else:
            names.append(part)
    return place, ".".join(names)
