"""Weights for all pairs, or for each data set or section with partial pooling towards the weights of all.

A section with n decided pairs gets (n·own + τ·overall) / (n + τ): τ = 0 keeps sections apart, τ = ∞ gives
every section the overall weights, and in between small sections lean on the others. τ is picked by
cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .auto import Auto
from .comparisons import Comparisons, Floats, margins_to_credits
from .decay import Decay
from .heldout import close_to_best, grouped_folds
from .protocol import LearningFailedError, WeightLearner
from .robust import Robust
from .uniform import Uniform

Pooling = Literal["partial", "none"]
STRENGTHS = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, float("inf"))
"""Values of τ, in pairs, that cross-validation tries."""


@dataclass(frozen=True, eq=False)
class Weighting:
    """Weights ready for use."""

    overall: Floats
    """Shape (tests,), sum 1: for all pairs, and for a section never seen."""
    by_section: Floats | None = None
    """Shape (sections, tests), rows with sum 1; None for global weights."""

    def margins(self, pairs: Comparisons) -> Floats:
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
    section: WeightLearner | None = None
    """Learner of the sections' own weights; None for global weights."""
    sections: int = 0
    strength: float = float("inf")
    """τ, in pairs."""

    @property
    def quick(self) -> bool:
        """Whether both learners are quick."""
        return self.overall.quick and (self.section is None or self.section.quick)

    @property
    def learns(self) -> bool:
        """Whether the weights depend on the pairs at all."""
        apart = self.section is not None and not np.isinf(self.strength)
        return apart or not isinstance(self.overall, (Uniform, Decay))

    def fit(self, pairs: Comparisons, *, seed: int, start: Weighting | None = None) -> Weighting:
        """Learn from ``pairs``.

        Raises:
            LearningFailedError: The overall weights cannot be learned. A section whose own weights cannot
                be learned gets the overall ones.
        """
        overall = self.overall.learn(pairs, seed=seed, start=None if start is None else start.overall)
        if self.section is None:
            return Weighting(overall)
        if np.isinf(self.strength):
            return Weighting(overall, np.tile(overall, (self.sections, 1)))
        own, sizes = self._own(pairs, overall, seed)
        return Weighting(overall, _pool(own, overall, sizes, self.strength))

    def _own(self, pairs: Comparisons, overall: Floats, seed: int) -> tuple[Floats, Floats]:
        """Unpooled weights (sections, tests) and decided pairs (sections,); size 0 where a section decides
        nothing.
        """
        assert self.section is not None
        own = np.tile(overall, (self.sections, 1))
        sizes = np.zeros(self.sections)
        for section in range(self.sections):
            rows = np.flatnonzero((pairs.sections == section) & (pairs.counts > 0))
            part = pairs.take(rows)
            if not part.decided_pairs:
                continue
            try:
                own[section] = self.section.learn(part, seed=seed)
            except LearningFailedError:
                continue
            sizes[section] = float(part.decided()[1].sum())
        return own, sizes


def prepare(
    pairs: Comparisons, learner: WeightLearner, *, sections: int, pooling: Pooling, seed: int
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
    reason = ""
    overall, own = learner, learner
    if isinstance(learner, Auto):
        choice = learner.choose(pairs, seed=seed)
        overall, reason = choice.learner, choice.reason
        own = Robust() if isinstance(overall, Uniform) else overall
    if not sections:
        return Recipe(overall), reason
    apart = Recipe(overall, own, sections, 0.0)
    if pooling == "none":
        return apart, reason
    strength = _choose_strength(pairs, apart, seed)
    how = (
        "every section gets the overall weights"
        if np.isinf(strength)
        else f"a section's own weights count as its pairs against {strength:.0f} pairs of the whole"
    )
    return Recipe(overall, own, sections, strength), "; ".join(filter(None, [reason, f"partial pooling: {how}"]))


def _pool(own: Floats, overall: Floats, sizes: Floats, strength: float) -> Floats:
    if np.isinf(strength):
        return np.tile(overall, (len(own), 1))
    trust = np.divide(sizes, sizes + strength, out=np.zeros_like(sizes), where=sizes > 0)[:, None]
    return trust * own + (1.0 - trust) * overall


def _choose_strength(pairs: Comparisons, apart: Recipe, seed: int, folds: int = 5) -> float:
    """τ with the best cross-validated share of right pairs; the largest τ close to it."""
    groups = np.unique(pairs.groups, return_inverse=True)[1].astype(np.int64)
    if int(groups.max(initial=0)) < 1:
        return float("inf")
    parts, tested = [], []
    for number, split in enumerate(grouped_folds(groups, folds, seed)):
        development = pairs.take(split.development)
        test = pairs.take(split.test[~pairs.is_tie[split.test]])
        if not len(test) or not development.decided_pairs:
            continue
        try:
            overall = apart.overall.learn(development, seed=seed + number)
        except LearningFailedError:
            continue
        own, sizes = apart._own(development, overall, seed + number)
        margins = [Weighting(overall, _pool(own, overall, sizes, tau)).margins(test) for tau in STRENGTHS]
        parts.append(margins_to_credits(np.array(margins)))
        tested.append(test.groups)
    if not parts:
        return float("inf")
    credits, codes = np.concatenate(parts, axis=1), np.concatenate(tested)
    return STRENGTHS[max(close_to_best(credits, codes)[1])]
