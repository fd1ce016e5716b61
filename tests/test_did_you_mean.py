"""Names that nearly fit get a hint: dimensions, embedded models."""

from __future__ import annotations

from typing import Any

import pytest

import askance
from askance.models.embedded.registry import resolve
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError, did_you_mean
from askance.testing import ScriptedModel

from .said import naming

pytestmark = pytest.mark.usefixtures("sandbox")
ROWS: list[dict[str, Any]] = [{"id": str(n), "input": "i", "output": "o", "human": {"fluency": n}} for n in range(8)]
MODEL = ScriptedModel(lambda request: 0.9)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("modle", ["model", "seed"], " Did you mean 'model'?"),
        ("smollm", ["smollm2-135m-instruct", "gemma-3-270m"], " Did you mean 'smollm2-135m-instruct'?"),
        ("sm", ["smollm2-135m-instruct"], ""),
        ("zebra", ["model"], ""),
    ],
)
def test_the_closest_name_or_one_that_begins_so(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint


def test_an_embedded_model() -> None:
    with pytest.raises(InputError, match=r"Did you mean 'gemma-3-270m'\?"):
        resolve("gemma")


def test_dimensions_of_data_and_checklist(caplog: pytest.LogCaptureFixture) -> None:
    checklist = Checklist(questions=[Question(id="q", text="Is it so?", dimension="fluencies")])
    found = askance.evaluate(ROWS, checklist=checklist, model=MODEL, no_cache=True)
    assert found.agreement == [] and found.coverage.share == 1, "it judges all the same"
    [said] = [each.getMessage() for each in caplog.records]
    assert "people rated: dimension: fluency. Did you mean 'fluency'?" in said
    unrated = [{name: row[name] for name in ("id", "input", "output")} for row in ROWS]
    with pytest.raises(InputError, match=naming("no question", "fluencie", "fluencies")):
        askance.compare(
            unrated, model=MODEL, judges=["binary"], checklist=checklist, dimensions=["fluencie"], no_cache=True
        )
