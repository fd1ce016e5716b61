"""Progress in the output of a notebook's cell, updated in place; IPython is used where it is there already."""

from __future__ import annotations

import importlib
import sys
import time
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from .progress_words import Counting, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = 0.25
"""Seconds between two updates about the same piece of work."""
LATEST = 4
"""Messages that are shown while the work goes on; afterwards all of them can be opened."""


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel (Jupyter, VS Code, Colab, ...); imports nothing."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def in_the_cell() -> Iterator[Notebook]:
    """Somebody who watches and shows it in the cell; what is left there afterwards is one line that opens."""
    shown = Notebook()
    try:
        yield shown
    except BaseException:
        shown.end("stopped")
        raise
    shown.end("done")


class Notebook(Counting):
    """A bar with where the work is, and the latest messages below it.

    Colours are the page's own, so that it can be read in light and dark notebooks; all text is escaped.
    """

    def __init__(self) -> None:
        """Nothing is shown yet."""
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
        """Show it in the place where the last was shown."""
        bundle = {"text/plain": plain, "text/html": html}
        if self._handle is None:
            display: Any = importlib.import_module("IPython.display").display
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _messages(said: list[str]) -> str:
    return "".join(f'<div style="opacity:.75;margin-left:1em">{escape(each)}</div>' for each in said)
