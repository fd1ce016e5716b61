"""The improvement loop: signal → lessons → edits → trial → gate, until nothing is gained (Algorithm 1, three splits).

One loop for all modes: what differs is the subject, the signal and the yardstick. The best version so far is what a
user gets, whatever happens later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..memory.run_directory import FinishReason
from ..prompts.errors import BudgetExceededError
from .events import DisagreementsFound, LessonTried, LoopStopped, ReasonsGiven
from .pruning import prune
from .subject import Draft, Outcome, Version

if TYPE_CHECKING:
    from ..memory.run_directory import RunDirectory
    from ..prompts.examples import Example
    from ..prompts.lessons import Edit, Lesson
    from .contest import Contest
    from .edits import EditWriter
    from .events import Teller
    from .lessons import LessonDesk
    from .options import LoopOptions
    from .pruning import QuestionsAgain
    from .signals import Signal
    from .subject import Observation, Subject
    from .trial import LessonTrial, TrialResult
    from .yardsticks import Yardstick


@dataclass(frozen=True)
class Parts:
    """What the loop is made of; a mode chooses them."""

    subject: Subject
    signal: Signal
    yardstick: Yardstick
    desk: LessonDesk
    writer: EditWriter
    contest: Contest
    development: Sequence[Example]
    run: RunDirectory
    events: Teller
    trial: LessonTrial | None = None
    """None where lessons go to the gate untried."""
    questions_again: QuestionsAgain | None = None
    """Writes the questions anew after an accepted edit; None where the checklist stays."""
    agreed: FinishReason = "converged"
    """Why the loop ends when the signal agrees."""


class Loop:
    """One run of the loop."""

    def __init__(self, parts: Parts, options: LoopOptions) -> None:
        """Nothing is asked yet."""
        self._parts = parts
        self._options = options
        self._looked_at: set[tuple[int, str]] = set()
        """Version number and disagreement: with another prompt the same one may have another reason."""
        self._trials: dict[str, TrialResult] = {}

    async def improve(self, start: Draft) -> Outcome:
        """Improve a draft until one of the reasons to stop holds.

        Raises:
            BudgetExceededError: The budget ended before the starting draft was measured.
            ModelError: A model cannot be reached at all.
        """
        parts = self._parts
        baseline = await parts.contest.start(start)
        parts.events.measured(parts.yardstick.value(baseline.scores), parts.yardstick.name)
        outcome = Outcome(baseline, baseline, "max_iterations", 0, parts.contest.tried)
        try:
            await self._iterate(outcome)
            if self._options.prune and outcome.best is not baseline:
                outcome.best = await prune(outcome.best, baseline, parts.contest, parts.yardstick, outcome.pruned)
        except BudgetExceededError as error:
            outcome.finish_reason = cast(FinishReason, error.limit)
            parts.events.say(str(error))
            outcome.best = parts.contest.accepted or outcome.best
            new = [edit for each in outcome.tried if each.iteration == outcome.iterations for edit in each.edits]
            self._mark_applied(new, outcome.best)
        waiting = parts.contest.waiting
        self._reject(sorted(waiting.lessons), waiting.reason)
        self._retire_pruned(outcome)
        parts.events.emit(LoopStopped(outcome.finish_reason, outcome.iterations))
        return outcome

    async def _iterate(self, outcome: Outcome) -> None:
        """Round after round; the outcome is kept up to date."""
        idle = 0
        while outcome.iterations < self._options.max_iterations:
            outcome.iterations += 1
            best, stop = await self._round(outcome)
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
        parts, best, iteration = self._parts, outcome.best, outcome.iterations
        waiting = parts.contest.waiting
        room = self._options.max_lessons - len({each for edit in best.edits for each in edit.lessons} | waiting.lessons)
        if room <= 0:
            return best, "max_lessons"
        parts.events.phase(f"iteration {iteration}: judging the development examples")
        seen = await parts.subject.observe(best.draft, parts.development, parts.events.advance)
        outcome.seen[best.number] = seen
        if parts.signal.agrees(seen):
            return best, parts.agreed
        found = parts.signal.disagreements(best.draft, seen)
        chosen = [each for each in found if each.gap > 0 and (best.number, each.key) not in self._looked_at]
        chosen = chosen[: self._options.max_notes]
        parts.events.emit(DisagreementsFound(iteration, len(found), len(seen.verdicts), chosen))
        if not chosen:
            return best, "no_disagreements"
        self._looked_at.update((best.number, each.key) for each in chosen)
        parts.events.phase("asking for reasons")
        reasons = await parts.signal.reasons(best.draft, seen, chosen)
        parts.events.emit(ReasonsGiven(reasons.mine, reasons.theirs))
        lessons = await parts.desk.learn(best.draft, seen, chosen, reasons)
        unsaid = [
            each
            for each in lessons
            if each.promptable and each.text not in best.prompt.text and each.id not in waiting.lessons
        ]
        edits = await self._edits(best, unsaid[:room], seen)
        winner = await parts.contest.settle(best, edits, iteration)
        self._mark([*waiting.edits, *edits], winner)
        if parts.questions_again is not None and winner is not best:
            winner = await parts.questions_again.challenge(winner, parts.contest, iteration)
        if not parts.events.journal.replaying:
            parts.run.save_lessons(parts.desk.memory.lessons)
        return winner, None

    async def _edits(self, best: Version, lessons: Sequence[Lesson], seen: Observation) -> list[Edit]:
        """Edits that carry the lessons and have passed their trial; those refused before are left out."""
        parts = self._parts
        texts = [text for each in seen.examples for text in (each.input, each.output or "")]
        written = await parts.writer.write(best.prompt, lessons, texts)
        for lesson, reason in written.refused.items():
            self._reject([lesson], reason)
        proposed, kept = written.edits, []
        for number, edit in enumerate(proposed, 1):
            refused = parts.contest.refused.get((edit.old, edit.new))
            if refused is None and parts.trial is not None:
                parts.events.phase(f"trying lesson {', '.join(edit.lessons)} ({number} of {len(proposed)})")
                result = await self._try(parts.trial, best, edit, seen)
                refused = None if result.passed else result.reason
            if refused is None:
                kept.append(edit)
            else:
                self._reject(edit.lessons, refused)
        retired = await parts.desk.resolve([each for edit in kept for each in edit.lessons], self._strength)
        return [edit for edit in kept if not retired.intersection(edit.lessons)]

    async def _try(self, trial: LessonTrial, best: Version, edit: Edit, seen: Observation) -> TrialResult:
        """Whether an edit earns its place."""
        lessons = [self._parts.desk.memory.get(each) for each in edit.lessons]
        after = Draft(best.prompt.apply(edit), best.draft.checklist)
        result = await trial.run(best.draft, after, lessons, seen)
        self._parts.events.emit(LessonTried(edit.lessons, result))
        self._trials |= dict.fromkeys(edit.lessons, result)
        return result

    def _strength(self, lesson: str) -> tuple[float, ...]:
        """What speaks for a lesson: how selective its trial was, then how many disagreements are behind it."""
        result = self._trials.get(lesson)
        selective = result.turned / result.evidence - result.harmed / max(result.controls, 1) if result else 0.0
        return selective, float(self._parts.desk.memory.get(lesson).support)

    def _mark(self, edits: Sequence[Edit], winner: Version) -> None:
        self._mark_applied(edits, winner)
        contest = self._parts.contest
        for edit in edits:
            key = edit.old, edit.new
            if edit in winner.edits or edit in contest.waiting.edits:
                continue
            if key in contest.refused:
                self._reject(edit.lessons, contest.refused[key])
            else:
                self._parts.desk.memory.put_off(edit.lessons, contest.untried[key])

    def _mark_applied(self, edits: Sequence[Edit], version: Version) -> None:
        for edit in edits:
            if edit in version.edits:
                reason = next(each.reason for each in reversed(self._parts.contest.tried) if edit in each.edits)
                self._parts.desk.memory.mark(edit.lessons, "applied", reason)

    def _reject(self, lessons: Sequence[str], reason: str) -> None:
        self._parts.desk.memory.mark(lessons, "rejected", reason)

    def _retire_pruned(self, outcome: Outcome) -> None:
        for each in outcome.pruned:
            if each.removed:
                self._parts.desk.memory.mark(each.edit.lessons, "retired", each.reason)


__all__ = ["Loop", "Parts"]
