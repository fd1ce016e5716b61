"""Lessons, drawn from disagreements by note-taker and deduplicator (Algorithm 1, lines 12-26), and their trial.

A lesson is new, or further evidence of a lesson in the memory. Before a lesson may change a prompt, it is tried on its
own evidence and on a few controls. A handful of calls weeds out most bad lessons before validation is paid for. The
trial asks for selectivity: a rule that only makes the judge more severe moves evidence and controls alike.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ...agents.lesson_checks import ContradictionFinder, Deduplicator, LessonClassifier, Relation
from ...agents.note_takers import Case, NoteAgent
from ...evaluation.scoring import mean_score
from ...memory.lesson_memory import LessonMemory
from ...models.base import CallError, ModelError
from ...prompts.checklist import YES_IS_GOOD, Checklist, Polar
from ...prompts.lessons import Disagreement, Lesson
from ...prompts.verdicts import Verdict
from ..events import LessonKept, LessonLearned, LessonRetired, NoteFailed, Teller, answer_or_none
from ..signals import Reasons, Signal, take_turns
from ..subject import Draft, Observation, Pair, Subject, TrialResult, by_pair

MOVED = 0.5
"""Least change of log-odds that counts as a move: an odds ratio of 1.65."""
EVIDENCE = 4
CONTROLS = 4
AGREED = 0.25
"""Largest distance in P(good) at which a verdict and its reference agree, so that the example may be a control."""
SURE = 0.02
"""A probability is kept this far from 0 and 1, so that a hard answer that flips moves by 3.9 in log-odds each way."""


BATCH = 4
"""Examples that the papers' loop reads in one call."""
Work = TypeVar("Work")
"""The cases of one call, in any form."""


def task_of(checklist: Checklist | None) -> str:
    """Return the task for a note-taker, with a default where the checklist names none."""
    return (checklist.task if checklist is not None else "") or "Follow the instruction."


async def read_all(
    works: Sequence[Work], read: Callable[[Work], Awaitable[list[Lesson]]], size: Callable[[Work], int], events: Teller
) -> list[list[Lesson] | CallError]:
    """Read all works at once; returns for each its lessons or its CallError, in order. Other errors are raised."""
    done, total = 0, sum(map(size, works))

    async def one(work: Work) -> list[Lesson]:
        nonlocal done
        lessons = await read(work)
        done += size(work)
        events.advance(done, total)
        return lessons

    # a failed call does not cancel the others, because calls under way are paid for
    found = await asyncio.gather(*map(one, works), return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, CallError):
            raise each
    return [each for each in found if not isinstance(each, BaseException) or isinstance(each, CallError)]


@dataclass
class LessonDesk:
    """Takes notes and keeps the memory free of repeats and of contradictions."""

    note_taker: NoteAgent
    deduplicator: Deduplicator
    memory: LessonMemory
    events: Teller
    classifier: LessonClassifier | None = None
    """Finds lessons that no prompt can carry out; None: all count as promptable."""
    contradictions: ContradictionFinder | None = None
    """Finds lessons that order opposite things; None: nobody looks for them."""
    failed: dict[str, CallError] = field(default_factory=dict, init=False)
    """Errors of the last round's disagreements without a note, by key."""
    has_notes: bool = field(default=False, init=False)
    """Whether any note was taken so far."""

    def __post_init__(self) -> None:
        """Number new lessons after those in the memory."""
        self._count = last_number(self.memory)

    async def learn(self, seen: Observation, disagreements: Sequence[Disagreement], reasons: Reasons) -> list[Lesson]:
        """Draw lessons from disagreements; returns new and changed lessons, best supported first. A note that cannot be
        used is left out and reported."""
        self.events.phase("taking notes", len(disagreements))
        asked = [(seen.question(each.example, each.question), each.target) for each in disagreements]
        strict, lenient = (
            {question.id: question for question, target in asked if question.is_good(target) is side}
            for side in (True, False)
        )
        await self.note_taker.prepare(strict.values(), lenient.values())
        notes = await self._notes(seen, disagreements, reasons)
        kept = [await self._remember(lesson) for lesson in notes]
        touched = dict.fromkeys(name for name in kept if name is not None)
        lessons = [lesson for lesson in map(self.memory.get, touched) if not lesson.is_closed]
        for lesson in lessons:
            self.events.emit(LessonLearned(lesson))
        return sorted(lessons, key=lambda each: -each.support)

    async def _notes(self, seen: Observation, disagreements: Sequence[Disagreement], reasons: Reasons) -> list[Lesson]:
        """Return the notes that can be used, in the order of the disagreements. All are asked for at once."""
        cases = [self._case(seen, each, reasons) for each in disagreements]
        first = self._count + 1
        self._count += len(disagreements)
        found = await read_all(list(enumerate(cases, first)), self._one, lambda _: 1, self.events)
        lessons: list[Lesson] = []
        self.failed = {}
        for case, each in zip(cases, found, strict=True):  # events in the order of the cases, not of the replies
            if isinstance(each, CallError):
                if each.fatal:
                    raise each
                self.failed[case.disagreement.key] = each
                self.events.emit(NoteFailed(case.disagreement.key, str(each), isinstance(each, ModelError)))
            else:
                self.has_notes = True
                lessons += each
        return lessons

    def _case(self, seen: Observation, disputed: Disagreement, reasons: Reasons) -> Case:
        example = next(each for each in seen.examples if each.id == disputed.example)
        asked = seen.question(disputed.example, disputed.question)
        return Case(disputed, example, asked, reasons.said(disputed.key))

    async def _one(self, numbered: tuple[int, Case]) -> list[Lesson]:
        number, case = numbered
        return [await self.note_taker.take_note(case, f"L{number}")]

    async def _remember(self, lesson: Lesson) -> str | None:
        """Add a lesson or its evidence to the memory; returns its id there, or None if people removed such a lesson."""
        otherwise = f"lesson {lesson.id} was not compared and is kept as new"
        compared = await answer_or_none(self._compare(lesson), otherwise, self.events)
        relation, known = compared or (None, None)
        if known is not None and known.status == "removed":
            for key in lesson.evidence:
                self.events.emit(NoteFailed(key, f"people removed what it says from the memory ({known.id})"))
            return None
        if known is None or relation is None:
            kept = self.memory.add(await self._classified(lesson))
        elif relation.relation == "merge":
            kept = self.memory.merge(known.id, lesson, " ".join(relation.merged.split()))
        else:
            kept = self.memory.merge(known.id, lesson)
        how = relation.relation if relation else "new"
        self.events.emit(LessonKept(lesson.id, lesson.text, lesson.evidence, how, kept.id, kept.text))
        return kept.id

    async def _compare(self, lesson: Lesson) -> tuple[Relation, Lesson | None]:
        """Compare a lesson with its neighbours. Equal words need no call, else the deduplicator decides."""
        neighbours = self.memory.nearest(lesson)
        for known in neighbours:
            if known.text == lesson.text:
                return Relation(relation="duplicate", of=1, merged=""), known
        return await self.deduplicator.compare(lesson, neighbours)

    async def _classified(self, lesson: Lesson) -> Lesson:
        """Return the lesson with its class. Without an answer of the classifier, the lesson counts as promptable."""
        if self.classifier is None:
            return lesson
        otherwise = f"lesson {lesson.id} was not classified and is taken for promptable"
        found = await answer_or_none(self.classifier.classify(lesson), otherwise, self.events)
        if found is None:
            return lesson
        return lesson.model_copy(update={"kind": found.kind, "kind_reason": found.reason})

    async def resolve(
        self, lessons: Sequence[str], strength: Callable[[str], tuple[float, ...]], overwritten: Collection[str] = ()
    ) -> set[str]:
        """Retire the weaker of two lessons that order opposite things; returns the ids of the retired lessons.

        ``lessons`` are about to be written, the strongest first. ``strength`` ranks lessons. A lesson in the prompt has
        passed the acceptance test, so it stays, unless the new edits take its line out (``overwritten``).
        """
        # Lessons that are neither in the prompt nor about to be are not compared: small models see contradictions
        # everywhere.
        retired: set[str] = set()
        asked: set[frozenset[str]] = set()
        if self.contradictions is None:
            return retired
        for lesson_id in lessons:
            for rival in self.memory.opposed(self.memory.get(lesson_id)):
                stands = rival.status == "applied" and rival.id not in overwritten
                competes = stands or rival.id in lessons
                pair = frozenset((lesson_id, rival.id))
                if not competes or pair & retired or pair in asked:
                    continue
                asked.add(pair)
                compared = self.contradictions.compare(self.memory.get(lesson_id), rival)
                otherwise = f"lessons {lesson_id} and {rival.id} were not compared"
                found = await answer_or_none(compared, otherwise, self.events)
                if found is None or not found.contradicts:
                    continue
                weaker, stronger = sorted((rival.id, lesson_id), key=strength)  # of equals lesson_id stays
                stays = "for which more speaks" if strength(weaker) < strength(stronger) else "which came first"
                if rival.status == "applied":
                    weaker, stronger, stays = lesson_id, rival.id, "which stands in the prompt"
                why = f"it contradicts {stronger}, {stays} ({found.reason})"
                self.memory.mark([weaker], "retired", why)
                self.events.emit(LessonRetired(weaker, why))
                retired.add(weaker)
        return retired


def last_number(memory: LessonMemory) -> int:
    """Return the highest number of a lesson in the memory; 0 if it has none."""
    taken = [re.match(r"L(\d+)", each.id) for each in memory.lessons]
    return max((int(each[1]) for each in taken if each), default=0)


@dataclass(frozen=True)
class LessonTrial:
    """Tries a draft with new lessons on a few verdicts, before the acceptance test."""

    subject: Subject
    signal: Signal
    evidence: int = EVIDENCE
    """Most disagreements in a trial."""
    controls: int = CONTROLS
    """Most controls in a trial."""

    async def run(self, before: Draft, after: Draft, lessons: Sequence[Lesson], seen: Observation) -> TrialResult:
        """Compare the draft ``after``, which holds the lessons, with ``before``, on the lessons' evidence and on
        controls. ``seen`` has the verdicts of ``before`` on development."""
        known = by_pair(seen.verdicts)
        by_key = {f"{example}/{question}": (example, question) for example, question in known}
        evidence = [by_key[key] for key in evidence_keys(lessons) if key in by_key][: self.evidence]
        controls = self._find_controls(before, {question for _, question in evidence}, seen, known, lessons)
        new = await self.subject.probe(after, [*evidence, *controls], seen)

        def moves(pairs: Sequence[Pair]) -> list[float]:
            found = []
            for pair in pairs:
                was, wanted = known[pair], self.signal.reference(before, *pair)
                found.append(shift(was, new.get(pair), wanted, seen.polarity(*pair), is_like=self.signal.is_like(was)))
            return [move for move in found if move is not None]

        tried, checked = moves(evidence), moves(controls)
        turned, harmed = (sum(move >= MOVED for move in tried), sum(move <= -MOVED for move in checked))
        for what, asked, answered in (("disagreements", evidence, tried), ("controls", controls, checked)):
            if asked and not answered:
                reason = f"failed its trial: with it, none of {len(asked)} {what} was answered"
                return TrialResult(False, reason, turned, len(tried), harmed, len(checked))
        result = verdict_of_trial(turned, len(tried), harmed, len(checked))
        return replace(result, evidence_shift=mean_score(tried), control_shift=mean_score(checked))

    def _find_controls(
        self,
        draft: Draft,
        questions: Collection[str],
        seen: Observation,
        known: dict[Pair, Verdict],
        lessons: Sequence[Lesson],
    ) -> list[Pair]:
        """Return pairs on the given questions where judge and reference agree, the surest first."""
        sides: dict[bool, list[tuple[float, Pair]]] = {True: [], False: []}
        for pair, verdict in known.items():
            wanted = self.signal.reference(draft, *pair)
            if pair[1] not in questions or wanted is None or verdict.p_yes is None:
                continue
            question = seen.polarity(*pair)
            if agreed(verdict, wanted, question, is_like=self.signal.is_like(verdict)):
                sides[wanted >= 0.5].append((abs(question.p_good(verdict.p_yes) - wanted), pair))
        ordered = {side: [pair for _, pair in sorted(pairs)] for side, pairs in sides.items()}
        # A stricter rule can do harm only where both sides call the output good, a more lenient rule only where neither
        # does. Pairs of the harmless side would hide a rule that only shifts the bias.
        at_risk = {lesson.direction == "stricter" for lesson in lessons}
        if len(at_risk) == 1:
            first = at_risk.pop()
            return (ordered[first] or ordered[not first])[: self.controls]
        return take_turns(ordered.values())[: self.controls]


def evidence_keys(lessons: Sequence[Lesson]) -> list[str]:
    """Return the keys of the disagreements behind the lessons, each once; lessons take turns."""
    return list(dict.fromkeys(take_turns(lesson.evidence for lesson in lessons)))


def agreed(verdict: Verdict, wanted: float, question: Polar, *, is_like: bool) -> bool:
    """Whether a verdict is on the side of its reference; with ``is_like`` it must also be within :data:`AGREED`."""
    is_near = not is_like or abs(question.p_good(verdict.p_yes or 0.0) - wanted) <= AGREED
    return is_near and question.is_good(verdict.answer) == (wanted >= 0.5)


def shift(
    before: Verdict,
    after: Verdict | None,
    wanted: float | None,
    question: Polar = YES_IS_GOOD,
    *,
    is_like: bool = True,
) -> float | None:
    """Return the change of the log-odds of the good answer towards the reference; None where an answer is missing.

    ``wanted`` is the reference's P(good). For a disagreement, a change towards ``wanted`` counts as positive. For a
    control, or without ``is_like``, a change towards the wanted answer does. ``is_like`` is as in :func:`agreed`.
    """
    if after is None or wanted is None or before.p_yes is None or after.p_yes is None:
        return None
    was, now = question.p_good(before.p_yes), question.p_good(after.p_yes)
    change = log_odds(now) - log_odds(was)
    up = wanted >= 0.5 if not is_like or agreed(before, wanted, question, is_like=True) else wanted > was
    return change if up else -change


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, which is first kept :data:`SURE` away from 0 and 1."""
    bounded = min(max(probability, SURE), 1 - SURE)
    return math.log(bounded / (1 - bounded))


def verdict_of_trial(turned: int, evidence: int, harmed: int, controls: int) -> TrialResult:
    """Return a trial's result: passed if the share of turned disagreements is above the share of harmed controls."""
    said = f"{turned} of {evidence} disagreements fixed, {harmed} of {controls} controls regressed"
    selective = turned * max(controls, 1) > harmed * evidence
    passed = turned > 0 and selective
    reason = said if passed else f"failed its trial: {said}"
    return TrialResult(passed, reason, turned, evidence, harmed, controls)
