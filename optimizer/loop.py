"""The improvement loop: signal → lessons → edits → trial → acceptance test, until nothing is gained (Algorithm 1, three splits).

One loop for all modes: what differs is the subject, the signal and the yardstick. The best version so far is what a
user gets, whatever happens later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from ..agents.lesson_checks import ContradictionFinder, Deduplicator, LessonClassifier
from ..agents.updater import Rewriter, Updater
from ..memory.result_file import FinishReason
from ..models.base import ModelError
from ..prompts.errors import BudgetExceededError
from ..prompts.formatting import count
from ..prompts.lessons import Disagreement, Edit, Lesson
from .acceptance import PairedAcceptance
from .contest import Contest
from .edits import EditByEdit, EditWriter, OpposedParts, WholeRewrite, add_lines, change_of
from .events import DisagreementsFound, LessonRecalled, LessonTried, LoopStopped, ReasonsGiven
from .lessons import LessonDesk
from .modes.bench import Bench
from .modes.mode import SetUp
from .pruning import prune
from .questions.learner import QuestionLearner
from .show_examples import ShowExamples
from .subject import Draft, Observation, Outcome, Version
from .trial import LessonTrial, TrialResult


class Loop:
    """One run of the loop."""

    def __init__(self, bench: Bench, set_up: SetUp) -> None:
        """Nothing is asked yet; a mode's set-up says what is improved, and against what."""
        self._options = bench.job.options
        self._events = bench.events
        self._bench = bench
        self._development = bench.splits.development
        self._set_up = set_up
        self._desk = _desk(bench, set_up)
        comparing = bench.helper("deduplicator", set_up.helper)
        finder = ContradictionFinder(bench.gateway, comparing, seed=self._options.seed)
        opposed = OpposedParts(finder, bench.memory, bench.events)
        self._writer = edit_writer(bench, set_up, bench.max_prompt_chars, opposed=opposed)
        self._learner = set_up.learner
        self._trial = LessonTrial(set_up.subject, set_up.signal) if self._options.trial else None
        self.contest = _contest(bench, set_up)
        self._max_prompt_chars = bench.max_prompt_chars
        earlier = bench.job.earlier
        self._goes_on = earlier is not None
        read = earlier.disputed(bench.job.examples) if earlier and bench.job.is_same_judge else ()
        self._looked_at: set[tuple[int, str]] = {(0, key) for key in read}
        """Version number and disagreement: with another prompt the same one may have another reason."""
        self._found: set[str] = set()
        """Keys of the disagreements of the iterations so far."""
        self._trials: dict[str, TrialResult] = {}

    async def improve(self, start: Draft) -> Outcome:
        """Improve a draft until one of the reasons to stop holds.

        Raises:
            BudgetExceededError: The budget ended before the starting draft was measured.
            ModelError: A model cannot be reached at all.
        """
        contest, yardstick = self.contest, self._set_up.yardstick
        baseline = await contest.start(start)
        self._events.measured(yardstick.value(baseline.scores), yardstick.name)
        outcome = Outcome(baseline, baseline, "max_iterations", 0, contest.tried)
        try:
            if self._set_up.questions_first is not None:
                outcome.best = await self._set_up.questions_first.challenge(baseline, contest, outcome.wordings)
            if self._set_up.edits:
                await self._iterate(outcome)
            else:
                outcome.finish_reason = "questions_worded"
            if self._options.prune and outcome.best is not baseline and outcome.finish_reason != "notes_failed":
                outcome.best = await prune(outcome.best, baseline, contest, yardstick, outcome.pruned)
        except BudgetExceededError as error:
            outcome.finish_reason = cast(FinishReason, error.limit)
            self._events.say(str(error))
            outcome.best = contest.accepted or outcome.best
            new = [edit for each in outcome.tried if each.iteration == outcome.iterations for edit in each.edits]
            self._mark_applied(new, outcome.best)
        waiting = contest.waiting
        self._reject(sorted(waiting.lessons), waiting.reason)
        self._retire_pruned(outcome)
        self._leave_in_prompt(outcome.best)
        self._events.emit(LoopStopped(outcome.finish_reason, outcome.iterations))
        return outcome

    async def _iterate(self, outcome: Outcome) -> None:
        """Round after round; the outcome is kept up to date."""
        idle = 0
        while outcome.iterations < self._options.max_iterations:
            outcome.iterations += 1
            best, stop = await self._round(outcome)
            self._bench.keep_lessons(best, self._learner, outcome.iterations)
            idle = 0 if best is not outcome.best else idle + 1
            outcome.best = best
            if stop is not None:
                outcome.finish_reason = stop
                return
            if idle >= self._options.patience:
                outcome.finish_reason = "no_gain"
                return

    async def _round(self, outcome: Outcome) -> tuple[Version, FinishReason | None]:
        """One round; returns the best version after it, and the reason to stop where there is one."""
        events, best, iteration = self._events, outcome.best, outcome.iterations
        if self._room(best) <= 0:
            return best, "max_lessons"
        events.phase(f"iteration {iteration}: judging the development examples")
        seen = await self._set_up.subject.observe(best.draft, self._development, events.advance)
        outcome.seen[best.number] = seen
        if self._set_up.signal.agrees(seen):
            return best, self._set_up.agreed
        update, is_calibrated = self._options.update, best.draft.calibration is not None
        shows = None if is_calibrated and update != "examples" else self._set_up.examples
        before_edits: tuple[QuestionLearner | ShowExamples | None, ...] = (self._learner, shows)
        for step in before_edits:
            if step is not None:
                winner = await step.challenge(best, seen, self.contest, iteration)
                if winner is not best:
                    return winner, None
        if update == "examples":
            return best, "examples_tried"
        # a calibration belongs to the prompt, so that no edit can be tried where the verdicts are read by one
        if self._learner is not None and (is_calibrated or update == "questions"):
            if self._learner.has_more:
                return best, "max_iterations"
            return best, self._nothing_left("no_evidence", iteration)
        return await self._edit(best, seen, iteration)

    async def _edit(self, best: Version, seen: Observation, iteration: int) -> tuple[Version, FinishReason | None]:
        """Lessons, from plain words first, then from notes on disagreements, and edits that carry them; as :meth:`_round`."""
        events, signal = self._events, self._set_up.signal
        found = signal.disagreements(best.draft, seen)
        if self._set_up.failed_before_first:  # as BinEval chooses IFBench's development examples (App. B)
            found = sorted(found, key=lambda each: each.key not in self._found)
        self._found.update(each.key for each in found)
        new = [each for each in found if (best.number, each.key) not in self._looked_at]
        # what a judge's leniency explains is read where nothing else is left: it may be wholly too lenient
        chosen = ([each for each in new if each.gap > 0] or new)[: self._options.max_notes]
        events.emit(DisagreementsFound(iteration, len(found), len(seen.verdicts), chosen))
        stated = await self._state_plainly(best, seen, found, iteration)
        if stated is not best:
            return stated, None
        if not chosen:
            return best, self._nothing_left("no_disagreements", iteration)
        if self._room(best) <= 0:
            return best, "max_lessons"
        events.phase("asking for reasons")
        reasons = await signal.reasons(best.draft, seen, chosen)
        events.emit(ReasonsGiven(reasons.mine, reasons.theirs))
        lessons = await self._desk.learn(best.draft, seen, chosen, reasons)
        failed = self._desk.failed
        unread = {key for key, error in failed.items() if isinstance(error, ModelError)}
        # a reply that cannot be used is read, unless there is nothing else and nothing was gained before
        if len(failed) == len(chosen) and (unread or not (self._desk.has_notes or best.number)):
            await self._bench.forget_replies(failed.values())
            return best, "notes_failed"
        self._looked_at.update((best.number, each.key) for each in chosen if each.key not in unread)
        if unread:
            first = next(failed[each.key] for each in chosen if each.key in unread)
            events.say(f"{count(len(unread), 'disagreement')} could not be read and will be tried again: {first}")
        waiting = self.contest.waiting
        unsaid = [
            each
            for each in lessons
            if each.promptable
            and each.status != "applied"  # the prompt says it, if in other words
            and each.text not in best.prompt.text
            and each.id not in waiting.lessons
        ]
        edits = await self._edits(best, unsaid[: self._room(best)], seen)
        winner = await self.contest.settle(best, edits, iteration)
        self._mark([*waiting.edits, *edits], winner)
        return winner, None

    def _room(self, best: Version) -> int:
        """How many lessons may still be written into the prompt."""
        held = {each for edit in best.edits for each in edit.lessons} | self.contest.waiting.lessons
        return self._options.max_lessons - len(held)

    async def _state_plainly(
        self, best: Version, seen: Observation, failures: Sequence[Disagreement], iteration: int
    ) -> Version:
        """Lessons that helped earlier runs, and what fails in its own words, all together first; returns the best version.

        The acceptance test decides on these lines as on any edit. They have no trial before it: there are few of them, and each is
        tried once.
        """
        plain, waiting, memory = self._set_up.plain_lines, self.contest.waiting, self._desk.memory
        stated = [] if plain is None else await plain.learn(seen, failures, waiting.lessons)
        lessons = [*self._bench.recalled(best), *stated][: self._room(best)]
        if not lessons:
            return best
        for each in filter(memory.is_recalled, lessons):
            self._events.emit(LessonRecalled(each))
        lessons.reverse()  # each line is put right after the same place, so the last one written stands first
        written = add_lines(best.prompt, lessons, self._max_prompt_chars, self._events)
        for lesson, reason in written.refused.items():
            self._reject([lesson], reason)
        if not written.edits:
            return best
        winner = await self.contest.settle(best, written.edits, iteration)
        self._mark([*waiting.edits, *written.edits], winner)
        return winner

    def _nothing_left(self, reason: FinishReason, iteration: int) -> FinishReason:
        """The reason to stop, where a run that goes on from another one finds nothing from the first."""
        return "no_new_evidence" if self._goes_on and iteration == 1 else reason

    async def _edits(self, best: Version, lessons: Sequence[Lesson], seen: Observation) -> list[Edit]:
        """Edits that carry the lessons and have passed their trial; those refused before are left out."""
        texts = [text for each in seen.examples for text in (each.input, each.output or "")]
        written = await self._writer.write(best.prompt, lessons, texts)
        for lesson, reason in written.refused.items():
            self._reject([lesson], reason)
        proposed, kept = written.edits, []
        for number, edit in enumerate(proposed, 1):
            refused = self.contest.refused.get(change_of(edit))
            if refused is None and self._trial is not None:
                self._events.phase(f"trying lesson {', '.join(edit.lessons)} ({number} of {len(proposed)})")
                result = await self._try(self._trial, best, edit, seen)
                refused = None if result.passed else result.reason
            if refused is None:
                kept.append(edit)
            else:
                self._reject(edit.lessons, refused)
        held = [lesson for edit in best.edits for lesson in edit.lessons]
        overwritten = {each for each in held for edit in kept if self._takes_out(edit, each)}
        retired = await self._desk.resolve(
            [each for edit in kept for each in edit.lessons], self._strength, overwritten
        )
        left = [edit for edit in kept if not retired.intersection(edit.lessons)]
        stay = {each for edit in kept if edit not in left for each in edit.lessons} - retired
        if stay:  # one rewrite says all lessons: it is written anew without those that were retired
            left += await self._edits(best, [each for each in lessons if each.id in stay], seen)
        return left

    async def _try(self, trial: LessonTrial, best: Version, edit: Edit, seen: Observation) -> TrialResult:
        """Whether an edit earns its place."""
        lessons = [self._desk.memory.get(each) for each in edit.lessons]
        after = replace(best.draft, prompt=best.prompt.apply(edit))
        result = await trial.run(best.draft, after, lessons, seen)
        self._events.emit(LessonTried(edit.lessons, result))
        self._trials |= dict.fromkeys(edit.lessons, result)
        return result

    def _strength(self, lesson: str) -> tuple[float, ...]:
        """What speaks for a lesson: how selective its trial was, then how many disagreements are behind it."""
        result = self._trials.get(lesson)
        return result.selectivity if result else 0.0, float(self._desk.memory.get(lesson).support)

    def _mark(self, edits: Sequence[Edit], winner: Version) -> None:
        self._mark_applied(edits, winner)
        contest = self.contest
        for edit in edits:
            key = change_of(edit)
            if edit in winner.edits or edit in contest.waiting.edits:
                continue
            if key in contest.refused:
                self._reject(edit.lessons, contest.refused[key])
            else:
                self._desk.memory.put_off(edit.lessons, contest.untried[key])

    def _mark_applied(self, edits: Sequence[Edit], version: Version) -> None:
        held = {lesson for edit in version.edits for lesson in edit.lessons}
        for edit in edits:
            if edit not in version.edits:
                continue
            reason = next(each.reason for each in reversed(self.contest.tried) if edit in each.edits)
            self._desk.memory.mark(edit.lessons, "applied", reason)
            gone = {lesson for lesson in held.difference(edit.lessons) if self._takes_out(edit, lesson)}
            self._desk.memory.mark(gone, "retired", f"its line was corrected or taken out by {', '.join(edit.lessons)}")

    def _takes_out(self, edit: Edit, lesson: str) -> bool:
        """Whether an edit takes the line of an earlier lesson out of the prompt."""
        said = self._desk.memory.words_in_prompt(lesson)
        return said in edit.old and said not in edit.new

    def _reject(self, lessons: Sequence[str], reason: str) -> None:
        self._desk.memory.reject(lessons, reason)

    def _retire_pruned(self, outcome: Outcome) -> None:
        held = {lesson for edit in outcome.best.edits for lesson in edit.lessons}
        for each in outcome.pruned:
            if each.removed:
                self._desk.memory.mark(set(each.edit.lessons) - held, "retired", each.reason)
        for lesson in [self._desk.memory.get(name) for edit in outcome.best.edits for name in edit.lessons]:
            if lesson.status == "retired" and lesson.text in outcome.best.prompt.text:
                self._desk.memory.mark([lesson.id], "applied", "the edit that took it out was taken out again")

    def _leave_in_prompt(self, best: Version) -> None:
        """Lessons that were given new words after they were accepted, and were not tried with them, are as accepted."""
        memory = self._desk.memory
        for lesson in memory.lessons:
            reworded = memory.words_in_prompt(lesson.id) != lesson.text
            if lesson.status == "merged" and reworded and lesson.text not in best.prompt.text:
                self._reject([lesson.id], lesson.reason or "the run ended before it was tried")


def _desk(bench: Bench, set_up: SetUp) -> LessonDesk:
    options, gateway = bench.job.options, bench.gateway
    deduplicator, seed = bench.helper("deduplicator", set_up.helper), options.seed
    return LessonDesk(
        set_up.note_taker,
        Deduplicator(gateway, deduplicator, seed=seed),
        bench.memory,
        bench.events,
        set_up.signal,
        contrast=options.contrast,
        classifier=LessonClassifier(gateway, deduplicator, seed=seed) if set_up.classify else None,
        contradictions=ContradictionFinder(gateway, deduplicator, seed=seed),
        batches=set_up.batches if options.notes == "batched" else None,
    )


def edit_writer(
    bench: Bench,
    set_up: SetUp,
    max_prompt_chars: int | None,
    *,
    opposed: OpposedParts | None = None,
    free: bool = False,
) -> EditWriter:
    """Who writes lessons into the prompt, as ``update`` says; ``free`` of the rules of our own loop in the papers'."""
    model = bench.helper("updater", set_up.helper)
    how: dict[str, Any] = {"max_prompt_chars": max_prompt_chars, "seed": bench.job.options.seed, "free": free}
    if bench.job.options.update == "rewrite":
        return WholeRewrite(Rewriter(bench.gateway, model, **how), bench.events, opposed)
    return EditByEdit(Updater(bench.gateway, model, **how), bench.events, opposed)


def _contest(bench: Bench, set_up: SetUp) -> Contest:
    options, validation = bench.job.options, bench.splits.validation
    acceptance = PairedAcceptance(set_up.yardstick, validation, options.alpha, options.min_gain, set_up.guard)
    return Contest(
        set_up.subject,
        acceptance,
        validation,
        bench.run,
        bench.events,
        racing=options.racing,
        bisect=True,
        max_prompt_chars=bench.max_prompt_chars,
        min_coverage=options.min_coverage,
        screening=set_up.screening,
        again=set_up.questions_again,
    )
