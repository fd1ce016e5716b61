"""Equal weights: the baseline that every learner has to beat."""

from __future__ import annotations

from dataclasses import dataclass

from .comparisons import Comparisons, Floats
from .protocol import uniform_weights


@dataclass(frozen=True)
class Uniform:
    """Every test counts the same; nothing is learned."""

    name: str = "uniform"
    quick: bool = True

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
        """Equal weights, whatever the pairs."""
        return uniform_weights(pairs.tests)
