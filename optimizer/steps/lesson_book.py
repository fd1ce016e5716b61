"""The fate of lessons in the run's memory: applied, rejected, put off or retired, as the contest decides about their edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...memory.lesson_memory import LessonMemory
from ...models.budget import CAPS
from ...prompts.lessons import Edit
from ..contest import Contest
from ..edits import change_of
from ..subject import Outcome, Version


@dataclass(frozen=True)
class LessonBook:
    """Marks lessons after decisions about their edits."""

    memory: LessonMemory

    def mark(self, edits: Sequence[Edit], winner: Version, contest: Contest) -> None:
        """Mark the lessons of edits that were just tried; ``winner`` is the best version after that."""
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
        """Mark what is left open when the run ends."""
        if outcome.finish_reason in CAPS:  # the budget may have ended right after an acceptance
            last = [edit for each in outcome.tried if each.iteration == outcome.iterations for edit in each.edits]
            self._mark_applied(last, outcome.best, contest)
        self.memory.reject(sorted(contest.waiting.lessons), contest.waiting.reason)
        self._retire_pruned(outcome)
        self._leave_in_prompt(outcome.best)

    def _mark_applied(self, edits: Sequence[Edit], version: Version, contest: Contest) -> None:
        held = {lesson for edit in version.edits for lesson in edit.lessons}
        for edit in edits:
            if edit not in version.edits:
                continue
            reason = next(each.reason for each in reversed(contest.tried) if edit in each.edits)
            self.memory.mark(edit.lessons, "applied", reason)
            gone = {lesson for lesson in held.difference(edit.lessons) if self.takes_out(edit, lesson)}
            self.memory.mark(gone, "retired", f"its line was corrected or taken out by {', '.join(edit.lessons)}")

    def _retire_pruned(self, outcome: Outcome) -> None:
        held = {lesson for edit in outcome.best.edits for lesson in edit.lessons}
        for each in outcome.pruned:
            if each.removed:
                self.memory.mark(set(each.edit.lessons) - held, "retired", each.reason)
        for lesson in [self.memory.get(name) for edit in outcome.best.edits for name in edit.lessons]:
            if lesson.status == "retired" and lesson.text in outcome.best.prompt.text:
                self.memory.mark([lesson.id], "applied", "the edit that took it out was taken out again")

    def _leave_in_prompt(self, best: Version) -> None:
        """Reject the new words of lessons that were reworded after acceptance and not tried again; the prompt keeps the old ones."""
        for lesson in self.memory.lessons:
            reworded = self.memory.words_in_prompt(lesson.id) != lesson.text
            if lesson.status == "merged" and reworded and lesson.text not in best.prompt.text:
                self.memory.reject([lesson.id], lesson.reason or "the run ended before it was tried")
