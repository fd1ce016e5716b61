"""Progress on standard error: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .progress_words import Counting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from .progress import Watcher

PLAIN_EVERY = 15.0
"""Seconds between two lines about the same piece of work where there is no terminal."""


@contextmanager
def on_standard_error() -> Iterator[Watcher]:
    """Somebody who watches, fit for what standard error is."""
    if sys.stderr.isatty():
        with _live() as progress:
            yield Terminal(progress)
    else:
        yield Lines()


class Lines(Counting):
    """Plain lines, for logs."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        super().__init__()
        self._last = self.began

    def phase(self, text: str, total: int | None = None) -> None:
        """Write the name of the piece of work."""
        super().phase(text, total)
        self._last = time.monotonic()
        self._write(f"{text} …")

    def advance(self, done: int, total: int) -> None:
        """Write how far it is, now and then."""
        super().advance(done, total)
        now = time.monotonic()
        if now - self._last < PLAIN_EVERY or not done:
            return
        self._last = now
        self._write(f"{self.text}: {', '.join(filter(None, (self.left, self.spent)))}")

    def say(self, text: str) -> None:
        """Write a message."""
        self._write(text)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class Terminal(Counting):
    """A live line with a bar, messages above it."""

    def __init__(self, progress: Progress) -> None:
        """``progress`` is running."""
        super().__init__()
        self._progress = progress
        self._task: TaskID | None = None

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a new bar in place of the old one."""
        super().phase(text, total)
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(text, total=total, spent=self.spent)

    def advance(self, done: int, total: int) -> None:
        """Move the bar."""
        super().advance(done, total)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total, spent=self.spent)

    def say(self, text: str) -> None:
        """Print a message above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)


def _live() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[spent]}", style="dim"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
