"""How often the decision of a migration is right, on pass tables whose truth is known.

Run ``python -m tests.measured.migration_decision`` (an hour of processor time; ``--draws 200`` is a small one). No model
is asked: old and new verdicts are drawn, and :func:`askance.optimizer.migration.decision.decide` decides.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from askance.experiments.command_line import RESULTS, machine, write_result
from askance.optimizer.migration.decision import MigrationDecision, PassChange, PassTable, decide
from askance.stats.noninferiority import SpreadEstimate, examples_needed, measure_spread

RESULT = RESULTS / "migration_decision.json"
DRAWS = 2_000
MAX_LOSS, LEVEL = 0.05, 0.05
CLOSED = float(norm.ppf(1 - LEVEL) + norm.ppf(0.8))
"""Factor of the closed form of the size, (factor * deviation / loss)^2."""


@dataclass(frozen=True)
class Shape:
    """A way in which old and new outputs keep requirements; luck is normal, and parts of it are shared."""

    rates: tuple[float, ...] = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.95, 0.97, 0.98)
    """Chance that the old output keeps each requirement, before whole failures."""
    losses: tuple[float, ...] = ()
    """Chance that the new output loses of each requirement; empty: none."""
    old_ruined: float = 0.0
    """Share of the old outputs that keep nothing, e.g. because they are cut off."""
    new_ruined: float = 0.0
    of_document: float = 0.0
    """Share of the variance of luck that the new outputs on one document share, and the old ones."""
    of_input: float = 0.15
    """Share that both outputs on one input share, in all requirements."""
    of_output: float = 0.15
    """Share that all requirements of one output share."""
    of_rule: float = 0.15
    """Share that both outputs on one input share in one requirement."""
    each: int = 1
    """Examples of a document."""
    missing: tuple[float, float] = (0.0, 0.0)
    """Share of the verdicts that are missing, of requirements that are kept and of those that are failed."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[PassChange, list[str]]:
        """Old and new outputs on ``n`` examples, and the document of each."""
        k, own = len(self.rates), 1 - self.of_document - self.of_input - self.of_output - self.of_rule
        documents = np.arange(n) // self.each
        shared = math.sqrt(self.of_input) * rng.standard_normal((n, 1))
        shared = shared + math.sqrt(self.of_rule) * rng.standard_normal((n, k))
        tables = []
        for rates, ruined in ((np.array(self.rates), self.old_ruined), (self._new_rates, self.new_ruined)):
            luck = shared + math.sqrt(self.of_output) * rng.standard_normal((n, 1))
            luck += math.sqrt(self.of_document) * rng.standard_normal((int(documents[-1]) + 1, 1))[documents]
            passed = (luck + math.sqrt(own) * rng.standard_normal((n, k)) < norm.ppf(rates)).astype(np.float64)
            passed[rng.random(n) < ruined] = 0.0
            kept, failed = self.missing
            passed[rng.random((n, k)) < np.where(passed == 1, kept, failed)] = np.nan
            names = tuple(f"e{place}" for place in range(n))
            tables.append(PassTable(names, tuple(f"r{place}" for place in range(k)), passed))
        return PassChange(*tables), [f"d{place}" for place in documents]

    @property
    def true_difference(self) -> float:
        """Mean pass rate of the new outputs minus that of the old ones, were no verdict missing."""
        old = float(np.mean(self.rates)) * (1 - self.old_ruined)
        return float(np.mean(self._new_rates)) * (1 - self.new_ruined) - old

    @property
    def _new_rates(self) -> NDArray[np.float64]:
        return np.array(self.rates) - (np.array(self.losses) if self.losses else 0.0)

    def losing(self, loss: float) -> Shape:
        """The shape whose new outputs lose so much more on every requirement."""
        losses = self.losses or (0.0,) * len(self.rates)
        return replace(self, losses=tuple(each + loss / (1 - self.new_ruined) for each in losses))

    def spread(self, n: int = 60_000) -> SpreadEstimate:
        """The true spread of the difference."""
        found, documents = self.draw(np.random.default_rng(1), n - n % self.each)
        spread = measure_spread(found.differences(), documents)
        return replace(spread, freedom=math.inf) if spread is not None else SpreadEstimate(0.0)


EQUAL = {
    "ten requirements, kept by .60 to .98": Shape(),
    "eight, kept by .95": Shape(rates=(0.95,) * 8),
    "three": Shape(rates=(0.8, 0.9, 0.95)),
    "one": Shape(rates=(0.9,)),
    "thirty": Shape(rates=tuple(np.linspace(0.6, 0.98, 30))),
    "one output in two ways, all or nothing": Shape(of_input=0.1, of_output=0.6, of_rule=0.1),
    "four outputs in a hundred keep nothing, old and new": Shape(old_ruined=0.04, new_ruined=0.04),
    "new keep nothing in six of a hundred, else a little more": Shape((0.8,) * 8, (-0.05,) * 8, new_ruined=0.05 / 0.85),
    "documents of five": Shape(of_document=0.3, each=5),
    "a tenth of the verdicts is missing": Shape(missing=(0.1, 0.1)),
    "four in a hundred are missing, of failed requirements twice as many": Shape(missing=(0.035, 0.07)),
}
"""Shapes without a loss."""
WORSE = {
    **{name: shape.losing(MAX_LOSS) for name, shape in EQUAL.items()},
    "an old model that keeps all; new keep nothing in five of a hundred": Shape((0.9999,) * 8, new_ruined=0.05),
    "eight, kept by .95; new keep nothing in five of a hundred": Shape((0.95,) * 8, new_ruined=0.05 / 0.95),
    "one of eight loses .40": Shape((0.9,) * 8, (0.4, *(0.0,) * 7)),
}
"""Shapes that lose the margin."""
SINGLE = {
    f"one of eight loses {loss:.2f}, the others gain as much": Shape((0.85,) * 8, (loss, *(-loss / 7,) * 7))
    for loss in (0.15, 0.25, 0.4)
}
"""Shapes whose mean holds and of which one requirement is lost."""
MANY = {
    f"{k} requirements, none lost": Shape(rates=tuple(np.linspace(0.6, 0.98, k))) for k in (10, 30, 60)
} | {
    f"{k} requirements, half lose .05 and half gain it": Shape((0.85,) * k, (0.05, -0.05) * (k // 2)) for k in (10, 30, 60)
}  # fmt: skip
"""Shapes of which no requirement loses more than the margin."""


def share(wanted: Callable[[MigrationDecision], bool], shape: Shape, n: int, draws: int, seed: int = 0) -> float:
    """Share of the decisions on ``n`` examples that are as wanted."""
    rng, n = np.random.default_rng(seed), n - n % -shape.each
    return float(np.mean([wanted(_decided(shape, rng, n)) for _ in range(draws)]))


def _decided(shape: Shape, rng: np.random.Generator, n: int) -> MigrationDecision:
    found, documents = shape.draw(rng, n)
    return decide(found, MAX_LOSS, LEVEL, documents if shape.each > 1 else None)


def adopts(found: MigrationDecision) -> bool:
    """Whether the answer is adopt."""
    return found.answer == "adopt"


def refuses(found: MigrationDecision) -> bool:
    """Whether the answer is not yet."""
    return found.answer == "not_yet"


def planned(shape: Shape, size: int, draws: int) -> dict[str, float]:
    """Equal prompts where the size is planned from ``size`` development examples: mean size over that of the true
    spread, and share adopted."""
    rng, truly = np.random.default_rng(size), examples_needed(shape.spread(), MAX_LOSS, LEVEL)
    sizes, adopted = [], []
    for _ in range(draws):
        found, documents = shape.draw(rng, size)
        needed = examples_needed(measure_spread(found.differences(), documents) or SpreadEstimate(0.3), MAX_LOSS, LEVEL)
        sizes.append(needed)
        adopted.append(adopts(_decided(shape, rng, needed - needed % -shape.each)))
    return {"size": float(np.mean(sizes)) / truly, "adopted": float(np.mean(adopted))}


def undecided_again(shape: Shape, n: int, draws: int) -> dict[str, float]:
    """Share undecided on ``n`` examples, and of those the share that the number they name decides."""
    rng, decided = np.random.default_rng(n), []
    open_ones = [found for found in (_decided(shape, rng, n) for _ in range(draws)) if found.answer == "undecided"]
    for found in open_ones:
        if found.needed is not None:
            decided.append(_decided(shape, rng, min(5_000, found.needed)).answer != "undecided")
    return {"undecided": len(open_ones) / draws, "decided": float(np.mean(decided)) if decided else math.nan}


def _equal(draws: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, shape in EQUAL.items():
        spread = shape.spread()
        n, closed = examples_needed(spread, MAX_LOSS, LEVEL), (CLOSED * spread.deviation / MAX_LOSS) ** 2
        yield (
            name,
            {
                "deviation": spread.deviation,
                "skewness": spread.skewness,
                "n": n,
                "closed_form": closed,
                "adopted": share(adopts, shape, n, draws),
                "adopted_closed_form_times_1.2": share(adopts, shape, math.ceil(1.2 * closed), draws, 1),
            },
        )


def _by_size(
    wanted: Callable[[MigrationDecision], bool], shapes: Mapping[str, Shape], sizes: Sequence[int], draws: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, shape in shapes.items():
        shares = {str(n): share(wanted, shape, n, draws, n) for n in sizes}
        yield name, {"true_difference": shape.true_difference, **shares}


Rows = Iterator[tuple[str, dict[str, Any]]]
PARTS: dict[str, Callable[[int], Rows]] = {
    "equal": _equal,
    "worse_by_the_margin": lambda draws: _by_size(adopts, WORSE, (60, 100, 300), draws),
    "one_requirement_not_yet": lambda draws: _by_size(refuses, SINGLE, (60, 150, 300), draws // 4),
    "false_not_yet": lambda draws: _by_size(refuses, MANY, (60, 300), draws // 4),
    "planned_from_development": lambda draws: (
        (name, {str(size): planned(shape, size, draws // 4) for size in (25, 60)}) for name, shape in EQUAL.items()
    ),
    "undecided_on_60": lambda draws: (
        (name, undecided_again(shape, 60, draws // 4)) for name, shape in list(EQUAL.items())[:4]
    ),
}
"""The parts of the study; those after the second take a quarter of the draws."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw, decide, and keep what it came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=DRAWS, help="pass tables a row")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": f"python -m tests.measured.migration_decision --draws {given.draws}"}
    result |= {"max_loss": MAX_LOSS, "level": LEVEL, **machine(), "cpu_s": 0.0}
    for part in given.parts:
        rows: dict[str, Any] = {}
        for name, figures in PARTS[part](given.draws):
            rows[name] = figures
            print(part, "|", name, "|", figures, flush=True)
            result |= {part: rows, "cpu_s": time.process_time()}
            write_result(given.output, result)


if __name__ == "__main__":
    main()
