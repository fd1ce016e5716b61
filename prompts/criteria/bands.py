"""Numbers in words: how long an output may be, as ``at most 8 words``.

An exported file has this file in it: it imports nothing but the standard library.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LENGTHS = "a number of words, characters, sentences, lines or paragraphs, e.g. at most 8 words or 5 to 40 words"
"""How a length is written."""
HOW_MANY = r"(?:(at most|at least|exactly)\s+)?(\d{1,9})(?:\s*(?:-|\u2013|to)\s*(\d{1,9}))?\s+"
_LENGTH = re.compile(HOW_MANY + r"(character|word|sentence|line|paragraph)s?", re.IGNORECASE)


def band_of(form: re.Pattern[str], wanted: str, text: str) -> tuple[str | None, int, int | None]:
    """Unit, least and most of a number in words. Raises ValueError, with what is ``wanted``, where the text has another
    form."""
    found = form.fullmatch(text.strip())
    bound, low, high, unit = found.groups() if found else (None, "0", None, None)
    if found is None or (bound and high):
        raise ValueError(f"{wanted} is needed, not '{text}'")
    least, most = int(low), int(high or low)
    if least > most:
        raise ValueError(f"the smaller number comes first, not '{text}'")
    word = (bound or "").lower()
    return unit, 0 if word == "at most" else least, None if word == "at least" else most


class LengthBand(NamedTuple):
    """How long an output may be."""

    unit: str
    """``character``, ``word``, ``sentence``, ``line`` or ``paragraph``."""
    least: int
    most: int | None
    """None: any number."""

    @classmethod
    def of(cls, text: str) -> LengthBand:
        """Read ``at most 8 words``, ``at least 2 sentences``, ``5 to 40 words`` or ``3 lines``.

        Raises:
            ValueError: It is none of these, or its ends are the wrong way round.
        """
        unit, least, most = band_of(_LENGTH, LENGTHS, text)
        return cls(str(unit).lower(), least, most)
