"""Equal weights: the baseline that every learner has to beat.

The one test that agrees best with people: a baseline that weighted sums often fail to beat.

Weights that decay with the position of a test, as LMUnit weights query-level tests (Table 15).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...prompts.errors import InputError
from .pairs import Floats, PairDifferences, margins_to_credits
from .protocol import normalised, require_decided, uniform_weights


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
    """All weight on the test that orders most development pairs rightly (score ties half; the first of
    equals).
    """

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


@dataclass(frozen=True)
class Decay:
    """The n-th test, in the order of the checklist (or of the file), weighs ``base`` to the power n."""

    base: float = 0.8
    name: str = "decay"
    quick: bool = True

    def __post_init__(self) -> None:
        """Check the base."""
        if not 0.0 < self.base <= 1.0:
            raise InputError(f"The base of decaying weights is {self.base}; it must lie above 0 and at most at 1.")

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Decaying weights, whatever the pairs."""
        return normalised(self.base ** np.arange(pairs.tests, dtype=np.float64))
