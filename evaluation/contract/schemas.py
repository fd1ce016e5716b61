"""A JSON schema that recorded values keep, and its words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...agents.checks import compute
from ...prompts.checklist import ComputedCheck
from ...prompts.examples import Example

COMMON = 0.95
"""A key is required where this share of the objects has it; one is left out that 1 - COMMON have."""
MOST_VALUES = 8
"""A text with more different values is no set of values."""
OFTEN = 4
"""Times that each value of a set came up, on average."""
LENGTH_STEP = 10
"""Lengths are rounded up to a multiple of it: nobody asks for at most 143 characters."""
MOST_KEYS = 40
"""An object with more different keys is a mapping, not a record."""
_NAMES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def follows(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value follows a schema, as the check of the kind ``schema`` decides it."""
    return passes(ComputedCheck(id="schema", kind="schema", value=json.dumps(schema)), json.dumps(value))


def passes(check: ComputedCheck, output: str) -> bool:
    """Whether an output passes a check."""
    return check.is_good(compute(check, Example(id="output", input="", output=output)).answer) is True


def schema_of(values: Sequence[Any]) -> dict[str, Any]:
    """A JSON schema of values: types, keys, sets of values, lengths of texts and lists.

    A type that fewer than 5 % of the values have is left out.
    """
    by_kind: dict[str, list[Any]] = {}
    for value in values:
        by_kind.setdefault(_kind(value), []).append(value)
    if by_kind.keys() >= {"integer", "number"}:
        by_kind["number"] += by_kind.pop("integer")
    parts = [_of_kind(kind, some) for kind, some in by_kind.items() if len(some) > (1 - COMMON) * len(values)]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2 and {"type": "null"} in parts:  # a value or nothing
        [other] = [part for part in parts if part != {"type": "null"}]
        return {"enum": [*other["enum"], None]} if "enum" in other else {**other, "type": [other["type"], "null"]}
    return {"anyOf": parts}


def _kind(value: Any) -> str:
    return _NAMES.get(type(value), "array" if isinstance(value, list) else "object")


def _of_kind(kind: str, values: Sequence[Any]) -> dict[str, Any]:
    match kind:
        case "object":
            return _of_objects(values)
        case "array":
            return _of_lists(values)
        case "string":
            different = set(values)
            if len(different) <= MOST_VALUES and len(values) >= OFTEN * len(different):
                return {"type": "string", "enum": sorted(different)}
            longest = math.ceil(max(map(len, values)) / LENGTH_STEP) * LENGTH_STEP
            return {"type": "string", "maxLength": max(LENGTH_STEP, longest)}
        case _:
            return {"type": kind}


def _of_objects(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    times = Counter(key for value in values for key in value)
    keys = [key for key, count in times.items() if count > (1 - COMMON) * len(values)]
    if len(keys) > MOST_KEYS:
        return {"type": "object"}
    properties = {key: schema_of([value[key] for value in values if key in value]) for key in keys}
    required = [key for key in keys if times[key] >= COMMON * len(values)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of_lists(values: Sequence[Sequence[Any]]) -> dict[str, Any]:
    sizes, items = [len(value) for value in values], [item for value in values for item in value]
    found: dict[str, Any] = {"type": "array"}
    if items:
        found["items"] = schema_of(items)
    if min(sizes):
        found["minItems"] = min(sizes)
    return {**found, "maxItems": max(1, *sizes)}


def schema_said(schema: Mapping[str, Any]) -> str:
    """A schema in words, e.g. ``an object with "place": a text of at most 40 characters or null``."""
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(each, ensure_ascii=False) for each in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(schema_said, schema["anyOf"]))
    kinds = schema.get("type", "value")
    if isinstance(kinds, list):
        return " or ".join(schema_said({**schema, "type": each}) for each in kinds)
    match kinds:
        case "object" if schema.get("properties"):
            return "an object with " + "; ".join(_properties_said(schema))
        case "array":
            low, high = schema.get("minItems", 0), schema.get("maxItems")
            size = f"{low} to {high}" if low and low != high else f"{high}" if low else f"at most {high}"
            each = f", each {schema_said(schema['items'])}" if "items" in schema else ""
            return f"a list of {size} items{each}" if high is not None else f"a list{each}"
        case "string":
            return f"a text of at most {schema['maxLength']} characters" if "maxLength" in schema else "a text"
        case _:
            plain = {"integer": "a whole number", "boolean": "true or false", "null": "null", "object": "an object"}
            return plain.get(kinds, f"a {kinds}")


def _properties_said(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required", ())
    return [
        f'"{key}"{"" if key in required else " (may be missing)"}: {schema_said(part)}'
        for key, part in schema["properties"].items()
    ]
