"""Which column of somebody's table is which of our fields, and rows with their columns renamed accordingly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .errors import InputError, did_you_mean
from .human_feedback import Labels, is_number, with_words

TEXTS = ("id", "input", "output", "context", "reference", "system")
FIELDS = (*TEXTS, "metadata", "human", "comment")
NESTED = ("human", "metadata", "comment")
"""Fields whose parts a field map can name."""
SEVERAL = ("human", "comment")
"""Fields that several columns can hold: one a rater."""

Columns = str | Sequence[str]
"""A column's name; for human scores and comments also several, in a list or with commas between them."""
FieldMap = Mapping[str, Columns]
"""Our name to the column's."""


def parse_field_map(pairs: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Turn ``["output=summary", ...]`` into a field map; several columns for one field of human scores or comments add
    up.

    Raises:
        InputError: A pair is not of the form ``ours=column``, or a field that has one column only is named twice.
    """
    mapping: dict[str, str | tuple[str, ...]] = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]+)=(.+)", pair)
        if not match:
            raise InputError(f"--field {pair}: write it as our_name=column, e.g. output=summary.")
        ours, column = match[1].strip(), match[2].strip()
        before = _listed(mapping.get(ours, ()))
        if before and ours.partition(".")[0] not in SEVERAL:
            raise InputError(
                f"--field {ours} is given twice ('{before[0]}' and '{column}'); an example has one '{ours}'. Name one column."
            )
        mapping[ours] = (*before, column) if before else column
    return mapping


def check_field_map(fields: FieldMap) -> None:
    """Raise InputError where a map names a field that is not ours, or several columns for one that has one."""
    for ours, given in fields.items():
        name, dot, part = ours.partition(".")
        if name not in FIELDS:
            raise InputError(f"Field map: '{ours}' is not one of our fields.{did_you_mean(name, FIELDS)}")
        if dot and (name not in NESTED or not part):
            raise InputError(
                f"Field map: '{ours}' is not one of our fields; human.NAME, metadata.NAME and comment.NAME have a dot."
            )
        columns = _listed(given)
        if not columns or not all(isinstance(each, str) and each for each in columns):
            raise InputError(f"Field map: '{ours}' needs the name of a column, not {given!r}.")
        if len(columns) > 1 and name not in SEVERAL:
            raise InputError(f"Field map: '{ours}' has one column, not {len(columns)}: {', '.join(columns)}.")


def columns_of(ours: str, given: Columns, row: Iterable[str]) -> tuple[str, ...]:
    """The columns of a field: ``anna,ben`` is two of them for human scores and comments, unless one is called so."""
    if ours.partition(".")[0] not in SEVERAL:
        return _listed(given)
    there = set(row)
    parts = (part for name in _listed(given) for part in ([name] if name in there else name.split(",")))
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _listed(given: Columns) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def renamed(row: Mapping[str, Any], fields: FieldMap, labels: Labels) -> dict[str, Any]:
    """A row with its columns renamed by a checked map; null is the same as a field that is not there.

    A column that is called ``human.NAME``, ``comment.NAME`` or ``metadata.NAME`` needs no entry in the map.
    """
    dotted = {name: name for name in row if name not in fields and _is_ours_with_a_dot(name)}
    sources = {ours: columns_of(ours, given, row) for ours, given in {**dotted, **fields}.items()}
    taken = {*sources, *(column for columns in sources.values() for column in columns)}
    found = {name: value for name, value in row.items() if name not in taken and value is not None}
    for ours, columns in sources.items():
        values = [row[column] for column in columns if row.get(column) is not None]
        if values:
            put(found, ours, values, several=len(columns) > 1)
    if isinstance(found.get("id"), int) and not isinstance(found["id"], bool):
        found["id"] = str(found["id"])
    if "human" in found:
        found["human"] = with_words(found["human"], labels)
    return found


def _is_ours_with_a_dot(name: object) -> bool:
    ours, _, part = str(name).partition(".")
    return isinstance(name, str) and ours in NESTED and bool(part)


def put(row: dict[str, Any], ours: str, values: list[Any], *, several: bool) -> None:
    """Put a field's values where they belong in a row that is being made."""
    name, _, part = ours.partition(".")
    if name == "comment":
        given = values if several else values[0]
        given = {part: given} if part else given
        row[name] = [row[name], given] if name in row else given
        return
    if name == "human":
        values = [
            _number(each) for value in values for each in (value if isinstance(value, (list, tuple)) else [value])
        ]
        several = several or len(values) != 1
    value = values if several else values[0]
    nested = row.get(name, {})
    row[name] = value if not part else {**nested, part: value} if isinstance(nested, Mapping) else nested


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and is_number(value) else value


def missing(field: str, row: Mapping[str, Any], fields: FieldMap) -> str:
    """Say that a row has nothing for one of our fields, and what could be meant, or that its cell is empty."""
    column = next(iter(columns_of(field, fields.get(field, field), row)))
    mapped = f" (field map: {field}={column})" if field in fields else ""
    if column in row:
        return f"there is nothing in '{column}'{mapped}."
    if mapped:
        return f"there is no column '{column}'{mapped}.{did_you_mean(column, map(str, row))}"
    others = [str(name) for name in row if name not in FIELDS]
    hint = did_you_mean(field, others).strip()
    if hint:
        return f"the field '{field}' is missing ({hint} A field map renames it)."
    if others:
        there = ", ".join(map(str, row))
        return f"the field '{field}' is missing (there are: {there}; --field {field}=COLUMN names the one that it is)."
    return f"the field '{field}' is missing."
