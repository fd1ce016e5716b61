"""The contract of JSON outputs as an endpoint enforces it, and as a form that a writer fills in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...prompts.checklist import ComputedCheck, Question
from ...prompts.criteria.kinds import OF_SCHEMAS
from .found_rules import json_values
from .key_clauses import KEY
from .schemas import LENGTH_STEP, schema_of, schema_said, united
from .wording import tightened

LETTERS = 6
"""Characters of a word with the blank after it."""
ROOM = 1.25
"""Room beyond the longest text and list of the old outputs."""
CUT_CHECK = "not_cut"
"""Id of the check that no text ends where the schema ends it."""
_NO_STOP = r"[^.!?…。！？]\s*$"
_LIMITS = ("maxLength", "maxItems")
_WORDS = re.compile(r"\^\\{1,2}s\*\\{1,2}S\+\(\?:\\{1,2}s\+\\{1,2}S\+\)\{\d+,(\d+)\}\\{1,2}s\*\$")


def limit_of_words(pattern: str) -> int | None:
    """Most words of the texts of a pattern that counts words, or of a schema in JSON that holds one; else None."""
    found = _WORDS.search(pattern)
    return None if found is None else int(found[1]) + 1


def contract_of(criteria: Sequence[Question]) -> dict[str, Any] | None:
    """The schema of all checks of JSON; None where there is none."""
    checks = (each for each in criteria if isinstance(each, ComputedCheck) and each.weight and not each.is_fault)
    schemas = [schema for each in checks if each.kind in OF_SCHEMAS and (schema := json.loads(each.value or "{}"))]
    return united(schemas) if schemas and all(isinstance(each, dict) for each in schemas) else None


def sent_schema(criteria: Sequence[Question], outputs: Sequence[str] = ()) -> dict[str, Any] | None:
    """The schema to be sent with requests; None where no check has one.

    A limit of words becomes one of characters, which endpoints can enforce. Limits are no wider than the ``outputs`` of
    the old model need: a writer that copies its input is stopped before its room is used up.
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
    """The check that no text of a JSON output ends where the schema ends it; None where the schema ends none.

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
    """The schema of values without a text of the greatest length; empty where no text has one."""
    if "maxLength" in schema and "enum" not in schema:
        most = schema["maxLength"]
        return {"not": {"type": "string", "minLength": most, "maxLength": most, "pattern": _NO_STOP}}
    inner = {key: found for key, part in schema.get("properties", {}).items() if (found := _not_cut(part))}
    items = _not_cut(schema["items"]) if isinstance(schema.get("items"), dict) else {}
    return ({"properties": inner} if inner else {}) | ({"items": items} if items else {})


def _cut_length(schema: Mapping[str, Any]) -> int | None:
    """The length at which texts are cut by what :func:`cut_check` says of them."""
    ends = schema.get("not", {})
    return (
        ends["maxLength"] if ends.get("maxLength") is not None and ends["maxLength"] == ends.get("minLength") else None
    )


def cut_lengths(schema: Mapping[str, Any], key: str = "") -> dict[str, int]:
    """The length at which the text of each key is cut, by the schema of a :func:`cut_check`; empty for other
    schemas."""
    if (most := _cut_length(schema)) is not None:
        return {key: most}
    parts = [*schema.get("properties", {}).items(), *([(key, schema["items"])] if "items" in schema else [])]
    return {name: most for inner, part in parts for name, most in cut_lengths(part, inner).items()}


def is_cut(output: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text of an output in JSON has all the characters that the schema allows, so that it may end in a
    word."""
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
    """The JSON as a form to be filled in: each key with what it holds, in the prompt's words where these are known.

    None where no check says what keys there are.
    """
    schema = sent_schema(criteria, outputs)
    if schema is None or not schema.get("properties", schema.get("items", {}).get("properties")):
        return None
    said: dict[str, str] = {}
    for each in criteria:
        if isinstance(each, ComputedCheck) and each.kind in OF_SCHEMAS and each.clause:
            for line in each.clause.splitlines():
                if key := KEY.match(line):
                    said[key[1]] = tightened(line[key.end() :]).strip(" ,;.")
    return _filled(schema, said, "")


def _filled(schema: Mapping[str, Any], said: Mapping[str, str], key: str) -> str:
    """A schema as a form."""
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
