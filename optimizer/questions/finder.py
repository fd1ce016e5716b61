"""Finds questions that some examples may speak for: proposers name candidates, each question once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...memory.embedders import ROUNDING, Embedder, greedy_unique
from ...memory.records import ProposedQuestion
from ...prompts.checklist import Checklist
from ..events import Teller
from ..subject import Draft
from .candidates import id_for, unite
from .choice import Chooser

SAME_MEANING = 0.9
"""Cosine from which two candidates are taken for one before they are judged."""
ENOUGH_FOR_ONE = 1
"""Candidates for each question that may join from which a later proposer is not asked."""


class Proposer(Protocol):
    """Turns evidence into candidates."""

    async def propose(
        self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> list[ProposedQuestion]:
        """New candidates; evidence that was read once is not read again.

        Args:
            best: The judge so far.
            rejected: By dimension, the examples that people like less than most, the least liked first.
            iteration: From 1.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call.
        """
        ...

    def read(self) -> dict[str, Any]:
        """What was read so far, here and in earlier runs, as under ``read`` in ``result.json``."""
        ...

    def has_more(self, best: Draft, rejected: Mapping[str, Sequence[str]]) -> bool:
        """Whether more rounds would read what these have not; the judge and the examples as of :meth:`propose`."""
        ...


@dataclass
class Finder:
    """Finds questions by what people wrote of some examples, or by what their outputs do."""

    chooser: Chooser
    """Knows the examples."""
    embedder: Embedder
    events: Teller
    rounds: int
    """How often a proposer is asked for more at most."""
    proposers: Sequence[Proposer] = ()
    """What promises most first; the next one is asked where there are few candidates."""
    waiting: Sequence[ProposedQuestion] = ()
    """Candidates of earlier runs that are tried once more, beside the first new ones."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Texts of questions that an earlier run tried in vain, with their kind."""
    removed: Sequence[str] = ()
    """Texts of questions that people do not want."""
    beside: Finder | None = None
    """Has found questions from other examples of the same run: the same question has the same id, another one another."""
    found: dict[str, ProposedQuestion] = field(default_factory=dict, init=False)
    """The candidates by their ids."""
    has_more: bool = field(default=False, init=False)
    """Whether some evidence was not read for want of rounds."""
    _spared: set[str] = field(default_factory=set, init=False)
    """Dimensions on which a later proposer was not needed."""

    async def propose(self, best: Draft, iteration: int) -> Mapping[str, ProposedQuestion]:
        """The questions that may be worth asking beside those of ``best``, by their ids; no verdict is asked for.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call.
        """
        rejected = {name: both[1] for name, both in self.chooser.sides().items()}
        if not rejected:
            return {}
        self.events.phase(f"iteration {iteration}: writing questions")
        for proposer in self.proposers:
            if len(self.found) >= ENOUGH_FOR_ONE * self.chooser.most:
                self._spared.update(rejected)
                break
            for _ in range(self.rounds):
                new = await self._new(best, proposer, rejected, iteration)
                self.found |= new
                if not new:
                    break
            self.has_more |= proposer.has_more(best, rejected)
        return self.found

    @property
    def read(self) -> dict[str, list[Any]]:
        """As under ``read`` in ``result.json``."""
        read = {name: value for each in self.proposers for name, value in each.read().items()}
        return read | {"contrasted": sorted({*read.get("contrasted", ()), *self._spared})}

    async def _new(
        self, best: Draft, proposer: Proposer, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> dict[str, ProposedQuestion]:
        """Candidates that were not named before; empty where a proposer has nothing more."""
        while True:  # what was asked before is no reason to leave the rest of the evidence unread
            proposed = await proposer.propose(best, rejected, iteration)
            proposed, self.waiting = [*self.waiting, *proposed], ()
            named = self._named(best.questions, proposed)
            if named or not proposed:
                return named

    def _named(self, checklist: Checklist, proposed: Sequence[ProposedQuestion]) -> dict[str, ProposedQuestion]:
        """Candidates by their new ids, each question once, without those that are or were there."""
        known = {each.text for each in checklist.questions} | {each.text for each in self.found.values()}
        new = [each for each in proposed if each.text not in known and not self._was_dropped(each)]
        new = self._without_removed(new)
        if not new:
            return {}
        near = first_of_meaning(self.embedder.embed([each.text for each in new]))
        beside = {} if self.beside is None else {each.text: name for name, each in self.beside.found.items()}
        taken = {each.id for each in checklist.questions} | set(self.found) | set(beside.values())
        named: dict[str, ProposedQuestion] = {}
        for candidate in unite(new, near):
            named[beside.get(candidate.text) or id_for(candidate.text, taken | set(named))] = candidate
        return named

    def _was_dropped(self, candidate: ProposedQuestion) -> bool:
        """Whether it was tried in vain; one that nobody had asked for is tried again where somebody asks for it."""
        return self.dropped.get(candidate.text) in (candidate.origin, "comment")

    def _without_removed(self, new: Sequence[ProposedQuestion]) -> list[ProposedQuestion]:
        """Without what people removed, in these words or in others that mean the same."""
        if not self.removed or not new:
            return list(new)
        unwanted = self.embedder.embed(self.removed)
        cosines = (self.embedder.embed([each.text for each in new]) @ unwanted.T).max(axis=1)
        for candidate, cosine in zip(new, cosines, strict=True):
            if cosine >= SAME_MEANING - ROUNDING:
                self.events.say(f"not asked, as people removed it from the memory: {candidate.text}")
        return [each for each, cosine in zip(new, cosines, strict=True) if cosine < SAME_MEANING - ROUNDING]


def first_of_meaning(vectors: NDArray[np.float32]) -> dict[int, int]:
    """Of each question the one that it is asked as: itself, or the nearest of those before it that rule it out.

    Args:
        vectors: Unit vectors of the questions, shape (n, dimensions).
    """
    kept = greedy_unique(vectors, SAME_MEANING)
    asked_as = {place: place for place in kept}
    for place in set(range(len(vectors))).difference(kept):
        before = [each for each in kept if each < place]
        asked_as[place] = max(before, key=lambda each: float(vectors[place] @ vectors[each]))
    return asked_as
