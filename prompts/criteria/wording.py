"""Whether a text asks something that yes or no answers."""

from __future__ import annotations

import re

_MARKS = "?;\N{FULLWIDTH QUESTION MARK}\N{ARABIC QUESTION MARK}\N{GREEK QUESTION MARK}"
"""Question marks; the Greek one is often typed as a semicolon."""
_ENDS = re.compile(r"(?:\N{HIRAGANA LETTER KA}|\u5417|\u55ce)\W*$")
"""Endings of questions in Japanese and Chinese, which may go without a mark."""
_OPEN = re.compile(r"(?:how|what|which|who|whom|whose|why)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"[,:;]\s*(?:and\s+)?(?:am|is|are|was|were|do|does|did|has|have|had|can|could|may|must|shall|should|will|would)\b",
    re.IGNORECASE,
)
"""A yes/no question that follows a clause: "Whatever is asked, does the reply stay polite?"."""


def asks_yes_or_no(text: str) -> bool:
    """Whether a text is a question that yes or no answers.

    An order ("Rate it from 1 to 5.") and a statement end without a question mark. "How", "what" and the like ask for
    more than yes or no; they are known in English alone.
    """
    if not any(mark in text for mark in _MARKS) and not _ENDS.search(text):
        return False
    return not _OPEN.match(text.strip(" \t\n\"'*_-")) or _YES_NO.search(text) is not None
