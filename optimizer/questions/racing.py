"""Candidates raced on more and more of the examples: who can no longer be among the best is not asked about the rest.

Successive halving by rank (Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
AISTATS 2016, section 3). Rejected outputs come first: an effect is what they show beyond accepted ones, whose centre and
spread a few of them tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from .candidates import SAME_VERDICTS, likeness

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Sides = Mapping[str, tuple[list[str], list[str]]]
    """Accepted and rejected examples by dimension, the extremes first."""
    Verdicts = Mapping[str, Mapping[str, float]]
    """Log-odds of yes by question and example."""

SCREENED = 8
"""Accepted examples on which candidates are judged first; rejected ones, where they come from none of them."""
SPARE = 3
"""Candidates that are raced, for each question that may join."""
STEPS = ((0.5, 2.0), (1.0, 1.5))
"""Share of the rejected examples that a step is judged on, and how many candidates are left after it for each question that
may join."""
FEWEST_REJECTED = 6
"""Rejected examples from which a candidate is dropped."""
OF_ONE = 2
"""Questions from the same comment that may join in one round: they find the same outputs, and take others' places."""


@dataclass
class Field:
    """Candidates that are left, the best first, and why the others are not."""

    kept: list[str] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)
    """Of those unused, the question that gets the same verdicts."""


def left_after(step: int, most: int) -> int:
    """Candidates that are left after a step, where ``most`` may join."""
    return round(STEPS[step][1] * most)


def steps(sides: Sides, most: int) -> list[tuple[bool, set[str], int]]:
    """The steps before the last one, which is judged on all examples: whether all rejected ones are seen then, the examples,
    and the number of candidates that are left afterwards.

    Args:
        sides: Accepted and rejected examples by dimension.
        most: Questions that may join.
    """
    found = []
    for step, (share, *_) in enumerate(STEPS):
        part: set[str] = set()
        for fine, poor in sides.values():
            part |= {*fine[:SCREENED], *poor[: max(FEWEST_REJECTED, ceil(share * len(poor)))]}
        found.append((share == 1, part, left_after(step, most)))
    return found


def distinct(
    ranked: Sequence[str],
    logits: Verdicts,
    asked: Verdicts,
    *,
    alike: float,
    room: int,
    full: str,
    stood: Collection[str] = (),
    remarks: Mapping[str, str | None] | None = None,
) -> Field:
    """The best candidates that do not say what a better one says already.

    Args:
        ranked: The candidates, the best first.
        logits: What the judge says with them.
        asked: What it says with the questions that it has.
        alike: Rank correlation of the verdicts from which the weaker of two candidates is left out.
        room: How many are kept.
        full: Said of those that there is no room for.
        stood: Candidates that are kept whatever the others say.
        remarks: The comment that each was made of, where only :data:`OF_ONE` of one comment are kept.
    """
    found = Field()
    for name in ranked:
        mine = {each: likeness(logits[name], logits[each]) for each in found.kept}
        theirs = {each: likeness(logits[name], told) for each, told in asked.items()}
        near, twin = (max(some, key=some.__getitem__, default="") for some in (mine, mine | theirs))
        of_one = remarks is not None and remarks[name] is not None
        if name in stood:
            found.kept.append(name)
        elif twin and (mine | theirs)[twin] > SAME_VERDICTS:
            found.unused[name] = f"it gets the same verdicts as '{twin}'"
            found.twins[name] = twin
        elif near and mine[near] > alike:
            found.unused[name] = f"it finds much the same as '{near}', which promises more"
        elif len(found.kept) >= room:
            found.unused[name] = full
        elif of_one and remarks is not None and [remarks[each] for each in found.kept].count(remarks[name]) >= OF_ONE:
            found.unused[name] = NO_ROOM[2]
        else:
            found.kept.append(name)
    return found


NO_ROOM = (
    "others promised more on the first examples",
    "others promised more on the development examples",
    "others from the same comment promised more",
)
"""Said of candidates that are not asked because better ones are."""
