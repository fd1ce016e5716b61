"""Maximum likelihood for non-negative Bradley-Terry weights, with an optional rate of flipped labels.

The model: the preferred output wins with probability q = ε + (1 - 2ε)·logistic(w·d), d being the difference
of scores, w ≥ 0, and ε the rate at which labels are flipped whatever the scores say. ε = 0 is the usual
logistic regression. Each step is Fisher scoring solved under w ≥ 0 (a non-negative least-squares problem in
as many unknowns as there are tests), so a fit takes a handful of passes over the pairs. With many pairs the
curvature is taken from a part of them; the gradient never is.

Why a rate of flips: people's labels are wrong now and then however clear the difference is. Plain logistic regression
pays for each such label in proportion to its margin and turns away from the truth; with the rate it does not, and
unlike the share of rightly ordered pairs the likelihood is smooth, so nothing has to be searched. What it gains on
simulated pairs is in docs/results/choosing.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .evidence import Floats, PairDifferences, scipy_part
from .learners import LearningFailedError, normalised, require_decided

CURVATURE_ROWS = 10_000
"""Most pairs used for the curvature matrix; it steers the steps and leaves the solution unchanged."""
FLIP_START = 0.05
FLIP_MOST = 0.45
_MOST_STEPS = 50
_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class BradleyTerryFit:
    """Weights on the logit scale and the rate of flipped labels, and how well they fit."""

    weights: Floats
    """Shape (tests,), not negative, on the logit scale."""
    flip_rate: float
    """ε in [0, 0.45]."""
    margins: Floats
    """Shape (pairs,), of the pairs it was fitted to."""
    loss: float
    """Minus the log-likelihood, with the penalty."""


def fit_bradley_terry(
    differences: Floats,
    counts: Floats,
    *,
    flip: float | None,
    ridge: float = 0.01,
    start: Floats | None = None,
) -> BradleyTerryFit:
    """Fit non-negative weights to score differences (preferred minus other).

    Args:
        differences: Shape (pairs, tests).
        counts: Shape (pairs,), not negative.
        flip: The rate of flipped labels, or None to estimate it with the weights.
        ridge: Strength of the pull towards 0 that keeps separable pairs finite, in units in which the
            differences have a root mean square of 1.
        start: Direction to begin from, shape (tests,); uniform when None.

    Raises:
        LearningFailedError: The scores never differ, or no test points the way people preferred.
    """
    problem = _Problem(differences, counts, ridge, estimate_flip=flip is None)
    point = problem.first(start, FLIP_START if flip is None else flip)
    for _ in range(_MOST_STEPS):
        following = problem.improve(point)
        settled = point.loss - following.loss <= _TOLERANCE * problem.total
        point = following
        if settled:
            break
    if not point.weights.any():
        raise LearningFailedError("no test points the way people preferred, so every non-negative weight is 0")
    return point


class _Problem:
    """The penalised likelihood of one set of pairs."""

    def __init__(self, differences: Floats, counts: Floats, ridge: float, *, estimate_flip: bool) -> None:
        self.differences, self.counts, self.estimate_flip = differences, counts, estimate_flip
        self.total = float(counts.sum())
        # Without a temporary of the size of the data: the sum of squares of each test, then over tests.
        squares = np.einsum("ij,ij,i->j", differences, differences, counts)
        mean_square = float(squares.sum() / max(self.total * len(squares), 1e-300))
        if mean_square <= 0.0:
            raise LearningFailedError("the two outputs have the same scores in every pair")
        self.unit = 1.0 / np.sqrt(mean_square)
        self.ridge = ridge / self.unit**2
        step = -(-len(differences) // CURVATURE_ROWS)
        self.rows = slice(None, None, step)
        part = float(counts[self.rows].sum())
        if part <= 0.0:
            self.rows, part = slice(None), self.total
        self.scale_up = self.total / part

    def first(self, start: Floats | None, flip: float) -> BradleyTerryFit:
        """The best of a few scales of the direction ``start``: weights are known only up to their scale."""
        tests = self.differences.shape[1]
        direction = np.full(tests, 1.0 / tests) if start is None else start / start.sum()
        margins = self.differences @ direction
        scales = [self.unit * scale for scale in (1.0, 3.0, 10.0, 30.0, 100.0)]
        tried = [self._at(scale * direction, flip, scale * margins) for scale in scales]
        return min(tried, key=lambda point: point.loss)

    def at(self, weights: Floats, flip: float) -> BradleyTerryFit:
        """Loss at these weights and flip rate."""
        return self._at(weights, flip, self.differences @ weights)

    def _at(self, weights: Floats, flip: float, margins: Floats) -> BradleyTerryFit:
        chance = flip + (1.0 - 2.0 * flip) * _logistic(margins)
        loss = -float(self.counts @ np.log(np.maximum(chance, 1e-300))) + self.ridge / 2 * float(weights @ weights)
        return BradleyTerryFit(weights, flip, margins, loss)

    def improve(self, point: BradleyTerryFit) -> BradleyTerryFit:
        """One Fisher scoring step under w ≥ 0, else one step down the scaled gradient, else the point itself."""
        now = np.append(point.weights, point.flip_rate) if self.estimate_flip else point.weights
        gradient, curvature = self._derivatives(point)
        steepest = np.maximum(now - gradient / np.maximum(np.diag(curvature), 1e-12), 0.0)
        for target in (_non_negative_minimum(gradient, curvature, now), steepest):
            better = self._along(point, now, target - now, float(gradient @ (target - now)))
            if better is not None:
                return better
        return point

    def _along(self, point: BradleyTerryFit, now: Floats, step: Floats, slope: float) -> BradleyTerryFit | None:
        """The first point, halving ``step`` up to 20 times, at which the loss falls enough (Armijo); else None."""
        if slope >= 0.0:
            return None
        for size in 0.5 ** np.arange(20):
            tried = now + size * step
            flip = min(float(tried[-1]), FLIP_MOST) if self.estimate_flip else point.flip_rate
            candidate = self.at(tried[: len(point.weights)], flip)
            if candidate.loss <= point.loss + 1e-4 * size * slope:
                return candidate
        return None

    def _derivatives(self, point: BradleyTerryFit) -> tuple[Floats, Floats]:
        """Gradient and expected curvature in the weights (and the flip rate, last, where it is estimated)."""
        tests = len(point.weights)
        logistic = _logistic(point.margins)
        chance = np.maximum(point.flip_rate + (1.0 - 2.0 * point.flip_rate) * logistic, 1e-12)
        by_margin = (1.0 - 2.0 * point.flip_rate) * logistic * (1.0 - logistic)
        by_flip = 1.0 - 2.0 * logistic
        gradient = self.ridge * point.weights - self.differences.T @ (self.counts * by_margin / chance)
        # All of the curvature comes from the same pairs: a matrix of parts from different pairs may be
        # indefinite.
        least = 1e-4 if self.estimate_flip else 1e-9
        trust = (self.counts / np.maximum(chance * (1.0 - chance), least))[self.rows] * self.scale_up
        slopes = self.differences[self.rows] * by_margin[self.rows, None]
        if self.estimate_flip:
            slopes = np.column_stack([slopes, by_flip[self.rows]])
            gradient = np.append(gradient, -float(self.counts @ (by_flip / chance)))
        curvature = (slopes * trust[:, None]).T @ slopes
        curvature[np.arange(tests), np.arange(tests)] += self.ridge
        return gradient, curvature


def _logistic(margins: Floats) -> Floats:
    """1 / (1 + exp(-margin)), without overflow."""
    small = np.exp(-np.abs(margins))
    return np.where(margins >= 0.0, 1.0, small) / (1.0 + small)


def _non_negative_minimum(gradient: Floats, curvature: Floats, now: Floats) -> Floats:
    """Minimise the quadratic model of the loss at ``now`` over vectors that are nowhere negative."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(curvature), 1e-12))
    scaled = curvature * scale * scale[:, None] + 1e-9 * np.eye(len(now))
    values, vectors = np.linalg.eigh(scaled)
    root = np.sqrt(np.maximum(values, 1e-9))
    target = scaled @ (now / scale) - gradient * scale
    try:
        solution = scipy_part("optimize").nnls((vectors * root).T, (vectors.T @ target) / root)[0]
    except RuntimeError as error:  # scipy's report that its active-set iteration did not settle
        raise LearningFailedError(f"the non-negative least-squares step did not settle ({error})") from error
    minimum: Floats = solution * scale
    return minimum


@dataclass(frozen=True)
class Logistic:
    """Non-negative Bradley-Terry weights; a data tie is half a win for either side."""

    ridge: float = 0.01
    """Pull towards 0, in units in which score differences have a root mean square of 1."""
    flip: float | None = 0.0
    """Share of labels taken to be flipped; None estimates it."""
    name: str = "logistic"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Fit by maximum likelihood; deterministic.

        Raises:
            LearningFailedError: No decided pair, no score differs, or no test points the way people
                preferred.
        """
        require_decided(pairs)
        differences, counts = pairs.with_ties_as_halves()
        fit = fit_bradley_terry(differences, counts, flip=self.flip, ridge=self.ridge, start=start)
        return normalised(fit.weights)


@dataclass(frozen=True)
class Robust(Logistic):
    """Non-negative Bradley-Terry weights with a rate of flipped labels that is estimated with them."""

    flip: float | None = None
    name: str = "robust"
