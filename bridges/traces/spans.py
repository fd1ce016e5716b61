"""What every format of traces comes to: spans, and what people or judges said of them."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import Any, Literal, TypeVar

By = Literal["people", "model", "unknown"]


@dataclass(frozen=True)
class TracedSpan:
    """One step of a trace; the root is the whole of it."""

    id: str
    trace: str
    parent: str | None
    name: str
    input: Any = None
    """As it was logged: a text, messages, or any JSON."""
    output: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """The error that it ended with."""
    piece: bool = False
    """Its input is one of the messages of a conversation, each of which stands by itself."""


@dataclass(frozen=True)
class GivenScore:
    """A score, label or comment on a span, or on a whole trace."""

    name: str | None
    """What it is about; None for a comment in general."""
    value: bool | float | str | None
    comment: str | None
    by: By
    """``unknown`` where the format does not say whether a person or a program gave it."""
    trace: str | None
    span: str | None
    """None: it is about the trace."""
    aggregate: bool = False
    """A mean that counts only where the single scores are not there."""
    id: str | None = None
    """Its own name, where the format has one."""


@dataclass(frozen=True)
class GivenReference:
    """The answer that people wrote for a trace, or for one span of it."""

    trace: str
    text: str
    span: str | None = None


Item = TypeVar("Item")
FEW = 3
"""Names that are told of many."""
Part = TracedSpan | GivenScore | GivenReference
Row = Mapping[str, Any]


def loaded(value: Any, *, texts: bool = False) -> Any:
    """What a text holds as JSON, or as Python writes it (as in a data frame's CSV); anything else as it is.

    Args:
        value: From a file.
        texts: Whether a text in double quotes is JSON as well.
    """
    if not isinstance(value, str) or not value.strip():
        return value
    begin = value.lstrip()[0]
    if begin not in "{[" and not (texts and (begin in '"-0123456789' or value in ("true", "false", "null"))):
        return value
    try:
        return json.loads(value, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(value.strip()) if begin in "{[" else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def number(value: Any) -> bool | float | None:
    """The number that a value is, or that a cell of a table holds as text; None where there is none."""
    if isinstance(value, (bool, int, float)):
        return value
    try:
        found = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if found is None or not isfinite(found):
        return None
    return int(found) if found.is_integer() else found


def text_or_none(value: Any) -> str | None:
    """An id or a remark as text; None where it is empty."""
    return str(value) if value not in (None, "") else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The object that a value is, or holds as JSON; an empty one where it is none."""
    value = loaded(value)
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The objects in the list that a value is, or holds as JSON."""
    value = loaded(value)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def counted(number: int, what: str) -> str:
    """``1 trace``, ``2 traces``; of several words the first is counted."""
    first, _, rest = what.partition(" ")
    return f"{number} {first}{'' if number == 1 else 's'}{rest and ' '}{rest}"


def first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


def each_once(items: Iterable[Item], key: Callable[[Item], object]) -> list[Item]:
    """Without those whose key an earlier one has."""
    found: dict[object, Item] = {}
    for each in items:
        found.setdefault(key(each), each)
    return list(found.values())


def short(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without what is empty."""
    return {str(name): value for name, value in metadata.items() if value not in (None, "", [], {})}


def named(row: Any) -> str:
    """A name for a row that has none, from what it holds."""
    return f"row-{sha256(json.dumps(row, sort_keys=True, default=str).encode()).hexdigest()[:12]}"
