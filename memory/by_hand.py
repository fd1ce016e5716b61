"""Changes that people make by hand: questions that a run must try, and changes of a judge.

``wanted-questions.jsonl`` is kept beside an earlier run's result. The run that continues it (``align --from``) tries
these questions among its own candidates. Lines are only added; the last line about a comment counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..prompts.criteria.wording import asks_yes_or_no
from ..prompts.errors import AskanceError
from ..prompts.human_feedback import one_line, told
from ..prompts.rows import validate_row
from ..prompts.tables import read_rows
from ..prompts.text import sendable
from ..prompts.text_files import append_line
from .records import CriterionRecord

WANTED_FILE = "wanted-questions.jsonl"
MOST_TEXT = 1_000
"""Most characters of a question."""
MOST_QUOTED = 300
"""Most characters of a comment that are quoted in a question."""
WAITS = 10.0
"""Seconds to wait while another window writes."""


class WantedQuestion(BaseModel):
    """A question that a person made of a comment, or the note that it was taken back."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    comment: str = Field(min_length=1)
    """The comment on one line (:func:`~askance.prompts.human_feedback.one_line`)."""
    text: str = Field(max_length=MOST_TEXT)
    """The question; empty if it was taken back."""
    dimension: str = Field(min_length=1)
    examples: tuple[str, ...] = Field(min_length=1)
    """Ids of the examples that the comment was written on."""
    by: str = Field(min_length=1)
    time: str
    """Time of writing, in ISO format."""

    @field_validator("text")
    @classmethod
    def _is_a_question(cls, text: str) -> str:
        if text and not asks_yes_or_no(text):
            raise ValueError("a question that yes or no answers is needed, with its question mark")
        return one_line(sendable(text))

    @property
    def candidate(self) -> CriterionRecord:
        """The record with which a run tries the question, as a question from a comment."""
        return CriterionRecord.of(self.text, self.dimension, "comment", self.examples, (self.comment,))


def question_of(comment: str) -> str:
    """Make a question of a comment: the comment itself if it is a yes/no question, else "Would a reader say …?"."""
    if len(comment) <= MOST_QUOTED and asks_yes_or_no(comment):
        return one_line(comment)
    return f"Would a reader say of this output: “{told([comment], MOST_QUOTED)}”?"


def read_wanted(run: Path) -> Mapping[str, WantedQuestion]:
    """Read the wanted questions that were not taken back, by comment; empty without a file. Raises InputError, with the
    line, if the file is damaged."""
    file, found = run / WANTED_FILE, dict[str, WantedQuestion]()
    for number, row in read_rows(file) if file.is_file() and file.stat().st_size else ():
        wanted = validate_row(WantedQuestion, row, f"{file}, line {number}")
        found.pop(wanted.comment, None)
        if wanted.text:
            found[wanted.comment] = wanted
    return found


def add_wanted(run: Path, wanted: WantedQuestion) -> None:
    """Add a question, or the note that it was taken back. The line is on the disk when this returns. Raises
    AskanceError if it cannot be written, and InputError if the file is damaged."""
    file = run / WANTED_FILE
    try:
        with FileLock(run / f".{WANTED_FILE}.lock", timeout=WAITS):
            read_wanted(run)  # raises if the file is damaged: a line after a damaged line would be lost
            append_line(file, wanted.model_dump(mode="json"))
    except Timeout:
        raise AskanceError(f"{file}: another window has been writing for {WAITS:g} seconds. Try again.") from None
    except OSError as error:
        raise AskanceError(f"{file}: cannot be written ({error.strerror}). What was there before is kept.") from None


class JudgeChange(BaseModel):
    """A change that a person made to a judge; ``judge.yaml`` lists these changes under ``history``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str = Field(min_length=1)
    """Name of the person."""
    time: str
    """Time of saving, in ISO format."""
    of: str
    """The :attr:`~askance.evaluation.kept_judge.KeptJudge.hash` of the judge before the change."""
    what: tuple[str, ...] = Field(min_length=1)
    """One sentence for each change."""
    looks: int = Field(0, ge=0)
    """Number of changed judges, this one included, whose agreement on validation was shown before the saving."""
    shaped_on_validation: bool = False
    """Whether agreement on validation was shown for another judge before this one was saved. Then the agreement of this
    judge on validation proves nothing."""


def shaped_said(history: Sequence[JudgeChange]) -> str | None:
    """Return a sentence on a judge that a person shaped on validation; None if nobody did."""
    shaped = [each for each in history if each.shaped_on_validation]
    if not shaped:
        return None
    return (
        f"{shaped[-1].by} shaped this judge on validation examples ({shaped[-1].looks} looks), so its agreement there "
        "is too good. Measure it on other labelled examples."
    )
