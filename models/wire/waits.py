"""Read how long an endpoint asks to wait, and whether a quota is used up.

An exported judge holds a copy of this file, so that it needs the standard library alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

LONGEST_WAIT = 3600.0
"""Seconds for which an endpoint that refuses calls because of its limits is waited for."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(
    r"(\d+(?:\.\d+)?) ?(ms|milliseconds?|s|seconds?|secs?|m|minutes?|mins?|h|hours?|d|days?)(?![a-z])"
)
_TIME = r"(?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)(?![a-z]) ?)+"
_IN_WORDS = re.compile(rf"(?:try again|retry|wait)(?: \w+)? (?:in|after|for) ({_TIME})|retrydelay\W{{1,4}}({_TIME})")
_RESET_INSIDE = re.compile(r"x-ratelimit-reset\W{1,6}(\d+)")
_QUOTA = re.compile(
    r"insufficient_quota|billing_?\W?hard_?\W?limit|credit balance is too low|exceeded_current_quota|insufficient (?:balance|credits?)"
    r"|(?:used all available|run out of|out of|doesn't have any|no) credits|monthly (?:spend(?:ing)?|usage) limit|requestsperday|tokensperday"
    r"|free-models-per-day"
)
_OPENAI_QUOTA = re.compile(r"exceeded your current quota")
"""Google says so of a limit per minute too, which is over soon."""


def quota_used_up(status: int, said: str) -> str | None:
    """A sentence where an endpoint says that a quota or the account's money is used up; None where it says something
    else.

    Waiting for minutes does not help then.
    """
    text = said.lower()
    if status < 400 or not (
        _QUOTA.search(text)
        or (_OPENAI_QUOTA.search(text) and "resource_exhausted" not in text and status in (401, 429))
    ):
        return None
    return (
        "the quota or the money of this account is used up. Raise it at the provider, or wait until it is renewed, "
        "and run the command again; what was bought is kept."
    )


def wait_asked_for(headers: Mapping[str, str], said: str = "") -> float | None:
    """Seconds that an endpoint asks to wait, from its headers or else its words; None where it does not say.

    Args:
        headers: Of the reply, in any case.
        said: The whole reply.
    """
    there = {name.lower(): value for name, value in headers.items()}
    now = _date(there.get("date"))
    if (milliseconds := read_wait(there.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if (asked := read_wait(there.get("retry-after"), now)) is not None:
        return asked
    text = said.lower()
    if found := _IN_WORDS.search(text):
        return read_wait(found[1] or found[2])
    # OpenAI sends how long until each of its limits is whole again; the one that was met has nothing left
    resets, met = [], []
    for name, value in there.items():
        if "ratelimit" in name and "reset" in name and (until := read_wait(value, now)) is not None:
            resets.append(until)
            if there.get(name.replace("reset", "remaining"), "").strip() in ("0", "0.0"):
                met.append(until)
    if resets:
        return max(met) if met else min(resets)
    return read_wait(inside[1], now) if (inside := _RESET_INSIDE.search(text)) else None


def read_wait(value: str | None, now: float | None = None) -> float | None:
    """Seconds in a text: a number of seconds, a time since 1970 in seconds or milliseconds, a duration such as
    ``1m30s`` or ``6ms``, or a date. ``now`` is the endpoint's own clock, as the one here may be wrong. None where it is
    none of them."""
    text = (value or "").strip().lower()
    now = time.time() if now is None else now
    try:
        seconds = float(text)
        if not isfinite(seconds):
            return None
        if seconds > 1e8:  # three years are no wait
            seconds = seconds / (1000 if seconds > 1e11 else 1) - now
        return max(0.0, seconds)
    except ValueError:
        pass
    parts = _DURATION.findall(text)
    if parts and not _DURATION.sub("", text).strip():
        return sum(
            float(number) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]] for number, unit in parts
        )
    until = _date(value)
    return None if until is None else max(0.0, until - now)


def _date(text: str | None) -> float | None:
    """Seconds since 1970 of a date as of HTTP or ISO 8601; None where it is none."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(text.strip()) if text else None
            if date is not None:
                return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
    return None
