"""Difference of two means if values in one group are correlated, e.g. the outputs of one page.

A random-effects model: value = mean + effect of the side + effect of the group + rest. The more the groups differ, the
more the difference is taken inside groups (Fuller and Battese, "Estimation of linear models with crossed-error
structure", Journal of Econometrics 2, 1974). The standard error is clustered by group and corrected for a small number
of groups (Bell and McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage samples",
Survey Methodology 28, 2002). If every value is its own group, difference and error are Welch's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from .resampling import Vector

SMALLEST = 1e-12
"""Smallest free share of a direction: below it, the standard error is not corrected in this direction of a group."""
LEAST_INSIDE = 1e-6
"""Lower limit of the variance inside groups, as a share of the variance between groups. With it, values that are equal
inside each group still tell the sides apart."""


def grouped_difference(
    first: Vector, second: Vector, first_groups: Sequence[Hashable], second_groups: Sequence[Hashable]
) -> tuple[float, float]:
    """Return the mean of the first side less the mean of the second, and its standard error.

    Args:
        first: Values of the first side, shape (n,).
        second: Values of the second side, shape (m,).
        first_groups: The group of each value of the first side. A group may have values on both sides.
        second_groups: The group of each value of the second side.
    """
    if len({*first_groups, *second_groups}) == len(first) + len(second):  # a shortcut to the same figures
        error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
        return float(first.mean() - second.mean()), float(error)
    values = np.concatenate([first, second])
    side = np.concatenate([np.ones(len(first)), np.zeros(len(second))])
    names = list(dict.fromkeys([*first_groups, *second_groups]))
    place = {name: number for number, name in enumerate(names)}
    codes = np.array([place[name] for name in (*first_groups, *second_groups)])
    sizes = np.bincount(codes, minlength=len(names))
    rest = values - np.where(side == 1, first.mean(), second.mean())
    shrunk: Vector = _shares_taken_off(rest, codes, sizes)[codes]

    def less_of_the_group(column: Vector) -> Vector:
        taken_off: Vector = shrunk * (np.bincount(codes, column) / sizes)[codes]
        return column - taken_off

    design = np.column_stack([1 - shrunk, less_of_the_group(side)])
    wanted = less_of_the_group(values)
    inverse = np.linalg.pinv(design.T @ design)
    fitted = inverse @ design.T @ wanted
    return float(fitted[1]), _clustered_error(design, wanted - design @ fitted, inverse, codes)


def _shares_taken_off(rest: Vector, codes: np.ndarray, sizes: np.ndarray) -> Vector:
    """Share of each group's mean that is subtracted from its values, in [0, 1): 0 if groups differ by chance alone.

    The variances between and inside groups come from a one-way analysis of variance of ``rest``: the values less the
    means of their sides.
    """
    groups, n = len(sizes), len(rest)
    if groups in (1, n):
        return np.zeros(groups)
    means = np.bincount(codes, rest) / sizes
    inner_variance = float(((rest - means[codes]) ** 2).sum()) / (n - groups)
    outer_variance = float((sizes * (means - rest.mean()) ** 2).sum()) / (groups - 1)
    usual_size = (n - float((sizes**2).sum()) / n) / (groups - 1)
    group_variance = max(0.0, (outer_variance - inner_variance) / usual_size)
    if group_variance == 0:
        return np.zeros(groups)
    inner_variance = max(inner_variance, LEAST_INSIDE * group_variance)
    taken_off: Vector = 1 - np.sqrt(inner_variance / (inner_variance + sizes * group_variance))
    return taken_off


def _clustered_error(design: np.ndarray, rest: Vector, inverse: np.ndarray, codes: np.ndarray) -> float:
    """Standard error of the second coefficient, clustered by group; each group's rest is corrected for its leverage.

    ``design`` has the shape (n, 2), so the leverage of a group has at most two directions.
    """
    values, directions = np.linalg.eigh(inverse)
    root = directions * np.sqrt(np.maximum(values, 0.0)) @ directions.T
    rows = design @ root
    groups = int(codes.max()) + 1
    leverage = np.zeros((groups, 2, 2))
    np.add.at(leverage, codes, rows[:, :, None] * rows[:, None, :])
    score = np.zeros((groups, 2))
    np.add.at(score, codes, rows * rest[:, None])
    taken, axes = np.linalg.eigh(leverage)
    left = 1 - taken
    scale = np.where(left > SMALLEST, 1 / np.sqrt(np.maximum(left, SMALLEST)), 0.0)
    corrected = np.einsum("gij,gj,gkj,gk->gi", axes, scale, axes, score)
    return float(np.sqrt(((corrected @ root)[:, 1] ** 2).sum()))
