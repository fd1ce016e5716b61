"""Ways to learn weights whose score ranks rated outputs as people do, and the choice between them by cross-validation.

Spearman's correlation is the objective of the search as it stands: piecewise constant and scale-free like the share of
right pairs, so many candidates are ranked at once and one weight is changed at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError, did_you_mean
from .learners import SHRINKAGE, LearningFailedError, normalised, scipy_part, shrunk_name, uniform_weights
from .pairs import ABOUT_AS_GOOD, Codes, Floats, PairDifferences, compact, grouped_folds, margins_to_credits

RatingMethod = Literal["auto", "rank-search", "least-squares", "best-single", "uniform"]
METHODS: tuple[RatingMethod, ...] = ("uniform", "best-single", "least-squares", "rank-search", "auto")
FEW_OUTPUTS = 20
"""With fewer rated outputs than this ``auto`` learns nothing."""


def least_squares(scores: Floats, ratings: Floats) -> Floats:
    """Non-negative least squares of the ratings' ranks on the scores, both centred; shape (tests,), sum 1.

    Raises:
        LearningFailedError: No test rises with the ratings, or there are none.
    """
    if not len(ratings):
        raise LearningFailedError("there is no rated output to learn from")
    ranks = scipy_part("stats").rankdata(ratings) / len(ratings)
    return normalised(scipy_part("optimize").nnls(scores - scores.mean(axis=0), ranks - ranks.mean())[0])


class Objective:
    """The rank correlation with the ratings, alone or mixed with the share of right pairs."""

    def __init__(self, scores: Floats, ratings: Floats, pairs: PairDifferences | None, share: float) -> None:
        self.scores, self.share = scores, share
        self.ranks = scipy_part("stats").rankdata(ratings) - (len(ratings) + 1) / 2
        self.pairs = pairs.decided() if pairs is not None and pairs.decided_pairs else None

    def values(self, candidates: Floats) -> Floats:
        """Objective of each row of ``candidates`` (candidates, tests); -inf where the score is constant."""
        scores = np.round(self.scores @ candidates.T, 12)
        ranks = scipy_part("stats").rankdata(scores, axis=0) - (len(self.ranks) + 1) / 2
        spread = np.sqrt((ranks**2).sum(axis=0) * (self.ranks**2).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            spearman: Floats = np.where(spread > 0, self.ranks @ ranks / spread, -np.inf)
        if self.pairs is None or self.share == 0:
            return spearman
        differences, counts = self.pairs
        right = counts @ margins_to_credits(differences @ candidates.T) / counts.sum()
        ranked = np.isfinite(spearman)
        mixed: Floats = (1.0 - self.share) * np.where(ranked, spearman, 0.0) + self.share * (2.0 * right - 1.0)
        return np.where(ranked, mixed, -np.inf)


def maximise(objective: Objective, start: Floats, *, sweeps: int = 6, grid: int = 17) -> Floats:
    """Coordinate search from ``start`` (tests,): a grid on one weight's share at a time, finer in each sweep."""
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


def rating_method(name: str) -> RatingMethod:
    """A way to learn from ratings by its name.

    Raises:
        InputError: There is none of that name.
    """
    for method in METHODS:
        if name == method:
            return method
    raise InputError(
        f"There is no method '{name}' for ratings.{did_you_mean(name, METHODS)} Choose from: {', '.join(METHODS)}."
    )


@dataclass(frozen=True, eq=False)
class RatingData:
    """Rated outputs and, where there are pairs, their differences; rows are taken together by group."""

    scores: Floats
    ratings: Floats
    groups: Codes
    pairs: PairDifferences | None

    @property
    def every_group(self) -> Codes:
        """Group of each output, then of each pair."""
        return self.groups if self.pairs is None else np.concatenate([self.groups, self.pairs.groups])

    def part(self, inside: NDArray[np.bool_]) -> RatingData:
        """The outputs and pairs of the groups for which ``inside`` (groups,) is true."""
        rows = inside[self.groups]
        pairs = self.pairs.take(inside[self.pairs.groups]) if self.pairs is not None else None
        return RatingData(self.scores[rows], self.ratings[rows], self.groups[rows], pairs)


@dataclass(frozen=True)
class Plan:
    """A method without open choices."""

    method: RatingMethod
    uniform_share: float = 0.0

    @property
    def name(self) -> str:
        """The method and how much of it is uniform."""
        return shrunk_name(self.method, self.uniform_share)


def plan_for(data: RatingData, method: RatingMethod, share: float, seed: int) -> Plan:
    """Resolve ``auto`` by cross-validation inside ``data``; of what is about as good as the best the most uniform."""
    if method != "auto":
        return Plan(method)
    groups = len(np.unique(data.groups))
    if len(data.ratings) < FEW_OUTPUTS or groups < 2:
        return Plan("uniform")
    plans = [
        Plan("uniform"),
        *(Plan(name, mix) for name in ("least-squares", "rank-search") for mix in SHRINKAGE),
    ]
    folds = []
    for inside in development_groups(data, min(5, groups), seed):
        development, test = data.part(inside), data.part(~inside)
        if len(test.ratings) < 3 or np.ptp(test.ratings) == 0 or np.ptp(development.ratings) == 0:
            continue
        try:
            candidates = np.array([learn_plan(development, plan, share) for plan in plans])
        except LearningFailedError:
            return Plan("uniform")
        values = Objective(test.scores, test.ratings, test.pairs, share).values(candidates)
        if np.isfinite(values).all():
            folds.append(values)
    if len(folds) < 2:
        return Plan("uniform")
    table = np.array(folds)
    means = table.mean(axis=0)
    best = int(np.argmax(means))
    lost = table[:, [best]] - table
    errors = lost.std(axis=0, ddof=1) / np.sqrt(len(table))
    close = [option for option in range(len(plans)) if means[best] - means[option] <= ABOUT_AS_GOOD * errors[option]]
    closeness = {option: 1.0 if option == 0 else plans[option].uniform_share for option in close}
    return plans[max(close, key=lambda option: (closeness[option], means[option]))]


def development_groups(data: RatingData, folds: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Which groups are inside the development part of each fold; shape (groups,)."""
    every = data.every_group
    for split in grouped_folds(compact(every), folds, seed):
        inside = np.ones(int(every.max()) + 1, dtype=np.bool_)
        inside[every[split.test]] = False
        yield inside


def learn_plan(data: RatingData, plan: Plan, share: float) -> Floats:
    """Weights (tests,), sum 1, by ``plan``, ``share`` of the objective being pairs.

    Raises:
        LearningFailedError: Least squares finds no test that rises with the ratings, or no ratings.
    """
    tests = data.scores.shape[1]
    even = uniform_weights(tests)
    if plan.method == "uniform":
        return even
    objective = Objective(data.scores, data.ratings, data.pairs, share)
    if plan.method == "best-single":
        weights: Floats = np.eye(tests)[int(np.argmax(objective.values(np.eye(tests))))]
        return weights
    try:
        learned = least_squares(data.scores, data.ratings)
    except LearningFailedError:
        if plan.method == "least-squares":
            raise
        learned = even  # where the search begins; it goes on from there
    if plan.method == "rank-search":
        learned = maximise(objective, learned)
    return (1.0 - plan.uniform_share) * learned + plan.uniform_share * even


def resampled_weights(data: RatingData, plan: Plan, share: float, resamples: int, seed: int) -> Floats:
    """Weights learned again on resamples of whole groups; shape (resamples that gave weights, tests)."""
    count = int(data.every_group.max()) + 1
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(resamples):
        times = np.bincount(rng.integers(0, count, count), minlength=count)
        rows = np.repeat(np.arange(len(data.groups)), times[data.groups])
        pairs = data.pairs
        if pairs is not None:
            pairs = pairs.take(np.repeat(np.arange(len(pairs)), times[pairs.groups]))
        part = RatingData(data.scores[rows], data.ratings[rows], data.groups[rows], pairs)
        if len(rows) < 3 or np.ptp(part.ratings) == 0:
            continue
        try:
            samples.append(learn_plan(part, plan, share))
        except LearningFailedError:
            continue
    return np.array(samples).reshape(-1, data.scores.shape[1])
