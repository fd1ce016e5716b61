"""Checks of the calls of tools in an output: the tools, the number of calls, their arguments, their order, and whether
they are the same as in the recorded output.

The messages of the recorded output, with calls and results, are in the example's ``metadata.recorded``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...prompts.conversations.chat import ToolCall, calls_in_turn
from ...prompts.criteria.kinds import CallBand, SameCalls, schema_errors, tool_names, tool_order
from ...prompts.errors import AskanceError
from ...prompts.formatting import count
from ...prompts.messages import told
from ...prompts.text import shorten

if TYPE_CHECKING:
    from ...prompts.examples import Example

Holds = tuple[bool, str | None]
"""Whether an output has a property, and what was found."""
RECORDED = "recorded"
"""Key of an example's metadata with the messages of the recorded output."""
MOST_TOLD = 3
"""Most differing arguments that a reason lists."""


class NoRecordError(AskanceError):
    """A check needs the recorded output, which is missing."""


def recorded_calls(example: Example) -> list[ToolCall]:
    """Return the recorded output's calls. Raises NoRecordError if it is missing or has no messages."""
    field = f"metadata.{RECORDED}"
    if not (messages := example.metadata.get(RECORDED)):
        raise NoRecordError(f"{field}, the messages of the recorded output, is missing")
    try:
        return calls_in_turn(told(messages))
    except (ValueError, TypeError) as error:
        raise NoRecordError(f"{field} holds no messages: {error}") from None


def calls_hold(kind: str, value: str, example: Example) -> Holds:
    """Return whether the calls of an output have the property of a check, and what was found. Raises NoRecordError if
    the check needs the recorded output and it is missing."""
    calls = calls_in_turn(example.output or "", example.input)
    return _as_recorded(calls, recorded_calls(example), value) if kind == "calls_as" else _KINDS[kind](calls, value)


def _only(calls: Sequence[ToolCall], value: str) -> Holds:
    allowed = tool_names(value)
    others = [name for name in first_places(calls) if name not in allowed]
    return not others, f"it calls {_listed(others)}" if others else None


def _number(calls: Sequence[ToolCall], value: str) -> Holds:
    band = CallBand.of(value)
    there = sum(band.tool in (None, call.name) for call in calls)
    of = f" of {band.tool}" if band.tool else ""
    return band.least <= there and (band.most is None or there <= band.most), f"it makes {count(there, 'call')}{of}"


def _arguments(calls: Sequence[ToolCall], value: str) -> Holds:
    schemas = json.loads(value)
    for call in calls:
        if call.name not in schemas:
            continue
        if isinstance(call.arguments, str):
            return False, f"the arguments of {call.name} are no valid JSON: {_shown(call.arguments)}"
        if problem := schema_errors(call.arguments, json.dumps(schemas[call.name])):
            return False, f"the arguments of {call.name}: {problem}"
    return True, None


def _in_order(calls: Sequence[ToolCall], value: str) -> Holds:
    first, then = tool_order(value)
    places = first_places(calls)
    holds = first not in places or then not in places or places[first] < places[then]
    return holds, None if holds else f"it calls {then} before {first}"


_KINDS: Mapping[str, Callable[[Sequence[ToolCall], str], Holds]] = {
    "tools": _only,
    "calls": _number,
    "arguments": _arguments,
    "order": _in_order,
}
CALL_KINDS = frozenset({*_KINDS, "calls_as"})
"""Kinds of checks of calls of tools."""


def _as_recorded(calls: Sequence[ToolCall], recorded: Sequence[ToolCall], value: str) -> Holds:
    criterion = SameCalls.of(value)
    new, old = first_places(calls), first_places(recorded)
    if criterion.part == "tools":
        missing, more = [each for each in old if each not in new], [each for each in new if each not in old]
        said = [f"it does not call {_listed(missing)}"] if missing else []
        said += [f"it calls {_listed(more)}, which the recorded output does not"] if more else []
        return not said, "; ".join(said) or None
    if criterion.part == "order":
        now, before = ([each for each in one if each in other] for one, other in ((new, old), (old, new)))
        return now == before, f"it calls {', '.join(now)}; recorded: {', '.join(before)}"
    shared = shared_arguments(calls, recorded, criterion.left_out)
    if not shared.different:
        return True, None
    told = "; ".join(shared.different[:MOST_TOLD])
    return False, f"{shared.equal} of {count(shared.of, 'argument')} as recorded; not: {told}"


def first_places(calls: Sequence[ToolCall]) -> dict[str, int]:
    """Return the position of the first call of each tool, in the order of these calls."""
    places: dict[str, int] = {}
    for place, call in enumerate(calls):
        places.setdefault(call.name, place)
    return places


class SharedArguments(NamedTuple):
    """Comparison of the arguments of calls with the recorded arguments."""

    equal: int
    of: int
    """Number of arguments that either side has; an argument that both have counts once, and so does a call without
    arguments."""
    different: tuple[str, ...]
    """Differing arguments, in words."""


def shared_arguments(
    calls: Sequence[ToolCall], recorded: Sequence[ToolCall], left_out: frozenset[str] = frozenset()
) -> SharedArguments:
    """Compare the arguments of calls with the recorded arguments, name by name.

    The partner of a recorded call is the unused call of the same tool with the most equal arguments. A call without a
    partner shares nothing.
    """
    unused = [*calls]
    pairs: list[tuple[ToolCall | None, ToolCall | None]] = []
    for old in recorded:
        partners = [call for call in unused if call.name == old.name]
        partner = max(partners, key=lambda call: likeness(call, old, left_out), default=None)
        if partner is not None:
            unused.remove(partner)
        pairs.append((partner, old))
    pairs += [(call, None) for call in unused]
    equal = total = 0
    different = []
    for mine, recorded_one in pairs:
        arguments, recorded_arguments = _named(mine, left_out), _named(recorded_one, left_out)
        for name in dict.fromkeys([*recorded_arguments, *arguments]):
            total += 1
            if name in arguments and name in recorded_arguments and _is_same(arguments[name], recorded_arguments[name]):
                equal += 1
            else:
                now, then = (_shown(each[name]) if name in each else "none" for each in (arguments, recorded_arguments))
                different.append(f"{name} {now}, recorded {then}")
    return SharedArguments(equal, total, tuple(different))


def likeness(call: ToolCall, other: ToolCall, left_out: frozenset[str] = frozenset()) -> float:
    """Return the share of equal arguments of two calls of a tool, in [0, 1]."""
    ours, theirs = _named(call, left_out), _named(other, left_out)
    equal = sum(name in theirs and _is_same(value, theirs[name]) for name, value in ours.items())
    return equal / len(ours.keys() | theirs.keys())


def _named(call: ToolCall | None, left_out: frozenset[str]) -> dict[str, Any]:
    """Return a call's arguments by ``TOOL.NAME``; by ``TOOL`` if there are none or they are no JSON object."""
    if call is None:
        return {}
    if not isinstance(call.arguments, Mapping):
        return {call.name: call.arguments}
    named = {f"{call.name}.{name}": value for name, value in call.arguments.items()}
    return {name: value for name, value in named.items() if name not in left_out} or {call.name: {}}


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two values are the same in JSON, where 1 equals 1.0, but not true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_is_same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return bool(a == b)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name or "a tool without a name" for name in names)


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), 60)
