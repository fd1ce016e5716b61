"""Simulated pairs for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from askance.optimizer.weights.score_tables import PreferenceScores, preference_scores


def _simulate(
    weights: list[float], pairs: int, *, seed: int = 0, flips: float = 0.05, sections: list[str] | None = None
) -> PreferenceScores:
    """Uniform scores labelled by ``weights``, a share of labels flipped."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((pairs, len(weights))), rng.random((pairs, len(weights)))
    prefers_a = ((a - b) @ np.array(weights) > 0) ^ (rng.random(pairs) < flips)
    return preference_scores(
        [f"{seed}-{number}" for number in range(pairs)],
        [f"t{number}" for number in range(len(weights))],
        a,
        b,
        np.where(prefers_a, "a", "b").tolist(),
        sections=sections,
    )


@pytest.fixture
def simulate() -> Callable[..., PreferenceScores]:
    """Simulated pairs: ``simulate(weights, pairs, seed=, flips=, sections=)``."""
    return _simulate
