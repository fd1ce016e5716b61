"""Ordinal labels of people: their steps, and a judge's thresholds between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, model_validator

from ...prompts.examples import documents
from ...prompts.formatting import Figure
from ...prompts.human_feedback import are_labels, known_ratings
from ...stats.correlation import statistic_dict
from ...stats.resampling import Resampling
from ...stats.steps import StepFigures, fit_steps, places, step_figures

if TYPE_CHECKING:
    from ...prompts.examples import Example
    from ..scoring import ExampleScore, Scale, Targets

FEWEST_STEPS, MOST_STEPS = 3, 11
STEP_FIGURES = {"agreed": "same step as people", "within_one": "at most one step apart", "kappa": "quadratic kappa"}


class StepThresholds(BaseModel):
    """Steps of people's ratings on one dimension, with the scores from which on a judge reaches each further one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    of: str
    """The dimension."""
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

    @property
    def units(self) -> list[float]:
        """The steps in [0, 1]."""
        return units(self.values)

    def step(self, score: float | None) -> float | None:
        """The step of a score; None without one."""
        place = places([score], self.thresholds)[0]
        return None if place is None else self.values[place]


def units(values: Sequence[float]) -> list[float]:
    """Steps from worst to best, in [0, 1]."""
    worst, best = values[0], values[-1]
    return [(each - worst) / (best - worst) for each in values]


def steps_of_people(examples: Sequence[Example], targets: Targets, scale: Scale | None) -> tuple[float, ...] | None:
    """The steps that people rated on, from worst to best; None where they gave labels, numbers on no few steps, or
    ratings on several dimensions."""
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
    """The thresholds that development examples suggest, and what ``result.json`` says of them; ``scores`` and
    ``examples`` are in the same order."""
    wanted = [targets.overall(each.example) for each in scores]
    found = fit_steps([targets.score(each) for each in scores], wanted, units(values), documents(examples))
    kept = StepThresholds(of=targets.dimensions[0], values=tuple(values), thresholds=found.thresholds)
    row = {**kept.model_dump(mode="json"), "fitted_on": "development", "n": found.n}
    return kept, row | ({"reason": found.reason} if found.reason else {})


def figures_of_steps(
    scores: Sequence[ExampleScore], targets: Targets, steps: StepThresholds, resampling: Resampling
) -> dict[str, Any]:
    """How far the judge's steps are people's, as in result files."""
    wanted = [targets.overall(each.example) for each in scores]
    said = [targets.score(each) for each in scores]
    return figures_dict(step_figures(said, wanted, steps.units, steps.thresholds, resampling))


def figures_dict(found: StepFigures) -> dict[str, Any]:
    """The figures as in result files."""
    return {name: statistic_dict(getattr(found, name)) for name in STEP_FIGURES}


def form_of_step(name: str) -> str:
    """How a figure is written."""
    return ".3f" if name == "kappa" else ".1%"


def steps_line(found: Mapping[str, Any]) -> str:
    """The figures in a sentence; without people's ratings, how many steps there are."""
    ends = f"steps from {found['values'][0]:g} to {found['values'][-1]:g}, kept with the judge"
    if "kappa" not in found:
        return ends
    told = ", ".join(f"{label} {Figure.of(found[name], form_of_step(name))}" for name, label in STEP_FIGURES.items())
    return f"{ends}: {told}, n = {found['kappa']['n']}"
