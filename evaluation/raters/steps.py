"""People's ordinal labels: their steps, and a judge's thresholds between them. A score that reaches a threshold is
on the step above it.

A threshold between two steps is fitted like the threshold of pass and fail
(:func:`~askance.stats.pass_fail.fit_threshold`): the label is whether people's rating is nearer to the upper step, or
beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from ...prompts.examples import documents
from ...prompts.formatting import Figure
from ...prompts.human_feedback import are_labels, known_ratings
from ...stats.agreement import cohen_kappa, observed_agreement
from ...stats.correlation import Column
from ...stats.pass_fail import fit_threshold
from ...stats.resampling import USUAL, Resampling, Statistic, complete, record_dict

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ...prompts.examples import Example
    from ..scoring import ExampleScore, Scale, Targets

FEWEST_STEPS, MOST_STEPS = 3, 11
STEP_FIGURES = {"agreed": "same step as people", "within_one": "at most one step apart", "kappa": "quadratic kappa"}
_ROUNDING = 1e-9


class StepThresholds(BaseModel):
    """Steps of people's ratings on one dimension, with the scores from which a judge reaches each further step."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    of: str
    """The rated dimension."""
    values: tuple[float, ...]
    """Steps from the worst to the best, on the scale of the data."""
    thresholds: tuple[float, ...]
    """Scores in [0, 1], one between each two steps."""

    @model_validator(mode="after")
    def _fit_together(self) -> StepThresholds:
        if len(self.thresholds) != len(self.values) - 1 or not self.thresholds:
            raise ValueError(f"{len(self.values)} steps have {len(self.values) - 1} thresholds between them")
        if (
            list(self.thresholds) != sorted(self.thresholds)
            or not 0 <= min(self.thresholds) <= max(self.thresholds) <= 1
        ):
            raise ValueError("thresholds lie between 0 and 1, none below the one before")
        return self

    def step(self, score: float | None) -> float | None:
        """Return the step of a score; None without one."""
        place = places([score], self.thresholds)[0]
        return None if place is None else self.values[place]


def units(values: Sequence[float]) -> list[float]:
    """Map steps, from worst to best, to [0, 1]."""
    worst, best = values[0], values[-1]
    return [(each - worst) / (best - worst) for each in values]


def between(steps: Sequence[float]) -> list[float]:
    """Return the middles between neighbouring steps, which ascend in [0, 1]."""
    return [(low + high) / 2 for low, high in pairwise(steps)]


def places(scores: Column, thresholds: Sequence[float]) -> list[int | None]:
    """Return the place of each score's step, from 0 for the worst; None without a score."""
    values = np.asarray(scores, dtype=np.float64)
    step_places = np.searchsorted(np.asarray(thresholds), values + _ROUNDING, side="right")
    return [None if np.isnan(score) else int(place) for score, place in zip(values, step_places, strict=True)]


def steps_of_people(examples: Sequence[Example], targets: Targets, scale: Scale | None) -> tuple[float, ...] | None:
    """Return the steps that people rated on, from worst to best. None for labels, for ratings on several dimensions,
    and for numbers with too few or too many steps."""
    if targets.kind != "human" or len(targets.dimensions) != 1:
        return None
    given = [each for example in examples for each in known_ratings(example.human.get(targets.dimensions[0], ()))]
    if not given or are_labels(given):
        return None
    worst, best = scale or (min(given), max(given))
    low, high = min(worst, best), max(worst, best)
    whole = all(each % 1 == 0 for each in (*given, low, high))
    too_long = whole and high - low >= MOST_STEPS
    values = (
        sorted({*given, low, high}) if not whole else [] if too_long else [low + k for k in range(int(high - low) + 1)]
    )
    if not FEWEST_STEPS <= len(values) <= MOST_STEPS:
        return None
    return tuple(map(float, values if worst < best else values[::-1]))


def fitted_steps(
    scores: Sequence[ExampleScore], examples: Sequence[Example], targets: Targets, values: Sequence[float]
) -> tuple[StepThresholds, dict[str, Any]]:
    """Fit thresholds to development examples; return them and their row of ``result.json``. ``scores`` and ``examples``
    are in the same order."""
    judged, wanted = _scored(scores, targets)
    thresholds, reason = fit_steps(judged, wanted, units(values), documents(examples))
    kept = StepThresholds(of=targets.dimensions[0], values=tuple(values), thresholds=thresholds)
    n = int(complete(judged, wanted)[1].sum())
    row = {**kept.model_dump(mode="json"), "fitted_on": "development", "n": n}
    return kept, row | ({"reason": reason} if reason else {})


def fit_steps(
    scores: Column, ratings: Column, steps: Sequence[float], groups: Sequence[Hashable] | None = None
) -> tuple[tuple[float, ...], str | None]:
    """Fit thresholds between ``steps``, which ascend in [0, 1] as ratings do; no threshold is below the one before.

    A threshold that cannot be fitted lies in the middle between its steps. Also returns why, or None if all are fitted.
    Raises InputError if the columns do not match.
    """
    rated = np.asarray(ratings, dtype=np.float64)
    fitted_thresholds, reasons = [], []
    for middle in between(steps):
        above = [None if np.isnan(rating) else float(rating >= middle - _ROUNDING) for rating in rated]
        fitted = fit_threshold(scores, above, groups)
        fitted_thresholds.append(middle if fitted.reason else fitted.value)
        reasons += [fitted.reason] if fitted.reason else []
    thresholds = tuple(float(threshold) for threshold in np.maximum.accumulate(fitted_thresholds))
    return thresholds, reasons[0] if reasons else None


def _scored(scores: Sequence[ExampleScore], targets: Targets) -> tuple[list[float | None], list[float | None]]:
    """Return the judge's scores and the wanted ones."""
    return [targets.score(each) for each in scores], [targets.overall(each.example) for each in scores]


def figures_of_steps(
    scores: Sequence[ExampleScore], targets: Targets, steps: StepThresholds, resampling: Resampling
) -> dict[str, Any]:
    """Return the agreement of the judge's steps with people's, as in result files."""
    figures = step_figures(*_scored(scores, targets), units(steps.values), steps.thresholds, resampling)
    return dict(record_dict(figures))


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Agreement of a judge's steps with people's."""

    agreed: Statistic
    """Share of examples with the same step."""
    within_one: Statistic
    """Share of examples with the same step or a neighbouring one."""
    kappa: Statistic
    """Cohen's kappa with quadratic weights."""


def step_figures(
    scores: Column, ratings: Column, steps: Sequence[float], thresholds: Sequence[float], resampling: Resampling = USUAL
) -> StepFigures:
    """Return the agreement of scores' steps with the steps of people's ratings. A mean rating belongs to the nearest
    step, halves up.

    Raises InputError where the columns do not match.
    """
    judge_steps, people = places(scores, thresholds), places(ratings, between(steps))
    return StepFigures(
        observed_agreement(judge_steps, people, resampling),
        observed_agreement(judge_steps, people, resampling, tolerance=1),
        cohen_kappa(judge_steps, people, resampling, weights="quadratic"),
    )


def form_of_step(name: str) -> str:
    """Return the number format of a figure."""
    return ".3f" if name == "kappa" else ".1%"


def steps_line(found: Mapping[str, Any]) -> str:
    """Put the figures into a sentence; without people's ratings only the range of the steps."""
    ends = f"steps from {found['values'][0]:g} to {found['values'][-1]:g}, kept with the judge"
    if "kappa" not in found:
        return ends
    told = ", ".join(f"{label} {Figure.of(found[name], form_of_step(name))}" for name, label in STEP_FIGURES.items())
    return f"{ends}: {told}, n = {found['kappa']['n']}"
