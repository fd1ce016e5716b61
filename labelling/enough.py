"""How many labels the acceptance test of ``align`` needs to find a gain of a given size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..optimizer.options import AlignOptions
from ..prompts.formatting import count

POWER = 0.8
"""Chance that a gain that is there passes the test."""
START = 0.3
"""Spearman of the judge before, where it is not known."""
ALIKE = 0.5
"""Correlation of the two judges' scores among outputs with the same label."""
BALANCE = (0.1, 0.9)
"""A pass rate beyond these counts as these."""
BEST = 0.98
"""Share of the largest Spearman that there can be, up to which a gain counts as possible."""
FEWEST_KNOWN = 20
"""Labels from which on their own pass rate, and the judge's own Spearman, are taken."""
_SIZE, _TRIALS, _SEED = 120, 1_000, 42

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Enough:
    """How many labels it takes, and what is assumed."""

    wanted: int
    """Labelled outputs, those of validation and test among them."""
    labelled: int
    gain: float
    """In Spearman."""
    start: float
    pass_rate: float
    has_room: bool = True
    """Whether a judge can be better than this one by so much."""

    @property
    def more(self) -> int:
        """Labels that are still to come."""
        return max(0, self.wanted - self.labelled) if self.has_room else 0

    @property
    def sentence(self) -> str:
        """The same in words, with what is assumed."""
        if not self.has_room:
            return (
                f"the judge is so near to people (Spearman {self.start:.2f}) that none can be better by {self.gain:g}"
            )
        how_many = f"{count(self.more, 'more label')} would" if self.more else f"the {self.labelled} labels"
        return f"{how_many} let the acceptance test of align find a gain of {self.gain:g} in Spearman in {POWER:.0%} of cases"

    @property
    def assumed(self) -> str:
        """What that rests on."""
        if not self.has_room:
            return "A smaller gain takes more labels: --gain."
        level, (development, validation, _) = _acceptance()
        return (
            f"{self.wanted} in all. Assumed: a judge at Spearman {self.start:.2f}, a pass rate of {self.pass_rate:.0%}, the "
            f"paired test at level {level:g} on the {development + validation:.0%} of the labels that align tests learned "
            f"questions on; for edits of the prompt it has {validation:.0%}, and needs "
            f"{math.ceil(self.wanted * (development + validation) / validation)} labels."
        )


def enough(labelled: int, passed: int, *, gain: float, start: float | None = None) -> Enough:
    """How many labels let the paired one-sided acceptance test find a gain with :data:`POWER`.

    Scores are normal among passed and among failed outputs (the binormal model), shifted so that Spearman is ``start``
    before and ``start + gain`` after, and correlated by :data:`ALIKE` within each. The spread of the difference of
    Spearman is measured on simulated data and falls with the root of the number of examples; the test is that of
    :func:`~askance.stats.differences.paired_difference`.

    Args:
        labelled: Outputs that people labelled.
        passed: Of these, how many passed.
        gain: In Spearman.
        start: Of the judge before, where it is known.
    """
    rate = passed / labelled if labelled >= FEWEST_KNOWN else 0.5
    rate = min(max(rate, BALANCE[0]), BALANCE[1])
    most = BEST * math.sqrt(3 * rate * (1 - rate))  # of a judge that tells all passed from all failed outputs
    before = max(0.0, START if start is None else round(start, 2))
    if before + gain > most:
        return Enough(0, labelled, gain, before, rate, has_room=False)
    level, (development, validation, _) = _acceptance()
    spread = _spread(round(rate, 2), shift_of(before, rate), shift_of(before + gain, rate))
    reach = _NORMAL.inv_cdf(1 - level) + _NORMAL.inv_cdf(POWER)
    tested = math.ceil((reach * spread / gain) ** 2)
    return Enough(math.ceil(tested / (development + validation)), labelled, gain, before, rate)


def _acceptance() -> tuple[float, tuple[float, float, float]]:
    """The level and the split of ``align`` as they are by default."""
    defaults = AlignOptions.model_fields
    return defaults["alpha"].default, defaults["split"].default


def shift_of(spearman: float, pass_rate: float) -> float:
    """How far apart, in standard deviations, scores of passed and failed outputs are for this Spearman with the labels.

    With a label Spearman is (2 AUC - 1) √(3 p (1 - p)), and AUC is Φ(shift / √2).
    """
    area = (1 + spearman / math.sqrt(3 * pass_rate * (1 - pass_rate))) / 2
    return math.sqrt(2) * _NORMAL.inv_cdf(min(max(area, 1e-6), 1 - 1e-6))


@cache
def _spread(rate: float, before: float, after: float) -> float:
    """Standard deviation of the difference of Spearman on n examples, times √n."""
    rng = np.random.default_rng(_SEED)
    labels = np.zeros(_SIZE)
    labels[: max(1, round(rate * _SIZE))] = 1
    shared = rng.standard_normal((_TRIALS, _SIZE))
    values = []
    for shift in (before, after):
        own = rng.standard_normal((_TRIALS, _SIZE))
        values.append(_spearman(shift * labels + math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * own, labels))
    return float((values[1] - values[0]).std() * math.sqrt(_SIZE))


def _spearman(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman of each row of scores, without ties, with the labels."""
    ranks = np.argsort(np.argsort(scores, axis=1), axis=1).astype(np.float64)
    ranks -= ranks.mean(axis=1, keepdims=True)
    centred = labels - labels.mean()
    found: NDArray[np.float64] = ranks @ centred / np.sqrt((ranks**2).sum(axis=1) * (centred**2).sum())
    return found
