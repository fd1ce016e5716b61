"""Stated probabilities: each answer comes with a number from 0 to 100, the probability that the right answer is yes.

A model that thinks before it answers often gives no log-probabilities, or some that are always near 0 or 1. The number
is asked for in the same reply as the answer, so it costs no further call. A reply such as ``{"answer": "yes",
"probability": 85}`` gives P(yes) = .85.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

PROBABILITY = "probability"
"""The field of a reply that holds the number."""
NUMBER = {"type": "integer", "minimum": 0, "maximum": 100}
"""JSON schema of the number."""
FIRST, NEAR = 20, 0.01
"""Verdicts by whose log-probabilities a model that thinks is tried; and how near 0 or 1 all of them are where they tell
nothing."""
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*")


def stated_p_yes(fields: Mapping[str, Any], answer: bool, words: tuple[str, str] = ("yes", "no")) -> float:
    """P(yes) in [0, 1], as a reply with an answer states it; 50 goes with either answer. ``words`` are those for yes
    and no.

    Raises:
        ValueError: There is no number from 0 to 100, or it contradicts the answer. The message is the problem.
    """
    value = fields.get(PROBABILITY)
    if isinstance(value, str) and (match := _WRITTEN.fullmatch(value)):
        value = float(match[1])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100:
        raise ValueError(f'"{PROBABILITY}" is no number from 0 to 100')
    if 0 < value < 1:  # a share of 1, or less than one percent: both are said so
        raise ValueError(f'"{PROBABILITY}" is {value:g}, which is no whole number from 0 to 100')
    if (value < 50) if answer else (value > 50):
        said = words[0] if answer else words[1]
        raise ValueError(f'"answer" is "{said}", but the probability that the right answer is {words[0]} is {value:g}')
    return value / 100


def tell_apart(p_yes: Iterable[float]) -> bool:
    """Whether probabilities of yes say more than the answers do: at least one is further than .01 from 0 and from 1."""
    return any(NEAR < each < 1 - NEAR for each in p_yes)
