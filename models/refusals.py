"""Meaning of an endpoint's error messages: unsupported fields, a wait that it asks for, a quota that is used up.

Exported judges contain a copy of this file, so it imports only the standard library.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, NamedTuple

GRAMMAR = ("grammar", "structured_outputs", "guided_grammar")  # names of one field; if one is refused, none is sent
OPTIONAL = {
    "response_format": ("response_format",),
    "top_logprobs": ("top_logprobs", "logprobs"),
    "logprobs": ("logprobs", "top_logprobs"),
    "max_tokens": ("max_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
    **dict.fromkeys(GRAMMAR, GRAMMAR),
}
"""Fields that an endpoint may refuse by name, each with the fields that make no sense without it."""
SMALL_TEMPERATURE = 0.01  # sent where 0 is refused: the likeliest word is then almost certain

_STATUSES = frozenset({400, 403, 404, 405, 422, 500, 501})  # 403: OpenAI, if a model gives no log-probabilities
_BAD_REQUEST = frozenset({400, 403, 422, 501})
_WORDS = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not (?:allowed|enabled|implemented)|permitted|extra|deprecated"
    r"|(?:un|not )available"
)
_IN_ANY_WORDS = {
    "response_format": re.compile(r"schema|grammar|response_?format|guided|structured.output"),
    "logprobs": re.compile(r"log_?probs?\b|log.?probabilit"),
    "temperature": re.compile(
        r"temperature\W.*(?:\bonly\b|must be (?:set to |equal to )?1(?:\.0)?\b|default)", re.DOTALL
    ),
    "seed": re.compile(r"\bseed\b"),
    "grammar": re.compile(r"grammar|structured.output|guided"),
}
"""Fields that count as refused if an error mentions them in any words: an answer without them is better than none."""
_ABOVE_ZERO = re.compile(
    r"temperature\W.*(?:positive|(?:greater|larger|higher|more|bigger) than (?:0|zero)|above (?:0|zero)|> ?0|non-?zero"
    r"|(?:cannot|can't|must not|may not|should not) be (?:0|zero)|\(0)",
    re.DOTALL,
)
_BELOW = re.compile(
    r"(?:less|smaller|lower|fewer) than (?:the )?(?:\w+ )?(\d+)(?! ?or)|(?:below|under|< ?)(\d+)|\[\d+, ?(\d+)\)"
)
_AT_MOST = re.compile(
    r"(?:less than or equal to|at most|up to|no more than|between \d+ and|limit (?:of|is)|exceeds?(?: the)?(?: \w+)?"
    r"(?: of)?|\[\d+,|max(?:imum)?(?: \w+){0,3}?|<=)\W{0,4}(\d+)"
)
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w-]|\.\d)")
_AT_LEAST = re.compile(r"(?:>=|at least|minimum(?: value)?(?: is| of)?|greater than or equal to)\W{0,4}(\d+)")


class Facts(NamedTuple):
    """Facts learned about an endpoint."""

    without: frozenset[str] = frozenset()  # fields left out; ``max_tokens`` is sent as ``max_completion_tokens``
    most_alternatives: int | None = None  # most alternatives to a token that it gives
    fewest_tokens: int = 0  # smallest ``max_tokens`` that it takes
    least_temperature: float = 0.0

    def fit(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a request in the form that the endpoint takes."""
        sent = {name: value for name, value in fields.items() if name not in self.without}
        if "max_tokens" in fields and "max_tokens" in self.without:
            sent["max_completion_tokens"] = fields["max_tokens"]
        for name in ("max_tokens", "max_completion_tokens"):
            if name in sent:
                sent[name] = max(sent[name], self.fewest_tokens)
        if "temperature" in sent:
            sent["temperature"] = max(sent["temperature"], self.least_temperature)
        if self.most_alternatives is not None and "top_logprobs" in sent:
            sent["top_logprobs"] = min(sent["top_logprobs"], self.most_alternatives)
        return sent

    def learn(self, status: int, said: str, sent: Mapping[str, Any]) -> Facts | None:
        """Return the facts after a refusal; None if no field is the cause."""
        text = said.lower()
        if status in (400, 422):
            if (most := _fewer_alternatives(text, sent)) is not None:
                return self._replace(most_alternatives=most)
            if (least := _more_tokens(text, sent)) is not None:
                return self._replace(fewest_tokens=least)
            if sent.get("temperature") == 0 and _ABOVE_ZERO.search(text):
                return self._replace(least_temperature=SMALL_TEMPERATURE)
        refused = _refused(status, text, sent)
        if refused is not None:
            return self._replace(without=self.without.union(OPTIONAL[refused]))
        if status in (400, 422) and sent.get("temperature") == 0 and re.search(r"\btemperature\b", text):
            return self._replace(least_temperature=SMALL_TEMPERATURE)
        return None

    def and_also(self, other: Facts) -> Facts:
        """Combine two sets of facts: calls that are under way at the same time learn separately."""
        most = [each for each in (self.most_alternatives, other.most_alternatives) if each is not None]
        return Facts(
            self.without | other.without,
            min(most, default=None),
            max(self.fewest_tokens, other.fewest_tokens),
            max(self.least_temperature, other.least_temperature),
        )


def _refused(status: int, text: str, sent: Mapping[str, Any]) -> str | None:
    """Return the field that an endpoint refuses; None if the error has another cause."""
    if status not in _STATUSES:
        return None
    fields = [field for field in OPTIONAL if field in sent]
    named = [field for field in fields if re.search(rf"\b{field}\b", text)] if _WORDS.search(text) else []
    if (param := _param(text)) in named:
        return param
    if "max_completion_tokens" in text and "max_tokens" in fields:
        return "max_tokens"
    if named:
        return named[0]
    in_any_words = fields if status in _BAD_REQUEST else []
    return next((field for field in in_any_words if field in _IN_ANY_WORDS and _IN_ANY_WORDS[field].search(text)), None)


def _param(text: str) -> str | None:
    """Return the field that an error in OpenAI's form names as its cause, or None."""
    try:
        param = json.loads(text)["error"]["param"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return param if isinstance(param, str) else None


def _fewer_alternatives(text: str, sent: Mapping[str, Any]) -> int | None:
    """Return the most alternatives to a token that an endpoint gives, if it says that the request asks for too many."""
    asked = sent.get("top_logprobs", 0)
    if not asked or "logprob" not in text:
        return None
    below = [int(next(filter(None, found.groups()))) - 1 for found in _BELOW.finditer(text)]
    limits = [*below, *(int(found[1]) for found in _AT_MOST.finditer(text))]
    # Without such words, guess the largest smaller number in the text. A wrong guess is refused; the next is smaller.
    for numbers in (limits, [int(digits) for digits in _NUMBER.findall(text)]):
        if fewer := [number for number in numbers if 0 < number < asked]:
            return max(fewer)
    return None


def _more_tokens(text: str, sent: Mapping[str, Any]) -> int | None:
    """Return the smallest ``max_tokens`` that an endpoint takes, if it says that the request asks for too few."""
    asked = sent.get("max_tokens", sent.get("max_completion_tokens"))
    if asked is None or "budget" in text or not re.search(r"max_\w*tokens", text):
        return None
    found = _AT_LEAST.search(text)
    return int(found[1]) if found and asked < int(found[1]) <= 1024 else None


LONGEST_WAIT = 3600.0  # longest wait, in seconds, for an endpoint that refuses calls because of its limits
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(
    r"(\d+(?:\.\d+)?) ?(ms|milliseconds?|s|seconds?|secs?|m|minutes?|mins?|h|hours?|d|days?)(?![a-z])"
)
_TIME = r"(?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)(?![a-z]) ?)+"
_IN_WORDS = re.compile(rf"(?:try again|retry|wait)(?: \w+)? (?:in|after|for) ({_TIME})|retrydelay\W{{1,4}}({_TIME})")
_RESET_INSIDE = re.compile(r"x-ratelimit-reset\W{1,6}(\d+)")
_QUOTA = re.compile(
    r"insufficient_quota|billing_?\W?hard_?\W?limit|credit balance is too low|exceeded_current_quota"
    r"|insufficient (?:balance|credits?)|(?:used all available|run out of|out of|doesn't have any|no) credits"
    r"|monthly (?:spend(?:ing)?|usage) limit|requestsperday|tokensperday|free-models-per-day"
)
_OPENAI_QUOTA = re.compile(r"exceeded your current quota")
"""OpenAI's words for a used-up quota. Google uses them for a limit per minute too, which ends soon."""


_NO_IMAGES = re.compile(
    r"image[\w /]{0,20}\W{0,3}(?:is |are |inputs? )*(?:not|only) (?:currently )?support|"
    r"not support\w* (?:image|vision)|support (?:image|vision) input|not a multimodal|at most 0 image|"
    r"unknown variant .{0,3}image_url|must be a string",
    re.IGNORECASE,
)


def takes_no_images(status: int, said: str) -> bool:
    """Whether an endpoint's error about a request with images says that its model takes no images."""
    return status in (400, 404, 415, 422, 500, 501) and _NO_IMAGES.search(said) is not None


_NO_TOOLS = re.compile(
    r"support\w* (?:for )?(?:the )?(?:use of )?[`'\"]?(?:tools?\b|tool[_ ](?:use|calls?|calling|choice)|function)|"
    r"(?:tools?|tool[_ ](?:use|calls?|calling|choice)|function[_ ]call\w*)\b[`'\"]?[^.]{0,40}?"
    r"(?:(?:not|un) ?support|requires? --|not (?:allowed|enabled|available|permitted))|"
    r"(?:unrecogni[sz]ed|unknown|unexpected|extra|unsupported)[^.]{0,60}\btools\b",
    re.IGNORECASE,
)


def takes_no_tools(status: int, said: str) -> bool:
    """Whether an endpoint's error about a request with tools says that its model takes no tools."""
    return status in (400, 404, 422, 500, 501) and _NO_TOOLS.search(said) is not None


def quota_used_up(status: int, said: str) -> str | None:
    """Return a sentence for the user if a quota or the money is used up, so that waiting does not help; else None."""
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
    """Return the seconds that an endpoint asks to wait, by its headers or else its words; None if it does not ask."""
    lowered = {name.lower(): value for name, value in headers.items()}
    server_time = _date(lowered.get("date"))
    if (milliseconds := read_wait(lowered.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if (asked := read_wait(lowered.get("retry-after"), server_time)) is not None:
        return asked
    text = said.lower()
    if found := _IN_WORDS.search(text):
        return read_wait(found[1] or found[2])
    # OpenAI sends the time until each of its limits is whole again. A limit that was met has nothing left.
    resets, met = [], []
    for name, value in lowered.items():
        if "ratelimit" in name and "reset" in name and (until := read_wait(value, server_time)) is not None:
            resets.append(until)
            if lowered.get(name.replace("reset", "remaining"), "").strip() in ("0", "0.0"):
                met.append(until)
    if resets:
        return max(met) if met else min(resets)
    return read_wait(inside[1], server_time) if (inside := _RESET_INSIDE.search(text)) else None


def read_wait(value: str | None, now: float | None = None) -> float | None:
    """Read a wait, in seconds, from a number, a time since 1970 (in seconds or milliseconds), a duration such as
    ``1m30s``, or a date; None for anything else. ``now`` is the endpoint's clock, as the local clock may be wrong."""
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
    """Return the seconds since 1970 for a date in the form of HTTP or ISO 8601; None for any other text."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(text.strip()) if text else None
            if date is not None:
                return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
    return None
