"""The run's journal: what happened, one event a line, never rewritten.

A run resumes by being repeated: every answer is in the store, so the repetition is free and comes to the same events.
The journal checks that it does; events that are there already are not written again. Another process can follow it.
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
"""Fields that earlier versions wrote: a run that was begun with one goes on as if they had not."""


class Journal:
    """An append-only file of events."""

    def __init__(self, path: Path) -> None:
        """Open the journal, reading the events of an earlier, interrupted run. Raises InputError where a line in it is
        damaged."""
        self.path = path
        self._events = read_events(path)
        self._position = 0
        if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            _cut_torn_line(path)

    @property
    def replaying(self) -> bool:
        """Whether the run is still repeating what an earlier process did."""
        return self._position < len(self._events)

    def write(self, event: str, **fields: Any) -> bool:
        """Add an event, or check it against the event that an earlier process wrote here. Returns whether it is new.

        The two may differ: a failed answer is there now, or a budget is larger. Then an event ``diverged`` says so, the
        journal goes on from here, and the earlier events from here on no longer stand. Raises AskanceError where it
        cannot be written.
        """
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
            # half a surrogate pair, in JSON, becomes its escape
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line + "\n")
        except OSError as error:
            raise AskanceError(
                f"{self.path}: cannot be written ({error.strerror}). Everything bought before is kept; mend this and "
                "run the command again."
            ) from None


def _still_written(known: Any) -> Any:
    """A row of an earlier process without the fields that this version no longer writes."""
    if not isinstance(known, dict):
        return known
    return {name: _still_written(value) for name, value in known.items() if name not in RETIRED}


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a journal that stand. A missing journal is empty.

    A last line that was torn by a kill is left out; so are ``diverged`` events and the events that they replaced.
    Raises InputError where a line is damaged, or the file cannot be read.
    """
    events: list[dict[str, Any]] = []
    for event in JournalTail(path).read():
        if event["event"] == "diverged":
            del events[event["at"] :]
        else:
            events.append(event)
    return events


def has_ended(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the run has come to its end. A run that was made longer since then has not."""
    return bool(events) and events[-1]["event"] == "finished"


def _cut_torn_line(path: Path) -> None:
    with path.open("rb+") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)
        file.flush()
        os.fsync(file.fileno())


class JournalTail:
    """Reads what was added to ``journal.jsonl`` since the last look; a line that is still being written waits."""

    def __init__(self, path: Path) -> None:
        """The file need not exist yet."""
        self._path = path
        self._offset = 0
        self._number = 0

    def read(self) -> list[dict[str, Any]]:
        """The new rows, ``diverged`` among them: the events from ``at`` on then no longer stand. Raises InputError
        where a line is damaged, or the file cannot be read."""
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
