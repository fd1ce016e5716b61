"""Show progress to people: on a terminal, in plain lines, or in a notebook's cell. Watching never changes results."""

from __future__ import annotations

import importlib
import sys
import time
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..prompts.errors import InputError
from ..prompts.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from .budget import Budget

PLAIN_EVERY = 15.0  # seconds between two lines about the same piece of work, without a terminal
EVERY = 0.25  # seconds between two updates of a notebook's cell about the same piece of work
LATEST = 4  # messages that a cell shows while the work goes on; afterwards all of them can be opened


@runtime_checkable
class Watcher(Protocol):
    """A receiver of progress reports: the terminal, a notebook, a test."""

    def watch(self, budget: Budget) -> None:
        """Take the budget that counts calls, tokens and money from now on."""

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a new piece of work, with ``total`` steps if their number is known."""

    def advance(self, done: int, total: int) -> None:
        """Report the number of finished steps of the present piece."""

    def say(self, text: str) -> None:
        """Report a message for the user, once."""


@contextmanager
def watching(watcher: Watcher | None, progress: bool | None) -> Iterator[Watcher]:
    """Yield the receiver of progress reports: ``watcher``, or askance's own display if ``progress`` is true. If
    ``progress`` is None, it is shown in notebooks only. Raises InputError if both are given, or if ``watcher`` lacks a
    method."""
    if watcher is not None:
        if progress:
            raise InputError("The given watcher shows the progress: leave out watcher=, or progress=True.")
        if not isinstance(watcher, Watcher):
            needs = "watch, phase, advance and say"
            raise InputError(f"watcher: an object with {needs} is needed, not {type(watcher).__name__}.")
        yield watcher
        return
    with showing(progress) as shown:
        yield shown


@contextmanager
def showing(progress: bool | None) -> Iterator[Counting]:
    """Yield askance's display of progress, by the rules of :func:`watching`, or one that shows nothing."""
    if progress is False or (progress is None and not in_notebook()):
        yield Silent()
    elif in_notebook():
        shown = Notebook()
        try:
            yield shown
        except BaseException:
            shown.end("stopped")
            raise
        shown.end("done")
    elif sys.stderr.isatty():
        with _live() as bar:
            yield Terminal(bar)
    else:
        yield Lines()


def in_notebook() -> bool:
    """Whether the process is a Jupyter kernel (Jupyter, VS Code, Colab, ...); imports nothing."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class Counting:
    """Keeps the state of the work, and calls, tokens and money so far. Subclasses show them."""

    def __init__(self) -> None:
        """Start counting; no piece of work has begun."""
        self.began = time.monotonic()
        self.text = ""  # the present piece of work; empty before the first
        self.done = 0
        self.total: int | None = None  # steps of the present piece; None where their number is not known
        self._piece_began = self._count_began = self.began
        self._took: dict[str, float] = {}
        self._budget: Budget | None = None
        self._iteration = 0
        self._start: float | None = None  # validation score of the starting prompt; None where it is not known
        self._gain: float | None = None  # of the accepted prompt over the starting one, on validation

    def watch(self, budget: Budget) -> None:
        """Read this budget from now on."""
        self._budget = budget

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a new piece of work."""
        self._took = self.took()
        self.text, self.done, self.total = text, 0, total
        self._piece_began = self._count_began = time.monotonic()

    def advance(self, done: int, total: int) -> None:
        """Keep the number of finished steps."""
        if done < self.done:  # one piece of work may count anew: several readings of the same outputs
            self._count_began = time.monotonic()
        self.done, self.total = done, total

    def say(self, text: str) -> None:
        """Ignore the message: there is nothing to count."""

    def on_event(self, event: object) -> None:
        """Keep iteration and gain so far from a loop's event, known by its fields' names. Gains add up."""
        if getattr(event, "kind", None) == "measured":
            self._start = getattr(event, "score", None)
        records = (getattr(event, name, None) for name in ("tried", "pruned", "question"))
        record = next(filter(None, records), event)
        self._iteration = getattr(record, "iteration", self._iteration)
        kept = getattr(record, "accepted", False) or getattr(record, "removed", False)
        gain = getattr(record, "gain", None)
        if kept and gain is not None and gain.value is not None:
            self._gain = (self._gain or 0.0) + gain.value

    def took(self) -> dict[str, float]:
        """Return the seconds that each piece of work took so far, by name."""
        now = {self.text: self._took.get(self.text, 0.0) + time.monotonic() - self._piece_began} if self.text else {}
        return self._took | now

    @property
    def left(self) -> str:
        """Steps done and time left, e.g. ``34 of 120, about 40 s left``; empty if the number of steps is unknown."""
        if not self.total:
            return ""
        steps = f"{self.done:,} of {self.total:,}"
        if not 0 < self.done < self.total:
            return steps
        pace = (time.monotonic() - self._count_began) / self.done
        return f"{steps}, about {duration(pace * (self.total - self.done))} left"

    @property
    def spent(self) -> str:
        """State in words, e.g. ``iteration 2, validation 0.612 (+0.083), 120 calls, 31k tokens, $0.02``."""
        parts = [f"iteration {self._iteration}"] if self._iteration else []
        if self._start is not None:
            gain = "" if self._gain is None else f" ({self._gain:+.3f})"
            parts.append(f"validation {self._start + (self._gain or 0.0):.3f}{gain}")
        elif self._gain is not None:
            parts.append(f"validation {self._gain:+.3f}")
        if (budget := self._budget) is not None:
            reused = f" (+{budget.cached_calls} reused)" if budget.cached_calls else ""
            tokens = f"{budget.tokens / 1000:.0f}k" if budget.tokens >= 10_000 else str(budget.tokens)
            parts += [f"{budget.calls} calls{reused}", f"{tokens} tokens"]
            parts += [f"${budget.cost_usd:.4f}"] if budget.cost_usd else []
        return ", ".join(parts)


class Silent(Counting):
    """Shows nothing."""


class Lines(Counting):
    """Plain lines, for logs."""

    def __init__(self) -> None:
        """Start without having written a line."""
        super().__init__()
        self._last = self.began

    def phase(self, text: str, total: int | None = None) -> None:
        """Write the name of the piece of work."""
        super().phase(text, total)
        self._last = time.monotonic()
        self.say(f"{text} …")

    def advance(self, done: int, total: int) -> None:
        """Write the state of the work, every :data:`PLAIN_EVERY` seconds at most."""
        super().advance(done, total)
        now = time.monotonic()
        if now - self._last < PLAIN_EVERY or not done:
            return
        self._last = now
        self.say(f"{self.text}: {', '.join(filter(None, (self.left, self.spent)))}")

    def say(self, text: str) -> None:
        """Write a message."""
        sys.stderr.write(f"{visible(text)}\n")
        sys.stderr.flush()


class Terminal(Counting):
    """A live line with a bar; messages appear above it."""

    def __init__(self, progress: Progress) -> None:
        """``progress`` must be running."""
        super().__init__()
        self._progress = progress
        self._task: TaskID | None = None

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a new bar in place of the old one."""
        super().phase(text, total)
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(visible(text), total=total, spent=self.spent)

    def advance(self, done: int, total: int) -> None:
        """Move the bar."""
        super().advance(done, total)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total, spent=self.spent)

    def say(self, text: str) -> None:
        """Print a message above the bar."""
        self._progress.console.print(visible(text), markup=False, highlight=False)


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


class Notebook(Counting):
    """A notebook's bar with the state and the latest messages, escaped, for light and dark colours."""

    def __init__(self) -> None:
        """Start without having shown anything."""
        super().__init__()
        self._handle: Any = None
        self._last = 0.0
        self._said: list[str] = []

    def phase(self, text: str, total: int | None = None) -> None:
        """Show the name of the piece of work."""
        super().phase(text, total)
        self._show()

    def advance(self, done: int, total: int) -> None:
        """Move the bar, a few times a second at most."""
        super().advance(done, total)
        if time.monotonic() - self._last >= EVERY:
            self._show()

    def say(self, text: str) -> None:
        """Show a message."""
        self._said.append(text)
        self._show()

    def end(self, how: str) -> None:
        """Leave one line, e.g. ``done in 40 s: iteration 2, 120 calls``; the messages open below it."""
        took = duration(time.monotonic() - self.began)
        line = f"{how} {'in' if how == 'done' else 'after'} {took}"
        if how != "done" and self.text:
            line += f" while {self.text}" + (f" ({self.left.partition(',')[0]})" if self.left else "")
        line += f": {self.spent}" if self.spent else ""
        html = f"askance: {escape(line)}"
        if self._said:
            html = f"<details><summary>{html}</summary>{_messages(self._said)}</details>"
        self._publish(f"askance: {line}", f"<div>{html}</div>")

    def _show(self) -> None:
        self._last = time.monotonic()
        steps = f' max="{self.total}" value="{self.done}"' if self.total else ""
        bar = f'<progress{steps} style="width:14em;vertical-align:middle;accent-color:currentColor"></progress>'
        left = f" · {escape(self.left)}" if self.left else ""
        spent = f'<div style="opacity:.75">{escape(self.spent)}</div>' if self.spent else ""
        html = f"<div>{bar} <b>{escape(self.text)}</b>{left}</div>{spent}{_messages(self._said[-LATEST:])}"
        plain = " · ".join(filter(None, (self.text, self.left, self.spent)))
        self._publish(plain, f"<div>{html}</div>")

    def _publish(self, plain: str, html: str) -> None:
        bundle = {"text/plain": visible(plain), "text/html": visible(html)}  # half a surrogate pair cannot be sent
        if self._handle is None:
            display: Any = importlib.import_module("IPython.display").display
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _messages(said: list[str]) -> str:
    return "".join(f'<div style="opacity:.75;margin-left:1em">{escape(each)}</div>' for each in said)


def duration(seconds: float) -> str:
    """Format seconds, e.g. ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
