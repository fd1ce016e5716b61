"""Columns that hold people's scores or labels, and the options that explain their words and scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..human_feedback import MEANINGS, number_with_whole
from .columns import FEW, LONG, DataColumn
from .names import BAD, GOOD, LADDER, OF_PROGRAMS, QUALITIES, RATINGS, SCALES, plain_name

RUNGS = {word: rung for rung, words in enumerate(LADDER) for word in words.split()}
OVERALL = "overall"
WORDS = 3
"""Words of a label that is not known, at most."""


@dataclass
class RatedColumns:
    """Dimensions with their columns, and what their values mean."""

    columns: dict[str, list[DataColumn]] = field(default_factory=dict)
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    label_scale: tuple[str, ...] | None = None
    human_scale: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)


def ratings_in(columns: Sequence[DataColumn]) -> RatedColumns:
    """The scores and labels that people gave, as far as names and values tell.

    A column of numbers or truth values counts where its name speaks of a score or a quality; one of words where these
    are labels that are known, or words on a scale. Others are named in ``notes``.
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
    """Say whether a column holds labels of known meaning, other words, truth values or numbers on a small scale."""
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
    """Whether the name says that a program gave what stands there."""
    return bool(_words(column) & OF_PROGRAMS) or "/" in column.path  # metrics are called fluency/score


def _is_rating(column: DataColumn) -> bool:
    words = _words(column)
    return bool(words & (RATINGS | QUALITIES)) and not of_program(column) and not column.path.endswith("id")


def dimension_of(column: DataColumn) -> str:
    """The dimension of a column of scores: the last part of its path that says it, else ``overall``."""
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
    """Fill in the labels and scales of what was taken; leave out what cannot stand beside the rest."""
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
    """The usual scale that the numbers fill only in part; None where they tell their scale, or none is likely."""
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
