"""Logistic regression on score differences: Bradley-Terry with non-negative weights."""

from __future__ import annotations

from dataclasses import dataclass

from .bradley_terry import fit_bradley_terry
from .comparisons import Comparisons, Floats
from .protocol import normalised, require_decided


@dataclass(frozen=True)
class Logistic:
    """Non-negative Bradley-Terry weights; a data tie is half a win for either side."""

    ridge: float = 0.01
    """Pull towards 0, in units in which score differences have a root mean square of 1."""
    flip: float | None = 0.0
    """Share of labels taken to be flipped; None estimates it."""
    name: str = "logistic"
    quick: bool = True

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
        """Fit by maximum likelihood; deterministic.

        Raises:
            LearningFailedError: No decided pair, no score differs, or no test points the way people
                preferred.
        """
        require_decided(pairs)
        differences, counts = pairs.with_ties_as_halves()
        fit = fit_bradley_terry(differences, counts, flip=self.flip, ridge=self.ridge, start=start)
        return normalised(fit.weights)
