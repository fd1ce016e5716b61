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
    words = limit_of_words(schema.get("pattern", ""))
    found = {name: value for name, value in schema.items() if name != "pattern" or words is None}
    if words is not None:
        found["maxLength"] = LETTERS * words
    for name in _LIMITS:
        if name in seen:
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


def is_cut(output: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text of an output in JSON has all the characters that the schema allows, so that it may end in a word."""
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
