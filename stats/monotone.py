"""A monotone curve through points: isotonic regression over groups of like values."""

from __future__ import annotations

import numpy as np

from .resampling import Vector

GROUPS, LEAST_GROUP = 10, 5
"""Groups of values that a curve is fitted to at most, and examples that each has at least: steps of single examples
would follow the noise."""
Points = tuple[tuple[float, float], ...]


def monotone_curve(values: Vector, wanted: Vector, *, rises: bool) -> Points:
    """Fit a monotone curve by least squares (pool adjacent violators; Barlow and others, "Statistical Inference under
    Order Restrictions", 1972).

    The values are put into groups of equal size, equal values together. The curve goes straight between the centres of
    the fitted blocks, so that it keeps the order of values that a step function would make equal.

    Args:
        values: Shape (n,).
        wanted: In [0, 1], shape (n,).
        rises: Whether the curve rises; else it falls.

    Returns:
        Points (value, fitted share), the values strictly rising.
    """
    from scipy.optimize import isotonic_regression

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    groups = max(1, min(GROUPS, len(values) // LEAST_GROUP))
    # A value's group follows from the middle rank of its examples.
    middle = (np.cumsum(counts) - (counts + 1) / 2) / len(values)
    number = np.unique(np.floor(middle * groups).astype(int), return_inverse=True)[1][places]
    sizes = np.bincount(number).astype(float)
    centres, means = (np.bincount(number, weights=column) / sizes for column in (values, wanted))
    fitted = isotonic_regression(means, weights=sizes, increasing=rises).x
    blocks = np.unique(np.round(fitted, 6), return_inverse=True)[1]
    blocks = blocks if rises else blocks.max() - blocks
    weight = np.bincount(blocks, weights=sizes)
    at = np.bincount(blocks, weights=centres * sizes) / weight
    shares = np.bincount(blocks, weights=fitted * sizes) / weight
    return tuple(
        (float(f"{value:.6g}"), round(float(np.clip(share, 0, 1)), 4)) for value, share in zip(at, shares, strict=True)
    )
