"""How often the decision of a migration is right, on pass tables whose truth is known.

Run ``python -m tests.measured.migration_decision`` (some minutes of processor time; ``--draws 400`` is a small one).
No model is asked: old and new verdicts are drawn, and :func:`askance.optimizer.migration.decision.decide` decides.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from askance.experiments.command_line import RESULTS, machine, write_result
from askance.optimizer.migration.decision import Answer, PassChange, PassTable, decide
from askance.stats.noninferiority import examples_needed, mean_limits

RESULT = RESULTS / "migration_decision.json"
DRAWS = 2_000
MAX_LOSS, LEVEL = 0.05, 0.05
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """A way in which old and new outputs keep requirements."""

    rates: tuple[float, ...] = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.95, 0.97, 0.98)
    """Chance that the old output keeps each requirement, before whole failures."""
    losses: tuple[float, ...] = ()
    """Chance that the new output loses of each requirement; empty: none."""
    old_ruined: float = 0.0
    """Share of the old outputs that keep nothing, e.g. because they are cut off."""
    new_ruined: float = 0.0
    of_document: float = 0.0
    """Share of the variance of luck that all outputs on one document share."""
    of_input: float = 0.15
    """Share of the variance of luck that both outputs on one input share, in all requirements."""
    of_output: float = 0.15
    """Share that all requirements of one output share."""
    of_rule: float = 0.15
    """Share that both outputs on one input share in one requirement."""
    each: int = 1
    """Examples of a document."""
    missing: float = 0.0
    """Share of the verdicts that are missing; of failed requirements twice as many as of kept ones."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[PassChange, list[str]]:
        """Old and new outputs on ``n`` examples, and the document of each."""
        k, own = len(self.rates), 1 - self.of_document - self.of_input - self.of_output - self.of_rule
        documents = np.arange(n) // self.each
        document = rng.standard_normal((int(documents[-1]) + 1, 1))[documents]
        shared = math.sqrt(self.of_document) * document + math.sqrt(self.of_input) * rng.standard_normal((n, 1))
        shared = shared + math.sqrt(self.of_rule) * rng.standard_normal((n, k))
        tables = []
        for losses, ruined in (((), self.old_ruined), (self.losses, self.new_ruined)):
            rates = np.array(self.rates) - (np.array(losses) if losses else 0.0)
            luck = shared + math.sqrt(self.of_output) * rng.standard_normal((n, 1))
            passed = (luck + math.sqrt(own) * rng.standard_normal((n, k)) < norm.ppf(rates)).astype(np.float64)
            passed[rng.random(n) < ruined] = 0.0
            lost = rng.random((n, k)) < self.missing * np.where(passed == 1, 1.0, 2.0)
            passed[lost] = np.nan
            names = tuple(f"e{place}" for place in range(n))
            tables.append(PassTable(names, tuple(f"r{place}" for place in range(k)), passed))
        return PassChange(*tables), [f"d{place}" for place in documents]

    @property
    def true_difference(self) -> float:
        """Mean pass rate of the new outputs minus that of the old ones, without missing verdicts."""
        return float(np.mean(self._new) - np.mean(np.array(self.rates) * (1 - self.old_ruined)))

    @property
    def _new(self) -> Vector:
        return (np.array(self.rates) - (np.array(self.losses) if self.losses else 0.0)) * (1 - self.new_ruined)

    def losing(self, loss: float) -> Shape:
        """The shape whose new outputs lose so much more on every requirement."""
        losses = self.losses or (0.0,) * len(self.rates)
        return replace(self, losses=tuple(each + loss / (1 - self.new_ruined) for each in losses))

    def deviation(self, n: int = 60_000) -> float:
        """Standard deviation of the difference that independent examples would need for the same certainty."""
        found, documents = self.draw(np.random.default_rng(1), n)
        return mean_limits(found.differences(), LEVEL, documents).deviation or 0.0


def answers(shape: Shape, n: int, draws: int, seed: int = 0) -> dict[Answer, float]:
    """Share of each answer on ``n`` examples."""
    rng, counts = np.random.default_rng(seed), dict[Answer, float](adopt=0, not_yet=0, undecided=0)
    for _ in range(draws):
        counts[decide(*_looked_at(shape, rng, n)).answer] += 1 / draws
    return counts


def _looked_at(shape: Shape, rng: np.random.Generator, n: int) -> tuple[PassChange, float, float, list[str]]:
    found, documents = shape.draw(rng, n)
    return found, MAX_LOSS, LEVEL, documents
