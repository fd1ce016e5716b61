"""IFBench (Pyatkin et al. 2025): prompts with constraints that code can check. It has no outputs: tune for them.

Accepted are the authors' ``IFBench_test.jsonl`` (``key``, ``prompt``, ``instruction_id_list``, ``kwargs``), the data
set on the hub, and the file from ``python -m askance.experiments.ifbench.run``. The official checkers, the choice of
prompts that can be checked here and the split of the paper (one prompt of every constraint type for development) are in
:mod:`askance.experiments.ifbench.run`; it takes the prompts from the checkers' own package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.field_map import FIELDS
from ...prompts.rows import validate_row
from .rows import Hub, Row, Source, rows_of

HUB = Hub("allenai/IFBench_test", "train", file="the authors' IFBench_test.jsonl")


def load_ifbench(source: Source = None) -> list[Example]:
    """Load the prompts, in the order of the file, as examples without an output; the constraints are metadata."""
    return [_example(row) for row in rows_of(source, HUB)]


def _example(row: Row) -> Example:
    if not row.has("prompt"):
        known = {name: value for name, value in row.values.items() if name in FIELDS and value is not None}
        metadata = Row(row.where, known.get("metadata") or {})
        return validate_row(Example, known | {"metadata": {**metadata.values, **_constraints(metadata)}}, row.where)
    fields = {"id": f"ifbench-{row['key']}", "input": row.text("prompt"), "metadata": _constraints(row)}
    return validate_row(Example, fields, row.where)


def _constraints(row: Row) -> dict[str, Any]:
    """The constraints with the arguments that are given; whole numbers are integers, as the checkers want them."""
    types, arguments = row.items("instruction_id_list"), row.items("kwargs")
    if len(types) != len(arguments) or not all(each is None or isinstance(each, Mapping) for each in arguments):
        raise InputError(f"{row.where}: 'kwargs' must have one object for each of 'instruction_id_list'.")
    return {"instruction_id_list": types, "kwargs": [_plain_arguments(each or {}) for each in arguments]}


def _plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not null, with whole numbers as integers: tables write them as 3.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in arguments.items()
        if value is not None
    }
