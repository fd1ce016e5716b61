"""``evaluate`` with questions that are written for each example from its own input (LMUnit's query-level unit tests)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.evaluate import prepare
from askance.models.base import ModelError, Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.verdicts import read_verdicts, save_verdicts
from askance.testing import Reply, ScriptedModel
from tests.said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")


def rows(n: int = 6, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"e{k}", "input": f"Say {k} things.", "output": f"out {k}", "human": {"overall": k ^ 1}, **more}
        for k in range(n)
    ]


def number(request: Request, before: str) -> int:
    return int(re.findall(rf"{before} (\d+)", "\n".join(text for _, text in request.messages))[-1])


def script(request: Request) -> Reply:
    """Example k has 1 + k % 3 questions; P(yes) rises with k and falls with the place of the question."""
    if request.parameters.schema:
        k = number(request, "Say")
        texts = [f"Does it say {k} things, part {place}?" for place in range(1 + k % 3)]
        return json.dumps({"questions": [{"text": text, "violation": "It does not."} for text in texts]})
    return 0.3 + 0.1 * number(request, "out") - 0.1 * number(request, "part")


def judge(answer: Any = script) -> ScriptedModel:
    return ScriptedModel(answer, name="world/judge")


def own(data: Any = None, model: ScriptedModel | None = None, **options: Any) -> askance.Evaluation:
    return askance.evaluate(data or rows(), model=model or judge(), own_questions=True, **options)


def test_each_example_is_judged_by_the_questions_of_its_own_input_alone() -> None:
    found = own()
    assert [(each.example, each.question, each.asked) for each in found.verdicts] == [
        (f"e{k}", f"q{place + 1}", f"Does it say {k} things, part {place}?")
        for k in range(6)
        for place in range(1 + k % 3)
    ]
    for k, score in enumerate(found.scores):
        assert score.overall == pytest.approx(0.3 + 0.1 * k - 0.05 * (k % 3), abs=1e-3)
        assert score.dimensions == {"instructions": score.overall}
    assert found.coverage.share == 1
    assert found.agreement[0].pooled.spearman.value == pytest.approx(0.829, abs=1e-3)


def test_a_second_run_buys_nothing_and_says_the_same() -> None:
    first, model = own(), judge()
    again = own(model=model)
    assert model.requests == []
    assert again.verdicts == first.verdicts
    assert list(again.scores) == list(first.scores)


def test_what_it_takes_is_estimated_from_above_and_exactly_once_the_questions_are_there() -> None:
    model = judge()
    job = prepare(rows(), None, model, None, {"own_questions": True})
    guess = job.estimate()
    assert model.requests == []
    assert (guess.verdicts, guess.calls, guess.stored) == (36, 42, 0)
    found = job.run()
    assert len(found.verdicts) == 12
    assert len(model.requests) == 18
    after = job.estimate()
    assert (after.verdicts, after.calls, after.stored) == (12, 0, 12)
    assert prepare(rows(), None, model, None, {"own_questions": True, "repeat": 2}).estimate().calls == 12


@pytest.mark.parametrize("reply", ["nonsense", ModelError("down")])
def test_an_example_without_questions_has_no_score_is_not_covered_and_is_asked_again(reply: Reply) -> None:
    def fails(request: Request) -> Reply:
        return reply if request.parameters.schema and number(request, "Say") == 2 else script(request)

    found = own(model=judge(fails))
    assert found.scores[2].overall is None
    assert (found.coverage.asked, found.coverage.api_errors) == (10, 1)
    [failed] = [each for each in found.verdicts if each.example == "e2"]
    assert failed.answer is None
    assert says(failed.error, "no questions")
    assert found.agreement[0].pooled.spearman.n == 5
    model = judge()
    assert own(model=model).coverage.share == 1
    assert {number(each, "Say") if each.parameters.schema else number(each, "out") for each in model.requests} == {2}


def test_a_first_answer_that_fails_is_a_missing_verdict_and_stops_nothing() -> None:
    def fails(request: Request) -> Reply:
        asks = request.parameters.schema is None
        return ModelError("down") if asks and number(request, "out") == 0 else script(request)

    found = own(model=judge(fails))
    assert (found.coverage.asked, found.coverage.api_errors) == (12, 1)
    assert found.scores[0].overall is None
    assert found.scores[1].overall is not None


def test_the_weights_of_an_examples_own_questions_may_decay() -> None:
    found = own(own_decay=0.5)
    assert found.scores[2].overall == pytest.approx((0.5 + 0.5 * 0.4 + 0.25 * 0.3) / 1.75, abs=1e-3)
    assert [each["weight"] for each in found.to_dict()["own_questions"]["e2"]] == [1, 0.5, 0.25]


def one() -> Checklist:
    return Checklist(questions=(Question(id="q1", text="A?"),))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"own_questions": True, "checklist": one()}, "leave out --checklist, or that"),
        ({}, "nothing to ask: give a --checklist, a --schema, --own-questions, or a --judge"),
        ({"own_questions": True, "stop_within": 0.1}, "stop_within: an example's own questions are all asked"),
        ({"own_questions": True, "pass_mark": 0.5}, "pass_mark: an example's own questions are all asked"),
        ({"own_questions": True, "weights": "w.json"}, "weights: it is for the questions of a checklist"),
        ({"own_questions": True, "calibration": "c.json"}, "calibration: it is for the questions of a checklist"),
        ({"checklist": one(), "own_decay": 0.8}, "own_decay: no question is written"),
    ],
)
def test_what_does_not_go_together_is_refused_before_a_call(given: dict[str, Any], problem: str) -> None:
    model = judge()
    with pytest.raises(InputError, match=problem):
        askance.evaluate(rows(), model=model, **given)
    assert model.requests == []


@pytest.mark.parametrize("name", ["v.jsonl", "v.parquet"])
def test_a_file_of_verdicts_says_what_was_asked_and_fits_no_checklist(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    found = own()
    save_verdicts(tmp_path / name, found.verdicts)
    assert read_verdicts(tmp_path / name) == found.verdicts
    with pytest.raises(InputError, match=naming(1, "'asked'", "'q1'", "'e0'", "alone")):
        read_verdicts(tmp_path / name, questions=["q1", "q2", "q3"])


def test_a_judge_with_a_checklist_of_its_own_is_asked_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "judge.yaml").write_text(
        "schema: askance.judge/1\nmodel: openai/j\nprompt: Judge.\nchecklist:\n  questions:\n  - {id: q1, text: 'A?'}\n"
    )
    with pytest.raises(InputError, match=naming("own_questions", "judge", "own checklist")):
        askance.load_judge(tmp_path / "judge.yaml").prepare(rows(), None, {"own_questions": True})


def test_scores_of_something_else_are_said_and_not_compared(caplog: pytest.LogCaptureFixture) -> None:
    found = own(rows(human={"tone": 3}))
    assert found.agreement == []
    assert found.coverage.share == 1
    assert says(caplog.text, "rated tone", "own questions")
