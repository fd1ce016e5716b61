"""Tables of records, read line by line with errors that name the file, line and field; and files written whole.

Tables are JSONL or CSV files, or data sets on the Hugging Face hub, through the package ``datasets``.
"""

from __future__ import annotations

import csv
import json
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from .errors import AskanceError, InputError, did_you_mean, import_optional, like_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


Record = TypeVar("Record", bound=BaseModel)

PREFIX = "hf:"
_NAME = re.compile(r"(?P<path>[\w.-]+(?:/[\w.-]+)?)(?:/(?P<name>[\w.-]+))?:(?P<split>[\w.%\[\]:+-]+)")
LONGEST_CELL = 2**31 - 1
"""Characters in a CSV cell; the csv module's own limit is shorter than many a document."""


def write_whole(path: str | Path, text: str) -> None:
    """Write a file whole or not at all, byte for byte; one that holds this text already is left alone.

    Of several processes that write it at once, the file is that of the last one.

    Raises:
        AskanceError: It could not be written; what was there before is still there.
    """
    file = Path(path)
    partial = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.part")  # others may write it, too
    data = text.encode("utf-8", "backslashreplace")  # half a surrogate pair, in JSON, becomes its escape
    try:
        if file.is_file() and file.read_bytes() == data:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(file)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise AskanceError(
            f"{file}: cannot be written ({error.strerror}). What was there before is kept; mend this and run the "
            "command again."
        ) from None


def read_object(path: str | Path, what: str) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Args:
        path: The file.
        what: What it is, e.g. ``calibration``.

    Raises:
        InputError: It is missing, cannot be read, or holds something else.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such {what}.{like_named(path)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a {what} of askance: an object is needed.")
    return data


def read_rows(path: Path, as_text: Collection[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` from a JSONL or CSV file.

    Blank lines are skipped. CSV cells that hold JSON objects or arrays are parsed, others stay text, and so do those of
    the columns ``as_text``; empty cells are left out.

    Raises:
        InputError: The file is missing, not UTF-8, or a line is not a JSON object.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                yield from _csv_rows(path, file, as_text)
            else:
                yield from _json_rows(path, file)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.{like_named(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a directory, a JSONL or CSV file is needed.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the file is not UTF-8 text ({error.reason}).") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None


def _json_rows(path: Path, file: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.rstrip())
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {number}: not valid JSON ({error.msg} at column {error.colno}). "
                "Each line must be one JSON object."
            ) from None
        except (ValueError, RecursionError):
            raise InputError(
                f"{path}, line {number}: a number in it is too long, or it is nested too deeply."
            ) from None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: a JSON object is needed, not {type(row).__name__}.")
        yield number, row


def _csv_rows(path: Path, file: Any, as_text: Collection[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.DictReader(file, strict=True)
    try:
        header = reader.fieldnames or []
        twice = next((name for name in header if header.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path}, line 1: two columns are called '{twice}'.")
        for row in reader:
            if None in row:
                raise InputError(f"{path}, line {reader.line_num}: more cells than the header has columns.")
            filled = {name: value for name, value in row.items() if value not in (None, "")}
            yield reader.line_num, {n: value if n in as_text else _cell(value) for n, value in filled.items()}
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not valid CSV ({error}).") from None


def _cell(value: str) -> Any:
    if value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


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
            message = problem["msg"].removeprefix("Value error, ")
            message = message[:1].lower() + message[1:]
            parts.append(f"{place}field '{field}': {message}" if field else f"{place}{message}")
    return "; ".join(parts) + "."


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
