"""Weights that decay with the position of a test, as LMUnit weights query-level tests (Table 15)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...prompts.errors import InputError
from .comparisons import Comparisons, Floats
from .protocol import normalised


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

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
        """Decaying weights, whatever the pairs."""
        return normalised(self.base ** np.arange(pairs.tests, dtype=np.float64))
