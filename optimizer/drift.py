"""Drift: a version may not buy its gain with severity, or one question's success with another's.

BinEval's update of Relevance lowered the correlation from .505 to .357: its lessons took a holistic judgement to
pieces and the judge became too severe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..evaluation.scoring import dimension_errors, mean_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..evaluation.scoring import ExampleScore
    from ..prompts.examples import Example
    from .yardsticks import CorrelationYardstick


class Drift(Protocol):
    """Looks for what the yardstick does not see."""

    def problem(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> str | None:
        """What speaks against the version ``after``; None where nothing does."""
        ...


class SeverityDrift:
    """A judge's mean score against people's: one that moves away without ranking better has only become severer."""

    def __init__(self, yardstick: CorrelationYardstick, limit: float) -> None:
        """``limit``: how far a dimension's mean may move away from the wanted mean, in units of the score."""
        self._yardstick = yardstick
        self._limit = limit

    def problem(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> str | None:
        """The first dimension whose mean moved away by more than the limit and whose ranking is no better for it."""
        targets = self._yardstick.targets
        was, now = dimension_errors(before, targets), dimension_errors(after, targets)
        first = self._yardstick.measure(before, examples)["dimensions"]
        second = self._yardstick.measure(after, examples)["dimensions"]
        for name in targets.dimensions:
            old, new = was[name].drift, now[name].drift
            if old is None or new is None or abs(new) - abs(old) <= self._limit:
                continue
            if (second[name]["spearman"] or 0.0) <= (first[name]["spearman"] or 0.0):
                way = "more severe" if new < old else "more lenient"
                return (
                    f"the judge only became {way} on {name}: its mean score is {new:+.2f} from the wanted one, after "
                    f"{old:+.2f}, and ranks no better"
                )
        return None


class QuestionDrift:
    """A generator's pass rate per dimension: none may fall by more than the limit while the mean rises."""

    def __init__(self, limit: float) -> None:
        """``limit`` in units of the pass rate."""
        self._limit = limit

    def problem(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> str | None:
        """The dimension that lost most, where that is more than the limit."""
        was, now = _means(before), _means(after)
        losses = {
            name: old - new
            for name, old in was.items()
            if old is not None and (new := now.get(name)) is not None and old - new > self._limit
        }
        if not losses:
            return None
        worst = max(losses, key=lambda name: losses[name])
        return f"'{worst}' fell from {was[worst]:.2f} to {now[worst]:.2f}"


def _means(scores: Sequence[ExampleScore]) -> Mapping[str, float | None]:
    names = dict.fromkeys(name for each in scores for name in each.dimensions)
    return {name: mean_score(each.dimensions.get(name) for each in scores) for name in names}
