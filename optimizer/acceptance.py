"""The gate: a version is accepted only if a paired test on validation says that it ranks better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .bootstrap import paired_difference
from .results import documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..prompts.examples import Example
    from .bootstrap import Difference
    from .scoring import ExampleScore
    from .targets import Targets


@dataclass(frozen=True)
class Decision:
    """Whether a candidate is kept, and why."""

    accepted: bool
    reason: str
    gain: Difference | None


class Acceptance(Protocol):
    """Decides whether a candidate replaces the best version so far."""

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        """Compare the two on the same validation examples, in the same order."""
        ...


class PairedCorrelationGate:
    """Accept when Spearman with the targets rises and a paired one-sided test reaches the level."""

    def __init__(
        self, targets: Targets, examples: Sequence[Example], *, level: float, resamples: int, seed: int
    ) -> None:
        """``examples`` are the validation examples; ``level`` is the share of useless edits let through."""
        self._targets = targets
        self._groups = documents(examples)
        self._level = level
        self._resamples = resamples
        self._seed = seed

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        """Compare the two; a judge whose scores are constant counts as one that ranks nothing."""
        gain = paired_difference(
            [self._targets.score(each) for each in best],
            [self._targets.score(each) for each in candidate],
            [self._targets.overall(each.example) for each in best],
            statistic="spearman",
            resamples=self._resamples,
            seed=self._seed,
            groups=self._groups,
            undefined_as_zero=True,
        )
        if gain.value is None or gain.p_value is None:
            return Decision(False, f"the gain is undefined: {gain.reason}", gain)
        found = f"Spearman {gain.value:+.3f}, p = {gain.p_value:.3f}, n = {gain.n}"
        if gain.value <= 0:
            return Decision(False, f"no gain on validation ({found})", gain)
        if gain.p_value > self._level:
            return Decision(False, f"a gain within noise ({found}; p must be at most {self._level:g})", gain)
        return Decision(True, f"better on validation ({found})", gain)
