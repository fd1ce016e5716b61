"""Learners of weights: their interface, the Bradley-Terry fits and the searches.

With pairs the objective is the share of rightly ordered pairs over [0, 1]^N (LMUnit eq. 8). With ratings it is the rank
correlation with them. Both are piecewise constant and ignore the scale of weights. Two searches treat the share of
right pairs as a black box: Bayesian optimisation as in LMUnit (§3.5, A.3.5; Gaussian process, probability of
improvement) and Optuna's tree-structured Parzen estimators. The rank correlation is searched one weight at a time.

Bradley-Terry: the preferred output wins with probability q = ε + (1 - 2ε)·logistic(w·d). Here d is the difference of
scores, w ≥ 0, and ε is the rate at which labels are flipped whatever the scores say. ε = 0 is the usual logistic
regression. It pays for each wrong label in proportion to the margin, so wrong labels pull it away from the truth; with
the rate they do not (docs/results/choosing.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ...prompts.errors import AskanceError, MissingExtraError
from .evidence import Evidence, Floats, PairDifferences, RatedScores, share_right

if TYPE_CHECKING:
    import optuna


class LearningFailedError(AskanceError):
    """A learner found no weights; the message says why. The comparison of learners shows it in place of a figure."""


@runtime_checkable
class WeightLearner(Protocol):
    """A strategy for learning how test scores add up."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def quick(self) -> bool:
        """Whether learning again on a few hundred resamples is affordable."""

    def learn(self, pairs: Any, *, seed: int, start: Floats | None = None) -> Floats:
        """Learn weights, shape (tests,), in [0, 1] with sum 1, from development pairs or rated outputs.

        Held-out data are never passed here. The same data and seed give the same weights. The search begins at
        ``start``, or at uniform weights. Raises LearningFailedError where the pairs determine no weights."""


def uniform_weights(tests: int) -> Floats:
    """Equal weights, shape (tests,), sum 1."""
    return np.full(tests, 1.0 / tests)


def normalised(weights: Floats) -> Floats:
    """Scale to sum 1: the objective is scale-free, so weights are reported as shares. Raises LearningFailedError where
    no weight is positive."""
    total = float(weights.sum())
    if not np.isfinite(total) or total <= 0.0:
        raise LearningFailedError("every weight is 0, so there is no score")
    shares: Floats = np.clip(weights / total, 0.0, 1.0)
    return shares


def require_decided(pairs: PairDifferences) -> None:
    """Refuse pairs from which nothing can be learned. Raises LearningFailedError where people preferred an output in
    none of the pairs, or no score ever differs."""
    differences, counts = pairs.decided()
    if not len(differences) or counts.sum() <= 0:
        raise LearningFailedError("there is no pair in which people preferred one output")
    if not np.any(differences[counts > 0]):
        raise LearningFailedError("the two outputs have the same scores in every pair")


@dataclass(frozen=True)
class Uniform:
    """Every test counts the same; nothing is learned."""

    name: str = "uniform"
    quick: bool = True

    def learn(self, pairs: Evidence, *, seed: int, start: Floats | None = None) -> Floats:
        """Return equal weights, whatever the pairs."""
        return uniform_weights(pairs.tests)


@dataclass(frozen=True)
class BestSingle:
    """All weight on the test that orders most pairs rightly, or follows the ratings best; the first of equal tests."""

    name: str = "best-single"
    quick: bool = True

    def learn(self, pairs: Evidence, *, seed: int, start: Floats | None = None) -> Floats:
        """Return one weight of 1, the others 0. Raises LearningFailedError for pairs of which none is decided, or in
        which no score ever differs."""
        if isinstance(pairs, PairDifferences):
            require_decided(pairs)
        every = np.eye(pairs.tests)
        weights: Floats = every[int(np.argmax(pairs.objective(every)))]
        return weights


@dataclass(frozen=True)
class LeastSquares:
    """Non-negative least squares of the ratings' ranks on the scores, both centred."""

    name: str = "least-squares"
    quick: bool = True

    def learn(self, pairs: RatedScores, *, seed: int, start: Floats | None = None) -> Floats:
        """Fit to the ratings; pairs beside them are ignored. Raises LearningFailedError where no test rises with the
        ratings, or there are no ratings."""
        from scipy.optimize import nnls
        from scipy.stats import rankdata

        if not len(pairs.ratings):
            raise LearningFailedError("there is no rated output to learn from")
        ranks = rankdata(pairs.ratings) / len(pairs.ratings)
        weights, _ = nnls(pairs.scores - pairs.scores.mean(axis=0), ranks - ranks.mean())
        return normalised(weights)


SWEEPS, GRID = 6, 17
"""Rounds over all weights, and values tried for one weight at a time. The values lie closer together in each round."""


@dataclass(frozen=True)
class RankSearch:
    """Coordinate search for the largest objective of ratings, and of the pairs beside them."""

    name: str = "rank-search"
    quick: bool = True

    def learn(self, pairs: RatedScores, *, seed: int, start: Floats | None = None) -> Floats:
        """Search from a least-squares fit, or from uniform weights where the fit fails; deterministic."""
        try:
            first = LeastSquares().learn(pairs, seed=seed)
        except LearningFailedError:
            first = uniform_weights(pairs.tests)
        return self.maximise(pairs, first)

    def maximise(self, rated: RatedScores, start: Floats) -> Floats:
        """Return the best weights (tests,) that single changes of one weight reach from ``start`` (tests,)."""
        weights: Floats = start / start.sum()
        best = float(rated.objective(weights[None, :])[0])
        width = 1.0
        for _ in range(SWEEPS):
            for test in range(len(weights)):
                other_weight = 1.0 - weights[test]
                if other_weight <= 1e-9:  # all other weights are 0: changing the scale of this one changes nothing
                    continue
                shares = np.linspace(max(0.0, weights[test] - width), min(0.98, weights[test] + width), GRID)
                candidates = np.outer((1.0 - shares) / other_weight, weights)
                candidates[:, test] = shares
                values = rated.objective(candidates)
                top = int(np.argmax(values))
                if values[top] > best + 1e-12:
                    best, weights = float(values[top]), candidates[top]
            width /= 2.0
        return normalised(weights)


class BlackBox:
    """The share of right pairs as a function of a point, for the black-box searches. A point has one coordinate per
    test. Raises LearningFailedError where there is no decided pair, or no score differs."""

    def __init__(self, pairs: PairDifferences) -> None:
        require_decided(pairs)
        self._differences, self._counts = pairs.decided()
        self._tests = pairs.tests
        self.names = [f"w{test:04d}" for test in range(pairs.tests)]

    def start(self, weights: Floats | None) -> dict[str, float]:
        """Return the point where the search begins: ``weights`` scaled to a largest of 1, or uniform weights."""
        first = np.ones(self._tests) if weights is None else weights / weights.max()
        return dict(zip(self.names, first.tolist(), strict=True))

    def share(self, coordinate: Callable[[str], float]) -> float:
        """Return the share of right pairs at a point. Where every weight is 0, all pairs tie and the share is 0.5."""
        weights = np.array([coordinate(name) for name in self.names])
        return share_right(self._differences, self._counts, weights) if weights.sum() > 0 else 0.5

    def weights(self, point: Mapping[str, float]) -> Floats:
        """Return the weights of a point, shape (tests,), sum 1. Raises LearningFailedError where every weight is 0."""
        return normalised(np.array([float(point[name]) for name in self.names]))


@dataclass(frozen=True)
class Bayes:
    """Bayesian optimisation as in LMUnit: w in [0, 1]^N, uniform start, 200 evaluations. Slow; kept for comparison."""

    evaluations: int = 200
    """Evaluations after the start and the random points."""
    random_points: int = 5
    """Random points before the Gaussian process takes over."""
    xi: float = 0.01
    """Improvement that a new point must promise. The paper does not give it, but it matters: 1e-4 is far worse."""
    local_searches: int = 2
    """Local searches for the next point, after 10,000 random points. With the package's default of 10 no more
    development pairs came into the right order, in three to four times the processor time."""
    name: str = "bayes"
    quick: bool = False

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Search; the best point seen is kept. Raises MissingExtraError where bayesian-optimization is not installed,
        and LearningFailedError where there is no decided pair, or no score differs."""
        try:
            from bayes_opt import BayesianOptimization, acquisition
            from sklearn import config_context
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise MissingExtraError("weights", "bayesian-optimization") from error
        box = BlackBox(pairs)
        promising: Any = acquisition.ProbabilityOfImprovement(xi=self.xi)
        promising.suggest = partial(promising.suggest, n_smart=self.local_searches)
        optimizer = BayesianOptimization(
            f=lambda **point: box.share(point.__getitem__),
            pbounds=dict.fromkeys(box.names, (0.0, 1.0)),
            acquisition_function=promising,
            random_state=seed,
            verbose=0,
            allow_duplicate_points=True,
        )
        optimizer.probe(box.start(start), lazy=True)
        # with more than one BLAS thread the search crawls
        with threadpool_limits(limits=1), config_context(assume_finite=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes of its kernel fit about bounds, hundreds of them
            optimizer.maximize(init_points=self.random_points, n_iter=self.evaluations)
        if optimizer.max is None:
            raise LearningFailedError("the optimiser evaluated no point")
        return box.weights(optimizer.max["params"])


@dataclass(frozen=True)
class OptunaSearch:
    """Optuna study (TPE sampler) of the share of right pairs over [0, 1]^N; it begins at uniform weights."""

    trials: int = 200
    name: str = "optuna-tpe"
    quick: bool = False

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Search; the best trial is kept. Raises MissingExtraError where Optuna is not installed, and
        LearningFailedError where there is no decided pair, or no score differs."""
        try:
            import optuna
        except ImportError as error:
            raise MissingExtraError("weights", "optuna") from error
        box = BlackBox(pairs)

        def share(trial: optuna.Trial) -> float:
            return box.share(lambda name: trial.suggest_float(name, 0.0, 1.0))

        talk = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
                study = optuna.create_study(direction="maximize", sampler=sampler)
                study.enqueue_trial(box.start(start))
                study.optimize(share, n_trials=self.trials)
        finally:
            optuna.logging.set_verbosity(talk)
        return box.weights(study.best_params)


FLIP_MOST = 0.45
"""Highest rate of flipped labels."""
SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Scales of the start weights; the best one is taken. ``start`` gives only the direction of the weights."""
FEW_PAIRS = 2_000
FLIP_STARTS = ((3.0, 0.05), (30.0, 0.3))
"""Pairs of scale and rate of flipped labels at which the search begins where the rate is estimated."""


@dataclass(frozen=True, eq=False)
class BradleyTerryFit:
    """Weights on the logit scale and the rate of flipped labels."""

    weights: Floats
    """Shape (tests,), not negative."""
    flip_rate: float
    """ε in [0, 0.45]."""


def fit_bradley_terry(
    differences: Floats, counts: Floats, *, flip: float | None, ridge: float = 0.01, start: Floats | None = None
) -> BradleyTerryFit:
    """Fit non-negative weights to score differences (preferred minus other), shape (pairs, tests).

    ``flip`` None estimates the rate of flipped labels together with the weights. ``ridge`` is the pull towards 0 that
    keeps the weights of separable pairs finite, in units in which the differences have a root mean square of 1.
    ``start`` is a direction; uniform when None. Raises LearningFailedError where the scores never differ, or no test
    points the way people preferred."""
    from scipy.optimize import minimize
    from scipy.special import expit

    total, tests = float(counts.sum()), differences.shape[1]
    # einsum makes no temporary array of the size of the data
    squares = float(np.einsum("ij,ij,i->", differences, differences, counts))
    if squares <= 0.0:
        raise LearningFailedError("the two outputs have the same scores in every pair")
    unit = np.sqrt(total * tests / squares)

    def loss(point: Floats) -> tuple[float, Floats]:
        """Return minus the penalised log-likelihood per pair, and its gradient."""
        scaled, rate = point[:tests], point[tests] if flip is None else flip
        logistic = expit(differences @ (unit * scaled))
        chance = np.maximum(rate + (1.0 - 2.0 * rate) * logistic, 1e-300)
        value = ridge / 2 * float(scaled @ scaled) - float(counts @ np.log(chance))
        by_margin = counts * (1.0 - 2.0 * rate) * logistic * (1.0 - logistic) / chance
        gradient = ridge * scaled - unit * (differences.T @ by_margin)
        by_flip = [] if flip is not None else [-counts @ ((1.0 - 2.0 * logistic) / chance)]
        return value / total, np.append(gradient, by_flip) / total

    direction = uniform_weights(tests) if start is None else start / start.sum()
    bounds: list[tuple[float, float | None]] = [(0.0, None)] * tests
    exact = {"maxiter": 1000, "ftol": 1e-9, "gtol": 1e-6}
    if flip is not None:
        starts = [min((scale * direction for scale in SCALES), key=lambda point: loss(point)[0])]
    else:  # several optima: few flips and small weights, or more flips and large weights
        several = FLIP_STARTS if len(differences) <= FEW_PAIRS else FLIP_STARTS[:1]  # with many pairs one will do
        starts = [np.append(scale * direction, rate) for scale, rate in several]
        bounds.append((0.0, FLIP_MOST))
    ends = [minimize(loss, each, jac=True, bounds=bounds, method="L-BFGS-B", options=exact) for each in starts]
    found = min(ends, key=lambda each: float(each.fun)).x
    if not found[:tests].any():
        raise LearningFailedError("no test points the way people preferred, so every non-negative weight is 0")
    return BradleyTerryFit(unit * found[:tests], float(found[tests]) if flip is None else flip)


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
        """Fit by maximum likelihood; deterministic. Raises LearningFailedError where there is no decided pair, no score
        differs, or no test points the way people preferred.
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
