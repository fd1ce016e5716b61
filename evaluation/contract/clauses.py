"""Clauses of a prompt that code can check: "at most 90 words", "no web addresses", "begin with …" as checks.

English clauses alone are read, by their first words; a clause of another form is left to the questions. A clause that
speaks of one key of a JSON object limits that key alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from .found_rules import TRAITS


class StatedRule(NamedTuple):
    """A check that a clause of the prompt asks for."""

    id: str
    kind: str
    value: str | None
    good: Literal["yes", "no"]
    clause: str
    """The clause, in the prompt's own words."""


class KeyLimit(NamedTuple):
    """Most words or characters of one key of a JSON object."""

    key: str
    unit: Literal["word", "character"]
    most: int
    clause: str


_NUMBERS = {
    word: str(place)
    for place, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
_N = rf"(\d+|{'|'.join(_NUMBERS)})"
_UNIT = r"(word|character|sentence|line|paragraph)s?\b"
_AT_MOST = re.compile(
    rf"(?:(at most|no more than|not more than|up to|maximum(?: of)?|max\.?|within|limit\w*(?: \w+)? to|"
    rf"(?:not|never) (?:be )?(?:longer than|exceed))|(under|fewer than|less than|below))\s+{_N}\s+{_UNIT}",
    re.IGNORECASE,
)
_OR_FEWER = re.compile(rf"{_N}\s+{_UNIT}\s+(?:or (?:fewer|less)|at (?:the )?most|max(?:imum)?)", re.IGNORECASE)
_BETWEEN = re.compile(rf"(?:between\s+)?{_N}\s*(?:to|-|–|and|or)\s*{_N}\s+{_UNIT}", re.IGNORECASE)
_EXACTLY = re.compile(rf"(exactly|at least)\s+{_N}\s+{_UNIT}", re.IGNORECASE)
_OF_A_PART = re.compile(
    r"\b(?:each|every|per|title|subject|heading|headline|bullets?|points?|items?|first|last|opening|closing|second|"
    r"paragraph (?:of|with)|sentences? (?:of|with)|lines? (?:of|with)|its|their)\b",
    re.IGNORECASE,
)
"""A length in such a clause is not that of the whole output."""
_QUOTED = r"[\"“”'‘’`]([^\"“”`\n]+?)[\"“”'‘’`](?=[\s,.;:!?)]|$)"
_BEGINS = re.compile(
    rf"\b(?:(?:begin|start|open)s?\b[^\"“`.]*?\bwith|(?:first line|beginning)\b[^\"“`.]*?\b(?:is|be|reads?|says?):?)"
    rf"\s+(?:the (?:words?|phrase|line|text|sentence)\s+)?{_QUOTED}",
    re.IGNORECASE,
)
_ENDS = re.compile(
    rf"\b(?:(?:end|close|finish|conclude|sign off)s?\b[^\"“`.]*?\bwith|(?:last line|ending)\b[^\"“`.]*?\b"
    rf"(?:is|be|reads?|says?):?)\s+(?:the (?:words?|phrase|line|text|sentence)\s+)?{_QUOTED}",
    re.IGNORECASE,
)
_NOT = r"\b(?:never|do not|don't|must not|mustn't|should not|avoid|no|without|not)\b"
_FORBIDDEN = re.compile(
    rf"{_NOT}[^\"“`.]{{0,40}}?\b(?:words?|phrases?|terms?|expressions?|say|write|use|using|saying)"
    r"(?: like| such as)?:?\s+(?=[\"“'‘`])",
    re.IGNORECASE,
)
_WANTED = re.compile(
    rf"\b(?:include|contain|use|mention)s?\b[^\"“`.]{{0,20}}?\b(?:words?|phrase|sentence|line)\s+{_QUOTED}",
    re.IGNORECASE,
)
_TRAIT_WORDS = {
    "code_fence": r"code (?:fences?|blocks?)|triple backticks|backticks",
    "headings": r"headings?|headers?",
    "bullets": r"bullet(?: point)?s?|bulleted lists?|bullet lists?",
    "numbered_list": r"numbered lists?",
    "table": r"tables?",
    "bold": r"bold(?: text| type)?",
    "web_address": r"(?:web ?)?(?:addresses|links|urls|hyperlinks)|url|link",
    "emoji": r"emojis?|emoticons?",
}
_BULLETS = re.compile(
    rf"(?:(exactly|at most|no more than|up to|at least)\s+)?{_N}(?:\s*(?:to|-|–|or)\s*{_N})?\s+"
    r"(?:short |brief )?bullet(?: point)?s?\b",
    re.IGNORECASE,
)
_JSON = re.compile(
    r"\b(?:only|just|nothing but|solely|one|single|a|valid|strict)\s+(?:a )?(?:single |one )?(?:valid |strict )?JSON\b|"
    r"\b(?:return|reply|respond|answer|output)\s+(?:only )?(?:in|with|as)?\s*(?:valid )?JSON\b",
    re.IGNORECASE,
)
_ALONE = re.compile(r"\b(?:nothing else|only|no (?:other )?text|no explanation|just|solely)\b", re.IGNORECASE)
_LANGUAGES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "polish": "pl", "japanese": "ja", "chinese": "zh", "korean": "ko", "russian": "ru",
    "turkish": "tr", "arabic": "ar", "swedish": "sv", "danish": "da",
}  # fmt: skip
_LANGUAGE = re.compile(
    rf"\b(?:write|reply|answer|respond|output|speak|in)\b[^.\n]{{0,30}}?\bin ({'|'.join(_LANGUAGES)})\b", re.IGNORECASE
)
_KEY = re.compile(r"^\s*(?:[-*•]\s*)?[\"“`]([\w -]+)[\"”`]\s*(?::|-|–|=|\()")
_CLAUSES = re.compile(r"\n+|(?<=[.!?;])\s+(?=[A-Z\"“*-])")


def stated_rules(prompt: str) -> list[StatedRule]:
    """Checks that the clauses of a prompt ask for, each id once, in the order of the prompt."""
    found: dict[str, StatedRule] = {}
    for clause in _clauses(prompt):
        if _KEY.match(clause):
            continue
        for name, kind, value, good in _rules_in(clause):
            found.setdefault(name, StatedRule(name, kind, value, good, clause))
    return list(found.values())


def key_limits(prompt: str) -> list[KeyLimit]:
    """Limits of single keys, e.g. ``"summary": one sentence of at most 25 words``."""
    found = []
    for clause in _clauses(prompt):
        key, limit = _KEY.match(clause), _AT_MOST.search(clause)
        if key and limit and limit[4].lower() in ("word", "character"):
            most = _number(limit[3]) - (limit[2] is not None)
            found.append(KeyLimit(key[1], limit[4].lower(), most, clause))  # type: ignore[arg-type]
    return found


def _clauses(prompt: str) -> list[str]:
    """Lines, and sentences of a line, without the mark or number of a list."""
    parts = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", part).strip() for part in _CLAUSES.split(prompt))
    return [part for part in parts if part]


def _rules_in(clause: str) -> Iterator[tuple[str, str, Any, Any]]:
    if (band := _band(clause)) is not None and not _OF_A_PART.search(clause):
        yield f"length_{band.rsplit(' ', 1)[1].rstrip('s')}s", "length", band, "yes"
    if found := _BEGINS.search(clause):
        yield "begins", "begins", found[1], "yes"
    if found := _ENDS.search(clause):
        yield "ends", "ends", found[1], "yes"
    if found := _FORBIDDEN.search(clause):
        words = re.findall(_QUOTED, clause[found.end() :])
        pattern = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)
        if words:
            yield f"not_{_name(words[0])}", "matches", f"(?i){pattern}", "no"
    elif found := _WANTED.search(clause):
        yield f"has_{_name(found[1])}", "matches", re.escape(found[1]), "yes"
    for trait in TRAITS:
        if re.search(rf"{_NOT}[^.;]{{0,30}}?\b(?:{_TRAIT_WORDS[trait.id]})\b", clause, re.IGNORECASE):
            yield f"no_{trait.id}", "matches", trait.pattern, "no"
    if found := _BULLETS.search(clause):
        yield "bullet_count", "matches", _bullet_pattern(found), "yes"
    if _JSON.search(clause) and _ALONE.search(clause):
        yield "json_alone", "json", None, "yes"
    if found := _LANGUAGE.search(clause):
        yield "language", "language", _LANGUAGES[found[1].lower()], "yes"


def _band(clause: str) -> str | None:
    """The length that a clause asks for, as a check of the kind ``length`` takes it."""
    if found := _AT_MOST.search(clause):
        return f"at most {_number(found[3]) - (found[2] is not None)} {found[4].lower()}s"
    if found := _OR_FEWER.search(clause):
        return f"at most {_number(found[1])} {found[2].lower()}s"
    if found := _BETWEEN.search(clause):
        return f"{_number(found[1])} to {_number(found[2])} {found[3].lower()}s"
    if found := _EXACTLY.search(clause):
        return f"{found[1].lower()} {_number(found[2])} {found[3].lower()}s"
    return None


def _number(text: str) -> int:
    return int(_NUMBERS.get(text.lower(), text))


def _bullet_pattern(found: re.Match[str]) -> str:
    """A pattern of texts with so many bullet points."""
    low, high = _number(found[2]), _number(found[3] or found[2])
    bound = (found[1] or "").lower()
    times = f"{{0,{high}}}" if bound in ("at most", "no more than", "up to") else f"{{{low},{high}}}"
    times = f"{{{low},}}" if bound == "at least" else times
    other = r"(?:(?!^\s*[-*•] ).)*"
    return rf"(?ms)\A{other}(?:^\s*[-*•] {other}){times}\Z"


def _name(words: str) -> str:
    return re.sub(r"\W+", "_", words.lower()).strip("_")[:40]
