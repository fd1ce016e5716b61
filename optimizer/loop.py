"""The improvement loop: rounds of steps until nothing is gained (Algorithm 1 with three splits, an acceptance test).

One loop for all modes and for the papers' way. A mode brings the steps; the best version so far is what a user gets,
whatever happens later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..memory.result_file import FinishReason
from ..prompts.errors import BudgetExceededError
from .contest import Contest
from .events import LoopStopped
from .mode import LoopRound, RunContext, SetUp, Step, Turn
from .steps.lesson_edits import LessonBook
from .subject import Draft, Outcome

NOTHING_LEFT: tuple[FinishReason, ...] = ("no_evidence", "no_disagreements")
"""Reasons to stop that mean, in the first round after an earlier run, that there is nothing new to learn from."""


class Loop:
    """One run of the loop."""

    def __init__(self, context: RunContext, set_up: SetUp) -> None:
        """Nothing is asked yet; the set-up says what is improved, and by which steps."""
        options, self._set_up, self._context, self._events = context.job.options, set_up, context, context.events
        papers = options.paper  # the papers' loop tries every version whole
        self.contest = Contest(
            set_up.subject,
            set_up.acceptance,
            context.splits.validation,
            context.run,
            context.events,
            racing=options.racing and not papers,
            bisect=not papers,
            max_prompt_chars=options.max_prompt_chars if papers else context.max_prompt_chars,
            min_coverage=options.min_coverage,
            screening=None if papers else set_up.screening,
            again=None if papers else set_up.writes_questions,
        )
        self._lessons = LessonBook(context.memory)

    async def improve(self, start: Draft) -> Outcome:
        """Improve a draft until one of the reasons to stop holds. Raises BudgetExceededError where the budget ended
        before the starting draft was measured, and ModelError where a model cannot be reached at all."""
        contest, set_up = self.contest, self._set_up
        baseline = await contest.start(start)
        outcome = Outcome(baseline, baseline, set_up.without_rounds, 0, contest.tried)
        if not (set_up.first or set_up.steps):
            return outcome
        self._events.measured(set_up.yardstick.value(baseline.scores), set_up.yardstick.name)
        try:
            await self._take(set_up.first, outcome)
            if set_up.steps:
                outcome.finish_reason = await self._rounds(outcome)
            if outcome.finish_reason != "notes_failed" or not set_up.needs_notes:  # else that run is to go on
                await self._take(set_up.last, outcome)
        except BudgetExceededError as error:
            outcome.finish_reason = cast(FinishReason, error.limit)
            self._events.say(str(error))
            outcome.best = contest.accepted or outcome.best
        self._lessons.close(outcome, contest)
        self._events.emit(LoopStopped(outcome.finish_reason, outcome.iterations))
        return outcome

    async def _rounds(self, outcome: Outcome) -> FinishReason:
        """Take rounds until there is a reason to stop, and return it. The outcome is kept up to date."""
        options, idle = self._context.job.options, 0
        while outcome.iterations < options.max_iterations:
            outcome.iterations += 1
            turn = await self._round(outcome)
            self._context.keep_lessons(turn.best, outcome.questions, outcome.iterations)
            idle = 0 if turn.best is not outcome.best else idle + 1
            outcome.best = turn.best
            if turn.stop is not None:
                goes_on = self._context.job.earlier is not None and outcome.iterations == 1
                return "no_new_evidence" if goes_on and turn.stop in NOTHING_LEFT else turn.stop
            if idle >= options.patience:
                return "no_gain"
        return "max_iterations"

    async def _round(self, outcome: Outcome) -> Turn:
        """Take the steps in order, until one gains something."""
        set_up, best, number = self._set_up, outcome.best, outcome.iterations
        self._events.phase(f"iteration {number}: judging the development examples")
        seen = await set_up.subject.observe(best.draft, self._context.splits.development, self._events.advance)
        outcome.seen[best.number] = seen
        if set_up.signal.agrees(seen):
            return Turn(best, set_up.agreed)
        said = Turn(best)
        for step in set_up.steps:
            turn = await step.take(LoopRound(best, number, self.contest, outcome))
            if turn is not None and turn.best is not best:
                return turn
            said = turn or said
        return said

    async def _take(self, steps: Sequence[Step], outcome: Outcome) -> None:
        """Take steps that do not belong to a round."""
        for step in steps:
            turn = await step.take(LoopRound(outcome.best, 0, self.contest, outcome))
            if turn is not None:
                outcome.best = turn.best
