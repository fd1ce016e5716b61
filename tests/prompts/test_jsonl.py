from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from askance.prompts.errors import InputError
from askance.prompts.rows import validate_row
from askance.prompts.tables import read_rows
from tests.said import says


class Inner(BaseModel):
    name: str


class Outer(BaseModel):
    size: int = Field(ge=0)
    parts: list[Inner] = []


def test_line_numbers_count_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('\n{"a": 1}\n\n{"a": 2}')
    assert list(read_rows(path)) == [(2, {"a": 1}), (4, {"a": 2})]


def test_every_problem_of_a_row_is_named_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        validate_row(Outer, {"size": -1, "parts": [{"name": "x"}, {}]}, "here")
    message = str(caught.value)
    assert says(message, "here", "size", 0)
    assert message.endswith("entry 2 of 'parts': the field 'name' is missing.")
