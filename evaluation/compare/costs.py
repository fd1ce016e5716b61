"""The cost of a judge, alone and with an empty store: once, for each example, and compared with another judge (EIG
paper §4.2 and A.13)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...prompts.formatting import Figure, count

if TYPE_CHECKING:
    from ...models.budget import Budget


UNKNOWN = "unknown: too many calls failed"
FAILED = 0.05
"""Share of failed calls above which a judge's cost is not known, because failed calls cost no tokens."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, tokens and money, wherever the answers came from."""

    calls: int
    tokens: int
    cost_usd: float | None
    """None where a price is not known."""

    def __sub__(self, other: Spent) -> Spent:
        unknown = self.cost_usd is None or other.cost_usd is None
        dollars = None if unknown else (self.cost_usd or 0.0) - (other.cost_usd or 0.0)
        return Spent(self.calls - other.calls, self.tokens - other.tokens, dollars)


def spent(budget: Budget) -> Spent:
    """Calls, tokens and money that a budget has counted so far."""
    return Spent(budget.calls, budget.tokens, budget.cost_usd)


@dataclass(frozen=True)
class Costs:
    """Cost of a judge, as if it were alone and nothing were in the store."""

    upfront: Spent
    """Spent once: writing and choosing questions."""
    calls: float
    """Calls per example; tokens and US dollars are per example too."""
    tokens: float
    cost_usd: float | None
    examples: int
    """Examples of this comparison, which share what is spent once."""

    @property
    def amortised_tokens(self) -> float:
        """Upfront tokens / N + tokens per example (EIG paper §4.2)."""
        return self.upfront.tokens / self.examples + self.tokens

    @property
    def amortised_cost_usd(self) -> float | None:
        """Upfront US dollars / N + US dollars per example."""
        if self.cost_usd is None or self.upfront.cost_usd is None:
            return None
        return self.upfront.cost_usd / self.examples + self.cost_usd

    @property
    def equivalent_examples(self) -> float | None:
        """Number of examples that could be rated for the upfront tokens, the paper's break-even (Table 11)."""
        return self.upfront.tokens / self.tokens if self.tokens else None

    def break_even(self, first: Costs) -> int | None:
        """Return the number of examples from which the judge takes no more tokens than the first; None if never."""
        saved, ahead = first.tokens - self.tokens, self.upfront.tokens - first.upfront.tokens
        if saved > 0:
            return max(1, math.ceil(ahead / saved - 1e-9))
        return 1 if saved == 0 and ahead <= 0 else None

    def cheaper_than(self, first: Costs) -> str:
        """Say for how many examples the judge takes fewer tokens than the first, e.g. ``from 12 examples on``."""
        upfront_gap, example_gap = self.upfront.tokens - first.upfront.tokens, self.tokens - first.tokens
        if not upfront_gap and not example_gap:
            return "as dear"
        if (start := self.break_even(first)) is not None:
            return "always" if start == 1 else f"from {start:,} examples on"
        until = math.ceil(-upfront_gap / example_gap) - 1 if example_gap > 0 else 0
        return f"up to {count(until, 'example')}" if until > 0 else "never"

    def to_dict(self, first: Costs) -> dict[str, Any]:
        """Return the costs for the JSON result; ``first`` are those of the first judge."""
        return {
            "upfront": asdict(self.upfront),
            "per_example": {"calls": self.calls, "tokens": self.tokens, "cost_usd": self.cost_usd},
            "amortised_tokens": self.amortised_tokens,
            "amortised_cost_usd": self.amortised_cost_usd,
            "equivalent_examples": self.equivalent_examples,
            "break_even": self.break_even(first),
        }


def is_costed(coverage: Mapping[str, Any]) -> bool:
    """Return whether enough of a judge's calls succeeded to compare its tokens with another judge's."""
    asked, answered = coverage["asked"], coverage["asked"] - coverage["api_errors"]
    return bool(answered > 0 and answered >= (1 - FAILED) * asked)


def cost_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a judge's row of the table of costs, from its row of a result file."""
    cost = row["cost"]
    dollars = cost["per_example"]["cost_usd"]
    return {
        "judge": row["judge"],
        "$": Figure(dollars, form=".2g") if dollars else "unknown" if dollars is None else None,
        "upfront tokens": cost["upfront"]["tokens"],
        "amortised tokens": Figure(cost["amortised_tokens"], form=",.0f"),
        "cheaper than the first": row.get("cheaper_than_first"),
    }
