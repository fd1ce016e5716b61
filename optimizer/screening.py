"""A candidate is first judged on the questions that its lessons come from: most useless ones are seen through there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .subject import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ..evaluation.scoring import ExampleScore
    from ..memory.lesson_memory import LessonMemory
    from ..prompts.examples import Example
    from ..prompts.lessons import Edit
    from ..prompts.verdicts import Verdict
    from .subject import Subject


@dataclass(frozen=True)
class Screening:
    """Judges a part of the questions, for a judge that is asked each question on its own."""

    subject: Subject
    memory: LessonMemory
    """Knows the lessons' evidence."""
    soft: bool
    """How verdicts become scores."""

    def questions(self, before: Draft, after: Draft, edits: Sequence[Edit]) -> tuple[str, ...]:
        """The questions that the lessons of the edits come from, in the checklist's order.

        Empty where that is all of them, or where the drafts do not share their questions: there is nothing to save.
        """
        if after.checklist is None or after.checklist != before.checklist:
            return ()
        lessons = [self.memory.get(each) for edit in edits for each in edit.lessons]
        keys = [key for lesson in lessons for key in lesson.evidence]
        asked = [question.id for question in after.checklist.questions]
        found = tuple(each for each in asked if any(key.endswith(f"/{each}") for key in keys))
        return found if len(found) < len(asked) else ()

    async def judge(
        self,
        draft: Draft,
        examples: Sequence[Example],
        questions: Collection[str],
        on_done: Callable[[int, int], None] | None = None,
    ) -> list[Verdict]:
        """The draft's verdicts on some of its questions.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call or is down.
        """
        checklist = draft.questions
        chosen = tuple(each for each in checklist.questions if each.id in questions)
        part = replace(draft, checklist=checklist.model_copy(update={"questions": chosen}))
        return list((await self.subject.observe(part, examples, on_done)).verdicts)

    def scores(self, draft: Draft, examples: Sequence[Example], verdicts: Sequence[Verdict]) -> list[ExampleScore]:
        """The scores of the examples from verdicts on all questions, whichever prompt each comes from."""
        ids = {example.id for example in examples}
        known = [verdict for verdict in verdicts if verdict.example in ids]
        return draft.scores(examples, known, soft=self.soft)
