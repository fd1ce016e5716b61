"""P(yes) from log-probabilities: all spellings of yes and of no are merged."""

from __future__ import annotations

import re
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .base import TokenProbabilities

_YES = frozenset({"yes", "true", "是"})
_NO = frozenset({"no", "false", "否"})
_STRIP = " \t\r\n\"'`*_.,:;!?()[]{}<>#-▁Ġ“”‘’。，"
_SPELLINGS: dict[str, bool | None] = {}


def spelling(token: str) -> bool | None:
    """True for a spelling of yes, False for a spelling of no, None for anything else."""
    try:
        return _SPELLINGS[token]
    except KeyError:
        word = token.strip(_STRIP).lower()
        value = True if word in _YES else False if word in _NO else None
        if len(_SPELLINGS) < 100_000:
            _SPELLINGS[token] = value
        return value


def yes_no_mass(alternatives: Iterable[tuple[str, float]]) -> tuple[float, float]:
    """Summed probability of the spellings of yes and of no among a token's alternatives."""
    yes = no = 0.0
    for token, logprob in alternatives:
        kind = spelling(token)
        if kind is True:
            yes += exp(logprob)
        elif kind is False:
            no += exp(logprob)
    return yes, no


def p_yes_at(alternatives: Iterable[tuple[str, float]], *, least_mass: float = 0.0) -> float | None:
    """P(yes) / (P(yes) + P(no)); None where both together have no more than ``least_mass``."""
    yes, no = yes_no_mass(alternatives)
    return yes / (yes + no) if yes + no > least_mass else None


def p_yes_of_field(logprobs: Sequence[TokenProbabilities], field: str) -> float | None:
    """P(yes) at the value of ``"field": "yes"`` in a JSON answer; None where it cannot be found.

    The generated tokens are joined to find where the value begins; the token that covers its first letter is read.
    """
    text = ""
    starts = []
    for token, _ in logprobs:
        starts.append(len(text))
        text += token
    match = re.search(rf'"{re.escape(field)}"\s*:\s*(?:\{{\s*"answer"\s*:\s*)?"?\s*(?=[A-Za-z])', text)
    if not match:
        return None
    for (_, alternatives), start, end in zip(logprobs, starts, [*starts[1:], len(text)], strict=True):
        if start <= match.end() < end:
            return p_yes_at(alternatives)
    return None


def read_yes_no(text: str) -> bool | None:
    """The answer that a short reply begins with; None where it does not begin with yes or no."""
    words = text.strip(_STRIP).split(maxsplit=1)
    return spelling(words[0]) if words else None
