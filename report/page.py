"""A report as one HTML file: its template with style and scripts inside, and a policy that allows nothing else.

The page forbids itself all but its own style and script by a content security policy with their hashes, so text from
the data stays text even in a browser that is led astray.
"""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from .. import __version__
from ..evaluation.pass_fail import confusion_text
from ..models.direct import shown_address
from ..prompts.formatting import NONE, Figure, count, interval, money, number, p_value, percent, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment


TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("report_charts.css", "report.css", "report_print.css")


def render_page(template: str, scripts: Sequence[str], **context: Any) -> str:
    """A page as HTML.

    Args:
        template: Name of a template that extends ``report_base.html.j2``.
        scripts: Names of the scripts beside ``report.js``, in order.
        context: What the template speaks of.
    """
    style, script = (
        "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
        for names in (STYLES, ("report.js", *scripts))
    )
    html = (
        _environment()
        .get_template(template)
        .render(
            version=__version__,
            style=style,
            script=script,
            policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}",
            **context,
        )
    )
    return html.encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for write in (number, signed, interval, money, p_value, count, clip, confusion_text):
        environment.filters[write.__name__] = write
    environment.filters["percent"] = lambda *given: percent(*given).replace(" ", "\u00a0")
    environment.globals["NONE"] = NONE
    environment.tests["figure_cell"] = lambda each: isinstance(each, Figure)
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


MISSING = 255
"""Stands for a missing P(yes) in the packed numbers; the others are P(yes) times 200."""
CLIPPED = 1_200
"""Characters of each text in a table of examples."""


def clipped(text: str) -> str:
    """The beginning of a text, with an ellipsis where something is left out."""
    return text[:CLIPPED] + ("\N{HORIZONTAL ELLIPSIS}" if len(text) > CLIPPED else "")


HALF = 100
"""From here on such a number is a yes."""


def probability_byte(p_yes: float | None, answer: bool | None) -> int:
    """P(yes) in a byte, to half a percent; rounding never makes another answer of it."""
    if p_yes is None:
        return MISSING
    nearest = round(200 * min(max(p_yes, 0.0), 1.0))
    return min(nearest, HALF - 1) if p_yes < 0.5 or (p_yes == 0.5 and answer is False) else nearest


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


def duration(first: str, last: str) -> str | None:
    """The time between two instants in ISO format; None where one is unreadable."""
    try:
        seconds = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    except (ValueError, TypeError):
        return None
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


SHOWN_CHARACTERS = 6_000
"""Of a text behind a disagreement; the rest is in the run's inputs."""


def clip(text: str) -> tuple[str, int]:
    """The beginning of a text and the number of characters left out."""
    return text[:SHOWN_CHARACTERS], max(0, len(text) - SHOWN_CHARACTERS)


def public_text(name: str, value: Any) -> str:
    """A setting as text, without what may be secret in an address."""
    text = _text(value)
    if name == "checker":
        return file_name(text)
    return shown_address(text) if name == "api_base" else text


def file_name(checker: str) -> str:
    """A checker's name without the directory that its file is in."""
    return checker.replace("\\", "/").rpartition("/")[2]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(_text(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
