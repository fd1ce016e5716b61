"""The JSON object in a reply. Small slips of models are accepted; nothing is guessed.

An exported judge contains a copy of this file, so it imports only the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import pairwise
from typing import Any


def json_in(text: str) -> Any:
    """Return the JSON value in a reply: its whole text, its only code block, or its only object on its own lines. A
    comma before a closing bracket and line breaks in strings are accepted. Raises ValueError if there is no value, or
    more than one."""
    return _loaded(_json_text(text))


def object_in(text: str, wanted: Collection[str], *, cut: bool = False) -> Any:
    """Return the JSON object in a reply (:func:`json_in`). It may be the only item of a list, or the only field of
    another object if it has one of the ``wanted`` fields. If the reply may be ``cut``, the members before the break are
    returned. Nothing is made up: a string that breaks off is left out, while libraries that repair JSON would read a
    "not sure" that breaks off as "no". Raises ValueError if there is no JSON value, or more than one."""
    try:
        value = json_in(text)
    except ValueError:
        if not cut:
            raise
        value = _loaded(_before_the_cut(_json_text(text)))
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & set(wanted):
        (inner,) = value.values()
        value = inner if isinstance(inner, dict) and inner.keys() & set(wanted) else value
    return value


_FENCE = re.compile(r"```(?:\w+[ \t]*(?=\s))?(.*?)(?:```|\Z)", re.DOTALL)
_OBJECT = re.compile(r"(?:^|(?<=:))[ \t]*(?=[{\[])", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|(?P<open>\\?\Z))|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_BROKEN = re.compile(
    r'\s*,?\s*(?:(?:"(?:[^"\\]|\\.)*"\s*:\s*)?[\[{]\s*)*'
    r'(?:"(?:[^"\\]|\\.)*(?:\\|"\s*(?::\s*(?:"(?:[^"\\]|\\.)*\\?|[\w.+-]*))?)?|[\w.+-]*)?\s*',
    re.DOTALL,
)
"""Beginning of another member, after the last complete member of an object that breaks off."""


def _json_text(text: str) -> str:
    """Return the JSON text in a reply, to its end or its break; the whole reply if there is none, or several."""
    text = text.strip(" \t\r\n\ufeff\u200b\u200e\u2060")
    if text[:1] not in ("{", "[") and (blocks := _FENCE.findall(text)):
        return str(blocks[0]).strip() if len(blocks) == 1 else text
    # Only an object on its own lines counts: a sentence may mention an object.
    objects, done = [], 0
    for begins in (match.end() for match in _OBJECT.finditer(text)):
        if begins >= done:
            done = _value_end(text, begins)
            objects.append(text[begins:done])
            if text[done:].strip(" \t")[:1] not in ("", "\n", "\r"):
                objects.append("")
    return objects[0] if len(objects) == 1 else text


def _value_end(text: str, begins: int) -> int:
    """Find the end of the value that begins with a bracket; the end of the text if the value breaks off."""
    depth = 0
    for match in _TOKEN.finditer(text, begins):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if not depth:
            return match.end()
    return len(text)


def _loaded(text: str) -> Any:
    """Parse a JSON text. Commas before a closing bracket and line breaks in strings are accepted. Raises ValueError."""
    parts = list(_TOKEN.finditer(text))
    commas = {each.start() for each, following in pairwise(parts) if each[0] == "," and following[0] in ("}", "]")}
    mended = "".join(each for place, each in enumerate(text) if place not in commas) if commas else text
    try:
        return json.loads(mended, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _before_the_cut(text: str) -> str:
    """Close an object that breaks off after its last complete member. Raises ValueError for any other text."""
    opened: list[str] = []
    whole, closing, previous = 0, "", ""
    for match in _TOKEN.finditer(text):
        part = match[0]
        if match["open"] is not None:
            break
        if part in "{[":
            opened.append("}" if part == "{" else "]")
        elif part in "}]":
            opened[-1:] = []
        is_key = opened[-1:] == ["}"] and previous != ":"
        is_value = previous in ":[," and part not in "{[:," and not is_key
        # a number at the end of the text may be incomplete
        is_whole = part[0] == '"' or part in ("true", "false", "null") or match.end() < len(text)
        if part in "}]" or (is_value and is_whole):
            whole, closing = match.end(), "".join(reversed(opened))
        previous = part
    if not whole or not opened or not _BROKEN.fullmatch(text, whole):
        raise ValueError("it is no JSON")
    return text[:whole] + closing
