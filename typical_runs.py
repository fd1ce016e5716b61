"""Calls, tokens and dollars of a typical run, from runs that were measured (``docs/results/learning.md``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from .agents.buying import Estimate
from .optimizer.job import Job
from .optimizer.options import AlignOptions

Range = tuple[float, float]
"""The lower and the upper end."""


@dataclass(frozen=True)
class PriceClass:
    """US dollars for a million tokens that are sent to a model, and for a million that it writes."""

    name: str
    sent: float
    written: float

    def of(self, tokens: float, written: float) -> float:
        """Dollars for ``tokens``, ``written`` of which, as a share, the model writes."""
        return tokens * ((1 - written) * self.sent + written * self.written) / 1e6


PRICE_CLASSES = (PriceClass("small", 0.15, 0.60), PriceClass("middle", 1, 4), PriceClass("large", 3, 15))
"""Round list prices of hosted models in three sizes."""
PRICES_AS_OF = "May 2026"


@dataclass(frozen=True)
class MeasuredRuns:
    """What measured runs of one kind took."""

    calls: Range
    """Calls for each call of the yardstick. It is one call an example where questions are learned; otherwise it is
    judging, or writing, all outputs with the starting prompt."""
    tokens: Range
    """Tokens for each token of the yardstick."""
    written: float
    """Share of the tokens that models wrote."""
    basis: str


EACH = MeasuredRuns(
    (30, 80), (30, 120), 0.02, "one question a call: 36 of 44 measured runs on 150 or 300 outputs, a third commented"
)
TOGETHER = MeasuredRuns(
    (7.5, 10), (30, 37), 0.2, "up to eight questions a call: simulated runs on 150 outputs, two thirds commented"
)
UNCOMMENTED = MeasuredRuns(
    (4.5, 16), (4.5, 24), 0.02, "one question a call: all twelve measured runs on 150 outputs without comments"
)
JUDGE_EDITS = MeasuredRuns(
    (1.2, 1.5), (1.2, 1.5), 0.02, "edits of a judge's prompt: all five measured runs on 60 or 120 examples"
)
WRITER_EDITS = MeasuredRuns(
    (1.3, 1.9), (1.3, 1.9), 0.4, "edits of a generator's prompt: all three measured runs on 40 or 70 examples"
)
MOVED = MeasuredRuns(
    (2.3, 2.5), (1.8, 2.4), 0.4, "held to checks alone, one iteration: both measured runs on 114 inputs"
)


@dataclass(frozen=True)
class TypicalRun:
    """Calls and tokens that a run typically takes, where nothing is stored yet."""

    calls: Range
    tokens: Range
    written: float
    """Share of the tokens that models write."""
    basis: str

    @classmethod
    def like(cls, measured: MeasuredRuns, calls: float, tokens: float) -> Self:
        """Scale measured runs by the calls and tokens of their yardstick."""
        low, high = measured.calls
        least, most = measured.tokens
        return cls((calls * low, calls * high), (tokens * least, tokens * most), measured.written, measured.basis)

    def __add__(self, other: TypicalRun) -> TypicalRun:
        calls = (self.calls[0] + other.calls[0], self.calls[1] + other.calls[1])
        tokens = (self.tokens[0] + other.tokens[0], self.tokens[1] + other.tokens[1])
        return TypicalRun(calls, tokens, self.written, self.basis)

    def dollars(self, price: PriceClass) -> Range:
        """The dollars at a price."""
        low, high = self.tokens
        return price.of(low, self.written), price.of(high, self.written)

    def record(self) -> dict[str, Any]:
        """The figures for ``--json``."""
        calls, tokens = [[_rounded(each) for each in ends] for ends in (self.calls, self.tokens)]
        cost = {each.name: self.dollars(each) for each in PRICE_CLASSES}
        return {"calls": calls, "tokens": tokens, "cost_usd": cost, "basis": self.basis}


def typical_runs(job: Job, whole: Estimate) -> tuple[TypicalRun, ...]:
    """Return what a run typically takes, one entry for each way in which the judge may be asked.

    ``whole`` is judging all examples with the starting prompt, with nothing stored. There is no entry for the papers'
    loop, since none was measured, nor for a run that only calibrates, since it takes just this judging.
    """
    options, calls = job.options, whole.calls + whole.stored
    if options.paper or not whole.calls or (isinstance(options, AlignOptions) and options.calibrate):
        return ()
    tokens = whole.tokens / whole.calls  # of one call
    if not isinstance(options, AlignOptions) or options.update not in ("auto", "questions"):
        edits = JUDGE_EDITS if job.is_judge else WRITER_EDITS
        return (TypicalRun.like(edits, calls, calls * tokens),)
    examples = len(job.examples)
    if not any(each.comment for each in job.examples):
        return (TypicalRun.like(UNCOMMENTED, examples, examples * tokens),)
    ways = {"each": [EACH], "batched": [TOGETHER]}.get(options.mode, [EACH, TOGETHER])
    return tuple(TypicalRun.like(way, examples, examples * tokens) for way in ways)


def typical_lines(runs: Sequence[TypicalRun]) -> list[str]:
    """Sentences about typical runs, for a person."""
    lines = []
    for each in runs:
        record = each.record()
        calls, tokens = ["{:,} to {:,}".format(*record[name]) for name in ("calls", "tokens")]
        cost = ", ".join(
            "${:,.2f} to ${:,.2f} with a ".format(*each.dollars(price))
            + f"{price.name} model (${price.sent:g} in, ${price.written:g} out)"
            for price in PRICE_CLASSES
        )
        lines.append(f"Typically {calls} calls with {tokens} tokens ({each.basis}): {cost}.")
    return [*lines, f"Prices in brackets: a million tokens, {PRICES_AS_OF}."] if lines else []


def typical_record(runs: Sequence[TypicalRun]) -> dict[str, Any]:
    """Typical runs and the prices of the classes, for ``--json``."""
    prices = {each.name: {"sent": each.sent, "written": each.written} for each in PRICE_CLASSES}
    return {"typical": [each.record() for each in runs], "prices_usd": {"as_of": PRICES_AS_OF, **prices}}


def _rounded(value: float) -> int:
    """Round to two figures, since no more are known."""
    return int(float(f"{value:.2g}"))


def together(first: Sequence[TypicalRun], others: Sequence[TypicalRun]) -> tuple[TypicalRun, ...]:
    """Add the runs of the same kind, where several runs are made at once."""
    sums = {each.basis: each for each in first}
    for each in others:
        sums[each.basis] = sums[each.basis] + each if each.basis in sums else each
    return tuple(sums.values())
