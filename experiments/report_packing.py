"""Data for a page's own scripts: verdicts a byte each, scores in thousandths, and JSON that cannot end its element."""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from typing import Any

from markupsafe import Markup

MISSING = 255
"""Stands for a missing P(yes) in the packed numbers; the others are P(yes) times 200."""
CLIPPED = 1_200
"""Characters of each text in a table of examples."""


def clipped(text: str) -> str:
    """The beginning of a text, with an ellipsis where something is left out."""
    return text[:CLIPPED] + ("\N{HORIZONTAL ELLIPSIS}" if len(text) > CLIPPED else "")


def probability_byte(p_yes: float | None) -> int:
    """P(yes) in a byte, to half a percent."""
    return MISSING if p_yes is None else round(200 * min(max(p_yes, 0.0), 1.0))


def thousandth(value: float | None) -> int | None:
    """A number in thousandths."""
    return None if value is None else round(1000 * value)


def packed(values: array[int]) -> str:
    """Numbers in Base64, the smallest byte first."""
    if values.itemsize > 1:
        from sys import byteorder

        if byteorder == "big":
            values.byteswap()
    return b64encode(values.tobytes()).decode()


def packed_places(places: array[int], most: int) -> str:
    """Places in a list of ``most`` entries, in two bytes each where that is enough."""
    return packed(array("H", places) if most < 2**16 else places)


def json_data(rows: Any) -> Markup:
    """JSON for a script element; there "<" alone can end it or begin another, so it is written as an escape."""
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))
