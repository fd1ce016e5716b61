"""The learner: from people's comments to a checklist that finds what they spoke of (METHOD part 4), and its proof.

The proof is cross-fitted: all development and validation examples but a fold of them teach a judge in the way that all of them
teach the one that is kept, and the fold tests it, one fold after the other. So every example tests a judge that it has taught
nothing, nearly as many teach as in the end, and the acceptance test has all of them to decide by. What is kept is learned from all (the idea of Chernozhukov et al., "Double/debiased machine learning",
Econometrics Journal 21, 2018, section 3). The test examples stay unseen.

The acceptance test thus decides about the way of learning: the judge that is kept has read a little more than each of those that were
tested. With ``--learn-from development`` validation only tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from ...prompts.checklist import Sees
from ...prompts.examples import Example, document_of
from ...prompts.human_feedback import one_line
from ..contest import Contest, Race
from ..events import Teller
from ..subject import Crossed, CrossedFold, Draft, Observation, Subject, Version
from .candidates import Candidate
from .choice import Chooser, Learned
from .finder import Finder
from .together import AskedBothWays

Candidates = Mapping[str, Candidate]
"""By their ids."""

FOLDS = 3
"""Parts of the development examples, and of validation, that test what all others taught."""


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
    soft: bool
    """Whether P(yes) is scored, or yes and no."""
    crossed: bool = True
    """Whether validation teaches too; else it only tests what development taught."""
    learned: list[Learned] = field(default_factory=list, init=False)
    """All candidates so far, each question once, and what became of it."""
    both_ways: AskedBothWays | None = field(default=None, init=False)
    """How the judge answers several questions in one call; None where that was not to be found out, or was known before."""
    _done: bool = field(default=False, init=False)
    _untried: dict[str, Any] | None = field(default=None, init=False)
    """What earlier runs have read, as long as nothing is decided about what came of what this one reads."""

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
        chooser = self.both if self.crossed else self.finder.chooser
        if not chooser.sides():
            self.events.say("no questions are learned: there are too few accepted or rejected examples")
            return start
        self._untried = self.read
        try:
            raced = await self._race(start, seen, contest, iteration)
            self._untried = None
        finally:
            self.learned = chooser.learned
        return start if raced is None else contest.conclude(start, raced, (), iteration)

    async def _race(self, start: Version, seen: Observation, contest: Contest, iteration: int) -> Race | None:
        """What the acceptance test says; None where there is nothing that it could decide about."""
        if self.crossed:
            return await self._cross_fit(start, seen, contest, iteration)
        chooser = self.finder.chooser
        found = await self.finder.propose(start.draft, iteration)
        judge, self.both_ways = await chooser.asked_as_it_answers(start.draft, found)
        (found,) = _shown(await chooser.seen_as_helps(judge, found), found)
        new = chooser.drafts(judge, await chooser.choose(judge, found, seen, iteration), seen)
        if new.whole is judge:
            return None
        chooser.say(new.idle, "idle")
        (draft,) = await chooser.read(judge, new.lean)
        return await contest.race(start, draft, (), ())

    async def _cross_fit(self, start: Version, seen: Observation, contest: Contest, iteration: int) -> Race | None:
        """The folds of validation come first: where they show a loss, the others would have to outweigh it, and are left.

        What is tested is the judge that asks all it asked before: what both judges have in common is no noise in their difference. Idle
        questions are then left out where that is no loss on the same folds.
        """
        mine = await self.finder.propose(start.draft, iteration)
        theirs = await self.mirror.propose(start.draft, iteration)
        every = Observation(
            [*seen.examples, *contest.validation],
            [*seen.verdicts, *start.verdicts],
            [*seen.scores, *start.scores],
            start.draft.checklist,
        )
        named = _united(mine, theirs)
        judge, self.both_ways = await self.both.asked_as_it_answers(start.draft, named)
        mine, theirs, named = _shown(await self.both.seen_as_helps(judge, named), mine, theirs, named)
        new = self.both.drafts(judge, await self.both.choose(judge, named, every, iteration), every)
        if new.whole is judge:
            self.events.say("no question stands on the development and the validation examples together")
            return None

        async def folds(examples: Sequence[Example], own: Candidates, others: Candidates) -> tuple[CrossedFold, ...]:
            return tuple(
                [
                    await self._fold(judge, every, tested, taught_by_others(tested, own, others), iteration)
                    for tested in parts_of(examples, self.both.targets.overall)
                ]
            )

        crossed = Crossed(await folds(contest.validation, theirs, mine))
        if (refused := contest.give_up(new.whole, crossed)) is not None:
            return refused
        crossed = Crossed(crossed.folds + await folds(seen.examples, mine, theirs))
        is_lean = bool(new.idle) and contest.may_go_without(crossed)
        if is_lean:
            self.both.say(new.idle, "idle")
        (kept,) = await self.both.read(judge, new.lean if is_lean else new.whole)
        return await contest.cross(start, kept, crossed)

    async def _fold(
        self, judge: Draft, every: Observation, tested: Sequence[Example], named: Candidates, iteration: int
    ) -> CrossedFold:
        """What the judge that all others of the examples teach says of those that test it."""
        ids = {each.id for each in tested}
        before = [score for score in every.scores if score.example in ids]
        seen = Observation(
            [each for each in every.examples if each.id not in ids],
            [each for each in every.verdicts if each.example not in ids],
            [each for each in every.scores if each.example not in ids],
            every.checklist,
        )
        chooser = replace(self.both, examples=seen.examples, told=False)
        named = without_remarks_of(tested, seen.examples, named)
        new = chooser.drafts(judge, await chooser.choose(judge, named, seen, iteration), seen)
        if new.whole is judge:
            return CrossedFold(tested, before, before, before)
        whole, lean = await chooser.read(judge, new.whole, new.lean)
        self.events.phase(f"judging {len(tested)} examples with what the others have taught")
        told = await self.subject.observe(whole, tested, self.events.advance)
        after = lean.scores(tested, lean.own(told.verdicts), soft=self.soft)
        return CrossedFold(tested, before, told.scores, after)

    def found_in(self, question: str) -> list[str]:
        """The parts whose examples led to a candidate."""
        both = {"development": self.finder, "validation": self.mirror}
        return [part for part, finder in both.items() if question in finder.found]

    @property
    def has_more(self) -> bool:
        """Whether more iterations would read what this run has not."""
        return self.finder.has_more or self.mirror.has_more

    @property
    def read(self) -> dict[str, Any]:
        """As under ``read`` in ``result.json``.

        Where a budget ended the learning, what earlier runs have read alone: a run that goes on from this one begins with it.
        """
        if self._untried is not None:
            return self._untried
        mine, theirs = self.finder.read, self.mirror.read
        return {name: sorted({*mine[name], *theirs[name]}) for name in mine}


def parts_of(examples: Sequence[Example], wanted: Callable[[str], float | None]) -> list[list[Example]]:
    """At most :data:`FOLDS` parts, each with as many that people like as the others; the outputs of one document are in one of them.

    Args:
        examples: What is divided.
        wanted: How people like an example, by its id; None where nobody said.
    """
    liked: defaultdict[str, list[float]] = defaultdict(list)
    for each in examples:
        liked[document_of(each)].append(wanted(each.id) or 0.0)
    ranked = sorted(liked, key=lambda document: fmean(liked[document]))
    parts = ({*ranked[place::FOLDS]} for place in range(FOLDS))
    return [[each for each in examples if document_of(each) in part] for part in parts if part]


def taught_by_others(tested: Collection[Example], mine: Candidates, others: Candidates) -> dict[str, Candidate]:
    """Candidates that none of the tested examples had a part in.

    Args:
        tested: Part of the examples that ``mine`` come from. One that comes from no comment comes from all of these.
        mine: Their candidates, by their ids. The first source is the one that the words come from.
        others: Those that come from other examples.
    """
    ids = {each.id for each in tested}
    left = {
        name: replace(each, sources=tuple(source for source in each.sources if source not in ids))
        for name, each in mine.items()
        if each.sources and each.sources[0] not in ids
    }
    return _united(left, others)


def without_remarks_of(tested: Collection[Example], taught: Collection[Example], named: Candidates) -> Candidates:
    """Return the candidates without comments that only tested examples had.

    Several comments may lead to the same question, and each gives it a turn in the race (:func:`~.racing.in_line`).

    Args:
        tested: Examples that teach nothing here.
        taught: The other examples. A comment that one of them has too stays.
        named: Candidates by their ids.
    """
    written, gone = ({one_line(said.text) for each in some for said in each.comment} for some in (taught, tested))
    gone -= written
    return {
        name: replace(each, comments=tuple(text for text in each.comments if text not in gone))
        for name, each in named.items()
    }


def _shown(sees: Sees, *several: Candidates) -> list[dict[str, Candidate]]:
    """Candidates that the judge is asked with so much in view."""
    return [{name: replace(each, sees=sees) for name, each in named.items()} for named in several]


def _united(mine: Candidates, theirs: Candidates) -> dict[str, Candidate]:
    """The candidates of both by their ids, under which both know the same question."""
    named = dict(mine)
    for name, candidate in theirs.items():
        named[name] = named[name].with_sources_of(candidate) if name in named else candidate
    return named
