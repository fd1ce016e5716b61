"""Import of any file as examples or pairs, by the mapping that is proposed for it or by a changed one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from ..optimizer.weights.judged_pairs import load_pairs
from ..prompts.errors import InputError
from ..prompts.examples import load_examples
from ..prompts.field_map import FieldMap
from ..prompts.human_feedback import Labels, parse_labels
from ..prompts.mapping.proposal import ProposedMapping
from ..prompts.mapping.table import TRIED, Table, look_at
from .trace_examples import ImportedTraces, are_traces, import_traces


def import_file(
    files: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    span: str | None = None,
    scores: Sequence[str] = (),
    fields: FieldMap | None = None,
    labels: Labels | None = None,
    label_scale: Sequence[str] | None = None,
) -> ImportedTraces:
    """Make examples, or pairs, of any file by the proposed mapping, as ``askance import --yes`` does.

    Args:
        files: One file; several for traces.
        source: The tool or data set; None detects it.
        span: See :func:`~askance.import_traces`.
        scores: See :func:`~askance.import_traces`.
        fields: Map of our field to a column, in place of the proposed one; ``None`` or an empty text removes a field.
        labels: Further words of labels, as for ``load_examples``.
        label_scale: Words from worst to best.

    Raises:
        InputError: A file cannot be read, or the mapping does not read it.
    """
    paths = [Path(each) for each in ([files] if isinstance(files, (str, Path)) else files)]
    if are_traces(paths, source):
        return import_traces(paths, source=source, span=span, scores=scores, fields=fields)
    if len(paths) > 1 or span or scores:
        raise InputError(f"{paths[-1]}: several files, span and scores are for traces; give one table.")
    scale = tuple(label_scale) if label_scale else None
    table = look_at(paths[0], source).changed(fields or {}, parse_labels(labels or {}), scale, None)
    if problem := problem_of(table):
        raise InputError(problem)
    rows = tuple(json.loads(line) for line in rows_of_table(table))
    return ImportedTraces(rows, table.proposal.form or "a table", (*table.described(), f"Read by: {table.line()}"))


def problem_of(table: Table) -> str:
    """Return the error of the mapping on a table's first rows; an empty text if it reads them."""
    return table.problem(lambda source, mapping: _read(source, mapping, TRIED))


def rows_of_table(table: Table) -> Iterator[str]:
    """Return the lines of a file of examples or pairs. Raises InputError if the mapping does not read the table."""
    fields = table.proposal.fields.values()
    paths = [each for given in fields for each in ([given] if isinstance(given, str) else given)]
    records = _read(table.source, table.proposal, None)
    return (json.dumps(_row(each.model_dump(), paths), ensure_ascii=False) + "\n" for each in records)


def _read(source: str, mapping: ProposedMapping, limit: int | None) -> Any:
    if mapping.pairs:
        return load_pairs(source, limit=limit, fields=mapping.fields, labels=mapping.labels)
    return load_examples(
        source,
        limit=limit,
        need_output=False,
        fields=mapping.fields,
        labels=mapping.labels,
        label_scale=mapping.label_scale,
        remarks=limit is None,
    )


def _row(row: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """Return the row to write, without empty fields, and without mapped columns that ``metadata`` repeats."""
    human = {name: each[0] if len(each) == 1 else list(each) for name, each in (row.get("human") or {}).items()}
    metadata = deepcopy(row.get("metadata") or {})
    for path in paths:
        _remove(metadata, path)
    filled = {**row, "human": human, "metadata": metadata}
    return {name: value for name, value in filled.items() if value not in (None, {}, (), [])}


def _remove(value: Any, path: str) -> None:
    """Remove the value at a path from nested objects, and the objects that become empty."""
    if not isinstance(value, dict):
        return
    head, dot, tail = path.partition(".")
    if not dot:
        value.pop(path, None)
    elif head in value:
        _remove(value[head], tail)
        if value[head] == {}:
            del value[head]
