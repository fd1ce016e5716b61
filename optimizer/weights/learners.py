"""Learners of weights: their interface, and all but the Bradley-Terry fits.

From pairs the objective is the share of rightly ordered pairs over [0, 1]^N (LMUnit eq. 8), from ratings the rank
correlation with them. Both are piecewise constant and ignore the scale of weights. The searches take the first for a
black box: Bayesian optimisation as in LMUnit (§3.5, A.3.5), which is a Gaussian process with the probability of
improvement, and Optuna's tree-structured Parzen estimators. The second is searched one weight at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ...prompts.errors import AskanceError, MissingExtraError
from .evidence import Evidence, Floats, PairDifferences, RatedScores, scipy_part, share_right

if TYPE_CHECKING:
    import optuna


class LearningFailedError(AskanceError):
    """A learner found no weights; the message says why. The comparison of learners shows it beside the others."""


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
        """Learn weights from ``pairs``.

        Args:
            pairs: Development pairs (:class:`PairDifferences`) or, for learners of ratings, rated outputs
                (:class:`RatedScores`); whatever is held out is never passed here.
            seed: Same pairs and seed, same weights.
            start: Weights to begin the search from, shape (tests,); uniform when None.

        Returns:
            Weights, shape (tests,), in [0, 1] with sum 1.

        Raises:
            LearningFailedError: The pairs determine no weights.
        """


def uniform_weights(tests: int) -> Floats:
    """Equal weights, shape (tests,), sum 1."""
    return np.full(tests, 1.0 / tests)


def normalised(weights: Floats) -> Floats:
    """Scale to sum 1: the objective is scale-free, so weights are reported as shares.

    Raises:
        LearningFailedError: No weight is positive.
    """
    total = float(weights.sum())
    if not np.isfinite(total) or total <= 0.0:
        raise LearningFailedError("every weight is 0, so there is no score")
    shares: Floats = np.clip(weights / total, 0.0, 1.0)
    return shares


def require_decided(pairs: PairDifferences) -> None:
    """Refuse pairs that decide nothing.

    Raises:
        LearningFailedError: People preferred an output in none of the pairs, or no score ever differs.
    """
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
        """Equal weights, whatever the pairs."""
        return uniform_weights(pairs.tests)


@dataclass(frozen=True)
class BestSingle:
    """All weight on the test that orders most pairs rightly, or follows the ratings best; the first of equals."""

    name: str = "best-single"
    quick: bool = True

    def learn(self, pairs: Evidence, *, seed: int, start: Floats | None = None) -> Floats:
        """One weight of 1, the others 0.

        Raises:
            LearningFailedError: Of pairs: there is no decided one, or no score ever differs.
        """
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
        """Fit to the ratings; pairs beside them play no part.

        Raises:
            LearningFailedError: No test rises with the ratings, or there are none.
        """
        outputs = len(pairs.ratings)
        if not outputs:
            raise LearningFailedError("there is no rated output to learn from")
        ranks = scipy_part("stats").rankdata(pairs.ratings) / outputs
        fit = scipy_part("optimize").nnls(pairs.scores - pairs.scores.mean(axis=0), ranks - ranks.mean())
        return normalised(fit[0])


@dataclass(frozen=True)
class RankSearch:
    """Coordinate search for the largest objective of ratings, and of the pairs beside them."""

    sweeps: int = 6
    grid: int = 17
    """Shares of one weight that are tried at a time, closer together in each sweep."""
    name: str = "rank-search"
    quick: bool = True

    def learn(self, pairs: RatedScores, *, seed: int, start: Floats | None = None) -> Floats:
        """Search from a least-squares fit, or from uniform weights where there is none; deterministic."""
        try:
            first = LeastSquares().learn(pairs, seed=seed)
        except LearningFailedError:
            first = uniform_weights(pairs.tests)
        return self.maximise(pairs, first)

    def maximise(self, rated: RatedScores, start: Floats) -> Floats:
        """The best weights (tests,) that changes of one weight at a time reach from ``start`` (tests,)."""
        weights: Floats = start / start.sum()
        best = float(rated.objective(weights[None, :])[0])
        width = 1.0
        for _ in range(self.sweeps):
            for test in range(len(weights)):
                others = 1.0 - weights[test]
                if others <= 1e-9:  # the only weight there is: changing its scale changes nothing
                    continue
                shares = np.linspace(max(0.0, weights[test] - width), min(0.98, weights[test] + width), self.grid)
                candidates = np.outer((1.0 - shares) / others, weights)
                candidates[:, test] = shares
                values = rated.objective(candidates)
                top = int(np.argmax(values))
                if values[top] > best + 1e-12:
                    best, weights = float(values[top]), candidates[top]
            width /= 2.0
        return normalised(weights)


class BlackBox:
    """The share of right pairs as a function of a point with one coordinate a test, and the search's way in and out.

    Raises:
        LearningFailedError: No decided pair, or no score differs.
    """

    def __init__(self, pairs: PairDifferences) -> None:
        require_decided(pairs)
        self._differences, self._counts = pairs.decided()
        self._tests = pairs.tests
        self.names = [f"w{test:04d}" for test in range(pairs.tests)]

    def start(self, weights: Floats | None) -> dict[str, float]:
        """The point where the search begins: ``weights`` scaled to a largest of 1, or uniform ones."""
        first = np.ones(self._tests) if weights is None else weights / weights.max()
        return dict(zip(self.names, first.tolist(), strict=True))

    def share(self, coordinate: Callable[[str], float]) -> float:
        """The share at a point; where every weight is 0 all pairs tie, each half right."""
        weights = np.array([coordinate(name) for name in self.names])
        return share_right(self._differences, self._counts, weights) if weights.sum() > 0 else 0.5

    def weights(self, point: Mapping[str, float]) -> Floats:
        """The weights of a point, shape (tests,), sum 1.

        Raises:
            LearningFailedError: Every weight is 0.
        """
        return normalised(np.array([float(point[name]) for name in self.names]))


@dataclass(frozen=True)
class Bayes:
    """The paper's learner: w in [0, 1]^N, uniform start, 200 evaluations; kept for comparison, being slow."""

    evaluations: int = 200
    """Evaluations after the start and the random points."""
    random_points: int = 5
    """Random points before the Gaussian process takes over."""
    xi: float = 0.01
    """How much better a point must promise to be; the paper does not give it, and it decides a lot: 1e-4 is
    far worse.
    """
    local_searches: int = 2
    """Local searches for the most promising point, each time, after 10,000 random ones. With the package's 10 as many
    development pairs came into the right order, in three to four times the processor time.
    """
    name: str = "bayes"
    quick: bool = False

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Search; the best point seen is kept. Uses one BLAS thread, without which it crawls.

        Raises:
            MissingExtraError: bayesian-optimization is not installed.
            LearningFailedError: No decided pair, or no score differs.
        """
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
        with threadpool_limits(limits=1), config_context(assume_finite=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes of its kernel fit about bounds, hundreds of them
            optimizer.maximize(init_points=self.random_points, n_iter=self.evaluations)
        if optimizer.max is None:
            raise LearningFailedError("the optimiser evaluated no point")
        return box.weights(optimizer.max["params"])


@dataclass(frozen=True)
class OptunaSearch:
    """The 0-1 objective as an Optuna study (TPE sampler) over [0, 1]^N that begins at uniform weights."""

    trials: int = 200
    name: str = "optuna-tpe"
    quick: bool = False

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Search; the best trial is kept.

        Raises:
            MissingExtraError: Optuna is not installed.
            LearningFailedError: No decided pair, or no score differs.
        """
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
