"""Weights for all pairs, or for each data set or section with partial pooling towards the weights of all.

A section with n decided pairs gets (n·own + τ·overall) / (n + τ): τ = 0 keeps sections apart, τ = ∞ gives
every section the overall weights, and in between small sections lean on the others. τ is picked by
cross-validation; with ``auto`` so is the sections' learner, apart from that of the whole, because sections that want
different weights make a whole from which little can be learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .auto import FEW_PAIRS, Auto, take_groups
from .learners import LearningFailedError, Uniform, WeightLearner
from .pairs import Floats, PairDifferences, close_to_best, compact, grouped_folds, margins_to_credits

Pooling = Literal["partial", "none"]
STRENGTHS = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, float("inf"))
"""Values of τ, in pairs, that cross-validation tries."""
MOST_PAIRS = 20_000
"""With more pairs τ is chosen on a seeded sample of whole groups of about this size."""


@dataclass(frozen=True, eq=False)
class Weighting:
    """Weights ready for use."""

    overall: Floats
    """Shape (tests,), sum 1: for all pairs, and for a section never seen."""
    by_section: Floats | None = None
    """Shape (sections, tests), rows with sum 1; None for global weights."""

    def margins(self, pairs: PairDifferences) -> Floats:
        """Margin of each pair under its section's weights; shape (pairs,), in [-1, 1]."""
        if self.by_section is None:
            return np.asarray(pairs.differences @ self.overall, dtype=np.float64)
        known = np.where(pairs.sections < len(self.by_section), pairs.sections, -1)
        table = np.vstack([self.by_section, self.overall])  # row -1: the overall weights
        margins: Floats = np.einsum("ij,ij->i", pairs.differences, table[known])
        return margins


@dataclass(frozen=True)
class Recipe:
    """How weights are learned once every choice is made; cheap enough to repeat on bootstrap resamples."""

    overall: WeightLearner
    own: tuple[WeightLearner, ...] = ()
    """Learner of each section's own weights; none for global weights."""
    strength: float = float("inf")
    """τ, in pairs."""

    @property
    def quick(self) -> bool:
        """Whether all learners are quick."""
        return all(each.quick for each in (self.overall, *self.own))

    @property
    def learns(self) -> bool:
        """Whether the weights depend on the pairs at all."""
        own = () if np.isinf(self.strength) else self.own
        return any(not isinstance(each, Uniform) for each in (self.overall, *own))

    def fit(self, pairs: PairDifferences, *, seed: int, start: Weighting | None = None) -> Weighting:
        """Learn from ``pairs``.

        Raises:
            LearningFailedError: The overall weights cannot be learned. A section whose own weights cannot
                be learned gets the overall ones.
        """
        overall = self.overall.learn(pairs, seed=seed, start=None if start is None else start.overall)
        if not self.own:
            return Weighting(overall)
        if np.isinf(self.strength):
            return Weighting(overall, np.tile(overall, (len(self.own), 1)))
        own, sizes = self.unpooled(pairs, overall, seed)
        return Weighting(overall, _pool(own, overall, sizes, self.strength))

    def unpooled(self, pairs: PairDifferences, overall: Floats, seed: int) -> tuple[Floats, Floats]:
        """Weights (sections, tests) and decided pairs (sections,); size 0 where a section decides nothing."""
        own = np.tile(overall, (len(self.own), 1))
        sizes = np.zeros(len(self.own))
        for section, learner in enumerate(self.own):
            part = _of_section(pairs, section)
            if not part.decided_pairs:
                continue
            try:
                own[section] = learner.learn(part, seed=seed)
            except LearningFailedError:
                continue
            sizes[section] = float(part.decided()[1].sum())
        return own, sizes


def prepare(
    pairs: PairDifferences, learner: WeightLearner, *, sections: int, pooling: Pooling, seed: int
) -> tuple[Recipe, str]:
    """Make the choices that a method leaves open (learner, shrinkage, pooling), using only ``pairs``.

    Args:
        pairs: Development pairs.
        learner: The method; ``Auto`` is resolved here.
        sections: Number of sections; 0 for global weights.
        pooling: ``none`` keeps sections apart, ``partial`` pools as cross-validation finds best.
        seed: Same pairs and seed, same choices.

    Returns:
        The recipe, and a sentence saying what was chosen and why (empty when nothing was open).
    """
    own: tuple[WeightLearner, ...]
    if not isinstance(learner, Auto):
        overall, own, reason = learner, (learner,), ""
    else:
        choice = learner.choose(pairs, seed=seed)
        overall, own, reason = choice.learner, learner.learners, choice.reason
    if not sections:
        return Recipe(overall), reason
    if isinstance(overall, Uniform) and pairs.decided_pairs < FEW_PAIRS:
        return Recipe(overall, (overall,) * sections), reason
    if pooling == "none":
        return _keep_apart(pairs, learner, overall, sections, reason, seed)
    sample = take_groups(pairs, MOST_PAIRS, seed)
    recipe = _choose_pooling(sample, [Recipe(overall, (each,) * sections) for each in own], seed)
    how = (
        "every section gets the overall weights"
        if np.isinf(recipe.strength)
        else f"a section's own weights{f' ({recipe.own[0].name})' if len(own) > 1 else ''} count as its pairs against "
        f"{recipe.strength:.0f} pairs of the whole"
    )
    said = "; ".join(filter(None, [reason, f"partial pooling: {how}"]))
    return recipe, said


def _keep_apart(
    pairs: PairDifferences, learner: WeightLearner, overall: WeightLearner, sections: int, reason: str, seed: int
) -> tuple[Recipe, str]:
    """Every section on its own; ``Auto`` chooses in each."""
    if not isinstance(learner, Auto):
        return Recipe(overall, (learner,) * sections, 0.0), reason
    own = tuple(learner.choose(_of_section(pairs, section), seed=seed).learner for section in range(sections))
    learned = sum(not isinstance(each, Uniform) for each in own)
    said = f"sections apart: {learned} of {sections} have learned weights, the others uniform ones"
    return Recipe(overall, own, 0.0), f"{reason}; {said}"


def _of_section(pairs: PairDifferences, section: int) -> PairDifferences:
    return pairs.take(np.flatnonzero((pairs.sections == section) & (pairs.counts > 0)))


def _pool(own: Floats, overall: Floats, sizes: Floats, strength: float) -> Floats:
    if np.isinf(strength):
        return np.tile(overall, (len(own), 1))
    trust = np.divide(sizes, sizes + strength, out=np.zeros_like(sizes), where=sizes > 0)[:, None]
    return trust * own + (1.0 - trust) * overall


def _choose_pooling(pairs: PairDifferences, recipes: Sequence[Recipe], seed: int) -> Recipe:
    """The recipe and τ with the best cross-validated share of right pairs in five folds.

    Of those about as good, the largest τ, and of its recipes the best. They differ in the sections' learner alone.
    """
    groups = compact(pairs.groups)
    if int(groups.max(initial=0)) < 1:
        return recipes[0]
    parts, tested = [], []
    for number, split in enumerate(grouped_folds(groups, 5, seed)):
        development = pairs.take(split.development)
        test = pairs.take(split.test[~pairs.is_tie[split.test]])
        if not len(test) or not development.decided_pairs:
            continue
        try:
            overall = recipes[0].overall.learn(development, seed=seed + number)
        except LearningFailedError:
            continue
        margins = []
        for recipe in recipes:
            own, sizes = recipe.unpooled(development, overall, seed + number)
            margins += [Weighting(overall, _pool(own, overall, sizes, tau)).margins(test) for tau in STRENGTHS]
        parts.append(margins_to_credits(np.array(margins)))
        tested.append(test.groups)
    if not parts:
        return recipes[0]
    credits, codes = np.concatenate(parts, axis=1), np.concatenate(tested)
    shares = credits.mean(axis=1)
    held = close_to_best(credits, codes)[1]
    chosen = max(held, key=lambda option: (STRENGTHS[option % len(STRENGTHS)], shares[option]))
    return replace(recipes[chosen // len(STRENGTHS)], strength=STRENGTHS[chosen % len(STRENGTHS)])
