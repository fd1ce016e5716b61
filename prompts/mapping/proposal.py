"""A mapping that reads a file, proposed from the names and values of its columns, and written as options."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from .columns import LOOKED_AT, OVERALL, DataColumn, RatedColumns, columns_in, of_program, ratings_in
from .published import (
    LETTERS,
    NAMES,
    NESTED_PARENTS,
    PAIR_INPUTS,
    PAIR_OUTPUT,
    PAIR_PREFERRED,
    PublishedForm,
    is_there,
    plain_name,
)

ORDER = ("id", "rater", "input", "output", "context", "reference", "system", "metadata", "human", "comment")
ASKED_FOR = ("reference", "output", "context", "input")
"""Fields with texts, in the order in which each chooses its column."""
OWN = ("human.", "comment.", "metadata.", "raters.")
"""Prefixes of columns that already have our names."""
LONGER_THAN_NAMES = 15
"""Letters from which on a value is rather a text than a person's name."""
Columns = Mapping[str, DataColumn]


@dataclass(frozen=True)
class ProposedMapping:
    """Options that read a file, and notes on them."""

    fields: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label_scale: tuple[str, ...] | None = None
    human_scale: tuple[float, float] | None = None
    pairs: bool = False
    """Whether the rows are pairs of outputs, as ``weigh`` takes them."""
    is_traces: bool = False
    """Whether the rows are traces; ``askance import`` makes examples of traces."""
    form: str = ""
    """The published form of the rows; empty if it is not known."""
    has: tuple[str, ...] = ()
    """Our fields that the rows have, through the mapping or under our own names."""
    notes: tuple[str, ...] = ()

    @property
    def lacks(self) -> list[str]:
        """Required fields that have no column."""
        return [each for each in ("input",) if each not in self.has and not self.pairs]

    def options(self) -> list[str]:
        """Return the options of a command line; empty if the file needs none."""
        arguments = []
        for ours, columns in self.fields.items():
            arguments += ["--field", f"{ours}={columns if isinstance(columns, str) else ','.join(columns)}"]
        if self.labels:
            pairs = [f"{side}={word}" for side, words in self.labels.items() for word in words]
            arguments += ["--labels", ",".join(pairs)]
        if self.label_scale:
            arguments += ["--label-scale", ",".join(self.label_scale)]
        if self.human_scale:
            arguments += ["--human-scale", *(f"{each:g}" for each in self.human_scale)]
        return arguments

    def line(self) -> str:
        """Return the options in one line, quoted for a shell."""
        return shlex.join(self.options())


def propose(columns: Columns, form: PublishedForm | None = None) -> ProposedMapping:
    """Propose a mapping for rows with these columns; ``form`` is their published form, if they have one."""
    if form is None and (found := _of_pairs(columns)) is not None:
        return found
    fields, has = _texts(columns) if form is None else _of_form(columns, form)
    if form is not None and form.pairs:
        return ProposedMapping(fields, form.labels, pairs=True, form=form.title, has=tuple(fields))
    used = {each for given in fields.values() for each in ([given] if isinstance(given, str) else given)}
    candidates = [each for path, each in columns.items() if path not in used | has.keys() and each.values]
    candidates = [each for each in candidates if form is None or form.is_peoples(each.path)]
    candidates = [each for each in candidates if not each.path.startswith(OWN)]
    ratings = ratings_in(candidates)
    fields |= {f"human.{name}": _paths(given) for name, given in ratings.columns.items()}
    if "output" in fields or "output" in has:  # a comment is about an output
        fields |= _comments(candidates, ratings, everything=form is not None)
    fields = dict(sorted(fields.items(), key=lambda each: ORDER.index(each[0].partition(".")[0])))
    prefixed = [path for path, each in columns.items() if path.startswith(OWN) and each.values]
    return ProposedMapping(
        fields,
        {**ratings.labels, **(form.labels if form else {})},
        ratings.label_scale,
        ratings.human_scale,
        form=form.title if form else "",
        is_traces=form is not None and form.traces,
        has=tuple(dict.fromkeys([*has, *fields, *prefixed])),
        notes=(*_said_of_ids(columns, fields), *ratings.notes, *([form.note] if form and form.note else [])),
    )


def scores_left(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence with the options for columns that look like people's scores but are not mapped; empty without
    any."""
    ratings = ratings_in([*columns_in(islice(rows, LOOKED_AT)).values()])
    fields = {f"human.{name}": _paths(given) for name, given in ratings.columns.items()}
    found = ProposedMapping(fields, ratings.labels, ratings.label_scale, ratings.human_scale)
    return f" These columns look like scores: {found.line()}" if fields else ""


def _paths(given: Sequence[DataColumn]) -> str | tuple[str, ...]:
    return given[0].path if len(given) == 1 else tuple(each.path for each in given)


# --- texts --------------------------------------------------------------------------------------------------------


def _own(columns: Columns) -> dict[str, str]:
    """Return our fields that have a column of the same name, in upper or lower case."""
    return {ours: path for path in columns if (ours := path.casefold()) in NAMES or ours == "metadata"}


def _of_form(columns: Columns, form: PublishedForm) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the mapping of a published form, with the paths that exist, and our fields that the rows have."""
    has, fields = _own(columns), dict[str, Any]()
    for ours, given in sorted(form.fields.items(), key=lambda each: "?" in each[1]):
        if path := _place(ours, given, columns, {*fields.values()}):
            fields[ours] = path
    if "id" not in fields and (identity := _identity(columns, has)) is not None:
        fields |= identity
    return {ours: path for ours, path in fields.items() if path != ours}, has | dict.fromkeys(fields, "")


def _texts(columns: Columns) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the mapping of texts and ids, and the columns that already have the names of our fields."""
    has, fields = _own(columns), dict[str, Any]()
    if "input" in has and (instruction := _of_name("instruction", columns)) is not None:
        fields |= {"input": instruction.path, "context": has.pop("input")}
    for path, column in columns.items():
        is_answered = column.kind == "messages" and column.last_role == "assistant" and column.rows
        if is_answered and "output" not in has and not _likeliest("output", columns, {path}):
            fields |= {"input": f"{path}.:-1", "output": f"{path}.-1"}
            break
    for field_name in ASKED_FOR:
        if field_name in has or field_name in fields:
            continue
        taken = {*fields.values(), *(path for name, path in has.items() if name != field_name)}
        if (best := _likeliest(field_name, columns, taken)) is not None:
            fields[field_name] = best.path
    _by_place(columns, fields, has)
    system = next((each for each in columns.values() if plain_name(each.name) in NAMES["system"].split()), None)
    if system is not None and "system" not in has and len(system.values) > 1 and not system.is_unique:
        fields["system"] = system.path
    long = _long_table(columns, has)
    fields |= long if long is not None else _identity(columns, has) or {}
    return fields, has


def _place(ours: str, given: str, columns: Columns, taken: set[str]) -> str:
    """Return the first path of ``given`` that exists, else an empty text; ``?`` is the likeliest column below."""
    there = [path for path, each in columns.items() if each.values]
    for path in given.split("|"):
        begin, asked, _ = path.partition("?")
        if not asked and any(is_there(seen, there) for seen in (path, path.replace(".0.", ".*."))):
            return path
        below = {each: column for each, column in columns.items() if asked and each.startswith(begin) and column.values}
        best = _likeliest(ours, below, taken)
        left = [each for path, each in below.items() if path not in taken and each.is_prose]
        if best is None and ours in ("input", "output") and left:
            best = max(left, key=lambda each: each.mean_letters)
        if best is not None:
            return best.path
    return ""


def _of_name(name: str, columns: Columns) -> DataColumn | None:
    return next((each for path, each in columns.items() if path.casefold() == name and each.values), None)


def _likeliest(ours: str, columns: Columns, taken: Iterable[str]) -> DataColumn | None:
    """Return the column whose name fits our field best, without those that are taken; None if no name fits."""
    used = set(taken)
    ranked = [(_rank(ours, each), each) for path, each in columns.items() if path not in used and each.values]
    rank, best = max(ranked, key=lambda each: each[0], default=(0.0, None))
    return best if rank > 0 else None


def _rank(ours: str, column: DataColumn) -> float:
    parts = [plain_name(each) for each in column.path.split(".")]
    name, above = plain_name(column.name), {word for part in parts[:-1] for word in (part, *part.split("_"))}
    if above & {"metadata", "config", "usage", "stats"} or "*" in column.path:
        return 0
    if ours != "reference" and above & NESTED_PARENTS["reference"]:
        return 0
    words = NAMES[ours].split()
    rank = 100 - words.index(name) if name in words else 0
    if not rank and column.is_prose:
        rank = max((50 - words.index(each) for each in name.split("_") if each in words), default=0)
    if above & NESTED_PARENTS.get(ours, set()):
        rank = max(rank + 60, 60) if column.is_prose or rank else 30
    elif above & {each for field, names in NESTED_PARENTS.items() if field != ours for each in names}:
        rank -= 70
    if column.kind in ("truth value", "number") and len(column.values) < column.rows:
        rank -= 60
    return rank - 3 * len(parts) if rank > 0 else 0


def _by_place(columns: Columns, fields: dict[str, Any], has: Mapping[str, str]) -> None:
    """Take the first long texts that are left as input and output, if no column's name fitted."""
    taken = {*fields.values(), *has.values()}
    comments = NAMES["comment"].split()
    candidates = [
        each
        for path, each in columns.items()
        if path not in taken and "." not in path and each.is_prose and not {*plain_name(path).split("_")} & {*comments}
    ]
    longer = [each for each in candidates if each.mean_letters >= LONGER_THAN_NAMES]
    candidates = longer if len(longer) > 1 else candidates
    for ours in ("input", "output"):
        if ours not in has and ours not in fields and candidates:
            fields[ours] = candidates.pop(0).path


def _long_table(columns: Columns, has: dict[str, str]) -> dict[str, str] | None:
    """Return the columns of ids and raters if each row is one rater's; else None."""
    rater = next((each for path, each in columns.items() if plain_name(path) in NAMES["rater"].split()), None)
    named = [path for path, each in columns.items() if "." not in path and _is_id(path) and each.values]
    several = [path for path in named if not columns[path].is_unique and path != (rater and rater.path)]
    if rater is None or not rater.values or not several:
        return None
    own = "id" if "id" in several else several[0]
    has |= {"id": own, "rater": rater.path}
    return {ours: path for ours, path in (("id", own), ("rater", rater.path)) if path != ours}


def _identity(columns: Columns, has: dict[str, str]) -> dict[str, str] | None:
    """Return the column of ids; an ``id`` column with repeated values becomes that of the document."""
    id_column = columns.get(has.get("id", ""))
    if id_column is not None and id_column.rows and id_column.is_unique:
        return None
    document = {"metadata.document": id_column.path} if id_column is not None and id_column.rows else {}
    if document:
        has.pop("id")
    named = [each for path, each in columns.items() if "." not in path and _is_id(path) and each.values]
    unique = [each for each in named if each.is_unique and each.kind in ("text", "number") and each is not id_column]
    return document | ({"id": unique[0].path} if unique else {}) or None


def _is_id(path: str) -> bool:
    name = plain_name(path)
    return name in NAMES["id"].split() or name.endswith(("_id", "_uuid")) or name == "index"


def _said_of_ids(columns: Columns, fields: Mapping[str, Any]) -> list[str]:
    if "metadata.document" in fields:
        path = fields["metadata.document"]
        name = f"{fields['id']} is the id of a row" if "id" in fields else "a row's id is a hash"
        return [f"'{path}' stands in several rows, so it is taken for their document; {name}."]
    named = [path for path, each in columns.items() if "." not in path and _is_id(path) and each.values]
    others = [each for each in named if each != fields.get("id", "id")]
    return [f"Other ids stay metadata: {', '.join(others)}."] if others and ("id" in fields or len(named) > 1) else []


# --- comments and pairs -------------------------------------------------------------------------------------------


def _comments(columns: Sequence[DataColumn], ratings: RatedColumns, *, everything: bool) -> dict[str, Any]:
    """Return the columns of comments: on the dimension whose score stands in the same object, else on the output.

    Texts with a name for comments are taken; with ``everything``, all texts are.
    """
    found: dict[str, list[str]] = {}
    dimensions = {each.path.rpartition(".")[0]: name for name, given in ratings.columns.items() for each in given}
    words = {*NAMES["comment"].split()}
    rated = [each for given in ratings.columns.values() for each in given]
    for column in columns:
        if column in rated or of_program(column):
            continue
        named = everything or {*plain_name(column.name).split("_")} & words
        if column.is_prose and named and column.path.casefold() != "comment":
            about = dimensions.get(column.path.rpartition(".")[0]) if "." in column.path else None
            name = f"comment.{about}" if about and about != OVERALL else "comment"
            found.setdefault(name, []).append(column.path)
    return {name: paths[0] if len(paths) == 1 else tuple(paths) for name, paths in found.items()}


def _of_pairs(columns: Columns) -> ProposedMapping | None:
    """Return the mapping for pairs of outputs; None if the columns are not those of pairs."""
    names = {path.casefold(): path for path in columns}
    if {"chosen", "rejected"} <= names.keys():
        return ProposedMapping(pairs=True, has=("chosen", "rejected"))
    sides = {LETTERS[match[1]]: path for name, path in names.items() if (match := PAIR_OUTPUT.fullmatch(name))}
    named = sides.keys() == {"a", "b"}
    if not named and not {"left", "right"} <= names.keys():
        return None
    sides = sides if named else {"a": names["left"], "b": names["right"]}
    mapping = ProposedMapping(pairs=True, has=("output_a", "output_b"))
    preferred = next((names[each] for each in ("preferred", *PAIR_PREFERRED) if each in names), None)
    fields = {} if named else {f"output_{side}": path for side, path in sides.items()}
    if not {"input", *PAIR_INPUTS} & names.keys() and (best := _likeliest("input", columns, sides.values())):
        fields["input"] = best.path
    if preferred is None:
        likely = [each for each in ratings_in([*columns.values()]).columns.values() if each]
        fields |= {"preferred": likely[0][0].path} if likely else {}
    return replace(mapping, fields=fields)
