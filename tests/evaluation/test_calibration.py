"""A calibration applied to verdicts, and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import askance
from askance.evaluation.calibration import Calibration, QuestionCalibration, load_calibration
from askance.evaluation.calibration_fit import fit_platt, fit_thresholds
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel
from tests.said import naming

from .conftest import TWO, answers, lenient, names, verdict, wanted


def calibrated(method: str, **parameters: Any) -> Calibration:
    fit = QuestionCalibration(n=10, **parameters)
    return Calibration(method=method, model="m", prompt="p", target="human", n=10, questions={"answer_ok": fit})


def test_thresholded_verdicts_are_hard_and_everything_else_is_kept() -> None:
    calibration = calibrated("thresholds", threshold=0.8)
    low, high = (verdict("e0", "answer_ok", p, explanation="because") for p in (0.8, 0.81))
    assert calibration.apply([low])[0] == Verdict("e0", "answer_ok", "m", "p", False, 0.0, "hard", "because")
    assert calibration.apply([high])[0] == Verdict("e0", "answer_ok", "m", "p", True, 1.0, "hard", "because")
    assert low.p_yes == 0.8  # the verdict given is as it was


def test_scaled_verdicts_keep_where_p_yes_comes_from_and_answer_by_it() -> None:
    calibration = calibrated("platt", slope=0.5, shift=-2.0)
    found = calibration.apply([verdict("e0", "answer_ok", 0.9)])[0]
    assert found.p_yes == pytest.approx(1 / (1 + np.exp(-(0.5 * np.log(9) - 2))))
    assert found.answer is False
    assert found.p_yes_from == "logprob"


def test_each_verdict_gets_the_parameters_of_its_own_question_in_the_order_given() -> None:
    fits = {name: QuestionCalibration(threshold=at, n=10) for name, at in (("a", 0.2), ("b", 0.8))}
    calibration = Calibration(method="thresholds", model="m", prompt="p", target="human", n=10, questions=fits)
    found = calibration.apply(verdict(example, question, 0.5) for example in ("e1", "e0") for question in "ba")
    assert [(each.example, each.question, each.answer) for each in found] == [
        ("e1", "b", False),
        ("e1", "a", True),
        ("e0", "b", False),
        ("e0", "a", True),
    ]


@pytest.mark.parametrize("parameters", [{"threshold": 0.8}, {"slope": 0.5, "shift": -2.0}])
def test_verdicts_without_an_answer_are_left_alone(parameters: dict[str, float]) -> None:
    calibration = calibrated("platt" if "slope" in parameters else "thresholds", **parameters)
    failed = verdict("e0", "answer_ok", None)
    assert calibration.apply([failed, verdict("e1", "answer_ok", 0.9)])[0] is failed


def test_a_question_that_is_not_calibrated_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match=r"knows no question 'answer_0k' \(example 'e0'\). Did you mean 'answer_ok'\?"):
        calibrated("thresholds", threshold=0.5).apply([verdict("e0", "answer_0k", 0.4)])


def test_verdicts_by_another_model_or_prompt_are_refused() -> None:
    calibration = calibrated("thresholds", threshold=0.5)
    for model, prompt in (("other", "p"), ("m", "edited")):
        with pytest.raises(InputError, match=f"'e0' is by {model} with the prompt {prompt}"):
            calibration.apply([Verdict("e0", "answer_ok", model, prompt, True, 0.9)])


def test_a_calibration_of_another_judge_or_without_a_question_is_refused_before_anything_is_bought(
    tmp_path: Path,
) -> None:
    prompt = askance.Prompt("Judge.")
    fit = calibrated("thresholds", threshold=0.5).model_copy(update={"prompt": prompt.hash})
    (tmp_path / "c.json").write_text(fit.to_json(), encoding="utf-8")
    rows = [{"id": f"e{n}", "input": "in", "output": f"out {n}"} for n in range(3)]
    for name, question, said in (
        ("other", "answer_ok", "belongs to m with"),
        ("m", "another", "no question 'another'"),
        ("m", "answer_ok", None),
    ):
        model = ScriptedModel(lambda _: 0.7, name=name)
        settings = {"model": model, "prompt": prompt, "calibration": tmp_path / "c.json", "no_cache": True}
        checklist = Checklist(questions=(Question(id=question, text="Is it right?"),))
        if said is None:
            assert askance.evaluate(rows, checklist=checklist, **settings).means()["overall"] == 1
            continue
        with pytest.raises(InputError, match=said):
            askance.evaluate(rows, checklist=checklist, **settings)
        assert not model.requests


@pytest.mark.parametrize("fit", [fit_thresholds, fit_platt])
def test_a_calibration_survives_its_file(fit: Any, tmp_path: Path) -> None:
    p_yes, truth = lenient()
    target = wanted(one=truth, two=[None] * len(truth))
    calibration = fit(answers(a=p_yes, b=p_yes), names(40), TWO, target)
    assert calibration.reasons.keys() == {"b"}
    path = tmp_path / "calibration.json"
    path.write_text(calibration.to_json())
    assert load_calibration(path) == calibration
    assert load_calibration(path).apply(answers(a=p_yes)) == calibration.apply(answers(a=p_yes))
    assert json.loads(path.read_text())["schema"] == "askance.calibration/1"


GOOD = json.loads(calibrated("thresholds", threshold=0.5).to_json())
SLOPED = {"slope": 1.0, "shift": 0.0, "n": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "isotonic"}, "field 'method'"),
        ({"model": None}, "field 'model'"),
        ({"n": -1}, "field 'n'"),
        ({"schema": "askance.weights/1"}, "field 'schema': 'askance.calibration/1' is needed"),
        ({"extra": 1}, "the field 'extra' is not known"),
        ({"questions": {}}, "field 'questions'"),
        ({"questions": {"a": {"threshold": 1.5, "n": 3}}}, "field 'questions.a.threshold'"),
        ({"questions": {"a": {"threshold": "0.5", "n": 3}}}, "field 'questions.a.threshold'"),
        ({"questions": {"a": {"threshold": float("nan"), "n": 3}}}, "field 'questions.a.threshold'"),
        ({"questions": {"a": {"threshold": 0.5}}}, "the field 'questions.a.n' is missing"),
        ({"questions": {"a": {"n": 3}}}, "'questions.a': the method thresholds takes 'threshold'"),
        ({"questions": {"a": SLOPED}}, "'questions.a': the method thresholds takes 'threshold'"),
        ({"method": "platt"}, "'questions.answer_ok': the method platt takes 'slope' and 'shift'"),
        ({"method": "platt", "questions": {"a": SLOPED | {"slope": -1.0}}}, "field 'questions.a.slope'"),
    ],
)
def test_a_faulty_file_is_refused_by_name_and_field(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(InputError) as raised:
        load_calibration(path)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not valid JSON"), ("[]", "an object is needed"), ("[" * 100_000, "not valid JSON")],
)
def test_a_file_that_is_no_calibration_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_calibration(path)
    with pytest.raises(InputError, match=naming("other.json", "no such calibration")):
        load_calibration(tmp_path / "other.json")
