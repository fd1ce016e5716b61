"""Any file made into examples or pairs, by the mapping that is proposed for it or a changed one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from ..optimizer.weights.judged_pairs import load_pairs
from ..prompts.examples import load_examples
from ..prompts.mapping.proposal import ProposedMapping
from ..prompts.mapping.table import TRIED, Table


def problem_of(table: Table) -> str:
    """What keeps the mapping of a table from reading its first rows; empty where nothing does."""
    return table.problem(lambda source, mapping: _read(source, mapping, TRIED))


def rows_of_table(table: Table) -> Iterator[str]:
    """The lines of an examples file, or of one of pairs.

    Raises:
        InputError: The mapping does not read the file.
    """
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
    """A row as it is written: without what is empty, and without the texts that metadata hold once more."""
    human = {name: each[0] if len(each) == 1 else list(each) for name, each in (row.get("human") or {}).items()}
    metadata = deepcopy(row.get("metadata") or {})
    for path in paths:
        _remove(metadata, path)
    filled = {**row, "human": human, "metadata": metadata}
    return {name: value for name, value in filled.items() if value not in (None, {}, (), [])}


def _remove(value: Any, path: str) -> None:
    """Take out of nested objects what stands at a path; an object that is empty then goes, too."""
    if not isinstance(value, dict):
        return
    head, dot, rest = path.partition(".")
    if not dot:
        value.pop(path, None)
    elif head in value:
        _remove(value[head], rest)
        if value[head] == {}:
            del value[head]
