"""The steps that edit the prompt: first plain lines without a note-taker, then lessons from notes (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from ...agents.lesson_checks import ContradictionFinder, Deduplicator, LessonClassifier
from ...agents.note_takers import NoteAgent
from ...evaluation.scoring import ExampleScore
from ...memory.lesson_memory import LessonMemory
from ...memory.records import PrunedRecord
from ...models.base import Model, ModelError
from ...models.budget import CAPS
from ...prompts.formatting import count
from ...prompts.lessons import Disagreement, Edit, Lesson
from ...prompts.prompt import EditRefusedError, Prompt
from ...stats.differences import Difference
from ..acceptance import Decision, Yardstick
from ..contest import Contest, WritesQuestions, change_of
from ..events import DisagreementsFound, EditPruned, LessonRecalled, LessonTried, ReasonsGiven
from ..mode import LoopRound, RunContext, Step, Turn
from ..options import LoopOptions
from ..signals import Signal
from ..subject import Draft, Observation, Outcome, Subject, TrialResult, Version
from .edits import OpposedParts, Placing, PlainLines, edit_writer
from .lessons import LessonDesk, LessonTrial
from .papers_step import PapersStep


def edit_steps(
    context: RunContext,
    subject: Subject,
    signal: Signal,
    helper: Model,
    note_taker: NoteAgent,
    *,
    plain: PlainLines | None = None,
    failed_before_first: bool = False,
    writes_questions: WritesQuestions | None = None,
) -> tuple[Step, ...]:
    """Return the steps that edit a prompt: ours, or the papers' step with the setting ``paper``.

    ``plain`` states failing requirements in their own words. With ``failed_before_first`` disagreements of earlier
    rounds are read before new ones. ``writes_questions`` is used only by the papers' step; for ours the contest has it.
    """
    options, gateway = context.job.options, context.gateway
    if options.paper:
        return (PapersStep(context, signal, helper, writes_questions),)
    model, seed = context.helper("deduplicator", helper), options.seed
    desk = LessonDesk(
        note_taker,
        Deduplicator(gateway, model, seed=seed),
        context.memory,
        context.events,
        classifier=LessonClassifier(gateway, model, seed=seed),
        contradictions=ContradictionFinder(gateway, model, seed=seed),
    )
    disagreements = ReadingList(context, signal, failed_before_first)
    trial = LessonTrial(subject, signal) if options.trial else None
    lines = AddLines(context, disagreements, plain, subject)
    return lines, LessonEdits(context, signal, disagreements, desk, helper, trial)


@dataclass
class ReadingList:
    """The disagreements of each round, and which of them are still to be read."""

    context: RunContext
    signal: Signal
    failed_before_first: bool
    """Whether a disagreement of an earlier round comes before new ones, as BinEval's App. B does for IFBench."""
    _round: int = field(default=0, init=False)
    _found: list[Disagreement] = field(default_factory=list, init=False)
    _to_read: list[Disagreement] = field(default_factory=list, init=False)
    _known: set[str] = field(default_factory=set, init=False)
    """Keys of the disagreements of the rounds so far."""
    _read: set[tuple[int, str]] = field(default_factory=set, init=False)
    """Version number and key of the disagreements that were read. With another prompt a disagreement may have another
    reason, so it is read again."""

    def __post_init__(self) -> None:
        """Disagreements that an earlier run of the same judge has read are not read again."""
        job = self.context.job
        if job.earlier is not None and job.is_same_judge:
            self._read = {(0, key) for key in job.earlier.disputed(job.examples)}

    def of(self, now: LoopRound) -> tuple[list[Disagreement], list[Disagreement]]:
        """Return all disagreements of a round, and those to be read now. The first call in a round emits the event."""
        if now.number == self._round:
            return self._found, self._to_read
        self._round, found = now.number, self.signal.disagreements(now.best.draft, now.seen)
        if self.failed_before_first:
            found = sorted(found, key=lambda each: each.key not in self._known)
        self._known.update(each.key for each in found)
        new = [each for each in found if (now.best.number, each.key) not in self._read]
        # A gap of 0 or less is explained by the judge's leniency. Such cases are read only if no others are left: then
        # the whole judge may be too lenient.
        self._found, most = found, self.context.job.options.max_notes
        self._to_read = ([each for each in new if each.gap > 0] or new)[:most]
        event = DisagreementsFound(now.number, len(found), len(now.seen.verdicts), self._to_read)
        self.context.events.emit(event)
        return self._found, self._to_read

    def mark_read(self, version: Version, keys: Sequence[str]) -> None:
        """Do not read these disagreements again with this version."""
        self._read.update((version.number, key) for key in keys)


def _held(best: Version) -> set[str]:
    """Ids of the lessons whose edits are in the prompt."""
    return {lesson for edit in best.edits for lesson in edit.lessons}


def _room(best: Version, contest: Contest, most: int) -> int:
    """Number of lessons that may still be written into the prompt."""
    return most - len(_held(best) | contest.waiting.lessons)


@dataclass(frozen=True)
class LessonBook:
    """Marks lessons after decisions about their edits."""

    memory: LessonMemory

    def mark(self, edits: Sequence[Edit], winner: Version, contest: Contest) -> None:
        """Mark the lessons of edits that were just tried; ``winner`` is the best version afterwards."""
        self._mark_applied(edits, winner, contest)
        for edit in edits:
            key = change_of(edit)
            if edit in winner.edits or edit in contest.waiting.edits:
                continue
            if key in contest.refused:
                self.memory.reject(edit.lessons, contest.refused[key])
            else:
                self.memory.put_off(edit.lessons, contest.untried[key])

    def takes_out(self, edit: Edit, lesson: str) -> bool:
        """Whether an edit takes the line of an earlier lesson out of the prompt."""
        said = self.memory.words_in_prompt(lesson)
        return said in edit.old and said not in edit.new

    def close(self, outcome: Outcome, contest: Contest) -> None:
        """Mark the lessons that are undecided when the run ends."""
        best, memory = outcome.best, self.memory
        if outcome.finish_reason in CAPS:  # the budget may have ended right after an acceptance
            last = [edit for each in outcome.tried if each.iteration == outcome.iterations for edit in each.edits]
            self._mark_applied(last, best, contest)
        memory.reject(sorted(contest.waiting.lessons), contest.waiting.reason)
        for each in outcome.pruned:
            if each.removed:
                memory.mark(set(each.edit.lessons) - _held(best), "retired", each.reason)
        for lesson in [memory.get(name) for edit in best.edits for name in edit.lessons]:
            if lesson.status == "retired" and lesson.text in best.prompt.text:
                memory.mark([lesson.id], "applied", "the edit that took it out was taken out again")
        for lesson in memory.lessons:
            # reworded after acceptance and not tried again: the prompt keeps the old words, the new ones are rejected
            reworded = memory.words_in_prompt(lesson.id) != lesson.text
            if lesson.status == "merged" and reworded and lesson.text not in best.prompt.text:
                memory.reject([lesson.id], lesson.reason or "the run ended before it was tried")

    def _mark_applied(self, edits: Sequence[Edit], version: Version, contest: Contest) -> None:
        for edit in edits:
            if edit not in version.edits:
                continue
            reason = next(each.reason for each in reversed(contest.tried) if edit in each.edits)
            self.memory.mark(edit.lessons, "applied", reason)
            gone = {lesson for lesson in _held(version).difference(edit.lessons) if self.takes_out(edit, lesson)}
            self.memory.mark(gone, "retired", f"its line was corrected or taken out by {', '.join(edit.lessons)}")


def _refused_before(context: RunContext, draft: Draft, edit: Edit) -> bool:
    """Whether the lesson memory knows that an edit was refused. If so, its lessons are rejected, with a message."""
    reason = None if context.remembering is None else context.remembering.refused_before(draft, edit)
    if reason is None:
        return False
    context.memory.reject(edit.lessons, reason)
    context.events.say(f"{', '.join(edit.lessons)}: {reason}")
    return True


def _keep_refused(context: RunContext, edits: Sequence[Edit], contest: Contest) -> None:
    """Add the edits that were just refused for good to the lesson memory."""
    remembering = context.remembering
    for edit in edits:
        if remembering is not None and (draft := contest.refused_on.get(change_of(edit))) is not None:
            remembering.refuse(draft, edit, contest.refused[change_of(edit)])


@dataclass(frozen=True)
class AddLines:
    """Adds lines without a note-taker: lessons that helped earlier runs, and failing requirements in their own words.

    All lines together are one candidate. They have no trial before the acceptance test, because they are few and each
    is tried only once.
    """

    context: RunContext
    disagreements: ReadingList
    plain: PlainLines | None
    subject: Subject

    async def take(self, now: LoopRound) -> Turn | None:
        """Try all lines together. Does not apply to a calibrated judge."""
        context, best, contest = self.context, now.best, now.contest
        if best.draft.calibration is not None:
            return None
        most, waiting = context.job.options.max_lessons, contest.waiting
        found, _ = self.disagreements.of(now)
        stated = [] if self.plain is None else await self.plain.learn(now.seen, found, waiting.lessons)
        remembering = context.remembering
        recalled = [] if remembering is None else remembering.to_try(context.memory, best.prompt.text)
        lessons = [*recalled, *stated][: _room(best, contest, most)]
        for each in filter(context.memory.is_recalled, lessons):
            context.events.emit(LessonRecalled(each))
        lessons.reverse()  # each line is inserted at the same place, so the last one written stands first
        written = await Placing(self.subject, context.max_prompt_chars, context.events).add(now, lessons)
        for lesson, reason in written.refused.items():
            context.memory.reject([lesson], reason)
        edits = [edit for edit in written.edits if not _refused_before(context, best.draft, edit)]
        if not edits:
            return None
        winner = await contest.settle(best, edits, now.number)
        LessonBook(context.memory).mark([*waiting.edits, *edits], winner, contest)
        _keep_refused(context, edits, contest)
        return Turn(winner, "max_lessons" if _room(winner, contest, most) <= 0 else None)


@dataclass
class LessonEdits:
    """Draws lessons from disagreements and writes them into the prompt as edits."""

    context: RunContext
    signal: Signal
    disagreements: ReadingList
    desk: LessonDesk
    helper: Model
    trial: LessonTrial | None
    """Tries each edit on development examples before the acceptance test."""
    _trials: dict[str, TrialResult] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Make the writer, which also looks for parts of the prompt that order the opposite of a lesson."""
        context, options = self.context, self.context.job.options
        model = context.helper("deduplicator", self.helper)
        finder = ContradictionFinder(context.gateway, model, seed=options.seed)
        opposed = OpposedParts(finder, context.memory, context.events)
        self._book = LessonBook(context.memory)
        self._writer = edit_writer(context, self.helper, context.max_prompt_chars, opposed=opposed)

    async def take(self, now: LoopRound) -> Turn | None:
        """Read disagreements, draw lessons, and try their edits."""
        best, seen, contest, events = now.best, now.seen, now.contest, self.context.events
        if best.draft.calibration is not None:  # the calibration fits only the present prompt
            return None
        _, chosen = self.disagreements.of(now)
        if not chosen:
            return Turn(best, "no_disagreements")
        most = self.context.job.options.max_lessons
        if _room(best, contest, most) <= 0:
            return Turn(best, "max_lessons")
        events.phase("asking for reasons")
        reasons = await self.signal.reasons(best.draft, seen, chosen)
        events.emit(ReasonsGiven(reasons.mine, reasons.theirs))
        lessons = await self.desk.learn(seen, chosen, reasons)
        if not await self._could_read(best, chosen):
            return Turn(best, "notes_failed")
        waiting = contest.waiting
        unsaid = [
            each
            for each in lessons
            if each.promptable
            and each.status != "applied"  # the prompt says it already, perhaps in other words
            and each.text not in best.prompt.text
            and each.id not in waiting.lessons
        ]
        edits = await self._edits(now, unsaid[: _room(best, contest, most)])
        winner = await contest.settle(best, edits, now.number)
        self._book.mark([*waiting.edits, *edits], winner, contest)
        _keep_refused(self.context, edits, contest)
        return Turn(winner, "max_lessons" if _room(winner, contest, most) <= 0 else None)

    async def _could_read(self, best: Version, chosen: Sequence[Disagreement]) -> bool:
        """Whether the run can go on after the notes. Reports how many disagreements could not be read."""
        failed = self.desk.failed
        unread = {key for key, error in failed.items() if isinstance(error, ModelError)}
        # A reply that cannot be used counts as read, unless there is nothing else and nothing was gained before.
        if len(failed) == len(chosen) and (unread or not (self.desk.has_notes or best.number)):
            await self.context.forget_replies(failed.values())
            return False
        self.disagreements.mark_read(best, [each.key for each in chosen if each.key not in unread])
        if unread:
            first = next(failed[each.key] for each in chosen if each.key in unread)
            lost = count(len(unread), "disagreement")
            self.context.events.say(f"{lost} could not be read and will be tried again: {first}")
        return True

    async def _edits(self, now: LoopRound, lessons: Sequence[Lesson]) -> list[Edit]:
        """Return edits that say the lessons and passed their trial, without edits that were refused before."""
        best, seen, memory = now.best, now.seen, self.context.memory
        texts = [text for each in seen.examples for text in (each.input, each.output or "")]
        written = await self._writer.write(best.prompt, lessons, texts)
        for lesson, reason in written.refused.items():
            memory.reject([lesson], reason)
        kept = []
        for number, edit in enumerate(written.edits, 1):
            if _refused_before(self.context, best.draft, edit):
                continue
            refused = now.contest.refused.get(change_of(edit))
            if refused is None and self.trial is not None:
                names = ", ".join(edit.lessons)
                self.context.events.phase(f"trying lesson {names} ({number} of {len(written.edits)})")
                refused = await self._try(self.trial, best.draft, edit, seen)
                if refused is not None and self.context.remembering is not None:
                    self.context.remembering.refuse(best.draft, edit, refused)
            if refused is None:
                kept.append(edit)
            else:
                memory.reject(edit.lessons, refused)
        overwritten = {each for each in _held(best) for edit in kept if self._book.takes_out(edit, each)}
        retired = await self.desk.resolve([each for edit in kept for each in edit.lessons], self._strength, overwritten)
        usable_edits = [edit for edit in kept if not retired.intersection(edit.lessons)]
        stay = {each for edit in kept if edit not in usable_edits for each in edit.lessons} - retired
        if stay:  # one rewrite says all lessons, so it is written anew without the retired ones
            usable_edits += await self._edits(now, [each for each in lessons if each.id in stay])
        return usable_edits

    async def _try(self, trial: LessonTrial, before: Draft, edit: Edit, seen: Observation) -> str | None:
        lessons = [self.context.memory.get(each) for each in edit.lessons]
        result = await trial.run(before, replace(before, prompt=before.prompt.apply(edit)), lessons, seen)
        self.context.events.emit(LessonTried(edit.lessons, result))
        self._trials |= dict.fromkeys(edit.lessons, result)
        return None if result.passed else result.reason

    def _strength(self, lesson: str) -> tuple[float, ...]:
        """Rank a lesson: how selective its trial was, then how many disagreements are behind it."""
        result = self._trials.get(lesson)
        return result.selectivity if result else 0.0, float(self.context.memory.get(lesson).support)


@dataclass(frozen=True)
class Pruning:
    """Takes accepted edits out again at the end of a run."""

    yardstick: Yardstick

    @classmethod
    def steps(cls, options: LoopOptions, yardstick: Yardstick) -> tuple[Pruning, ...]:
        """Return pruning as the last step if the settings want it. The papers' loop has none."""
        return (cls(yardstick),) if options.prune and not options.paper else ()

    async def take(self, now: LoopRound) -> Turn | None:
        """Shorten the best version; returns None where it is the start."""
        if now.best is now.outcome.baseline:
            return None
        found = now.outcome.pruned
        return Turn(await prune(now.best, now.outcome.baseline, now.contest, self.yardstick, found))


async def prune(
    best: Version, baseline: Version, contest: Contest, yardstick: Yardstick, found: list[PrunedRecord]
) -> Version:
    """Try to take out each edit of the prompt, the latest first. Each success is the base for the next try.

    Returns the shortest version found. Each edit's record is added to ``found`` at once, so that it is known also if a
    budget ends the pruning; then ``contest.accepted`` is the result. An edit whose text a later edit has changed cannot
    be taken out and stays.
    """
    validation = contest.validation

    def is_missed(before: Sequence[ExampleScore], after: Sequence[ExampleScore]) -> Decision | None:
        """Reject the shorter prompt at any loss on the first examples; to keep an edit is cheaper than more calls."""
        n = len(after)
        loss = yardstick.difference(before[:n], after, validation[:n])
        if loss.value is None or loss.value >= 0:
            return None
        finding = f"{yardstick.name} {loss.value:+.3f} without it"
        return Decision(False, f"worse on the first {n} validation examples ({finding})", loss)

    def note(version: int, edit: Edit, reason: str, gain: Difference | None, *, removed: bool) -> None:
        pruned = PrunedRecord(edit=edit, removed=removed, reason=reason, gain=gain)
        found.append(pruned)
        contest.events.emit(EditPruned(version, pruned))

    for edit in reversed(best.edits):
        if len(best.edits) == 1:  # without its last edit the prompt would be the start, which lost the acceptance test
            break
        kept_edits = tuple(each for each in best.edits if each is not edit)
        try:
            prompt = _without(edit, best.prompt, kept_edits, replace(baseline.prompt, shown=best.prompt.shown))
        except EditRefusedError as error:
            note(best.number, edit, f"it cannot be taken out: {error}", None, removed=False)
            continue
        raced = await contest.race(best, replace(best.draft, prompt=prompt), kept_edits, [edit], is_missed)
        shorter, gain, reason = raced.version, raced.decision.gain, raced.decision.reason
        removed = False
        if shorter is not None:
            gain = yardstick.difference(best.scores, shorter.scores, validation)
            finding = "undefined" if gain.value is None else f"{yardstick.name} {gain.value:+.3f} without it"
            removed = gain.value is not None and gain.value >= 0
            reason = f"validation is {'no worse' if removed else 'worse'} ({finding})"
            if removed and (problem := contest.lacking(best, shorter)):
                removed, reason = False, f"{reason}, but {problem}"
        note(raced.number, edit, reason, gain, removed=removed)
        if shorter is not None and removed:
            best = contest.accepted = shorter
    return best


def _without(edit: Edit, prompt: Prompt, left: Sequence[Edit], start: Prompt) -> Prompt:
    """Return the prompt without one edit: the other edits applied to the start, or else this edit undone. Raises
    EditRefusedError where neither is possible."""
    try:
        return reduce(Prompt.apply, left, start)
    except EditRefusedError:
        if not edit.new:
            raise
        return prompt.apply(Edit(old=edit.new, new=edit.old, lessons=edit.lessons))
