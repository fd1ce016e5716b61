"""The page of a result: what was found, the figures behind it and what speaks against it, then the tables of its View."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..evaluation.shown import columns
from ..memory.decision import Choice
from ..prompts.formatting import Figure, count, money
from .page import json_data, public_text, render_page, thousandth
from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from ..evaluation.shown import Rows, View


@dataclass(frozen=True)
class Tile:
    """One figure with what it is."""

    label: str
    figure: Figure | str
    """With its interval, which is drawn; or the figure as a text."""
    sub: str = ""
    before: Figure | None = None
    """The figure that it is compared with."""

    @property
    def scale(self) -> Scale | None:
        """The axis of its interval; None where there is none to draw."""
        if isinstance(self.figure, str) or self.figure.span() is None:
            return None
        return Scale.over([self.figure.value, self.figure.low, self.figure.high])


def cost_tile(data: Mapping[str, Any]) -> Tile:
    """What a command bought."""
    spent = "price unknown" if data["cost_usd"] is None else money(data["cost_usd"])
    reused = f", {count(data['cached_calls'], 'answer')} reused" if data["cached_calls"] else ""
    return Tile("Cost", count(data["calls"], "call"), f"{data['tokens']:,} tokens, {spent}{reused}")


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before anything else."""

    command: str
    """``weigh``, ``select``, ``compare``, ``evaluate`` or ``diagnose``."""
    name: str
    """Of the file."""
    choice: Choice
    """Its tone: good, plain, or not settled."""
    headline: str
    lead: str
    tiles: Sequence[Tile]
    cautions: Sequence[str] = ()
    heading: str = "Before acting on this"
    """Above the cautions."""
    who: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    key: str
    """In the rows."""
    name: str
    """As it is written."""
    is_number: bool
    is_long: bool
    scale: Scale | None
    """The axis that its figures are drawn on beside it; None where they are not drawn."""
    form: str
    """How its figures are written."""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    id: str
    title: str
    rows: Rows = ()
    note: str = ""
    drawn: Sequence[str] = ()
    """Columns whose figures are drawn; by default the first that has intervals."""
    pictures: Sequence[tuple[str, Markup]] = ()
    """With what stands above each."""
    legend: Sequence[tuple[str, str]] = ()
    """The classes of colours, and what they stand for."""
    explorer: Markup | None = None
    """Data of the table of examples that the page's script fills."""
    only: Sequence[tuple[str, str]] = ()
    """What that table can be narrowed to: value and label."""

    @property
    def columns(self) -> list[Column]:
        """Those of its table."""
        names = columns(self.rows)
        cells = {name: [row[name] for row in self.rows if row.get(name) is not None] for name in names}
        spanned = (name for name in names if any(isinstance(each, Figure) and each.span() for each in cells[name]))
        drawn = self.drawn or [next(spanned, "")]
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

    Args:
        view: What there is to see.
        names: Of the tables, in order.
        changes: Fields of a section, by the name of its table.
    """
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


def render_result_page(screen: FirstScreen, sections: Sequence[Section]) -> str:
    """The page as HTML."""
    return render_page(
        "report_of.html.j2",
        ("report_table.js", "report_sort.js", "report_verdicts.js"),
        screen=screen,
        sections=[each for each in sections if each.rows or each.note or each.pictures],
        explorer=next((each.explorer for each in sections if each.explorer), None),
    )


def examples_section(
    ids: Sequence[str], values: Mapping[str, Sequence[float | None]], note: str, *, down: bool, by: int = 0
) -> Section:
    """The table of all examples, with a column for each name.

    Args:
        ids: Of the examples.
        values: By the column's name.
        note: What there is to say of them.
        down: Whether the largest come first.
        by: Place of the column that they are sorted by.
    """
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
"""What a missing answer is called, by its status."""


def failures(answers: Iterable[Mapping[str, Any]], asked: str = "question") -> Rows:
    """The answers that are missing, with their reasons, the most frequent first, and where the first of them are.

    Args:
        answers: Verdicts or ratings with ``example``, ``status`` and, where there is one, ``error``.
        asked: Name of the field that says what was asked.
    """
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
