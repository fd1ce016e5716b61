"""What held-out examples say of a version: how well a judge ranks, or how well a generator does, and what it costs beside.

A version may not buy its gain with bias, or one question's success with another's. BinEval's update of Relevance
lowered the correlation from .505 to .357: its lessons took a holistic judgement to pieces and the judge became too severe.
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

Metric = Literal["spearman", "kendall", "auc", "kappa"]


class Yardstick(Protocol):
    """Measures a version on held-out examples, and two versions against each other."""

    @property
    def name(self) -> str:
        """What is measured, as it is said to people, e.g. ``Spearman``."""
        ...

    def value(self, scores: Sequence[ExampleScore]) -> float | None:
        """What is measured, in one number without an interval; None where it is undefined."""
        ...

    def measure(self, scores: Sequence[ExampleScore], examples: Sequence[Example]) -> dict[str, Any]:
        """The figures of one version, as in ``result.json``."""
        ...

    def difference(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> Difference:
        """How much better ``after`` is; both and the examples are in the same order."""
        ...


METRICS = {"spearman": "Spearman", "kendall": "Kendall", "auc": "AUC", "kappa": "kappa"}
"""What a judge can be optimised for, as it is said to people."""


@dataclass(frozen=True)
class CorrelationYardstick:
    """Agreement with the wanted scores; a judge whose scores are constant counts as one that ranks nothing."""

    targets: Targets
    """Must know every example that is measured."""
    resamples: int
    seed: int
    metric: Metric = "spearman"
    labels: PassLabels | None = None
    """People's labels; needed for ``auc`` and ``kappa``."""

    @property
    def name(self) -> str:
        """Spearman, or another metric."""
        return METRICS[self.metric]

    def value(self, scores: Sequence[ExampleScore]) -> float | None:
        """The metric over all dimensions."""
        mine = [self.targets.score(each) for each in scores]
        if self.metric == "auc" or self.metric == "kappa":
            return label_agreement(self.metric, mine, self._passed(scores), Resampling(resamples=1)).value
        wanted = [self.targets.overall(each.example) for each in scores]
        return (kendall if self.metric == "kendall" else spearman)(mine, wanted).value

    def on(self, dimension: str) -> CorrelationYardstick:
        """The same of one dimension."""
        return replace(self, targets=replace(self.targets, dimensions=(dimension,)))

    def _passed(self, scores: Sequence[ExampleScore]) -> list[float | None]:
        assert self.labels is not None, "these metrics are of labels"
        return self.labels.of(each.example for each in scores)

    def measure(self, scores: Sequence[ExampleScore], examples: Sequence[Example]) -> dict[str, Any]:
        """Spearman, Kendall and Pearson over all dimensions and on each, with intervals, and another metric beside."""
        row = measure(scores, self.targets, examples, resamples=self.resamples, seed=self.seed).to_dict()
        if self.metric == "spearman":
            return row
        mine, resampling = [self.targets.score(each) for each in scores], self._resampling(examples)
        if self.metric == "kendall":
            wanted = [self.targets.overall(each.example) for each in scores]
            found = correlate(mine, wanted, resampling).kendall
        else:
            found = label_agreement(self.metric, mine, self._passed(scores), resampling)
        return row | {"optimised": {"metric": self.metric, **statistic_dict(found)}}

    def _resampling(self, examples: Sequence[Example]) -> Resampling:
        return Resampling(documents(examples), self.resamples, seed=self.seed)

    def difference(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> Difference:
        """Paired difference of the metric."""
        first, second = ([self.targets.score(each) for each in side] for side in (before, after))
        if self.metric == "auc" or self.metric == "kappa":
            return label_difference(first, second, self._passed(before), self.metric, self._resampling(examples))
        wanted = [self.targets.overall(each.example) for each in before]
        return paired_difference(
            *(first, second, wanted, self._resampling(examples)), statistic=self.metric, undefined_as_zero=True
        )


@dataclass(frozen=True)
class MeanYardstick:
    """The mean score of what a generator makes, in [0, 1]."""

    resamples: int
    seed: int
    name = "mean score"

    def value(self, scores: Sequence[ExampleScore]) -> float | None:
        """Mean over the examples that have a score."""
        return mean_score(each.overall for each in scores)

    def measure(self, scores: Sequence[ExampleScore], examples: Sequence[Example]) -> dict[str, Any]:
        """Mean over the examples, overall and on each dimension, with an interval; there is nothing to rank."""
        names = dict.fromkeys(name for each in scores for name in each.dimensions)
        row = self._row([each.overall for each in scores], examples)
        dimensions = {name: self._row([each.dimensions.get(name) for each in scores], examples) for name in names}
        return row | {"dimensions": dimensions}

    def difference(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> Difference:
        """Paired difference of the means."""
        return self._difference([each.overall for each in before], [each.overall for each in after], examples)

    def _row(self, values: list[float | None], examples: Sequence[Example]) -> dict[str, Any]:
        nothing = [None if value is None else 0.0 for value in values]
        mean = self._difference(nothing, values, examples)
        reason = mean.reason or "a generator is measured by its mean score; there is nothing to correlate with"
        row = {"spearman": None, "kendall": None, "pearson": None, "n": mean.n, "low": mean.low, "high": mean.high}
        return row | {"mean": mean.value, "reason": reason}

    def _difference(
        self, before: list[float | None], after: list[float | None], examples: Sequence[Example]
    ) -> Difference:
        return mean_difference(before, after, Resampling(documents(examples), self.resamples, seed=self.seed))


CLEARLY = 0.1
"""One-sided p-value up to which a judge ranks worse."""
Ranks = tuple[Sequence[ExampleScore], Sequence[ExampleScore]]
"""Two versions' ranks in place of their scores, before and after."""


class Guard(Protocol):
    """Looks for what the yardstick does not see."""

    def problem(
        self,
        before: Sequence[ExampleScore],
        after: Sequence[ExampleScore],
        examples: Sequence[Example],
        ranks: Ranks | None = None,
    ) -> str | None:
        """What speaks against the version ``after``; None where nothing does.

        ``ranks`` are what the yardstick was given where the scores are of several judges, each with a scale of its own.
        """
        ...


@dataclass(frozen=True)
class BiasGuard:
    """A judge's mean score against people's: one that moves away without ranking better has only become severer."""

    yardstick: CorrelationYardstick
    limit: float
    """How far a dimension's mean may move away from the wanted mean, in units of the score."""

    def problem(
        self,
        before: Sequence[ExampleScore],
        after: Sequence[ExampleScore],
        examples: Sequence[Example],
        ranks: Ranks | None = None,
    ) -> str | None:
        """The first dimension whose mean moved away by more than the limit and whose ranking is no better for it.

        Learned questions are read against accepted outputs, which moves every mean, also where nothing was learned: with ``ranks``
        the ranking has to be clearly worse.
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
    """A generator's pass rate per dimension: none may fall by more than the limit while the mean rises."""

    limit: float
    """In units of the pass rate."""

    def problem(
        self,
        before: Sequence[ExampleScore],
        after: Sequence[ExampleScore],
        examples: Sequence[Example],
        ranks: Ranks | None = None,
    ) -> str | None:
        """The dimension that lost most, where that is more than the limit."""
        was, now = _means(before), _means(after)
        losses = {
            name: old - new
            for name, old in was.items()
            if old is not None and (new := now.get(name)) is not None and old - new > self.limit
        }
        if not losses:
            return None
        worst = max(losses, key=lambda name: losses[name])
        return f"'{worst}' fell from {was[worst]:.2f} to {now[worst]:.2f}"


def _means(scores: Sequence[ExampleScore]) -> Mapping[str, float | None]:
    names = dict.fromkeys(name for each in scores for name in each.dimensions)
    return {name: mean_score(each.dimensions.get(name) for each in scores) for name in names}
