"""What judging would take, as far as that can be known before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .asking import in_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..models.gateway import AnswerStore
    from .asking import Ask


@dataclass(frozen=True)
class Estimate:
    """What judging would take."""

    verdicts: int
    calls: int
    """Calls that would be bought; answers already in the store are not among them."""
    stored: int
    """Answers that need no call: in the store already, or the same request as an earlier one."""
    tokens: int
    """Prompt and completion tokens of those calls: a quarter of the characters, plus the longest answers."""

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.verdicts + other.verdicts,
            self.calls + other.calls,
            self.stored + other.stored,
            self.tokens + other.tokens,
        )


def estimate_asks(asks: Iterator[Ask], verdicts: int, store: AnswerStore | None) -> Estimate:
    """What asks for so many verdicts would buy now, if every answer can be read and is kept."""
    stored = calls = tokens = 0
    counted: set[bytes] = set()
    for block in in_blocks(asks):
        found = store.get_many([ask.key for ask in block]) if store is not None else {}
        for ask in block:
            if ask.key in found or ask.key in counted:
                stored += 1
            else:
                calls += 1
                counted.add(ask.key)
                length = len(ask.framing.system or "") + len(ask.framing.before) + len(ask.rest)
                tokens += length // 4 + ask.parameters.max_tokens
    return Estimate(verdicts, calls, stored, tokens)
