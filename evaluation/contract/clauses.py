"""Clauses of a prompt that code can check: "at most 90 words", "no web addresses", "begin with …" as checks.

English clauses are read, by their first words, and lengths in German; a clause of another form, or one that holds under
a condition only, is left to the questions. A clause that speaks of one key of a JSON object limits that key alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ...prompts.checklist import ComputedCheck
from ...prompts.criteria.bands import LengthBand
from .found_rules import TRAITS


class StatedRule(NamedTuple):
    """A check that a clause of the prompt asks for."""

    check: ComputedCheck
    """With the clause in the prompt's own words."""
    is_all: bool
    """Whether the clause asks for nothing else."""


class KeyClause(NamedTuple):
    """Words of the prompt about one key of a JSON object."""

    key: str
    clause: str
    limits: dict[str, Any]
    """What code can check of the key's value, as a JSON schema; empty where it is nothing."""

    def part(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The schema of the key's value as outputs show it, with what the clause demands and permits."""
        if "enum" in self.limits:
            return dict(self.limits)
        beside = ("enum", "maxLength") if "pattern" in self.limits else ()
        part = {name: value for name, value in found.items() if name not in beside}
        if "pattern" in self.limits and part.get("type") == "array":
            part["items"] = {**part.get("items", {}), **self.limits}
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


_NUMBERS = {
    word: place
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for place, word in enumerate(words.split(), 1)
} | {"a single": 1, "a": 1, "an": 1, "einen": 1, "einem": 1, "ein": 1, "eine": 1}
_N = rf"(?<!\w)(\d+|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNITS = {
    "word": "words?|Wörter[n]?|Worte[n]?|Wort",
    "character": "characters?|chars?|Zeichen",
    "sentence": "sentences?|Sätzen?|Satz",
    "line": "lines?|Zeilen?",
    "paragraph": "paragraphs?|Absätzen?|Absatz",
}
_UNIT = rf"((?:{'|'.join(_UNITS.values())})\b)"
_LESS = "(?:fewer|less|shorter|weniger) (?:than|als)|under|below|unter"
_AT_MOST = re.compile(
    r"(?:(?P<most>at (?:the )?most|(?:no|not) (?:more|longer) than|up to|(?:a )?maximum(?: of)?|max\.?|within|"
    r"limit\w*(?: \w+){0,2} to|(?:not|never|don't)(?: \w+){0,2} (?:exceed|more than|longer than)|<=|≤|"
    r"höchstens|maximal|(?:nicht|keine) (?:mehr|länger) als|bis zu)|(?P<less>"
    rf"{_LESS}))\s+{_N}[\s-]+{_UNIT}",
    re.IGNORECASE,
)
_OR_FEWER = re.compile(
    rf"{_N}[\s-]+{_UNIT}\s+(?:or (?:fewer|less)|at (?:the )?most|max(?:imum)?\b|oder weniger)", re.IGNORECASE
)
_BETWEEN = re.compile(rf"(?:between\s+)?{_N}\s*(?:to|-|–|and|or|bis|oder)\s*{_N}[\s-]+{_UNIT}", re.IGNORECASE)
_EXACTLY = re.compile(
    rf"(exactly|precisely|at least|no (?:fewer|less) than|a minimum of|genau|mindestens)\s+{_N}[\s-]+{_UNIT}",
    re.IGNORECASE,
)
_WRITE = re.compile(
    rf"\b(?:write|reply|answer|respond|return|output|summari[sz]e|say)\b(?: \w+){{0,4}}? (?:in|with|as) {_N}[\s-]+"
    rf"(?:short |plain |brief )?{_UNIT}",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"\b(?:about|around|roughly|approximately|some|etwa|ungefähr|circa|ca\.)\s*$|~\s*$", re.IGNORECASE)
_UNDONE = re.compile(r"\b(?:not|never|don't|no need to|need not|nicht)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)
"""Words before a limit that turn it round or lift it."""
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|unless|where|except|in case|otherwise|for example|e\.g\.|wenn|falls|außer|sofern)\b",
    re.IGNORECASE,
)
_OF_A_PART = re.compile(
    r"\b(?:each|every|per|title|subject|heading|headline|bullets?|points?|items?|first|last|opening|closing|second|"
    r"third|final|paragraph (?:of|with)|sentences? (?:of|with)|lines? (?:of|with)|its|their|list of|followed by|then|"
    r"jede\w*|pro|titel|betreff|überschrift|stichpunkt\w*|erste\w*|letzte\w*|zweite\w*)\b",
    re.IGNORECASE,
)
"""A length in such a clause is not that of the whole output."""
_MARKS = "\"“”„«»'‘’`"
_TEXT = r"(?:\"([^\"\n]+)\"|[“„]([^”“\n]+)[”“]|«([^»\n]+)»|`([^`\n]+)`|(?<!\w)['‘]([^\n]+?)['’](?=[\s,.;:!?)]|$))"
_QUOTED = re.compile(_TEXT)
_GO_ON = rf"[^{_MARKS}.]"
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1, "final": -1} | {
    "erste": 1, "zweite": 2, "dritte": 3, "letzte": -1
}  # fmt: skip
_LINE = re.compile(rf"\b({'|'.join(_ORDINALS)})\w? (?:line|zeile)\b", re.IGNORECASE)
_LINE_IS = re.compile(
    rf"(?:(?:is|(?:must|should) be|reads?|says?|lautet|ist)\b:?|:|)\s*(?:the (?:words?|text)\s+)?{_TEXT}", re.IGNORECASE
)
_BEGINS = re.compile(
    rf"(?:\b(?:begin|start|open|beginn?|beginne|starte)s?\b{_GO_ON}*?\b(?:with|mit)|\bbeginning\b{_GO_ON}*?\b(?:is|be))"
    rf":?\s+(?:the (?:words?|phrase|line|text|sentence)\s+)?{_TEXT}",
    re.IGNORECASE,
)
_ENDS = re.compile(
    rf"(?:\b(?:end|close|finish|conclude|sign off|ende|schließe)s?\b{_GO_ON}*?\b(?:with|mit)|\bending\b{_GO_ON}*?\b"
    rf"(?:is|be)):?\s+(?:the (?:words?|phrase|line|text|sentence)\s+)?{_TEXT}",
    re.IGNORECASE,
)
_OF_LINES = re.compile(r"\b(?:each|every|all)\b|\bbullets?\b|\bpoints?\b|\blines\b|\bjede", re.IGNORECASE)
_NOT = r"(?:never|do not|don't|must not|mustn't|should not|avoid|no|without|not|nicht|keine?n?|ohne|niemals)"
_FORBIDDEN = re.compile(
    rf"\b{_NOT}\b{_GO_ON}{{0,40}}?\b(?:words?|phrases?|terms?|expressions?|say|write|use|using|saying|wort|wörter)"
    rf"(?: like| such as)?:?\s+(?={_TEXT})",
    re.IGNORECASE,
)
_WANTED = re.compile(
    rf"\b(?:include|contain|use|mention)s?\b{_GO_ON}{{0,20}}?\b(?:words?|phrase|sentence|line)\s+{_TEXT}",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    rf"\b(?:speak to|address|talk to|refer to)\b{_GO_ON}{{0,30}}?\b(?:reader|user|customer|person|citizen|them)\w* "
    rf"(?:as|with) {_TEXT}",
    re.IGNORECASE,
)
_ITS_SOURCE = re.compile(
    rf"\b{_NOT}\b (?:mention|refer to|cite|talk about|name)(?:ing)? (?:the |this |these |your )?"
    r"(passages?|prompts?|instructions?|contexts?|excerpts?|source texts?|system (?:prompt|message))\b",
    re.IGNORECASE,
)
"""The words that an output would use for what it was made from are known; other things can be mentioned in many."""
_TRAIT_WORDS = {
    "code_fence": r"(?:markdown )?code[- ]?(?:fences?|blocks?)|(?:triple )?backticks|markdown fences?",
    "headings": r"headings?|headers?|überschriften",
    "bullets": r"bullet(?: point)?s?|bulleted lists?|bullet lists?|stichpunkte|aufzählung(?:en)?",
    "numbered_list": r"numbered lists?",
    "table": r"tables?|tabellen?",
    "bold": r"bold(?: text| type)?|fettdruck",
    "web_address": r"(?:web ?)?(?:addresses|links|urls|hyperlinks)|url|link|web address|internetadressen",
    "emoji": r"emojis?|emoticons?",
    "preamble": r"preambles?|introductory (?:text|remarks?|sentences?)",
}
_SIGNS = {
    "exclamation marks?|exclamation points?|ausrufezeichen": "!",
    "question marks?": r"\?",
    "commas?": ",",
    "semicolons?": ";",
    "em[- ]?dashes|em[- ]?dash": "—",
    "digits": r"\d",
}
_CASES = {
    r"(?:all|only|entirely|in) lower ?case|in all lower ?case|lower ?case letters only": r"[^\W\d_a-zà-öø-ÿ]",
    r"(?:all|only|entirely|in) (?:upper ?case|capital letters|capitals|caps)|in all (?:caps|upper ?case)": r"[a-zß-öø-ÿ]",
}
_BULLETS = re.compile(
    rf"(?:(exactly|at most|no more than|up to|at least)\s+)?{_N}(?:\s*(?:to|-|–|or)\s*{_N})?\s+"
    r"(?:\w+ )?(?:bullet(?: point)?s?|bulleted (?:points|items))\b",
    re.IGNORECASE,
)
_BULLET_MARK = re.compile(rf"\b(?:begin|start)\w*(?: \w+)? with {_TEXT}|\bmarked (?:with|by) {_TEXT}", re.IGNORECASE)
_SECTIONS = re.compile(rf"\b(?:headings|sections|headers)\b{_GO_ON}{{0,30}}?:?\s+(?={_TEXT})", re.IGNORECASE)
_JSON = re.compile(
    r"\b(?:only|just|nothing but|solely|one|single|a|valid|strict)\s+(?:a )?(?:single |one )?(?:valid |strict )?JSON\b|"
    r"\b(?:return|reply|respond|answer|output)\s+(?:only )?(?:in|with|as)?\s*(?:a )?(?:valid )?JSON\b",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"\b(?:(?:and )?nothing else|only|no (?:other )?text(?: before or after(?: it)?)?|no explanations?|just|solely)\b",
    re.IGNORECASE,
)
_LANGUAGES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "polish": "pl", "japanese": "ja", "chinese": "zh", "korean": "ko", "russian": "ru",
    "turkish": "tr", "arabic": "ar", "swedish": "sv", "danish": "da",
}  # fmt: skip
_LANGUAGE = re.compile(
    rf"\b(?:write|reply|answer|respond|output|speak|always)\b[^.\n]{{0,30}}?\bin ({'|'.join(_LANGUAGES)})\b|"
    r"\b(?:schreib|antworte|verfass)\w*\b[^.\n]{0,30}?\bauf (deutsch|englisch|französisch)\b",
    re.IGNORECASE,
)
_AUF = {"deutsch": "de", "englisch": "en", "französisch": "fr"}
KEY = re.compile(r"^\s*(?:[-*•]\s*)?(?:[\"“`']|\*\*)?([A-Za-z_][\w-]*(?: \w+)?)(?:[\"”`']|\*\*)?\s*(?::|-|–|=|\()\s*")
_ITEMS = re.compile(
    rf"(?:(at most|no more than|up to|max\.?|maximum|exactly|at least)\s+)?{_N}(?:\s*(?:to|-|–|or)\s*{_N})?\s+(?:\w+ )?"
    r"(?:items|names|keywords|tags|entries|elements|strings|words or phrases|topics|values|labels|points|people|steps)\b",
    re.IGNORECASE,
)
_NULL = re.compile(r"\b(?:null|None)\b")
_LEFT_OUT = re.compile(
    r"\b(?:optional|omit\w*|leave (?:it )?out|left out|only if|if (?:any|known|given|there))\b", re.IGNORECASE
)
_ONE_OF = re.compile(r"\b(?:one of|either|must be|eines von|entweder)\b:?\s*", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+(?=[A-ZÄÖÜ\"“„*-])")
_FILLERS = frozenset(
    [
        "the",
        "a",
        "an",
        "in",
        "all",
        "it",
        "its",
        "is",
        "be",
        "of",
        "or",
        "and",
        "to",
        "with",
        "for",
        "at",
        "by",
        "on",
        "as",
        "that",
        "this",
        "must",
        "should",
        "always",
        "never",
        "not",
        "no",
        "do",
        "use",
        "write",
        "reply",
        "return",
        "output",
        "answer",
        "respond",
        "give",
        "put",
        "keep",
        "make",
        "whole",
        "text",
        "texts",
        "total",
        "please",
        "them",
        "then",
        "than",
        "more",
        "only",
        "else",
        "overall",
        "long",
        "object",
        "array",
        "anywhere",
        "any",
        "your",
        "you",
        "short",
        "plain",
        "entire",
        "response",
        "message",
        "before",
        "after",
        "words",
        "word",
        "line",
        "lines",
        "so",
        "beginning",
        "ends",
        "begins",
        "each",
    ]
)
_MOST_LEFT = 1
"""Words of content beside what a check decides, up to which a clause asks for nothing else."""


class _Read(NamedTuple):
    """A check and the part of its clause that asks for it."""

    id: str
    kind: str
    value: str | None
    said: str
    good: str = "yes"
    text: str = ""


def clauses_of(prompt: str) -> list[str]:
    """Lines, and sentences of a line, without the mark or number of a list; labels such as "Rules:" are left out."""
    lines = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line) for line in prompt.splitlines())
    parts = [part.strip() for line in lines for part in _SENTENCES.split(line)]
    return [part for part in parts if re.search(r"\w", part) and not re.fullmatch(r"\W*(?:\w+\W+){0,3}?\w+:\W*", part)]


def stated_rules(prompt: str, keys: Collection[str] = ()) -> list[StatedRule]:
    """Checks that the clauses of a prompt ask for, in their order.

    ``keys`` are keys of JSON outputs: a clause about one of them is left to :func:`key_clauses`.
    """
    found = []
    fixed = "|".join(re.escape(each) for clause in clauses_of(prompt) for each in _fixed_line(clause))
    for clause in clauses_of(prompt):
        if _about_key(clause, keys) is not None or _CONDITION.search(clause):
            continue
        read = list(_rules_in(clause, fixed))
        is_all = _words_left(clause, [each.said for each in read]) <= _MOST_LEFT
        for each in read:
            fields = {"id": each.id, "kind": each.kind, "value": each.value, "good": each.good, "text": each.text}
            check = ComputedCheck.model_validate(fields | {"clause": clause, "from": "clause"})
            found.append(StatedRule(check, is_all))
    return found


def is_about_form(question: str) -> bool:
    """Whether a question asks for something that checks decide: a length, a mark of form, or valid JSON."""
    traits = rf"\b(?:{'|'.join(_TRAIT_WORDS.values())}|JSON|keys?)(?!\w)"
    return bool(_bands(question)) or re.search(traits, question, re.IGNORECASE) is not None


def key_clauses(prompt: str, keys: Collection[str]) -> list[KeyClause]:
    """Clauses about single keys, e.g. ``"summary": one sentence of at most 25 words``; the first one about each."""
    found: dict[str, KeyClause] = {}
    for clause in clauses_of(prompt):
        if (about := _about_key(clause, keys)) is not None and about[1] in keys:
            found.setdefault(about[1], KeyClause(about[1], clause, _limits(clause[about.end() :])))
    return list(found.values())


def _about_key(clause: str, keys: Collection[str]) -> re.Match[str] | None:
    """The beginning of a clause about a key: one of ``keys``, or any that stands in quotes."""
    found = KEY.match(clause)
    return found if found and (found[1] in keys or found[0].lstrip("-*• ")[0] in '"“`') else None


def _limits(said: str) -> dict[str, Any]:
    """What the words about a key say of its value, as a JSON schema."""
    if _CONDITION.search(said.replace("e.g.", "")):
        return {}
    if values := _set_of(said):
        return {"enum": [*values, *([None] if _NULL.search(said) else [])]}
    limits: dict[str, Any] = {}
    if (band := _band(said)) is not None and not re.search(r"\b(?:each|every|per)\b", said):
        found = LengthBand.of(band)
        if found.unit == "word":
            limits["pattern"] = _words_pattern(found.least, found.most)
        elif found.unit == "character":
            limits |= {"minLength": found.least} if found.least else {}
            limits |= {"maxLength": found.most} if found.most is not None else {}
    elif items := _ITEMS.search(said):
        low, high = _number(items[2]), _number(items[3] or items[2])
        bound = (items[1] or "").lower()
        limits |= {"minItems": low} if bound in ("", "exactly", "at least") else {}
        limits |= {"maxItems": high} if bound != "at least" else {}
    return limits


def _set_of(said: str) -> list[str]:
    """The values that are listed in words such as ``one of "good", "bad"``; empty where it is no list of quotes."""
    begins = _ONE_OF.search(said)
    rest = said[begins.end() :] if begins else said
    listed = re.match(rf"\(?{_TEXT}(?:\s*(?:,|\||/|or|oder|,\s*or)\s*{_TEXT})+", rest, re.IGNORECASE)
    if listed:
        return [_inner(each) for each in _QUOTED.finditer(listed[0])]
    bare = re.match(r"\(?[\w-]+(?:\s*(?:\||/|,)\s*[\w-]+)+(?:,? or [\w-]+)?", rest)
    if bare and (begins or "|" in bare[0]):
        return re.findall(r"[\w-]+", re.sub(r"\bor\b", " ", bare[0]))
    return []


def _words_pattern(least: int, most: int | None) -> str:
    """A pattern of texts with so many words."""
    high = "" if most is None else str(max(0, most - 1))
    return rf"^\s*\S+(?:\s+\S+){{{max(0, least - 1)},{high}}}\s*$"


def _rules_in(clause: str, fixed: str) -> Iterator[_Read]:
    """The rules of a clause; ``fixed`` is a pattern of lines that the prompt gives word for word."""
    yield from _line_rules(clause)
    if not _OF_A_PART.search(clause) and (band := _band(clause)) is not None:
        yield _Read(f"length_{band.rsplit(' ', 1)[1].rstrip('s')}s", "length", band, _said_band(clause))
    if not _OF_LINES.search(clause):
        for kind, form in (("begins", _BEGINS), ("ends", _ENDS)):
            if (found := form.search(clause)) and not _undone(clause, found):
                yield _Read(kind, kind, _inner(found), found[0])
    if found := _FORBIDDEN.search(clause):
        words = [_inner(each) for each in _QUOTED.finditer(clause, found.end())]
        pattern = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)
        said = f"Does the output say {' or '.join(words)}?"
        if words:
            yield _Read(f"not_{_name(words[0])}", "matches", f"(?i){pattern}", clause[found.start() :], "no", said)
    elif found := _WANTED.search(clause):
        word = _inner(found)
        yield _Read(f"has_{_name(word)}", "matches", re.escape(word), found[0], text=f"Does the output say {word}?")
    if found := _ADDRESS.search(clause):
        word = _inner(found)
        forms = rf"\b{re.escape(word)}{'(?:r|rs|rself)?' if word.lower() == 'you' else ''}\b"
        # a fixed line, e.g. "Your help desk", says nothing of how the output speaks to its reader
        pattern = rf"(?im)^(?!\s*(?:{fixed})\s*$).*{forms}" if fixed else f"(?i){forms}"
        yield _Read(f"says_{_name(word)}", "matches", pattern, found[0], text=f"Does the output say {word}?")
    if found := _ITS_SOURCE.search(clause):
        word = found[1].lower().removesuffix("s")
        pattern = rf"(?i)\b{re.escape(word)}s?\b"
        yield _Read(f"not_{_name(word)}", "matches", pattern, found[0], "no", f"Does the output mention the {word}?")
    yield from _form_rules(clause)


def _form_rules(clause: str) -> Iterator[_Read]:
    for trait in TRAITS:
        words = rf"\b{_NOT}\b[^.;:]{{0,30}}?\b(?:{_TRAIT_WORDS[trait.id]})(?!\w)"
        if found := re.search(words, clause, re.IGNORECASE):
            check = trait.check(wanted=False)
            yield _Read(check.id, "matches", check.value, found[0], "no", check.text)
    for words, sign in _SIGNS.items():
        if found := re.search(
            rf"\b{_NOT}\b (?:any |use |using |contain\w* ){{0,2}}(?:{words})\b", clause, re.IGNORECASE
        ):
            name = found[0].split()[-1].lower()
            yield _Read(f"no_{_name(name)}", "matches", sign, found[0], "no", f"Does the output have {name}?")
    for words, letters in _CASES.items():
        if (found := re.search(rf"\b(?:{words})\b", clause, re.IGNORECASE)) and not _OF_A_PART.search(clause):
            yield _Read("letter_case", "matches", letters, found[0], "no", f"Does the output break: {found[0]}?")
    if (found := _BULLETS.search(clause)) and not _undone(clause, found):
        mark = _BULLET_MARK.search(clause)
        said = found[0] if mark is None else clause[found.start() : mark.end()]
        pattern = _bullet_pattern(found, _inner(mark) if mark else None)
        yield _Read("bullet_count", "matches", pattern, said, text=f"Does the output have {found[0]}?")
    if (found := _SECTIONS.search(clause)) and not re.search(rf"\b{_NOT}\b", clause[: found.start()], re.IGNORECASE):
        names = [_inner(each).lstrip("# ") for each in _QUOTED.finditer(clause, found.end())]
        ahead = "".join(rf"(?=[\s\S]*^\W*{re.escape(each)}\W*$)" for each in names)
        if len(names) > 1:
            text = f"Does the output have the headings {', '.join(names)}?"
            yield _Read("sections", "matches", rf"(?m)\A{ahead}", clause[found.start() :], text=text)
    if (found := _JSON.search(clause)) and (alone := _ALONE.findall(clause)):
        yield _Read("json_alone", "json", None, " ".join([found[0], *alone]))
    if found := _LANGUAGE.search(clause):
        code = _LANGUAGES[found[1].lower()] if found[1] else _AUF[found[2].lower()]
        yield _Read("language", "language", code, found[0])


def _line_rules(clause: str) -> Iterator[_Read]:
    """Rules of one line: its words, or that it is in bold."""
    if (line := _LINE.search(clause)) is None:
        return
    word, rest = line[1].lower(), clause[line.end() :]
    place = _ORDINALS[word]
    name = "last_line" if place < 0 else f"line_{place}"
    if words := _fixed_line(clause):
        text, said = f'Is the {word} line "{words[0]}"?', f"{line[0]} is {words[0]}"
        yield _Read(name, "matches", line_pattern(place, re.escape(words[0])), said, text=text)
    elif found := re.search(r"\b(?:in|all|is) bold\b(?: \([^)]*\))?", rest, re.IGNORECASE):
        pattern = line_pattern(place, BOLD_LINE)
        yield _Read(f"{name}_bold", "matches", pattern, line[0] + found[0], text=f"Is the {word} line in bold?")
    elif re.match(r"\W*(?:is|must be|should be)\W+(?:empty|blank)\b", rest, re.IGNORECASE) is None:
        found = _BEGINS.search(rest)
        if found and place > 0:
            pattern = line_pattern(place, re.escape(_inner(found)) + REST_OF_LINE)
            yield _Read(f"{name}_begins", "matches", pattern, line[0] + found[0], text=f"Is the {word} line so begun?")


def _fixed_line(clause: str) -> list[str]:
    """The words of the one line that a clause gives word for word; empty where it gives none."""
    line = _LINE.search(clause)
    found = _LINE_IS.match(clause[line.end() :].lstrip()) if line else None
    return [_inner(found).strip()] if found else []


BOLD_LINE = r"\*\*[^*\n]+\*\*[.!?]?"
"""A pattern of a line in bold."""
REST_OF_LINE = r"[^\n]*"


def line_pattern(place: int, inner: str) -> str:
    """A pattern of texts whose line at a place (from 1, or -1 for the last) is ``inner``; empty lines do not count."""
    if place < 0:
        return rf"(?:\A|\n)[ \t]*{inner}\s*\Z"
    return rf"\A(?:\s*\S[^\n]*\n){{{place - 1}}}\s*{inner}[ \t]*(?:\n|\Z)"


def _band(clause: str) -> str | None:
    """The length that a clause asks for, as a check of the kind ``length`` takes it; None where it has several."""
    found = _bands(clause)
    return found[0][1] if len(found) == 1 else None


TIGHTER = 0.6
"""Share of a limit that a model is asked to keep: small ones overlook by how much they pass it."""


def tightened(clause: str) -> str:
    """A clause with smaller limits of words and characters: ``at most 25 words`` becomes ``at most 15 words``."""
    for pattern in (_AT_MOST, _OR_FEWER):
        clause = pattern.sub(lambda found: _smaller(found, 3 if found.re is _AT_MOST else 1), clause)
    return clause


def _smaller(found: re.Match[str], place: int) -> str:
    most = _number(found[place])
    if _unit(found[place + 1]) not in ("words", "characters") or most < 4:
        return found[0]
    start, end = (each - found.start() for each in found.span(place))
    return f"{found[0][:start]}{math.floor(TIGHTER * most)}{found[0][end:]}"


def _said_band(clause: str) -> str:
    return _bands(clause)[0][0]


def _bands(clause: str) -> list[tuple[str, str]]:
    """Words of a clause about length, and the band of each."""
    bands: list[tuple[str, str]] = []
    rest = clause
    for pattern in (_AT_MOST, _OR_FEWER, _EXACTLY, _BETWEEN, _WRITE):
        for found in list(pattern.finditer(rest)):
            before = rest[: found.start()]
            if _UNDONE.search(before) or _ABOUT.search(before):
                continue
            bands.append((found[0], _band_of(pattern, found)))
            rest = rest.replace(found[0], " ", 1)
    return bands


def _band_of(pattern: re.Pattern[str], found: re.Match[str]) -> str:
    unit = _unit(found.group(found.lastindex or 0))
    if pattern is _AT_MOST:
        return f"at most {_number(found[3]) - (found['less'] is not None)} {unit}"
    if pattern is _OR_FEWER:
        return f"at most {_number(found[1])} {unit}"
    if pattern is _BETWEEN:
        return f"{_number(found[1])} to {_number(found[2])} {unit}"
    if pattern is _WRITE:
        return f"exactly {_number(found[1])} {unit}"
    bound = "exactly" if found[1].lower() in ("exactly", "precisely", "genau") else "at least"
    return f"{bound} {_number(found[2])} {unit}"


def _unit(word: str) -> str:
    return next(name for name, forms in _UNITS.items() if re.fullmatch(forms, word, re.IGNORECASE)) + "s"


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[" ".join(text.lower().split())]


def _undone(clause: str, found: re.Match[str]) -> bool:
    """Whether a "not" stands before the words."""
    return _UNDONE.search(clause[: found.start()]) is not None


def _bullet_pattern(found: re.Match[str], mark: str | None) -> str:
    """A pattern of texts with so many bullet points."""
    low, high = _number(found[2]), _number(found[3] or found[2])
    bound = (found[1] or "").lower()
    times = f"{{0,{high}}}" if bound in ("at most", "no more than", "up to") else f"{{{low},{high}}}"
    times = f"{{{low},}}" if bound == "at least" else times
    begins = r"^\s*[-*•] " if mark is None else rf"^\s*{re.escape(mark)}"
    other = rf"(?:(?!{begins}).)*"
    return rf"(?ms)\A{other}(?:{begins}{other}){times}\Z"


def _inner(found: re.Match[str]) -> str:
    """The words between the quotation marks of a match."""
    return next(each for each in reversed(found.groups()) if each is not None)


def _words_left(clause: str, said: list[str]) -> int:
    """Words of content in a clause beside those that a check was read from."""
    rest = clause
    for each in said:
        for part in [each] if each in rest else each.split():
            rest = rest.replace(part, " ", 1)
    return sum(word.lower() not in _FILLERS for word in re.findall(r"\w+", rest))


def _name(words: str) -> str:
    return re.sub(r"\W+", "_", words.lower()).strip("_")[:40]
