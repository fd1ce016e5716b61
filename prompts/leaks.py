"""Copied example text: a rule or an edit that quotes an example teaches that example, not the task."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

RUN = 5
"""So many words in a row, the same as in an example, count as copied."""
_WORD = re.compile(r"\w+")
_SPECIAL = re.compile(r"\b(?:[A-Z]\w+|\d[\w.,]*\w|\d)")


def copied_words(text: str, sources: Iterable[str], run: int = RUN) -> str | None:
    """The first ``run`` words in a row that ``text`` shares with a source; None where there are none."""
    words = [word.lower() for word in _WORD.findall(text)]
    wanted = {tuple(words[start : start + run]) for start in range(len(words) - run + 1)}
    if not wanted:
        return None
    for source in sources:
        others = [word.lower() for word in _WORD.findall(source)]
        for start in range(len(others) - run + 1):
            if (found := tuple(others[start : start + run])) in wanted:
                return " ".join(found)
    return None


def copied_names(text: str, sources: Iterable[str]) -> str | None:
    """The first number or capitalised word, past the beginning of a sentence, that ``text`` has from a source."""
    special = [match[0] for match in _SPECIAL.finditer(text) if match.start() > 0]
    there = {word for source in sources for word in _SPECIAL.findall(source)}
    return next((word for word in special if word in there), None)


def topic_words(text: str, source: str, allowed: str) -> list[str]:
    """Words of ``text`` that are about the source's own topic: they recur there and ``allowed`` does not have them."""
    counts = Counter(_stem(word) for word in _WORD.findall(source.lower()))
    known = {_stem(word) for word in _WORD.findall(allowed.lower())}
    words = [word for word in _WORD.findall(text.lower()) if len(word) > 3]
    return [word for word in words if counts[_stem(word)] > 1 and _stem(word) not in known]


def _stem(word: str) -> str:
    return word.removesuffix("'s").removesuffix("s")
