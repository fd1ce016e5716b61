"""The one test that agrees best with people: a baseline that weighted sums often fail to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .comparisons import Comparisons, Floats, margins_to_credits
from .protocol import require_decided


@dataclass(frozen=True)
class BestSingle:
    """All weight on the test that orders most development pairs rightly (score ties half; the first of
    equals).
    """

    name: str = "best-single"
    quick: bool = True

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
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
