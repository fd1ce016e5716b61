"""Preference pairs made from rows, with every error naming the row."""

from __future__ import annotations

from typing import Any

from ...prompts.examples import Preference
from ...prompts.rows import validate_row
from .sources import Row


def pair(row: Row, **fields: Any) -> Preference:
    """A preference pair.

    Raises:
        InputError: A value has the wrong type.
    """
    return validate_row(Preference, fields, row.where)


def own_pair(row: Row) -> Preference:
    """A row that is in askance's own format already.

    Raises:
        InputError: It is not.
    """
    return validate_row(Preference, dict(row.values), row.where)


def chat(messages: list[Any]) -> str:
    """A conversation as text: one paragraph a message, with who says it."""
    return "\n\n".join(f"{str(each['role']).capitalize()}: {each['content']}" for each in messages)
