"""Rules of form that recorded outputs keep and that code can check, each with its support.

The rules are found in outputs alone: valid JSON, its keys with their types, sets of values and lengths, a fixed
beginning and end, a length band, a language, and traits such as bullet points. Another output of the same prompt may
differ, so lengths are wide, and a set of values needs evidence. In conversations the last reply is read, and calls of
tools have rules of their own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import permutations
from typing import Any, NamedTuple

from ...agents.checks import language_of
from ...agents.decided import COUNTS
from ...agents.traces.call_checks import first_places
from ...prompts.checklist import ComputedCheck
from ...prompts.conversations.chat import calls_in_turn, reply_text
from ...prompts.formatting import count as counted
from .schemas import json_values, passes, schema_of, widened

SUPPORT = 0.95
"""Share of the outputs that must keep a rule found in outputs alone. With less the rule is shown, but not enforced."""
FEWEST = 5
"""Fewest outputs from which rules are found."""
SHORTEST_FIXED = 3
"""Fewest characters of a fixed beginning or end."""
LEAST_OF_SHORTEST, MOST_OF_LONGEST = 0.5, 1.5
"""Ends of the length band, as shares of the shortest and the longest of the middle 95 % of the outputs."""
PROSE = 0.9
"""Least share of letters and spaces in texts whose language is detected; code has fewer."""


class Trait(NamedTuple):
    """A feature of form that an output has or lacks."""

    id: str
    pattern: str
    noun: str

    def check(self, *, wanted: bool) -> ComputedCheck:
        """Return the check that an output has the feature, or lacks it."""
        name, good = (self.id, "yes") if wanted else (f"no_{self.id}", "no")
        text = f"Does the output have {self.noun}?"
        fields = {"id": name, "kind": "matches", "value": self.pattern, "text": text, "good": good}
        return ComputedCheck.model_validate(fields)


TRAITS = (
    Trait("code_fence", r"```", "a code fence"),
    Trait("headings", r"(?m)^#{1,6} ", "headings"),
    Trait("bullets", r"(?m)^[ \t]*[-*•] ", "bullet points"),
    Trait("numbered_list", r"(?m)^[ \t]*\d+[.)] ", "a numbered list"),
    Trait("table", r"(?m)^[ \t]*\|.*\|[ \t]*$", "a table"),
    Trait("bold", r"\*\*[^*\n]+\*\*", "words in bold"),
    Trait("web_address", r"https?://|\bwww\.|(?<![@\w.-])[\w-]+\.(?:com|org|net|gov|edu)\b", "a web address"),
    Trait("emoji", "[\U0001f300-\U0001faff\u2600-\u27bf]", "emoji"),
    Trait(
        "preamble",
        r"(?i)\A\s*(?:(?:sure|certainly|of course|okay|absolutely)\b[^\n]{0,80}[:!.]|here(?:'s| is| are)\b[^\n]{0,80}:)",
        "a remark before the answer",
    ),
)


def found_rules(outputs: Sequence[str]) -> list[ComputedCheck]:
    """Return the rules that recorded outputs keep, also those that only some keep; none for fewer than five outputs.

    :func:`never_rules` finds the rules on what outputs lack.
    """
    written = [text for text in outputs if text.strip()]
    if len(written) < FEWEST:
        return []
    texts = [reply for text in written if (reply := reply_text(text)).strip()]
    return [*_of_calls(written), *(_of_texts(texts) if len(texts) >= FEWEST else [])]


def _of_texts(texts: Sequence[str]) -> list[ComputedCheck]:
    values = json_values(texts)
    if 2 * len(values) > len(texts):
        rules = [rule("json_alone", "json", None, texts), rule("keys", "fields", widened(schema_of(values)), texts)]
        return [each for each in rules if each.support]
    labels = schema_of([text.strip() for text in texts]).get("enum", ())
    if len(labels) > 1:
        return [rule("one_of", "matches", rf"\A\s*(?:{'|'.join(map(re.escape, labels))})\s*\Z", texts)]
    return [*_fixed_ends(texts), *_length_band(texts), *_language(texts), *_traits(texts)]


def never_rules(outputs: Sequence[str]) -> list[ComputedCheck]:
    """Return the rules on traits that at least 95 % of the outputs lack. Most of these mean nothing, because no prompt
    names all that it does not want."""
    texts = [reply for text in outputs if (reply := reply_text(text)).strip()]
    found = [supported(trait.check(wanted=False), texts) for trait in TRAITS] if len(texts) >= FEWEST else []
    return [each for each in found if (each.support or 0) >= SUPPORT]


def supported(check: ComputedCheck, texts: Sequence[str]) -> ComputedCheck:
    """Return the check with its support among the texts; with less than 95 % and without a clause it has no weight."""
    support = sum(passes(check, text) for text in texts) / len(texts)
    is_enforced = check.origin == "clause" or support >= SUPPORT
    return check.model_copy(
        update={"support": support, "origin": check.origin or "contract", "weight": float(is_enforced)}
    )


def rule(name: str, kind: str, value: str | Mapping[str, Any] | None, texts: Sequence[str]) -> ComputedCheck:
    """Return a check of a kind with its support."""
    return supported(ComputedCheck.model_validate({"id": name, "kind": kind, "value": value}), texts)


def _fixed_ends(texts: Sequence[str]) -> list[ComputedCheck]:
    stripped = [text.strip() for text in texts]
    last = _common(stripped, lambda a, b: _shared(a[::-1], b[::-1])[::-1])
    ends = {"begins": _common(stripped, _shared), "ends": last}
    return [rule(name, name, part, texts) for name, part in ends.items() if len(part) >= SHORTEST_FIXED]


def _shared(a: str, b: str) -> str:
    """The beginning that two texts share."""
    size = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:size]


def _common(texts: Sequence[str], shared: Callable[[str, str], str]) -> str:
    """The longest text at one end, of whole words, that at least 95 % of the texts share."""
    best = ""
    for pivot in texts[: 2 * FEWEST]:  # where a rule holds, one of these keeps it
        parts = sorted((shared(pivot, other) for other in texts), key=len, reverse=True)
        part = parts[math.ceil(SUPPORT * len(parts)) - 1]
        rest = pivot.removeprefix(part) if pivot.startswith(part) else ""
        if rest[:1].isalnum() and part[-1:].isalnum():
            part = re.sub(r"\w+\Z", "", part)
        before = pivot.removesuffix(part) if pivot.endswith(part) else ""
        if before[-1:].isalnum() and part[:1].isalnum():
            part = re.sub(r"\A\w+", "", part)
        best = max(best, _whole_lines(part, pivot), key=len)
    return best


def _whole_lines(part: str, text: str) -> str:
    """Cut the incomplete line off a part of a text that also has whole lines."""
    if part != text and "\n" in part:
        part = part[: part.rindex("\n")] if text.startswith(part) else part[part.index("\n") :]
    return part.strip()


def _length_band(texts: Sequence[str]) -> list[ComputedCheck]:
    """Fewest and most words: half the shortest and one and a half times the longest of the middle 95 %."""
    least, most = _usual([COUNTS["word"](text) for text in texts])
    low, high = math.floor(least * LEAST_OF_SHORTEST), math.ceil(most * MOST_OF_LONGEST)
    return [rule("length_words", "length", f"{max(1, low)} to {max(high, low + 1)} words", texts)]


def _usual(sizes: Sequence[int]) -> tuple[int, int]:
    """Return the least and the most of the middle 95 % of sizes."""
    ordered = sorted(sizes)
    aside = math.floor((1 - SUPPORT) / 2 * len(ordered))
    return ordered[aside], ordered[-1 - aside]


def _language(texts: Sequence[str]) -> list[ComputedCheck]:
    """Return the rule on the language of prose; none if outputs differ, or the extra ``language`` is not installed."""
    prose = [sum(each.isalpha() or each.isspace() for each in text) / len(text) for text in texts]
    if find_spec("py3langid") is None or sorted(prose)[len(prose) // 2] < PROSE:
        return []
    [(code, _)] = Counter(language_of(text)[0] for text in texts).most_common(1)
    found = rule("language", "language", code, texts)
    return [found] if found.weight else []


def _traits(texts: Sequence[str]) -> list[ComputedCheck]:
    found = [supported(trait.check(wanted=True), texts) for trait in TRAITS]
    return [each for each in found if (each.support or 0) > 0.5]  # a rarer trait is no requirement


# --- calls of tools ---


def _of_calls(outputs: Sequence[str]) -> list[ComputedCheck]:
    """Return the rules on calls: the tools, the number of calls, the arguments of each tool, and the order of tools."""
    traces = [calls_in_turn(output) for output in outputs]
    places = [*map(first_places, traces)]
    times = Counter(name for firsts in places for name in firsts if re.fullmatch(r"[^\s,]+", name))
    names = [name for name, there in times.items() if there > (1 - SUPPORT) * len(outputs)]
    if not names:
        return []
    listed = ", ".join(names)
    found = [rule("tools", "tools", listed, outputs)]
    for name in (each for each in names if times[each] >= SUPPORT * len(outputs)):
        found.append(rule(f"calls_{name}", "calls", f"at least 1 call of {name}", outputs))
    low, high = _usual([len(calls) for calls in traces])
    band = f"{low} to {high} calls" if low < high else f"exactly {counted(low, 'call')}"
    found.append(rule("calls", "calls", band, outputs))
    for name in names:
        given = [call.arguments for calls in traces for call in calls if call.name == name]
        schema = widened(schema_of(given))
        if len(given) >= FEWEST:
            # support among the outputs that call the tool: the others keep the rule without saying anything
            theirs = [output for output, firsts in zip(outputs, places, strict=True) if name in firsts]
            found.append(rule(f"arguments_{name}", "arguments", {name: schema}, theirs))
    return [*found, *_orders(names, outputs, places)]


def _orders(names: Sequence[str], outputs: Sequence[str], places: Sequence[Mapping[str, int]]) -> list[ComputedCheck]:
    """Return rules on tools that are called one before the other in at least 95 % of the outputs that call both.

    Pairs that fewer than five outputs call are left out, and so are rules that follow from two others.
    """
    positions = {
        (a, b): [(firsts[a], firsts[b]) for firsts in places if a in firsts and b in firsts]
        for a, b in permutations(names, 2)
    }
    fixed = {
        pair
        for pair, firsts in positions.items()
        if len(firsts) >= FEWEST and sum(a < b for a, b in firsts) >= SUPPORT * len(firsts)
    }
    found = []
    for a, b in (pair for pair in positions if pair in fixed):
        common_places = [place for place, firsts in enumerate(places) if a in firsts and b in firsts]
        between = [name for name in names if (a, name) in fixed and (name, b) in fixed]
        if any(all(name in places[place] for place in common_places) for name in between):
            continue  # follows from two others
        common_outputs = [outputs[place] for place in common_places]
        found.append(rule(f"{a}_before_{b}", "order", f"{a} before {b}", common_outputs))
    return found


FREE_WORDS = 4
"""Mean number of words from which an argument is free text, which nobody writes twice in the same words."""


def parity_rules(outputs: Sequence[str]) -> list[ComputedCheck]:
    """Return rules that compare a new output with the recorded one: same tools, and same arguments but for free texts.

    A recorded output keeps these rules by definition. They leave the order of calls to :func:`found_rules`, which finds
    where it matters. Empty if no output calls a tool.
    """
    calls = [call for output in outputs for call in calls_in_turn(output)]
    if not calls:
        return []
    words: dict[str, list[int]] = {}
    for call in calls:
        for name, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
            words.setdefault(f"{call.name}.{name}", []).append(len(value.split()) if isinstance(value, str) else 0)
    free_names = [
        name
        for name, sizes in words.items()
        if sum(sizes) >= FREE_WORDS * len(sizes) and re.fullmatch(r"[^\s,]+", name)
    ]
    value = f"arguments except {', '.join(free_names)}" if free_names else "arguments"
    found = {"same_tools": "tools", "same_arguments": value}
    fields = {"kind": "calls_as", "support": 1.0, "from": "contract"}
    return [ComputedCheck.model_validate({"id": name, "value": part, **fields}) for name, part in found.items()]
