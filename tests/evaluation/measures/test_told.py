"""A measure's number in a sentence, and the part of the output that it comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askance.agents.measures import similarity, values
from askance.agents.measures.similarity import KeptVectors
from askance.agents.measures.values import part_that_decides
from askance.evaluation.measures.told import cases_by_measure, cases_of, passed_by, told_of
from askance.prompts.checklist import ComputedMeasure
from askance.prompts.criteria.measures import MEASURES
from askance.prompts.errors import MissingExtraError
from askance.prompts.examples import Example
from tests.said import says

ANSWER = "We are open. The bus 5 to Bonn leaves at nine. Take line 7."


class Letters:
    """Embeds a text by its letters."""

    def embed(self, texts: Any) -> Any:
        rows = np.array(
            [[each.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for each in texts], float
        )
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def measure(name: str, **given: Any) -> ComputedMeasure:
    scale = {"range": (0.0, 4.0)} if "new" in name or name in MEASURES else {}
    return ComputedMeasure.model_validate({"id": "m", "measure": name, **scale, **given})


def example(name: str = "e1", output: str = ANSWER) -> Example:
    return Example(id=name, input="When does the bus 5 to Bonn leave?", output=output)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptVectors(Letters())  # type: ignore[arg-type]
    for module in (values, similarity):
        monkeypatch.setattr(module, "kept_vectors", lambda: kept)


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("nearest_sentence(input)", "The bus 5 to Bonn leaves at nine."),
        ("least_supported(input)", "Take line 7."),
        ("numbers_new(input)", "Take line 7."),
        ("longest_copy(input)", "The bus 5 to Bonn"),
        ("similarity(input)", None),
        ("words_found(input)", None),
        ("words", None),
    ],
)
def test_the_part_that_decides_is_found_where_one_does(name: str, part: str | None) -> None:
    assert part_that_decides(measure(name), example()) == part


@pytest.mark.usefixtures("letters")
def test_an_output_is_told_beside_those_that_passed_with_its_sentence_marked() -> None:
    near = measure("nearest_sentence(input)")
    examples = {name: example(name) for name in ("bad", "worse", "fine")}
    numbers = {"bad": 0.31, "worse": 0.2, "fine": 0.48}
    first, second = cases_of(near, examples, numbers, {"bad": False, "worse": False, "fine": True})
    assert (first.example, second.example) == ("worse", "bad")
    assert says(second.told, "0.31", "0.48", "sentence", "input")
    assert second.before + second.part + second.after == ANSWER
    assert second.part == "The bus 5 to Bonn leaves at nine."


def test_without_the_embedder_the_number_is_told_and_nothing_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> KeptVectors:
        raise MissingExtraError("memory", "onnxruntime")

    monkeypatch.setattr(values, "kept_vectors", missing)
    (case,) = cases_of(measure("nearest_sentence(input)"), {"bad": example()}, {"bad": 0.3}, {"bad": False})
    assert (case.before, case.part, case.after) == (ANSWER, "", "") and says(case.told, "0.30")


def test_every_measure_has_words_for_its_number() -> None:
    for name, kind in MEASURES.items():
        whole = f"{name}(context)" if "{}" in kind.said else name
        assert says(told_of(measure(whole), 0.5, None), "0.50")
        assert ("context" in told_of(measure(whole), 0.5, None)) == ("{}" in kind.said)
    assert says(told_of(measure("own.py:late"), 2.0, 1.0), "late", "2.00", "1.00")


def test_people_pass_what_is_no_worse_than_their_mean_and_an_output_without_a_text_is_left_out() -> None:
    assert passed_by({"a": 0.0, "b": 1.0, "c": 0.5}) == {"a": False, "b": True, "c": True}
    found = cases_by_measure([measure("words")], {}, {"m": {"a": 1.0}}, {"a": 0.0, "b": 1.0})
    assert found == {"m": []}
