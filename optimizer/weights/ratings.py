"""Ratings instead of preference pairs: their file format, and how ratings become pairs.

One line a rated output: ``id``, ``scores`` (object: test id to number in [0, 1], null for missing; also found
under ``metadata``), ``human`` (object: dimension to number, label or list of these) or ``rating`` (a number on any
scale, or a label), which comes first unless a dimension is named; optional ``group`` and ``document``, as of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from ...prompts.errors import InputError, did_you_mean
from ...prompts.labels import Labels, rating_of, refuse_mixed_labels, with_words
from ...prompts.rows import source_rows
from .pairs import Floats
from .preferences import (
    LeftOut,
    ScoreColumns,
    check_tables,
    group_of,
    identified_rows,
    name_of,
    scores_of,
)


@dataclass(frozen=True, eq=False)
class RatingScores:
    """Rated outputs with every score present, and those that had to be left out."""

    ids: tuple[str, ...]
    tests: tuple[str, ...]
    scores: Floats
    """Shape (outputs, tests), in [0, 1]."""
    ratings: Floats
    """Shape (outputs,), on the scale of the data; higher is better."""
    groups: tuple[str, ...]
    """Name of each output's context; outputs of one context never straddle development and test."""
    left_out: tuple[LeftOut, ...] = ()


def rating_scores(
    ids: Sequence[str],
    tests: Sequence[str],
    scores: Sequence[Sequence[float | None]] | Floats,
    ratings: Sequence[float | None] | Floats,
    *,
    groups: Sequence[str] | None = None,
) -> RatingScores:
    """Make rating scores from tables in memory.

    Args:
        ids: One for each output, unique.
        tests: Ids of the tests (columns), unique.
        scores: Shape (outputs, tests), in [0, 1]; None or NaN where a score is missing.
        ratings: Shape (outputs,); None or NaN where nobody rated. Such outputs are left out and counted.
        groups: Name of each output's context; each output its own when None.

    Raises:
        InputError: Names the first problem.
    """
    table = np.asarray(scores, dtype=np.float64).reshape(-1, len(tests))
    rated = np.asarray(ratings, dtype=np.float64)
    names = list(ids) if groups is None else list(groups)
    check_tables("output", ids, tests, {"scores": table}, {"ratings": rated, "groups": names})
    missing = np.isnan(table)
    keep = ~(missing.any(axis=1) | np.isnan(rated))
    return RatingScores(
        ids=tuple(each for each, used in zip(ids, keep, strict=True) if used),
        tests=tuple(tests),
        scores=table[keep],
        ratings=rated[keep],
        groups=tuple(each for each, used in zip(names, keep, strict=True) if used),
        left_out=tuple(
            LeftOut(ids[row], tuple(tests[test] for test in np.flatnonzero(missing[row]).tolist()))
            for row in np.flatnonzero(~keep).tolist()
        ),
    )


def load_ratings(
    path: Any, *, dimension: str | None = None, limit: int | None = None, labels: Labels | None = None
) -> RatingScores:
    """Read rated outputs with scores from a file (JSONL, CSV, Excel, ...), a data frame or rows.

    Args:
        path: The source, which is read twice; see the module's description for its fields.
        dimension: Take the rating from ``human.DIMENSION`` (the mean over raters). When None, ``rating`` where the
            lines have one, else the only dimension that people rated, or ``overall`` among several.
        limit: Read only so many outputs.
        labels: Further words that people's labels are in.

    Raises:
        InputError: Names the file, line and field of the first problem.
    """
    dimension = _dimension_of_file(path) if dimension is None else dimension
    columns = ScoreColumns()
    ids: list[str] = []
    rated: list[tuple[str, dict[str, list[float]]]] = []
    groups = []
    for where, identity, row in identified_rows(path, limit, "rated outputs"):
        ids.append(identity)
        metadata = row.get("metadata")
        given = metadata if "scores" not in row and isinstance(metadata, dict) and "scores" in metadata else row
        columns.add(scores_of(given, "scores", where))
        rated.append((where, {dimension or "rating": _ratings(row, dimension, where, labels or {})}))
        groups.append(group_of(row, identity, where))
    [scores] = columns.tables(f"{name_of(path)}: the scores are empty; 'scores' must hold a number for each test.")
    refuse_mixed_labels(rated, "" if dimension is None else "human.")
    ratings = [float(np.mean(given)) for _, human in rated for given in human.values()]
    return rating_scores(ids, columns.tests, scores, ratings, groups=groups)


def rated_dimension(humans: Iterable[Mapping[str, Any]], dimension: str | None, where: str) -> str:
    """The dimension to learn from: the one that is asked for, the only one, or ``overall`` among several.

    Args:
        humans: The human scores of each output, by dimension.
        dimension: What is asked for, if anything.
        where: Put in front of errors.

    Raises:
        InputError: Nobody rated it, or there are several and none of them is ``overall``.
    """
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
    """The dimension to learn from; None where the lines have a ``rating``, or nothing."""
    humans = []
    for _, row in source_rows(path):
        if row.get("rating") is not None:
            return None
        humans.append(row.get("human"))
    rated = [human for human in humans if isinstance(human, dict) and human]
    return rated_dimension(rated, None, name_of(path)) if rated else None


def _field(dimension: str | None) -> str:
    return "rating" if dimension is None else f"human.{dimension}"


def _ratings(row: dict[str, Any], dimension: str | None, where: str, labels: Labels) -> list[float]:
    """The ratings of one output, one a rater."""
    field, name = _field(dimension), dimension or "rating"
    given = row if dimension is None else row.get("human")
    known = list(given) if isinstance(given, dict) else []
    value = with_words({name: given.get(name)}, labels)[name] if isinstance(given, dict) else None
    if value is None:
        raise InputError(f"{where}: the field '{field}' is missing.{did_you_mean(dimension or 'rating', known)}")
    several = value if isinstance(value, list) else [value]
    try:
        ratings = [rating_of(each, name) for each in several]
    except ValueError as error:
        raise InputError(f"{where}, field '{field}': {error}.") from None
    if not ratings or not all(isfinite(each) for each in ratings):
        raise InputError(f"{where}, field '{field}': a number (or a list of numbers) is needed, not {value!r}.")
    return ratings
