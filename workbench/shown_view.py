"""A result's view as JSON, for a page that draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.view import columns
from ..prompts.formatting import Figure

if TYPE_CHECKING:
    from ..evaluation.view import View


def view_json(view: View) -> dict[str, Any]:
    """Title, sentences, and tables as rows of cells; a figure is an object with its number and interval."""
    tables = []
    for name, rows in view.shown_tables().items():
        heads = columns(rows)
        cells = [[_cell(row.get(head)) for head in heads] for row in rows]
        notes = [*view.notes.get(name, ())]
        tables.append({"caption": view.caption(name), "heads": heads, "rows": cells, "notes": notes})
    return {"title": view.title, "lines": [*view.lines], "tables": tables}


def _cell(cell: Any) -> Any:
    if not isinstance(cell, Figure):
        return cell
    return {"value": cell.value, "low": cell.low, "high": cell.high, "text": str(cell), "reason": cell.reason}
