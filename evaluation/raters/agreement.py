"""Agreement of people with each other, before any judge is asked (METHOD part 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError
from ...prompts.examples import documents, human_dimensions, load_examples
from ...prompts.human_feedback import WHOLE, are_labels, known_ratings
from ...prompts.raters import rater_columns
from ...stats.agreement import (
    FEWEST_TOGETHER,
    LEVELS,
    as_table,
    ceiling,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    leniency,
    observed_agreement,
    one_with_another,
    steps_of,
    with_the_rest,
)
from ...stats.correlation import statistic_dict
from ...stats.resampling import Resampling, Statistic, fields_dict
from ..view import Shown, View
from .agreement_view import ALL, agreement_view

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ...prompts.examples import Example
    from ...prompts.field_map import FieldMap
    from ...prompts.human_feedback import Labels

Ratings = Mapping[str, Sequence[float | None]]
"""Ratings by rater, one for each output; None without a rating."""
MOST_STEPS = 11
"""Ratings with more different values than this are numbers, and have no kappa."""
MOST_PAIRS = 45
"""Most pairs of raters that are compared, those with the most common outputs: enough for all pairs of ten raters."""
APART = 0.5
"""Two ratings of an output contradict each other if they are further apart than this share of the scale."""


@dataclass(frozen=True)
class OneRater:
    """One rater beside the others."""

    rater: str
    n: int
    """Outputs with a rating."""
    mean: float
    leniency: Statistic
    """Mean of the own rating less the other raters' mean on the same outputs, on the scale of the data."""
    with_the_rest: Statistic
    """Spearman's correlation with the mean of the others."""


@dataclass(frozen=True)
class TwoRaters:
    """Two raters on the outputs that both rated."""

    raters: tuple[str, str]
    agreed: Statistic
    """Share of outputs with the same rating."""
    kappa: Statistic
    """Cohen's kappa, with quadratic weights on a scale of more than two steps."""


@dataclass(frozen=True)
class OpposedRatings:
    """An output whose ratings contradict each other: a case to talk about."""

    example: str
    ratings: Mapping[str, float]
    """Ratings by rater; ``True`` and ``False`` are labels."""
    apart: float
    """Largest difference between two ratings, as a share of the scale; more than :data:`APART`."""
    comments: Sequence[Mapping[str, Any]]
    """Each comment (``text``), its ``rater`` if known, and ``against``: the raters whose ratings contradict that
    rater's."""


@dataclass(frozen=True)
class RatersOn:
    """The raters' agreement on one dimension."""

    outputs: int
    """Outputs with two ratings or more."""
    raters_per_output: float
    """Mean number of raters of an output, over the outputs that anybody rated."""
    kind: str
    """``labels``, ``steps`` of a scale, or ``numbers``."""
    fleiss_kappa: Statistic | None
    """Fleiss' kappa, over the outputs that everybody rated; None for numbers."""
    alpha: Mapping[str, Statistic]
    """Krippendorff's alpha by level of measurement. All levels are the same for labels, so these have ``nominal``
    alone."""
    one_rater: Statistic
    """Spearman's correlation of one rater with another."""
    ceiling: Statistic
    """Correlation that a perfect judge could have with the mean of the raters."""
    raters: Sequence[OneRater]
    pairs: Sequence[TwoRaters] = ()
    contradictions: Sequence[OpposedRatings] = ()
    """Contradictory outputs, those with the ratings furthest apart first."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row for results, without Fleiss' kappa if there is none."""
        row = fields_dict(self)
        return row if self.fleiss_kappa else {name: each for name, each in row.items() if name != "fleiss_kappa"}


@dataclass(frozen=True, repr=False)
class RaterAgreement(Shown):
    """How far several raters agree, on each dimension."""

    examples: int
    dimensions: Mapping[str, RatersOn]
    """Agreement by dimension; with several dimensions also :data:`ALL`, their mean."""

    def to_dict(self) -> dict[str, Any]:
        """Return the agreement for ``--json``."""
        return {"examples": self.examples, "rater_agreement": self.by_dimension()}

    def by_dimension(self) -> dict[str, Any]:
        """Return ``rater_agreement`` of a result file."""
        return {name: each.to_dict() for name, each in self.dimensions.items()}

    def _view(self) -> View:
        return agreement_view(self.to_dict())


def agreement_of_raters(
    examples: Sequence[Example], dimensions: Sequence[str], resampling: Resampling
) -> RaterAgreement | None:
    """Return the raters' agreement on the dimensions that two raters or more rated; None without such dimensions.

    The groups of ``resampling`` belong to the examples.
    """
    columns = {name: rater_columns(examples, name) for name in dimensions}
    several = {name: each for name, each in columns.items() if (_counts(each) > 1).any()}
    found = {name: _on(name, each, examples, resampling) for name, each in several.items()}
    if len(several) > 1 and len(several) == len(dimensions):
        together = _means(list(several.values()))
        if (_counts(together) > 1).any():
            found[ALL] = _on(None, together, examples, resampling)
    return RaterAgreement(len(examples), found) if found else None


def ceiling_of(columns: Ratings, resampling: Resampling) -> dict[str, Any] | None:
    """Return one rater with another and the ceiling, as in ``rater_agreement``; None if no output has two ratings."""
    counts = _counts(columns)
    if not (counts > 1).any():
        return None
    per_output = float(counts[counts > 0].mean())
    r = one_with_another(list(columns.values()), resampling)
    return {
        "raters_per_output": per_output,
        "one_rater": statistic_dict(r),
        "ceiling": statistic_dict(ceiling(r, per_output)),
    }


def _counts(columns: Ratings) -> NDArray[np.int64]:
    """Count the raters of each output."""
    given = zip(*columns.values(), strict=True)
    return np.array([sum(each is not None for each in ratings) for ratings in given], dtype=np.int64)


def _means(several: Sequence[Ratings]) -> dict[str, list[float | None]]:
    """Return each rater's mean over dimensions, each scaled to [0, 1] by its range; None where a rating is missing."""
    scaled: list[dict[str, Any]] = []
    for columns in several:
        table = as_table(list(columns.values())).T
        low, high = np.nanmin(table), np.nanmax(table)
        scaled.append(dict(zip(columns, (table - low) / (high - low or 1.0), strict=True)))
    names = [name for name in scaled[0] if all(name in each for each in scaled)]
    means = {name: np.mean([each[name] for each in scaled], axis=0) for name in names}
    return {name: [None if np.isnan(each) else float(each) for each in mean] for name, mean in means.items()}


def _on(name: str | None, columns: Ratings, examples: Sequence[Example], resampling: Resampling) -> RatersOn:
    """Return the agreement on one dimension; ``name`` is None for the mean over dimensions."""
    raters, counts = list(columns.values()), _counts(columns)
    given = [each for column in raters for each in known_ratings(column)]
    values = sorted(set(map(float, given)))
    labels = are_labels(given) or set(values) <= {0.0, 1.0}
    kind = "labels" if labels else "steps" if name is not None and len(values) <= MOST_STEPS else "numbers"
    levels = LEVELS[:1] if labels else LEVELS if kind == "steps" else LEVELS[2:]
    steps = list(steps_of(columns).values())
    per_output = float(counts[counts > 0].mean())
    r = one_with_another(raters, resampling)
    return RatersOn(
        int(np.count_nonzero(counts > 1)),
        per_output,
        kind,
        None if kind == "numbers" else fleiss_kappa(steps, resampling),
        {each: krippendorff_alpha(raters, each, resampling) for each in levels},
        r,
        ceiling(r, per_output),
        [
            OneRater(
                rater,
                len(known := known_ratings(column)),
                float(np.mean(known)),
                leniency(raters, place, resampling),
                with_the_rest(raters, place, resampling),
            )
            for place, (rater, column) in enumerate(columns.items())
        ],
        _pairs(columns, kind, resampling),
        () if name is None else _contradictions(name, columns, examples, values[-1] - values[0]),
    )


def pairs_together(columns: Ratings, *also: Sequence[float | None]) -> list[tuple[str, str]]:
    """Return pairs of raters with enough common outputs that have a value in all ``also``; the most outputs first."""
    counts = {
        (one, other): sum(None not in row for row in zip(columns[one], columns[other], *also, strict=True))
        for one, other in combinations(columns, 2)
    }
    most = sorted(counts, key=lambda pair: -counts[pair])[:MOST_PAIRS]
    return [pair for pair in most if counts[pair] >= FEWEST_TOGETHER]


def _pairs(columns: Ratings, kind: str, resampling: Resampling) -> list[TwoRaters]:
    """Return the agreement of every pair; none for numbers."""
    if kind == "numbers":
        return []
    steps = steps_of(columns)
    return [
        TwoRaters(
            pair,
            observed_agreement(steps[pair[0]], steps[pair[1]], resampling),
            cohen_kappa(
                steps[pair[0]], steps[pair[1]], resampling, weights="none" if kind == "labels" else "quadratic"
            ),
        )
        for pair in pairs_together(columns)
    ]


def _contradictions(
    dimension: str, columns: Ratings, examples: Sequence[Example], scale: float
) -> list[OpposedRatings]:
    found = []
    for place, example in enumerate(examples):
        ratings = {name: each for name, column in columns.items() if (each := column[place]) is not None}
        gap = max(ratings.values(), default=0) - min(ratings.values(), default=0)
        if scale <= 0 or gap / scale <= APART:
            continue
        comments = []
        for remark in example.comment:
            if remark.about in (None, WHOLE, dimension):
                own = ratings.get(remark.rater or "")
                far = [name for name, given in ratings.items() if own is not None and abs(given - own) / scale > APART]
                comments.append({"rater": remark.rater, "text": remark.text, "against": far})
        found.append(OpposedRatings(example.id, ratings, gap / scale, comments))
    return sorted(found, key=lambda each: -each.apart)


def rater_agreement(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    field: FieldMap | None = None,
    labels: Labels | None = None,
    label_scale: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = 42,
    resamples: int = 2000,
) -> RaterAgreement:
    """Measure how far several raters of the same outputs agree; no model is asked.

    Args:
        data: JSONL or CSV file, or rows, with ``raters``, or lists of ratings in ``human``.
        field: Renames columns, as in :func:`~askance.prompts.examples.load_examples`.
        labels: Further words that people's labels are in.
        label_scale: Words from worst to best, which count as 1, 2 and so on.
        limit: Use only the first examples.
        seed: Seed of the intervals.
        resamples: Bootstrap resamples of the intervals.

    Raises:
        InputError: Bad data, or no output has two raters.
    """
    examples = load_examples(data, fields=field, limit=limit, labels=labels, label_scale=label_scale)
    sampling = Resampling(documents(examples), resamples, seed=seed)
    found = agreement_of_raters(examples, human_dimensions(examples), sampling)
    if found is None:
        raise InputError(
            "No output has ratings of two people, so there is no agreement to look at. Give each rater's under 'raters' "
            "(name to human and comment), as lists in 'human', or name the columns: --field human.overall=anna,ben."
        )
    return found
