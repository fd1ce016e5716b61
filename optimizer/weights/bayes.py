"""Bayesian optimisation as in LMUnit (§3.5, A.3.5): a Gaussian process and the probability of improvement."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...prompts.errors import MissingExtraError
from .black_box import BlackBox
from .comparisons import Comparisons, Floats
from .protocol import LearningFailedError


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

    def learn(self, pairs: Comparisons, *, seed: int, start: Floats | None = None) -> Floats:
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
