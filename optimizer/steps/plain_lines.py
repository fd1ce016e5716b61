"""The simplest candidate of ``tune`` comes first: what fails, stated in its own words, before any note-taker's rule.

Beyond the papers. Measured with a 1.5B model, requirements that a prompt left out were mostly met once they stood in it as
plain lines, where its own rules for them were of no use (METHOD, part 4).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from ...agents.generator import RequirementWriter, as_it_stands, instruction_of
from ...memory.lesson_memory import LessonMemory
from ...prompts.checklist import Checklist, Question
from ...prompts.lessons import Disagreement, Lesson
from ..events import RequirementStated, Teller, answer_or_none
from ..signals import disputed
from ..subject import CHECKS, Observation

LEAST_FAILURES = 2
LEAST_SHARE = 0.1
"""Of the development examples on which it is asked, a requirement fails on at least this share before it is stated."""
LEAST_ASKED = 0.5
"""Share of the development examples on which it must be asked: what only some requests want is no line for all outputs."""


@dataclass(frozen=True)
class PlainLines:
    """Makes lessons of requirements, at one call each at most."""

    writer: RequirementWriter
    """Asked where the words cannot be turned round."""
    checklist: Checklist | None
    """The questions that are asked of every example; others belong to one example and are never stated."""
    memory: LessonMemory
    events: Teller

    async def learn(
        self, seen: Observation, failures: Sequence[Disagreement], waiting: Collection[str]
    ) -> list[Lesson]:
        """The requirements to be tried now, those that fail most often first; each is tried once in a run.

        Args:
            seen: What the best version did on the development examples.
            failures: All that failed there.
            waiting: Ids of lessons whose edits wait to be tried with others.

        Raises:
            ModelError: An endpoint refuses every call.
        """
        by_question: dict[str, list[Disagreement]] = {}
        for each in failures:
            by_question.setdefault(each.question, []).append(each)
        lessons = []
        for name, failed in sorted(by_question.items(), key=lambda item: -len(item[1])):
            requirement = seen.question(failed[0].example, name)
            known = next((each for each in self.memory.lessons if each.requirement == name), None)
            if known is not None:
                if known.status == "new" and known.id not in waiting:
                    lessons.append(known)
            elif self._is_for_all(requirement) and _fails_often(name, failed, seen):
                lessons.append(await self._state(requirement, failed, seen))
        return lessons

    def _is_for_all(self, requirement: Question) -> bool:
        return self._is_check(requirement) or requirement.id in _ids(self.checklist)

    def _is_check(self, requirement: Question) -> bool:
        return requirement.dimension == CHECKS and requirement.id not in _ids(self.checklist)

    async def _state(self, requirement: Question, failed: Sequence[Disagreement], seen: Observation) -> Lesson:
        """A new lesson."""
        text, by = await self._line(requirement, _reasons(failed, seen))
        number = sum(each.requirement is not None for each in self.memory.lessons) + 1
        lesson = self.memory.add(
            Lesson(
                id=f"R{number}",
                text=text,
                direction="stricter",
                dimension=requirement.dimension,
                evidence=tuple(each.key for each in failed),
                requirement=requirement.id,
            )
        )
        self.events.emit(RequirementStated(lesson, by))
        return lesson

    async def _line(
        self, requirement: Question, reasons: Sequence[str]
    ) -> tuple[str, Literal["words", "model", "quotation"]]:
        check = requirement.id if self._is_check(requirement) else None
        if line := instruction_of(check or requirement.text, is_fault=requirement.is_fault):
            return line, "words"
        otherwise = f"the requirement {requirement.id} is quoted as it stands"
        written = await answer_or_none(self.writer.write(requirement, check, reasons), otherwise, self.events)
        return (as_it_stands(requirement, check), "quotation") if written is None else (written, "model")


def _ids(checklist: Checklist | None) -> set[str]:
    return {each.id for each in checklist.questions} if checklist else set()


def _fails_often(name: str, failed: Sequence[Disagreement], seen: Observation) -> bool:
    asked = sum(each.question == name and not each.replicate and each.answer is not None for each in seen.verdicts)
    of_all = asked >= LEAST_ASKED * len(seen.examples)
    return of_all and len(failed) >= max(LEAST_FAILURES, LEAST_SHARE * asked)


def _reasons(failed: Sequence[Disagreement], seen: Observation) -> list[str]:
    """What a checker said was wrong, each reason once, in the order of the failures."""
    return list(dict.fromkeys(each.explanation for each in disputed(seen, failed) if each.explanation))
