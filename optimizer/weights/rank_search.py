"""Search for weights whose score ranks rated outputs as people do, alone or together with pairs.

Spearman's correlation is the objective as it stands: piecewise constant and scale-free like the share of
right pairs, so many candidates are ranked at once and one weight is changed at a time.
"""

from __future__ import annotations

import numpy as np

from .comparisons import Comparisons, Floats, margins_to_credits
from .optional import scipy_part
from .protocol import normalised


def least_squares(scores: Floats, ratings: Floats) -> Floats:
    """Non-negative least squares of the ratings' ranks on the scores, both centred; shape (tests,), sum 1.

    Raises:
        LearningFailedError: No test rises with the ratings.
    """

    ranks = scipy_part("stats").rankdata(ratings) / len(ratings)
    return normalised(scipy_part("optimize").nnls(scores - scores.mean(axis=0), ranks - ranks.mean())[0])


class Objective:
    """The rank correlation with the ratings, alone or mixed with the share of right pairs."""

    def __init__(self, scores: Floats, ratings: Floats, pairs: Comparisons | None, share: float) -> None:

        self.scores, self.share = scores, share
        self.ranks = scipy_part("stats").rankdata(ratings) - (len(ratings) + 1) / 2
        self.pairs = pairs.decided() if pairs is not None and pairs.decided_pairs else None

    def values(self, candidates: Floats) -> Floats:
        """Objective of each row of ``candidates`` (candidates, tests); -inf where the score is constant."""

        ranks = (
            scipy_part("stats").rankdata(np.round(self.scores @ candidates.T, 12), axis=0) - (len(self.ranks) + 1) / 2
        )
        spread = np.sqrt((ranks**2).sum(axis=0) * (self.ranks**2).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            spearman: Floats = np.where(spread > 0, self.ranks @ ranks / spread, -np.inf)
        if self.pairs is None or self.share == 0:
            return spearman
        differences, counts = self.pairs
        right = counts @ margins_to_credits(differences @ candidates.T) / counts.sum()
        mixed: Floats = (1.0 - self.share) * spearman + self.share * (2.0 * right - 1.0)
        return mixed


def maximise(objective: Objective, start: Floats, *, sweeps: int = 6, grid: int = 17) -> Floats:
    """Coordinate search from ``start`` (tests,): a grid on one weight's share at a time, finer in each
    sweep.
    """
    weights: Floats = start / start.sum()
    best = float(objective.values(weights[None, :])[0])
    width = 1.0
    for _ in range(sweeps):
        for test in range(len(weights)):
            others = 1.0 - weights[test]
            if others <= 1e-9:
                continue
            shares = np.linspace(max(0.0, weights[test] - width), min(0.98, weights[test] + width), grid)
            candidates = np.outer((1.0 - shares) / others, weights)
            candidates[:, test] = shares
            values = objective.values(candidates)
            top = int(np.argmax(values))
            if values[top] > best + 1e-12:
                best, weights = float(values[top]), candidates[top]
        width /= 2.0
    return normalised(weights)
