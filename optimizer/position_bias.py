"""Whether a judge's choice between two outputs depends on which of them it is shown first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..agents.pairwise import AS_IT_IS, SWAPPED, pair_id
from ..evaluation.scoring import complete_mean, mean_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..prompts.checklist import Checklist


@dataclass(frozen=True)
class OrderEffect:
    """What the order of the outputs did to one test, or to all."""

    mean_p_first: float | None
    """Mean probability that the output shown first is called the better one; 0.5 without bias where every pair is
    shown in both orders. None where no choice is there."""
    both_orders: int
    """Comparisons that were made in both orders."""
    depend: int
    """Those of them whose winner is not the same in both orders; no winner (0.5) in one of them is another winner."""

    @property
    def share(self) -> float | None:
        """Share of the comparisons whose winner depends on the order; None where none was made in both."""
        return self.depend / self.both_orders if self.both_orders else None

    def to_dict(self) -> dict[str, Any]:
        """As in ``weights.json``."""
        return {
            "mean_p_first": self.mean_p_first,
            "both_orders": self.both_orders,
            "depend_on_order": self.depend,
            "share_depends": self.share,
        }


@dataclass(frozen=True)
class PositionBias:
    """What the order of the outputs did."""

    swapped: bool
    """Whether the pairs were shown in both orders."""
    overall: OrderEffect
    """Over all comparisons of all tests."""
    by_test: Mapping[str, OrderEffect]
    by_pair: OrderEffect
    """Over pairs, whose winner is that of the mean over all tests."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``weights.json``."""
        reason = None if self.overall.both_orders else _no_share(self)
        tests = {test: effect.to_dict() for test, effect in self.by_test.items()}
        pairs = self.by_pair.to_dict()
        return {"swapped": self.swapped, **self.overall.to_dict(), "reason": reason, "pairs": pairs, "tests": tests}

    def sentences(self) -> list[str]:
        """The same in words."""
        effect = self.overall
        if effect.mean_p_first is None:
            return [f"Nothing can be said about position bias: {_no_share(self)}."]
        first = f"The output shown first is called the better one with a mean probability of {effect.mean_p_first:.2f}"
        pairs = f"{self.by_pair.depend} of {self.by_pair.both_orders}"
        if effect.share is None:
            return [f"{first}. Whether the order decides is not known: {_no_share(self)}."]
        return [
            f"{first} (0.50 without position bias); in {effect.share:.0%} of the {effect.both_orders} comparisons made "
            f"in both orders the winner depends on the order, and so it does in {pairs} pairs by the mean over all tests. "
            "Scores are the means of both orders."
        ]


def position_bias(
    pairs: Sequence[str], checklist: Checklist, p_first: Mapping[tuple[str, str], float | None], *, swap: bool
) -> PositionBias:
    """Compare the choices made in both orders.

    Args:
        pairs: Their ids.
        checklist: The tests.
        p_first: By id of an order (see :func:`~askance.agents.pairwise.pair_id`) and test: how likely the output
            shown first is called the better one; None where no answer came.
        swap: Whether the pairs were shown in both orders.
    """
    orders = (AS_IT_IS, SWAPPED) if swap else (AS_IT_IS,)
    tests = [question.id for question in checklist.questions]
    by_test = {test: [[p_first[pair_id(pair, order), test] for order in orders] for pair in pairs] for test in tests}
    by_pair = [
        [complete_mean([p_first[pair_id(pair, order), test] for test in tests]) for order in orders] for pair in pairs
    ]
    everything = [choices for comparisons in by_test.values() for choices in comparisons]
    effects = {test: _effect(comparisons) for test, comparisons in by_test.items()}
    return PositionBias(swap, _effect(everything), effects, _effect(by_pair))


def _effect(comparisons: Iterable[Sequence[float | None]]) -> OrderEffect:
    """The effect over comparisons: P(first) with output a first and, where made, with output b first."""
    comparisons = list(comparisons)
    both = [(p[0], p[1]) for p in comparisons if len(p) == 2 and p[0] is not None and p[1] is not None]
    depend = sum(_winner(as_it_is) != _winner(1.0 - swapped) for as_it_is, swapped in both)
    mean = mean_score(p for pair in both for p in pair) if both else mean_score(p for each in comparisons for p in each)
    return OrderEffect(mean, len(both), depend)


def _winner(p_a: float) -> str | None:
    return "a" if p_a > 0.5 else "b" if p_a < 0.5 else None


def _no_share(bias: PositionBias) -> str:
    return "no comparison has an answer in both orders" if bias.swapped else "--swap shows each pair in both orders"
