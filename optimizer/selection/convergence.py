"""Does the ranking of the questions settle as examples are added? (EIG §4.3)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...stats.correlation import kendall
from ...stats.resampling import MAX_UNDEFINED_SHARE
from .information import (
    DEFAULT_CORRECTION,
    Correction,
    Floats,
    best_alone,
    information_of,
    worth_alone,
)

STABLE = 0.9
"""Kendall's tau with the full ranking from which a ranking counts as settled."""
_FEWEST = 10


@dataclass(frozen=True)
class RankingAt:
    """How rankings made from resamples of m examples agree with the one made from all."""

    m: int
    tau: float | None
    """Mean Kendall's tau over the resamples; None where more than a fifth of them have no ranking (see ``reason``)."""
    low: float | None
    """5 % of the resamples have a lower tau."""
    high: float | None
    """5 % of the resamples have a higher tau."""
    same_top: float
    """Mean share of the k best of all examples that are among the k best of the resample, in [0, 1]."""
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in ``selection.json``."""
        row = asdict(self)
        if self.reason is None:
            del row["reason"]
        return row


@dataclass(frozen=True)
class Convergence:
    """The ranking's agreement with the full one by number of examples."""

    steps: tuple[RankingAt, ...]
    settled: int | None
    """Fewest examples from which on the mean tau stays at :data:`STABLE` or above; None where it never does."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``selection.json``."""
        return {"steps": [each.to_dict() for each in self.steps], "settled": self.settled, "stable_from": STABLE}


def ranking_convergence(
    answers: Floats,
    ratings: Floats,
    *,
    k: int,
    resamples: int = 60,
    seed: int = 42,
    correction: Correction = DEFAULT_CORRECTION,
    conditional: Floats | None = None,
    costs: Floats | None = None,
) -> Convergence:
    """Rank the questions on bootstrap resamples of m = 10, 20, 40, ... examples, and compare with the full ranking.

    Examples are drawn with replacement, also for m = all: the last step says how stable the full ranking is itself.

    Args:
        answers: As in :func:`pooled_information`.
        ratings: As in :func:`pooled_information`.
        k: Size of the questionnaire, for the share of it that stays.
        resamples: For each m.
        seed: Same seed, same resamples.
        correction: As in :func:`pooled_information`.
        conditional: As in :func:`expected_information_gain`, whose ranking it then is.
        costs: Cost of each question, shape (questions,), where they are ranked by information per cost.
    """

    def rank(rows: NDArray[np.int64]) -> Floats:
        given = None if conditional is None else conditional[rows]
        bits = information_of(answers[rows], ratings[rows], given, correction=correction, seed=seed).bits
        return np.where(np.isnan(bits), np.nan, worth_alone(bits, costs))

    size = len(answers)
    every = rank(np.arange(size))
    best = set(best_alone(every)[:k])
    steps = [_at(m, every, best, rank, resamples, seed, size) for m in default_sizes(size)]
    settled = None
    for step in reversed(steps):
        if step.tau is None or step.tau < STABLE:
            break
        settled = step.m
    return Convergence(tuple(steps), settled)


def default_sizes(size: int) -> list[int]:
    """10, 20, 40, ... and the number of examples itself."""
    sizes = []
    m = _FEWEST
    while m < size:
        sizes.append(m)
        m *= 2
    return [*sizes, size]


def _at(
    m: int,
    every: Floats,
    best: set[int],
    rank: Callable[[NDArray[np.int64]], Floats],
    resamples: int,
    seed: int,
    size: int,
) -> RankingAt:
    rng = np.random.default_rng([seed, m])
    taus, shares, reason = [], [], ""
    for _ in range(resamples):
        bits = rank(rng.integers(0, size, m))
        tau = kendall(bits, every)
        if tau.value is None:
            reason = str(tau.reason)
        else:
            taus.append(tau.value)
        shares.append(len(best.intersection(best_alone(bits)[: len(best)])) / len(best))
    same = float(np.mean(shares))
    if (none := resamples - len(taus)) > MAX_UNDEFINED_SHARE * resamples:
        return RankingAt(
            m, None, None, None, same, f"no ranking to compare on {none} of {resamples} resamples: {reason}"
        )
    low, high = np.quantile(taus, [0.05, 0.95])
    return RankingAt(m, float(np.mean(taus)), float(low), float(high), same, None)
