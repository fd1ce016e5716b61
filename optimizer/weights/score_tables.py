"""Scores of preference pairs and of rated outputs, as arrays, and their file formats.

Preference pairs, one per line: ``id``, ``preferred`` (``"a"``, ``"b"`` or ``"tie"``), ``scores_a`` and ``scores_b``
(objects: test id to number in [0, 1]; true and false count as 1 and 0; null is a missing score). Optional: ``input``,
and ``section``, ``dataset``, ``group``, ``document``, which may also stand under ``metadata``. Pairs of one group never
straddle development and test. A pair without ``group`` is grouped by its ``document``, else by its ``input``; a pair
without any of these is a group of its own.

Rated outputs, one per line: ``id``, ``scores`` (as ``scores_a``; may also stand under ``metadata``), and ``human``
(object: dimension to number, label or list of these) or ``rating`` (a number on any scale, or a label). ``rating`` is
used first unless a dimension is named. Optional: ``group`` and ``document``, as for pairs.
"""

from __future__ import annotations

import logging
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import compress, islice, zip_longest
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...evaluation.scoring import Scale
from ...prompts.errors import InputError, did_you_mean
from ...prompts.field_map import FieldMap, id_of_texts, numbered_id
from ...prompts.formatting import count
from ...prompts.human_feedback import (
    HumanValues,
    Labels,
    are_labels,
    is_missing,
    known_ratings,
    rating_of,
    refuse_mixed_labels,
)
from ...prompts.json_documents import at
from ...prompts.preferences import document_in, has_chosen, with_our_names
from ...prompts.rows import source_rows
from ...prompts.tables import as_written
from .evidence import Floats, PairDifferences, codes_of

logger = logging.getLogger(__name__)

Level = Literal["global", "dataset", "section"]
FIELDS = ("id", "input", "preferred", "scores_a", "scores_b", "section", "dataset", "group", "document", "metadata")
_SIGN = {"a": 1, "b": -1, "tie": 0}


@dataclass(frozen=True)
class LeftOut:
    """A pair or rated output that takes no part in learning because scores are missing. They are never filled in."""

    id: str
    missing: tuple[str, ...]
    """Test ids without a score on at least one side."""


@dataclass(frozen=True, eq=False)
class PreferenceScores:
    """Pairs with every score present, and the pairs that had to be left out."""

    ids: tuple[str, ...]
    tests: tuple[str, ...]
    scores_a: Floats
    """Shape (pairs, tests), in [0, 1]."""
    scores_b: Floats
    """Shape (pairs, tests), in [0, 1]."""
    preferred: NDArray[np.int8]
    """Shape (pairs,): 1 where people preferred a, -1 where b, 0 for a tie."""
    groups: tuple[str, ...]
    """Name of each pair's context."""
    sections: tuple[str | None, ...]
    datasets: tuple[str | None, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def missing_by_test(self) -> dict[str, int]:
        """Number of pairs, by test, in which the test has no score on at least one side; complete tests are left
        out."""
        return dict(Counter(test for pair in self.left_out for test in pair.missing))

    def section_names(self, level: Level) -> tuple[str, ...]:
        """Names of the sections or data sets with weights of their own, in order of first appearance; () for global
        weights."""
        return () if level == "global" else tuple(dict.fromkeys(self._keys(level)))

    def differences(self, level: Level = "global") -> PairDifferences:
        """Return score differences for a learner, with section numbers as in ``section_names(level)``. Raises
        InputError where weights by section or data set are asked for and no pair names one."""
        sign = np.where(self.preferred < 0, -1.0, 1.0)[:, None]
        differences = self.scores_a - self.scores_b
        differences *= sign
        sections = codes_of(self._keys(level)) if level != "global" else np.zeros(len(self.ids), dtype=np.int64)
        return PairDifferences(
            differences=differences,
            is_tie=self.preferred == 0,
            groups=codes_of(self.groups),
            sections=sections,
            counts=np.ones(len(self.ids)),
        )

    def _keys(self, level: Level) -> list[str]:
        names = self.datasets if level == "dataset" else self.sections
        if all(name is None for name in names):
            raise InputError(
                f"Weights for each {level} are asked for, but no pair has a '{level}'. "
                f"Put a field '{level}' on every line, or learn global weights."
            )
        if level == "section":
            return [
                section if data is None else f"{data}/{section}"
                for data, section in zip(self.datasets, (name or "(none)" for name in names), strict=True)
            ]
        return [name or "(none)" for name in names]


def preference_scores(
    ids: Sequence[str],
    tests: Sequence[str],
    scores_a: Sequence[Sequence[float | None]] | Floats,
    scores_b: Sequence[Sequence[float | None]] | Floats,
    preferred: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    sections: Sequence[str | None] | None = None,
    datasets: Sequence[str | None] | None = None,
) -> PreferenceScores:
    """Make preference scores from tables in memory, for instance from verdicts of a model.

    Scores have shape (pairs, tests), in [0, 1]; a missing score is None or NaN. ``preferred`` is ``"a"``, ``"b"`` or
    ``"tie"``. Each pair is a group of its own when ``groups`` is None."""
    a, b = (np.asarray(scores, dtype=np.float64).reshape(-1, len(tests)) for scores in (scores_a, scores_b))
    absent = np.isnan(a) | np.isnan(b)
    keep = ~absent.any(axis=1)
    kept: list[int] = np.flatnonzero(keep).tolist()
    names_of_groups = list(ids) if groups is None else list(groups)
    return PreferenceScores(
        ids=tuple(ids[row] for row in kept),
        tests=tuple(tests),
        scores_a=a[keep],
        scores_b=b[keep],
        preferred=np.array([_SIGN[preferred[row]] for row in kept], dtype=np.int8),
        groups=tuple(names_of_groups[row] for row in kept),
        sections=tuple(sections[row] if sections is not None else None for row in kept),
        datasets=tuple(datasets[row] if datasets is not None else None for row in kept),
        left_out=_left_out(ids, tests, absent, np.flatnonzero(~keep).tolist()),
    )


def _left_out(
    ids: Sequence[str], tests: Sequence[str], missing: NDArray[np.bool_], rows: Iterable[int]
) -> tuple[LeftOut, ...]:
    return tuple(
        LeftOut(ids[row], tuple(tests[test] for test in np.flatnonzero(missing[row]).tolist())) for row in rows
    )


def load_preferences(
    path: Any, *, limit: int | None = None, fields: FieldMap | None = None, labels: Labels | None = None
) -> PreferenceScores:
    """Read pairs with scores from a file (JSONL, CSV, Excel, ...), a data frame or rows, with the fields that the
    module docstring names. ``fields`` renames columns; ``labels`` are further words for the preferred output. Raises
    InputError, which names the file, line and field of the first problem."""
    columns = ScoreColumns(sides=2)
    ids: list[str] = []
    preferred: list[str] = []
    groups, sections, datasets = [], [], []
    for place, identity, given in identified_rows(path, limit, "pairs", fields):
        row = with_our_names(given, fields or {}, labels or {})
        ids.append(identity)
        if row.get("preferred") not in list(_SIGN):  # a list, too, which has no hash
            raise InputError(f"{place}: {_wrong_preferred(row)}")
        preferred.append(row["preferred"])
        columns.add(scores_of(row, "scores_a", place), scores_of(row, "scores_b", place))
        groups.append(group_of(row, identity, place))
        sections.append(_label(row, "section", place))
        datasets.append(_label(row, "dataset", place))
    a, b = columns.tables(f"{name_of(path)}: the scores are empty; 'scores_a' must hold a number for each test.")
    return preference_scores(ids, columns.tests, a, b, preferred, groups=groups, sections=sections, datasets=datasets)


class ScoreColumns:
    """Scores by test for one or two outputs per row, kept as packed numbers, which take no more memory than arrays."""

    def __init__(self, *, sides: int = 1) -> None:
        self.rows = 0
        self.sides: list[dict[str, array[float]]] = [{} for _ in range(sides)]

    @property
    def tests(self) -> list[str]:
        """Test ids, in order of appearance."""
        return list(self.sides[0])

    def add(self, *scores: dict[str, float]) -> None:
        """Add a row: the scores of each side. A test that the row does not name has a missing score in it."""
        for test in dict.fromkeys(test for side in scores for test in side if test not in self.sides[0]):
            for side in self.sides:
                side[test] = array("d", [nan]) * self.rows
        for side, values in zip(self.sides, scores, strict=True):
            for test, column in side.items():
                column.append(values.get(test, nan))
        self.rows += 1

    def tables(self, empty: str) -> list[Floats]:
        """Return one table per side, shape (rows, tests), NaN for a missing score. Raises InputError(empty) without
        tests."""
        if not self.tests:
            raise InputError(empty)
        return [np.column_stack([np.frombuffer(column) for column in side.values()]) for side in self.sides]


def identified_rows(
    source: Any, limit: int | None, what: str, fields: FieldMap | None = None
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each row of a source with its place, its id and its fields. A row without an id gets a hash as its id.
    Raises InputError where there are no rows, or an id is not a text or number, or is used twice."""
    places: dict[str, str] = {}
    unnamed: Counter[str] = Counter()
    for place, row in islice(source_rows(source, ("id",), say=logger.warning), limit):
        if not isinstance(row, Mapping):
            raise InputError(f"{place}: a mapping from field to value is needed, not {type(row).__name__}.")
        found = {name: value for name, value in row.items() if value is not None}
        named = at(found, str((fields or {}).get("id", "id")))
        if is_missing(named):
            named = numbered_id(id_of_texts(found, sorted(found), "row"), unnamed)
        found["id"] = named
        identity = _identity(found, place)
        if identity in places:
            raise InputError(
                f"{place}: the id '{identity}' was used before, in {places[identity].rpartition(', ')[2]}."
            )
        places[identity] = place
        yield place, identity, found
    if not places:
        raise InputError(f"{name_of(source)}: there are no {what} in it.")
    if unnamed:
        logger.warning("A hash of the row is the id of %s, which had none.", count(unnamed.total(), "row"))


def name_of(source: Any) -> str:
    """Return the name of a source for error messages."""
    return str(source) if isinstance(source, (str, Path)) else "the data"


def _identity(row: dict[str, Any], where: str) -> str:
    if "id" not in row:
        raise InputError(f"{where}: the field 'id' is missing.{did_you_mean('id', row)}")
    if isinstance(row["id"], bool) or not isinstance(row["id"], (str, int, float)) or row["id"] == "":
        raise InputError(f"{where}, field 'id': a text that is not empty is needed, not {row['id']!r}.")
    return str(as_written(row["id"]))


def _wrong_preferred(row: dict[str, Any]) -> str:
    if has_chosen(row):
        return "'chosen' and 'rejected' are outputs without scores; --checklist and --model have a judge score them."
    if "preferred" not in row:
        return f"the field 'preferred' is missing.{did_you_mean('preferred', row)}"
    mean = "say what your words mean with --labels a=WORD,b=WORD,tie=WORD"
    return f'field \'preferred\': {row["preferred"]!r} is not "a", "b" or "tie"; {mean}.'


def scores_of(row: dict[str, Any], field: str, where: str) -> dict[str, float]:
    """Return the row's scores by test, NaN where null. Raises InputError where they are missing or outside [0, 1]."""
    if field not in row:
        raise InputError(
            f"{where}: the field '{field}' is missing.{did_you_mean(field, row)} "
            "Give the scores of each test, or a checklist and a model that can score the outputs."
        )
    if not isinstance(row[field], dict):
        raise InputError(f"{where}, field '{field}': an object from test id to number is needed.")
    scores = {}
    for test, value in row[field].items():
        if value is None:
            scores[test] = nan
        elif not isinstance(value, (bool, int, float)) or not 0 <= value <= 1:  # refuses NaN, too
            raise InputError(
                f"{where}, field '{field}.{test}': {value!r:.40} is not a number in [0, 1] (null: missing)."
            )
        else:
            scores[test] = float(value)
    return scores


def _label(row: dict[str, Any], field: str, where: str) -> str | None:
    metadata = row.get("metadata")
    value = row.get(field, metadata.get(field) if isinstance(metadata, dict) else None)
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return None if value is None else str(value)
    raise InputError(f"{where}, field '{field}': a text is needed, not {value!r}.")


def group_of(row: dict[str, Any], identity: str, where: str) -> str:
    """Name the row's context: see :func:`context_name`. Raises InputError where a name is not a text."""
    text, document = row.get("input"), document_in(row)
    return context_name(_label(row, "group", where), document, text if isinstance(text, str) else "", identity)


def context_name(group: object, document: str | None, text: str, identity: str) -> str:
    """Name an output's context: its ``group``, else its document, else a hash of its ``input``, else its id."""
    if group is not None:
        return str(group)
    if document is not None:
        return f"document {document}"
    if not text:
        return f"pair {identity}"
    return "input " + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class RatingScores:
    """Rated outputs with every score present, and the outputs that had to be left out."""

    ids: tuple[str, ...]
    tests: tuple[str, ...]
    scores: Floats
    """Shape (outputs, tests), in [0, 1]."""
    ratings: Floats
    """Shape (outputs,), on the scale of the data or, with a named scale, on [0, 1]; higher is better."""
    groups: tuple[str, ...]
    """Name of each output's context; outputs of one context never straddle development and test."""
    left_out: tuple[LeftOut, ...] = ()
    raters: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """Ratings by rater, one per output, None where the rater gave none; empty where they are not known."""


def rating_scores(
    ids: Sequence[str],
    tests: Sequence[str],
    scores: Sequence[Sequence[float | None]] | Floats,
    ratings: Sequence[float | None] | Floats,
    *,
    groups: Sequence[str] | None = None,
    raters: Mapping[str, Sequence[float | None]] | None = None,
) -> RatingScores:
    """Make rating scores from tables in memory: scores (outputs, tests) in [0, 1], ratings (outputs,).

    ``raters`` maps each rater to one rating per output. An output without a rating or one of its scores (None or NaN)
    is left out and counted."""
    table = np.asarray(scores, dtype=np.float64).reshape(-1, len(tests))
    rated = np.asarray(ratings, dtype=np.float64)
    names = list(ids) if groups is None else list(groups)
    missing = np.isnan(table)
    keep = ~(missing.any(axis=1) | np.isnan(rated))
    return RatingScores(
        ids=tuple(each for each, used in zip(ids, keep, strict=True) if used),
        tests=tuple(tests),
        scores=table[keep],
        ratings=rated[keep],
        groups=tuple(each for each, used in zip(names, keep, strict=True) if used),
        left_out=_left_out(ids, tests, missing, np.flatnonzero(~keep).tolist()),
        raters={name: list(compress(each, keep)) for name, each in (raters or {}).items()},
    )


def load_ratings(
    path: Any,
    *,
    dimension: str | None = None,
    limit: int | None = None,
    labels: Labels | None = None,
    label_scale: Sequence[str] | None = None,
    human_scale: Scale | None = None,
) -> RatingScores:
    """Read rated outputs with scores from a file (JSONL, CSV, Excel, ...), a data frame or rows; the source is read
    twice.

    The rating is the mean over raters of ``human.DIMENSION``. When ``dimension`` is None, the rating is ``rating``
    where the lines have one, else the only dimension that people rated, or ``overall`` among several. ``labels`` are
    further words for people's labels, ``label_scale`` the labels of a scale from worst to best; ``human_scale`` is the
    worst and the best score. Raises InputError, which names the file, line and field of the first problem."""
    dimension = _dimension_of_file(path) if dimension is None else dimension
    columns, human = ScoreColumns(), HumanValues(labels, label_scale)
    ids: list[str] = []
    rated: list[tuple[str, dict[str, list[float]]]] = []
    given_ratings: list[list[float | None]] = []
    groups = []
    for place, identity, row in identified_rows(path, limit, "rated outputs"):
        ids.append(identity)
        metadata = row.get("metadata")
        given = metadata if "scores" not in row and isinstance(metadata, dict) and "scores" in metadata else row
        columns.add(scores_of(given, "scores", place))
        given_ratings.append(_ratings(row, dimension, place, human))
        rated.append((place, {dimension or "rating": known_ratings(given_ratings[-1])}))
        groups.append(group_of(row, identity, place))
    [scores] = columns.tables(f"{name_of(path)}: the scores are empty; 'scores' must hold a number for each test.")
    refuse_mixed_labels(rated, "" if dimension is None else "human.")
    by_place = [(place, each) for place, by in rated for each in by.values()]
    ratings = on_scale([float(np.mean(each)) for _, each in by_place], by_place, human_scale)
    raters = {f"rater {number}": list(each) for number, each in enumerate(zip_longest(*given_ratings), 1)}
    return rating_scores(ids, columns.tests, scores, ratings, groups=groups, raters=raters)


def on_scale(
    means: Iterable[float | None], rated: Sequence[tuple[str, Sequence[float]]], scale: Scale | None
) -> list[float | None]:
    """Map mean ratings to [0, 1] on a ``scale`` from worst to best; without one, and for labels, return them unchanged.

    ``rated`` holds the place and the ratings of each output. Raises InputError for a rating outside the scale."""
    if scale is None or are_labels(each for _, given in rated for each in given):
        return list(means)
    low, high = scale
    for place, given in rated:
        for each in given:
            if not min(scale) <= each <= max(scale):
                raise InputError(
                    f"{place}: the human score {each:g} is outside the scale {low:g} to {high:g} (--human-scale)."
                )
    return [None if mean is None else (mean - low) / (high - low) for mean in means]


def rated_dimension(humans: Iterable[Mapping[str, Any]], dimension: str | None, where: str) -> str:
    """Return the dimension to learn from: the one that is asked for, the only one, or ``overall`` among several. Raises
    InputError, which begins with ``where``, if nobody rated it, or if there are several and none is ``overall``."""
    known = list(dict.fromkeys(name for human in humans for name in human))
    if not known:
        raise InputError(f"{where}: there are no human scores in it ('human'), so there is nothing to learn from.")
    if dimension is not None and dimension not in known:
        raise InputError(
            f"{where}: nobody rated '{dimension}' (rated: {', '.join(known)}).{did_you_mean(dimension, known)}"
        )
    if dimension is None and len(known) > 1 and "overall" not in known:
        raise InputError(f"{where}: people rated {', '.join(known)}; name one of them with --rating-dimension.")
    return dimension or ("overall" if "overall" in known else known[0])


def _dimension_of_file(path: Any) -> str | None:
    """Return the dimension to learn from; None where a line has a ``rating``, or no line has human scores."""
    humans = []
    for _, row in source_rows(path):
        if row.get("rating") is not None:
            return None
        humans.append(row.get("human"))
    rated = [human for human in humans if isinstance(human, dict) and human]
    return rated_dimension(rated, None, name_of(path)) if rated else None


def _field(dimension: str | None) -> str:
    return "rating" if dimension is None else f"human.{dimension}"


def _ratings(row: dict[str, Any], dimension: str | None, where: str, human: HumanValues) -> list[float | None]:
    """Return the ratings of one output, one per rater; None where a rater gave none."""
    field_name, name = _field(dimension), dimension or "rating"
    given = row if dimension is None else row.get("human")
    known = list(given) if isinstance(given, dict) else []
    value = human.read({name: given.get(name)}, where).get(name) if isinstance(given, dict) else None
    if value is None:
        raise InputError(f"{where}: the field '{field_name}' is missing.{did_you_mean(dimension or 'rating', known)}")
    several = value if isinstance(value, list) else [value]
    try:
        ratings = [None if each is None else rating_of(each, name) for each in several]
    except ValueError as error:
        raise InputError(f"{where}, field '{field_name}': {error}.") from None
    known_here = known_ratings(ratings)
    if not known_here or not all(isfinite(each) for each in known_here):
        raise InputError(f"{where}, field '{field_name}': a number (or a list of numbers) is needed, not {value!r}.")
    return ratings
