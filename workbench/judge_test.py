"""The acceptance test of a judge that a person changed: one look at validation, each look at a harder level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..optimizer.acceptance import BiasGuard, CorrelationYardstick, PairedAcceptance, Scores
from ..optimizer.options import LoopOptions
from ..stats.differences import Difference, difference_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation.kept_judge import KeptJudge
    from ..prompts.examples import Example
    from .judge_bench import JudgeBench

USUAL_LEVEL = 0.05
"""Where the run's settings have none."""


@dataclass(frozen=True)
class MeasuredGain:
    """A yardstick whose difference is measured already: of two judges, each at its own threshold."""

    name: str
    gain: Difference

    def value(self, scores: Scores) -> float | None:
        """No figure of one judge alone."""
        return None

    def measure(self, scores: Scores, examples: Sequence[Example]) -> dict[str, Any]:
        """No figures of one judge alone."""
        return {}

    def difference(self, before: Scores, after: Scores, examples: Sequence[Example]) -> Difference:
        """The difference that was measured."""
        return self.gain


def acceptance_test(bench: JudgeBench, changed: KeptJudge, look: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Whether validation speaks for the changed judge, as the page shows it.

    Kappa at the judges' thresholds decides where people gave labels, else Spearman's correlation. ``look`` counts the
    looks at validation, from 1: each is tested at half of the level that is left, so that all looks together let no
    more through than one. A judge that only became severer or more lenient is refused, by the run's ``max_bias``.
    """
    part = bench.parts["validation"]
    row = bench.figures("validation", changed)
    if part.reason is not None or part.targets is None:
        return {"accepted": False, "reason": part.reason, "look": look, "figures": row}
    before, after = bench.kept["validation"], bench.state(changed, "validation")
    gains = bench.differences(part, before, after, bench.known(part, before, after))
    name = "kappa" if "kappa" in gains else "spearman"
    level = float(config.get("alpha") or USUAL_LEVEL)
    limit = float(config.get("max_bias", LoopOptions.model_fields["max_bias"].default))
    # the guard reads the correlation's difference and no interval of it, so nothing is resampled
    guard = BiasGuard(CorrelationYardstick(part.targets, resamples=1, seed=0), limit)
    gain = MeasuredGain("kappa" if name == "kappa" else "Spearman", gains[name])
    test = PairedAcceptance(gain, part.examples, level, guard).at_look(look, look + 1)  # there may always be another
    decision = test.decide(*(bench.table(each, "validation") for each in (bench.judge, changed)))
    return {
        "accepted": decision.accepted,
        "reason": decision.reason,
        "level": test.level,
        "look": look,
        "gain": difference_dict(gains[name]),
        "figures": row,
    }
