"""Choose a learner, and how far to shrink its weights to uniform, by cross-validation inside the development pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .bradley_terry import Logistic, Robust
from .learners import (
    SHRINKAGE,
    BestSingle,
    LearningFailedError,
    Uniform,
    WeightLearner,
    normalised,
    shrunk_name,
    uniform_weights,
)
from .pairs import Codes, Floats, PairDifferences, close_to_best, compact, grouped_folds, margins_to_credits

FEW_PAIRS = 20
"""With fewer decided development pairs than this nothing is learned."""


@dataclass(frozen=True)
class Shrunk:
    """Another learner's weights, mixed with uniform ones."""

    learner: WeightLearner
    uniform_share: float
    """0: the learner's weights; towards 1: uniform weights."""

    @property
    def name(self) -> str:
        """The learner's name and how much of it is uniform."""
        return shrunk_name(self.learner.name, self.uniform_share)

    @property
    def quick(self) -> bool:
        """As the learner."""
        return self.learner.quick

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Learn, then mix.

        Raises:
            LearningFailedError: As the learner.
        """
        even = uniform_weights(pairs.tests)
        if start is not None and self.uniform_share < 1.0:
            start = normalised(np.maximum(start - self.uniform_share * even, 0.0))
        learned = self.learner.learn(pairs, seed=seed, start=start)
        return (1.0 - self.uniform_share) * learned + self.uniform_share * even


@dataclass(frozen=True)
class Option:
    """One learner at one shrinkage, and its cross-validated share of right pairs on the development pairs."""

    learner: str
    uniform_share: float
    share_right: float


@dataclass(frozen=True)
class Choice:
    """What cross-validation settled on, and why."""

    learner: WeightLearner
    reason: str
    candidates: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Auto:
    """Cross-validation over learners and shrinkage, leaning to uniform weights.

    Among all whose share of right pairs is within half a standard error of the best (paired, groups kept whole), the
    one closest to uniform wins: with few pairs, or where learning buys nothing, that is uniform weights themselves. In
    simulations half a standard error gave up less than a whole one where learning pays and little more than it where
    uniform weights are right. The held-out pairs on which ``Auto`` is judged play no part, so its held-out accuracy
    pays for the choice as well (nested cross-validation).
    """

    learners: tuple[WeightLearner, ...] = field(default_factory=lambda: (Robust(), Logistic(), BestSingle()))
    folds: int = 5
    most_pairs: int = 20_000
    """With more development pairs the choice is made on a seeded sample of whole groups of about this size."""
    name: str = "auto"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        """Choose, then learn on all of ``pairs``.

        Raises:
            LearningFailedError: The chosen learner fails on all pairs though it did not in cross-validation.
        """
        return self.choose(pairs, seed=seed).learner.learn(pairs, seed=seed, start=start)

    def choose(self, pairs: PairDifferences, *, seed: int) -> Choice:
        """Pick a learner and its shrinkage for ``pairs``."""
        groups = len(np.unique(pairs.groups[~pairs.is_tie]))
        if pairs.decided_pairs < FEW_PAIRS or groups < 2:
            return Choice(
                Uniform(),
                f"uniform weights: {pairs.decided_pairs} decided pairs in {groups} groups are too few to learn from "
                f"(at least {FEW_PAIRS} pairs and 2 groups are needed)",
            )
        sample = take_groups(pairs, self.most_pairs, seed)
        by_name = {learner.name: learner for learner in self.learners}
        options, credits, tested = self._cross_validate(sample, seed)
        shares = credits.mean(axis=1)
        best, held = close_to_best(credits, tested)
        chosen = max(held, key=lambda option: (options[option][1], shares[option]))
        name, share = options[chosen]
        candidates = tuple(Option(each[0], each[1], float(right)) for each, right in zip(options, shares, strict=True))
        learner = Uniform() if name == "uniform" else Shrunk(by_name[name], share)
        return Choice(learner, _reason(candidates[chosen], candidates[best], learner), candidates)

    def _cross_validate(self, pairs: PairDifferences, seed: int) -> tuple[list[tuple[str, float]], Floats, Codes]:
        """Credits of every learner and shrinkage on every decided pair; shape (options, pairs), and the
        pairs' groups.
        """
        even = uniform_weights(pairs.tests)
        options = [("uniform", 1.0), *((each.name, share) for each in self.learners for share in SHRINKAGE)]
        parts, tested, failed = [], [], set()
        repeats = 3 if pairs.decided_pairs < 300 else 1
        for repeat in range(repeats):
            for number, split in enumerate(grouped_folds(compact(pairs.groups), self.folds, seed + repeat)):
                development, test = pairs.take(split.development), pairs.take(split.test)
                differences, _ = test.decided()
                if not len(differences):
                    continue
                flat = differences @ even
                rows = [flat]
                for learner in self.learners:
                    try:
                        learned = differences @ learner.learn(development, seed=seed + number)
                    except LearningFailedError:
                        failed.add(learner.name)
                        learned = flat
                    rows += [(1.0 - share) * learned + share * flat for share in SHRINKAGE]
                parts.append(margins_to_credits(np.array(rows)))
                tested.append(test.groups[~test.is_tie])
        kept = [index for index, (name, _) in enumerate(options) if name not in failed]
        return [options[index] for index in kept], np.concatenate(parts, axis=1)[kept], np.concatenate(tested)


def _reason(chosen: Option, best: Option, learner: WeightLearner) -> str:
    if chosen == best:
        return (
            f"{learner.name}: best in cross-validation ({chosen.share_right:.1%} of development pairs in the "
            "right order)"
        )
    return (
        f"{learner.name}: {chosen.share_right:.1%} of development pairs in the right order in cross-validation, "
        f"about as good as the best ({best.learner} with {best.uniform_share:.0%} uniform, {best.share_right:.1%}) and "
        "closer to uniform weights"
    )


def take_groups(pairs: PairDifferences, most: int, seed: int) -> PairDifferences:
    """A seeded sample of whole groups with about ``most`` pairs; all pairs where there are no more."""
    if len(pairs) <= most:
        return pairs
    groups = compact(pairs.groups)
    order = np.random.default_rng(seed).permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)[order]
    chosen = order[: max(2, int(np.searchsorted(np.cumsum(sizes), most)))]
    return pairs.take(np.isin(groups, chosen))
