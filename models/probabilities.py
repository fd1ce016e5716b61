"""P(yes) from log-probabilities: all spellings of yes and of no are merged."""

from __future__ import annotations

import json
import re
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .base import TokenProbabilities

_YES = frozenset({"yes", "true", "是"})
_NO = frozenset({"no", "false", "否"})
_STRIP = " \t\r\n\"'`*_.,:;!?()[]{}<>#-▁Ġ“”‘’。，"
_LIKELIEST = 5
_JSON_PART = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+')
_BOTH = re.compile(r"(?:yes|no)\W*(?:and|or|/|&|\\)\W*(?:yes|no)\b", re.IGNORECASE)


class _Spellings(dict[str, bool | None]):
    """What each token spells, worked out when it is first met; a dictionary, because every alternative is looked up."""

    def __missing__(self, token: str) -> bool | None:
        word = token.strip(_STRIP).lower()
        value = True if word in _YES else False if word in _NO else None
        if len(self) < 100_000:
            self[token] = value
        return value


_SPELLINGS = _Spellings()


def spelling(token: str) -> bool | None:
    """True for a spelling of yes, False for a spelling of no, None for anything else."""
    return _SPELLINGS[token]


def worth_keeping(alternatives: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """What p_yes is computed from, and what it can be checked against, of a token's alternatives, likeliest first.

    All spellings of yes and no and the five likeliest; nothing where no alternative spells either. P(yes) is exactly
    the same, from about half of the stored bytes for one token and a tenth for an answer with an explanation.
    """
    spelt = [_SPELLINGS[token] is not None for token, _ in alternatives]
    if not any(spelt):
        return ()
    return [pair for place, pair in enumerate(alternatives) if spelt[place] or place < _LIKELIEST]


def yes_no_mass(alternatives: Iterable[tuple[str, float]]) -> tuple[float, float]:
    """Summed probability of the spellings of yes and of no among a token's alternatives."""
    yes = no = 0.0
    for token, logprob in alternatives:
        kind = _SPELLINGS[token]
        if kind is None:
            continue
        if kind:
            yes += exp(logprob)
        else:
            no += exp(logprob)
    return yes, no


def p_yes_at(alternatives: Iterable[tuple[str, float]], *, least_mass: float = 0.0) -> float | None:
    """P(yes) / (P(yes) + P(no)); None where both together have no more than ``least_mass``."""
    yes, no = yes_no_mass(alternatives)
    return yes / (yes + no) if yes + no > least_mass else None


def p_yes_of_field(logprobs: Sequence[TokenProbabilities], field: str) -> float | None:
    """P(yes) at the value of ``"field": "yes"`` in a JSON answer; None where it cannot be found.

    The value may also be an object that has the answer as its field "answer". The generated tokens are joined to find
    where the value begins; the token that covers its first letter is read.
    """
    place = _value_place("".join(token for token, _ in logprobs), field)
    if place is None:
        return None
    end = 0
    for token, alternatives in logprobs:
        end += len(token)
        if place < end:
            return p_yes_at(alternatives)
    return None


def _value_place(text: str, field: str) -> int | None:
    """Where the first letter of a field's value stands in a JSON object, that of its last occurrence as in a parser."""
    path: list[str | None] = []
    key: str | None = None
    place = None
    for match in _JSON_PART.finditer(text):
        part = match[0]
        if part in "{[":
            path.append(key)
            key = None
        elif part in "}]":
            path[-1:] = []
        elif match["key"]:
            key = _unquoted(match["key"])
        elif [*path[1:], key] in ([field], [field, "answer"]) and path:
            place = match.start() + len(part) - len(part.lstrip(_STRIP))
            key = None
    return place


def _unquoted(string: str) -> str | None:
    try:
        return str(json.loads(string))
    except ValueError:
        return None


def read_yes_no(text: str) -> bool | None:
    """The answer that a short reply begins with; None where it begins with neither yes nor no, or with both."""
    if _BOTH.match(text.strip(_STRIP)):
        return None
    words = text.strip(_STRIP).split(maxsplit=1)
    return spelling(words[0]) if words else None
