"""Looks at validation that a person took while changing a judge: each changed judge that was looked at, once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..prompts.errors import AskanceError, InputError
from ..prompts.tables import read_rows
from ..prompts.text_files import append_line

LOOKS_FILE = "validation-looks.jsonl"
"""The file in the directory of the run; it only grows."""


class ValidationLooks:
    """The looks at one run's validation examples, in all windows and sessions."""

    def __init__(self, run: Path) -> None:
        self.file = run / LOOKS_FILE

    def judges(self) -> list[str]:
        """Hashes of the changed judges that were looked at, each once, in their order. Raises InputError where the file
        is damaged."""
        if not self.file.is_file():
            return []
        rows = [(number, row) for number, row in read_rows(self.file)]
        if wrong := [number for number, row in rows if not isinstance(row.get("judge"), str)]:
            raise InputError(f"{self.file}, line {wrong[0]}: 'judge' is missing; damaged, or not written by askance.")
        return list(dict.fromkeys(row["judge"] for _, row in rows))

    def add(self, judge: str, what: Sequence[str]) -> int:
        """Count a look at a changed judge; returns its number, from 1, where it is looked at again the earlier one.
        Raises AskanceError where it cannot be written: then validation is not to be shown."""
        known = self.judges()
        if judge in known:
            return known.index(judge) + 1
        time = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            append_line(self.file, {"judge": judge, "time": time, "what": list(what)})
        except OSError as error:
            raise AskanceError(
                f"{self.file}: cannot be written ({error.strerror}), so the look would not be counted, and validation "
                "stays shut."
            ) from None
        return self.judges().index(judge) + 1
