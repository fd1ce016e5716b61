"""Lengths in words (``at most 8 words``), and a search for a pattern that takes some seconds at most. A pattern with
repeats within a repeat could run for years.

Exported files contain this file, so it imports only the standard library.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
from functools import lru_cache
from threading import Lock, Timer
from typing import Any, NamedTuple

LENGTHS = "a number of words, characters, sentences, lines or paragraphs, e.g. at most 8 words or 5 to 40 words"
"""How a user writes a length."""
HOW_MANY = r"(?:(at most|at least|exactly)\s+)?(\d{1,9})(?:\s*(?:-|\u2013|to)\s*(\d{1,9}))?\s+"
_LENGTH = re.compile(HOW_MANY + r"(character|word|sentence|line|paragraph)s?", re.IGNORECASE)


def band_of(form: re.Pattern[str], wanted: str, text: str) -> tuple[str | None, int, int | None]:
    """Read the unit, the least and the most of a number in words; None as the most means no limit. Raises ValueError,
    which says what is ``wanted``, if the text has another form."""
    found = form.fullmatch(text.strip())
    bound, low, high, unit = found.groups() if found else (None, "0", None, None)
    if found is None or (bound and high):
        raise ValueError(f"{wanted} is needed, not '{text}'")
    minimum, maximum = int(low), int(high or low)
    if minimum > maximum:
        raise ValueError(f"the smaller number comes first, not '{text}'")
    word = (bound or "").lower()
    return unit, 0 if word == "at most" else minimum, None if word == "at least" else maximum


class LengthBand(NamedTuple):
    """The length that an output may have."""

    unit: str
    """``character``, ``word``, ``sentence``, ``line`` or ``paragraph``."""
    least: int
    most: int | None
    """The largest number; None for no limit."""

    @classmethod
    def of(cls, text: str) -> LengthBand:
        """Read ``at most 8 words``, ``at least 2 sentences``, ``5 to 40 words`` or ``3 lines``. Raises ValueError if
        the text has another form, or the larger number comes first."""
        unit, least, most = band_of(_LENGTH, LENGTHS, text)
        return cls(str(unit).lower(), least, most)


PATIENCE = 5.0
"""Seconds after which a search is given up."""
_AT_ONCE = 3e7
"""Maximum number of steps of a search that runs in this process; Python does about 100 million a second."""
_MANY = 50
"""A repeat with a higher limit counts as one without a limit."""
_SEARCHER = (
    "import json, re, sys\n"
    "for line in sys.stdin:\n"
    "    found = re.search(*json.loads(line))\n"
    "    print(json.dumps(found and found[0]), flush=True)\n"
)
_lock = Lock()
_searchers: list[subprocess.Popen[bytes]] = []


class RunawayPatternError(RuntimeError):
    """The search for a pattern took too long."""


def first_match(pattern: str, text: str) -> str | None:
    """Return the first part of a text that a pattern matches, as ``re.search`` finds it; None without a match.

    A search that may take long runs in a process of its own, because a search in this one cannot be stopped. Raises
    RunawayPatternError if the search takes more than :data:`PATIENCE` seconds.
    """
    power, times = _growth(pattern)
    if times * float(max(len(text), 2)) ** min(power, 40) <= _AT_ONCE:
        found = re.search(pattern, text)
        return None if found is None else found[0]
    with _lock:
        if not _searchers:
            command = [sys.executable, "-I", "-S", "-c", _SEARCHER]
            pipe = subprocess.PIPE
            _searchers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL))
        [searcher] = _searchers
        assert searcher.stdin is not None and searcher.stdout is not None, "both are pipes"
        alarm = Timer(PATIENCE, searcher.kill)
        alarm.start()
        try:
            searcher.stdin.write(json.dumps([pattern, text]).encode() + b"\n")
            searcher.stdin.flush()
            line = searcher.stdout.readline()
        except OSError:
            line = b""
        finally:
            alarm.cancel()
        if not line:
            _end_searcher()
            raise RunawayPatternError(
                f"the pattern {pattern} was given up after {PATIENCE:g} seconds; it has repeats within repeats"
            )
        match: str | None = json.loads(line)
        return match


@atexit.register
def _end_searcher() -> None:
    while _searchers:
        ended = _searchers.pop()
        ended.kill()
        ended.communicate()


@lru_cache(maxsize=256)
def _growth(pattern: str) -> tuple[int, float]:
    """Return a bound on the steps of a search: the power of the text's length that they grow with, and a factor."""
    from re import _parser  # type: ignore[attr-defined]

    power, times, _ = _of_sequence(_parser.parse(pattern))
    return power + 1, times  # the search begins at every character


def _of_sequence(parts: Any) -> tuple[int, float, bool]:
    """Return the power, the factor, and whether the parts can match in several ways."""
    found = [_of_part(str(name), given) for name, given in parts]
    times = 1.0
    for each in found:
        times *= each[1]
    return sum(power for power, _, _ in found), times, any(varies for _, _, varies in found)


def _of_part(name: str, given: Any) -> tuple[int, float, bool]:
    if name == "BRANCH":
        ways = [_of_sequence(each) for each in given[1]]
        return max(power for power, _, _ in ways), sum(times for _, times, _ in ways), True
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        _, maximum, inner = given
        power, times, varies = _of_sequence(inner)
        if maximum <= 1:
            return power, times + 1, True
        if maximum > _MANY:
            return (99 if varies else power + 1), times, True  # many ways, many times: exponential
        return power * int(maximum), min(times ** int(maximum) * (int(maximum) + 1), 1e99), True
    nested = [each for each in (given if isinstance(given, tuple) else (given,)) if hasattr(each, "getwidth")]
    if not nested:
        return 0, 1.0, False
    ways = [_of_sequence(each) for each in nested]  # groups, lookahead and lookbehind
    return sum(way[0] for way in ways), max(way[1] for way in ways), any(way[2] for way in ways)
