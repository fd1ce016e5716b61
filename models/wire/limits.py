"""Limits of calls and tokens per minute, which a user sets for a model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

MINUTE = 60.0


class PerMinute:
    """Keeps calls and tokens of one model to what may be asked in any minute, over all roles that use it."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        """``requests`` and ``tokens`` per minute; None is no limit."""
        self.requests = requests
        self.tokens = tokens
        self._begun: deque[list[float]] = deque()
        """Times and tokens of the calls of the last minute."""
        self._queue = asyncio.Lock()

    async def turn(self, tokens: int) -> Callable[[int], None]:
        """Wait until a call that may take so many tokens can be made. Returns a function to be told what it did take.

        A call for more tokens than the limit is made in a minute of its own.
        """
        async with self._queue:  # in the order of asking
            while (seconds := self._seconds_to_wait(tokens)) > 0:  # noqa: ASYNC110 - time alone makes room
                await asyncio.sleep(seconds)
            call = [monotonic(), float(tokens)]
            self._begun.append(call)

        def took(tokens: int) -> None:
            call[1] = float(tokens)

        return took

    def _seconds_to_wait(self, tokens: int) -> float:
        now = monotonic()
        while self._begun and self._begun[0][0] <= now - MINUTE:
            self._begun.popleft()
        calls, taken = len(self._begun), sum(each for _, each in self._begun)
        for begun, spent in self._begun:
            full = self.requests is not None and calls >= self.requests
            if not full and (self.tokens is None or taken + tokens <= self.tokens):
                return 0.0
            calls, taken, until = calls - 1, taken - spent, begun + MINUTE
            full = self.requests is not None and calls >= self.requests
            if not full and (self.tokens is None or taken + tokens <= self.tokens or not calls):
                return max(until - now, 0.001)
        return 0.0


def per_minute(model: Any) -> PerMinute | None:
    """The limits of a model; None where it has none."""
    requests, tokens = (getattr(model, name, None) for name in ("requests_per_minute", "tokens_per_minute"))
    return PerMinute(requests, tokens) if requests or tokens else None
