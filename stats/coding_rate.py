"""The coding rate of a set of vectors, and a choice of vectors that raises it step by step.

R(Z) = ½ log det(I + d / (n ε²) ZᵀZ) counts the nats that n vectors of d dimensions take up to a distortion of ε. A
vector that repeats the others does not raise it. Source: Ma et al., "Segmentation of multivariate mixed data via lossy
data coding and compression", PAMI 29, 2007, eq. 7.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]
DISTORTION = 0.5
"""ε, as in later work on the rate."""
LEAST_GAIN = 0.01
"""Smallest gain, in nats, for which a vector is taken."""


def coding_rate(vectors: Vectors, distortion: float = DISTORTION) -> float:
    """Return the rate of ``vectors``, shape (n, d), in nats; 0 of none."""
    n, d = vectors.shape
    if not n:
        return 0.0
    # ZZᵀ is (n, n) and gives the same determinant as ZᵀZ.
    gram = np.eye(n) + d / (n * distortion**2) * vectors @ vectors.T
    return float(np.linalg.slogdet(gram)[1]) / 2


def spread_by_rate(vectors: Vectors, distortion: float = DISTORTION, least: float = LEAST_GAIN) -> list[int]:
    """Return places of vectors, shape (n, d), in the order in which each raises the rate most.

    Of equal gains the first is taken. The choice ends when no vector adds ``least`` nats.
    """
    taken: list[int] = []
    rate = 0.0
    while len(taken) < len(vectors):
        left = [place for place in range(len(vectors)) if place not in taken]
        rates = [coding_rate(vectors[[*taken, place]], distortion) for place in left]
        best = int(np.argmax(np.round(rates, 9)))
        if rates[best] - rate < least:
            break
        taken.append(left[best])
        rate = rates[best]
    return taken
