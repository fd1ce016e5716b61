"""Answers of the stand-in models of vendors: yes or no by a hash of name and request, or an object by a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any


@dataclass(frozen=True)
class Saying:
    """Reply of a model."""

    text: str
    thought: int
    """Tokens that it thought before."""
    written: int
    """Tokens of the answer and of the thinking."""
    finish: str
    """``stop`` or ``length``."""
    read: int
    """Tokens of the request."""


def say(
    model: str, asked: Sequence[str], cap: int | None, thought: int, schema: Mapping[str, Any] | None = None
) -> Saying:
    """The answer of a model that thinks so many tokens, within a cap on both together."""
    text, read = _answer(model, asked, schema), sum(map(len, asked)) // 4
    cap = 10**6 if cap is None else cap
    if cap <= thought:
        return Saying("", cap, cap, "length", read)
    room, tokens = cap - thought, max(1, len(text) // 4)
    if room < tokens:
        return Saying(text[: 4 * room], thought, cap, "length", read)
    return Saying(text, thought, thought + tokens, "stop", read)


def is_yes(model: str, asked: str) -> bool:
    """Whether a model says yes: always the same of the same text."""
    return sha256(f"{model}\n{asked}".encode("utf-8", "replace")).digest()[0] % 3 > 0


def _answer(model: str, asked: Sequence[str], schema: Mapping[str, Any] | None) -> str:
    last, whole = asked[-1], "\n".join(asked)
    if schema is not None:
        return json.dumps(_filled(schema, schema, model + last, ""))
    if {'"answer"', '"probability"'} <= set(re.findall(r'"\w+"', whole)):
        yes = is_yes(model, last)
        return json.dumps({"answer": "yes" if yes else "no", "probability": 83 if yes else 17, "explanation": "So."})
    if {'"answer"', '"explanation"'} <= set(re.findall(r'"\w+"', whole)):  # where an endpoint takes no schema
        return json.dumps({"answer": "yes" if is_yes(model, last) else "no", "explanation": "It says so."})
    if re.search(r"\byes or no\b", whole, re.IGNORECASE) and "JSON" not in whole:
        return "Yes" if is_yes(model, last) else "No"
    return f"The report {'names' if is_yes(model, last) else 'leaves out'} its year, its place and its author."


def _filled(schema: Any, root: Any, seed: str, name: str) -> Any:
    """A value that follows a JSON schema."""
    if "$ref" in schema:
        return _filled(root["$defs"][schema["$ref"].rpartition("/")[2]], root, seed, name)
    for kind in ("anyOf", "oneOf", "allOf"):
        if kind in schema:
            return _filled(schema[kind][0], root, seed, name)
    if "const" in schema:
        return schema["const"]
    if values := schema.get("enum"):
        lower = [str(value).lower() for value in values]
        if {"yes", "no"} <= set(lower):
            return values[lower.index("yes" if is_yes(seed, name) else "no")]
        return values[0]
    if "properties" in schema:
        fields = {key: _filled(subschema, root, seed + name, key) for key, subschema in schema["properties"].items()}
        if {"answer", "probability"} <= set(fields):
            fields["probability"] = 83 if str(fields["answer"]).lower() == "yes" else 17  # of yes, in percent
        return fields
    kind = schema.get("type")
    if kind == "array":
        return [_filled(schema["items"], root, seed, f"{name}{n}") for n in range(max(1, schema.get("minItems", 1)))]
    if kind == "integer" and schema.get("maximum") == 100:  # probability of yes, in percent, beside an answer
        return 90 if is_yes(seed, "answer") else 10
    if kind in ("integer", "number"):
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return is_yes(seed, name)
    return "State the year wherever the source gives one."
