"""How far the work is, in words: the same on a terminal, in a log and in a notebook."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .events import StartMeasured

if TYPE_CHECKING:
    from ..models.budget import Budget
    from .events import Event


class Counting:
    """Keeps where the work is, and calls, tokens and money so far; subclasses show it."""

    def __init__(self) -> None:
        """Nothing has begun."""
        self.began = time.monotonic()
        self.text = ""
        """The present piece of work; empty before the first."""
        self.done = 0
        self.total: int | None = None
        """Steps of the present piece; None where that is not known."""
        self._piece_began = self.began
        self._budget: Budget | None = None
        self._iteration = 0
        self._start: float | None = None
        """Validation score of the starting prompt; None where it is not known."""
        self._gain: float | None = None
        """Of the accepted prompt over the starting one, on validation; None before anything was accepted."""

    def watch(self, budget: Budget) -> None:
        """Read this budget from now on."""
        self._budget = budget

    def phase(self, text: str, total: int | None = None) -> None:
        """A new piece of work begins."""
        self.text, self.done, self.total = text, 0, total
        self._piece_began = time.monotonic()

    def advance(self, done: int, total: int) -> None:
        """So many of its steps are done."""
        self.done, self.total = done, total

    def on_event(self, event: Event) -> None:
        """Keep the iteration, and how good the prompt is so far: differences on the same examples add up."""
        if isinstance(event, StartMeasured):
            self._start = event.score
        self._iteration = getattr(event, "iteration", self._iteration)
        kept = getattr(event, "accepted", False) or getattr(event, "removed", False)
        gain = getattr(event, "gain", None)
        if kept and gain is not None and gain.value is not None:
            self._gain = (self._gain or 0.0) + gain.value

    @property
    def left(self) -> str:
        """E.g. ``34 of 120, about 40 s left``; empty where the number of steps is not known."""
        if not self.total:
            return ""
        steps = f"{self.done:,} of {self.total:,}"
        if not 0 < self.done < self.total:
            return steps
        pace = (time.monotonic() - self._piece_began) / self.done
        return f"{steps}, about {duration(pace * (self.total - self.done))} left"

    @property
    def spent(self) -> str:
        """E.g. ``iteration 2, validation 0.612 (+0.083), 120 calls, 31k tokens, $0.02``."""
        where = [f"iteration {self._iteration}"] if self._iteration else []
        return ", ".join([*where, *self._validation, *([bought(self._budget)] if self._budget else [])])

    @property
    def _validation(self) -> list[str]:
        """How good the accepted prompt is on validation, as far as it is known."""
        if self._start is None:
            return [] if self._gain is None else [f"validation {self._gain:+.3f}"]
        gain = "" if self._gain is None else f" ({self._gain:+.3f})"
        return [f"validation {self._start + (self._gain or 0.0):.3f}{gain}"]


def bought(budget: Budget) -> str:
    """E.g. ``120 calls (+30 reused), 31k tokens, $0.02``."""
    tokens = f"{budget.tokens / 1000:.0f}k" if budget.tokens >= 10_000 else str(budget.tokens)
    money = f", ${budget.cost_usd:.4f}" if budget.cost_usd else ""
    reused = f" (+{budget.cached_calls} reused)" if budget.cached_calls else ""
    return f"{budget.calls} calls{reused}, {tokens} tokens{money}"


def duration(seconds: float) -> str:
    """E.g. ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
