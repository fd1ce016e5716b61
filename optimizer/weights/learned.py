"""What learning weights gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .intervals import Power, Stability
from .pairs import Floats
from .preferences import Level

Conclusion = Literal["better", "worse", "cannot tell", "same", "undefined"]


@dataclass(frozen=True)
class LearnerScore:
    """What one learner gets right on the held-out pairs; None throughout when it failed."""

    name: str
    accuracy: float | None = None
    """Share of held-out decided pairs in the right order, a score tie being half."""
    low: float | None = None
    high: float | None = None
    right: int | None = None
    score_ties: int | None = None
    wrong: int | None = None
    difference: float | None = None
    """Accuracy minus that of uniform weights on the same pairs."""
    difference_low: float | None = None
    difference_high: float | None = None
    seconds: float | None = None
    """Mean processor time for learning once, choices included."""
    weights: tuple[float, ...] | None = None
    """Mean of the overall weights over the splits, sum 1."""
    failure: str | None = None
    """Why there are no numbers."""


@dataclass(frozen=True)
class PairCounts:
    """What became of the pairs."""

    read: int
    left_out: int
    """Pairs without some score; never filled in."""
    missing_by_test: dict[str, int]
    decided: int
    data_ties: int
    """Pairs people called a tie: they have no right order and are in no accuracy."""
    data_ties_tied_by_score: int
    """Data ties whose two scores tie as well, under the final weights."""
    mean_margin_data_ties: float | None
    """Mean absolute margin of the data ties under the final weights; None when there are none."""
    mean_margin_decided: float
    groups: int
    held_out: int


@dataclass(frozen=True, eq=False)
class SectionWeights:
    """The weights of one section or data set."""

    name: str
    decided: int
    weights: Floats
    low: Floats | None
    high: Floats | None


@dataclass(frozen=True, eq=False)
class WeighResult:
    """Weights, how sure they are, and whether they beat uniform ones."""

    method: str
    learner: str
    """What the method settled on, e.g. ``robust (25% uniform)``."""
    reason: str
    """Why the method settled on it; empty when nothing was open."""
    level: Level
    tests: tuple[str, ...]
    weights: Floats
    """Shape (tests,), sum 1, learned from all decided pairs."""
    low: Floats | None
    high: Floats | None
    no_interval: str | None
    """Why there are no intervals for the weights."""
    sections: tuple[SectionWeights, ...]
    stability: Stability | None
    learners: tuple[LearnerScore, ...]
    verdict: Conclusion
    """Whether the method beats uniform weights on held-out pairs beyond noise."""
    power: Power
    counts: PairCounts
    folds: int
    """1: one split; more: every pair was held out once."""
    resamples: int
    failed_resamples: int
    confidence: float
    seed: int

    @property
    def held_out(self) -> LearnerScore:
        """The held-out score of the method itself."""
        return next(score for score in self.learners if score.name == self.method)
