"""The learner: from people's comments to a checklist that finds what they spoke of (METHOD part 4), and its proof.

The proof is cross-fitted: questions that were learned from the development examples are tested on validation, as always, and
questions that are learned from validation in the same way on the development examples. Every example tests a judge that
it has taught nothing, and the acceptance test has twice as many of them to decide by. What is kept is learned from all (the idea of
Chernozhukov et al., "Double/debiased machine learning", Econometrics Journal 21, 2018, section 3). The test examples stay unseen.

The acceptance test thus decides about the way of learning: the judge that is kept has read more than each of the two that were tested.
With ``--learn-from development`` validation only tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..subject import Crossed, Half, Observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..contest import Contest, Race
    from ..events import Teller
    from ..subject import Subject, Version
    from .candidates import Candidate
    from .choice import Chooser, Learned
    from .finder import Finder


@dataclass
class QuestionLearner:
    """Learns questions, and lets the acceptance test decide about a judge that asks them."""

    subject: Subject
    finder: Finder
    """Reads the development examples."""
    mirror: Finder
    """Reads the validation examples."""
    both: Chooser
    """Chooses by all of them."""
    events: Teller
    crossed: bool = True
    """Whether validation teaches too; else it only tests what development taught."""
    learned: list[Learned] = field(default_factory=list, init=False)
    """All candidates so far, each question once, and what became of it."""
    _done: bool = field(default=False, init=False)

    async def challenge(self, start: Version, seen: Observation, contest: Contest, iteration: int) -> Version:
        """Learn, once in a run; returns the version with new questions where the acceptance test takes it, else ``start``.

        Args:
            start: The judge that the run began with: of one that was chosen by the validation examples they say too much good.
            seen: What it does on the development examples.
            contest: Knows the validation examples and the acceptance test.
            iteration: From 1.

        Raises:
            BudgetExceededError: A cap was reached; ``start`` stands.
            ModelError: An endpoint refuses every call.
        """
        if self._done:
            return start
        self._done = True
        if not self.finder.chooser.sides():
            self.events.say("no questions are learned: there are too few accepted or rejected development examples")
            return start
        try:
            raced = await self._race(start, seen, contest, iteration)
        finally:
            told: dict[str, Learned] = {}
            for each in (*self.both.learned, *self.finder.chooser.learned, *self.mirror.chooser.learned):
                told.setdefault(each.id, each)
            self.learned = list(told.values())
        return start if raced is None else contest.conclude(start, raced, (), iteration)

    async def _race(self, start: Version, seen: Observation, contest: Contest, iteration: int) -> Race | None:
        """What the acceptance test says; None where there is nothing that it could decide about."""
        mine = await self.finder.find(start.draft, seen, iteration)
        draft = await self.finder.chooser.draft(start.draft, mine, seen)
        if draft is start.draft:
            return None
        raced = await contest.race(start, draft, (), ())
        if raced.version is None or not self.crossed:  # without a version: hopeless on a part of validation
            return raced
        if raced.decision.gain is not None and (raced.decision.gain.value or 0) <= 0:
            return raced  # the other half would have to outweigh it: not worth as many calls again
        held_out = Observation(contest.validation, start.verdicts, start.scores, start.draft.checklist)
        theirs = await self.mirror.find(start.draft, held_out, iteration)
        mirrored = await self.mirror.chooser.draft(start.draft, theirs, held_out)
        if mirrored is start.draft:
            return raced
        self.events.phase("judging the development examples with what validation has taught")
        back = await self.subject.observe(mirrored, seen.examples, self.events.advance)
        crossed = Crossed(
            (
                Half(contest.validation, start.scores, raced.version.scores),
                Half(seen.examples, seen.scores, back.scores),
            )
        )
        every = Observation(
            [*seen.examples, *contest.validation],
            [*seen.verdicts, *start.verdicts],
            [*seen.scores, *start.scores],
            start.draft.checklist,
        )
        named = _united(mine.candidates, theirs.candidates)
        self.both.stood = set(named)
        chosen = await self.both.choose(start.draft, named, every, iteration)
        kept = await self.both.draft(start.draft, chosen, every)
        if kept is start.draft:
            self.events.say("no question stands on the development and the validation examples together")
            return None
        return await contest.cross(start, kept, crossed)

    @property
    def read(self) -> dict[str, Any]:
        """As under ``read`` in ``result.json``."""
        mine, theirs = self.finder.read, self.mirror.read
        return {name: sorted({*mine[name], *theirs[name]}) for name in mine}


def _united(mine: Mapping[str, Candidate], theirs: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """The candidates of both by their ids, under which both know the same question."""
    named = dict(mine)
    for name, candidate in theirs.items():
        named[name] = named[name].with_sources_of(candidate) if name in named else candidate
    return named
