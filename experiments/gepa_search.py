"""GEPA's search over our gateway: its own defaults and its own reflection prompt.

Where a verdict is missing GEPA is given 0 here, as its adapter protocol asks, and that is counted (``unscored``); no
figure that is reported is made from these zeros.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..bridges.gepa_adapter import COMPONENT, import_gepa
from ..prompts.errors import BudgetExceededError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..bridges.gepa_adapter import AskanceAdapter
    from ..bridges.gepa_prompt import Reflection
    from ..prompts.examples import Example

logger = logging.getLogger(__name__)

MINIBATCH = 3
"""Examples that GEPA reflects on at once, by default."""


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    guidance: str
    """The candidate with the best mean on validation, as GEPA picks it."""
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """Where a search ends."""

    calls: int
    """No iteration begins after so many calls; one that has begun is finished, as GEPA's own limit has it."""
    hard_calls: int
    """No call is made after so many."""
    rollouts: int
    """GEPA's ``max_metric_calls``."""


def search(
    start: str,
    development: Sequence[Example],
    validation: Sequence[Example],
    adapter: AskanceAdapter,
    reflection: Reflection,
    limits: Limits,
    seed: int,
) -> Found:
    """Run ``gepa.optimize``; everything that is not given here is as GEPA has it.

    Raises:
        MissingExtraError: GEPA is not installed.
        AskanceError: An endpoint is down or refuses every call.
    """
    gepa = import_gepa("gepa")
    budget, halt = reflection.gateway.budget, adapter.halt

    def enough(state: Any) -> bool:
        return halt.error is not None or budget.calls >= limits.calls

    budget.max_calls = limits.hard_calls
    try:
        result = gepa.optimize(
            {COMPONENT: start},
            trainset=list(development),
            valset=list(validation),
            adapter=adapter,
            reflection_lm=reflection,
            max_metric_calls=limits.rollouts,
            stop_callbacks=enough,
            logger=_Log(),
            seed=seed,
            raise_on_exception=False,  # one that ends the search is in `halt`, and what was found is kept
        )
    finally:
        budget.max_calls = None
    if halt.error is not None and not isinstance(halt.error, BudgetExceededError):
        raise halt.error
    counts = adapter.counts
    return Found(
        result.best_candidate[COMPONENT],
        {
            "metric": adapter.metric.name,
            "finish_reason": "calls" if budget.calls >= limits.calls else "max_metric_calls",
            "limits": vars(limits),
            "calls": budget.calls,
            "tokens": budget.tokens,
            "reused": budget.cached_calls,
            **vars(counts),
            "accepted_candidates": len(result.candidates) - 1,
            "best_candidate": result.best_idx,
            "own_validation_scores": list(result.val_aggregate_scores),
        },
    )


class _Log:
    """GEPA's log goes where ours goes."""

    def log(self, message: str) -> None:
        logger.info("%s", message)
