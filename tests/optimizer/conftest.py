"""A laboratory for runs that end before their time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.memory.journal import read_events
from askance.models.base import Request
from askance.optimizer.run_result import RunResult

SNAPSHOTS = ("result.json", "judge.yaml", "prompt.md", "changes.diff", "lessons.jsonl", "config.yaml")


def _fingerprint(run: Path) -> dict[str, Any]:
    """Everything that a resumed run must have in common with one that was left alone."""
    files = {name: (run / name).read_bytes().decode().splitlines() for name in SNAPSHOTS}
    versions = {path.name: path.read_bytes() for path in sorted((run / "prompts").glob("*.md"))}
    events = [
        {key: value for key, value in event.items() if key != "time"} for event in read_events(run / "journal.jsonl")
    ]
    return files | {"versions": versions, "events": events}


@pytest.fixture
def fingerprint() -> Callable[[Path], dict[str, Any]]:
    """Everything that a resumed run must have in common with one that was left alone."""
    return _fingerprint


class Lab:
    """Runs migrations in this process, which may crash at any request, and counts what they ask."""

    class Crash(BaseException):
        """The process is gone."""

    def __init__(self, world: Any, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.answered: list[bytes] = []
        self.crash_at: int | None = None
        self.crashed = False

    def _before(self, request: Request) -> None:
        if self.crashed:
            raise self.Crash
        if self.crash_at is not None and len(self.answered) == self.crash_at:
            self.crashed = True
            raise self.Crash
        self.answered.append(request.key)

    def migrate(self, name: str, *, slots: int = 1, **options: Any) -> RunResult:
        self.crashed = False
        done: RunResult = self.world.migrate(self.folder / name, self._before, slots, **options)
        return done

    def run_to_the_end(self, name: str, **options: Any) -> tuple[dict[str, Any], list[bytes]]:
        """What a run left alone comes to, and the keys of what it asks."""
        self.answered.clear()
        self.crash_at = None
        self.migrate(name, **options)
        return self.fingerprint(name), list(self.answered)

    def fingerprint(self, name: str) -> dict[str, Any]:
        return _fingerprint(self.folder / name)


@pytest.fixture
def lab(world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power failure here, and it is most of the time
    return Lab(world, tmp_path)
