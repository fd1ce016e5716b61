"""Render the pages of reports as single HTML files.

A content security policy allows only the page's own style and script, by their hashes. Text from the data can therefore
never run as code. The page of a result begins with a first screen: the finding, its figures and the cautions. The
tables of the result's View follow.
"""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from .. import __version__
from ..evaluation.pass_fail import confusion_text
from ..evaluation.view import Rows, View, columns
from ..memory.decision import Choice
from ..models.budget import price_said
from ..models.direct import shown_address
from ..prompts.conversations.chat import pictures_of
from ..prompts.formatting import NONE, Figure, count, interval, money, number, p_value, percent, signed
from .charts import Scale

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("report_charts.css", "report.css", "report_print.css")


def render_page(template: str, scripts: Sequence[str], **context: Any) -> str:
    """Render a template with the styles and its scripts as one HTML page."""
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
    # Halves of surrogate pairs cannot be written to a file.
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
    environment.filters["pictures"] = pictures_of
    environment.filters["percent"] = lambda *given: percent(*given).replace(" ", "\u00a0")
    environment.globals["NONE"] = NONE
    environment.tests["figure_cell"] = lambda each: isinstance(each, Figure)
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


MISSING = 255
"""Byte for a missing P(yes). All other bytes are P(yes) times 200."""
MOST_PICTURES = 20_000_000
"""Most characters of image data in a table."""
CLIPPED = 1_200
"""Most characters of each text in a table of examples."""


def clipped(text: str) -> str:
    """Cut a text to its beginning, with an ellipsis if something is left out."""
    return text[:CLIPPED] + ("\N{HORIZONTAL ELLIPSIS}" if len(text) > CLIPPED else "")


class PictureRoom:
    """Space for the images in a page's table. A note stands for each image that does not fit any more."""

    def __init__(self) -> None:
        """Start with all of the space free."""
        self._left = MOST_PICTURES

    def beside(self, text: str) -> list[list[tuple[str, str]]]:
        """Return a list that holds the list of a text's images; an empty list if the text has none."""
        found = []
        for kind, value in pictures_of(text):
            fits = kind != "image" or len(value) <= self._left
            self._left -= len(value) if kind == "image" and fits else 0
            found.append((kind, value) if fits else ("note", "An image is in the data; this page has many."))
        return [found] if found else []


HALF = 100
"""Smallest byte that means yes."""


def probability_byte(p_yes: float | None, answer: bool | None) -> int:
    """Return P(yes) as a byte, to half a percent. Rounding never turns a no into a yes."""
    if p_yes is None:
        return MISSING
    nearest = round(200 * min(max(p_yes, 0.0), 1.0))
    return min(nearest, HALF - 1) if p_yes < 0.5 or (p_yes == 0.5 and answer is False) else nearest


def thousandth(value: float | None) -> int | None:
    """Round a number to thousandths, as an integer."""
    return None if value is None else round(1000 * value)


def packed(values: array[int]) -> str:
    """Encode numbers in Base64, least significant byte first."""
    if values.itemsize > 1:
        from sys import byteorder

        if byteorder == "big":
            values.byteswap()
    return b64encode(values.tobytes()).decode()


def packed_places(places: array[int], most: int) -> str:
    """Encode places in a list of ``most`` entries, with two bytes each if that is enough."""
    return packed(array("H", places) if most < 2**16 else places)


def json_data(rows: Any) -> Markup:
    """Return JSON for a script element. "<" could end the element or begin another, so it is escaped."""
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def duration(first: str, last: str) -> str | None:
    """Return the time between two ISO times in words; None if one of them is unreadable."""
    try:
        seconds = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    except (ValueError, TypeError):
        return None
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


SHOWN_CHARACTERS = 6_000
"""Most characters of a text behind a disagreement; the whole text is in the run's inputs."""


def clip(text: str) -> tuple[str, int]:
    """Return the beginning of a text and the number of characters left out."""
    return text[:SHOWN_CHARACTERS], max(0, len(text) - SHOWN_CHARACTERS)


def public_text(name: str, value: Any) -> str:
    """Return a setting as text, without secrets in an address and without a checker's directory."""
    text = _text(value)
    if name == "checker":
        return file_name(text)
    return shown_address(text) if name == "api_base" else text


def file_name(checker: str) -> str:
    """Return a checker's name without the directory of its file."""
    return checker.replace("\\", "/").rpartition("/")[2]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(_text(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Tile:
    """One figure with its label."""

    label: str
    figure: Figure | str
    """A figure, drawn with its interval; or a text."""
    sub: str = ""
    before: Figure | None = None

    @property
    def scale(self) -> Scale | None:
        """Axis of the figure's interval; None if there is no interval."""
        if isinstance(self.figure, str) or self.figure.span() is None:
            return None
        return Scale.over([self.figure.value, self.figure.low, self.figure.high])


def cost_tile(data: Mapping[str, Any]) -> Tile:
    """The calls, tokens and money of a command."""
    spent = price_said(data)
    reused = f", {count(data['cached_calls'], 'answer')} reused" if data["cached_calls"] else ""
    return Tile("Cost", count(data["calls"], "call"), f"{data['tokens']:,} tokens, {spent}{reused}")


@dataclass(frozen=True)
class FirstScreen:
    """The part of a page that a reader sees before anything else."""

    command: str
    """``weigh``, ``select``, ``compare``, ``evaluate``, ``diagnose``, ``train`` or ``migrate``."""
    name: str
    choice: Choice
    """The decision, which sets the tone of the screen: good, plain, or not settled."""
    headline: str
    lead: str
    tiles: Sequence[Tile]
    cautions: Sequence[str] = ()
    heading: str = "Before acting on this"
    who: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    key: str
    name: str
    is_number: bool
    is_long: bool
    scale: Scale | None
    """Axis of the drawn figures; None if the figures are not drawn."""
    form: str


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    id: str
    title: str
    rows: Rows = ()
    note: str = ""
    drawn: Sequence[str] | None = None
    """Names of the columns whose figures are drawn; None means the first column with intervals."""
    pictures: Sequence[tuple[str, Markup]] = ()
    """Pictures, each with the text above it."""
    legend: Sequence[tuple[str, str]] = ()
    """Colour classes, each with its meaning."""
    explorer: Markup | None = None
    """Data for the table of examples, which the page's script fills."""
    only: Sequence[tuple[str, str]] = ()
    """Filters of the table of examples: value and label."""

    @property
    def columns(self) -> list[Column]:
        """Columns of the section's table."""
        names = columns(self.rows)
        cells = {name: [row[name] for row in self.rows if row.get(name) is not None] for name in names}
        spanned = (name for name in names if any(isinstance(each, Figure) and each.span() for each in cells[name]))
        drawn = [next(spanned, "")] if self.drawn is None else self.drawn
        return [_column(name, cells[name], is_drawn=name in drawn) for name in names]


def _column(name: str, cells: Sequence[Any], *, is_drawn: bool) -> Column:
    figures = [each for each in cells if isinstance(each, Figure)]
    return Column(
        name,
        name.replace("_", " "),
        all(isinstance(each, (int, float, Figure)) for each in cells),
        any(isinstance(each, str) and len(each) > 40 for each in cells),
        Scale.over([end for each in figures for end in (each.value, each.low, each.high)]) if is_drawn else None,
        figures[0].form if figures else "",
    )


def view_sections(view: View, *names: str, **changes: Mapping[str, Any]) -> list[Section]:
    """Return the named tables of a view that have rows, as sections. The part of a caption after its first ``;``
    becomes the note. ``changes`` are fields to replace in a section, by the name of its table."""
    sections = []
    for name, rows in ((name, rows) for name, rows in view.shown_tables().items() if name in names):
        title, _, about = view.caption(name).partition("; ")
        change = dict(changes.get(name, {}))
        notes = [f"{_sentence(about)}." if about else "", change.pop("note", "")]
        fields = {"id": name, "title": _sentence(title), "rows": rows, "note": " ".join(filter(None, notes))}
        sections.append(Section(**{**fields, **change}))
    return sorted(sections, key=lambda each: names.index(each.id) if each.id in names else 0)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def settings_section(settings: Mapping[str, Any]) -> Section:
    """Return the settings behind a result as a section, without secrets."""
    rows = [
        {"setting": name.replace("_", " "), "value": public_text(name, value)}
        for name, value in settings.items()
        if value not in (None, {}, [])
    ]
    return Section("settings", "Settings", rows)


def render_result_page(
    screen: FirstScreen, sections: Sequence[Section], template: str = "report_of.html.j2", **context: Any
) -> str:
    """Render a result's page as HTML. ``template`` extends ``report_of.html.j2``; ``context`` is for its own parts."""
    return render_page(
        template,
        ("report_table.js", "report_sort.js", "report_verdicts.js"),
        screen=screen,
        sections=[each for each in sections if each.rows or each.note or each.pictures],
        explorer=next((each.explorer for each in sections if each.explorer), None),
        **context,
    )


def examples_section(
    ids: Sequence[str], values: Mapping[str, Sequence[float | None]], note: str, *, down: bool, by: int = 0
) -> Section:
    """Return the table of all examples, with a column for each name in ``values``. The examples are sorted by the
    column at place ``by``, the largest value first if ``down``."""
    rows: dict[str, Any] = {
        "ids": ids,
        "columns": [["Example", "ids"], *([label, f"c{place}"] for place, label in enumerate(values))],
        "sorted": f"c{by}",
        "down": down,
        "signed": [],
        "texts": {},
        **{f"c{place}": [thousandth(each) for each in column] for place, column in enumerate(values.values())},
    }
    return Section("examples", "Example by example", note=note, explorer=json_data(rows))


SHOWN_PLACES = 12
"""Most places that are named for each reason."""
SHOWN_REASONS = 30
LONGEST = 400
"""Most characters of a reason."""
UNANSWERED = {"abstained": "abstention", "parse_error": "unreadable answer", "api_error": "failed call"}
"""Names for missing answers, by status."""


def failures(answers: Iterable[Mapping[str, Any]], asked: str = "question") -> Rows:
    """Return the reasons for missing answers, the most frequent first, each with its first places. ``answers`` are
    verdicts or ratings with ``example``, ``status`` and perhaps ``error``; ``asked`` is the field that names the
    question or dimension."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in answers:
        if row["status"] != "ok":
            reason = " ".join(str(row.get("error") or "no reason was given").split())[:LONGEST]
            place = f"{row['example']} on {row[asked]}"
            found.setdefault((UNANSWERED.get(row["status"], row["status"]), reason), []).append(place)
    ordered = sorted(found.items(), key=lambda each: -len(each[1]))
    note = f"and {len(ordered) - SHOWN_REASONS} other reasons" if len(ordered) > SHOWN_REASONS else None
    rows = [
        {"missing": count(len(places), status), "reason": reason}
        | {"where": ", ".join(places[:SHOWN_PLACES]) + (", \N{HORIZONTAL ELLIPSIS}" if places[SHOWN_PLACES:] else "")}
        for (status, reason), places in ordered[:SHOWN_REASONS]
    ]
    return [*rows, {"missing": note}] if note else rows
