"""``askance watch``: follow a run from a second terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..memory.result_file import FINISH_SENTENCES
from ..optimizer.events import sentence_of
from ..optimizer.following import RunProgress
from ..prompts.errors import AskanceError, InputError, as_typed
from ..prompts.text import visible
from . import terminal
from .terminal import echo

EVERY = 1.0
"""Seconds between two looks at the run's journal."""
QUIET = 5.0
"""Seconds between two checks, while there is no event, whether a process still works on the run."""
LINE_EVERY = 30.0
"""Fewest seconds between two lines of progress, if the output is no terminal."""


@click.command(name="watch")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print every event as a line of JSON.")
@click.option("--wait", is_flag=True, help="Wait for the run to begin, or to be taken up again.")
def command(run: Path, as_json: bool, wait: bool) -> int:
    """Follow the run in the directory RUN from a second terminal, until it is finished. Ctrl-C ends only the watching.

    Exit code 1: the run is not finished and no process works on it.
    """
    try:
        progress = _begin(run, wait)
        with _screen(as_json) as show:
            ended = _follow(progress, wait, show)
    except KeyboardInterrupt:
        echo("Watching has ended; the run goes on.", err=True)
        return 130
    if not ended:
        raise AskanceError(
            f"{run}: the run is not finished and no process works on it. Go on: askance resume {as_typed(run)}"
        )
    if not as_json:
        reason = progress.events[-1]["reason"]
        echo(f"The run is finished, because {FINISH_SENTENCES.get(reason, reason)}. See: askance show {as_typed(run)}")
    return 0


def _begin(run: Path, wait: bool) -> RunProgress:
    """Return the run once it is there. Raises InputError if it is not there and ``wait`` is off."""
    while True:
        try:
            return RunProgress(run)
        except InputError as error:
            if (run / "config.yaml").exists() or run.is_file():
                raise
            if not wait:
                raise InputError(f"{error} To wait for it: askance watch {as_typed(run)} --wait") from None
        time.sleep(EVERY)


def _follow(progress: RunProgress, wait: bool, show: Callable[[list[dict[str, Any]], RunProgress], None]) -> bool:
    """Show events until the run is finished. Return False if no process works on the run any more."""
    checked = 0.0
    while True:
        rows = progress.look()
        show(rows, progress)
        now = time.monotonic()
        if progress.written or (not rows and now - checked >= QUIET):
            checked = now
            if not progress.worked_on():
                show(progress.look(), progress)
                if progress.written or not wait:
                    return progress.written
        time.sleep(EVERY)


@contextmanager
def _screen(as_json: bool) -> Iterator[Callable[[list[dict[str, Any]], RunProgress], None]]:
    """Yield the function that shows events: as JSON lines, as a live line on a terminal, or as plain lines."""
    if as_json:
        yield _json_lines
    elif sys.stdout.isatty():
        console = terminal.console()
        with console.status("…") as status:
            from rich.text import Text

            def live(rows: list[dict[str, Any]], progress: RunProgress) -> None:
                for row in rows:
                    if said := sentence_of(row):
                        console.print(said)
                status.update(Text(visible(f"{progress.line()}{_silence(progress)}")))

            yield live
    else:
        yield _PlainEvents()


def _json_lines(rows: list[dict[str, Any]], progress: RunProgress) -> None:
    for row in rows:
        click.echo(json.dumps(row))


class _PlainEvents:
    """Shows events as sentences, and from time to time a line of progress."""

    def __init__(self) -> None:
        self._last = 0.0
        self._line = ""

    def __call__(self, rows: list[dict[str, Any]], progress: RunProgress) -> None:
        """Print the new events and, if it is time, the progress."""
        for row in rows:
            if said := sentence_of(row):
                echo(said)
        now, line = time.monotonic(), progress.line()
        if line != self._line and (not self._line or now - self._last >= LINE_EVERY or progress.written):
            self._last, self._line = now, line
            echo(line)


def _silence(progress: RunProgress) -> str:
    silent = progress.silent_for
    return "" if silent is None or silent < 10 else f" · last event {silent:,.0f} s ago"
