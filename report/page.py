"""The page of a report as one HTML file; and of a result, with its first screen and the tables of its View.

The page forbids itself all but its own style and script by a content security policy with their hashes, so text from
the data stays text even in a browser that is led astray. The page of a result is its first screen, what was found with
the figures behind it and what speaks against it, and then the tables of its View.
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
    """A page as HTML."""
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
    environment.filters["pictures"] = pictures_of
    environment.filters["percent"] = lambda *given: percent(*given).replace(" ", "\u00a0")
    environment.globals["NONE"] = NONE
    environment.tests["figure_cell"] = lambda each: isinstance(each, Figure)
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


MISSING = 255
"""Stands for a missing P(yes) in the packed numbers; the others are P(yes) times 200."""
MOST_PICTURES = 20_000_000
"""Characters of the data of all images in a table."""
CLIPPED = 1_200
"""Characters of each text in a table of examples."""


def clipped(text: str) -> str:
    """The beginning of a text, with an ellipsis where something is left out."""
    return text[:CLIPPED] + ("\N{HORIZONTAL ELLIPSIS}" if len(text) > CLIPPED else "")


class PictureRoom:
    """Room for the images of a page's table: the first ones are in it, the others are named."""

    def __init__(self) -> None:
        """There is nothing in it yet."""
        self._left = MOST_PICTURES

    def beside(self, text: str) -> list[list[tuple[str, str]]]:
        """The images of a text, in a list of their own; an empty list where it has none."""
        found = []
        for kind, value in pictures_of(text):
            fits = kind != "image" or len(value) <= self._left
            self._left -= len(value) if kind == "image" and fits else 0
            found.append((kind, value) if fits else ("note", "An image is in the data; this page has many."))
        return [found] if found else []


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
"""Characters of a text behind a disagreement; the rest is in the run's inputs."""


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


@dataclass(frozen=True)
class Tile:
    """One figure with what it is."""

    label: str
    figure: Figure | str
    """With its interval, which is drawn; or the figure as a text."""
    sub: str = ""
    before: Figure | None = None

    @property
    def scale(self) -> Scale | None:
        """The axis of its interval; None where there is none to draw."""
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
    """``weigh``, ``select``, ``compare``, ``evaluate`` or ``diagnose``."""
    name: str
    choice: Choice
    """Its tone: good, plain, or not settled."""
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
    """The axis that its figures are drawn on beside it; None where they are not drawn."""
    form: str


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    id: str
    title: str
    rows: Rows = ()
    note: str = ""
    drawn: Sequence[str] | None = None
    """Columns whose figures are drawn; None draws the first that has intervals."""
    pictures: Sequence[tuple[str, Markup]] = ()
    """With what stands above each."""
    legend: Sequence[tuple[str, str]] = ()
    """The classes of colours, and what they stand for."""
    explorer: Markup | None = None
    """Data of the table of examples that the page's script fills."""
    only: Sequence[tuple[str, str]] = ()
    """Choices by which that table can be narrowed: value and label."""

    @property
    def columns(self) -> list[Column]:
        """The columns of its table."""
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
    """The tables of a view that have rows, as sections; what a caption says after its first ``;`` is a note.
    ``changes`` are fields of a section, by the name of its table."""
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
    """The settings that a result was made with, without what may be secret."""
    rows = [
        {"setting": name.replace("_", " "), "value": public_text(name, value)}
        for name, value in settings.items()
        if value not in (None, {}, [])
    ]
    return Section("settings", "Settings", rows)


def render_result_page(
    screen: FirstScreen, sections: Sequence[Section], template: str = "report_of.html.j2", **context: Any
) -> str:
    """The page as HTML. ``template`` extends that of all results; ``context`` is what it needs beyond it."""
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
    """The table of all examples, with a column for each name. ``by`` is the place of the column that they are sorted
    by, the largest first where ``down``."""
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
"""Places named for each reason."""
SHOWN_REASONS = 30
LONGEST = 400
"""Characters of a reason."""
UNANSWERED = {"abstained": "abstention", "parse_error": "unreadable answer", "api_error": "failed call"}
"""Names of a missing answer, by its status."""


def failures(answers: Iterable[Mapping[str, Any]], asked: str = "question") -> Rows:
    """The answers that are missing, with their reasons, the most frequent first, and where the first of them are.
    ``answers`` are verdicts or ratings with ``example``, ``status`` and, where there is one, ``error``; the field
    ``asked`` says what was asked."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in answers:
        if row["status"] != "ok":
            reason = " ".join(str(row.get("error") or "no reason was given").split())[:LONGEST]
            place = f"{row['example']} on {row[asked]}"
            found.setdefault((UNANSWERED.get(row["status"], row["status"]), reason), []).append(place)
    ordered = sorted(found.items(), key=lambda each: -len(each[1]))
    more = f"and {len(ordered) - SHOWN_REASONS} other reasons" if len(ordered) > SHOWN_REASONS else None
    rows = [
        {"missing": count(len(places), status), "reason": reason}
        | {"where": ", ".join(places[:SHOWN_PLACES]) + (", \N{HORIZONTAL ELLIPSIS}" if places[SHOWN_PLACES:] else "")}
        for (status, reason), places in ordered[:SHOWN_REASONS]
    ]
    return [*rows, {"missing": more}] if more else rows
