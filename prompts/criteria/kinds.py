"""Kinds of checks: the value that each takes, the question that it answers, and how a file holds a schema.

``agents/checks.py`` computes checks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..errors import InputError, like_named
from ..text_files import read_text

CheckKind = Literal["json", "schema", "fields", "begins", "ends", "matches", "language", "length", "checker"]
OF_SCHEMAS = ("schema", "fields")
"""Kinds whose value is a JSON schema."""
WANTED: dict[str, str] = {
    "schema": "a JSON schema, or the file that holds one",
    "fields": "a JSON schema, or the file that holds one; the JSON may stand in a code fence or have text around it",
    "begins": "the text that an output begins with",
    "ends": "the text that an output ends with",
    "matches": "a regular expression, which is looked for anywhere in the output",
    "language": "codes of languages, e.g. de or de, fr",
    "length": "a number of words, characters, sentences, lines or paragraphs, e.g. at most 8 words or 5 to 40 words",
    "checker": "a function, as module:function or file.py:function",
}
"""The ``value`` that each kind of check takes; ``json`` takes none."""
_LENGTH = re.compile(
    r"(?:(at most|at least|exactly)\s+)?(\d{1,9})(?:\s*(?:-|\u2013|to)\s*(\d{1,9}))?\s+"
    r"(character|word|sentence|line|paragraph)s?",
    re.IGNORECASE,
)


class LengthBand(NamedTuple):
    """How long an output may be."""

    unit: str
    """``character``, ``word``, ``sentence``, ``line`` or ``paragraph``."""
    least: int
    most: int | None
    """None: any number."""

    @classmethod
    def of(cls, text: str) -> LengthBand:
        """Read ``at most 8 words``, ``at least 2 sentences``, ``5 to 40 words`` or ``3 lines``.

        Raises:
            ValueError: It is none of these, or its ends are the wrong way round.
        """
        found = _LENGTH.fullmatch(text.strip())
        bound, low, high, unit = found.groups() if found else (None, "0", None, "")
        if found is None or (bound and high):
            raise ValueError(f"{WANTED['length']} is needed, not '{text}'")
        least, most = int(low), int(high or low)
        if least > most:
            raise ValueError(f"the smaller number comes first, not '{text}'")
        word = (bound or "").lower()
        return cls(unit.lower(), 0 if word == "at most" else least, None if word == "at least" else most)


def refuse_value(kind: str, value: str | None) -> None:
    """See that a kind of check can use its value.

    Raises:
        ValueError: It cannot; the message names the field.
    """
    wanted = WANTED.get(kind)
    if wanted is None and value is not None:
        raise ValueError(f"field 'value': a check of the kind {kind} takes none")
    if wanted is not None and not (value or "").strip():
        raise ValueError(f"field 'value': a check of the kind {kind} needs {wanted}")
    text = value or ""
    if kind == "length":
        LengthBand.of(text)
    elif kind == "matches":
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"field 'value': '{text}' is no regular expression ({error})") from None
    elif kind in OF_SCHEMAS and (problem := schema_problem(text)):
        raise ValueError(f"field 'value': this is no JSON schema: {problem}")


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


def said_of(kind: str, value: Any) -> str:
    """The question that a check answers, in words."""
    quoted = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    said = {
        "json": "Is the output valid JSON?",
        "schema": "Does the output follow its JSON schema?",
        "fields": "Does the JSON in the output follow its schema?",
        "begins": f"Does the output begin with {quoted}?",
        "ends": f"Does the output end with {quoted}?",
        "matches": f"Does the output match the pattern {value}?",
        "language": f"Is the output written in the language {value}?",
        "length": f"Is the output {value} long?",
        "checker": f"Does the output pass the check '{str(value).rpartition(':')[2]}'?",
    }
    return said.get(kind, kind)


def read_schema(path: Path, where: str = "") -> str:
    """The text of a file that holds a JSON schema; ``where`` it is named is put in front of errors.

    Raises:
        InputError: There is no such file, or it is no JSON.
    """
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise InputError(f"{where}there is no schema file {path}.{like_named(path)}") from None
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}{path}: not valid JSON ({error}), so no JSON schema.") from None


def with_schemas(texts: Any, typed: Any) -> Any:
    """Checks whose scalars are texts, with numbers in the schemas that stand in the file itself."""
    if not isinstance(texts, list):
        return texts
    return [
        {**each, "value": same["value"]} if isinstance(each, dict) and isinstance(each.get("value"), dict) else each
        for each, same in zip(texts, typed, strict=True)
    ]


def with_its_file(check: Any, name: str) -> Any:
    """A check in a file, with the schema in place of the name of the file that holds it."""
    value = check.get("value") if isinstance(check, dict) and check.get("kind") in OF_SCHEMAS else None
    if not isinstance(value, str) or value.lstrip()[:1] in ("", "{"):
        return check
    beside = Path(name).parent / value
    return {**check, "value": read_schema(beside if beside.is_file() else Path(value), f"{name}: ")}
