"""Decide whether new outputs are no worse than the old ones: pass or fail by requirement, compared output by output.

A requirement that the old output keeps and the new one fails is a regression; the reverse is a gain. The decision looks
at the mean of the differences and at each requirement. The loss that a test can rule out is said before anything is
bought, and again from the development examples (METHOD.md, part 6).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...memory.certificate_file import PowerRecord
from ...prompts.checklist import Checklist
from ...prompts.formatting import count, names_text
from ...prompts.verdicts import Verdict
from ...stats.correlation import Column
from ...stats.differences import holm
from ...stats.noninferiority import (
    MeanLimits,
    SpreadEstimate,
    examples_needed,
    loss_ruled_out,
    mean_limits,
    measure_spread,
    p_worse,
)

Answer = Literal["adopt", "not_yet", "undecided"]
POWER = 0.8
"""Share of equally good prompts that a test with enough outputs adopts."""


class Cell(NamedTuple):
    """One requirement of one example."""

    example: str
    requirement: str


@dataclass(frozen=True)
class PassTable:
    """Whether outputs keep requirements: 1, 0, or NaN without a verdict; shape (examples, requirements)."""

    examples: tuple[str, ...]
    requirements: tuple[str, ...]
    passed: NDArray[np.float64]

    @classmethod
    def of(cls, examples: Sequence[str], checklist: Checklist, verdicts: Iterable[Verdict]) -> PassTable:
        """Make the table from the verdicts on a checklist; only the first replicate counts."""
        rows = {name: place for place, name in enumerate(examples)}
        columns = {each.id: (place, each) for place, each in enumerate(checklist.questions)}
        passed = np.full((len(rows), len(columns)), np.nan)
        for verdict in verdicts:
            if verdict.replicate == 0 and verdict.example in rows and verdict.question in columns:
                place, question = columns[verdict.question]
                good = question.is_good(verdict.answer)
                passed[rows[verdict.example], place] = np.nan if good is None else float(good)
        return cls(tuple(examples), tuple(columns), passed)

    def rates(self) -> list[float | None]:
        """Return the share of the requirements that each output keeps; None without any verdict."""
        return _row_means(self.passed)

    def cells(self, wanted: NDArray[np.bool_]) -> list[Cell]:
        """Return the cells of a mask, by example."""
        return [
            Cell(self.examples[int(row)], self.requirements[int(column)])
            for row, column in np.argwhere(wanted).tolist()
        ]


def _row_means(table: NDArray[np.float64]) -> list[float | None]:
    """Return the mean of the known values of each row; None where there are none."""
    counts, sums = np.isfinite(table).sum(axis=1), np.nansum(table, axis=1)
    return [float(total / n) if n else None for n, total in zip(counts, sums, strict=True)]


@dataclass(frozen=True)
class PassChange:
    """New outputs beside the old ones, on the same examples and requirements."""

    old: PassTable
    new: PassTable

    @property
    def changes(self) -> NDArray[np.float64]:
        """New minus old by cell: -1 a regression, 1 a gain; NaN where a verdict is missing."""
        return self.new.passed - self.old.passed

    @property
    def regressions(self) -> list[Cell]:
        """Requirements that the old output keeps and the new one fails."""
        return self.old.cells(self.changes == -1)

    @property
    def gains(self) -> list[Cell]:
        """Requirements that the old output fails and the new one keeps."""
        return self.old.cells(self.changes == 1)

    @property
    def both_fail(self) -> list[Cell]:
        """Requirements that neither output keeps."""
        return self.old.cells((self.old.passed == 0) & (self.new.passed == 0))

    def differences(self) -> list[float | None]:
        """Return by example the new output's pass rate minus the old one's, over requirements judged on both."""
        return _row_means(self.changes)


@dataclass(frozen=True)
class MigrationDecision:
    """The decision by one look at the test."""

    answer: Answer
    reason: str
    """One sentence."""
    limits: MeanLimits
    worse: tuple[str, ...]
    """Requirements that are proved worse by more than the margin, the worst first."""
    needed: int | None = None
    """Outputs that would decide. None if the answer is clear, the mean too near -max_loss, or too few were judged."""


def decide(found: PassChange, max_loss: float, level: float, groups: Sequence[str] | None = None) -> MigrationDecision:
    """Decide: adopt, not yet, or undecided (METHOD.md, part 6).

    A prompt is adopted if its mean loss is shown to be at most ``max_loss`` and no requirement is proved worse by more
    than that (Holm's correction over requirements). Each limit is wrong with a chance of ``level``. ``groups`` names
    the document of each example.
    """
    limits = mean_limits(found.differences(), level, groups)
    columns = [list(column) for column in np.where(np.isnan(found.changes), None, found.changes).T]  # type: ignore[call-overload]
    # with a single requirement only the limits of the mean decide: they are stricter
    proved = holm([p_worse(column, max_loss, groups) if len(columns) > 1 else None for column in columns])
    losses = [each or 0.0 for each in _row_means(found.changes.T)]
    worse = [place for place, p_value in enumerate(proved) if p_value is not None and p_value <= level]
    names = tuple(found.old.requirements[place] for place in sorted(worse, key=lambda place: losses[place]))
    if limits.value is None or limits.low is None or limits.high is None:
        few = f"too few outputs were judged ({count(limits.units, 'document')})"
        return MigrationDecision("undecided", f"Undecided: {few}.", limits, names)
    seen = f"mean difference {limits.value:+.3f}, between {limits.low:+.3f} and {limits.high:+.3f}"
    if limits.high < -max_loss:
        return MigrationDecision("not_yet", f"Not yet: it loses more than {max_loss:g} ({seen}).", limits, names)
    if names:
        return MigrationDecision(
            "not_yet", f"Not yet: clearly worse on {names_text(names)} ({seen} over all).", limits, names
        )
    if limits.low > -max_loss:
        return MigrationDecision("adopt", f"Adopt: it loses at most {max_loss:g} ({seen}).", limits, ())
    more = outputs_that_decide(limits, max_loss, level)
    tail = "" if more is None else f"; about {count(more, 'output')} would decide"
    return MigrationDecision(
        "undecided", f"Undecided: a loss of {max_loss:g} cannot be ruled out ({seen}){tail}.", limits, (), more
    )


def outputs_that_decide(limits: MeanLimits, max_loss: float, level: float) -> int | None:
    """Return how many outputs decide in 8 of 10 cases if the mean stays as it is; None if it is too near -max_loss."""
    if limits.value is None or limits.deviation is None:
        return None
    distance = abs(limits.value + max_loss)
    if distance < 0.1 * max_loss:
        return None
    spread = SpreadEstimate(limits.deviation, together=limits.n / limits.units)
    # these outputs did not decide, so at least one more is needed
    return max(limits.n + 1, examples_needed(spread, distance, level, POWER))


ASSUMED = SpreadEstimate(0.3)
"""Assumed spread of the paired difference where nothing is measured yet."""


def power_lines(
    test_examples: int,
    max_loss: float,
    level: float,
    development: Column | None = None,
    documents: Sequence[Hashable] | None = None,
) -> list[PowerRecord]:
    """Return the loss that ``test_examples`` rule out in 8 of 10 cases if there is no loss.

    The first record uses the assumed deviation. The second uses the deviation measured on ``development`` (differences
    of the pass rate, new minus old), where it is given.
    """
    spread = None if development is None else measure_spread(development, documents)
    return [
        PowerRecord(
            examples=test_examples,
            deviation=each.deviation,
            assumed=each is ASSUMED,
            loss=loss_ruled_out(test_examples, each, level),
            needed=examples_needed(each, max_loss, level),
            needed_most=None if each is ASSUMED else examples_needed(each.most, max_loss, level),
        )
        for each in (ASSUMED, spread)
        if each is not None
    ]


def power_said(found: PowerRecord, max_loss: float) -> str:
    """Say whether the test can rule out ``max_loss``, or else which loss it can and how many rows it takes."""
    rows = count(found.examples, "test row")
    basis = (
        f"assuming a standard deviation of {found.deviation:.2g}"
        if found.assumed
        else (f"by the standard deviation on development, {found.deviation:.2f}")
    )
    if found.examples >= found.needed:
        return f"With {rows} a loss of {max_loss:g} is ruled out in 8 of 10 cases where there is none ({basis})."
    most = "" if found.needed_most is None else f", at most {found.needed_most:,}"
    return (
        f"With {rows} only a loss of {found.loss:.2f} or more can be ruled out in 8 of 10 cases where there is none; "
        f"a loss of {max_loss:g} takes about {found.needed:,}{most} ({basis})."
    )
