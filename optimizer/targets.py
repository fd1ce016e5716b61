"""What held-out scores are correlated with: people, or the source judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..prompts.errors import InputError, did_you_mean
from ..prompts.examples import human_dimensions
from .scoring import complete_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from .scoring import ExampleScore


@dataclass(frozen=True)
class Targets:
    """A wanted score in [0, 1] for each example and dimension."""

    kind: str
    """``human`` or ``source``."""
    dimensions: tuple[str, ...]
    wanted: Mapping[str, Mapping[str, float | None]]
    """Example id to dimension to score."""

    def overall(self, example: str) -> float | None:
        """Mean over the dimensions; None where one is missing."""
        return complete_mean([self.wanted[example].get(dimension) for dimension in self.dimensions])

    def score(self, scores: ExampleScore) -> float | None:
        """The judge's score that belongs to :meth:`overall`: its mean over the same dimensions."""
        return complete_mean([_of(scores, dimension) for dimension in self.dimensions])

    def dimension_score(self, scores: ExampleScore, dimension: str) -> float | None:
        """The judge's score on one dimension; ``overall`` is the score over all questions."""
        return _of(scores, dimension)


def human_targets(
    examples: Sequence[Example], checklist: Checklist, scale: tuple[float, float] | None = None
) -> Targets:
    """Human scores on the dimensions of the checklist, mapped to [0, 1].

    A rated dimension ``overall`` belongs to the score over all questions.

    Raises:
        InputError: The checklist asks about no dimension that people rated, or a score is outside the scale.
    """
    rated = human_dimensions(examples)
    dimensions = tuple(each for each in rated if each in checklist.dimensions)
    if not dimensions and "overall" in rated:
        dimensions = ("overall",)
    if not dimensions:
        have = ", ".join(checklist.dimensions)
        if not rated:
            like = f'"human": {{"{checklist.dimensions[0]}": 4}}'
            raise InputError(
                f"No example has a human score. Give each its own as {like}; the checklist asks about {have}."
            )
        guess = next((hint for each in checklist.dimensions if (hint := did_you_mean(each, rated))), "")
        raise InputError(
            f"The checklist's dimensions ({have}) and the rated ones ({', '.join(rated) or 'none'}) have none in "
            f"common, so there is nothing to correlate with.{guess}"
        )
    bounds = {dimension: scale or _observed(examples, dimension) for dimension in dimensions}
    wanted = {
        example.id: {dimension: _unit(example, dimension, *bounds[dimension]) for dimension in dimensions}
        for example in examples
    }
    return Targets("human", dimensions, wanted)


def source_targets(checklist: Checklist, scores: Sequence[ExampleScore]) -> Targets:
    """The source judge's own scores."""
    dimensions = tuple(checklist.dimensions)
    return Targets("source", dimensions, {each.example: dict(each.dimensions) for each in scores})


def _observed(examples: Sequence[Example], dimension: str) -> tuple[float, float]:
    ratings = [rating for example in examples for rating in example.human.get(dimension, ())]
    low, high = min(ratings), max(ratings)
    return (low, high) if low < high else (low, low + 1.0)


def _unit(example: Example, dimension: str, low: float, high: float) -> float | None:
    score = example.human_score(dimension)
    if score is None:
        return None
    if not low <= score <= high:
        raise InputError(
            f"Example '{example.id}': the human score {score:g} on '{dimension}' is outside the scale "
            f"{low:g} to {high:g} (--human-scale)."
        )
    return (score - low) / (high - low)


def _of(scores: ExampleScore, dimension: str) -> float | None:
    if dimension in scores.dimensions:
        return scores.dimensions[dimension]
    return scores.overall if dimension == "overall" else None
