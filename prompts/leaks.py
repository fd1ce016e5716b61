"""Copied example text: a rule or an edit that quotes an example teaches that example, not the task."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

RUN = 6
"""So many words in a row, the same as in an example, count as copied."""
_WORD = re.compile(r"\w+")


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
