"""What the loop tells those who watch it. Watching changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..models.budget import Budget


class Watcher(Protocol):
    """Somebody who is told how the work goes on: the terminal, a notebook, a test."""

    def watch(self, budget: Budget) -> None:
        """Where calls, tokens and money are counted from now on."""
        ...

    def phase(self, text: str, total: int | None = None) -> None:
        """A new piece of work begins; ``total`` steps where that is known."""
        ...

    def advance(self, done: int, total: int) -> None:
        """So many steps of the present piece are done."""
        ...

    def say(self, text: str) -> None:
        """Something a person wants to know, once."""
        ...


class Silent:
    """Tells nobody."""

    def watch(self, budget: Budget) -> None:
        """Nothing."""

    def phase(self, text: str, total: int | None = None) -> None:
        """Nothing."""

    def advance(self, done: int, total: int) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""
