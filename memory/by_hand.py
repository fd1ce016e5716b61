"""Changes that people make by hand: questions that a run is to try, and changes of a judge.

``wanted-questions.jsonl`` stands beside an earlier run's result. The run that goes on from it (``align --from``) tries
the questions among its own candidates. The file only grows: the last line about a comment stands.
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
"""Characters of a question."""
MOST_QUOTED = 300
"""Characters of a comment that are quoted in a question."""
WAITS = 10.0
"""Seconds that a line waits for another window's."""


class WantedQuestion(BaseModel):
    """A comment that a person made a question of, or took back."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    comment: str = Field(min_length=1)
    """In one line (:func:`~askance.prompts.human_feedback.one_line`)."""
    text: str = Field(max_length=MOST_TEXT)
    """The question; empty where it was taken back."""
    dimension: str = Field(min_length=1)
    examples: tuple[str, ...] = Field(min_length=1)
    """Ids of the examples that the comment was written on."""
    by: str = Field(min_length=1)
    time: str
    """When it was written, in ISO format."""

    @field_validator("text")
    @classmethod
    def _is_a_question(cls, text: str) -> str:
        if text and not asks_yes_or_no(text):
            raise ValueError("a question that yes or no answers is needed, with its question mark")
        return one_line(sendable(text))

    @property
    def candidate(self) -> CriterionRecord:
        """As a run tries it: a question that came from a comment."""
        return CriterionRecord.of(self.text, self.dimension, "comment", self.examples, (self.comment,))


def question_of(comment: str) -> str:
    """A comment as a question: itself where it is one, else whether a reader would say it of the output."""
    if len(comment) <= MOST_QUOTED and asks_yes_or_no(comment):
        return one_line(comment)
    return f"Would a reader say of this output: “{told([comment], MOST_QUOTED)}”?"


def read_wanted(run: Path) -> Mapping[str, WantedQuestion]:
    """The questions that stand, by comment; none where there is no file. Raises InputError, which names the line, where
    one is damaged."""
    file, found = run / WANTED_FILE, dict[str, WantedQuestion]()
    for number, row in read_rows(file) if file.is_file() and file.stat().st_size else ():
        wanted = validate_row(WantedQuestion, row, f"{file}, line {number}")
        found.pop(wanted.comment, None)
        if wanted.text:
            found[wanted.comment] = wanted
    return found


def add_wanted(run: Path, wanted: WantedQuestion) -> None:
    """Keep a question, or that it is taken back; it is on the disk when this returns. Raises AskanceError where it
    cannot be written, and InputError where the file is damaged."""
    file = run / WANTED_FILE
    try:
        with FileLock(run / f".{WANTED_FILE}.lock", timeout=WAITS):
            read_wanted(run)  # a line after a damaged one would be lost
            append_line(file, wanted.model_dump(mode="json"))
    except Timeout:
        raise AskanceError(f"{file}: another window has been writing for {WAITS:g} seconds. Try again.") from None
    except OSError as error:
        raise AskanceError(f"{file}: cannot be written ({error.strerror}). What was there before is kept.") from None


class JudgeChange(BaseModel):
    """One change that a person made of a judge, as ``judge.yaml`` keeps it under ``history``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str = Field(min_length=1)
    """Name of the person."""
    time: str
    """When it was saved, in ISO format."""
    of: str
    """The :attr:`~askance.evaluation.kept_judge.KeptJudge.hash` of the judge before the change."""
    what: tuple[str, ...] = Field(min_length=1)
    """Sentences, one a change."""
    looks: int = Field(0, ge=0)
    """Changed judges whose agreement on validation had been looked at when this one was saved, itself among them."""
    shaped_on_validation: bool = False
    """Whether validation had been looked at for another judge before this one was saved: it says nothing of it now."""


def shaped_said(history: Sequence[JudgeChange]) -> str | None:
    """A sentence on a judge that a person shaped on validation; None where nobody did."""
    shaped = [each for each in history if each.shaped_on_validation]
    if not shaped:
        return None
    return (
        f"{shaped[-1].by} shaped this judge on validation examples ({shaped[-1].looks} looks), so its agreement there "
        "is too good. Measure it on other labelled examples."
    )
