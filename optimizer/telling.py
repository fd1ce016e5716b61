"""Who is told the events of a run: the journal, the one who watches, and callbacks.

A callback is anything that takes an event; one that fails is logged and does not disturb the run.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .events import Advanced, PhaseBegan, StartMeasured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..evaluation.progress import Watcher
    from ..memory.journal import Journal
    from ..models.budget import Budget
    from .events import Callback, Event, RunBegan, RunWritten

logger = logging.getLogger(__name__)


@runtime_checkable
class EventWatcher(Protocol):
    """A watcher that also wants the events themselves, those of a resumed run again."""

    def on_event(self, event: Event) -> object:
        """Something happened."""
        ...


class Events:
    """Tells the journal, the one who watches, and callbacks; it can itself be handed on as a watcher."""

    def __init__(self, journal: Journal, watcher: Watcher, callbacks: Iterable[Callback] = ()) -> None:
        """The journal is told first: what is not written down did not happen."""
        self.journal = journal
        self._watcher = watcher
        self._callbacks = list(callbacks)

    def emit(self, event: Event) -> None:
        """Tell everybody.

        Raises:
            AskanceError: The journal cannot be written.
        """
        new = self.journal.write(event.kind, **event.row())
        if isinstance(self._watcher, EventWatcher):
            self._watcher.on_event(event)
        if event.sentence is not None:
            self._watcher.say(event.sentence)
        if new:
            self._call(event)

    def tell(self, event: RunBegan | RunWritten) -> None:
        """Tell the callbacks alone, also where the run is repeating itself."""
        self._call(event)

    def watch(self, budget: Budget) -> None:
        """Where calls, tokens and money are counted from now on."""
        self._watcher.watch(budget)

    def measured(self, score: float | None, yardstick: str) -> None:
        """How good the starting prompt is on validation."""
        event = StartMeasured(score, yardstick)
        if isinstance(self._watcher, EventWatcher):
            self._watcher.on_event(event)
        if not self.journal.replaying:
            self._call(event)

    def phase(self, text: str, total: int | None = None) -> None:
        """A new piece of work begins."""
        self._watcher.phase(text, total)
        if not self.journal.replaying:
            self._call(PhaseBegan(text, total))

    def advance(self, done: int, total: int) -> None:
        """So many steps are done."""
        self._watcher.advance(done, total)
        if not self.journal.replaying:
            self._call(Advanced(done, total))

    def say(self, text: str) -> None:
        """Something a person wants to know that is no event of the run, e.g. that a call has to wait."""
        self._watcher.say(text)

    def _call(self, event: Event) -> None:
        for callback in self._callbacks:
            try:
                callback(event)
            except Exception:
                logger.exception("A callback failed on the event '%s'; the run goes on.", event.kind)
