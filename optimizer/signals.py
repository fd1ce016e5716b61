"""Where what is improved and its reference differ. A mode of the loop is a signal, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ..evaluation.scoring import mean_score
from ..models.base import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..agents.evaluator import Evaluator
    from ..evaluation.scoring import ExampleScore
    from ..prompts.examples import Example
    from ..prompts.lessons import Disagreement
    from ..prompts.verdicts import Verdict
    from .subject import Draft, Observation


@dataclass(frozen=True)
class Reasons:
    """Why each side says what it says, by disagreement key; empty where there are none."""

    mine: Mapping[str, str] = field(default_factory=dict)
    """Of what is improved."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """Of its reference."""


class Signal(Protocol):
    """What the verdicts on the development examples are held against."""

    def agrees(self, seen: Observation) -> bool:
        """Whether it agrees well enough for the loop to stop."""
        ...

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """The (example, question) pairs on which the two sides differ, those to be read first in front."""
        ...

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """What P(yes) should be, in [0, 1]; None where the reference does not say."""
        ...

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Explanations of both sides, bought for these disagreements alone."""
        ...


async def explanations(judge: Evaluator, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[str, str]:
    """A judge's explanations by disagreement key; one that cannot be had is left out, as the notes do without it.

    Raises:
        ModelError: Every further call would fail too.
    """
    found: dict[str, str] = {}
    for verdict in verdicts:
        try:
            explained = await judge.explain([verdict], examples)
        except ModelError as error:
            if error.fatal:
                raise
            continue
        found |= {f"{example}/{question}": text for (example, question), text in explained.items()}
    return found


def disputed(seen: Observation, disagreements: Sequence[Disagreement]) -> list[Verdict]:
    """The verdicts that the disagreements are about."""
    by_key = {(each.example, each.question): each for each in seen.verdicts if each.replicate == 0}
    return [by_key[each.example, each.question] for each in disagreements]


def dimension_means(scores: Sequence[ExampleScore], dimensions: Iterable[str]) -> dict[str, float | None]:
    """Mean score over the examples, by dimension."""
    return {name: mean_score(each.dimensions.get(name) for each in scores) for name in dimensions}


def take_turns(groups: Iterable[Sequence[Disagreement]]) -> list[Disagreement]:
    """The first of every group, then the second of every group, and so on."""
    lists = [list(group) for group in groups]
    return [group[turn] for turn in range(max(map(len, lists), default=0)) for group in lists if turn < len(group)]
