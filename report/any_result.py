"""A report on any result of a command: a run, a migration, weights, a selection, a comparison, a scorer or verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..memory.certificate_file import is_migration
from ..prompts.errors import InputError, like_named, not_text, shown_from
from ..prompts.tables import PARQUET_SUFFIXES, read_rows, suffix_of
from ..prompts.text_files import write_whole
from .certificate_page import write_certificate_page
from .comparison_page import render_comparison
from .judged_page import JudgedFile, render_judging
from .run_page import write_report
from .scorer_page import render_scorer
from .selection_page import render_selection, render_weights
from .verdicts_page import Beside, read_judging


def write_report_of(path: str | Path, output: str | Path | None = None, beside: Beside | None = None) -> Path:
    """Write one HTML file about a command's result, and return the file's path.

    ``path`` is a run, a migration, a result file, or a directory with one result. ``output`` is the file to write; by
    default ``report.html`` in the directory of a run or migration, else the result file's name with ``.html``. An
    existing file is replaced whole or not at all. ``beside`` names the data and checklist of verdicts. Raises
    InputError if there is nothing to report or a file is damaged, AskanceError if the report cannot be written.
    """
    place, wanted = Path(path), None if output is None else Path(output)
    if is_migration(place):
        return write_certificate_page(place, wanted)
    if _is_run(place):
        return write_report(place, output)
    result = _result_at(place)
    if result.kind == "run":
        return write_report(result.path.parent, output)
    if result.kind == "certificate":
        return write_certificate_page(result.path.parent, wanted)
    file = wanted or result.path.with_suffix(".html")
    write_whole(file, _rendered(result, beside or Beside()))
    return file


def kind_of(path: str | Path) -> Kind:
    """Return the kind of the result at a path. Raises InputError if there is none, as :func:`write_report_of` does."""
    if is_migration(Path(path)):
        return "certificate"
    return "run" if _is_run(Path(path)) else _result_at(Path(path)).kind


def _is_run(place: Path) -> bool:
    return place.is_dir() and ((place / "config.yaml").exists() or (place / "journal.jsonl").exists())


def _result_at(place: Path) -> Result:
    return _only_result(place) if place.is_dir() else recognise(place)


def _rendered(result: Result, beside: Beside) -> str:
    """Render the report of a recognised file. Raises InputError if the file is damaged, or of another version."""
    if result.kind == "verdicts":
        return render_judging(read_judging(result.path, beside))
    try:
        with shown_from(result.path, f"this {result.kind}"):
            return _RENDERERS[result.kind](result.data, result.path.name)
    except _LackingError as error:
        raise InputError(
            f"{result.path}: damaged, or written by another version of askance: it is no whole {result.kind}, for it "
            f"has no {error}."
        ) from None


class _LackingError(Exception):
    """A field is missing in a result file."""


class _Object(dict[str, Any]):
    """An object in a result file. A missing field raises _LackingError, because the file is wrong and not the page."""

    def __missing__(self, name: str) -> Any:
        raise _LackingError(f"'{name}' beside {', '.join(repr(each) for each in [*self][:3])}" if self else f"'{name}'")


def _only_result(directory: Path) -> Result:
    found = []
    for file in sorted([*directory.glob("*.json"), *directory.glob("*.jsonl")]):
        with suppress(InputError):
            found.append(recognise(file))
    if not found:
        raise InputError(f"{directory}: there is no run and no result in it. A report is written of: {KNOWN}.")
    if len(found) > 1:
        names = ", ".join(each.path.name for each in found)
        raise InputError(f"{directory}: there are several results in it ({names}); name the one that you mean.")
    return found[0]


Kind = Literal[
    "run", "certificate", "weights", "selection", "comparison", "scorer", "evaluation", "diagnosis", "verdicts"
]

KNOWN = (
    "the directory of a run or a migration; what weigh -o writes; the selection.json of select; what compare -o writes; the folder of "
    "a scorer; verdicts of evaluate -o or diagnose -o; and what evaluate --json and diagnose --json print"
)

_FIELDS: dict[Kind, tuple[str, ...]] = {
    "run": ("mode", "finish_reason", "baseline"),
    "certificate": ("targets", "max_loss", "level"),
    "weights": ("weights", "learners", "beats_uniform"),
    "selection": ("kept", "curves", "convergence"),
    "comparison": ("judges", "compared_on", "differences"),
    "scorer": ("scorer", "curve", "mixture"),
    "evaluation": ("yes_rates", "scores", "coverage"),
    "diagnosis": ("findings", "all_questions", "phi"),
    "verdicts": ("example", "question", "model", "answer"),
}
"""Fields by which each kind of result is recognised; for verdicts, fields of the first line."""
_RENDERERS: dict[Kind, Callable[[dict[str, Any], str], str]] = {
    "weights": render_weights,
    "selection": render_selection,
    "comparison": render_comparison,
    "scorer": render_scorer,
    "evaluation": lambda data, name: render_judging(JudgedFile("evaluate", name, data)),
    "diagnosis": lambda data, name: render_judging(JudgedFile("diagnose", name, data)),
}


@dataclass(frozen=True)
class Result:
    """A file that was recognised."""

    path: Path
    kind: Kind
    data: dict[str, Any]
    """Content of the file; for verdicts, the first line."""


def recognise(path: Path) -> Result:
    """Recognise a result file. Raises InputError if it cannot be read, or if no command of askance wrote it."""
    try:
        is_table = suffix_of(path) in PARQUET_SUFFIXES
        data = next((row for _, row in read_rows(path)), None) if is_table else _object(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file or directory.{like_named(path)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise InputError(f"{not_text(path)} A report is written of: {KNOWN}.") from None
    kind = next(
        (kind for kind, names in _FIELDS.items() if data is not None and all(name in data for name in names)), None
    )
    if data is None or kind is None:
        raise InputError(f"{path}: not a result of askance. A report is written of: {KNOWN}.")
    return Result(path, kind, data)


def _object(path: Path) -> dict[str, Any] | None:
    """Return the object of a JSONL file's first line, or the object of a JSON file; None if there is neither."""
    with path.open(encoding="utf-8-sig") as file:
        first = next((line for line in file if line.strip()), "")
        found = _parsed(first)
        return _parsed(first + file.read()) if found is None else found


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
