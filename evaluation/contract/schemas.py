"""JSON schemas of outputs: found in recorded values, put into words, sent to an endpoint, and as a form to fill in."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...agents.checks import compute
from ...agents.decided import json_value
from ...prompts.checklist import ComputedCheck, Question
from ...prompts.criteria.kinds import OF_SCHEMAS
from ...prompts.examples import Example
from .wording import KEY, tightened

COMMON = 0.95
"""A key is required if at least this share of the objects has it, and left out if at most 1 - COMMON have it."""
MOST_VALUES = 8
"""Most different texts that make a set of values."""
OFTEN = 4
"""Fewest times, on average, that each value of a set came up."""
LONGEST_VALUE = 40
"""Most characters of a value of a set."""
LENGTH_STEP = 10
"""Lengths are rounded up to a multiple of this: nobody asks for at most 143 characters."""
MOST_KEYS = 40
"""Most different keys of a record; objects with more are mappings."""
_NAMES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def passes(check: ComputedCheck, output: str) -> bool:
    """Whether an output passes a check."""
    return check.is_good(compute(check, Example(id="output", input="", output=output)).answer) is True


def json_values(texts: Sequence[str]) -> list[Any]:
    """Return the JSON object or list that each text is or contains; other texts are skipped."""
    return [value for text in texts if isinstance(value := json_value(text)[0], (dict, list))]


def schema_of(values: Sequence[Any]) -> dict[str, Any]:
    """Derive a JSON schema from values: types, keys, sets of values, lengths of texts and lists.

    A type that at most 5 % of the values have is left out.
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
    """Return the keys of objects in values, at any depth, each once."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, dict):
            found |= dict.fromkeys([*map(str, value), *keys_of(list(value.values()))])
        elif isinstance(value, list):
            found |= dict.fromkeys(keys_of(value))
    return list(found)


WIDER = 2
"""Factor that widens lengths in a schema, because it checks outputs that nobody has seen."""
LEAST_LENGTH, LEAST_ITEMS = 100, 10
"""Smallest limits of characters and items that outputs alone can set."""


def widened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with room for outputs that differ from the recorded ones."""
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
    """Return the schema of a key's value, from the top level or else further in; None if the key is nowhere."""
    if key in schema.get("properties", {}):
        return dict(schema["properties"][key])
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return next((found for each in inner if (found := part_of(each, key)) is not None), None)


def with_part(schema: Mapping[str, Any], key: str, part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema that limits one key and takes any values of the others; None if the key is nowhere."""
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
    """Return the schema with any value allowed for ``keys``, and without requiring the ``optional`` keys."""
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
    """Merge schemas of the same values, e.g. one of all keys and one of each key; later ones add or override."""
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
    """Put a schema into words, e.g. ``an object with "place": a text of at most 40 characters or null``."""
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


LETTERS = 6
"""Characters that a word takes, with the blank after it."""
ROOM = 1.25
"""Factor of room beyond the longest text and list of the old outputs."""
CUT_CHECK = "not_cut"
"""Id of the check that no text was cut off at the schema's greatest length."""
_NO_STOP = r"[^.!?…。！？]\s*$"
_LIMITS = ("maxLength", "maxItems")
_WORDS = re.compile(r"\^\\{1,2}s\*\\{1,2}S\+\(\?:\\{1,2}s\+\\{1,2}S\+\)\{\d+,(\d+)\}\\{1,2}s\*\$")


def limit_of_words(pattern: str) -> int | None:
    """Return the word limit of a pattern, or of a JSON schema that holds one; None if no words are counted."""
    found = _WORDS.search(pattern)
    return None if found is None else int(found[1]) + 1


def contract_of(criteria: Sequence[Question]) -> dict[str, Any] | None:
    """Merge the schemas of all JSON checks; None if there are none."""
    checks = (each for each in criteria if isinstance(each, ComputedCheck) and each.weight and not each.is_fault)
    schemas = [schema for each in checks if each.kind in OF_SCHEMAS and (schema := json.loads(each.value or "{}"))]
    return united(schemas) if schemas and all(isinstance(each, dict) for each in schemas) else None


def sent_schema(criteria: Sequence[Question], outputs: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the schema to send with requests; None if no check has one.

    A limit of words becomes one of characters, which endpoints can enforce. Limits are no wider than the old model's
    ``outputs`` need: a writer that copies its input is stopped before its room is used up.
    """
    contract, values = contract_of(criteria), json_values(outputs)
    return None if contract is None else _enforceable(contract, schema_of(values) if values else {})


def _enforceable(schema: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    words, end = limit_of_words(schema.get("pattern", "")), _cut_length(schema)
    # a pattern of the end would let an endpoint put a full stop behind half a word
    left_out = {"not", "allOf", *(["pattern"] if words is not None else [])}
    found = {name: value for name, value in schema.items() if name not in left_out}
    if words is not None:
        found["maxLength"] = LETTERS * words
    if end is not None:
        found["maxLength"] = end
    for name in _LIMITS:
        if name in seen and (name != "maxLength" or end is None):
            step = LENGTH_STEP if name == "maxLength" else 1
            room = math.ceil(ROOM * seen[name] / step) * step
            found[name] = min(found.get(name, room), room)
    if "properties" in schema:
        inner = seen.get("properties", {})
        found["properties"] = {
            key: _enforceable(part, inner.get(key, {})) for key, part in schema["properties"].items()
        }
    if isinstance(schema.get("items"), dict):
        found["items"] = _enforceable(schema["items"], seen.get("items", {}))
    return found


def cut_check(criteria: Sequence[Question], outputs: Sequence[str]) -> ComputedCheck | None:
    """Return the check that no text of a JSON output was cut off; None if the schema sets no greatest length.

    An endpoint that enforces a schema stops a text at its greatest length, often within a word, and the JSON stays
    valid. Only a text of exactly that length without a full stop fails: an old output that is longer was not cut.
    """
    schema = sent_schema(criteria, outputs)
    value = None if schema is None else _not_cut(schema)
    if not value:
        return None
    text = "Does every text in the output come to its end, before the JSON schema ends it?"
    return ComputedCheck.model_validate(
        {"id": CUT_CHECK, "text": text, "kind": "fields", "value": value, "from": "contract"}
    )


def _not_cut(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that refuses texts cut off at the greatest length; empty if no text has one."""
    if "maxLength" in schema and "enum" not in schema:
        most = schema["maxLength"]
        return {"not": {"type": "string", "minLength": most, "maxLength": most, "pattern": _NO_STOP}}
    inner = {key: found for key, part in schema.get("properties", {}).items() if (found := _not_cut(part))}
    items = _not_cut(schema["items"]) if isinstance(schema.get("items"), dict) else {}
    return ({"properties": inner} if inner else {}) | ({"items": items} if items else {})


def _cut_length(schema: Mapping[str, Any]) -> int | None:
    """Return the length at which texts are cut, from the part of a :func:`cut_check` schema; None for other schemas."""
    ends = schema.get("not", {})
    return (
        ends["maxLength"] if ends.get("maxLength") is not None and ends["maxLength"] == ends.get("minLength") else None
    )


def cut_lengths(schema: Mapping[str, Any], key: str = "") -> dict[str, int]:
    """Return by key the length at which its text is cut, from the schema of a :func:`cut_check`; empty for other
    schemas."""
    if (most := _cut_length(schema)) is not None:
        return {key: most}
    parts = [*schema.get("properties", {}).items(), *([(key, schema["items"])] if "items" in schema else [])]
    return {name: most for inner, part in parts for name, most in cut_lengths(part, inner).items()}


def is_cut(output: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a text of a JSON output reaches the schema's greatest length, so that it may end in mid-word."""
    values = json_values([output])
    return any(_reaches(value, schema) for value in values)


def _reaches(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, str):
        return "enum" not in schema and len(value) >= schema.get("maxLength", math.inf)
    if isinstance(value, list):
        return any(_reaches(item, schema.get("items", {})) for item in value)
    parts = schema.get("properties", {})
    return isinstance(value, dict) and any(_reaches(part, parts.get(key, {})) for key, part in value.items())


def json_form(criteria: Sequence[Question], outputs: Sequence[str] = ()) -> str | None:
    """Return the JSON as a form to fill in: each key with its content in words, those of the prompt if they are known.

    None if no check says which keys there are.
    """
    schema = sent_schema(criteria, outputs)
    if schema is None or not schema.get("properties", schema.get("items", {}).get("properties")):
        return None
    descriptions: dict[str, str] = {}
    for each in criteria:
        if isinstance(each, ComputedCheck) and each.kind in OF_SCHEMAS and each.clause:
            for line in each.clause.splitlines():
                if key := KEY.match(line):
                    descriptions[key[1]] = tightened(line[key.end() :]).strip(" ,;.")
    return _filled(schema, descriptions, "")


def _filled(schema: Mapping[str, Any], said: Mapping[str, str], key: str) -> str:
    """Write a schema as a form."""
    if properties := schema.get("properties"):
        inner = (
            f"{json.dumps(name, ensure_ascii=False)}: {_filled(part, said, name)}" for name, part in properties.items()
        )
        return "{" + ", ".join(inner) + "}"
    if "enum" in schema:
        return " or ".join(json.dumps(each, ensure_ascii=False) for each in schema["enum"])
    kinds = schema.get("type", "string")
    if kinds == "array" and isinstance(schema.get("items"), dict) and schema["items"].get("properties"):
        return f"[{_filled(schema['items'], said, '')}]"
    holds = said.get(key) or schema_said(schema)
    if kinds == "array":
        return f'["<{holds}>"]'
    return f'"<{holds}>"' if "string" in kinds else f"<{holds}>"
