"""How fast the machine is at the moment, so that a limit in seconds holds on a slower one, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from difflib import SequenceMatcher

REFERENCE = 0.02
"""CPU seconds of the measured work on the machine that the limits were set on."""


def machine_slowness() -> float:
    """CPU time of some fixed work over its time on the reference machine; 1 at least."""
    words = ["The", "bridge", "over", "the", "river", "is", "shut", "from", "today", "on."] * 120
    matcher = SequenceMatcher(None, words, words[5:], autojunk=False)
    return max(1.0, cpu_time(matcher.find_longest_match) / REFERENCE)


def cpu_time(do: Callable[[], object]) -> float:
    """CPU seconds of this thread for one call, the best of three."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        do()
        times.append(time.thread_time() - began)
    return min(times)
