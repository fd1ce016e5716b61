"""Ordinal labels: the steps that the page offers in place of pass and fail, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..prompts.errors import InputError

MOST = 10
"""Steps of a label at most: each has a key."""


@dataclass(frozen=True)
class LabelSteps:
    """Steps of a label from worst to best: whole numbers, or words that count from 1."""

    values: tuple[float, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, scale: tuple[float, float] | None, words: Sequence[str] | None) -> LabelSteps | None:
        """The words, or the whole numbers from the worst to the best of ``scale``; None where neither is given. Raises
        InputError where the ends are no whole numbers, or there are too many steps."""
        if words is not None:
            values, names = [float(place) for place in range(1, len(words) + 1)], list(words)
        elif scale is not None:
            worst, best = scale
            if worst % 1 or best % 1:
                raise InputError(
                    f"human_scale: labels are whole steps, and {worst:g} to {best:g} are no whole numbers."
                )
            ascending = range(int(min(scale)), int(max(scale)) + 1)
            values = [float(each) for each in (ascending if worst < best else reversed(ascending))]
            names = [f"{each:g}" for each in values]
        else:
            return None
        if len(values) > MOST:
            raise InputError(f"There are {len(values)} steps of a label, and the page offers {MOST} at most.")
        return cls(tuple(values), tuple(names))

    def value(self, said: Any) -> float | None:
        """The number of a step, given as a number or as a word in any case; None where it is none."""
        if isinstance(said, str):
            plain = [name.casefold() for name in self.names]
            word = said.strip().casefold()
            return self.values[plain.index(word)] if word in plain else None
        return float(said) if not isinstance(said, bool) and said in self.values else None


def half(rating: float, steps: LabelSteps | None) -> bool | None:
    """Whether a rating, or a mean of several, is in the better half of its steps; None where it is in the middle.

    Without steps ratings are labels, 0 and 1.
    """
    worst, best = (0.0, 1.0) if steps is None else (steps.values[0], steps.values[-1])
    middle = (worst + best) / 2
    return None if rating == middle else (rating > middle) == (best > worst)
