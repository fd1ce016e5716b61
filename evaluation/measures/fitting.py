"""Choose measures by people's scores: fit a curve to each, estimate its worth across folds, and take the best.

A measure costs no call, so all of them are tried. The worth of a measure is estimated on examples that its curve was
not fitted to, and the best of many has to stand out further than one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...agents.measures.nearest import texts_of_all
from ...agents.measures.similarity import can_embed
from ...agents.measures.values import make_measure_ready, values_of
from ...prompts.checklist import ComputedMeasure
from ...prompts.criteria.measures import FORMS, RELATIONS, SIMILAR, along, parse_measure
from ...prompts.errors import InputError
from ...prompts.examples import Example, document_of
from ...stats.correlation import spearman

if TYPE_CHECKING:
    from pathlib import Path

    from ...models.base import AnswerStore
    from ...stats.resampling import Vector

Take = Literal["relations", "all", "none"]
FOLDS = 5
"""Folds of the examples. A measure's worth on a fold is estimated with a curve fitted to the others."""
FEWEST = 20
"""Fewest examples with a wanted score for which measures are tried."""
CHANCE = 0.05
"""Chance that the best of all tried measures joins although none predicts anything."""
ALIKE = 0.7
"""Rank correlation from which the weaker of two measures stays out."""
MOST = 6
"""Most measures that join one dimension."""
PRIOR_NOISE = 0.02
"""Added, in squares, to the standard error of an effect when a criterion is weighed by the effect."""
NOT_INSTALLED = (
    "measures: the similarities are left out, as the extra memory is not installed (pip install 'askance[memory]'); "
    "measures of words take part"
)
GROUPS, LEAST_GROUP = 10, 5
"""Most groups of values that a curve is fitted to, and fewest examples in each."""
Points = tuple[tuple[float, float], ...]
Values = Mapping[str, Mapping[str, float]]
"""Values by measure and example id."""
Worth = Callable[[Mapping[str, float]], tuple[float, float]]
"""Takes the fitted share of each example by its id; returns an effect and its standard error."""


def fisher_weight(effect: float, noise: float) -> float:
    """Return the weight of a criterion before scaling: its effect over its variance."""
    return effect / (noise**2 + PRIOR_NOISE**2)


def likeness(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return how alike two criteria are, whatever the direction: |rank correlation|, 0 if undefined."""
    both = [each for each in one if each in other]
    found = spearman([one[each] for each in both], [other[each] for each in both])
    return 0.0 if found.value is None else abs(found.value)


@dataclass(frozen=True)
class MeasureTable:
    """The measures to choose from, with their values on all examples."""

    measures: Mapping[str, ComputedMeasure]
    """Measures by id, without fitted curves."""
    values: Values
    left_out: str | None = None
    """A sentence on the measures that cannot be computed here; None if all can."""

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        take: Take = "relations",
        named: Sequence[str] = (),
        *,
        embeds: bool = True,
        folder: Path | None = None,
        store: AnswerStore | None = None,
    ) -> MeasureTable:
        """Compute measures on examples; no label is needed.

        Args:
            examples: With their outputs.
            take: Relations to each text that every example has, these and the measures of form, or none.
            named: Further measures, functions of one's own among them.
            embeds: Whether similarities are among the relations.
            folder: Where functions are looked for first.
            store: Keeps the values.

        Raises:
            InputError: A measure that was named is not known, or its function is wrong.
            MissingExtraError: A similarity was named, and its embedder is not installed.
        """
        missing = embeds and take != "none" and not can_embed()
        names = dict.fromkeys((*usual_measures(examples, take, embeds=embeds and not missing), *named))
        measures: dict[str, ComputedMeasure] = {}
        for name in names:
            measure = measure_named(name)
            measure = measure if folder is None else measure.found_in(folder)
            if name in named:
                make_measure_ready(measure)
            measures[measure.id] = measure
        values = values_of(list(measures.values()), examples, store)
        known = {
            name: {example: value for example, value in row.items() if not isinstance(value, str)}
            for name, row in values.items()
        }
        whole = [name for name, row in known.items() if len(row) == len(examples) and len(set(row.values())) > 1]
        return cls(
            {name: measures[name] for name in whole},
            {name: known[name] for name in whole},
            NOT_INSTALLED if missing else None,
        )

    def choose(
        self,
        wanted: Mapping[str, float],
        documents: Mapping[str, str],
        dimension: str,
        worth: Worth | None = None,
    ) -> MeasureChoice:
        """Choose the measures that predict people's scores on some examples.

        Args:
            wanted: Scores in [0, 1] by example id, of the examples that teach.
            documents: The document of each example; examples of one document share a fold.
            dimension: The dimension of the checklist that a measure joins.
            worth: Gives a measure's effect if examples are compared in pairs. None: accepted examples are compared with
                rejected ones.
        """
        if len(wanted) < FEWEST or len(set(wanted.values())) < 2 or not self.measures:
            return MeasureChoice()
        ids = list(wanted)
        scores, parts = np.array([wanted[each] for each in ids]), folds_of([documents[each] for each in ids])
        fitted: list[FittedMeasure] = []
        for name, measure in self.measures.items():
            values = np.array([self.values[name][each] for each in ids])
            if len(np.unique(values)) > 1:
                joins = measure.model_copy(update={"dimension": dimension})
                by_place = None if worth is None else lambda shares: worth(dict(zip(ids, shares.tolist(), strict=True)))
                fitted.append(fit_measure(joins, values, scores, parts, by_place))
        # Bonferroni: all measures that are tried share the chance
        least = NormalDist().inv_cdf(1 - CHANCE / max(len(fitted), 1))
        chosen: list[FittedMeasure] = []
        unused: dict[str, str] = {}
        for each in sorted(fitted, key=lambda one: -one.strength):
            name = each.measure.id
            mine = {example: self.values[name][example] for example in ids}
            near = [one for one in chosen if likeness(mine, self.values[one.measure.id]) > ALIKE]
            if each.strength < least:
                unused[name] = (
                    f"it stands out by {each.strength:.1f} standard errors, and the best of {len(fitted)} by chance by {least:.1f}"
                )
            elif near:
                unused[name] = f"it finds much the same as '{near[0].measure.id}', which promises more"
            elif len(chosen) >= MOST:
                unused[name] = "others promised more"
            else:
                chosen.append(each)
        return MeasureChoice(tuple(chosen), unused, {each.measure.id: each for each in fitted})

    def without(self, measures: Collection[str]) -> MeasureTable:
        """Return the table without some measures, named by their ids."""
        kept = {name: each for name, each in self.measures.items() if name not in measures}
        return replace(self, measures=kept, values={name: self.values[name] for name in kept})


@dataclass(frozen=True)
class FittedMeasure:
    """A measure with its curve, and its worth on examples that the curve was not fitted to."""

    measure: ComputedMeasure
    effect: float
    """Mean share of accepted outputs less that of rejected ones, in [-1, 1]."""
    noise: float
    """Standard error of the effect."""
    key: str
    """Id of the measure in the table."""

    def named(self, id: str) -> FittedMeasure:
        """Return the measure under another id."""
        return replace(self, measure=self.measure.model_copy(update={"id": id}))

    @property
    def strength(self) -> float:
        """The effect in standard errors."""
        return self.effect / max(self.noise, 1e-9)

    @property
    def weight(self) -> float:
        """The measure's weight before scaling."""
        return fisher_weight(self.effect, self.noise)


@dataclass(frozen=True)
class MeasureChoice:
    """The chosen measures, the best first, and why the others were not chosen."""

    chosen: tuple[FittedMeasure, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict)
    looked_at: Mapping[str, FittedMeasure] = field(default_factory=dict)

    @cached_property
    def weighed(self) -> tuple[ComputedMeasure, ...]:
        """The chosen measures with weights whose mean is 1."""
        mean = sum(each.weight for each in self.chosen) / max(len(self.chosen), 1)
        return tuple(each.measure.model_copy(update={"weight": round(each.weight / mean, 3)}) for each in self.chosen)


def fit_measure(
    measure: ComputedMeasure,
    values: Vector,
    wanted: Vector,
    parts: Sequence[int],
    worth: Callable[[Vector], tuple[float, float]] | None = None,
) -> FittedMeasure:
    """Fit a measure's curve to wanted scores, and estimate the measure's worth across folds.

    ``values``, ``wanted`` (in [0, 1]) and ``parts``, the fold of each example, have length n. ``worth`` takes the
    shares from the curves of the other folds, shape (n,), and returns the effect and its standard error; None:
    :func:`_apart`.
    """
    rises, folds = _rises(values, wanted), np.array(parts)
    shares = np.full(len(values), wanted.mean())
    for part in np.unique(folds):
        mine, others = folds == part, folds != part
        if others.sum() > 1 and np.ptp(values[others]) > 0:
            theirs = monotone_curve(values[others], wanted[others], rises=_rises(values[others], wanted[others]))
            shares[mine] = along(theirs, values[mine])
    curve = monotone_curve(values, wanted, rises=rises)
    if not rises:  # the share then says how much speaks against an output
        curve = tuple((value, round(1 - share, 4)) for value, share in curve)
    if worth is None:
        accepted = wanted >= wanted.mean() - 1e-9
        effect, noise = _apart(shares[accepted], shares[~accepted])
    else:
        effect, noise = worth(shares)
    update = {"curve": curve, "range": None, "good": "yes" if rises else "no"}
    return FittedMeasure(measure.model_copy(update=update), effect, noise, measure.id)


def monotone_curve(values: Vector, wanted: Vector, *, rises: bool) -> Points:
    """Fit a monotone curve by least squares (pool adjacent violators; Barlow and others, "Statistical Inference under
    Order Restrictions", 1972).

    The values are put into groups of equal size, equal values together. The curve goes straight between the centres of
    the fitted blocks, so that it keeps the order of values that a step function would make equal.

    Args:
        values: Shape (n,).
        wanted: In [0, 1], shape (n,).
        rises: Whether the curve rises; else it falls.

    Returns:
        Points (value, fitted share), the values strictly rising.
    """
    from scipy.optimize import isotonic_regression

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    # steps of single examples would follow the noise
    groups = max(1, min(GROUPS, len(values) // LEAST_GROUP))
    # A value's group follows from the middle rank of its examples.
    middle = (np.cumsum(counts) - (counts + 1) / 2) / len(values)
    number = np.unique(np.floor(middle * groups).astype(int), return_inverse=True)[1][places]
    sizes = np.bincount(number).astype(float)
    centres, means = (np.bincount(number, weights=column) / sizes for column in (values, wanted))
    fitted = isotonic_regression(means, weights=sizes, increasing=rises).x
    blocks = np.unique(np.round(fitted, 6), return_inverse=True)[1]
    blocks = blocks if rises else blocks.max() - blocks
    weight = np.bincount(blocks, weights=sizes)
    at = np.bincount(blocks, weights=centres * sizes) / weight
    shares = np.bincount(blocks, weights=fitted * sizes) / weight
    return tuple(
        (float(f"{value:.6g}"), round(float(np.clip(share, 0, 1)), 4)) for value, share in zip(at, shares, strict=True)
    )


def _rises(values: Vector, wanted: Vector) -> bool:
    return (spearman(values.tolist(), wanted.tolist()).value or 0.0) >= 0


def _apart(accepted: Vector, rejected: Vector) -> tuple[float, float]:
    if min(len(accepted), len(rejected)) < 2:
        return 0.0, 1.0
    noise = accepted.var(ddof=1) / len(accepted) + rejected.var(ddof=1) / len(rejected)
    return float(accepted.mean() - rejected.mean()), float(np.sqrt(noise))


def folds_of(documents: Sequence[str], folds: int = FOLDS) -> list[int]:
    """Return the fold of each example. Examples of one document share a fold, and folds have similar sizes."""
    sizes = [0] * folds
    found: dict[str, int] = {}
    for document in sorted(set(documents), key=lambda each: (-documents.count(each), each)):
        found[document] = part = sizes.index(min(sizes))
        sizes[part] += documents.count(document)
    return [found[each] for each in documents]


def usual_measures(examples: Sequence[Example], take: Take, *, embeds: bool) -> list[str]:
    """Return names of the relations to each text that every example has; with ``all`` also the measures of form."""
    if take == "none":
        return []
    texts = texts_of_all(examples)
    names = [name for name in RELATIONS if embeds or name not in SIMILAR]
    return [*(f"{name}({text})" for text in texts for name in names), *(FORMS if take == "all" else ())]


def measure_named(name: str) -> ComputedMeasure:
    """Return a measure by its name, which also gives its id, without a curve. Raises InputError if there is none."""
    try:
        kind, compared_text = parse_measure(name)
    except ValueError as error:
        raise InputError(
            f"--measure {name}: {str(error).removeprefix('field ').removeprefix(repr('measure') + ': ')}"
        ) from None
    id = kind.rpartition(":")[2] if compared_text is None else f"{kind}-{compared_text}"
    return ComputedMeasure.model_validate({"id": id, "measure": name, "range": (0.0, 1.0)})


def documents_of(examples: Sequence[Example]) -> dict[str, str]:
    """Return the document of each example, by example id."""
    return {each.id: document_of(each) for each in examples}
