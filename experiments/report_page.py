"""A report as one HTML file: its template with style and scripts inside, and a policy that allows nothing else.

The page forbids itself all but its own style and script by a content security policy with their hashes, so text from
the data stays text even in a browser that is led astray.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..models.budget import count
from .report_scores import figure
from .report_view import clip
from .report_words import NONE, interval, money, number, p_value, percent, signed

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
    for write in (number, signed, interval, money, p_value, percent, count, clip, figure):
        environment.filters[write.__name__] = write
    environment.globals["NONE"] = NONE
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
