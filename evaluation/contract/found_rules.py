"""Rules of form that recorded outputs keep and that code can check, each with its support.

They are found in outputs alone: valid JSON and its schema with lengths, a fixed beginning and end, a length band, and
traits such as bullet points, which all outputs have or all lack. Of conversations the last replies are read, and the
calls of tools have rules of their own.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

from ...agents.checks import COUNTS
from ...agents.traces.call_checks import first_places
from ...prompts.checklist import ComputedCheck, GoodAnswer
from ...prompts.conversations.chat import calls_in_turn, reply_text
from ...prompts.criteria.kinds import CheckKind
from ...prompts.formatting import count as counted
from .schemas import follows, passes, schema_of, schema_said

SUPPORT = 0.95
"""A rule that fewer outputs keep is shown and not enforced."""
FEWEST = 5
"""Outputs below which nothing is called a rule."""
SHORTEST_FIXED = 3
"""Fewest characters of a fixed beginning or end."""


@dataclass(frozen=True)
class FoundRule:
    """A check with the share of recorded outputs that keep it."""

    id: str
    kind: CheckKind
    value: str | dict[str, Any] | None
    text: str
    """The rule as an order, e.g. ``Begin the output with: Dear citizen,``."""
    kept: int
    of: int
    good: GoodAnswer = "yes"
    """``no`` where an output keeps the rule that lacks the property."""
    clause: str | None = None
    """The words of the prompt that ask for it; None where it was found in outputs alone."""

    @property
    def support(self) -> float:
        """Share of outputs that keep the rule, in [0, 1]."""
        return self.kept / self.of

    @property
    def is_enforced(self) -> bool:
        """Whether enough outputs keep it, or the prompt asks for it."""
        return self.clause is not None or self.support >= SUPPORT


class Trait(NamedTuple):
    """A feature of form that an output has or lacks."""

    id: str
    pattern: str
    has: str
    lacks: str


TRAITS = (
    Trait("code_fence", r"```", "Put code between code fences.", "Use no code fence."),
    Trait("headings", r"(?m)^#{1,6} ", "Use headings.", "Use no headings."),
    Trait("bullets", r"(?m)^\s*[-*•] ", "Use bullet points.", "Use no bullet points."),
    Trait("numbered_list", r"(?m)^\s*\d+[.)] ", "Use a numbered list.", "Use no numbered list."),
    Trait("table", r"(?m)^\s*\|.*\|\s*$", "Use a table.", "Use no table."),
    Trait("bold", r"\*\*[^*\n]+\*\*", "Put some words in bold.", "Put nothing in bold."),
    Trait("web_address", r"https?://|\bwww\.", "Give a web address.", "Give no web address."),
    Trait("emoji", "[\U0001f300-\U0001faff\u2600-\u27bf]", "Use emoji.", "Use no emoji."),
)


def found_rules(outputs: Sequence[str]) -> list[FoundRule]:
    """Rules that recorded outputs keep, also those that only some keep; none of fewer than five outputs."""
    written = [text for text in outputs if text.strip()]
    if len(written) < FEWEST:
        return []
    texts = [reply for text in written if (reply := reply_text(text)).strip()]
    return [*_of_calls(written), *(_of_texts(texts) if len(texts) >= FEWEST else [])]


def _of_texts(texts: Sequence[str]) -> list[FoundRule]:
    values = [value for text in texts if (value := json_in(text)) is not None]
    if 2 * len(values) > len(texts):
        return _of_json(texts, values)
    return [*_fixed_ends(texts), *_length_band(texts), *_traits(texts)]


def json_in(text: str) -> Any:
    """The object or list in a text, alone or in a code fence; None where there is none."""
    inner = re.fullmatch(r"\s*```\w*\n(.*)\n```\s*", text, re.DOTALL)
    try:
        found = json.loads(inner[1] if inner else text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _of_json(texts: Sequence[str], values: Sequence[Any]) -> list[FoundRule]:
    schema = schema_of(values)
    alone = "The output is one JSON value, with no code fence and no text before or after it."
    kept = sum(follows(schema, value) for value in values)
    return [
        _rule("json_alone", "json", None, alone, texts),
        FoundRule("schema", "schema", schema, f"The JSON is {schema_said(schema)}.", kept, len(texts)),
    ]


def _rule(
    name: str,
    kind: CheckKind,
    value: str | dict[str, Any] | None,
    text: str,
    texts: Sequence[str],
    good: GoodAnswer = "yes",
) -> FoundRule:
    """A rule with its support, counted by the check that enforces it."""
    check = ComputedCheck.model_validate({"id": name, "kind": kind, "value": value, "good": good})
    return FoundRule(name, kind, value, text, sum(passes(check, each) for each in texts), len(texts), good)


def _fixed_ends(texts: Sequence[str]) -> list[FoundRule]:
    stripped = [text.strip() for text in texts]
    first = _common(stripped, _shared, lambda part, text: text.startswith(part))
    last = _common(stripped, lambda a, b: _shared(a[::-1], b[::-1])[::-1], lambda part, text: text.endswith(part))
    found = []
    if len(first) >= SHORTEST_FIXED:
        found.append(_rule("begins", "begins", first, f"Begin the output with: {first}", texts))
    if len(last) >= SHORTEST_FIXED:
        found.append(_rule("ends", "ends", last, f"End the output with: {last}", texts))
    return found


def _shared(a: str, b: str) -> str:
    """The beginning that two texts share."""
    size = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:size]


def _common(texts: Sequence[str], shared: Callable[[str, str], str], holds: Callable[[str, str], bool]) -> str:
    """The longest text at one end, of whole words, that at least 95 % of the texts share."""
    best = ""
    for pivot in texts[: 2 * FEWEST]:  # where a rule holds, one of these keeps it
        parts = sorted((shared(pivot, other) for other in texts), key=len, reverse=True)
        part = parts[math.ceil(SUPPORT * len(parts)) - 1]
        rest = pivot.removeprefix(part) if holds(part, pivot) and pivot.startswith(part) else ""
        if rest[:1].isalnum() and part[-1:].isalnum():
            part = re.sub(r"\w+\Z", "", part)
        before = pivot.removesuffix(part) if pivot.endswith(part) else ""
        if before[-1:].isalnum() and part[:1].isalnum():
            part = re.sub(r"\A\w+", "", part)
        best = max(best, _whole_lines(part, pivot), key=len)
    return best


def _whole_lines(part: str, text: str) -> str:
    """Without a line that is only a part of its own, where there are whole ones."""
    if part != text and "\n" in part:
        part = part[: part.rindex("\n")] if text.startswith(part) else part[part.index("\n") :]
    return part.strip()


def _length_band(texts: Sequence[str]) -> list[FoundRule]:
    """Fewest and most words, ten per cent beyond those of the middle 95 %."""
    least, most = _usual([COUNTS["word"](text) for text in texts])
    band = f"{math.floor(least * 0.9)} to {math.ceil(most * 1.1)} words"
    return [_rule("length", "length", band, f"Write {band}.", texts)]


def _usual(sizes: Sequence[int]) -> tuple[int, int]:
    """Least and most of the middle 95 %."""
    ordered = sorted(sizes)
    aside = math.floor((1 - SUPPORT) / 2 * len(ordered))
    return ordered[aside], ordered[-1 - aside]


def _traits(texts: Sequence[str]) -> list[FoundRule]:
    found = []
    for trait in TRAITS:
        has = _rule(trait.id, "matches", trait.pattern, trait.has, texts)
        if 2 * has.kept > has.of:
            found.append(has)
        else:
            found.append(_rule(f"no_{trait.id}", "matches", trait.pattern, trait.lacks, texts, "no"))
    return found


# --- calls of tools ---


def _of_calls(outputs: Sequence[str]) -> list[FoundRule]:
    """Rules of the calls in outputs: the tools, how many calls, the arguments of each tool, and the order of tools."""
    traces = [calls_in_turn(output) for output in outputs]
    places = [*map(first_places, traces)]
    times = Counter(name for firsts in places for name in firsts if re.fullmatch(r"[^\s,]+", name))
    names = [name for name, there in times.items() if there > (1 - SUPPORT) * len(outputs)]
    if not names:
        return []
    listed = ", ".join(names)
    found = [_rule("tools", "tools", listed, f"Call no tools but {listed}.", outputs)]
    for name in (each for each in names if times[each] >= SUPPORT * len(outputs)):
        found.append(_rule(f"calls_{name}", "calls", f"at least 1 call of {name}", f"Call {name}.", outputs))
    low, high = _usual([len(calls) for calls in traces])
    band = f"{low} to {high} calls" if low < high else f"exactly {counted(low, 'call')}"
    found.append(_rule("calls", "calls", band, f"Make {band} of tools.", outputs))
    for name in names:
        given = [call.arguments for calls in traces for call in calls if call.name == name]
        schema = schema_of(given)
        if len(given) >= FEWEST:
            text = f"The arguments of {name} are {schema_said(schema)}."
            # support among the outputs that call the tool: the others keep the rule without saying anything
            theirs = [output for output, firsts in zip(outputs, places, strict=True) if name in firsts]
            found.append(_rule(f"arguments_{name}", "arguments", {name: schema}, text, theirs))
    return [*found, *_orders(names, outputs, places)]


def _orders(names: Sequence[str], outputs: Sequence[str], places: Sequence[Mapping[str, int]]) -> list[FoundRule]:
    """The tools that are called one before the other wherever an output calls both."""
    both = {
        (a, b): [(firsts[a], firsts[b]) for firsts in places if a in firsts and b in firsts]
        for a, b in permutations(names, 2)
    }
    fixed = {
        pair
        for pair, firsts in both.items()
        if len(firsts) >= FEWEST and sum(a < b for a, b in firsts) >= SUPPORT * len(firsts)
    }
    found = []
    for a, b in (pair for pair in both if pair in fixed):
        there = [place for place, firsts in enumerate(places) if a in firsts and b in firsts]
        between = [name for name in names if (a, name) in fixed and (name, b) in fixed]
        if any(all(name in places[place] for place in there) for name in between):
            continue  # follows from two others
        theirs = [outputs[place] for place in there]
        found.append(_rule(f"{a}_before_{b}", "order", f"{a} before {b}", f"Call {a} before {b}.", theirs))
    return found


FREE_WORDS = 4
"""Words that an argument has on average from which on it is free text, which nobody writes twice in the same words."""


def parity_rules(outputs: Sequence[str]) -> list[FoundRule]:
    """Rules that hold a new output against the recorded one: the same tools, and the same arguments but for free texts.

    A recorded output keeps them by definition. Their order is left to the rules of the outputs, which say where it
    matters. None where no output calls a tool.
    """
    calls = [call for output in outputs for call in calls_in_turn(output)]
    if not calls:
        return []
    words: dict[str, list[int]] = {}
    for call in calls:
        for name, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
            words.setdefault(f"{call.name}.{name}", []).append(len(value.split()) if isinstance(value, str) else 0)
    free = [
        name
        for name, sizes in words.items()
        if sum(sizes) >= FREE_WORDS * len(sizes) and re.fullmatch(r"[^\s,]+", name)
    ]
    value = f"arguments except {', '.join(free)}" if free else "arguments"
    aside = f", but for {', '.join(free)}" if free else ""
    all_of_them = len(outputs), len(outputs)
    return [
        FoundRule("same_tools", "calls_as", "tools", "Call the tools that the recorded output calls.", *all_of_them),
        FoundRule("same_arguments", "calls_as", value, f"Give the recorded arguments{aside}.", *all_of_them),
    ]
