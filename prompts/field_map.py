"""The map from our fields to the columns of a table, and rows with their columns renamed.

A long table has a row for each output and rater, as spreadsheets and labelling tools export it. Its rows are grouped by
output.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID

from .errors import InputError, did_you_mean
from .human_feedback import HumanValues, is_missing, is_number
from .json_documents import at, without_marks
from .messages import told
from .raters import with_read_ratings
from .tables import as_written, plain

TEXTS = ("id", "input", "output", "context", "reference", "system")
FIELDS = (*TEXTS, "metadata", "human", "raters", "comment")
NESTED = ("human", "metadata", "raters", "comment")
"""Fields whose parts a field map can name, such as ``human.NAME``."""
SEVERAL = ("human", "comment")
"""Fields that can have several columns, one per rater."""

_OF_RATER = re.compile(r"(?P<rater>.+?)\.(?:human\.(?P<human>.+)|comment(?:\.(?P<comment>.+))?)")

Columns = str | Sequence[str]
"""A column's name, or a path such as ``inputs.question``. Human scores and comments may have several columns, as a list
or with commas between them."""
FieldMap = Mapping[str, Columns]
"""Our name to the column or columns."""


def parse_field_map(pairs: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Turn ``["output=summary", ...]`` into a field map; a field of human scores or comments may be named several
    times. Raises InputError if a pair is not of the form ``ours=column``, or a field that can have only one column is
    named twice."""
    mapping: dict[str, str | tuple[str, ...]] = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]+)=(.+)", pair)
        if not match:
            raise InputError(f"--field {pair}: write it as our_name=column, e.g. output=summary.")
        field_name, column = match[1].strip(), match[2].strip()
        previous = _listed(mapping.get(field_name, ()))
        if previous and field_name.partition(".")[0] not in SEVERAL:
            raise InputError(
                f"--field {field_name} is given twice ('{previous[0]}' and '{column}'); an example has one "
                f"'{field_name}'. Name one column."
            )
        mapping[field_name] = (*previous, column) if previous else column
    return mapping


def check_field_map(fields: FieldMap, known: Sequence[str] = FIELDS) -> None:
    """Raise InputError if a map names a field that is not ours, no column for a field, or several columns for a field
    that can have only one."""
    for field_name, given in fields.items():
        name, dot, part = field_name.partition(".")
        if name not in known:
            raise InputError(f"Field map: '{field_name}' is not one of our fields.{did_you_mean(name, known)}")
        if dot and (name not in NESTED or not part):
            raise InputError(
                f"Field map: '{field_name}' is not one of our fields; human.NAME, metadata.NAME and comment.NAME have "
                "a dot."
            )
        if name == "raters" and dot and _OF_RATER.fullmatch(part) is None:
            raise InputError(
                f"Field map: '{field_name}' is not one of our fields; a rater's are raters.NAME.human.DIMENSION, "
                "raters.NAME.comment and raters.NAME.comment.DIMENSION."
            )
        columns = _listed(given)
        if not columns or not all(isinstance(each, str) and each for each in columns):
            raise InputError(f"Field map: '{field_name}' needs the name of a column, not {given!r}.")
        if len(columns) > 1 and name not in SEVERAL:
            raise InputError(f"Field map: '{field_name}' has one column, not {len(columns)}: {', '.join(columns)}.")


def columns_of(ours: str, given: Columns, row: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of a field. For human scores and comments, ``anna,ben`` means two columns, unless the row has
    a column of that name."""
    if ours.partition(".")[0] not in SEVERAL:
        return _listed(given)
    there = set(row)
    parts = (part for name in _listed(given) for part in ([name] if name in there else name.split(",")))
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _listed(given: Columns) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def renamed(row: Mapping[str, Any], fields: FieldMap, human: HumanValues, where: str) -> dict[str, Any]:
    """Rename the columns of a row to our fields, and turn its values into those of an example; null counts as missing.

    A column called ``human.NAME``, ``comment.NAME`` or ``metadata.NAME`` needs no entry in the map. If neither the map
    nor the row has the exact name ``id``, or ``input``, columns are found in upper or lower case. Raises InputError if
    a value cannot be turned into the text of its field, or as :meth:`HumanValues.read`.
    """
    dotted = {name: name for name in row if name not in fields and _is_ours_with_a_dot(name)}
    loose = any(name not in row and name not in fields for name in ("id", "input"))
    cased = {name: name for name in FIELDS if loose and name not in row and name not in fields}
    sources = {target: columns_of(target, given, row) for target, given in {**cased, **dotted, **fields}.items()}
    taken = {*sources, *(column for columns in sources.values() for column in columns)}
    folded_names = {name.casefold() for name in cased} | {each.casefold() for each in taken if each not in row}
    found = {
        name: value
        for name, value in row.items()
        if name not in taken and value is not None and not (folded_names and str(name).casefold() in folded_names)
    }
    several = [target for target, columns in sources.items() if target.startswith("human.") and len(columns) > 1]
    for target, columns in sources.items():
        values = [at(row, column) for column in columns]
        if several == [target] and not any(isinstance(each, (list, tuple)) for each in values):  # a column is a person
            if len(values) > values.count(None):
                for column, value in zip(columns, values, strict=True):
                    put(found, f"raters.{column}.{target}", [value], several=False)
            continue
        if not (target.partition(".")[0] == "human" and len(columns) > 1):  # there, a place is a rater
            values = [value for value in values if value is not None]
        if len(values) > values.count(None):
            put(found, target, values, several=len(columns) > 1)
    _make_texts(found, human, where)
    if "human" in found:
        found["human"] = human.read(found["human"], where)
    if "raters" in found:
        found["raters"] = with_read_ratings(found["raters"], lambda given: human.read(given, where))
    return {name: value for name, value in found.items() if value is not None}


def _make_texts(row: dict[str, Any], human: HumanValues, where: str) -> None:
    """Turn the values of text fields, and ids that are numbers, into texts."""
    for field_name in TEXTS[1:]:
        if human.texts_in_json and isinstance(row.get(field_name), str):
            row[field_name] = without_marks(row[field_name])
        if field_name in row and not isinstance(row[field_name], str):
            try:
                row[field_name] = told(plain(row[field_name]), passages=field_name == "context")
            except ValueError as error:
                raise InputError(f"{where}: field '{field_name}': {error}.") from None
    identity = row.get("id")
    if is_missing(identity):
        if identity not in (None, ""):
            human.missing[f"{identity} as id"] += 1
        row["id"] = None
    elif isinstance(identity, (int, float)) and not isinstance(identity, bool):
        row["id"] = as_written(identity)
    elif isinstance(identity, UUID):
        row["id"] = str(identity)


def id_of_texts(row: Mapping[str, Any], fields: Iterable[str] = TEXTS[1:], prefix: str = "example") -> str:
    """Make an id for a row without one: a hash of its texts."""
    texts = json.dumps([row.get(field) for field in fields], default=str)
    return f"{prefix}-{sha256(texts.encode()).hexdigest()[:12]}"


def numbered_id(name: str, taken: Counter[str]) -> str:
    """Return the id of the next row with this hash of its texts: the first keeps it, others get ``-2``, ``-3``, …"""
    taken[name] += 1
    return name if taken[name] == 1 else f"{name}-{taken[name]}"


def _is_ours_with_a_dot(name: object) -> bool:
    ours, _, part = str(name).partition(".")
    return ours in NESTED and bool(part) and (ours != "raters" or bool(_OF_RATER.fullmatch(part)))


def put(row: dict[str, Any], ours: str, values: list[Any], *, several: bool) -> None:
    """Put the values of a field, such as ``human.NAME``, at its place in a row that is being made."""
    name, _, part = ours.partition(".")
    if name == "raters" and (match := _OF_RATER.fullmatch(part)):
        said = dict(row.get(name, {}))
        mine = dict(said.get(match["rater"], {}))
        put(mine, part.removeprefix(f"{match['rater']}."), values, several=several)
        row[name] = {**said, match["rater"]: mine}
        return
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
    """Return a sentence that a row lacks one of our fields or has an empty cell, with the column that may be meant."""
    column = next(iter(columns_of(field, fields.get(field, field), row)))
    mapped = f" (field map: {field}={column})" if field in fields else ""
    if column in row:
        return f"there is nothing in '{column}'{mapped}."
    if mapped:
        return f"there is no column '{column}'{mapped}.{did_you_mean(column, [*map(str, row), *_paths(row)])}"
    other_columns = [str(name) for name in row if name not in FIELDS]
    hint = did_you_mean(field, other_columns).strip()
    if hint:
        return f"the field '{field}' is missing ({hint} A field map renames it)."
    if other_columns:
        there = ", ".join(map(str, row))
        return f"the field '{field}' is missing (there are: {there}; --field {field}=COLUMN names the one that it is)."
    return f"the field '{field}' is missing."


def _paths(row: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the columns of a row, then the paths within columns that are objects."""
    yield from (
        f"{before}{name}" for name, value in row.items() if value is not None and not isinstance(value, Mapping)
    )
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{name}.")


RATER = "rater"
"""The usual column of the raters' names, and its name in a field map."""
LABELS = ("label", "score", "rating")
"""Columns that hold the rating of the whole output if no field map names one, the likeliest first."""


def is_long(row: Any, fields: FieldMap) -> bool:
    """Whether a source is a long table: its first row has a rater's name beside the output's id."""
    if not isinstance(row, Mapping):
        return False
    return RATER in fields or (RATER in row and "raters" not in row and str(fields.get("id", "id")) in row)


@dataclass
class _Output:
    """The content of all rows of one output."""

    where: str
    row: dict[str, Any]
    """The output's texts, and the other columns of its first row."""
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Rater to ``human`` and ``comment``."""
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    """(Rater, dimension) to the place of the row with the rating."""


def by_output(
    rows: Iterable[tuple[str, Any]], fields: FieldMap, human: HumanValues
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one row per output, with our names, and with each rater's ratings and comments under ``raters``.

    The first row of an output holds its texts; later rows may repeat or omit them. A repeated rating or comment counts
    once. The field ``rater`` of the map names the column of raters.

    Raises:
        InputError: A rater gave one output two different ratings; an output has other texts than before; a rater or an
            id is missing; or the map names a column that no row has. Names the file, line and field.
    """
    column = str(fields.get(RATER, RATER))
    found: dict[str, _Output] = {}
    columns: set[str] = set()
    place = ""
    for place, row in rows:
        if not isinstance(row, Mapping):
            raise InputError(f"{place}: a mapping from field to value is needed, not {type(row).__name__}.")
        columns |= {str(each) for each in row}
        _add(found, place, row, column, fields, human)
    for field_name, given in fields.items():
        for wanted in columns_of(field_name, given, columns):
            if wanted not in columns and "." not in wanted:
                raise InputError(
                    f"{place.rpartition(', ')[0] or place}: there is no column '{wanted}' (field map: "
                    f"{field_name}={wanted}).{did_you_mean(wanted, columns)}"
                )
    for each in found.values():
        yield each.where, {**each.row, "raters": each.said}


def _add(
    found: dict[str, _Output], where: str, row: Mapping[str, Any], column: str, fields: FieldMap, human: HumanValues
) -> None:
    rater = at(row, column)
    if is_missing(rater):
        raise InputError(f"{where}: field '{column}': a name is needed; every row is what one rater said.")
    other_fields = {name: each for name, each in fields.items() if name != RATER}
    named = any(name.partition(".")[0] == "human" for name in (*other_fields, *map(str, row)))
    usual = None if named else next((each for each in LABELS if each in row), None)
    other_fields |= {} if usual is None else {"human.overall": usual}
    new = renamed({name: each for name, each in row.items() if name != column}, other_fields, human, where)
    if "id" not in new:
        raise InputError(f"{where}: {missing('id', row, fields)} Rows of one output are known by it.")
    ratings, comment = new.pop("human", {}), new.pop("comment", None)
    output = found.setdefault(new["id"], _Output(where, new))
    for name in TEXTS[1:]:
        if name in new and str(new[name]).strip() and output.row.setdefault(name, new[name]) != new[name]:
            raise InputError(
                f"{where}: field '{name}': it is another one than in {output.where}, and both are of '{new['id']}'."
            )
    feedback = output.said.setdefault(str(rater).strip(), {"human": {}, "comment": []})
    if not isinstance(ratings, Mapping):
        raise InputError(f"{where}: field 'human': an object from dimension to number or label is needed.")
    for dimension, given in ratings.items():
        _rate(output, where, str(rater).strip(), dimension, given)
    if comment is not None and comment not in feedback["comment"]:
        feedback["comment"] = [*feedback["comment"], comment]


def _rate(output: _Output, where: str, rater: str, dimension: str, given: Any) -> None:
    """Record a rating. Raises InputError if the rater gave a different one before."""
    rating = given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given
    ratings = output.said[rater]["human"]
    previous = ratings.setdefault(dimension, rating)
    if previous != rating or isinstance(previous, bool) is not isinstance(rating, bool):
        raise InputError(
            f"{where}: field 'human.{dimension}': {rater} rated '{output.row['id']}' with {_shown(rating)}, and with "
            f"{_shown(previous)} in {output.places[rater, dimension]}. Leave one of the two out."
        )
    output.places.setdefault((rater, dimension), where)


def _shown(rating: Any) -> str:
    return {True: "pass", False: "fail"}[rating] if isinstance(rating, bool) else str(rating)
