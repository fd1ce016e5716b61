"""A look at a file: the part with the rows, their columns, and a proposed mapping that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ..errors import AskanceError, InputError, as_typed
from ..formatting import count
from ..json_documents import SeveralListsError
from ..rows import is_on_hub, source_rows
from ..tables import file_and_sheet
from .columns import LOOKED_AT, DataColumn, columns_in
from .proposal import ProposedMapping, propose
from .published import form_of

TRIED = 200
"""Number of rows on which a mapping is tried before it is proposed."""
MOST_SHOWN = 60
"""Maximum number of columns that are shown."""
P = ParamSpec("P")
Loaded = TypeVar("Loaded")
Try = Callable[[Any, ProposedMapping], Any]
"""Reads the first rows of a source with a mapping; raises InputError if that fails."""


@dataclass(frozen=True)
class Table:
    """A file with its columns, and the proposed mapping that reads it."""

    source: Any
    """The file, with the part that has the rows; or the rows themselves."""
    rows: int
    """Number of rows that were read."""
    is_whole: bool
    """Whether these are all rows of the file."""
    columns: Mapping[str, DataColumn]
    proposal: ProposedMapping

    def described(self) -> Iterator[str]:
        """Yield lines that describe the file's content, and the field that each column is taken for."""
        rows = count(self.rows, "row") if self.is_whole else f"the first {self.rows:,} rows"
        form = f" It looks like {self.proposal.form}." if self.proposal.form else ""
        yield f"{self.source}: {rows}, {count(len(self.columns), 'column')}.{form}"
        shown = [*self.columns.values()][:MOST_SHOWN]
        width = min(max((len(each.path) for each in shown), default=0), 48)
        for each in shown:
            ours = ", ".join(self._taken_for(each))
            yield f"  {each.path:{width}}  {each.described()}{f'  -> {ours}' if ours else ''}"
        if others := len(self.columns) - len(shown):
            yield f"  and {count(others, 'column')} more"
        yield from self.proposal.notes
        if not self.proposal.pairs and "output" not in self.proposal.has:
            yield "There is no output to judge; a generator writes one for each row (askance generate, askance tune)."

    def _taken_for(self, column: DataColumn) -> Iterator[str]:
        mapped = self.proposal.fields
        for ours, given in mapped.items():
            paths = [given] if isinstance(given, str) else given
            if any(column.path == path or path.startswith(f"{column.path}.") for path in paths):
                yield ours
        own = column.path if column.path in self.proposal.has else column.path.casefold()
        if own not in mapped and own in self.proposal.has and column.path not in mapped.values():
            yield own

    def line(self) -> str:
        """Return the command that reads the file, with the options that concern the file."""
        command = "weigh" if self.proposal.pairs else "evaluate"
        return f"askance {command} {as_typed(self.source)} {self.proposal.line()}".rstrip()

    def problem(self, read: Try) -> str:
        """Return the error of the mapping on the first rows; empty if it reads them."""
        if lacks := self.proposal.lacks:
            return f"No column looks like the {' or '.join(lacks)}: --field {lacks[0]}=COLUMN names it."
        try:
            read(self.source, self.proposal)
        except InputError as error:
            return str(error)
        return ""

    def changed(
        self,
        fields: Mapping[str, Any],
        labels: Mapping[str, tuple[str, ...]],
        label_scale: tuple[str, ...] | None,
        human_scale: tuple[float, float] | None,
    ) -> Table:
        """Return the table with the user's fields and other settings; a field without a column is removed."""
        found = self.proposal
        given = {name: each for name, each in {**found.fields, **fields}.items() if each}
        has = [each for each in found.has if fields.get(each, each)]
        proposal = replace(
            found,
            fields=given,
            has=(*has, *given),
            labels=labels or found.labels,
            label_scale=label_scale or found.label_scale,
            human_scale=human_scale or found.human_scale,
        )
        return replace(self, proposal=proposal)


def look_at(file: Any, source: str | None = None) -> Table:
    """Look at a file, and propose a mapping that reads it.

    Args:
        file: Any file that commands read, a name on the hub, a data frame or rows.
        source: The name of a published form; detected if it is None.

    Raises:
        InputError: The file cannot be read, holds no rows, or does not have the form.
    """
    tables = [_table(each, source) for each in _parts(str(file) if isinstance(file, Path) else file)]
    if source is not None and not any(each.proposal.form for each in tables):
        raise InputError(f"{file}: not as {source} exports it; it has: {', '.join(tables[0].columns)}.")
    return max(tables, key=_promise)


def _promise(table: Table) -> tuple[bool, bool, int, int]:
    """Return a sort key: the higher, the likelier this part of a document holds the rows."""
    found = table.proposal
    return bool(found.form), not found.lacks, len(found.has), table.rows


def _parts(file: Any) -> list[Any]:
    """Return the file, or its parts if any of several lists may hold the rows."""
    try:
        next(source_rows(file), None)
    except SeveralListsError as error:
        return [f"{file}#{each}" for each in error.parts]
    return [file]


def _table(source: Any, name: str | None) -> Table:
    rows, is_whole = _first_rows(source)
    columns = columns_in(rows)
    form = form_of(columns, name)
    if form is not None and form.within and isinstance(source, str):
        source = f"{file_and_sheet(source)[0]}#{form.within}"
        rows, is_whole = _first_rows(source)
        columns = columns_in(rows)
    return Table(source, len(rows), is_whole, columns, propose(columns, form))


def _first_rows(source: Any) -> tuple[list[Mapping[str, Any]], bool]:
    rows = [row for _, row in islice(source_rows(source), LOOKED_AT + 1) if row and isinstance(row, Mapping)]
    if not rows:
        raise InputError(f"{source}: there is nothing in it.")
    return rows[:LOOKED_AT], len(rows) <= LOOKED_AT


def proposes_mapping(*, pairs: bool = False) -> Callable[[Callable[P, Loaded]], Callable[P, Loaded]]:
    """Decorate a loader so that its errors propose options that would read the source, if there are any.

    The loader takes a source and, as keywords, ``fields``, ``labels`` and ``limit``; a loader of examples also takes
    ``label_scale`` and ``remarks``. ``pairs`` says that it loads pairs.
    """

    def decorate(load: Callable[P, Loaded]) -> Callable[P, Loaded]:
        @wraps(load)
        def call(*source: P.args, **given: P.kwargs) -> Loaded:
            try:
                return load(*source, **given)
            except InputError as error:
                others = {} if pairs else {"remarks": False}

                def read(place: Any, mapping: Mapping[str, Any]) -> Any:
                    return load(place, **{**given, **mapping, **others, "limit": TRIED})

                if said := _advice(source[0] if source else given.get("source"), given, pairs, read):
                    raise InputError(f"{str(error).rstrip('.')}.{said}") from None
                raise

        return call

    return decorate


def _advice(source: Any, given: Mapping[str, Any], pairs: bool, read: Callable[[Any, Mapping[str, Any]], Any]) -> str:
    """Return a sentence with the options that would read a source; empty if none are found."""
    if isinstance(source, Iterator) or is_on_hub(source):
        return ""
    try:
        table = look_at(source)
        found = table.proposal
        if found.is_traces:
            return (
                f" These are {found.form}; askance import {as_typed(source)} -o examples.jsonl makes examples of them."
            )
        if found.pairs != pairs:
            if {"output", "output_a", "output_b"} & (given.get("fields") or {}).keys():  # the user said what they are
                return ""
            other = "pairs of outputs, which askance weigh" if found.pairs else "single outputs, which askance evaluate"
            return f" These rows are {other} reads." if {"output", "output_a", "chosen"} & {*found.has} else ""
        if not _fails(source, {}, read):
            return ""
        texts = {name: each for name, each in found.fields.items() if not name.startswith(("human", "comment"))}
        for fields in (found.fields, texts):
            mapping = {
                "fields": {**fields, **(given.get("fields") or {})},
                "labels": given.get("labels") or found.labels,
            }
            mapping |= {} if pairs else {"label_scale": given.get("label_scale") or found.label_scale}
            if not _fails(table.source, mapping, read):
                place = "" if table.source is source or table.source == str(source) else f"{as_typed(table.source)} "
                left = {name: each for name, each in fields.items() if name not in (given.get("fields") or {})}
                return f" This would read it: {place}{replace(found, fields=left).line()}".rstrip()
    except AskanceError:
        pass
    return ""


def _fails(source: Any, mapping: Mapping[str, Any], read: Callable[[Any, Mapping[str, Any]], Any]) -> bool:
    try:
        read(source, mapping)
    except InputError:
        return True
    return False
