"""The checklist: atomic yes/no questions by dimension, in a file people like to edit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .errors import InputError
from .jsonl import validate_row


class Question(BaseModel):
    """An atomic yes/no question; "yes" means that the criterion is met (BinEval §3.1)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    dimension: str = Field(default="overall", min_length=1)
    violation: str | None = None
    """A short example of what "no" looks like."""
    weight: float = Field(default=1.0, ge=0)
    rubric: str | None = None
    reference: str | None = None


class Checklist(BaseModel):
    """Questions about one task, grouped by their dimension."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = ""
    questions: tuple[Question, ...] = Field(min_length=1)

    @field_validator("questions")
    @classmethod
    def _ids_are_unique(cls, questions: tuple[Question, ...]) -> tuple[Question, ...]:
        seen: set[str] = set()
        for number, question in enumerate(questions, 1):
            if question.id in seen:
                raise ValueError(f"the id '{question.id}' is used again by question {number}")
            seen.add(question.id)
        return questions

    @model_validator(mode="after")
    def _some_weight(self) -> Checklist:
        if not any(question.weight > 0 for question in self.questions):
            raise ValueError("every weight is 0, so there is no score")
        return self

    @property
    def dimensions(self) -> list[str]:
        """Dimensions in order of first appearance."""
        return list(dict.fromkeys(question.dimension for question in self.questions))

    def question(self, question_id: str) -> Question:
        """The question with this id.

        Raises:
            KeyError: There is none.
        """
        for question in self.questions:
            if question.id == question_id:
                return question
        raise KeyError(f"the checklist has no question '{question_id}'")


def load_checklist(path: str | Path) -> Checklist:
    """Read a checklist from YAML or JSON.

    Raises:
        InputError: Names the file and the question or line at fault.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such checklist.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error}).") from None
    return parse_checklist(text, str(path))


def parse_checklist(text: str, name: str) -> Checklist:
    """Read a checklist from the text of a YAML or JSON file; ``name`` is used in errors.

    Raises:
        InputError: The text is no checklist.
    """
    try:
        data: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise InputError(f"{name}{line}: not valid YAML ({problem}).") from None
    if not isinstance(data, dict):
        raise InputError(f"{name}: a checklist has the keys 'task' and 'questions'; this file has neither.")
    return validate_row(Checklist, data, name)


def dump_checklist(checklist: Checklist) -> str:
    """Write a checklist as YAML with one block a question, defaults left out."""
    lines = [f"task: {_scalar(checklist.task)}", "", "questions:"]
    for question in checklist.questions:
        fields = question.model_dump(exclude_none=True)
        if fields["weight"] == 1:
            del fields["weight"]
        for number, (key, value) in enumerate(fields.items()):
            lines.append(f"  {'- ' if number == 0 else '  '}{key}: {_scalar(value)}")
        lines.append("")
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        plain = yaml.safe_dump(value, allow_unicode=True, width=10_000).strip().removesuffix("\n...")
        return plain if "\n" not in plain else json.dumps(value, ensure_ascii=False)
    return yaml.safe_dump(value).strip().removesuffix("\n...")
