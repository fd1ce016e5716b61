"""The learner: from people's comments to a checklist that finds what they spoke of (METHOD part 4), and its proof.

The proof is cross-fitted (Chernozhukov et al., "Double/debiased machine learning", Econometrics Journal 21, 2018,
section 3). The development and validation examples are divided into folds. For each fold a judge is learned from all
other folds and tested on this one. So no example tests a judge that it taught, and the acceptance test uses all
examples. The judge that is kept is learned from all of them in the same way. The test examples stay unseen.

The acceptance test thus decides about the way of learning: the judge that is kept has read a little more than each
judge that was tested. With ``--learn-from development`` validation only tests. The records of all questions cost no
call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from ...agents.question_writer import QuestionMender
from ...evaluation.calibration_fit import FEWEST_ACCEPTED
from ...evaluation.measures.fitting import FittedMeasure
from ...evaluation.measures.probe import paid_for, paid_for_said
from ...memory.records import NOT_ACCEPTED, BothWaysRecord, CriterionRecord, RevisedRecord, WorthRecord
from ...memory.result_file import FinishReason
from ...models.budget import CAPS
from ...prompts.checklist import Checklist, Sees
from ...prompts.examples import Example, document_of
from ...prompts.formatting import count
from ...prompts.human_feedback import one_line
from ...prompts.verdicts import Verdict
from ...stats.differences import Difference
from ..acceptance import Yardstick
from ..contest import Contest, Race
from ..events import Teller, answer_or_none
from ..mode import LoopRound, RunContext, Turn
from ..subject import Crossed, CrossedFold, Draft, Observation, Outcome, Subject, Version
from .choice import Chooser, Chosen
from .proposers import Finder
from .racing import sides_of

Candidates = Mapping[str, CriterionRecord]
"""Candidates by their ids."""

FOLDS = 3
"""Most folds of the development examples, and of the validation examples."""


@dataclass
class QuestionLearner:
    """Learns questions, and lets the acceptance test decide about a judge that asks them."""

    subject: Subject
    finder: Finder
    """Reads the development examples."""
    mirror: Finder
    """Reads the validation examples."""
    both: Chooser
    """Chooses by the development and the validation examples together."""
    events: Teller
    soft: bool
    """Whether P(yes) is scored; else the answer yes or no."""
    crossed: bool = True
    """Whether validation teaches too; else it only tests."""
    mender: QuestionMender | None = None
    """Rewords questions that read oddly, before they join; None: the words stay."""
    learned: list[CriterionRecord] = field(default_factory=list, init=False)
    """All candidates so far, each question once, with its fate."""
    both_ways: BothWaysRecord | None = field(default=None, init=False)
    """Comparison of the judge's answers to questions together and alone; None where none was needed."""
    _done: bool = field(default=False, init=False)
    _untried: dict[str, Any] | None = field(default=None, init=False)
    """Evidence that earlier runs have read; None once the evidence of this run is decided about."""

    async def take(self, now: LoopRound) -> Turn:
        """Learn, once in a run, and send the judge with its new questions through the acceptance test."""
        start = now.best
        if self._done:
            return Turn(start, self._nothing_more)
        self._done = True
        chooser = self.both if self.crossed else self.finder.chooser
        if not chooser.sides():
            self.events.say("no questions are learned: there are too few accepted or rejected examples")
            return Turn(start, self._nothing_more)
        measured = self._look_at_measures(start.draft, chooser, now.number)
        self._untried = self.read
        try:
            raced = await self._race(start, now.seen, now.contest, now.number, measured)
            self._untried = None
        finally:
            self.learned = now.outcome.questions = chooser.learned
        winner = start if raced is None else now.contest.conclude(start, raced, (), now.number)
        return Turn(winner) if winner is not start else Turn(start, self._nothing_more)

    def _look_at_measures(self, start: Draft, chooser: Chooser, iteration: int) -> tuple[FittedMeasure, ...]:
        """Choose and report the measures before any question is bought; name those that pay for repeating the input."""
        table, joined = chooser.table, chooser.measured(start, iteration)
        if table.left_out is not None:
            self.events.say(table.left_out)
        if not table.measures:
            return joined
        told = ", ".join(f"{each.measure.measure} ({each.effect:+.2f})" for each in joined)
        self.events.say(
            f"{count(len(table.measures), 'measure')} looked at, without a call: {told or 'none tells enough'}"
        )
        if gains := paid_for([each.measure for each in joined], chooser.examples):
            self.events.say(
                f"an output that repeats what it was given pleases {paid_for_said(gains)}: tune leaves these measures out"
            )
        return joined

    @property
    def _nothing_more(self) -> FinishReason:
        """Why to stop after learning. With more iterations the finders would have read more comments."""
        return "max_iterations" if self.finder.has_more or self.mirror.has_more else "no_evidence"

    async def _race(
        self,
        start: Version,
        seen: Observation,
        contest: Contest,
        iteration: int,
        measured: tuple[FittedMeasure, ...],
    ) -> Race | None:
        """Learn questions and let the acceptance test decide; None where there is nothing new to decide about."""
        if self.crossed:
            return await self._cross_fit(start, seen, contest, iteration, measured)
        chooser = self.finder.chooser
        found = await self.finder.propose(start.draft, iteration)
        judge, self.both_ways = await chooser.asked_as_it_answers(start.draft, found)
        (found,) = _shown(await chooser.seen_as_helps(judge, found), found, found)
        chosen = await chooser.choose(judge, found, seen, iteration, measured)
        if texts := await self._reworded(judge, chooser, chosen):
            chosen = await chooser.choose(judge, _worded(texts, found)[0], seen, iteration, measured)
        new = chooser.drafts(judge, chosen, seen)
        if new.whole is judge:
            return None
        chooser.say(new.idle, "idle")
        (draft,) = await chooser.read(judge, new.lean)
        return await contest.race(start, draft, (), ())

    async def _cross_fit(
        self,
        start: Version,
        seen: Observation,
        contest: Contest,
        iteration: int,
        measured: tuple[FittedMeasure, ...],
    ) -> Race | None:
        """Test the way of learning on the folds, and let the acceptance test decide about the judge learned from all.

        The folds of validation come first. If they show a loss of a standard error, the folds of development are not
        judged. The judge with all its old questions is tested first, because what both judges share is no noise in
        their difference. Idle questions are then left out if that is no loss on the same folds.
        """
        finder_named = await self.finder.propose(start.draft, iteration)
        mirror_named = await self.mirror.propose(start.draft, iteration)
        observation = Observation(
            [*seen.examples, *contest.validation],
            [*seen.verdicts, *start.verdicts],
            [*seen.scores, *start.scores],
            start.draft.checklist,
        )
        named = _united(finder_named, mirror_named)
        judge, self.both_ways = await self.both.asked_as_it_answers(start.draft, named)
        finder_named, mirror_named, named = _shown(
            await self.both.seen_as_helps(judge, named), named, finder_named, mirror_named, named
        )
        chosen = await self.both.choose(judge, named, observation, iteration, measured)
        if texts := await self._reworded(judge, self.both, chosen):
            finder_named, mirror_named, named = _worded(texts, finder_named, mirror_named, named)
            chosen = await self.both.choose(judge, named, observation, iteration, measured)
        new = self.both.drafts(judge, chosen, observation)
        if new.whole is judge:
            self.events.say("no question stands on the development and the validation examples together")
            return None

        async def folds(examples: Sequence[Example], own: Candidates, others: Candidates) -> tuple[CrossedFold, ...]:
            return tuple(
                [
                    await self._fold(judge, observation, tested, taught_by_others(tested, own, others), iteration)
                    for tested in parts_of(examples, self.both.targets.overall)
                ]
            )

        crossed = Crossed(await folds(contest.validation, mirror_named, finder_named))
        if (refused := contest.give_up(new.whole, crossed)) is not None:
            return refused
        crossed = Crossed(crossed.folds + await folds(seen.examples, finder_named, mirror_named))
        is_lean = bool(new.idle) and contest.may_go_without(crossed)
        if is_lean:
            self.both.say(new.idle, "idle")
        (kept,) = await self.both.read(judge, new.lean if is_lean else new.whole)
        return await contest.cross(start, kept, crossed)

    async def _reworded(self, judge: Draft, chooser: Chooser, chosen: Chosen) -> dict[str, str]:
        """Find new words for chosen questions that read oddly, by id. A person has to sign the questions that join."""
        if (mender := self.mender) is None:
            return {}

        async def write(candidate: CriterionRecord) -> Sequence[str]:
            otherwise = f"the question “{candidate.text}” keeps its words"
            return await answer_or_none(mender.write(candidate.text, candidate.comments), otherwise, self.events) or ()

        return await chooser.reworded(judge, chosen, write)

    async def _fold(
        self, judge: Draft, every: Observation, tested: Sequence[Example], named: Candidates, iteration: int
    ) -> CrossedFold:
        """Scores on one fold by the judge that was learned on the other folds."""
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
        measured = chooser.measured(judge, iteration)
        new = chooser.drafts(judge, await chooser.choose(judge, named, seen, iteration, measured), seen)
        if new.whole is judge:
            return CrossedFold(tested, before, before, before)
        whole, lean = await chooser.read(judge, new.whole, new.lean)
        self.events.phase(f"judging {len(tested)} examples with what the others have taught")
        told = await self.subject.observe(whole, tested, self.events.advance)
        after = lean.scores(tested, lean.own(told.verdicts), soft=self.soft)
        return CrossedFold(tested, before, told.scores, after)

    def found_in(self, question: str) -> list[str]:
        """Return the parts, development or validation, whose examples led to a candidate."""
        both = {"development": self.finder, "validation": self.mirror}
        return [part for part, finder in both.items() if question in finder.found]

    @property
    def read(self) -> dict[str, Any]:
        """Evidence that was read: ``read`` of ``result.json``.

        If a budget ended the learning, only the evidence of earlier runs: a run that goes on from this one then reads
        the rest again.
        """
        if self._untried is not None:
            return self._untried
        mine, theirs = self.finder.read, self.mirror.read
        return {name: sorted({*mine[name], *theirs[name]}) for name in mine}


def parts_of(examples: Sequence[Example], wanted: Callable[[str], float | None]) -> list[list[Example]]:
    """Divide examples into at most :data:`FOLDS` folds that people like about equally on average. The outputs of one
    document stay together."""
    liked: defaultdict[str, list[float]] = defaultdict(list)
    for each in examples:
        liked[document_of(each)].append(wanted(each.id) or 0.0)
    ranked = sorted(liked, key=lambda document: fmean(liked[document]))
    parts = ({*ranked[place::FOLDS]} for place in range(FOLDS))
    return [[each for each in examples if document_of(each) in part] for part in parts if part]


def taught_by_others(tested: Collection[Example], mine: Candidates, others: Candidates) -> dict[str, CriterionRecord]:
    """Return the candidates that no tested example had a part in.

    Args:
        tested: Some of the examples that ``mine`` come from.
        mine: Candidates by id. The first source of a candidate is the example that its words come from. A candidate
            without sources comes from all these examples.
        others: Candidates from other examples, by id.
    """
    ids = {each.id for each in tested}
    own_candidates = {
        name: each.but(sources=tuple(source for source in each.sources if source not in ids))
        for name, each in mine.items()
        if each.sources and each.sources[0] not in ids
    }
    return _united(own_candidates, others)


def without_remarks_of(tested: Collection[Example], taught: Collection[Example], named: Candidates) -> Candidates:
    """Return the candidates without comments that only tested examples had.

    Several comments may lead to the same question, and each gives it a turn in the race (:func:`~.racing.in_line`).
    ``taught`` are the other examples; a comment that one of them has too stays.
    """
    written, gone = ({one_line(said.text) for each in some for said in each.comment} for some in (taught, tested))
    gone -= written
    return {
        name: each.but(comments=tuple(text for text in each.comments if text not in gone))
        for name, each in named.items()
    }


def _shown(sees: Sees, every: Candidates, *several: Candidates) -> list[dict[str, CriterionRecord]]:
    """Return the candidates with this view of an example; candidates about a relation keep their own view.

    The view of a relation is read from ``every``, so that all folds ask the same question in the same way.
    """
    view = {name: each.sees if each.is_relation else sees for name, each in every.items()}
    return [{name: each.but(sees=view[name]) for name, each in named.items()} for named in several]


def _worded(texts: Mapping[str, str], *several: Candidates) -> list[dict[str, CriterionRecord]]:
    """Return the candidates with their new words, by id."""
    return [
        {name: each.but(text=texts[name]) if name in texts else each for name, each in named.items()}
        for named in several
    ]


def _united(mine: Candidates, theirs: Candidates) -> dict[str, CriterionRecord]:
    """Join two sets of candidates. A question that is in both has the same id in both."""
    named = dict(mine)
    for name, candidate in theirs.items():
        named[name] = named[name].as_one_with(candidate) if name in named else candidate
    return named


def learning_facts(
    learner: QuestionLearner,
    context: RunContext,
    yardstick: Yardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Return the parts of ``result.json`` about learning; the last three arguments are those of
    ``SetUp.free_facts``."""
    job = context.job
    questions = learned_questions(learner, outcome, context.splits.validation, tests, yardstick, soft=job.options.soft)
    facts: dict[str, Any] = {
        "questions": questions,
        "why_no_questions": why_no_questions(learner, job.examples, outcome.finish_reason),
        "read": learner.read,
    }
    if revised := _revised(job.questions, outcome.best.draft):
        facts["revised_questions"] = revised
    if learner.both_ways is not None:
        facts["asked_both_ways"] = learner.both_ways
    return facts


def learned_questions(
    learner: QuestionLearner,
    outcome: Outcome,
    validation: Sequence[Example],
    tests: Mapping[int, Observation],
    yardstick: Yardstick,
    *,
    soft: bool,
) -> list[CriterionRecord]:
    """Return all candidates with their fate: first those that joined, then those that the acceptance test refused.

    ``worth`` is the gain of the accepted judge over the same judge without the question, on test, and on validation
    unless validation taught the questions. It uses the same verdicts, scored once with and once without the question.
    """
    best = outcome.best
    seen: dict[str, tuple[Sequence[Example], Sequence[Verdict]]] = {}
    if best.crossed is None:  # else validation has taught it its questions
        seen["validation"] = (validation, best.verdicts)
    if best.number in tests:
        seen["test"] = (tests[best.number].examples, tests[best.number].verdicts)
    refused = {
        record.iteration: record.reason
        for record in outcome.tried
        if not (record.accepted or record.edits or record.shows)
    }
    records = []
    for record in sorted(learner.learned, key=lambda one: (one.id not in best.draft.origins, one.reason is not None)):
        joined = record.id in best.draft.origins
        reason = None if joined else record.reason or f"{NOT_ACCEPTED}{refused.get(record.iteration, 'the run ended')}"
        worth = {
            split: _worth(best.draft, record.id, examples, verdicts, yardstick, soft=soft)
            for split, (examples, verdicts) in seen.items()
            if joined
        }
        found = {"joined": joined, "reason": reason, "may_return": not joined and record.may_return}
        parts = {"parts": tuple(learner.found_in(record.id))} if record.origin == "contrast" else {}
        records.append(record.but(**found, **parts, worth=WorthRecord(**worth)))
    return records


def _revised(start: Checklist, best: Draft) -> list[RevisedRecord]:
    """Return the questions of the start that the accepted judge turned round or left out.

    The list is empty if no question kept its words and none was learned: then all questions were written anew.
    """
    best_questions = {each.id: each for each in best.questions.questions}
    same = [each for each in start.questions if each.id in best_questions and best_questions[each.id].text == each.text]
    if not (same or best.origins):
        return []
    flipped = [each for each in same if each.good != best_questions[each.id].good]
    dropped = [each for each in start.questions if each.id not in best_questions]
    return [
        *(
            RevisedRecord(id=each.id, text=each.text, good=best_questions[each.id].good, what="flipped")
            for each in flipped
        ),
        *(RevisedRecord(id=each.id, text=each.text, good=each.good, what="dropped") for each in dropped),
    ]


def why_no_questions(learner: QuestionLearner, examples: Sequence[Example], finish_reason: str) -> str | None:
    """Return why no question was proposed, to follow "No question was learned, as …"; None if some were proposed.

    Args:
        learner: The learner after the run.
        examples: All examples of the run.
        finish_reason: Why the run ended. None is returned where the run was not to learn.
    """
    if any(not each.is_measure for each in learner.learned) or finish_reason in ("calibrated", "converged"):
        return None
    if not any(each.comment for each in examples):
        return "no example has a comment, and what the outputs do came to no usable question"
    halves = {"development": learner.finder.chooser} | (
        {"validation": learner.mirror.chooser} if learner.crossed else {}
    )
    half, remarks = next(((name, found) for name, each in halves.items() if (found := _remarks(each))), ("", set()))
    if not remarks and not learner.finder.chooser.sides():
        return f"{_few(learner.finder.chooser)}, and comments are read of rejected outputs, held against accepted ones"
    if not remarks:
        return "none of the comments is on a rejected development example"
    if finish_reason in CAPS:
        return "the run ended before it had tried any question"
    one = len(remarks) == 1
    which = "the one comment" if one else f"all {len(remarks)} different comments"
    return f"{which} on rejected {half} examples came to no usable question"


def _remarks(chooser: Chooser) -> set[str]:
    """Return the different comments on rejected examples; none where too few examples are accepted or rejected."""
    rejected = {each for _, poor in chooser.sides().values() for each in poor}
    return {one_line(one.text) for each in chooser.examples if each.id in rejected for one in each.comment}


def _few(chooser: Chooser) -> str:
    """Return why nothing can be learned from the development examples."""
    wanted = chooser.targets.wanted
    sides = [
        sides_of({each.id: wanted[each.id].get(name) for each in chooser.examples})
        for name in chooser.targets.dimensions
    ]
    most = max((len(fine) for fine, _ in sides), default=0)
    are = "is" if most == 1 else "are"
    if most < FEWEST_ACCEPTED:
        return f"only {count(most, 'development example')} {are} accepted"
    return "people like all development examples alike"


def _worth(
    draft: Draft,
    question: str,
    examples: Sequence[Example],
    verdicts: Sequence[Verdict],
    yardstick: Yardstick,
    *,
    soft: bool,
) -> Difference:
    without = draft.scores_without({question}, examples, verdicts, soft=soft)
    return yardstick.difference(without, draft.scores(examples, verdicts, soft=soft), examples)
