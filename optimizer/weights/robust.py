"""Logistic regression that allows for flipped labels.

People's labels are wrong now and then however clear the difference is. Plain logistic regression pays for each such
label in proportion to its margin and turns away from the truth; a model with a rate of flips does not, and unlike the
share of rightly ordered pairs its likelihood is smooth, so nothing has to be searched. On simulated pairs with 5 % of
the labels flipped it comes as near to the best possible accuracy with 1,000 pairs as plain logistic regression with
10,000, and without flips it loses next to nothing (experiments/weights_recovery.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .bradley_terry import fit_bradley_terry
from .comparisons import Comparisons, Floats
from .protocol import normalised, require_decided


@dataclass(frozen=True)
class Robust:
    """Non-negative Bradley-Terry weights with a rate of flipped labels that is estimated with them."""

    ridge: float = 0.01
    """Pull towards 0, in units in which score differences have a root mean square of 1."""
    name: str = "robust"
    quick: bool = True

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
        """Fit by maximum likelihood; deterministic.

        Raises:
            LearningFailedError: No decided pair, no score differs, or no test points the way people
                preferred.
        """
        require_decided(pairs)
        differences, counts = pairs.with_ties_as_halves()
        fit = fit_bradley_terry(differences, counts, flip=None, ridge=self.ridge, start=start)
        return normalised(fit.weights)
