"""Measures in ``tune``: they count as criteria, and none that pays for repeating the input judges a generator."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.optimizer.modes.tune import prepare
from askance.prompts.checklist import Checklist, ComputedCheck, ComputedMeasure
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import naming, says

ROWS = [{"id": f"e{number}", "input": f"Where is the bus {number} to Bonn?"} for number in range(40)]
COVERED = ComputedMeasure(id="covered", measure="covered(input)")
NEW = ComputedMeasure.model_validate({"id": "new", "measure": "names_new(input)", "range": [0, 4]})
SHORT = ComputedCheck(id="short", kind="length", value="at most 4 words")


def tuned(*criteria: Any) -> Any:
    checklist = Checklist(task="Answer.", questions=criteria)
    return prepare(
        ROWS,
        checklist=checklist,
        generator=ScriptedModel(lambda _: "Late.", name="g"),
        judge=None,
        prompt=Prompt("Answer: {input}"),
        judge_prompt=None,
        checker=None,
        options={},
    )


def test_a_measure_that_pays_for_repeating_the_input_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        job = tuned(COVERED, NEW, SHORT)
    assert [each.id for each in job.checklist.questions] == ["short", "new"]
    assert says(caplog.text, "covered")


def test_a_checklist_of_such_measures_alone_is_refused() -> None:
    with pytest.raises(InputError, match=naming("covered")):
        tuned(COVERED)


def test_a_generator_is_tuned_by_measures_and_checks(tmp_path: Path) -> None:
    def write(request: Any) -> str:
        if request.parameters.schema:
            return "{}"
        asked = " ".join(text for _, text in request.messages)
        return "Late." if "4 words" in asked else "Anna says that it is late in Trier today."

    done = askance.tune(
        ROWS,
        checklist=Checklist(task="Answer.", questions=(NEW, SHORT)),
        generator=ScriptedModel(write, name="g"),
        prompt=Prompt("Answer: {input}"),
        run=tmp_path / "run",
        max_iterations=1,
        resamples=200,
        no_cache=True,
        embedder="words",
    )
    best, before = done.result["best"]["test"]["mean"], done.result["baseline"]["test"]["mean"]
    assert before == pytest.approx(0.375) and best == pytest.approx(1.0)
