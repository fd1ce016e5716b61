"""The acceptance test: a version is accepted only if a paired test on validation says that it is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..evaluation.scoring import ExampleScore
from ..prompts.examples import Example
from ..stats.differences import Difference
from .options import LoopOptions
from .subject import Crossed
from .yardsticks import Guard, Ranks, Yardstick

HOPELESS = 0.1
"""One-sided p-value of "it is no worse" up to which a candidate is clearly worse: it is dropped before the rest is paid.

Not 1 minus the p-value of a gain: where few examples changed, that is near 1 after a single loss.
"""
LATE = 0.6
"""Share of the validation examples from which a candidate without any gain is dropped."""
FAR = 2.0
"""Where the p-value on the lessons' own questions is more than so many levels, the other questions are not bought."""

SPENT = 0.5
"""Share of what is left of the level that a look takes, where candidates of a kind are tried one after the other."""


@dataclass(frozen=True)
class Decision:
    """Whether a candidate is kept, and why."""

    accepted: bool
    reason: str
    gain: Difference | None
    within_noise: bool = False
    """Rejected for no other reason than that the gain may be noise, or verdicts are missing: with further edits, or later,
    it may stand out."""


class Acceptance(Protocol):
    """Decides whether a candidate replaces the best version so far."""

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        """Compare the two on the same validation examples, in the same order."""
        ...

    def decide_crossed(self, crossed: Crossed) -> Decision:
        """Compare a judge with those that were learned from other examples than they are tested on."""
        ...

    def at_look(self, number: int, most: int) -> Acceptance:
        """The acceptance test for the ``number``-th of ``most`` looks, from 1, that together let no more through than one."""
        ...

    def hopeless(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision | None:
        """A rejection where a part of the candidate's verdicts says that the others are not worth their price.

        The candidate's scores are of the first validation examples, or of all where only some questions were asked.
        """
        ...


@dataclass(frozen=True)
class PairedAcceptance:
    """Accept when the yardstick rises and a paired one-sided test reaches the level.

    The level is that of one candidate. Dropping candidates early can only turn acceptances into rejections, so it
    does not raise the share of useless edits let through.
    """

    yardstick: Yardstick
    """What is to rise."""
    examples: Sequence[Example]
    """The validation examples, in the order of the scores."""
    level: float
    """Share of useless edits let through."""
    guard: Guard | None = None
    """Refuses what the yardstick does not see."""
    where: str = "validation"
    """The examples, as reasons name them."""

    def at_look(self, number: int, most: int) -> PairedAcceptance:
        """The acceptance test at half of what is left of the level, or at all of it where this is the last look."""
        left = self.level * (1 - SPENT) ** (number - 1)
        return replace(self, level=left if number >= most else SPENT * left)

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        """Compare the two."""
        return self._decide(best, candidate, self.yardstick.difference(best, candidate, self.examples))

    def decide_crossed(self, crossed: Crossed) -> Decision:
        """Compare the two by their ranks within each fold; bias is looked for in the scores as they are."""
        by = crossed.ranked()
        gain = self.yardstick.difference(by.before, by.after, crossed.examples)
        whole = replace(self, examples=crossed.examples, where="examples that taught it nothing")
        return whole._decide(crossed.before, crossed.after, gain, (by.before, by.after))

    def _decide(
        self,
        best: Sequence[ExampleScore],
        candidate: Sequence[ExampleScore],
        gain: Difference,
        ranks: Ranks | None = None,
    ) -> Decision:
        """The same, where the gain is known; ``ranks`` of both where the scores are of judges with scales of their own."""
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

    def hopeless(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision | None:
        """Whether what was judged so far is enough to drop the candidate."""
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


def acceptance_of(
    options: LoopOptions, yardstick: Yardstick, validation: Sequence[Example], guard: Guard
) -> Acceptance:
    """Return the acceptance test that the settings name."""
    if options.paper:
        return HeldOutAcceptance(yardstick, validation)
    return PairedAcceptance(yardstick, validation, options.alpha, guard)


@dataclass(frozen=True)
class HeldOutAcceptance:
    """The papers' way, for comparison: a version is kept unless the held-out figure falls; no test, no second look."""

    yardstick: Yardstick
    examples: Sequence[Example]
    """The validation examples; the paper itself looked at the test set."""

    def at_look(self, number: int, most: int) -> HeldOutAcceptance:
        """The same at every look."""
        return self

    def decide(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision:
        """Compare the two by their point estimates."""
        gain = self.yardstick.difference(best, candidate, self.examples)
        if gain.value is None:
            return Decision(False, f"the gain is undefined: {gain.reason}", gain)
        found = f"{self.yardstick.name} {gain.value:+.3f}, n = {gain.n}, untested"
        kept = gain.value >= 0
        return Decision(kept, f"{'not worse' if kept else 'worse'} on validation ({found})", gain)

    def decide_crossed(self, crossed: Crossed) -> Decision:
        """Compare the two by their point estimates."""
        by = crossed.ranked()
        return replace(self, examples=crossed.examples).decide(by.before, by.after)

    def hopeless(self, best: Sequence[ExampleScore], candidate: Sequence[ExampleScore]) -> Decision | None:
        """Nothing is dropped early."""
        return None
