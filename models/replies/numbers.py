"""Numbers in a reply, said or from log-probabilities, and the alternatives of a token that are worth keeping."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from math import exp

from ..base import TokenProbabilities
from .answer_words import ANYWHERE
from .yes_no import BARE, LEAST_MASS, UNTOLD, Memo, token_of_field

_DIGIT = re.compile(r"""[\s"'`*_(\[{<:▁Ġ“‘]*(10|[0-9])[\s"'`*_.,;:!)\]}>”’。，]*""")
"""A token that is one digit or 10 and nothing else: 4, " 4" and "**4**", but not -4, .4 or 42."""
_LIKELIEST = 5


def _read_digit(token: str) -> int | None:
    match = _DIGIT.fullmatch(token)
    return int(match[1]) if match else None


def _is_answer(token: str) -> bool:
    bare = BARE[token]
    return bare in ANYWHERE or bare in ("none", "y", "ye") or _DIGITS[token] is not None


_DIGITS = Memo(_read_digit)
_ANSWERS = Memo(_is_answer)


def digit(token: str) -> int | None:
    """The number from 0 to 10 that a token spells, with or without marks; None for any other token."""
    return _DIGITS[token]


def number_said(text: str) -> int | None:
    """The number, of one digit or 10, that a reply begins with, with or without marks; None for any other reply."""
    words = text.split(maxsplit=1)
    return _DIGITS[words[0]] if words else None


def worth_keeping(
    alternatives: Sequence[tuple[str, float]], *, short: bool = False, asked: Collection[str] = ()
) -> Sequence[tuple[str, float]]:
    """Alternatives of a token that a verdict is computed from, and checked against, likeliest first.

    They are all words for yes and no, none, beginnings of yes, all digits and the five likeliest; nothing where there
    is none of the former. P(yes) and scores stay exactly the same, from about half of the stored bytes for one token
    and a tenth for an answer with an explanation. In a ``short`` reply each token may begin a word for yes or no, so
    the five likeliest are always kept; so is what begins one of the words that were ``asked`` for.
    """
    spelt = [_ANSWERS[token] for token, _ in alternatives]
    if asked:
        begins = [
            bool(BARE[token]) and any(word.startswith(BARE[token]) for word in asked) for token, _ in alternatives
        ]
        spelt = [known or begun for known, begun in zip(spelt, begins, strict=True)]
    if not any(spelt):
        return alternatives[:_LIKELIEST] if short else ()
    return [pair for place, pair in enumerate(alternatives) if spelt[place] or place < _LIKELIEST]


def score_masses(alternatives: Iterable[tuple[str, float]], low: int, high: int) -> list[float]:
    """Summed probability of each whole number from ``low`` (0 or more) to ``high`` (10 at most) among a token's
    alternatives.

    For 10, which may be two tokens, see :func:`number_masses`.
    """
    masses = [0.0] * (high - low + 1)
    for token, logprob in alternatives:
        number = _DIGITS[token]
        if number is not None and low <= number <= high:
            masses[number - low] += exp(logprob)
    return masses


def number_masses(logprobs: Sequence[TokenProbabilities], low: int, high: int) -> list[float]:
    """Summed probability of each whole number as the first word of an answer, from ``low``, 0 or 1, to ``high``, at
    most 10.

    Where 10 is the tokens 1 and 0, the mass of 1 is shared between the two: by the likelihood of 0 after a 1 that was
    said. A 1 without a following token is 1. Raises ValueError where another number was said and the mass of 1, which
    may belong to 10, is more than :data:`UNTOLD`.
    """
    place = next((place for place, (token, _) in enumerate(logprobs) if BARE[token]), len(logprobs))
    token, alternatives = logprobs[place] if place < len(logprobs) else ("", ())
    masses = score_masses(alternatives, low, high)
    if high < 10 or masses[10 - low]:
        return masses
    one = masses[1 - low]
    if _DIGITS[token] == 1:
        after = logprobs[place + 1][1] if place + 1 < len(logprobs) else ()
        zero = sum(exp(logprob) for following, logprob in after if following[:1] == "0" and _DIGITS[following] == 0)
        masses[10 - low], masses[1 - low] = one * zero, one * (1 - min(zero, 1.0))
    elif one > UNTOLD * sum(masses):
        raise ValueError(
            f"1 was likely too ({one / sum(masses):.0%}), and whether it would have become 10 cannot be told; take a "
            "scale up to 9"
        )
    return masses


def scale_of(levels: int) -> tuple[int, int]:
    """Lowest and highest number of a scale with so many levels, 2 to 10: 1 to ``levels``, and 0 to 9 for ten levels.

    Many tokenizers write 10 as two tokens, so that its probability cannot be told from that of 1 where another number
    was said. Every number from 0 to 9 is one token.
    """
    return (0, 9) if levels == 10 else (1, levels)


def expected_score(masses: Sequence[float]) -> float:
    """The expected number, Σ k·P(k) over the numbers of the scale, mapped to [0, 1] (LMUnit §3.3, eq. 2).

    ``masses`` are two or more with a sum above 0. They are scaled to sum 1: what the model would have said beside the
    scale counts for none of the numbers.
    """
    mean = sum(place * mass for place, mass in enumerate(masses)) / sum(masses)
    return min(mean / (len(masses) - 1), 1.0)  # rounding may go beyond 1


def expected_number(
    logprobs: Sequence[TokenProbabilities], low: int, high: int, field: str | None = None
) -> float | None:
    """The expected number of a scale, mapped to [0, 1], at the first word of a reply or the value of a JSON ``field``.

    None where no number of the scale was likely there.
    """
    if field is None:
        masses = number_masses(logprobs, low, high)
    else:
        masses = score_masses(token_of_field(logprobs, field)[1], low, high)
    return None if sum(masses) < LEAST_MASS else expected_score(masses)
