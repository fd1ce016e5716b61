"""Searches for the largest share of rightly ordered pairs over [0, 1]^N (LMUnit eq. 8).

The share is piecewise constant: along one weight it changes only where some pair's margin crosses 0. Sorting those
crossings and adding up what each wins or loses gives the best value of that weight exactly, in one sort
(``LocalSearch``). Sweeping over the tests from a logistic fit until nothing improves is a local optimum that no change
of a single weight can better.

The others take the share for a black box: Bayesian optimisation as in LMUnit (§3.5, A.3.5), a Gaussian process and the
probability of improvement, and Optuna's tree-structured Parzen estimators (TPE) or Gaussian process (GP).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...prompts.errors import InputError, MissingExtraError
from .bradley_terry import fit_bradley_terry
from .learners import LearningFailedError, normalised, require_decided, uniform_weights
from .pairs import SCORE_TIE, Floats, PairDifferences, share_right

if TYPE_CHECKING:
    import optuna


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

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
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
    """The 0-1 objective as an Optuna study over [0, 1]^N that begins at uniform weights."""

    sampler: Literal["tpe", "gp"] = "tpe"
    """``gp`` needs PyTorch besides Optuna, and is slow."""
    trials: int = 200
    quick: bool = False

    def __post_init__(self) -> None:
        """Check the sampler's name."""
        if self.sampler not in ("tpe", "gp"):
            raise InputError(f"There is no Optuna sampler '{self.sampler}' here; choose tpe or gp.")

    @property
    def name(self) -> str:
        """``optuna-tpe`` or ``optuna-gp``."""
        return f"optuna-{self.sampler}"

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Search; the best trial is kept.

        Raises:
            MissingExtraError: Optuna is not installed, or PyTorch for the Gaussian process.
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
                study = optuna.create_study(direction="maximize", sampler=self._sampler(seed))
                study.enqueue_trial(box.start(start))
                study.optimize(share, n_trials=self.trials)
        finally:
            optuna.logging.set_verbosity(talk)
        return box.weights(study.best_params)

    def _sampler(self, seed: int) -> Any:
        import optuna

        if self.sampler == "tpe":
            return optuna.samplers.TPESampler(seed=seed, multivariate=True)
        if find_spec("torch") is None:
            raise MissingExtraError("gp", "torch (optuna's Gaussian-process sampler is written in it)")
        return optuna.samplers.GPSampler(seed=seed)
