"""A wall clock that jumps, in this process."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime, tzinfo

Jumps = Sequence[tuple[float, float]]
"""From so many seconds after the start on the clock is so many seconds ahead."""


def jump_the_clock(jumps: Jumps) -> None:
    """Have this process see another wall clock from now on; the monotonic clock goes on, as the system's does."""
    began, real = time.monotonic(), time.time

    def ahead() -> float:
        passed = time.monotonic() - began
        return next((each for after, each in reversed(jumps) if passed >= after), 0.0)

    def now() -> float:
        return real() + ahead()

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Jumping:
            return cls.fromtimestamp(now(), tz)

    time.time = now
    for name, module in [*sys.modules.items()]:
        if name.startswith("askance."):
            for attribute, value in [*vars(module).items()]:
                if value is real:
                    setattr(module, attribute, now)
                elif value is datetime:
                    setattr(module, attribute, Jumping)
