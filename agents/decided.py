"""Checks that need only the output: valid JSON, a schema, a beginning, a pattern, a length.

Exported files contain this file. It imports the standard library and, for a schema, ``jsonschema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ..models.replies.json_object import json_in
from ..prompts.criteria.kinds import schema_errors
from ..prompts.criteria.patterns import LengthBand, first_match
from ..prompts.formatting import count
from ..prompts.text import sentences, shorten

_SEEN = 60
"""Most characters of an output that are quoted."""

Holds = tuple[bool, str | None]
"""Whether an output has a property, and what was found."""


COUNTS: dict[str, Callable[[str], int]] = {
    "character": len,
    "word": lambda text: len(re.findall(r"\w+(?:['\u2019-]\w+)*", text)),
    "sentence": lambda text: len(sentences(text)),
    "line": lambda text: sum(bool(each.strip()) for each in text.splitlines()),
    "paragraph": lambda text: sum(bool(each.strip()) for each in re.split(r"\n\s*\n", text)),
}
"""Functions that count the units of length in a text, by the unit of a
:class:`~askance.prompts.criteria.patterns.LengthBand`."""


def decided(kind: str, value: str, output: str) -> Holds:
    """Return whether an output has the property of a check, and what was found. ``kind`` is one of :data:`DECIDED`.

    Raises:
        RunawayPatternError: The search for a pattern took too long.
    """
    return DECIDED[kind](output, value)


def _is_json(output: str, _: str = "") -> Holds:
    problem = _parsed(output)[1]
    return problem is None, problem


def _parsed(output: str) -> tuple[Any, str | None]:
    """Return the value of a JSON text, and the problem if it is not valid."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no number of JSON")

    try:
        return json.loads(output, parse_constant=refuse, parse_int=_whole_number), None
    except RecursionError:
        return None, "it is no valid JSON: nested too deeply"
    except ValueError as error:
        return None, f"it is no valid JSON: {error}; it begins with {_quoted(output)}"


def _whole_number(digits: str) -> float:
    """Read a whole number, as a float from 4,000 digits on: Python's ``int`` refuses texts of more than 4,300."""
    return int(digits) if len(digits) < 4_000 else float(digits)


def _follows(output: str, schema: str) -> Holds:
    return _valid(*_parsed(output), schema)


def _fields_follow(output: str, schema: str) -> Holds:
    return _valid(*json_value(output), schema)


def _valid(data: Any, problem: str | None, schema: str) -> Holds:
    errors = problem or schema_errors(data, schema)
    return errors is None, errors


def json_value(output: str) -> tuple[Any, str | None]:
    """Return the JSON value of an output, also from a code fence or between other text, or the problem."""
    data, problem = _parsed(output)
    if problem is None:
        return data, None
    try:
        return json_in(output), None
    except (ValueError, RecursionError):
        return None, problem


def _begins(output: str, text: str) -> Holds:
    return output.strip().startswith(text.strip()), f"it begins with {_quoted(output)}"


def _ends(output: str, text: str) -> Holds:
    return output.strip().endswith(text.strip()), f"it ends with {_quoted(output.strip()[-_SEEN:])}"


def _matches(output: str, pattern: str) -> Holds:
    found = first_match(pattern, output)
    return found is not None, "it is found nowhere" if found is None else f"it holds {_quoted(found)}"


def _is_as_long(output: str, value: str) -> Holds:
    band = LengthBand.of(value)
    there = COUNTS[band.unit](output.strip())
    return band.least <= there and (band.most is None or there <= band.most), f"it has {count(there, band.unit)}"


def _quoted(text: str) -> str:
    return json.dumps(shorten(" ".join(text.split()), _SEEN), ensure_ascii=False)


DECIDED: dict[str, Callable[[str, str], Holds]] = {
    "json": _is_json,
    "schema": _follows,
    "fields": _fields_follow,
    "begins": _begins,
    "ends": _ends,
    "matches": _matches,
    "length": _is_as_long,
}
"""Functions of the checks that need only the output, by kind."""
