"""Answers of the checks that need nothing but the output: valid JSON, a schema, a beginning, a pattern, a length.

An exported file has this file in it: it imports the standard library and, for a schema, ``jsonschema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ..formatting import count
from ..text import sentences, shorten

LENGTHS = "a number of words, characters, sentences, lines or paragraphs, e.g. at most 8 words or 5 to 40 words"
"""How a length is written."""
_LENGTH = re.compile(
    r"(?:(at most|at least|exactly)\s+)?(\d{1,9})(?:\s*(?:-|\u2013|to)\s*(\d{1,9}))?\s+"
    r"(character|word|sentence|line|paragraph)s?",
    re.IGNORECASE,
)
_MOST_ERRORS = 3
"""Places told in which an output does not follow its schema."""
_SEEN = 60
"""Characters of an output that are quoted."""

Holds = tuple[bool, str | None]
"""Whether an output has a property, and what was found."""


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
            raise ValueError(f"{LENGTHS} is needed, not '{text}'")
        least, most = int(low), int(high or low)
        if least > most:
            raise ValueError(f"the smaller number comes first, not '{text}'")
        word = (bound or "").lower()
        return cls(unit.lower(), 0 if word == "at most" else least, None if word == "at least" else most)


COUNTS: dict[str, Callable[[str], int]] = {
    "character": len,
    "word": lambda text: len(re.findall(r"\w+(?:['\u2019-]\w+)*", text)),
    "sentence": lambda text: len(sentences(text)),
    "line": lambda text: sum(bool(each.strip()) for each in text.splitlines()),
    "paragraph": lambda text: sum(bool(each.strip()) for each in re.split(r"\n\s*\n", text)),
}
"""Number of units of length in a text, by the unit of a :class:`LengthBand`."""


def decided(kind: str, value: str, output: str) -> Holds:
    """Whether an output has the property that a check of this kind and value looks for; one of :data:`DECIDED`."""
    return DECIDED[kind](output, value)


def _is_json(output: str, _: str = "") -> Holds:
    problem = _parsed(output)[1]
    return problem is None, problem


def _parsed(output: str) -> tuple[Any, str | None]:
    """The value of a JSON text, and why it is none."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no number of JSON")

    try:
        return json.loads(output, parse_constant=refuse, parse_int=_whole_number), None
    except RecursionError:
        return None, "it is no valid JSON: nested too deeply"
    except ValueError as error:
        return None, f"it is no valid JSON: {error}; it begins with {_quoted(output)}"


def _whole_number(digits: str) -> float:
    """A number of JSON. Python makes no whole number of some 4,300 digits, which JSON allows."""
    return int(digits) if len(digits) < 4_000 else float(digits)


def _follows(output: str, schema: str) -> Holds:
    data, problem = _parsed(output)
    if problem is not None:
        return False, problem
    try:
        errors = sorted(_validator(schema).iter_errors(data), key=lambda each: len(each.absolute_path))
    except RecursionError:
        return False, "it is nested too deeply to be held against its schema"
    told = [f"at {each.json_path}: {shorten(each.message, 160)}" for each in errors[:_MOST_ERRORS]]
    more = f" (and {len(errors) - _MOST_ERRORS} more)" if len(errors) > _MOST_ERRORS else ""
    return not errors, "; ".join(told) + more if told else None


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    from jsonschema.validators import validator_for
    from referencing import Registry

    data = json.loads(schema)
    return validator_for(data)(data, registry=Registry())  # an empty registry: nothing is fetched from the network


def _begins(output: str, text: str) -> Holds:
    return output.strip().startswith(text.strip()), f"it begins with {_quoted(output)}"


def _ends(output: str, text: str) -> Holds:
    return output.strip().endswith(text.strip()), f"it ends with {_quoted(output.strip()[-_SEEN:])}"


def _matches(output: str, pattern: str) -> Holds:
    found = re.search(pattern, output)
    return found is not None, "it is found nowhere" if found is None else f"it holds {_quoted(found[0])}"


def _is_as_long(output: str, value: str) -> Holds:
    band = LengthBand.of(value)
    there = COUNTS[band.unit](output.strip())
    return band.least <= there and (band.most is None or there <= band.most), f"it has {count(there, band.unit)}"


def _quoted(text: str) -> str:
    return json.dumps(shorten(" ".join(text.split()), _SEEN), ensure_ascii=False)


DECIDED: dict[str, Callable[[str, str], Holds]] = {
    "json": _is_json,
    "schema": _follows,
    "begins": _begins,
    "ends": _ends,
    "matches": _matches,
    "length": _is_as_long,
}
"""The kinds of checks that need nothing but the output."""
