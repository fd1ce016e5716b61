"""Measures in a checklist: which are there, on which scale, and how they are written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from askance.prompts.checklist import Checklist, ComputedMeasure, dump_checklist, parse_checklist
from askance.prompts.criteria.measures import along
from askance.prompts.errors import InputError
from tests.said import naming

WRITTEN = """task: Answer.

measures:
  - id: near
    measure: nearest_sentence(input)
    weight: 2

  - id: new
    measure: names_new(context)
    curve: [[0, 0.25], [2, 0.75]]

  - id: size
    measure: rules.py:size
    range: [0, 100]
    good: low
"""


def test_a_checklist_of_measures_is_read_and_written_back() -> None:
    found = parse_checklist(WRITTEN, "c.yaml")
    assert [each.id for each in found.questions] == ["near", "new", "size"] and not found.asked
    assert [each.is_fault for each in found.measures] == [False, True, True]
    assert parse_checklist(dump_checklist(found), "c.yaml") == found
    assert "good" not in dump_checklist(found).split("id: new")[1].split("id: size")[0]


def test_measures_stand_among_the_questions_of_a_caller() -> None:
    near = ComputedMeasure(id="near", measure="nearest_sentence(input)")
    found = Checklist(questions=(near,))
    assert found.measures == (near,) and found.asked == ()
    assert found.model_copy(update={"questions": (near,)}) == found
    assert found.asked_alone is None


def test_shares_of_values_follow_the_range_or_the_curve() -> None:
    _, new, size = parse_checklist(WRITTEN, "c.yaml").measures
    assert [size.share(each) for each in (-5, 0, 50, 200)] == [0, 0, 0.5, 1]
    assert [new.share(each) for each in (-1, 0, 1, 2, 9)] == [0.25, 0.25, 0.5, 0.75, 0.75]
    assert along(((0.0, 0.0), (1.0, 1.0)), np.array([0.3, 2.0])).tolist() == [0.3, 1.0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"measure": "names_new(input)"}, "'range'"),
        ({"measure": "words"}, "'range'"),
        ({"measure": "nearest(input)"}, "nearest_sentence(input)"),
        ({"measure": "nearest_sentence"}, "nearest_sentence(input)"),
        ({"measure": "nearest_sentence(output)"}, "reference"),
        ({"measure": "words(input)", "range": [0, 9]}, "nearest_sentence(input)"),
        ({"measure": "words", "range": [9, 0]}, "lower end"),
        ({"measure": "words", "range": [0, 9], "curve": [[0, 0], [1, 1]]}, "curve"),
        ({"measure": "words", "curve": [[0, 0.5], [1, 0.2]]}, "both rise"),
        ({"measure": "words", "curve": [[0, 0], [1, 2]]}, "both rise"),
        ({"measure": "words", "range": [0, 9], "good": "often"}, "high or low"),
        ({"measure": "words", "range": [0, 9], "rubric": "x"}, "'rubric'"),
    ],
)
def test_a_measure_without_a_scale_or_a_name_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=naming(said, "entry 1 of 'measures'")):
        parse_checklist(json.dumps({"measures": [{"id": "m", **fields}]}), "c.json")


def test_an_id_stands_once_among_all_criteria() -> None:
    with pytest.raises(InputError, match=naming("measure 1")):
        parse_checklist("questions: [{id: a, text: Good}]\nmeasures: [{id: a, measure: repetition}]", "c.yaml")
