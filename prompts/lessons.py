"""Disagreements, the lessons drawn from them, and the edits that carry lessons into a prompt."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Disagreement(BaseModel):
    """An (example, question) on which a judge and its reference differ."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    example: str
    question: str
    target: bool
    """What the judge that is being improved answered."""
    reference: bool
    """What it should have answered, according to the source (or to people)."""
    gap: float
    """How far apart their P(yes) are beyond each one's mean on this question, in [-2, 2]; positive in the direction of
    the disagreement. At most 0 where one judge being more lenient than the other explains it all."""
    target_p_yes: float | None = None
    reference_p_yes: float | None = None

    @property
    def key(self) -> str:
        """Short name used as evidence: ``example/question``."""
        return f"{self.example}/{self.question}"


LessonStatus = Literal["new", "merged", "applied", "rejected", "retired", "removed"]
"""``removed``: people took it out of a lesson memory, and it is not to be learned again."""


class Lesson(BaseModel):
    """One generalised, reusable sentence drawn from disagreements, with its evidence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str = Field(min_length=1)
    direction: Literal["stricter", "more lenient"]
    """Whether the target called good what the reference did not, or the reverse."""
    dimension: str
    evidence: tuple[str, ...]
    """Disagreement keys; their number is the lesson's support."""
    status: LessonStatus = "new"
    reason: str | None = None
    """Why it has this status, e.g. what the acceptance test said when its edit was rejected."""
    kind: Literal["promptable", "computational"] = "promptable"
    """A prompt can make a model attend to something; it cannot make it count, sort or keep a ratio."""
    kind_reason: str | None = None
    requirement: str | None = None
    """The question or check whose own words it states; None where a note-taker drew it from disagreements."""

    @property
    def promptable(self) -> bool:
        """Whether it may be written into a prompt."""
        return self.kind == "promptable"

    @property
    def is_closed(self) -> bool:
        """Whether it was given up, until there is new evidence for it; for good where people removed it."""
        return self.status in ("rejected", "retired", "removed")

    @property
    def support(self) -> int:
        """Number of disagreements behind the lesson."""
        return len(self.evidence)


class Edit(BaseModel):
    """Exact old text to new text in a prompt, with the lessons that caused it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    old: str = Field(min_length=1)
    new: str
    lessons: tuple[str, ...] = ()
