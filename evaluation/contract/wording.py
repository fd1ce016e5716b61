"""Pieces of a prompt's wording that code reads: its clauses, quoted words, numbers, lengths and negations; and clauses
about single keys of JSON outputs, e.g. ``"summary": one sentence of at most 25 words``."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...prompts.formatting import count


def any_case(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that ignores upper and lower case."""
    return re.compile(pattern, re.IGNORECASE)


_MARKS = "\"“”„«»'‘’`"
QUOTED_TEXT = r"(?:\"([^\"\n]+)\"|[“„]([^”“\n]+)[”“]|«([^»\n]+)»|`([^`\n]+)`|(?<!\w)['‘]([^\n]+?)['’](?=[\s,.;:!?)]|$))"
QUOTED = re.compile(QUOTED_TEXT)
UNQUOTED = rf"[^{_MARKS}.]"
NOT = r"(?:never|do not|don't|must not|mustn't|should not|avoid|no|without|not|nicht|keine?n?|ohne|niemals)"
"""Words that forbid what follows."""
CONDITION = any_case(
    r"\b(?:if|when|whenever|unless|where|except|in case|otherwise|for example|e\.g\.|wenn|falls|außer|sofern)\b"
)
"""Words that make a clause hold only sometimes."""
_NUMBERS = {
    word: place
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for place, word in enumerate(words.split(), 1)
} | {"a single": 1, "a": 1, "an": 1, "einen": 1, "einem": 1, "ein": 1, "eine": 1}
NUMBER = rf"(?<!\w)(\d+|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNITS = {
    "word": "words?|Wörter[n]?|Worte[n]?|Wort",
    "character": "characters?|chars?|Zeichen",
    "sentence": "sentences?|Sätzen?|Satz",
    "line": "lines?|Zeilen?",
    "paragraph": "paragraphs?|Absätzen?|Absatz",
}
_UNIT = rf"((?:{'|'.join(_UNITS.values())})\b)"
_LESS = "(?:fewer|less|shorter|weniger) (?:than|als)|under|below|unter"
_AT_MOST = any_case(
    r"(?:(?P<most>at (?:the )?most|(?:no|not) (?:more|longer) than|up to|(?:a )?maximum(?: of)?|max\.?|within|"
    r"limit\w*(?: \w+){0,2} to|(?:not|never|don't)(?: \w+){0,2} (?:exceed|more than|longer than)|<=|≤|"
    r"höchstens|maximal|(?:nicht|keine) (?:mehr|länger) als|bis zu)|(?P<less>"
    rf"{_LESS}))\s+{NUMBER}[\s-]+{_UNIT}"
)
_OR_FEWER = any_case(rf"{NUMBER}[\s-]+{_UNIT}\s+(?:or (?:fewer|less)|at (?:the )?most|max(?:imum)?\b|oder weniger)")
_BETWEEN = any_case(rf"(?:between\s+)?{NUMBER}\s*(?:to|-|–|and|or|bis|oder)\s*{NUMBER}[\s-]+{_UNIT}")
_EXACTLY = any_case(
    rf"(exactly|precisely|at least|no (?:fewer|less) than|a minimum of|genau|mindestens)\s+{NUMBER}[\s-]+{_UNIT}"
)
_WRITE = any_case(
    rf"\b(?:write|reply|answer|respond|return|output|summari[sz]e|say)\b(?: \w+){{0,4}}? (?:in|with|as) {NUMBER}[\s-]+"
    rf"(?:short |plain |brief )?{_UNIT}"
)
_ABOUT = any_case(r"\b(?:about|around|roughly|approximately|some|etwa|ungefähr|circa|ca\.)\s*$|~\s*$")
_UNDONE = any_case(r"\b(?:not|never|don't|no need to|need not|nicht)\s+(?:\w+\s+){0,2}$")
"""Words before a limit that turn it round or lift it."""
_SENTENCES = re.compile(r"(?<=[.!?])(?<!Max\.)\s+(?=[A-ZÄÖÜ\"“„*-])")
_LABEL = re.compile(r"\W*(?:\w+\W+){0,4}?\w+:\W*|#+ [^.!?]*|\W*(?:\w+\W+){0,3}\{+ *[\w.]+ *\}+\W*")
"""A line that is only a label of the next lines, or that shows a variable."""


SENTENCE_END = r"[.!?…。！？][\"'”’»“)\]*_]*\s*$"
"""Pattern of texts that end with a whole sentence."""
_SENTENCE = any_case(
    rf"(?:{NUMBER}|\b(?:full|complete|whole|short|single|plain))(?:[ -][a-z]+){{0,2}}[ -](?:{_UNITS['sentence']})\b"
)
_NO_END = any_case(rf"\b{NOT}\b[^.;]{{0,25}}\b(?:sentences?|full stops?|periods?|punctuation|Satz\w*|Punkt)\b")


def asks_for_sentence(said: str) -> bool:
    """Return whether words ask for whole sentences, e.g. ``one sentence of at most 25 words``."""
    return _SENTENCE.search(said) is not None and _NO_END.search(said) is None


class StatedLength(NamedTuple):
    """A length that a clause asks for."""

    said: str
    """The words of the clause."""
    unit: str
    """A unit of :class:`~askance.prompts.criteria.kinds.LengthBand`."""
    least: int | None
    most: int | None

    @property
    def band(self) -> str:
        """The value of a check of the kind ``length``."""
        if self.least is None or self.most is None:
            bound, number = ("at most", self.most) if self.least is None else ("at least", self.least)
            return f"{bound} {count(number or 0, self.unit)}"
        same = self.least == self.most
        return f"exactly {count(self.most, self.unit)}" if same else f"{self.least} to {count(self.most, self.unit)}"


def clauses_of(prompt: str) -> list[str]:
    """Split a prompt into clauses: sentences without the mark or number of a list. Labels such as "Rules:" are left
    out."""
    lines = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line) for line in prompt.splitlines())
    parts = [part for line in lines for sentence in _SENTENCES.split(line) for part in _demands(sentence)]
    return [part for part in parts if re.search(r"\w", part) and not _LABEL.fullmatch(part)]


def _demands(sentence: str) -> list[str]:
    """Split a sentence at its semicolons. One with a condition stays whole, as the condition may hold for all parts."""
    parts = [sentence] if CONDITION.search(sentence) else re.split(r"(?<=;)\s+", sentence)
    return [part.strip() for part in parts]


def length_of(clause: str) -> StatedLength | None:
    """Return the length that a clause asks for; None if it asks for none, or for several."""
    found = lengths_of(clause)
    return found[0] if len(found) == 1 else None


def lengths_of(clause: str) -> list[StatedLength]:
    """Return all lengths that a clause asks for."""
    lengths: list[StatedLength] = []
    remainder = clause
    for pattern in (_AT_MOST, _OR_FEWER, _EXACTLY, _BETWEEN, _WRITE):
        for found in list(pattern.finditer(remainder)):
            before = remainder[: found.start()]
            if not _UNDONE.search(before) and not _ABOUT.search(before):
                lengths.append(_length(pattern, found))
                remainder = remainder.replace(found[0], " ", 1)
    return lengths


def _length(pattern: re.Pattern[str], found: re.Match[str]) -> StatedLength:
    unit = _unit(found.groups()[-1])
    if pattern is _AT_MOST:
        return StatedLength(found[0], unit, None, number_of(found[3]) - (found["less"] is not None))
    if pattern is _OR_FEWER:
        return StatedLength(found[0], unit, None, number_of(found[1]))
    if pattern is _BETWEEN:
        return StatedLength(found[0], unit, number_of(found[1]), number_of(found[2]))
    number = number_of(found[1] if pattern is _WRITE else found[2])
    is_exact = pattern is _WRITE or found[1].lower() in ("exactly", "precisely", "genau")
    return StatedLength(found[0], unit, number, number if is_exact else None)


TIGHTER = 0.6
"""Share of a limit that a model is asked to keep: small models do not see by how much they exceed a limit."""


def tightened(clause: str) -> str:
    """Tighten the limits of words and characters in a clause: ``at most 25 words`` becomes ``at most 15 words``."""
    for pattern in (_AT_MOST, _OR_FEWER):
        clause = pattern.sub(lambda found: _smaller(found, 3 if found.re is _AT_MOST else 1), clause)
    return clause


def _smaller(found: re.Match[str], place: int) -> str:
    limit = number_of(found[place])
    if _unit(found[place + 1]) not in ("word", "character") or limit < 4:
        return found[0]
    start, end = (each - found.start() for each in found.span(place))
    return f"{found[0][:start]}{math.floor(TIGHTER * limit)}{found[0][end:]}"


def _unit(word: str) -> str:
    return next(name for name, forms in _UNITS.items() if re.fullmatch(forms, word, re.IGNORECASE))


def number_of(text: str) -> int:
    """Return the number that digits or a word stand for."""
    return int(text) if text.isdecimal() else _NUMBERS[" ".join(text.lower().split())]


def has_gap(words: str) -> bool:
    """Return whether quoted words hold a place to be filled in, e.g. ``Dear {name}`` or ``Dear …``."""
    return re.search(r"[{\[<]\s*[\w .]+[}\]>]|\.\.\.|…", words) is not None


def is_undone(clause: str, found: re.Match[str]) -> bool:
    """Return whether a "not" stands before the found words."""
    return _UNDONE.search(clause[: found.start()]) is not None


def listed_values(rest: str) -> list[str]:
    """Read the list of values at the beginning of words: in quotes or as single words, e.g. ``good, bad or
    neutral``."""
    listed = re.match(
        rf"\(?{QUOTED_TEXT}(?:(?:\s*[,|/]|\s*,?\s*(?:or|and|oder))\s*{QUOTED_TEXT})+", rest, re.IGNORECASE
    )
    if listed:
        return [quoted_words(each) for each in QUOTED.finditer(listed[0])]
    bare = re.match(r"\(?[\w-]+(?:\s*[,|/]\s*(?!or\b)[\w-]+)*(?:,? (?:or|oder) [\w-]+)?(?=[.;,)\s]*$)", rest)
    return re.findall(r"[\w-]+", re.sub(r"\b(?:or|oder)\b", " ", bare[0])) if bare else []


def quoted_words(found: re.Match[str]) -> str:
    """Return the words between the quotation marks of a match."""
    return next(each for each in reversed(found.groups()) if each is not None)


KEY = re.compile(r"^\s*(?:[-*•]\s*)?(?:[\"“`']|\*\*)?([A-Za-z_][\w-]*(?: \w+)?)(?:[\"”`']|\*\*)?\s*(?::|-|–|=|\()\s*")
_KEY_IS = re.compile(r"\s*(?:The |the )?[\"“`']?([\w-]+)[\"”`']? (?:is|are|has|have|must be|should be|must have)\b\s*")
_ITEMS = any_case(
    rf"(?:(at most|no more than|up to|max\.?|maximum|exactly|at least)\s+)?{NUMBER}(?:\s*(?:to|-|–|or)\s*{NUMBER})?\s+(?:\w+ )?"
    r"(?:items|names|keywords|tags|entries|elements|strings|words or phrases|topics|values|labels|points|people|steps)\b"
)
_NULL = re.compile(r"\b(?:null|None)\b")
_LEFT_OUT = any_case(r"\b(?:optional|omit\w*|leave (?:it )?out|left out|only if|if (?:any|known|given|there))\b")
_RANGE = re.compile(
    r"\b(?:number|integer|float|score|rating|value)\b[^.;]*?(-?\d+(?:\.\d+)?)\s*(?:-|–|to|and)\s*(\d+(?:\.\d+)?)"
)
"""Range of a number. In a JSON schema such limits do not touch values of other types."""
_ONE_OF = any_case(r"\b(?:one of|either|must be|eines von|entweder)\b:?\s*")


class KeyClause(NamedTuple):
    """Words of the prompt about one key of a JSON object."""

    key: str
    clause: str
    limits: dict[str, Any]
    """A JSON schema of what code can check of the key's value; empty where it can check nothing."""

    def part(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of the key's value: ``found`` in outputs, with what the clause demands and permits."""
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
        """Whether the clause does not allow the key to be left out."""
        return not _LEFT_OUT.search(self.clause)


def key_clauses(prompt: str, keys: Collection[str]) -> list[KeyClause]:
    """Return the first clause about each key, e.g. ``"summary": one sentence of at most 25 words``."""
    found: dict[str, KeyClause] = {}
    for clause in clauses_of(prompt):
        if (about := about_key(clause, keys)) is not None and about[1] in keys:
            found.setdefault(about[1], KeyClause(about[1], clause, _limits(clause[about.end() :])))
    return list(found.values())


def about_key(clause: str, keys: Collection[str]) -> re.Match[str] | None:
    """Match the beginning of a clause about a key: one of ``keys``, or any key in quotes."""
    if (found := _KEY_IS.match(clause)) and found[1] in keys:
        return found
    found = KEY.match(clause)
    return found if found and (found[1] in keys or found[0].lstrip("-*• ")[0] in '"“`') else None


def _limits(said: str) -> dict[str, Any]:
    """Return a JSON schema of what the words about a key say of its value."""
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
    """Return the values that are listed in words such as ``one of "good", "bad"``; empty if no values are listed."""
    begins = _ONE_OF.search(said)
    rest = said[begins.end() :] if begins else said
    return listed_values(rest) if begins or re.match(rf"\(?(?:{QUOTED_TEXT}|[\w-]+\s*\|)", rest) else []


def _words_pattern(least: int, most: int | None) -> str:
    """Return a pattern of texts with ``least`` to ``most`` words."""
    high = "" if most is None else str(max(0, most - 1))
    return rf"^\s*\S+(?:\s+\S+){{{max(0, least - 1)},{high}}}\s*$"
