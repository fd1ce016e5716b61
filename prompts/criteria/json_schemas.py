"""JSON schemas of checks: is a text one, and what in a value does not follow it. Nothing is fetched."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from ..text import shorten
from .patterns import first_match

MOST_ERRORS = 3
"""Places told in which a value does not follow its schema."""


def schema_problem(text: str) -> str | None:
    """Why a text is no JSON schema that can be checked here, with the place in it; None where it is one."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not valid JSON ({error})"
    if not isinstance(schema, (dict, bool)):
        return "an object is needed"
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return f"at {error.json_path}: {error.message:.200}"
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    for place in _references(schema):
        try:
            resolver.lookup(place)
        except Unresolvable:
            return f"$ref '{place}' leads nowhere; everything that a schema refers to must stand in the schema itself"
    return None


def _references(schema: Any) -> list[str]:
    """Every ``$ref`` in a schema."""
    if isinstance(schema, list):
        return [place for each in schema for place in _references(each)]
    if not isinstance(schema, dict):
        return []
    here = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return here + [
        place for name, each in schema.items() if name not in ("enum", "const") for place in _references(each)
    ]


def schema_errors(value: Any, schema: str) -> str | None:
    """The first places in which a value does not follow a schema, given as JSON; None where it follows it."""
    try:
        errors = sorted(_validator(schema).iter_errors(value), key=lambda each: len(each.absolute_path))
    except RecursionError:
        return "it is nested too deeply to be held against its schema"
    told = [f"at {each.json_path}: {shorten(each.message, 160)}" for each in errors[:MOST_ERRORS]]
    more = f" (and {len(errors) - MOST_ERRORS} more)" if len(errors) > MOST_ERRORS else ""
    return "; ".join(told) + more if told else None


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    def pattern(validator: Any, wanted: str, value: Any, _: Any) -> Any:
        if isinstance(value, str) and first_match(wanted, value) is None:
            yield ValidationError(f"{value!r} does not match {wanted!r}")

    data = json.loads(schema)
    kind = extend(validator_for(data), {"pattern": pattern})
    return kind(data, registry=Registry())  # an empty registry: nothing is fetched from the network
