"""What models took, in words for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def count(value: int, what: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{value:,} {what}{'' if value == 1 else 's'}"


def spending(calls: int, reused: int, tokens: int, dollars: float) -> str:
    """What was bought and what was there already, e.g. ``12 calls, 1 answer reused, 3,400 tokens, $0.0021``."""
    return f"{count(calls, 'call')}, {count(reused, 'answer')} reused, {count(tokens, 'token')}, ${dollars:.4f}"


def spending_of(result: Mapping[str, Any]) -> str:
    """The same, from the figures that stand in every result file."""
    return spending(*(result[name] for name in ("calls", "cached_calls", "tokens", "cost_usd")))
