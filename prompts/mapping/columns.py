"""Columns of a file's first rows, with those inside objects and lists: their kinds and values.

Some columns hold people's scores or labels. For these, options that explain their words and scales are proposed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..human_feedback import MEANINGS, is_missing, is_number, number_with_whole
from ..messages import messages_of
from ..tables import as_written
from ..text import shorten
from .published import BAD, GOOD, LADDER, OF_PROGRAMS, QUALITIES, RATINGS, SCALES, plain_name

LOOKED_AT = 2_000
"""Number of rows that are read."""
MOST_COLUMNS = 300
"""Maximum number of columns that are listed; further paths are ignored."""
FEW = 12
"""Maximum number of different values in a column of labels."""
LONG = 30
"""Letters from which on a value is rather a text than a word."""
NAMING = ("name", "from_name", "key", "metric", "metric_name")
"""Fields that name the entries of a list, so that each name becomes a column."""
_NO_TEXT = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T].*)?|https?://\S+")
"""Dates and web addresses, which count as no texts."""


@dataclass
class DataColumn:
    """A column, or a place inside one, with its path."""

    path: str
    rows: int = 0
    """Number of rows with a value in the column."""
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    """Each value, as text, with its count."""
    letters: int = 0
    """Total length of the values."""
    several: bool = False
    """Whether a row has several values here, e.g. of several raters."""
    last_role: str = ""
    """Role of the last message in the first row with messages."""

    @property
    def name(self) -> str:
        """The last part of the path that is not a number or ``*``."""
        parts = [each for each in self.path.split(".") if not each.lstrip("-").isdigit() and each != "*"]
        return parts[-1] if parts else self.path

    @property
    def kind(self) -> str:
        """The most frequent kind of value: text, number, truth value, messages, texts or list; else ``empty``."""
        return self.kinds.most_common(1)[0][0] if self.kinds else "empty"

    @property
    def numbers(self) -> list[float]:
        """The different numbers of the column, sorted; empty if the column also has other kinds of values."""
        if set(self.kinds) - {"number"} or not self.values:
            return []
        return sorted({number for each in self.values if (number := _number(each)) is not None})

    @property
    def is_unique(self) -> bool:
        """Whether every value occurs only once."""
        return all(count == 1 for count in self.values.values())

    @property
    def mean_letters(self) -> float:
        """Mean length of a value, in characters."""
        return self.letters / max(self.values.total(), 1)

    @property
    def is_prose(self) -> bool:
        """Whether the values are texts rather than labels, names or numbers."""
        if self.kind in ("messages", "texts"):
            return True
        if self.kind != "text" or all(each.strip().casefold() in MEANINGS for each in self.values):
            return False
        if all(_NO_TEXT.fullmatch(each.strip()) for each in self.values):
            return False
        return self.mean_letters >= LONG or any(" " in each for each in self.values)

    def described(self) -> str:
        """Describe the column: its kind, and its values with their counts if there are few."""
        note = ", each once" if self.is_unique and self.rows > 1 else ""
        if self.is_prose and self.kind == "text":
            example = next(iter(self.values), "")
            return f"text, about {self.mean_letters:.0f} letters: {shorten(' '.join(example.split()), LONG)!r}{note}"
        if 0 < len(self.values) <= FEW and self.mean_letters < LONG and not (note and self.numbers):
            order = sorted(self.values.items(), key=lambda each: (-each[1], each[0]))
            return f"{self.kind}: {', '.join(f'{shorten(value, LONG)} ({times})' for value, times in order)}"
        if numbers := self.numbers:
            return f"number from {numbers[0]:g} to {numbers[-1]:g}{note}"
        return f"{self.kind}{note}"


def columns_in(rows: Iterable[Mapping[str, Any]]) -> dict[str, DataColumn]:
    """Return the columns of the rows by path, in order of first appearance."""
    found: dict[str, DataColumn] = {}
    for row in rows:
        paths: set[str] = set()
        for path, value in _leaves(row):
            if path not in found and len(found) >= MOST_COLUMNS:
                continue
            column = found.setdefault(path, DataColumn(path))
            if is_missing(value):
                continue
            column.several |= path in paths or ("*" in path and isinstance(value, list) and len(value) > 1)
            column.rows += path not in paths
            paths.add(path)
            _count(column, value)
    return found


def _count(column: DataColumn, value: Any) -> None:
    if isinstance(value, bool):
        kind, text = "truth value", str(value).lower()
    elif isinstance(value, (int, float)):
        kind, text = "number", as_written(value)
    elif isinstance(value, str):
        kind, text = "text" if _number(value) is None else "number", value
        text = f"{float(value):g}" if is_number(value) else text
    else:
        messages = messages_of(value)
        if messages and not column.last_role:
            column.last_role = messages[-1][0]
        texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        kind = "messages" if messages else "texts" if texts else "list"
        text = json.dumps(value, default=str)
    column.kinds[kind] += 1
    column.values[text] += 1
    column.letters += len(text)


def _number(text: str) -> float | None:
    counted = number_with_whole(text)
    return float(text) if is_number(text) else counted[0] if counted else None


def _leaves(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths of a row with their values. Objects and lists of objects are entered; messages are one value."""
    are_several = isinstance(value, list) and value and not messages_of(value)
    if isinstance(value, Mapping) and value and (not before or not _is_message(value)):
        for name, each in value.items():
            yield from _leaves(each, f"{before}.{name}" if before else str(name))
    elif are_several and all(isinstance(each, Mapping) for each in value):
        key = next((key for key in NAMING if all(isinstance(each.get(key), str) for each in value)), None)
        for entry in value:
            part = "*" if key is None or "." in entry[key] else f"{key}={entry[key]}"
            yield from _leaves(entry, f"{before}.{part}")
    elif are_several and (".*" in before or _are_ratings(before, value)):
        yield from ((before, each) for each in value)  # a path with * also returns them one by one
    else:
        yield before, value


def _are_ratings(path: str, values: list[Any]) -> bool:
    """Whether a list holds the ratings of several raters: numbers, or short words under a name for ratings."""
    if all(isinstance(each, (int, float)) for each in values):
        return True
    words = {*plain_name(path.rpartition(".")[2]).split("_")}
    short = all(each is None or (isinstance(each, (str, int, float)) and len(str(each)) < LONG) for each in values)
    return short and bool(words & (RATINGS | QUALITIES))


def _is_message(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("role"), str) and "content" in value


RUNGS = {word: rung for rung, words in enumerate(LADDER) for word in words.split()}
OVERALL = "overall"
WORDS = 3
"""Maximum number of words in a label that is not known."""


@dataclass
class RatedColumns:
    """Dimensions of ratings with their columns, and the meaning of the values."""

    columns: dict[str, list[DataColumn]] = field(default_factory=dict)
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    label_scale: tuple[str, ...] | None = None
    human_scale: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)


def ratings_in(columns: Sequence[DataColumn]) -> RatedColumns:
    """Find the columns of people's scores and labels, by names and values.

    A column of numbers or truth values is taken if its name means a score or a quality. A column of words is taken if
    the words are known labels, or words of a scale. Columns that may be labels are mentioned in ``notes``.
    """
    found = RatedColumns()
    taken: list[DataColumn] = []
    for column in columns:
        kind = _values_of(column)
        if (kind == "labels" and not of_program(column)) or (kind in ("numbers", "truth") and _is_rating(column)):
            taken.append(column)
        elif kind == "words" and _is_rating(column):
            words = ", ".join(column.values)
            found.notes.append(
                f"'{column.path}' may hold labels ({words}), and which speak for an output is not known: --field "
                f"human.{dimension_of(column)}={column.path} --labels good=WORD,bad=WORD takes them."
            )
    for column in taken:
        found.columns.setdefault(dimension_of(column), []).append(column)
    _explain(found)
    return found


def _values_of(column: DataColumn) -> str:
    """Return the kind of a column's values: ``labels`` of known meaning, other ``words``, ``truth`` values, ``numbers``
    on a small scale, or an empty text."""
    if not column.values or set(column.kinds) - {"number", "text", "truth value"}:
        return ""
    if column.kind == "truth value":
        return "truth"
    if numbers := column.numbers:
        steps = all(float(each * 2).is_integer() for each in numbers)
        counted = any(number_with_whole(each) for each in column.values)
        return "numbers" if counted or (steps and numbers[0] >= -100 and numbers[-1] <= 100) else ""
    words = {plain_name(each) for each in column.values}
    if len(words) > FEW or column.mean_letters > LONG:
        return ""
    sided = all(each in MEANINGS or each in GOOD or each in BAD for each in words)
    short = len(words) <= FEW // 2 and all(len(each.split()) <= WORDS for each in column.values)
    return "labels" if sided or words <= RUNGS.keys() else "words" if short else ""


def _words(column: DataColumn) -> set[str]:
    whole = [plain_name(each.partition("=")[2] or each) for each in column.path.split(".")]
    return {word for each in whole for word in (each, *each.split("_"))}


def of_program(column: DataColumn) -> bool:
    """Whether the column's name says that a program gave the values."""
    return bool(_words(column) & OF_PROGRAMS) or "/" in column.path  # tools call their metrics fluency/score


def _is_rating(column: DataColumn) -> bool:
    words = _words(column)
    return bool(words & (RATINGS | QUALITIES)) and not of_program(column) and not column.path.endswith("id")


def dimension_of(column: DataColumn) -> str:
    """Return the dimension of a column of scores: the last part of its path that names one, else ``overall``."""
    named = [each.partition("=")[2] for each in column.path.split(".") if "=" in each]
    if named:
        return plain_name(named[-1])
    parts = column.path.split(".")
    for part in reversed(parts):
        name = plain_name(part)
        if {name, *name.split("_")} & QUALITIES:
            return name if name in QUALITIES else "_".join(word for word in name.split("_") if word not in RATINGS)
    last = plain_name(parts[0] if len(parts) == 1 else parts[-1])
    kept = [word for word in last.split("_") if word not in RATINGS and not word.isdigit()]
    known = {*MEANINGS, *RUNGS}
    words = {plain_name(each) for each in column.values}
    return OVERALL if not kept or words <= known | GOOD | BAD else "_".join(kept)


def _explain(found: RatedColumns) -> None:
    """Fill in the labels and scales of the columns; leave out columns whose words have no known order."""
    texts = [each for given in found.columns.values() for each in given if not each.numbers and each.kind == "text"]
    words = {plain_name(word): word.strip() for each in texts for word in each.values}
    unknown = {name: word for name, word in words.items() if word.casefold() not in MEANINGS}
    sided = all(name in GOOD or name in BAD for name in unknown)
    if unknown and sided and len(words) <= 2 * len(texts):
        sides = {"good": GOOD, "bad": BAD}
        found.labels = {
            side: each for side, known in sides.items() if (each := tuple(unknown[n] for n in unknown if n in known))
        }
    elif unknown and words.keys() <= RUNGS.keys() and len({RUNGS[name] for name in words}) == len(words) > 1:
        found.label_scale = tuple(words[name] for name in sorted(words, key=RUNGS.__getitem__))
    elif unknown:
        for name, given in [*found.columns.items()]:
            if left := [each for each in given if each in texts]:
                found.columns[name] = [each for each in given if each not in left]
                found.notes.append(
                    f"The words of '{left[0].path}' have no order that is known; --label-scale gives it."
                )
        found.columns = {name: given for name, given in found.columns.items() if given}
    found.human_scale = _scale([each for given in found.columns.values() for each in given if each.numbers])


def _scale(columns: Sequence[DataColumn]) -> tuple[float, float] | None:
    """Return the usual scale that the numbers only partly fill; None if they fill their scale, or none is likely."""
    numbers = [each.numbers for each in columns]
    if not numbers or all(set(each) <= {0, 1} for each in numbers):
        return None
    low, high = min(each[0] for each in numbers), max(each[-1] for each in numbers)
    wholes = Counter(top for each in columns for top in _wholes(each.values))
    if wholes:
        top = wholes.most_common(1)[0][0]
        return (0.0 if low < 1 or top > 10 else 1.0, top)
    fits = next(((worst, best) for worst, best in SCALES if worst <= low < high == best), None)
    if fits is None or all((each[0], each[-1]) == fits for each in numbers):
        return None
    return float(fits[0]), float(fits[1])


def _wholes(values: Iterable[str]) -> list[float]:
    return [given[1] for each in values if (given := number_with_whole(each)) and given[1] is not None]
