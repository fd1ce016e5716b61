"""What a file is that a command of askance wrote, told from its content."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..prompts.errors import InputError, like_named

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["run", "weights", "selection", "comparison", "evaluation", "diagnosis", "verdicts"]

KNOWN = (
    "the directory of a run; what weigh -o writes; the selection.json of select; what compare -o writes; verdicts of "
    "evaluate -o or diagnose -o; and what evaluate --json and diagnose --json print"
)
"""What a report can be written of, in words."""

_FIELDS: dict[Kind, tuple[str, ...]] = {
    "run": ("mode", "finish_reason", "baseline"),
    "weights": ("weights", "learners", "beats_uniform"),
    "selection": ("kept", "curves", "convergence"),
    "comparison": ("judges", "compared_on", "differences"),
    "evaluation": ("yes_rates", "scores", "coverage"),
    "diagnosis": ("findings", "all_questions", "phi"),
    "verdicts": ("example", "question", "model", "answer"),
}
"""By these an object is known; of verdicts, the first line."""


@dataclass(frozen=True)
class Result:
    """A file that was recognised."""

    path: Path
    kind: Kind
    data: dict[str, Any]
    """Its content; of verdicts, the first line."""


def recognise(path: Path) -> Result:
    """Tell what a file is.

    Raises:
        InputError: It cannot be read, or no command of askance wrote it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file or directory.{like_named(path)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not text in UTF-8. A report is written of: {KNOWN}.") from None
    data = _object(text)
    kind = next(
        (kind for kind, names in _FIELDS.items() if data is not None and all(name in data for name in names)), None
    )
    if data is None or kind is None:
        raise InputError(f"{path}: not a result of askance. A report is written of: {KNOWN}.")
    return Result(path, kind, data)


def results_in(directory: Path) -> list[Result]:
    """The results that lie directly in a directory, by name."""
    found = []
    for file in sorted([*directory.glob("*.json"), *directory.glob("*.jsonl")]):
        try:
            found.append(recognise(file))
        except InputError:
            continue
    return found


def _object(text: str) -> dict[str, Any] | None:
    """The object in a JSON file, or that of the first line of a JSONL file; None where there is neither."""
    for part in (text, next((line for line in text.splitlines() if line.strip()), "")):
        try:
            data = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return data if isinstance(data, dict) else None
    return None
