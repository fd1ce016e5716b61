"""Searches for the largest share of rightly ordered pairs over [0, 1]^N (LMUnit eq. 8).

The share is piecewise constant, and the searches take it for a black box: Bayesian optimisation as in LMUnit (§3.5,
A.3.5), which is a Gaussian process with the probability of improvement, and Optuna's tree-structured Parzen estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.errors import MissingExtraError
from .learners import LearningFailedError, normalised, require_decided
from .pairs import Floats, PairDifferences, share_right

if TYPE_CHECKING:
    import optuna


class BlackBox:
    """The share of right pairs as a function of a point with one coordinate a test, and the search's way in and out.

    Raises:
        LearningFailedError: No decided pair, or no score differs.
    """

    def __init__(self, pairs: PairDifferences) -> None:
        require_decided(pairs)
        self._differences, self._counts = pairs.decided()
        self._tests = pairs.tests

    @cached_property
    def names(self) -> list[str]:
        """The coordinates, in the order of the tests."""
        return [f"w{test:04d}" for test in range(self._tests)]

    def start(self, weights: Floats | None) -> dict[str, float]:
        """Where the search begins: ``weights`` scaled to a largest of 1, or uniform ones."""
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
