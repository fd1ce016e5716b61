"""Choose a learner by name, or by cross-validation together with its shrinkage and the pooling of sections.

A section with n decided pairs gets the weights (n·own + τ·overall) / (n + τ). τ = 0 keeps sections apart, and τ = ∞
gives every section the overall weights; in between, small sections lean on the overall weights. Cross-validation picks
τ. With ``auto`` it also picks the sections' learner, apart from the learner of the whole: where sections want different
weights, little can be learned from the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError, did_you_mean
from .evidence import (
    Codes,
    Evidence,
    Floats,
    PairDifferences,
    RatedScores,
    close_to_best,
    compact,
    grouped_folds,
    margins_to_credits,
)
from .learners import (
    Bayes,
    BestSingle,
    LearningFailedError,
    LeastSquares,
    Logistic,
    OptunaSearch,
    RankSearch,
    Robust,
    Uniform,
    WeightLearner,
    normalised,
    uniform_weights,
)

FEW = 20
"""Fewest decided development pairs, or rated outputs, from which anything is learned."""
MOST_ROWS = 20_000
"""Most development pairs for making choices: of more, a seeded sample of whole groups of about this size is used."""
SHRINKAGE = (0.0, 0.25, 0.5, 0.75)
"""Shares of uniform weights that cross-validation tries to mix into learned ones; 1 is the uniform learner."""
STRENGTHS = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, float("inf"))
"""Values of τ, in pairs, that cross-validation tries."""
ALIASES = {"optuna": "optuna-tpe"}
"""Other names under which a learner can be asked for."""
Pooling = Literal["partial", "none"]


@dataclass(frozen=True)
class Shrunk:
    """Another learner's weights, mixed with uniform ones."""

    learner: WeightLearner
    uniform_share: float
    """0: the learner's weights; towards 1: uniform weights."""

    @property
    def name(self) -> str:
        """The learner's name, with the share of uniform weights if there is one."""
        return f"{self.learner.name} ({self.uniform_share:.0%} uniform)" if self.uniform_share else self.learner.name

    @property
    def quick(self) -> bool:
        """Whether the learner is quick."""
        return self.learner.quick

    def learn(self, pairs: Evidence, *, seed: int, start: Floats | None = None) -> Floats:
        """Learn, then mix. Raises LearningFailedError as the learner."""
        even_weights = uniform_weights(pairs.tests)
        if start is not None and self.uniform_share < 1.0:
            start = normalised(np.maximum(start - self.uniform_share * even_weights, 0.0))
        learned = self.learner.learn(pairs, seed=seed, start=start)
        return (1.0 - self.uniform_share) * learned + self.uniform_share * even_weights


@dataclass(frozen=True)
class Auto:
    """Cross-validation over learners and shrinkage, leaning towards uniform weights.

    Among all options whose held-out value is within half a standard error of the best (paired, groups kept whole), the
    one closest to uniform wins. With few pairs, or where learning buys nothing, that is uniform weights themselves. In
    simulations half a standard error lost less than a whole one where learning pays, and little more where uniform
    weights are right. The choice never uses the held-out pairs on which ``Auto`` is judged, so its held-out accuracy
    includes the cost of choosing (nested cross-validation).
    """

    learners: tuple[WeightLearner, ...] = field(default_factory=lambda: (Robust(), Logistic(), BestSingle()))
    folds: int = 5
    name: str = "auto"
    quick: bool = True

    def learn(self, pairs: Evidence, *, seed: int, start: Floats | None = None) -> Floats:
        """Choose, then learn on all of ``pairs``. Raises LearningFailedError where the chosen learner fails on all
        pairs, although it worked in cross-validation."""
        return self.choose(pairs, seed=seed)[0].learn(pairs, seed=seed, start=start)

    def choose(self, pairs: Evidence, *, seed: int) -> tuple[WeightLearner, str]:
        """Pick a learner and its shrinkage for ``pairs``, and say why."""
        count, groups = len(pairs.teaching_groups), len(np.unique(pairs.teaching_groups))
        if count < FEW or groups < 2:
            rows = "rated outputs" if isinstance(pairs, RatedScores) else "decided pairs"
            return (
                Uniform(),
                f"uniform weights: {count} {rows} in {groups} groups are too few to learn from "
                f"(at least {FEW} {rows.split()[1]} and 2 groups are needed)",
            )
        by_name = {learner.name: learner for learner in self.learners}
        options, values, tested = self._cross_validate(pairs.take(sampled_rows(pairs.groups, seed)), groups, seed)
        if not values.size:
            return (Uniform(), "uniform weights: no part of the data can test others")
        means = values.mean(axis=1)
        best, held = close_to_best(values, tested)
        chosen = max(held, key=lambda option: (options[option][1], means[option]))
        name, share = options[chosen]
        learner = Uniform() if name == "uniform" else Shrunk(by_name[name], share)
        is_rated = isinstance(pairs, RatedScores)
        right, top = (f"{means[each]:{'.3f' if is_rated else '.1%'}}" for each in (chosen, best))
        found = f"an objective of {right}" if is_rated else f"{right} of development pairs in the right order"
        if chosen == best:
            return learner, f"{learner.name}: best in cross-validation ({found})"
        other, other_share = options[best]
        return learner, (
            f"{learner.name}: {found} in cross-validation, about as good as the best "
            f"({other} with {other_share:.0%} uniform, {top}) and closer to uniform weights"
        )

    def _cross_validate(self, pairs: Evidence, groups: int, seed: int) -> tuple[list[tuple[str, float]], Floats, Codes]:
        """Return the options (learner, share of uniform weights), held-out values (options, items), and the items'
        groups."""
        even_weights = uniform_weights(pairs.tests)
        options = [("uniform", 1.0), *((each.name, share) for each in self.learners for share in SHRINKAGE)]
        is_rated = isinstance(pairs, RatedScores)
        repeats = 3 if isinstance(pairs, PairDifferences) and pairs.decided_pairs < 300 else 1
        folds = min(self.folds, groups) if is_rated else self.folds
        parts, tested, failed = [np.empty((len(options), 0))], [np.empty(0, dtype=np.int64)], set()
        for repeat in range(repeats):
            for number, split in enumerate(grouped_folds(compact(pairs.groups), folds, seed + repeat)):
                development, test = pairs.take(split.development), pairs.take(split.test)
                if not test.can_be_learned or (is_rated and not development.can_be_learned):
                    continue
                candidates = [even_weights]
                for learner in self.learners:
                    try:
                        learned = learner.learn(development, seed=seed + number)
                    except LearningFailedError:
                        failed.add(learner.name)
                        learned = even_weights
                    candidates += [(1.0 - share) * learned + share * even_weights for share in SHRINKAGE]
                values, value_groups = test.held_out_values(np.array(candidates), number)
                if np.isfinite(values).all():  # a score that is the same for every output follows no rating
                    parts.append(values)
                    tested.append(value_groups)
        if is_rated and failed:  # no test rises with the ratings: the data teach nothing
            failed = {each.name for each in self.learners}
        kept = [index for index, (name, _) in enumerate(options) if name not in failed]
        return [options[index] for index in kept], np.concatenate(parts, axis=1)[kept], np.concatenate(tested)


def sampled_rows(groups: Codes, seed: int) -> NDArray[np.bool_]:
    """Return a mask of a seeded sample of whole groups with about :data:`MOST_ROWS` rows; of all rows if there are no
    more."""
    if len(groups) <= MOST_ROWS:
        return np.ones(len(groups), dtype=np.bool_)
    codes = compact(groups)
    order = np.random.default_rng(seed).permutation(int(codes.max()) + 1)
    sizes = np.bincount(codes)[order]
    chosen = order[: max(2, int(np.searchsorted(np.cumsum(sizes), MOST_ROWS)))]
    return np.isin(codes, chosen)


def learners(*, rated: bool = False) -> dict[str, WeightLearner]:
    """Return every learner of pairs, or of ratings, with its usual settings, by name."""
    known: list[WeightLearner] = [Uniform(), BestSingle()]
    if rated:
        search: tuple[WeightLearner, ...] = (LeastSquares(), RankSearch())
        known += [*search, Auto(search)]
    else:
        known += [Logistic(), Robust(), Auto(), Bayes(), OptunaSearch()]
    return {learner.name: learner for learner in known}


def find_learner(learner: str | WeightLearner, *, rated: bool = False) -> WeightLearner:
    """Find a learner of pairs, or of ratings, by its name; a learner object is returned unchanged. Raises InputError
    where there is no learner of that name."""
    if not isinstance(learner, str):
        return learner
    known, other_learners = learners(rated=rated), learners(rated=not rated)
    name = ALIASES.get(learner, learner)
    if name in known:
        return known[name]
    choose = f"Choose from: {', '.join(known)}."
    if rated and name in other_learners:
        raise InputError(f"There is no method '{learner}' for ratings, as it learns from pairs. {choose}")
    if name in other_learners:
        raise InputError(
            f"There is no weight learner '{learner}' for pairs, as it learns from rated outputs (--ratings). {choose}"
        )
    what = f"method '{learner}' for ratings" if rated else f"weight learner '{learner}'"
    raise InputError(f"There is no {what}.{did_you_mean(learner, known)} {choose}")


@dataclass(frozen=True, eq=False)
class Weighting:
    """Weights ready for use."""

    overall: Floats
    """Shape (tests,), sum 1: weights for all pairs, and for a section that was not in the data."""
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
    """How weights are learned after every choice is made; cheap enough to repeat on bootstrap resamples."""

    overall: WeightLearner
    own: tuple[WeightLearner, ...] = ()
    """Learner of each section's own weights; empty for global weights."""
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

    def fit(self, pairs: Evidence, *, seed: int, start: Weighting | None = None) -> Weighting:
        """Learn from ``pairs``. Raises LearningFailedError where the overall weights cannot be learned. A section whose
        own weights cannot be learned gets the overall ones."""
        overall = self.overall.learn(pairs, seed=seed, start=None if start is None else start.overall)
        if not self.own or isinstance(pairs, RatedScores):
            return Weighting(overall)
        if np.isinf(self.strength):
            return Weighting(overall, np.tile(overall, (len(self.own), 1)))
        own, sizes = self.unpooled(pairs, overall, seed)
        return Weighting(overall, _pool(own, overall, sizes, self.strength))

    def unpooled(self, pairs: PairDifferences, overall: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return each section's own weights (sections, tests) and number of decided pairs (sections,). A section from
        which nothing can be learned has the overall weights and size 0."""
        section_weights = np.tile(overall, (len(self.own), 1))
        sizes = np.zeros(len(self.own))
        for section, learner in enumerate(self.own):
            part = _of_section(pairs, section)
            if not part.decided_pairs:
                continue
            try:
                section_weights[section] = learner.learn(part, seed=seed)
            except LearningFailedError:
                continue
            sizes[section] = float(part.decided()[1].sum())
        return section_weights, sizes


def choose_recipe(
    pairs: Evidence, learner: WeightLearner, *, sections: int, pooling: Pooling, seed: int
) -> tuple[Recipe, str]:
    """Make the choices that a method leaves open (learner, shrinkage, pooling), using only ``pairs``.

    With ``sections`` 0 the weights are global. ``pooling`` ``none`` keeps sections apart; ``partial`` pools them as
    cross-validation finds best. The second value says what was chosen and why; it is empty when nothing was open.
    """
    section_learners: tuple[WeightLearner, ...]
    if not isinstance(learner, Auto):
        overall, section_learners, reason = learner, (learner,), ""
    else:
        overall, reason = learner.choose(pairs, seed=seed)
        section_learners = learner.learners
    if not sections or isinstance(pairs, RatedScores):
        return Recipe(overall), reason
    if isinstance(overall, Uniform) and pairs.decided_pairs < FEW:
        return Recipe(overall, (overall,) * sections), reason
    if pooling == "none":
        return _keep_apart(pairs, learner, overall, sections, reason, seed)
    sample = pairs.take(sampled_rows(pairs.groups, seed))
    recipe = _choose_pooling(sample, [Recipe(overall, (each,) * sections) for each in section_learners], seed)
    explanation = (
        "every section gets the overall weights"
        if np.isinf(recipe.strength)
        else f"a section's own weights{f' ({recipe.own[0].name})' if len(section_learners) > 1 else ''} count as its "
        f"pairs against {recipe.strength:.0f} pairs of the whole"
    )
    said = "; ".join(filter(None, [reason, f"partial pooling: {explanation}"]))
    return recipe, said


def _keep_apart(
    pairs: PairDifferences, learner: WeightLearner, overall: WeightLearner, sections: int, reason: str, seed: int
) -> tuple[Recipe, str]:
    """Give every section its own weights without pooling; ``Auto`` chooses in each section."""
    if not isinstance(learner, Auto):
        return Recipe(overall, (learner,) * sections, 0.0), reason
    own = tuple(learner.choose(_of_section(pairs, section), seed=seed)[0] for section in range(sections))
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
    """Choose a recipe and τ by the share of right pairs in five-fold cross-validation.

    Among the options about as good as the best, the largest τ wins, then the best share. Recipes differ in section
    learners.
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
