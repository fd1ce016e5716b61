"""What is remembered beyond a run: lessons and questions that runs have learned, with what became of them in each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..prompts.checklist import GoodAnswer, marked
from ..prompts.lessons import Edit, Lesson, LessonStatus
from .records import Fate

About = Literal["judge", "generator"]
"""Whose prompts lessons are for: ``migrate`` and ``align`` improve judges, ``tune`` a generator."""
Direction = Literal["stricter", "more lenient"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class InRun(_Part):
    """What one run had to do with an entry."""

    run: str
    """Name of its directory."""
    fingerprint: str
    """Beginning of the fingerprint of its inputs and settings, which stays where the directory is moved."""
    command: str
    models: dict[str, str]
    """By argument, e.g. ``source`` and ``target``."""
    name: str
    """The id that the entry has there."""
    iteration: int | None = None
    """When it was learned; None where that is not known."""


class LessonInRun(InRun):
    """What became of a lesson in a run."""

    text: str
    status: LessonStatus
    reason: str | None = None
    evidence: tuple[str, ...] = ()
    """Keys of the disagreements, of the run's own examples."""
    asked: dict[str, str] = {}
    """The questions that they are about, by id."""
    edits: tuple[Edit, ...] = ()
    """Those that the run accepted because of it."""

    @property
    def was_tried(self) -> bool:
        """Whether an edit of it came to a trial or to the acceptance test."""
        return self.status in ("applied", "rejected", "retired") and not (self.reason or "").startswith("no edit")


class QuestionInRun(InRun, Fate):
    """What became of a question in a run."""


class RememberedLesson(_Part):
    """A lesson, and what became of it in every run that had to do with it."""

    entry: Literal["lesson"] = "lesson"
    id: str
    text: str = Field(min_length=1)
    about: About
    direction: Direction
    dimension: str
    kind: Literal["promptable", "computational"] = "promptable"
    kind_reason: str | None = None
    requirement: str | None = None
    """The question or check whose own words it states."""
    requirement_text: str | None = None
    """What that question asks; None of a check, whose name says it."""
    wordings: tuple[str, ...] = ()
    """What it said before other lessons were merged into it."""
    runs: tuple[LessonInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["lesson"], About, Direction, str]:
        """What lessons have in common that may be the same."""
        return ("lesson", self.about, self.direction, self.dimension)

    @property
    def helped(self) -> bool:
        """Whether the last run that tried it accepted it."""
        tried = [each.status for each in self.runs if each.was_tried]
        return tried[-1:] == ["applied"]


class RememberedQuestion(_Part):
    """A question that joined a judge, and what became of it in every run that tried it."""

    entry: Literal["question"] = "question"
    id: str
    text: str = Field(min_length=1)
    dimension: str
    good: GoodAnswer
    wordings: tuple[str, ...] = ()
    runs: tuple[QuestionInRun, ...] = Field(min_length=1)

    @property
    def key(self) -> tuple[Literal["question"]]:
        """What questions have in common that may be the same."""
        return ("question",)

    @property
    def criterion(self) -> str:
        """The text, and that yes is a fault where it is one."""
        return marked(self.text, self.good)

    @property
    def joined(self) -> tuple[bool, int]:
        """Whether the last run that tried it kept it, and how many did."""
        kept = [each.joined for each in self.runs]
        return kept[-1], sum(kept)


class RemovedEntry(_Part):
    """What people removed, so that it is not learned again."""

    entry: Literal["removed"] = "removed"
    id: str
    key: tuple[Literal["question"]] | tuple[Literal["lesson"], About, Direction, str]
    """Which lessons or questions it may be, as their own key."""
    texts: tuple[str, ...] = Field(min_length=1)
    """All the words that it had, the last ones first."""
    requirement: str | None = None
    requirement_text: str | None = None


Entry = RememberedLesson | RememberedQuestion
ENTRIES: dict[str, type[RememberedLesson] | type[RememberedQuestion] | type[RemovedEntry]] = {
    "lesson": RememberedLesson,
    "question": RememberedQuestion,
    "removed": RemovedEntry,
}
"""By the word under ``entry``."""


def remembered_lesson(
    facts: Mapping[str, Any],
    lesson: Lesson,
    *,
    iteration: int | None,
    questions: Mapping[str, str],
    edits: Sequence[Edit],
) -> RememberedLesson:
    """A run's lesson as an entry.

    Args:
        facts: As :func:`facts_of_run` gives them.
        lesson: With the id that it has in the run.
        iteration: When it was learned.
        questions: The words of the run's questions, by id.
        edits: All that the run accepted.
    """
    behind = {
        # an id may end as another one does: "style/names" is not about "names"
        max((each for each in questions if key.endswith(f"/{each}")), key=len, default=None)
        for key in lesson.evidence
    }
    record = LessonInRun(
        **facts,
        name=lesson.id,
        iteration=iteration,
        text=lesson.text,
        status=lesson.status,
        reason=lesson.reason,
        evidence=lesson.evidence,
        asked={each: text for each, text in questions.items() if each in behind},
        edits=tuple(each for each in edits if lesson.id in each.lessons),
    )
    return RememberedLesson(
        about="generator" if facts["command"] == "tune" else "judge",
        requirement_text=questions.get(lesson.requirement or ""),
        runs=(record,),
        **lesson.model_dump(include={"id", "text", "direction", "dimension", "kind", "kind_reason", "requirement"}),
    )
