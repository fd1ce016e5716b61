"""Long tables of ratings: a row for each output and rater, as spreadsheets and labelling tools export them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError, did_you_mean
from ..field_map import TEXTS, FieldMap, columns_of, missing, renamed
from ..human_feedback import HumanValues, is_missing
from ..json_documents import at

RATER = "rater"
"""The column with the rater's name, and our name of it in a field map."""
LABELS = ("label", "score", "rating")
"""Columns that are the rating of the whole where no field map names one, the likelier first."""


def is_long(row: Any, fields: FieldMap) -> bool:
    """Whether a source is a long table, by its first row: it has a rater's name beside the output's id."""
    if not isinstance(row, Mapping):
        return False
    return RATER in fields or (RATER in row and "raters" not in row and str(fields.get("id", "id")) in row)


@dataclass
class _Output:
    """Content of the rows of one output."""

    where: str
    row: dict[str, Any]
    """Its texts, and the other columns of its first row."""
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By rater: ``human`` and ``comment``."""
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    """The row of each rating, by rater and dimension."""


def by_output(
    rows: Iterable[tuple[str, Any]], fields: FieldMap, human: HumanValues
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one row an output, in our names, with what each rater said under ``raters``.

    The texts stand in the first row of an output, and in later ones too or not at all. The same rating or comment twice
    counts once.

    Args:
        rows: Each with its place.
        fields: The field map, checked; ``rater`` names the column of raters.
        human: Reads ratings.

    Raises:
        InputError: A rater rated one output twice, differently; an output has other texts than before; a rater or an id
            is missing; or the map names a column that is nowhere. Names the file, line and field.
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
    for ours, given in fields.items():
        for wanted in columns_of(ours, given, columns):
            if wanted not in columns and "." not in wanted:
                raise InputError(
                    f"{place.rpartition(', ')[0] or place}: there is no column '{wanted}' (field map: {ours}={wanted})."
                    f"{did_you_mean(wanted, columns)}"
                )
    for each in found.values():
        yield each.where, {**each.row, "raters": each.said}


def _add(
    found: dict[str, _Output], where: str, row: Mapping[str, Any], column: str, fields: FieldMap, human: HumanValues
) -> None:
    rater = at(row, column)
    if is_missing(rater):
        raise InputError(f"{where}: field '{column}': a name is needed; every row is what one rater said.")
    others = {name: each for name, each in fields.items() if name != RATER}
    named = any(name.partition(".")[0] == "human" for name in (*others, *map(str, row)))
    usual = None if named else next((each for each in LABELS if each in row), None)
    others |= {} if usual is None else {"human.overall": usual}
    new = renamed({name: each for name, each in row.items() if name != column}, others, human, where)
    if "id" not in new:
        raise InputError(f"{where}: {missing('id', row, fields)} Rows of one output are known by it.")
    ratings, comment = new.pop("human", {}), new.pop("comment", None)
    output = found.setdefault(new["id"], _Output(where, new))
    for name in TEXTS[1:]:
        if name in new and str(new[name]).strip() and output.row.setdefault(name, new[name]) != new[name]:
            raise InputError(
                f"{where}: field '{name}': it is another one than in {output.where}, and both are of '{new['id']}'."
            )
    mine = output.said.setdefault(str(rater).strip(), {"human": {}, "comment": []})
    if not isinstance(ratings, Mapping):
        raise InputError(f"{where}: field 'human': an object from dimension to number or label is needed.")
    for dimension, given in ratings.items():
        _rate(output, where, str(rater).strip(), dimension, given)
    if comment is not None and comment not in mine["comment"]:
        mine["comment"] = [*mine["comment"], comment]


def _rate(output: _Output, where: str, rater: str, dimension: str, given: Any) -> None:
    """Note a rating. Raises InputError where the rater gave another one before."""
    rating = given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given
    mine = output.said[rater]["human"]
    before = mine.setdefault(dimension, rating)
    if before != rating or isinstance(before, bool) is not isinstance(rating, bool):
        raise InputError(
            f"{where}: field 'human.{dimension}': {rater} rated '{output.row['id']}' with {_shown(rating)}, and with "
            f"{_shown(before)} in {output.places[rater, dimension]}. Leave one of the two out."
        )
    output.places.setdefault((rater, dimension), where)


def _shown(rating: Any) -> str:
    return {True: "pass", False: "fail"}[rating] if isinstance(rating, bool) else str(rating)
