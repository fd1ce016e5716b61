"""A JSON schema that recorded values keep, and its words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
LONGEST_VALUE = 40
"""A longer text is no value of a set."""
LENGTH_STEP = 10
"""Lengths are rounded up to a multiple of it: nobody asks for at most 143 characters."""
MOST_KEYS = 40
"""An object with more different keys is a mapping, not a record."""
_NAMES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


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
            times = Counter(values)
            if (
                len(times) <= MOST_VALUES
                and len(values) >= OFTEN * len(times)
                and min(times.values()) > 1  # a value that came up once says that there are others
                and max(map(len, times)) <= LONGEST_VALUE
            ):
                return {"type": "string", "enum": sorted(times)}
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


def keys_of(values: Sequence[Any]) -> list[str]:
    """The keys of objects in values, at any depth, each once."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, dict):
            found |= dict.fromkeys([*map(str, value), *keys_of(list(value.values()))])
        elif isinstance(value, list):
            found |= dict.fromkeys(keys_of(value))
    return list(found)


WIDER = 2
"""Factor by which lengths are made wider where a schema checks outputs that nobody has seen."""
LEAST_LENGTH, LEAST_ITEMS = 100, 10
"""A limit that is found in outputs alone is never below it."""


def widened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with room for outputs that differ from those that it was found in."""
    found = {name: value for name, value in schema.items() if name != "minItems"}
    if "maxLength" in schema:
        found["maxLength"] = max(LEAST_LENGTH, WIDER * schema["maxLength"])
    if "maxItems" in schema:
        found["maxItems"] = max(LEAST_ITEMS, WIDER * schema["maxItems"])
    if "items" in schema:
        found["items"] = widened(schema["items"])
    if "anyOf" in schema:
        found["anyOf"] = [widened(each) for each in schema["anyOf"]]
    if "properties" in schema:
        found["properties"] = {key: widened(part) for key, part in schema["properties"].items()}
    return found


def part_of(schema: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """The schema of a key's value, where the key stands nearest to the top; None where it stands nowhere."""
    if key in schema.get("properties", {}):
        return dict(schema["properties"][key])
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return next((found for each in inner if (found := part_of(each, key)) is not None), None)


def with_part(schema: Mapping[str, Any], key: str, part: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema of one key alone, which takes any values of the others; None where the key stands nowhere."""
    if key in schema.get("properties", {}):
        required = [name for name in schema.get("required", ()) if name == key]
        return {"type": "object", "properties": {key: dict(part)}, "required": required}
    if "items" in schema and (inner := with_part(schema["items"], key, part)) is not None:
        return {"type": "array", "items": inner}
    for name, each in schema.get("properties", {}).items():
        if (inner := with_part(each, key, part)) is not None:
            return {"type": "object", "properties": {name: inner}}
    return None


def without_parts(schema: Mapping[str, Any], keys: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """The schema, which takes any value of some keys, and in which ``optional`` ones may be missing."""
    found = dict(schema)
    if "required" in schema:
        found["required"] = [key for key in schema["required"] if key not in optional]
    if "properties" in schema:
        found["properties"] = {
            key: {} if key in keys else without_parts(part, keys, optional)
            for key, part in schema["properties"].items()
        }
    if "items" in schema:
        found["items"] = without_parts(schema["items"], keys, optional)
    return found


def united(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One schema of several about the same values, e.g. one of all keys and one of each key; later ones add to it."""
    found: dict[str, Any] = {}
    for schema in schemas:
        for name, value in schema.items():
            if name == "properties":
                keys = {**found.get(name, {}), **value}
                found[name] = {key: united([found.get(name, {}).get(key, {}), value.get(key, {})]) for key in keys}
            elif name == "items":
                found[name] = united([found.get(name, {}), value])
            elif name == "required":
                found[name] = [*found.get(name, ()), *(key for key in value if key not in found.get(name, ()))]
            else:
                found[name] = value
    return found


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
