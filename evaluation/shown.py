"""How results show themselves: a short text, a small HTML table in notebooks, data frames."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError, MissingExtraError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_ROWS = 20
"""Rows of one table in a notebook; a data frame has them all."""


@dataclass(frozen=True)
class View:
    """What there is to see of a result."""

    title: str
    lines: Sequence[str]
    """Sentences."""
    tables: Mapping[str, Callable[[], Sequence[Mapping[str, Any]]]]
    """By name, what makes the rows of each table; the first is the one that matters most."""
    shown: Sequence[str] | None = field(default=None)
    """Names of the tables to show in a notebook; all by default."""
    brief: str | None = None
    """What matters most, on one line; the first of the sentences by default."""


class Shown:
    """A result that shows itself; subclasses say what in :meth:`_view`."""

    def _view(self) -> View:
        """What there is to see."""
        raise TypeError(f"{type(self).__name__} does not say what to show of it.")

    def __repr__(self) -> str:
        """Two lines at most."""
        view = self._view()
        return "\n  ".join([self._head(view), *([view.brief] if view.brief else view.lines[:1])])

    def __str__(self) -> str:
        """All sentences."""
        view = self._view()
        return "\n  ".join([self._head(view), *view.lines])

    def _head(self, view: View) -> str:
        return f"{type(self).__name__}: {view.title}"

    def _repr_html_(self) -> str:
        """For notebooks; everything in it is escaped."""
        view = self._view()
        head = f"<div><b>{escape(type(self).__name__)}</b>: {escape(view.title)}</div>"
        lines = "".join(f"<div>{escape(line)}</div>" for line in view.lines)
        names = view.tables if view.shown is None else view.shown
        tables = {name: view.tables[name]() for name in names}
        return head + lines + "".join(html_table(name, rows) for name, rows in tables.items() if rows)

    def to_pandas(self, table: str | None = None) -> Any:
        """A ``pandas.DataFrame`` of one of the tables, whole; None as a value is missing data.

        Args:
            table: Which; the most important one by default. A wrong name says which there are.

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
        return pandas.DataFrame(list(tables[name]()))


def html_table(caption: str, rows: Sequence[Mapping[str, Any]], most: int = MOST_ROWS) -> str:
    """A small table; texts are escaped, numbers have three decimals, None is an empty cell."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(_cell(row.get(name)) for name in columns) + "</tr>" for row in rows[:most])
    more = f"<p>{len(rows) - most:,} more rows: .to_pandas('{escape(caption)}')</p>" if len(rows) > most else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:.3f}</td>'
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    return f'<td style="text-align:left">{escape(str(value))}</td>'
