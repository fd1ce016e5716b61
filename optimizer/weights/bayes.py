"""Bayesian optimisation as in LMUnit (§3.5, A.3.5): a Gaussian process and the probability of improvement."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ...prompts.errors import MissingExtraError
from .comparisons import Comparisons, Floats, share_right
from .protocol import LearningFailedError, normalised, require_decided


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
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise MissingExtraError("weights", "bayesian-optimization") from error
        require_decided(pairs)
        differences, counts = pairs.decided()
        names = [f"w{test:04d}" for test in range(pairs.tests)]

        def share(**point: float) -> float:
            weights = np.array([point[name] for name in names])
            return share_right(differences, counts, weights) if weights.sum() > 0 else 0.5  # all 0: all tie

        optimizer = BayesianOptimization(
            f=share,
            pbounds=dict.fromkeys(names, (0.0, 1.0)),
            acquisition_function=acquisition.ProbabilityOfImprovement(xi=self.xi),
            random_state=seed,
            verbose=0,
            allow_duplicate_points=True,
        )
        first = np.ones(pairs.tests) if start is None else start / start.max()
        optimizer.probe(dict(zip(names, first.tolist(), strict=True)), lazy=True)
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes of its kernel fit about bounds, hundreds of them
            optimizer.maximize(init_points=self.random_points, n_iter=self.evaluations)
        if optimizer.max is None:
            raise LearningFailedError("the optimiser evaluated no point")
        best = optimizer.max["params"]
        return normalised(np.array([float(best[name]) for name in names]))
