"""The journal of a run: one event per line, never rewritten.

A run is resumed by repeating it. Every answer is in the store, so the repetition costs nothing and gives the same
events. The journal checks this, and does not write these events again. Another process can follow the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..prompts.errors import AskanceError, InputError

RETIRED = ("used_zero_convention",)
"""Fields that earlier versions wrote. They are ignored when a run of an earlier version is resumed."""


class Journal:
    """An append-only file of events."""

    def __init__(self, path: Path) -> None:
        """Open the journal and read an earlier process's events. Raises InputError if a line is damaged."""
        self.path = path
        self._events = read_events(path)
        self._position = 0
        if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            _cut_torn_line(path)

    @property
    def replaying(self) -> bool:
        """Whether the run is still repeating events of an earlier process."""
        return self._position < len(self._events)

    def write(self, event: str, **fields: Any) -> bool:
        """Add an event, or compare it with the event that an earlier process wrote here. Returns whether it is new.

        The two events may differ, e.g. because a failed call succeeds now, or because a budget is larger. Then an event
        ``diverged`` is written, and the earlier events from here on are no longer valid. Raises AskanceError if the
        file cannot be written.
        """
        # as it is read back from the file, to compare it with known events: tuples become lists
        row = json.loads(json.dumps({"event": event, **fields}, ensure_ascii=False))
        if self.replaying:
            known = {key: value for key, value in self._events[self._position].items() if key != "time"}
            if _still_written(known) == row:
                self._position += 1
                return False
            del self._events[self._position :]
            self._append({"event": "diverged", "at": self._position, "from": known.get("event")})
        self._append(row)
        return True

    def _append(self, row: dict[str, Any]) -> None:
        line = json.dumps(row | {"time": datetime.now(UTC).isoformat(timespec="seconds")}, ensure_ascii=False)
        try:
            # backslashreplace writes half a surrogate pair as its escape, which is valid in JSON
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line + "\n")
        except OSError as error:
            raise AskanceError(
                f"{self.path}: cannot be written ({error.strerror}). Everything bought before is kept; mend this and "
                "run the command again."
            ) from None


def _still_written(known: Any) -> Any:
    """Remove the fields that this version no longer writes from a row of an earlier process."""
    if not isinstance(known, dict):
        return known
    return {name: _still_written(value) for name, value in known.items() if name not in RETIRED}


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the valid events of a journal; none if there is no file.

    Left out are an incomplete last line of a killed process, ``diverged`` events, and the events that they made
    invalid. Raises InputError if a line is damaged or the file cannot be read.
    """
    events: list[dict[str, Any]] = []
    for event in JournalTail(path).read():
        if event["event"] == "diverged":
            del events[event["at"] :]
        else:
            events.append(event)
    return events


def has_ended(events: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the run has finished. A run that was extended and resumed after its end has not."""
    return bool(events) and events[-1]["event"] == "finished"


def _cut_torn_line(path: Path) -> None:
    with path.open("rb+") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)
        file.flush()
        os.fsync(file.fileno())


class JournalTail:
    """Reads the rows added to ``journal.jsonl`` since the last read. An incomplete last line is left for later."""

    def __init__(self, path: Path) -> None:
        """Start at the beginning of the file, which need not exist yet."""
        self._path = path
        self._offset = 0
        self._number = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new rows. A ``diverged`` row makes the events from number ``at`` on invalid. Raises InputError if
        a line is damaged or the file cannot be read."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read ({error.strerror}).") from None
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [row for line in whole.split(b"\n")[:-1] if (row := self._row(line))]

    def _row(self, line: bytes) -> dict[str, Any] | None:
        self._number += 1
        if not line.strip():
            return None
        try:
            row: dict[str, Any] = json.loads(line)
            if row["event"] == "diverged" and not isinstance(row["at"], int):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(
                f"{self._path}, line {self._number}: damaged. Move the journal away and run the command again: the "
                "answers are in the store, so nothing is bought twice."
            ) from None
        return row
