"""What a weight learner is, the form that all weights take, and the simplest learners, which others have to beat."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...prompts.errors import AskanceError, MissingExtraError
from .pairs import Floats, PairDifferences, margins_to_credits

SHRINKAGE = (0.0, 0.25, 0.5, 0.75)
"""Shares of uniform weights that cross-validation tries to mix into learned ones; 1 is the uniform learner."""


class LearningFailedError(AskanceError):
    """A learner found no weights; the message says why. The comparison of learners shows it beside the others."""


@runtime_checkable
class WeightLearner(Protocol):
    """A strategy for learning how test scores add up."""

    @property
    def name(self) -> str:
        """What the tables call it."""

    @property
    def quick(self) -> bool:
        """Whether learning again on a few hundred resamples is affordable."""

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Learn weights from ``pairs``.

        Args:
            pairs: Development pairs only; whatever is held out is never passed here.
            seed: Same pairs and seed, same weights.
            start: Weights to begin the search from, shape (tests,); uniform when None.

        Returns:
            Weights, shape (tests,), in [0, 1] with sum 1.

        Raises:
            LearningFailedError: The pairs determine no weights.
        """


def uniform_weights(tests: int) -> Floats:
    """Equal weights, shape (tests,), sum 1."""
    return np.full(tests, 1.0 / tests)


def shrunk_name(name: str, uniform_share: float) -> str:
    """A learner's name with how much of its weights is uniform."""
    return f"{name} ({uniform_share:.0%} uniform)" if uniform_share else name


def normalised(weights: Floats) -> Floats:
    """Scale to sum 1: the objective is scale-free, so weights are reported as shares.

    Raises:
        LearningFailedError: No weight is positive.
    """
    total = float(weights.sum())
    if not np.isfinite(total) or total <= 0.0:
        raise LearningFailedError("every weight is 0, so there is no score")
    shares: Floats = np.clip(weights / total, 0.0, 1.0)
    return shares


def require_decided(pairs: PairDifferences) -> None:
    """Refuse pairs that decide nothing.

    Raises:
        LearningFailedError: People preferred an output in none of the pairs, or no score ever differs.
    """
    differences, counts = pairs.decided()
    if not len(differences) or counts.sum() <= 0:
        raise LearningFailedError("there is no pair in which people preferred one output")
    if not np.any(differences[counts > 0]):
        raise LearningFailedError("the two outputs have the same scores in every pair")


def scipy_part(name: str) -> Any:
    """The module ``scipy.NAME``.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise MissingExtraError("weights", "scipy") from error


@dataclass(frozen=True)
class Uniform:
    """Every test counts the same; nothing is learned."""

    name: str = "uniform"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Equal weights, whatever the pairs."""
        return uniform_weights(pairs.tests)


@dataclass(frozen=True)
class BestSingle:
    """All weight on the test that orders most development pairs rightly (score ties half; the first of equals)."""

    name: str = "best-single"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """One weight of 1, the others 0.

        Raises:
            LearningFailedError: There is no decided pair, or no score ever differs.
        """
        require_decided(pairs)
        differences, counts = pairs.decided()
        right = [float(counts @ margins_to_credits(differences[:, test])) for test in range(pairs.tests)]
        weights = np.zeros(pairs.tests)
        weights[int(np.argmax(right))] = 1.0
        return weights
