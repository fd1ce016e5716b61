"""P(yes), and scores on a scale, from log-probabilities: all spellings of an answer are merged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from math import exp
from typing import Generic, TypeVar

from .base import TokenProbabilities

Value = TypeVar("Value")

_YES = frozenset({"yes", "true", "是"})
_NO = frozenset({"no", "false", "否"})
_STRIP = " \t\r\n\"'`*_.,:;!?()[]{}<>#-▁Ġ“”‘’。，"
_DIGIT = re.compile(r"""[\s"'`*_(\[{<:▁Ġ“‘]*(10|[0-9])[\s"'`*_.,;:!)\]}>”’。，]*""")
"""A token that is one digit or 10 and nothing else: 4, " 4" and "**4**", but not -4, .4 or 42."""
_LIKELIEST = 5
_OPENING = frozenset("\"'“‘«")
LEAST_MASS = 0.1
"""A one-token reply whose answers together are less likely than this is no answer."""
UNTOLD = 0.01
"""Share of the mass of all numbers that may be one of two, a hundredth of the scale at most; and by how much P(yes) may be higher."""
_BEGUN = frozenset({"y", "ye"})
"""How a yes of several tokens begins: there are vocabularies with NO and without YES."""
_JSON_PART = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+')
_BOTH = re.compile(r"(?:yes|no)\W*(?:and|or|/|&|\\)\W*(?:yes|no)\b", re.IGNORECASE)


class _Memo(dict[str, Value], Generic[Value]):
    """What each token says, worked out when it is first met; a dictionary, because every alternative is looked up."""

    def __init__(self, work: Callable[[str], Value]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, token: str) -> Value:
        value = self._work(token)
        if len(self) < 100_000:
            self[token] = value
        return value


def _spell(token: str) -> bool | None:
    word = token.strip(_STRIP).lower()
    return True if word in _YES else False if word in _NO else None


def _read_digit(token: str) -> int | None:
    match = _DIGIT.fullmatch(token)
    return int(match[1]) if match else None


def _is_answer(token: str) -> bool:
    return _SPELLINGS[token] is not None or _DIGITS[token] is not None or _says_none(token) or _BEGINNINGS[token]


def _says_none(words: str) -> bool:
    return words.strip(_STRIP).lower() == "none"


_SPELLINGS = _Memo(_spell)
_DIGITS = _Memo(_read_digit)
_ANSWERS = _Memo(_is_answer)
_BEGINNINGS = _Memo(lambda token: token.strip(_STRIP).lower() in _BEGUN)


def spelling(token: str) -> bool | None:
    """True for a spelling of yes, False for a spelling of no, None for anything else."""
    return _SPELLINGS[token]


def digit(token: str) -> int | None:
    """The number that a token of one digit or 10 spells, with or without marks and blanks; None for any other."""
    return _DIGITS[token]


def worth_keeping(alternatives: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """What a verdict is computed from, and what it can be checked against, of a token's alternatives, likeliest first.

    All spellings of yes, no and none, beginnings of yes, all digits and the five likeliest; nothing where no alternative is any of the former.
    P(yes) and scores are exactly the same, from about half of the stored bytes for one token and a tenth for an answer
    with an explanation.
    """
    spelt = [_ANSWERS[token] for token, _ in alternatives]
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


def p_quoted(token: str, alternatives: Sequence[tuple[str, float]], text: str) -> float | None:
    """1 - P(none) at the first token of an answer that is none, or words of a text; None where it is neither.

    Args:
        token: The token that was written.
        alternatives: What might have been written there, with log-probabilities, as far as :func:`worth_keeping`.
        text: What is quoted.
    """
    none = usable = 0.0
    for word, logprob in alternatives or ((token, 0.0),):
        if says_nothing_to_quote(word):
            none += exp(logprob)
            usable += exp(logprob)
        elif usable < LEAST_MASS and (_SPELLINGS[word] or stands_in(word, text)):  # more is not asked of it
            usable += exp(logprob)
    return None if usable < LEAST_MASS else 1.0 - min(none, 1.0)


def says_nothing_to_quote(words: str) -> bool:
    """Whether an answer is no, or "none"."""
    return _SPELLINGS[words] is False or _says_none(words)


def stands_in(words: str, text: str) -> bool:
    """Whether words, or the beginning of a word, are in a text, but for marks around them, blanks and case.

    A mark that opens a quotation is the beginning of one; blanks and other marks alone are nothing.
    """
    bare = " ".join(words.strip(_STRIP).lower().split())
    return bare in " ".join(text.lower().split()) if bare else not _OPENING.isdisjoint(words)


def p_yes_at(alternatives: Iterable[tuple[str, float]]) -> float | None:
    """P(yes) / (P(yes) + P(no)); None where neither has any, or where what may yet become yes would make more than :data:`UNTOLD` of a difference."""
    alternatives = list(alternatives)
    return p_yes_of(*yes_no_mass(alternatives), alternatives)


def p_yes_of(yes: float, no: float, alternatives: Iterable[tuple[str, float]]) -> float | None:
    """The same where the masses of yes and no among the alternatives are known."""
    if not yes + no:
        return None
    begun = sum(exp(logprob) for token, logprob in alternatives if _BEGINNINGS[token])
    p_yes = yes / (yes + no)
    return p_yes if (yes + begun) / (yes + no + begun) - p_yes <= UNTOLD else None


def score_masses(alternatives: Iterable[tuple[str, float]], low: int, high: int) -> list[float]:
    """Summed probability of each whole number from ``low`` to ``high`` among a token's alternatives.

    Args:
        alternatives: Tokens with their log-probabilities.
        low: Lowest number, at least 0.
        high: Highest number, at most 10; for 10, which may be two tokens, see :func:`number_masses`.
    """
    masses = [0.0] * (high - low + 1)
    for token, logprob in alternatives:
        number = _DIGITS[token]
        if number is not None and low <= number <= high:
            masses[number - low] += exp(logprob)
    return masses


def number_masses(logprobs: Sequence[TokenProbabilities], low: int, high: int) -> list[float]:
    """Summed probability of each whole number from ``low``, 0 or 1, to ``high``, at most 10, as the first word of an answer.

    Where 10 is no token of its own but 1 and 0, the mass of 1 is shared between the two by the likelihood of 0 after a
    1 that was said. A 1 after which nothing came is 1.

    Raises:
        ValueError: Another number was said, and the mass of 1, which may be that of 10, is more than :data:`UNTOLD`.
    """
    place = next((place for place, (token, _) in enumerate(logprobs) if token.strip(_STRIP)), len(logprobs))
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
            f"1 was likely too ({one / sum(masses):.0%}), and whether it would have become 10 cannot be told; take a scale up "
            "to 9"
        )
    return masses


def expected_score(masses: Sequence[float]) -> float:
    """The expected number, Σ k·P(k) over the numbers of the scale, mapped to [0, 1] (LMUnit §3.3, eq. 2).

    Args:
        masses: Probability of each number from the lowest to the highest, two or more, with a sum above 0. They are
            scaled to sum 1: what the model would have said beside the scale counts for none of the numbers.
    """
    mean = sum(place * mass for place, mass in enumerate(masses)) / sum(masses)
    return min(mean / (len(masses) - 1), 1.0)  # rounding may go beyond 1


def first_word(logprobs: Iterable[TokenProbabilities]) -> TokenProbabilities | None:
    """The first token that is more than blanks and marks; None where there is none."""
    return next((each for each in logprobs if each[0].strip(_STRIP)), None)


def p_yes_of_field(logprobs: Sequence[TokenProbabilities], field: str) -> float | None:
    """P(yes) at the value of ``"field": "yes"`` in a JSON answer; None where it cannot be found.

    The value may also be an object that has the answer as its field "answer".
    """
    return p_yes_at(alternatives_of_field(logprobs, field))


def alternatives_of_field(logprobs: Sequence[TokenProbabilities], field: str) -> Sequence[tuple[str, float]]:
    """What could have stood at the value of a field of a JSON answer; nothing where it cannot be found.

    The generated tokens are joined to find where the value begins; the token that covers its first letter is read.
    """
    place = _value_place("".join(token for token, _ in logprobs), field)
    if place is None:
        return ()
    end = 0
    for token, alternatives in logprobs:
        end += len(token)
        if place < end:
            return alternatives
    return ()


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
