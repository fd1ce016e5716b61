"""The view of a result, for texts, notebooks, data frames, the terminal and the pages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypeAlias

from ..prompts.errors import InputError, MissingExtraError, did_you_mean
from ..prompts.formatting import Figure, interval, names_text, number

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""Rows of a table; a cell is a text, a number, a :class:`~askance.prompts.formatting.Figure` or None."""
MOST_ROWS = 20
"""Rows of one table in a notebook; a data frame has them all."""


@dataclass(frozen=True)
class View:
    """Title, sentences and tables of a result."""

    title: str
    lines: Sequence[str]
    """Sentences."""
    tables: Mapping[str, Callable[[], Rows]]
    """Functions that make the rows of each table, by name; the most important table is first."""
    shown: Sequence[str] | None = field(default=None)
    """Names of the tables that people see; all by default. Any table can become a data frame."""
    brief: str | None = None
    """The main point, on one line; the first sentence by default."""
    captions: Mapping[str, str] = field(default_factory=dict)
    """Caption of each table, in words; its name by default."""
    most: Mapping[str, int] = field(default_factory=dict)
    """Most rows of a table in a terminal, by its name; the others are counted. Default: all rows."""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sentences below a table, by its name."""
    listed: Collection[str] = ()
    """Names of the tables whose cells are sentences; a terminal prints them row by row, without columns."""

    def caption(self, name: str) -> str:
        """Return the caption of a table."""
        return self.captions.get(name, name.replace("_", " "))

    def shown_tables(self) -> dict[str, Rows]:
        """Return the tables that people see and that have rows."""
        made = {name: self.tables[name]() for name in (self.tables if self.shown is None else self.shown)}
        return {name: rows for name, rows in made.items() if rows}


def columns(rows: Rows) -> list[str]:
    """Return the columns of a table in which some row has a value."""
    return list(dict.fromkeys(name for row in rows for name, cell in row.items() if cell is not None))


def correlation_figures(row: Mapping[str, Any]) -> dict[str, Figure]:
    """Return three correlations of a result file, as cells of a row."""
    figures = {
        name: Figure(
            row[name], row.get(f"{name}_low"), row.get(f"{name}_high"), ".3f", row.get("reason"), measured=True
        )
        for name in ("kendall", "pearson")
    }
    return {"spearman": Figure.of(row, key="spearman"), **figures}


class Shown:
    """A result that shows itself; subclasses give its content by :meth:`_view`."""

    def _view(self) -> View:
        """Return the view; every subclass has its own."""
        raise TypeError(f"{type(self).__name__} does not say what to show of it.")

    def view(self) -> View:
        """Return the view, for code that prints it."""
        return self._view()

    def __repr__(self) -> str:
        """Return two lines at most."""
        view = self._view()
        return "\n  ".join([self._head(view), *([view.brief] if view.brief else view.lines[:1])])

    def __str__(self) -> str:
        """Return all sentences."""
        view = self._view()
        return "\n  ".join([self._head(view), *view.lines])

    def _head(self, view: View) -> str:
        return f"{type(self).__name__}: {view.title}"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks; all texts are escaped."""
        view = self._view()
        head = f"<div><b>{escape(type(self).__name__)}</b>: {escape(view.title)}</div>"
        lines = "".join(f"<div>{escape(line)}</div>" for line in view.lines)
        tables = (
            html_table(name, rows) + "".join(f"<div>{escape(note)}</div>" for note in view.notes.get(name, ()))
            for name, rows in view.shown_tables().items()
        )
        return head + lines + "".join(tables)

    def to_pandas(self, table: str | None = None) -> Any:
        """Return one of the tables, whole, as a ``pandas.DataFrame``; None becomes missing data.

        The interval of the first measurement is in the columns ``low`` and ``high``. The intervals of others are in
        columns that begin with their names.

        Args:
            table: Name of the table; the most important one by default. The error on a wrong name lists all.

        Raises:
            InputError: There is no such table.
            MissingExtraError: pandas is not installed.
        """
        tables = self._view().tables
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise InputError(
                f"There is no table '{name}' (there are: {', '.join(tables)}).{did_you_mean(name, tables)}"
            )
        try:
            pandas: Any = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise MissingExtraError("notebook", "pandas") from None
        return pandas.DataFrame([_flat(row) for row in tables[name]()])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        flat[name] = cell.value if isinstance(cell, Figure) else cell
        if isinstance(cell, Figure) and cell.measured:
            start = f"{name}_" if "low" in flat else ""
            flat |= {f"{start}low": cell.low, f"{start}high": cell.high}
    return flat


def html_table(caption: str, rows: Rows) -> str:
    """Return a small HTML table; texts are escaped, numbers have three decimals, None is an empty cell."""
    names = columns(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(_cell(row.get(name)) for name in names) + "</tr>" for row in rows[:MOST_ROWS])
    left = len(rows) - MOST_ROWS
    more = f"<p>{left:,} more rows: .to_pandas('{escape(caption)}')</p>" if left > 0 else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    side = "right" if isinstance(value, (float, Figure)) else "left"
    return f'<td style="text-align:{side}">{escape(cell_text(value))}</td>'


def cell_text(value: Any) -> str:
    """Return a cell as text: numbers with three decimals, counts and lists with commas, None as an empty text."""
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def agreement_headline(known: Mapping[str, Figure], who: str = "The scores") -> str:
    """Say how far somebody's scores agree with people's, as far as the correlations' intervals show it."""
    if len(known) == 1:
        (figure,) = known.values()
        correlation = number(figure.value)
        span = f" ({interval(figure.low, figure.high)})"
        return {
            1: f"{who} agree with people at a Spearman of {correlation}",
            -1: f"{who} run against people: a Spearman of {correlation}{span}",
            0: f"{who} are not shown to agree with people: a Spearman of {correlation}{span}",
            None: f"{who} have a Spearman of {correlation} with people, without an interval",
        }[figure.side]
    parts = sorted((each.value or 0.0, name) for name, each in known.items() if name != "overall")
    (low, worst), (high, best) = parts[0], parts[-1]
    whole = f"is {number(known['overall'].value)} over all:" if "overall" in known else "runs"
    unshown = [name.replace("overall", "the whole") for name, each in known.items() if each.side != 1]
    but = f"; not shown on {names_text(unshown)}" if unshown else ""
    return f"Agreement with people {whole} from {number(low)} on {worst} to {number(high)} on {best}{but}"
