"""Scores of judges in people's own words: how a score is read from a reply. Nothing is guessed.

An exported judge contains a copy of this file, so it imports only the standard library and :mod:`.json_object`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from .json_object import object_in

REASONS = ("reason", "reasoning", "reasons", "explanation", "rationale", "justification", "feedback", "critique")
"""Fields of a reply in JSON that hold the reason, the likeliest first."""
_SCORE_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_MARKS = r"[\s\"'`*_(\[<“‘]*"
_SCORE_WORDS = (
    "score|rating|rate|grade|mark|points|verdict|label|answer|result|decision|judge?ment|classification|category|"
    "conclusion|choice|option|evaluation|assessment"
)
_SAYS = r"(?:\s*(?::|=|->|→|—|–)|\s+-(?=\s)|\s+(?:is|of|would be|at|as)\b:?)"
_RANGE = re.compile(rf"\s*(?:-|–|—|to|or|and|,|\.\.)\s*{_SCORE_NUMBER}")  # the first of several numbers: ``3-4``
_TOP = re.compile(rf"[\s\"'`*_)\]}}>”’]*(?:/|out of|of)\s*(?P<top>{_SCORE_NUMBER})", re.IGNORECASE)
_NEUTRAL = frozenset(
    re.findall(r"\w+", "a an the my this its your of as final overall total and numerical numeric assigned it")
)
_SAID_LAST = frozenset(("final", "overall", "total"))
_DELIMITED, _FINAL_SCORE, _SCORE, _MENTION = 4, 3, 2, 1  # how plainly a score is stated


class StatedScore(NamedTuple):
    """A score that a judge states."""

    value: float  # number on the judge's own scale; for a label, its place from 1
    share: float  # the score mapped to [0, 1]: 0 is the worst of the scale, 1 the best
    reason: str | None


class _Stated(NamedTuple):
    """A place of a reply that states a score."""

    line: int
    opens: bool  # whether no word comes before it in its line
    strength: int
    about: str  # word before the score that names its kind; empty for the main score
    value: float | None  # None if two scores are stated at once, or the score is on another scale


class Reads(NamedTuple):
    """Form of a judge's reply: how its score is read."""

    kind: Literal["score", "labels", "json", "pattern"]
    low: float  # worst score; it may be the larger one
    high: float  # best score
    labels: tuple[str, ...] = ()  # words from worst to best, which count from 1; empty where the score is a number
    where: str = ""  # JSON path, or pattern with one group

    def __str__(self) -> str:
        values = ",".join(self.labels) if self.labels else f"{self.low:g}-{self.high:g}"
        return f"{self.kind}:{self.where} {values}" if self.where else f"{self.kind} {values}"

    @property
    def name(self) -> str:
        """Name of the score: the name of its JSON field, or ``score``."""
        return str(path_parts(self.where)[-1]) if self.kind == "json" else "score"

    @property
    def said(self) -> str:
        """The form in words."""
        ends = f"from {self.low:g} (worst) to {self.high:g} (best)"
        values = f"one of {', '.join(self.labels)} (from worst to best)" if self.labels else f"a number {ends}"
        place = {"json": f"the JSON field {self.where}", "pattern": f"what matches {self.where}"}
        return f"{place.get(self.kind, 'the score that it ends with')}, {values}"

    def read(self, text: str, *, ended: bool = True) -> StatedScore:
        """Read a reply's score. A reply that has not ``ended`` counts if its score was complete. Raises ValueError,
        with the problem, if the reply states no score, a score outside the scale, or two different scores."""
        if self.kind == "json":
            value, reason = self._of_json(text, ended)
        else:
            found = self._by_pattern(text) if self.kind == "pattern" else self._stated(text)
            value, reason = _the_one(found, text, ended), _reason_of(text, self)
        share = (value - self.low) / (self.high - self.low)
        return StatedScore(value, share + 0.0, reason)

    def number(self, said: Any) -> float:
        """Turn a value of a reply into a score. Raises ValueError if it is no score, or outside the scale."""
        if self.labels:
            word = said if isinstance(said, str) else json.dumps(said)
            place = next((n for n, each in enumerate(self.labels, 1) if _plain(each) == _plain(word)), None)
            if place is None:
                raise ValueError(f"{word!r} is none of {', '.join(self.labels)}")
            return float(place)
        if isinstance(said, str):
            match = re.fullmatch(rf"{_MARKS}(?P<number>{_SCORE_NUMBER})(?P<rest>.*)", said.strip(), re.DOTALL)
            rest = "" if match is None else match["rest"].strip(" \t\"'`*_)]>.%”’")
            top = _TOP.fullmatch(rest)
            if match is None or (rest and (top is None or float(top["top"]) != max(self.low, self.high))):
                raise ValueError(f"{said!r} is no number from {self.low:g} to {self.high:g}")
            said = float(match["number"])
        if isinstance(said, bool) or not isinstance(said, (int, float)):
            raise ValueError(f"{json.dumps(said)} is no number from {self.low:g} to {self.high:g}")
        if not min(self.low, self.high) <= said <= max(self.low, self.high):
            raise ValueError(f"{said:g} is outside the scale from {self.low:g} to {self.high:g}")
        return float(said)

    def _of_json(self, text: str, ended: bool) -> tuple[float, str | None]:
        parts = path_parts(self.where)
        objects = list(_objects(text, str(parts[0])))
        read = [self.number(_at(fields, parts)) for fields in objects]
        if not read:
            problem = "it has no whole JSON object" if ended else "it was cut off before its score"
            raise ValueError(f"{problem} with {self.where}")
        if len(set(read)) > 1:
            raise ValueError(f"it states several scores: {', '.join(f'{each:g}' for each in read)}")
        return read[-1], _reason_in(objects[-1], parts)

    def _by_pattern(self, text: str) -> Iterator[_Stated]:
        for match in re.finditer(self.where, text, re.MULTILINE):
            said = next((each for each in match.groups() if each is not None), match[0])
            line, before = text.count("\n", 0, match.start()), text[: match.start()].rpartition("\n")[2]
            yield _Stated(line, not before.strip(), _DELIMITED, "", self._value(said))

    def _value(self, said: str) -> float | None:
        try:
            return self.number(said)
        except ValueError:
            return None

    def _stated(self, text: str) -> list[_Stated]:
        """Find the statements of a score, line by line. If there is none, return the only score in the reply."""
        value = (
            "|".join(sorted(map(_label_pattern, self.labels), key=len, reverse=True)) if self.labels else _SCORE_NUMBER
        )
        statements = []
        for place, line in enumerate(text.splitlines()):
            statements += [_Stated(place, *statement) for statement in self._in_line(line, value)]
        return statements or [
            _Stated(0, True, _MENTION, "", value_named) for value_named in self._only_one(text, value)
        ]

    def _in_line(self, line: str, value: str) -> Iterator[tuple[bool, int, str, float | None]]:
        def opens(match: re.Match[str]) -> bool:
            return not re.search(r"\w", line[: match.start()])

        delimited = (
            rf"\[\[{_MARKS}(?P<said>{value})\s*\]\]",
            rf"<(?:\w*_)?(?:{_SCORE_WORDS})>{_MARKS}(?P<said>{value})[^<\w]*(?:{_SCORE_NUMBER})?\s*</",
            rf"\\boxed\{{(?P<said>{value})\}}",
            rf"\[RESULT\]{_MARKS}(?P<said>{value})",
        )
        for pattern in delimited:
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield opens(match), _DELIMITED, "", self._read_at(match, line)
        labelled = (
            rf"(?P<about>(?:[\w-]+[ \t]+){{0,2}}?)\b(?:{_SCORE_WORDS})s?\b[*_\"'`]*{_SAYS}{_MARKS}(?P<said>{value})"
        )
        for match in re.finditer(labelled, line, re.IGNORECASE):
            about = [each for each in match["about"].lower().split() if each not in _NEUTRAL]
            is_final = bool(_SAID_LAST.intersection(match["about"].lower().split()))
            strength = _FINAL_SCORE if is_final else _SCORE
            yield opens(match), strength, " ".join(about[-1:]), self._read_at(match, line)
        alone = rf"[\s#>\-•]*{_MARKS}(?P<said>{value})[\s\"'`*_)\]>.!”’]*(?:(?:/|out of)\s*{_SCORE_NUMBER}|stars?|points?|%)?"
        if whole := re.fullmatch(rf"{alone}[\s\"'`*_)\]>.!”’]*", line, re.IGNORECASE):
            yield True, _SCORE, "", self._read_at(whole, line)

    def _read_at(self, match: re.Match[str], line: str) -> float | None:
        """Read the score at a match; None if it is one of several, goes on, or has another maximum."""
        tail = line[match.end("said") :]
        if self.labels:
            return None if re.match(r"[\w-]", tail) or _OTHER.match(tail) else self._value(match["said"])
        if re.match(r"[\d.]*\d|[\w]", tail) or _RANGE.match(tail):
            return None
        if (top := _TOP.match(tail)) and float(top["top"]) != max(self.low, self.high):
            return None
        return self._value(match["said"])

    def _only_one(self, text: str, value: str) -> Iterator[float | None]:
        """Find the only number, if the reply begins or ends with it, or the label that is the reply's first clause."""
        if self.labels:
            match = re.match(rf"{_MARKS}(?P<said>{value})[\"'`*_)\]>”’]*(?:[.,;:!\n)—–]|\s-|$)", text, re.IGNORECASE)
            if match and (len(match["said"]) > 1 or match["said"] in self.labels):
                yield self._read_at(match, text)
            return
        numbers = list(re.finditer(rf"(?<![\w.])(?P<said>{_SCORE_NUMBER})(?!\w)", text))
        tops = [each for each in numbers if text[: each.start()].rstrip().endswith(("/", "out of"))]
        numbers = [each for each in numbers if each not in tops]
        if len(numbers) == 1:
            before, after = text[: numbers[0].start()], text[numbers[0].end() :]
            ends = not re.search(r"\w", _TOP.sub("", after, count=1) if _TOP.match(after) else after)
            if not re.search(r"\w", before) or ends:
                yield self._read_at(numbers[0], text)


_OTHER = re.compile(r"[\"'`*_)\]>”’]*\s*(?:/|\||\bor\b|\band\b)", re.IGNORECASE)


def path_parts(path: str) -> list[str | int]:
    """Split a JSON path, e.g. ``$.verdict.scores[0]`` or ``verdict["overall score"]``, into keys and places in lists.
    Raises ValueError if it is no path, or begins or ends with a place."""
    tail, parts = path.strip().removeprefix("$").removeprefix("."), list[str | int]()
    step = re.compile(r"\.?([^.\[\]\"'$]+)|\[(\d+)\]|\[\"([^\"]+)\"\]|\['([^']+)'\]")
    while tail:
        match = step.match(tail)
        if match is None:
            raise ValueError(f"'{path}' is no JSON path; write score, verdict.score or scores[0]")
        parts.append(int(match[2]) if match[2] else str(match[1] or match[3] or match[4]).strip())
        tail = tail[match.end() :]
    if not parts or isinstance(parts[-1], int) or isinstance(parts[0], int):
        raise ValueError(f"'{path}' is no JSON path; write score, verdict.score or $.scores[0].value")
    return parts


def _plain(word: str) -> str:
    return " ".join(re.sub(r"[\"'`*_()\[\].!:“”‘’]", " ", word).casefold().split())


def _label_pattern(label: str) -> str:
    escaped = r"\s+".join(re.escape(each) for each in label.split())
    return f"(?-i:{escaped})" if len(label) == 1 else escaped


def _objects(text: str, key: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects with a key in a reply: the whole reply, or objects within its text."""
    try:
        fields = object_in(text, [key], cut=True)
        if isinstance(fields, dict) and key in fields:
            yield fields
            return
    except ValueError:
        pass
    decoder, place = json.JSONDecoder(strict=False), text.find("{")
    while place >= 0:
        end = place + 1
        try:
            fields, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and key in fields:
            yield fields
        place = text.find("{", end)


def _at(fields: Any, parts: Sequence[str | int]) -> Any:
    for done, part in enumerate(parts):
        is_item = isinstance(fields, list) and isinstance(part, int) and part < len(fields)
        if not is_item and not (isinstance(fields, dict) and isinstance(part, str) and part in fields):
            raise ValueError(f"its JSON has no {'.'.join(map(str, parts[: done + 1]))}")
        fields = fields[part]
    return fields


def _the_one(found: Iterable[_Stated], text: str, ended: bool) -> float:
    """Choose a reply's score among all its statements. Raises ValueError if there is none, or there are two."""
    stated = list(found)
    if not stated:
        raise ValueError("it states no score that can be read" if ended else "it was cut off before its score")
    strongest = max(statement.strength for statement in stated)
    plain = [statement for statement in stated if statement.strength == strongest]
    plain = [statement for statement in plain if not statement.about] or plain
    if len({statement.about for statement in plain}) > 1 and len({statement.value for statement in plain}) > 1:
        raise ValueError("it states scores of several kinds, and none for the whole")
    last = [statement for statement in plain if statement.line == plain[-1].line]
    opening = next(number for number, line in enumerate(text.splitlines()) if line.strip())
    # Different scores at beginning and end are two scores. Earlier scores within reasoning may be revised.
    begins = [statement for statement in plain if statement.opens and statement.line == opening != last[0].line]
    if not ended and not (plain[0].opens and plain[0].line == opening < text.rstrip().count("\n")):
        raise ValueError("it was cut off before its score")
    said = {statement.value for statement in (last if ended else plain[:1])} | {statement.value for statement in begins}
    if len(said) > 1:
        raise ValueError("it states two different scores")
    (value,) = said
    if value is None:
        raise ValueError("its score is outside the scale, or one of several")
    return value


def _reason_in(fields: dict[str, Any], parts: Sequence[str | int]) -> str | None:
    """Find the reason in a JSON object: a field named in :data:`REASONS`, else its other texts."""
    siblings = _at(fields, parts[:-1])
    for source in (siblings, fields):
        if isinstance(source, dict):
            texts = {str(name): text.strip() for name, text in source.items() if isinstance(text, str) and text.strip()}
            texts.pop(str(parts[-1]) if source is siblings else "", None)
            named = next((texts[name] for name in REASONS if name in texts), None)
            if named or texts:
                return named or " ".join(texts.values())
    return None


def _reason_of(text: str, reads: Reads) -> str | None:
    """Return the reply without lines that hold only a score."""
    value = "|".join(map(_label_pattern, reads.labels)) or _SCORE_NUMBER
    bare = re.compile(
        rf"[\s#>*_\-]*(?:[\w ]{{0,20}}\b(?:{_SCORE_WORDS})[*_]*{_SAYS})?{_MARKS}"
        rf"(?:{value})[\s\"'`*_)\]>.!/”’]*(?:\d+)?[*\s\]]*",
        re.IGNORECASE,
    )
    kept = [line for line in text.strip().splitlines() if not bare.fullmatch(line)]
    return "\n".join(kept).strip() or None
