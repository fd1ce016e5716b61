"""Direct search for the largest share of rightly ordered pairs, one weight at a time and exactly.

The share is piecewise constant: along one weight it changes only where some pair's margin crosses 0.
Sorting those crossings and adding up what each wins or loses gives the best value of that weight exactly,
in one sort. Sweeping over the tests from a logistic fit until nothing improves is a local optimum that no
change of a single weight can better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .bradley_terry import fit_bradley_terry
from .comparisons import SCORE_TIE, Comparisons, Floats, share_right
from .protocol import LearningFailedError, normalised, require_decided, uniform_weights


@dataclass(frozen=True)
class LocalSearch:
    """Exact coordinate search on the 0-1 objective of LMUnit (eq. 8), from a logistic fit and from uniform
    weights.
    """

    sweeps: int = 10
    """Most passes over the tests from each start; it ends earlier when a pass improves nothing."""
    most_pairs: int = 20_000
    """With more pairs a seeded sample of this size is searched: its sampling error is far below that of the
    labels.
    """
    name: str = "local-search"
    quick: bool = True

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
        """Search from ``start``, or from a logistic fit and from uniform weights, and keep the better end.

        Raises:
            LearningFailedError: No decided pair, or no score differs.
        """
        require_decided(pairs)
        rng = np.random.default_rng(seed)
        differences, counts = pairs.decided()
        drawn = np.flatnonzero(counts)
        if len(drawn) > self.most_pairs:
            drawn = np.sort(rng.choice(drawn, self.most_pairs, replace=False))
        if len(drawn) < len(differences):
            differences, counts = differences[drawn], counts[drawn]
        starts = [start] if start is not None else self._starts(differences, counts)
        ends = [maximise_share(differences, counts, each, rng=rng, sweeps=self.sweeps) for each in starts]
        return normalised(max(ends, key=lambda weights: share_right(differences, counts, weights)))

    def _starts(self, differences: Floats, counts: Floats) -> list[Floats]:
        uniform = uniform_weights(differences.shape[1])
        try:
            logistic = fit_bradley_terry(differences, counts, flip=0.0)
        except LearningFailedError:  # every test points the wrong way: uniform is where the search begins
            return [uniform]
        return [normalised(logistic.weights), uniform]


def maximise_share(
    differences: Floats, counts: Floats, start: Floats, *, rng: np.random.Generator, sweeps: int = 10
) -> Floats:
    """Set one weight after another to its best value until a whole sweep improves nothing.

    Args:
        differences: Shape (pairs, tests), preferred minus other.
        counts: Shape (pairs,).
        start: Weights, shape (tests,), not negative, not all 0.
        rng: Orders the tests within a sweep.
        sweeps: Most sweeps.

    Returns:
        Weights, shape (tests,), sum 1, whose share of right pairs is at least that of ``start``.
    """
    columns = np.ascontiguousarray(differences.T)
    weights: Floats = start / start.sum()
    margins = differences @ weights
    best = share_right(differences, counts, weights) * float(counts.sum())
    for _ in range(sweeps):
        improved = False
        for test in rng.permutation(len(weights)):
            others = 1.0 - weights[test]
            if others <= SCORE_TIE:  # the only weight there is: changing its scale changes nothing
                continue
            rest = (margins - weights[test] * columns[test]) / others
            value, won = best_on_line(rest, columns[test], counts)
            if won > best + 1e-9:
                weights = weights * ((1.0 - value) / others)
                weights[test] = value
                margins = (1.0 - value) * rest + value * columns[test]
                best, improved = won, True
        if not improved:
            break
    return weights


def best_on_line(rest: Floats, column: Floats, counts: Floats) -> tuple[float, float]:
    """The best share v in [0, 1) of one test when the margin is (1 - v)·rest + v·column.

    Args:
        rest: Shape (pairs,), margins of the other tests, their weights summing to 1.
        column: Shape (pairs,), differences of this test.
        counts: Shape (pairs,).

    Returns:
        The share (the middle of the widest best interval) and the pairs it gets right, a score tie being
        half.
    """
    level = np.where(np.abs(rest) <= SCORE_TIE, 0.0, rest)
    at_zero = float(counts @ (0.5 * np.sign(level) + 0.5))
    beyond_zero = at_zero + 0.5 * float(counts @ np.where(level == 0.0, np.sign(column), 0.0))
    crossing = level * column < 0.0
    # (1 - v)·rest + v·column = 0 at v = rest / (rest - column)
    where = level[crossing] / (level[crossing] - column[crossing])
    change = counts[crossing] * np.sign(column[crossing])
    order = np.argsort(where)
    edges = np.concatenate([[0.0], where[order], [1.0]])
    right = beyond_zero + np.concatenate([[0.0], np.cumsum(change[order])])
    width = np.diff(edges)
    right[width <= SCORE_TIE] = -np.inf  # crossings at one place: only what lies between places is open
    top = float(right.max())
    if at_zero >= top:
        return 0.0, at_zero
    widest = int(np.argmax(np.where(right >= top - 1e-9, width, -1.0)))
    return float((edges[widest] + edges[widest + 1]) / 2), top
