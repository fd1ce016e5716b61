"""Forms of replies for judges in people's own words: given by the user, or found in the judge's prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...prompts.errors import InputError
from ...prompts.human_feedback import MEANINGS
from .own_scores import Reads, path_parts

FORMS = (
    "'score 1-5' (the score that the reply ends with, on any scale), 'labels Bad,Acceptable,Excellent' (from worst to "
    "best), 'json:verdict.score 1-5' (a field of JSON, also with labels), or 'pattern:Rating: (\\d+) 1-5'"
)
"""Examples of what ``--reads`` takes."""
_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:-|–|\.\.|to)\s*(-?\d+(?:\.\d+)?)")
_SCORES = re.compile(
    r"(?:(?:overall|final|total)[_ ]?)?(?:score|rating|grade|mark|points)|overall|total", re.IGNORECASE
)
_VERDICTS = re.compile(
    r"(?:final[_ ]?)?(?:verdict|label|answer|result|decision|judge?ment|class|classification|category|choice|grade|"
    r"pass|passed|passes|correct|is_correct|acceptable|good|score|rating)",
    re.IGNORECASE,
)
_BETWEEN = rf"(?:{_SCALE.pattern}|(-?\d+(?:\.\d+)?)\s*(?:and|through)\s*(-?\d+(?:\.\d+)?))"
_SCALE_SAID = re.compile(
    rf"\b(?:scale|from|between|range|score|scores|scored|rate|rated|rating|grade|number|integer|value)\b[^.\n]{{0,60}}?"
    rf"(?<![\d.]){_BETWEEN}(?![\d.]*\d)",
    re.IGNORECASE,
)
_OUT_OF = re.compile(r"(?:/|\bout of)\s*(\d+)\b", re.IGNORECASE)
_BRACKETED = re.compile(r"\[\[\s*(?:score|rating|grade|mark|number|x|n|\d+)\s*\]\]", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:answer|respond|reply|return|output|say|write|choose|select|classify|label|conclude|end|verdict|grade|rate|"
    r"judge?ment|decide|one of|either)\b",
    re.IGNORECASE,
)
_WORD = r"(?:\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|`[^`\n]{1,40}`|\*\*[^*\n]{1,40}\*\*|[A-Z][\w-]*|[A-Za-z]+)"
_CHOICES = re.compile(
    rf"(?:(?<=one of )|(?<=one of: )){_WORD}(?:\s*[,|/]\s*{_WORD})+|"
    rf"{_WORD}(?:\s*,\s*{_WORD})*(?:\s*,)?\s*(?:\bor\b|/|\|)\s*{_WORD}(?:\s*(?:/|\|)\s*{_WORD})*"
)
_LISTED = re.compile(r"[<\[{(\"'`]([^<>\[\]{}()|\"'`\n]{1,40}(?:\|[^<>\[\]{}()|\"'`\n]{1,40})+)[>\]})\"'`]")
"""Labels with any number of words, e.g. ``<Good|Could be improved|Bad>``."""
_GOES_ON = re.compile(
    r"\s+(?!(?:and|as|based|by|depending|according|for|if|in|only|on|to|when|where|with|without|at|after|before|of)\b)"
    r"[A-Za-z]"
)
_VALENCE = {
    **dict.fromkeys(("excellent", "perfect", "outstanding", "best", "great", "fully", "always"), 2),
    **dict.fromkeys(("good", "correct", "yes", "pass", "true", "accept", "accurate", "high", "strong", "helpful"), 1),
    **dict.fromkeys(("supported", "faithful", "consistent", "relevant", "safe", "complete", "positive", "all"), 1),
    **dict.fromkeys(("acceptable", "fair", "ok", "okay", "average", "medium", "mixed", "neutral", "moderate"), 0),
    **dict.fromkeys(("partially", "partly", "partial", "some", "mostly", "could"), 0),
    **dict.fromkeys(("bad", "poor", "wrong", "no", "fail", "false", "reject", "incorrect", "inaccurate", "low"), -1),
    **dict.fromkeys(("weak", "unsupported", "unfaithful", "inconsistent", "irrelevant", "unsafe", "negative"), -1),
    **dict.fromkeys(("incomplete", "unacceptable", "unhelpful", "not", "hallucinated", "none"), -1),
    **dict.fromkeys(("terrible", "awful", "worst", "useless", "never"), -2),
}
"""How good an output is, by a word in its label: from -2 (worst) to 2 (best)."""


class FoundReads(NamedTuple):
    """A form of replies that was found in a prompt."""

    reads: Reads
    by: str  # words of the prompt that describe the form


def parse_reads(text: str) -> Reads:
    """Parse ``--reads``: ``KIND VALUES``, with a scale or labels. Raises InputError, which says what to write."""
    form = " ".join(text.split()) if not text.startswith("pattern:") else text.strip()
    kind, _, definition = form.partition(" ")
    if form.startswith(("json:", "pattern:")):
        kind, _, definition = form.partition(":")
        place, values = _split(kind, definition.strip())
        _check_place(kind, place, form)
        low, high, labels = _values(values, form)
        return Reads("json" if kind == "json" else "pattern", low, high, labels, place)
    if kind not in ("score", "labels"):
        raise InputError(f"reads: '{form}' is no form of replies. Write {FORMS}.")
    low, high, labels = _values(definition, form)
    if (kind == "labels") != bool(labels):
        raise InputError(f"reads: '{form}': a score has a scale, and labels are words. Write {FORMS}.")
    return Reads("labels" if labels else "score", low, high, labels)


def _split(kind: str, rest: str) -> tuple[str, str]:
    """Split a place from the values after it: a scale after the last blank, else labels."""
    where, _, values = rest.rpartition(" ")
    if where and _SCALE.fullmatch(values):
        return where.strip(), values
    begins = rest.rfind(")") if kind == "pattern" else 0
    place = rest.find(" ", max(begins, 0))
    return (rest, "") if place < 0 else (rest[:place].strip(), rest[place:].strip())


def _check_place(kind: str, where: str, given: str) -> None:
    try:
        if kind == "json":
            path_parts(where)
        elif re.compile(where).groups < 1:
            raise ValueError(f"the pattern '{where}' has no group (…) around the score")
    except (ValueError, re.error) as error:
        raise InputError(f"reads: '{given}': {error}.") from None


def _values(text: str, given: str) -> tuple[float, float, tuple[str, ...]]:
    """Parse values into the worst number, the best number, and the labels if there are any."""
    if scale := _SCALE.fullmatch(text):
        low, high = float(scale[1]), float(scale[2])
        if low == high:
            raise InputError(f"reads: '{given}': the two ends of the scale must differ.")
        return low, high, ()
    words = tuple(" ".join(each.split()) for each in text.split(",")) if text else ()
    if len(words) < 2 or not all(words) or len({each.casefold() for each in words}) < len(words):
        raise InputError(
            f"reads: '{given}': a scale is missing, such as 1-5, or two or more labels with commas, from worst to "
            f"best. Write {FORMS}."
        )
    # for two words for pass and fail it is known which one is better, so their order does not matter
    is_pair = len(words) == 2 and {MEANINGS.get(word.casefold()) for word in words} == {True, False}
    return 1.0, float(len(words)), worst_first(words) if is_pair else words


def worst_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """Order labels from worst to best by their words. Raises ValueError if the words do not tell."""
    ends = _how_good(words[0]), _how_good(words[-1])
    if None in ends or ends[0] == ends[1]:
        raise ValueError(f"it does not say whether {words[0]} or {words[-1]} is better")
    return words if (ends[0] or 0) < (ends[1] or 0) else words[::-1]


def _how_good(words: str) -> int | None:
    known = [_VALENCE[each] for each in re.findall(r"[a-z]+", words.casefold()) if each in _VALENCE]
    return known[0] if known else None


def find_reads(prompt: str) -> FoundReads | None:
    """Find the form of replies that a prompt asks for: JSON, ``[[rating]]``, labels or a scale; None for no form or
    several. Raises ValueError, which names the labels, if the prompt does not tell which label is best."""
    text = prompt.replace("{{", "{").replace("}}", "}")
    for find in (_of_json, _of_brackets, _of_labels, _of_scale):
        found = find(text)
        if found is not None or (find is _of_json and any(_fields(text))):  # fields, and none for the whole
            return found
    return None


def _of_json(text: str) -> FoundReads | None:
    fields = list(_fields(text))
    if not fields and re.search(r"\bJSON\b", text):  # its fields may be named in a sentence
        fields = [((name,), "") for name in dict.fromkeys(re.findall(r"[\"'`](\w+)[\"'`]", text))]
    for names in (_SCORES, _VERDICTS):
        wanted = [field for field in fields if names.fullmatch(field[0][-1])]
        finals = [field for field in wanted if re.match(r"(?:overall|final|total)", field[0][-1], re.IGNORECASE)]
        for path, spec in finals or wanted:
            if len({field for field, _ in finals or wanted}) == 1 and (values := _values_of(spec, text)) is not None:
                where = ".".join(f'["{name}"]' if re.search(r"[^\w-]", name) else name for name in path)
                return FoundReads(
                    Reads("json", *values, where=where.replace(".[", "[")), f'"{path[-1]}": {spec}'.strip()
                )
    return None


def _fields(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find the fields of the JSON that a prompt shows: their paths, and the text shown as their value."""
    path: list[str | None] = []
    key: str | None = None
    parts = re.compile(r'"(?P<key>\w[\w \-]*)"\s*:\s*|[{}]|\[(?=\s*\{)')
    for match in parts.finditer(text):
        if match[0] == "{":
            path.append(key)
            key = None
        elif match[0] == "}":
            path[-1:] = []
        elif match["key"] and path:
            key = match["key"]
            rest = text[match.end() :]
            if not rest.startswith("{"):
                spec = re.match(r'(?:"[^"\n]*"(?:\s*(?:\||/|or)\s*"[^"\n]*")*|<[^>\n]*>|[^,}\n"])*', rest)
                yield tuple(each for each in (*path, key) if each), (spec[0] if spec else "").strip()
                key = None


def _values_of(spec: str, text: str) -> tuple[float, float, tuple[str, ...]] | None:
    """Find the scale or labels of a JSON field: in the text shown as its value, else in the rest of the prompt."""
    bare = spec.strip("<>[]()\"' ")
    if scale := re.search(_BETWEEN, bare):
        low, high = (float(end) for end in scale.groups() if end is not None)
        return (low, high, ()) if low != high else None
    if re.fullmatch(r"(?:true|false)(?:\s*(?:\||/|or)\s*(?:true|false))?|bool(?:ean)?", bare, re.IGNORECASE):
        return 1.0, 2.0, ("false", "true")
    words = [part.strip(" \"'<>`") for part in re.split(r"\s*(?:\||/|\bor\b)\s*", bare)]
    if len(words) > 1 and all(re.fullmatch(r"-?\d+", word) for word in words):
        return float(words[0]), float(words[-1]), ()
    if len(words) > 1 and all(re.fullmatch(r"\w[\w -]{0,30}", word) for word in words):
        return 1.0, float(len(words)), _ordered(tuple(words), text)
    scale_said = scale_in(text)
    return None if scale_said is None else (*scale_said, ())


def _of_brackets(text: str) -> FoundReads | None:
    match, scale = _BRACKETED.search(text), scale_in(text)
    if match is None or scale is None:
        return None
    return FoundReads(Reads("pattern", *scale, where=r"\[\[\s*(-?\d+(?:\.\d+)?)\s*\]\]"), match[0])


def _of_scale(text: str) -> FoundReads | None:
    scale = scale_in(text)
    return None if scale is None else FoundReads(Reads("score", *scale), f"{scale[0]:g} to {scale[1]:g}")


def scale_in(text: str) -> tuple[float, float] | None:
    """Return the only scale that a prompt mentions; None if there is none, or more than one."""
    pairs = ([float(each) for each in match.groups() if each] for match in _SCALE_SAID.finditer(text))
    said = {(low, high) for low, high in pairs if low != high}
    if not said:
        said = {(0.0, float(match[1])) for match in _OUT_OF.finditer(text) if int(match[1]) in (5, 10, 20, 100)}
    return said.pop() if len(said) == 1 else None


def _of_labels(text: str) -> FoundReads | None:
    """Find labels in the last sentence that asks for one of several words; None if there is a scale to rate on."""
    if scale_in(text) is not None:
        return None
    for sentence in reversed(re.split(r"(?<=[.!?])\s|\n", text)):
        asks = _ASKS.search(sentence)
        if asks and (listed := _LISTED.search(sentence)):
            labels = _ordered(tuple(" ".join(label.split()) for label in listed[1].split("|")), text)
            return FoundReads(Reads("labels", 1.0, float(len(labels)), labels), sentence.strip())
        for match in reversed(list(_CHOICES.finditer(sentence, asks.start()))) if asks else ():
            words = [word.strip(" \"'`*") for word in re.split(r"\s*(?:,|/|\||\bor\b)\s*", match[0]) if word.strip()]
            if _GOES_ON.match(sentence, match.end()) or re.search(r"(?<=[ ,])[A-Z][\w-]* $", sentence[: match.start()]):
                continue  # this would cut off part of a label with several words
            if len(words) > 1 and len({word.casefold() for word in words}) == len(words) and _are_labels(words, text):
                labels = _ordered(tuple(words), text)
                return FoundReads(Reads("labels", 1.0, float(len(labels)), labels), sentence.strip())
    return None


def _are_labels(words: list[str], text: str) -> bool:
    """Whether a sentence's words are labels: all quoted, all with a capital, or all words for good or bad."""
    quoted = all(re.search(rf"[\"'`*]{re.escape(word)}[\"'`*]", text) for word in words)
    return quoted or all(word[:1].isupper() for word in words) or all(_how_good(word) is not None for word in words)


def _ordered(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Order labels from worst to best: by their words, by the prompt's explanation of each, or, for the letters from A
    on, as school grades. Raises ValueError if none of these tells which one is best."""
    try:
        return worst_first(words)
    except ValueError:
        explanations = [
            re.search(rf"(?<!\w){re.escape(each)}\W{{0,3}}(?::|=|-|–|—|\)|means|if)\s*([^\n]+)", text) for each in words
        ]
        ends = [None if each is None else _how_good(each[1]) for each in (explanations[0], explanations[-1])]
        if None not in ends and ends[0] != ends[1]:
            return words if (ends[0] or 0) < (ends[1] or 0) else words[::-1]
        if list(words) == [chr(ord("A") + place) for place in range(len(words))] and not any(explanations):
            return words[::-1]
        raise
