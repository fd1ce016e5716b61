"""The measures of a version on held-out examples, and the test that accepts it in place of the best version so far.

A yardstick measures. The acceptance test accepts a version only if a paired test on validation shows a gain. A guard
refuses a gain that costs bias, or the success of another question: BinEval's update of Relevance lowered the
correlation from .505 to .357, because its lessons made the judge too severe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from ..evaluation.pass_fail import PassLabels
from ..evaluation.scoring import ExampleScore, Targets, dimension_errors, mean_score, measure
from ..prompts.examples import Example, documents
from ..stats.correlation import correlate, kendall, spearman, statistic_dict
from ..stats.differences import Difference, label_difference, mean_difference, paired_difference
from ..stats.pass_fail import label_agreement
from ..stats.resampling import Resampling
from .options import LoopOptions
from .subject import Crossed

Metric = Literal["spearman", "kendall", "auc", "kappa"]
METRICS = {"spearman": "Spearman", "kendall": "Kendall", "auc": "AUC", "kappa": "kappa"}
"""Metrics that a judge can be optimised for, with their names for people."""
Scores = Sequence[ExampleScore]
Ranks = tuple[Scores, Scores]
"""Ranks of two versions in place of their scores, before and after."""

CLEARLY = 0.1
"""Largest one-sided p-value at which a judge counts as ranking worse."""
HOPELESS = 0.1
"""Largest one-sided p-value of "it is no worse" at which a candidate is dropped before all its verdicts are paid.

This is not 1 minus the p-value of a gain: if few examples changed, that is near 1 after a single loss.
"""
LATE = 0.6
"""Share of the validation examples after which a candidate without any gain is dropped."""
FAR = 2.0
"""A candidate is dropped if its p-value on its lessons' own questions is above this multiple of the level."""
SPENT = 0.5
"""Share of the remaining level that one look uses, where candidates of a kind are tried one after the other."""


class Yardstick(Protocol):
    """Measures a version on held-out examples, and two versions against each other."""

    @property
    def name(self) -> str:
        """The name of the figure for people, e.g. ``Spearman``."""

    def value(self, scores: Scores) -> float | None:
        """Return the figure without an interval; None where it is undefined."""

    def measure(self, scores: Scores, examples: Sequence[Example]) -> dict[str, Any]:
        """Return the figures of one version, as in ``result.json``."""

    def difference(self, before: Scores, after: Scores, examples: Sequence[Example]) -> Difference:
        """Return the gain of ``after`` over ``before``; both and the examples are in the same order."""


@dataclass(frozen=True)
class CorrelationYardstick:
    """Agreement with the wanted scores. In differences a judge with constant scores has correlation 0, or the lowest
    agreement for ``auc`` and ``kappa``."""

    targets: Targets
    """Wanted scores of every example that is measured."""
    resamples: int
    seed: int
    metric: Metric = "spearman"
    labels: PassLabels | None = None
    """People's labels; needed for ``auc`` and ``kappa``."""

    @property
    def name(self) -> str:
        """The metric's name for people, e.g. ``Spearman``."""
        return METRICS[self.metric]

    def on(self, dimension: str) -> CorrelationYardstick:
        """Return the yardstick of one dimension."""
        return replace(self, targets=replace(self.targets, dimensions=(dimension,)))

    def value(self, scores: Scores) -> float | None:
        """Return the metric over all dimensions."""
        judge_scores = self._mine(scores)
        if self.metric == "auc" or self.metric == "kappa":
            return label_agreement(self.metric, judge_scores, self._passed(scores), Resampling(resamples=1)).value
        return (kendall if self.metric == "kendall" else spearman)(judge_scores, self._wanted(scores)).value

    def measure(self, scores: Scores, examples: Sequence[Example]) -> dict[str, Any]:
        """Return Spearman, Kendall and Pearson overall and by dimension, with intervals. A metric other than
        ``spearman`` is added as ``optimised``, overall."""
        row = measure(scores, self.targets, examples, resamples=self.resamples, seed=self.seed).to_dict()
        if self.metric == "spearman":
            return row
        judge_scores, resampling = self._mine(scores), self._resampling(examples)
        if self.metric == "kendall":
            found = correlate(judge_scores, self._wanted(scores), resampling).kendall
        else:
            found = label_agreement(self.metric, judge_scores, self._passed(scores), resampling)
        return row | {"optimised": {"metric": self.metric, **statistic_dict(found)}}

    def difference(self, before: Scores, after: Scores, examples: Sequence[Example]) -> Difference:
        """Return the paired difference of the metric."""
        first, second, resampling = self._mine(before), self._mine(after), self._resampling(examples)
        if self.metric == "auc" or self.metric == "kappa":
            return label_difference(first, second, self._passed(before), self.metric, resampling)
        wanted = self._wanted(before)
        return paired_difference(first, second, wanted, resampling, statistic=self.metric, undefined_as_zero=True)

    def _mine(self, scores: Scores) -> list[float | None]:
        return [self.targets.score(each) for each in scores]

    def _wanted(self, scores: Scores) -> list[float | None]:
        return [self.targets.overall(each.example) for each in scores]

    def _passed(self, scores: Scores) -> list[float | None]:
        assert self.labels is not None, "these metrics are of labels"
        return self.labels.of(each.example for each in scores)

    def _resampling(self, examples: Sequence[Example]) -> Resampling:
        return Resampling(documents(examples), self.resamples, seed=self.seed)


@dataclass(frozen=True)
class MeanYardstick:
    """The mean score of a generator's outputs, in [0, 1]."""

    resamples: int
    seed: int
    name: str = "mean score"

    def value(self, scores: Scores) -> float | None:
        """Return the mean over the examples that have a score."""
        return mean_score(each.overall for each in scores)

    def measure(self, scores: Scores, examples: Sequence[Example]) -> dict[str, Any]:
        """Return the mean over the examples, overall and by dimension, with an interval. Correlations are None."""

        def row(values: list[float | None]) -> dict[str, Any]:
            nothing = [None if value is None else 0.0 for value in values]
            mean = self._difference(nothing, values, examples)
            reason = mean.reason or "a generator is measured by its mean score; there is nothing to correlate with"
            correlations = dict.fromkeys(("spearman", "kendall", "pearson"))
            interval = {"n": mean.n, "low": mean.low, "high": mean.high}
            return {**correlations, **interval, "mean": mean.value, "reason": reason}

        columns = {name: [each.dimensions.get(name) for each in scores] for name in _dimensions(scores)}
        dimensions = {name: row(column) for name, column in columns.items()}
        return row([each.overall for each in scores]) | {"dimensions": dimensions}

    def difference(self, before: Scores, after: Scores, examples: Sequence[Example]) -> Difference:
        """Return the paired difference of the means."""
        return self._difference([each.overall for each in before], [each.overall for each in after], examples)

    def _difference(
        self, before: list[float | None], after: list[float | None], examples: Sequence[Example]
    ) -> Difference:
        return mean_difference(before, after, Resampling(documents(examples), self.resamples, seed=self.seed))


def _dimensions(scores: Scores) -> list[str]:
    return list(dict.fromkeys(name for each in scores for name in each.dimensions))


@dataclass(frozen=True)
class BiasGuard:
    """Refuses a judge that only became more severe or lenient: its mean moved away from people's, without a better
    ranking. Like :class:`PassRateGuard` it looks for losses that the yardstick does not see."""

    yardstick: CorrelationYardstick
    limit: float
    """Largest move of a dimension's mean away from the wanted mean, in units of the score."""

    def problem(
        self, before: Scores, after: Scores, examples: Sequence[Example], ranks: Ranks | None = None
    ) -> str | None:
        """Return the objection to the version ``after``: the first dimension whose mean moved away by more than the
        limit and whose ranking is no better.

        ``ranks`` are given where the yardstick used ranks, because several judges have different scales. With ranks the
        objection needs a clearly worse ranking: learned questions are calibrated on accepted outputs, which moves every
        mean, even if nothing was learned.
        """
        was, now = (dimension_errors(each, self.yardstick.targets) for each in (before, after))
        for name in self.yardstick.targets.dimensions:
            old, new = was[name].bias, now[name].bias
            if old is None or new is None or abs(new) - abs(old) <= self.limit:
                continue
            first, second = ranks or (before, after)
            lost = replace(self.yardstick.on(name), metric="spearman").difference(second, first, examples)
            if (lost.value or 0.0) < 0 or (ranks and (lost.p_value is None or lost.p_value > CLEARLY)):
                continue
            way = "more severe" if new < old else "more lenient"
            return (
                f"the judge only became {way} on {name}: its mean score is {new:+.2f} from the wanted one, after "
                f"{old:+.2f}, and ranks {'no better' if ranks is None else 'clearly worse'} there"
            )
        return None


@dataclass(frozen=True)
class PassRateGuard:
    """Refuses a generator whose pass rate on a dimension fell by more than the limit while the mean rose."""

    limit: float
    """Largest loss of a dimension's pass rate, in units of the pass rate."""

    def problem(
        self, before: Scores, after: Scores, examples: Sequence[Example], ranks: Ranks | None = None
    ) -> str | None:
        """Return the objection to the version ``after``: the dimension with the largest loss above the limit."""
        old_means, new_means = (_means(before), _means(after))
        losses = {
            name: old - new
            for name, old in old_means.items()
            if old is not None and (new := new_means.get(name)) is not None and old - new > self.limit
        }
        if not losses:
            return None
        worst = max(losses, key=lambda name: losses[name])
        return f"'{worst}' fell from {old_means[worst]:.2f} to {new_means[worst]:.2f}"


def _means(scores: Scores) -> Mapping[str, float | None]:
    return {name: mean_score(each.dimensions.get(name) for each in scores) for name in _dimensions(scores)}


Guard = BiasGuard | PassRateGuard


@dataclass(frozen=True)
class Decision:
    """Whether a candidate is kept, and why."""

    accepted: bool
    reason: str
    gain: Difference | None
    within_noise: bool = False
    """Whether it was rejected only because the gain may be noise or verdicts are missing. It may pass with more edits,
    or later."""


@dataclass(frozen=True)
class Acceptance:
    """Decides whether a candidate replaces the best version so far."""

    yardstick: Yardstick
    """The figure that has to rise."""
    examples: Sequence[Example]
    """The validation examples, in the order of the scores."""

    def decide(self, best: Scores, candidate: Scores) -> Decision:
        """Decide by the scores of both on the same validation examples, in the same order."""
        raise NotImplementedError

    def decide_crossed(self, crossed: Crossed) -> Decision:
        """Decide by cross-fitted scores: each fold was scored by a judge that was learned from the other folds."""
        by = crossed.ranked()
        return replace(self, examples=crossed.examples).decide(by.before, by.after)

    def at_look(self, number: int, most: int) -> Acceptance:
        """Return the test for look ``number``, from 1, of ``most``. All looks together let no more through than one."""
        return self

    def hopeless(self, best: Scores, candidate: Scores) -> Decision | None:
        """Return a rejection if the verdicts so far show that the others are not worth their price, else None. They are
        on the first validation examples, or on all of them where only some questions were asked."""
        return None


@dataclass(frozen=True)
class PairedAcceptance(Acceptance):
    """Accept when the yardstick rises and a paired one-sided test reaches the level.

    The level is that of one candidate. Dropping candidates early can only turn acceptances into rejections, so it
    does not raise the share of useless edits let through.
    """

    level: float
    """Share of useless edits let through."""
    guard: Guard | None = None
    where: str = "validation"
    """The examples, as reasons name them."""

    def at_look(self, number: int, most: int) -> PairedAcceptance:
        """Return the test at half of the remaining level; the last look has all of it."""
        left = self.level * (1 - SPENT) ** (number - 1)
        return replace(self, level=left if number >= most else SPENT * left)

    def decide(self, best: Scores, candidate: Scores) -> Decision:
        """Decide by the paired difference of the yardstick."""
        return self._decide(best, candidate, self.yardstick.difference(best, candidate, self.examples))

    def decide_crossed(self, crossed: Crossed) -> Decision:
        """Decide by ranks within each fold. The guard looks for bias in the scores themselves."""
        by = crossed.ranked()
        gain = self.yardstick.difference(by.before, by.after, crossed.examples)
        whole = replace(self, examples=crossed.examples, where="examples that taught it nothing")
        return whole._decide(crossed.before, crossed.after, gain, (by.before, by.after))

    def _decide(self, best: Scores, candidate: Scores, gain: Difference, ranks: Ranks | None = None) -> Decision:
        if gain.value is None or gain.p_value is None:
            return Decision(False, f"the gain is undefined: {gain.reason}", gain)
        found = f"{self.yardstick.name} {gain.value:+.3f}, p = {gain.p_value:.3f}, n = {gain.n}"
        if gain.value <= 0:
            return Decision(False, f"no gain on {self.where} ({found})", gain)
        refused = self.guard.problem(best, candidate, self.examples, ranks) if self.guard else None
        if refused:
            return Decision(False, f"{refused} ({found})", gain)
        if gain.p_value > self.level:
            return Decision(False, f"a gain within noise ({found}; p must be at most {self.level:g})", gain, True)
        return Decision(True, f"better on {self.where} ({found})", gain)

    def hopeless(self, best: Scores, candidate: Scores) -> Decision | None:
        """Reject if the candidate is clearly worse, shows no gain late, or is far from the level on all examples."""
        n = len(candidate)
        gain = self.yardstick.difference(best[:n], candidate, self.examples[:n])
        if gain.value is None:
            return None
        if gain.value > 0:
            far = n == len(self.examples) and gain.p_value is not None and gain.p_value > FAR * self.level
            return self._decide(best, candidate, gain) if far else None
        if n >= LATE * len(self.examples):
            found = f"{self.yardstick.name} {gain.value:+.3f}"
            part = f"the first {n}" if n < len(self.examples) else f"all {n}"
            return Decision(False, f"no gain on {part} validation examples ({found})", gain)
        loss = self.yardstick.difference(candidate, best[:n], self.examples[:n])
        if loss.p_value is None or loss.p_value > HOPELESS:
            return None
        found = f"{self.yardstick.name} {gain.value:+.3f}, p = {loss.p_value:.3f} that it is no worse"
        return Decision(False, f"clearly worse on the first {n} validation examples ({found})", gain)


class HeldOutAcceptance(Acceptance):
    """The papers' way, for comparison: a version is kept unless the held-out figure falls, without a test."""

    def decide(self, best: Scores, candidate: Scores) -> Decision:
        """Decide by the point estimate of the gain."""
        gain = self.yardstick.difference(best, candidate, self.examples)
        if gain.value is None:
            return Decision(False, f"the gain is undefined: {gain.reason}", gain)
        found = f"{self.yardstick.name} {gain.value:+.3f}, n = {gain.n}, untested"
        kept = gain.value >= 0
        return Decision(kept, f"{'not worse' if kept else 'worse'} on validation ({found})", gain)


def acceptance_of(
    options: LoopOptions, yardstick: Yardstick, validation: Sequence[Example], guard: Guard | None
) -> Acceptance:
    """Return the acceptance test that the settings name."""
    if options.paper:
        return HeldOutAcceptance(yardstick, validation)
    return PairedAcceptance(yardstick, validation, options.alpha, guard)
