"""Kinds of checks: the value that each takes, the question that it answers, and how a file holds a schema.

``agents/decided.py`` decides the checks that need only an output, ``agents/checks.py`` all checks. References in a JSON
schema are never fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..errors import InputError, like_named
from ..text import shorten
from ..text_files import read_text
from .patterns import HOW_MANY, LENGTHS, LengthBand, band_of, first_match

CheckKind = Literal[
    "json", "schema", "fields", "begins", "ends", "matches", "language", "length", "checker",
    "tools", "calls", "arguments", "order", "calls_as",
]  # fmt: skip
OF_SCHEMAS = ("schema", "fields")
"""Kinds whose value is a JSON schema."""
WANTED: dict[str, str] = {
    "schema": "a JSON schema, or the file that holds one",
    "fields": "a JSON schema, or the file that holds one; the JSON may stand in a code fence or have text around it",
    "begins": "the text that an output begins with",
    "ends": "the text that an output ends with",
    "matches": "a regular expression, which is looked for anywhere in the output",
    "language": "codes of languages, e.g. de or de, fr",
    "length": LENGTHS,
    "checker": "a function, as module:function or file.py:function",
    "tools": "names of tools, e.g. search, lookup",
    "calls": "a number of calls, of all tools or of one, e.g. 1 to 4 calls or at least 1 call of search",
    "arguments": "a JSON schema for each tool, by its name",
    "order": "two tools, e.g. search before answer",
    "calls_as": "tools, order, arguments, or arguments except some, e.g. arguments except mail.body, mail.subject",
}
"""The ``value`` that each kind of check takes; ``json`` takes none."""
_CALLS = re.compile(HOW_MANY + r"calls?(?:\s+of\s+(\S+))?", re.IGNORECASE)


class CallBand(NamedTuple):
    """The number of calls of tools that an output may hold."""

    tool: str | None
    """The tool whose calls are counted; None for all tools."""
    least: int
    most: int | None
    """The largest number; None for no limit."""

    @classmethod
    def of(cls, text: str) -> CallBand:
        """Read ``1 to 4 calls`` or ``at least 1 call of search``. Raises ValueError as :meth:`LengthBand.of`."""
        return cls(*band_of(_CALLS, WANTED["calls"], text))


def tool_names(text: str) -> list[str]:
    """Read ``search, lookup``. Raises ValueError if the text is not a list of names."""
    names = [each.strip() for each in text.split(",")]
    if not all(names) or any(re.search(r"\s", each) for each in names):
        raise ValueError(f"{WANTED['tools']} is needed, not '{text}'")
    return names


def tool_order(text: str) -> tuple[str, str]:
    """Read ``search before answer``. Raises ValueError if the text does not name two different tools."""
    found = re.fullmatch(r"\s*(\S+)\s+before\s+(\S+)\s*", text)
    if found is None or found[1] == found[2]:
        raise ValueError(f"{WANTED['order']} is needed, not '{text}'")
    return found[1], found[2]


class SameCalls(NamedTuple):
    """The part of its calls in which an output must equal the recorded output."""

    part: Literal["tools", "order", "arguments"]
    left_out: frozenset[str] = frozenset()
    """Arguments that may differ, as ``TOOL.NAME``."""

    @classmethod
    def of(cls, text: str) -> SameCalls:
        """Read ``tools``, ``order``, ``arguments`` or ``arguments except search.query``. Raises ValueError for any
        other text."""
        part, _, others = text.strip().partition(" except ")
        if part not in ("tools", "order", "arguments") or (others and part != "arguments"):
            raise ValueError(f"{WANTED['calls_as']} is needed, not '{text}'")
        left_out = tool_names(others) if others else []
        for each in (one for one in left_out if "." not in one):
            raise ValueError(f"an argument is named TOOL.ARGUMENT, not '{each}'")
        return cls(part, frozenset(left_out))  # type: ignore[arg-type]


def refuse_value(kind: str, value: str | None) -> None:
    """Check that a kind of check can use its value. Raises ValueError, which names the field, if it cannot."""
    wanted = WANTED.get(kind)
    if wanted is None and value is not None:
        raise ValueError(f"field 'value': a check of the kind {kind} takes none")
    if wanted is not None and not (value or "").strip():
        raise ValueError(f"field 'value': a check of the kind {kind} needs {wanted}")
    text = value or ""
    if kind in _READ:
        _READ[kind](text)
    elif kind == "matches":
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"field 'value': '{text}' is no regular expression ({error})") from None
    elif kind in OF_SCHEMAS and (problem := schema_problem(text)):
        raise ValueError(f"field 'value': this is no JSON schema: {problem}")
    elif kind == "arguments":
        for tool, schema in _by_tool(text).items():
            if problem := schema_problem(json.dumps(schema)):
                raise ValueError(f"field 'value': '{tool}' has no JSON schema: {problem}")


_READ: dict[str, Callable[[str], object]] = {
    "length": LengthBand.of,
    "calls": CallBand.of,
    "tools": tool_names,
    "order": tool_order,
    "calls_as": SameCalls.of,
}
"""Kind of check to the function that reads its value; the function raises ValueError for a wrong value."""


def _by_tool(text: str) -> dict[str, Any]:
    """Read the schemas by tool of a check of the kind ``arguments``. Raises ValueError if the text is not an object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"field 'value': not valid JSON ({error})") from None
    if not isinstance(found, dict) or not found:
        raise ValueError(f"field 'value': {WANTED['arguments']} is needed, e.g. {{search: {{type: object}}}}")
    return found


def said_of(kind: str, value: Any) -> str:
    """Return the question that a check answers, in words."""
    quoted = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    questions = {
        "json": "Is the output valid JSON?",
        "schema": "Does the output follow its JSON schema?",
        "fields": "Does the JSON in the output follow its schema?",
        "begins": f"Does the output begin with {quoted}?",
        "ends": f"Does the output end with {quoted}?",
        "matches": f"Does the output match the pattern {value}?",
        "language": f"Is the output written in the language {value}?",
        "length": f"Is the output {value} long?",
        "checker": f"Does the output pass the check '{str(value).rpartition(':')[2]}'?",
        "tools": f"Does the output call no tools but {value}?",
        "calls": f"Does the output make {value}?",
        "arguments": f"Do the arguments of {_tools_said(value)} follow their JSON schema?",
        "order": f"Does the output call {value}?",
        "calls_as": _SAME_SAID.get(str(value).split(" ")[0], kind),
    }
    return questions.get(kind, kind)


_SAME_SAID = {
    "tools": "Does the output call the tools that the recorded output calls?",
    "order": "Does the output call its tools in the order of the recorded output?",
    "arguments": "Does the output call its tools with the arguments of the recorded output?",
}


def _tools_said(value: Any) -> str:
    """Return the names of the tools of a check of the kind ``arguments``. Its value may not have been checked yet."""
    try:
        return ", ".join(json.loads(value))
    except (ValueError, TypeError, RecursionError):
        return "calls"


def read_schema(path: Path, where: str = "") -> str:
    """Read a file that holds a JSON schema; ``where``, the place that names the file, is put in front of errors. Raises
    InputError if there is no such file, or it is not JSON."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise InputError(f"{where}there is no schema file {path}.{like_named(path)}") from None
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}{path}: not valid JSON ({error}), so no JSON schema.") from None


def with_schemas(texts: Any, typed: Any) -> Any:
    """Return checks whose scalars were read as texts, but with the typed schemas that stand in the file itself."""
    if not isinstance(texts, list):
        return texts
    return [
        {**each, "value": same["value"]} if isinstance(each, dict) and isinstance(each.get("value"), dict) else each
        for each, same in zip(texts, typed, strict=True)
    ]


def with_its_file(check: Any, name: str) -> Any:
    """Return a check from a file; the name of a schema file is replaced by the schema."""
    value = check.get("value") if isinstance(check, dict) and check.get("kind") in OF_SCHEMAS else None
    if not isinstance(value, str) or value.lstrip()[:1] in ("", "{"):
        return check
    beside = Path(name).parent / value
    return {**check, "value": read_schema(beside if beside.is_file() else Path(value), f"{name}: ")}


MOST_ERRORS = 3
"""Maximum number of places that a message names at which a value does not follow its schema."""


def schema_problem(text: str) -> str | None:
    """Say why a text is not a JSON schema that can be used here, with the place in it; None if it is one."""
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
    """Return every ``$ref`` in a schema."""
    if isinstance(schema, list):
        return [place for each in schema for place in _references(each)]
    if not isinstance(schema, dict):
        return []
    here = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return here + [
        place for name, each in schema.items() if name not in ("enum", "const") for place in _references(each)
    ]


def schema_errors(value: Any, schema: str) -> str | None:
    """Describe the first places at which a value does not follow a schema, given as JSON; None if it follows it."""
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
