"""Clauses of a prompt about single keys of JSON outputs, e.g. ``"summary": one sentence of at most 25 words``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from .wording import (
    CONDITION,
    NUMBER,
    QUOTED_TEXT,
    SENTENCE_END,
    asks_for_sentence,
    clauses_of,
    length_of,
    listed_values,
    number_of,
)

KEY = re.compile(r"^\s*(?:[-*•]\s*)?(?:[\"“`']|\*\*)?([A-Za-z_][\w-]*(?: \w+)?)(?:[\"”`']|\*\*)?\s*(?::|-|–|=|\()\s*")
_KEY_IS = re.compile(r"\s*(?:The |the )?[\"“`']?([\w-]+)[\"”`']? (?:is|are|has|have|must be|should be|must have)\b\s*")
_ITEMS = re.compile(
    rf"(?:(at most|no more than|up to|max\.?|maximum|exactly|at least)\s+)?{NUMBER}(?:\s*(?:to|-|–|or)\s*{NUMBER})?\s+(?:\w+ )?"
    r"(?:items|names|keywords|tags|entries|elements|strings|words or phrases|topics|values|labels|points|people|steps)\b",
    re.IGNORECASE,
)
_NULL = re.compile(r"\b(?:null|None)\b")
_LEFT_OUT = re.compile(
    r"\b(?:optional|omit\w*|leave (?:it )?out|left out|only if|if (?:any|known|given|there))\b", re.IGNORECASE
)
_RANGE = re.compile(
    r"\b(?:number|integer|float|score|rating|value)\b[^.;]*?(-?\d+(?:\.\d+)?)\s*(?:-|–|to|and)\s*(\d+(?:\.\d+)?)"
)
"""Least and most of a number; other values are not touched by it."""
_ONE_OF = re.compile(r"\b(?:one of|either|must be|eines von|entweder)\b:?\s*", re.IGNORECASE)


class KeyClause(NamedTuple):
    """Words of the prompt about one key of a JSON object."""

    key: str
    clause: str
    limits: dict[str, Any]
    """A JSON schema of what code can check of the key's value; empty where it can check nothing."""

    def part(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The schema of the key's value as outputs show it, with what the clause demands and permits."""
        if "enum" in self.limits:
            return dict(self.limits)
        beside = ("enum", "maxLength") if "pattern" in self.limits else ()
        part = {name: value for name, value in found.items() if name not in beside}
        of_texts = {name: value for name, value in self.limits.items() if name in ("pattern", "allOf")}
        if of_texts and part.get("type") == "array":
            part["items"] = {**part.get("items", {}), **of_texts}
            part |= {name: value for name, value in self.limits.items() if name not in of_texts}
        else:
            part |= self.limits
        if _NULL.search(self.clause):
            if "enum" in part:
                part["enum"] = list(dict.fromkeys([*part["enum"], None]))
            if isinstance(part.get("type"), str):
                part["type"] = [part["type"], "null"]
        return part

    @property
    def is_required(self) -> bool:
        """Whether the clause lets nobody leave the key out."""
        return not _LEFT_OUT.search(self.clause)


def key_clauses(prompt: str, keys: Collection[str]) -> list[KeyClause]:
    """Clauses about single keys, e.g. ``"summary": one sentence of at most 25 words``; the first one about each."""
    found: dict[str, KeyClause] = {}
    for clause in clauses_of(prompt):
        if (about := about_key(clause, keys)) is not None and about[1] in keys:
            found.setdefault(about[1], KeyClause(about[1], clause, _limits(clause[about.end() :])))
    return list(found.values())


def about_key(clause: str, keys: Collection[str]) -> re.Match[str] | None:
    """The beginning of a clause about a key: one of ``keys``, or any that stands in quotes."""
    if (found := _KEY_IS.match(clause)) and found[1] in keys:
        return found
    found = KEY.match(clause)
    return found if found and (found[1] in keys or found[0].lstrip("-*• ")[0] in '"“`') else None


def _limits(said: str) -> dict[str, Any]:
    """A JSON schema of what the words about a key say of its value."""
    if CONDITION.search(said.replace("e.g.", "")):
        return {}
    if values := _set_of(said):
        return {"enum": [*values, *([None] if _NULL.search(said) else [])]}
    limits: dict[str, Any] = {}
    if found := _RANGE.search(said):
        limits |= {"minimum": float(found[1]), "maximum": float(found[2])}
    if asks_for_sentence(said):
        limits["allOf"] = [{"pattern": SENTENCE_END}]
    if (length := length_of(said)) is not None and not re.search(r"\b(?:each|every|per)\b", said):
        if length.unit == "word":
            limits["pattern"] = _words_pattern(length.least or 0, length.most)
        elif length.unit == "character":
            sizes = {"minLength": length.least, "maxLength": length.most}
            limits |= {name: size for name, size in sizes.items() if size is not None}
    elif items := _ITEMS.search(said):
        low, high = number_of(items[2]), number_of(items[3] or items[2])
        bound = (items[1] or "").lower()
        limits |= {"minItems": low} if bound in ("", "exactly", "at least") else {}
        limits |= {"maxItems": high} if bound != "at least" else {}
    return limits


def _set_of(said: str) -> list[str]:
    """The values that are listed in words such as ``one of "good", "bad"``; empty where it is no list of quotes."""
    begins = _ONE_OF.search(said)
    rest = said[begins.end() :] if begins else said
    return listed_values(rest) if begins or re.match(rf"\(?(?:{QUOTED_TEXT}|[\w-]+\s*\|)", rest) else []


def _words_pattern(least: int, most: int | None) -> str:
    """A pattern of texts with so many words."""
    high = "" if most is None else str(max(0, most - 1))
    return rf"^\s*\S+(?:\s+\S+){{{max(0, least - 1)},{high}}}\s*$"
