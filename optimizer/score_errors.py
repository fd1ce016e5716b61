"""How far scores are from the wanted ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .scoring import mean_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .scoring import ExampleScore
    from .targets import Targets


@dataclass(frozen=True, slots=True)
class ScoreErrors:
    """How far scores are from the wanted ones, over the examples that have both."""

    mean_absolute: float | None
    """Mean of |score - wanted|, in [0, 1]."""
    drift: float | None
    """Mean score minus mean wanted score, in [-1, 1]; negative is too severe."""
    n: int
    """Examples with both."""
    reason: str | None = None
    """Why there is no number."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        row: dict[str, Any] = {"mean_absolute": self.mean_absolute, "drift": self.drift, "n": self.n}
        return row | {"reason": self.reason} if self.reason else row


def overall_errors(scores: Sequence[ExampleScore], targets: Targets) -> ScoreErrors:
    """Of the score over all wanted dimensions."""
    return _errors((targets.score(each), targets.overall(each.example)) for each in scores)


def dimension_errors(scores: Sequence[ExampleScore], targets: Targets) -> dict[str, ScoreErrors]:
    """On each wanted dimension."""
    return {
        name: _errors((targets.dimension_score(each, name), targets.wanted[each.example].get(name)) for each in scores)
        for name in targets.dimensions
    }


def _errors(pairs: Iterable[tuple[float | None, float | None]]) -> ScoreErrors:
    """Of pairs of a score and the wanted one."""
    errors = [score - wanted for score, wanted in pairs if score is not None and wanted is not None]
    reason = None if errors else "no example has both a score and a wanted score"
    return ScoreErrors(mean_score(map(abs, errors)), mean_score(errors), len(errors), reason)
