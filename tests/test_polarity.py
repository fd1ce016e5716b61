"""Turning a question round, with its answers, changes nothing that is made of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askance
from askance.agents.evaluator import Evaluator
from askance.evaluation.adaptive import evaluate_adaptively
from askance.evaluation.calibration_fit import fit_platt, fit_thresholds
from askance.evaluation.diagnose import diagnose_verdicts
from askance.evaluation.regression import check_regression
from askance.evaluation.scoring import human_targets, score_examples
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer
from askance.models.gateway import Gateway
from askance.optimizer.selection.select import select
from askance.optimizer.weights.judged_pairs import prepare_pairs, prepare_ratings
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel

from .said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")
FAULTS = ("b", "d")
CHECKLIST = Checklist(
    questions=[
        Question(id=name, text=f"Question {name}?", dimension=dimension, weight=weight)
        for name, dimension, weight in (("a", "x", 1), ("b", "x", 2), ("c", "y", 1), ("d", "y", 3))
    ]
)
EXACT = st.integers(0, 64).map(lambda number: number / 64)
"""Numbers whose difference from 1 has no rounding."""


def turned(checklist: Checklist, faults: Collection[str] = FAULTS) -> Checklist:
    questions = [each.model_copy(update={"good": "no"}) if each.id in faults else each for each in checklist.questions]
    return checklist.model_copy(update={"questions": tuple(questions)})


def turn(verdicts: Iterable[Verdict], faults: Collection[str] = FAULTS) -> list[Verdict]:
    return [
        replace(each, answer=not each.answer, p_yes=None if each.p_yes is None else 1 - each.p_yes)
        if each.question in faults and each.answer is not None
        else each
        for each in verdicts
    ]


def judged(rows: Sequence[Sequence[float | None]], checklist: Checklist = CHECKLIST) -> list[Verdict]:
    return [
        Verdict(f"e{row}", question.id, "m", "p", None if p is None else p >= 0.5, p, "logprob")
        if p is not None
        else Verdict(f"e{row}", question.id, "m", "p", None, status="parse_error")
        for row, values in enumerate(rows)
        for question, p in zip(checklist.questions, values, strict=True)
    ]


def sample(size: int = 40, seed: int = 3) -> tuple[list[Example], list[Verdict]]:
    """Examples that people rated, and verdicts that go with the ratings, more or less."""
    rng = np.random.default_rng(seed)
    quality = rng.random(size)
    noisy = quality[:, None] + rng.normal(0, [0.1, 0.3, 0.6, 0.2], (size, 4)) - 0.1
    table = np.round(np.clip(noisy, 0, 1) * 64) / 64
    table[:, 3] = np.where(rng.random(size) < 0.95, table[:, 1], table[:, 3])  # nearly the same question
    examples = [
        Example(id=f"e{row}", input=f"i{row}", output="o", human={"x": [1 + round(4 * q)], "y": [round(9 * q)]})
        for row, q in enumerate(quality)
    ]
    return examples, judged(table.tolist())


@given(st.lists(st.tuples(*[st.none() | EXACT] * 4), min_size=1, max_size=5), st.sets(st.sampled_from("abcd")))
def test_scores_are_those_of_the_question_asked_the_other_way(rows: list[Any], faults: set[str]) -> None:
    examples = [Example(id=f"e{row}", input="") for row in range(len(rows))]
    verdicts = judged(rows)
    for soft in (True, False):
        merits = score_examples(examples, CHECKLIST, verdicts, soft=soft)
        assert score_examples(examples, turned(CHECKLIST, faults), turn(verdicts, faults), soft=soft) == merits


def test_a_yes_to_a_fault_costs_points() -> None:
    fault = Checklist(questions=[Question(id="a", text="Does it promise a refund?", good="no")])
    (score,) = score_examples([Example(id="e0", input="")], fault, judged([[0.875]], fault))
    assert score.overall == 0.125


def test_people_agree_as_much_and_the_same_questions_are_redundant() -> None:
    examples, verdicts = sample()
    merits = diagnose_verdicts(examples, CHECKLIST, verdicts)
    faults = diagnose_verdicts(examples, turned(CHECKLIST), turn(verdicts))
    for one, other in zip(merits.questions, faults.questions, strict=True):
        names = ("human_p_yes", "human_answer", "p_against_people", "flips")
        assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
        assert other.yes_rate == pytest.approx(1 - one.yes_rate if one.id in FAULTS else one.yes_rate), "stays raw"
    assert merits.together.related.effective == pytest.approx(faults.together.related.effective)
    mixed = diagnose_verdicts(examples, turned(CHECKLIST, ["d"]), turn(verdicts, ["d"]))
    for found in (faults, mixed):
        assert [(each.kind, each.questions) for each in found.findings] == [
            (each.kind, each.questions) for each in merits.findings
        ]
        assert [(each.first, each.second) for each in found.most_alike] == [
            (each.first, each.second) for each in merits.most_alike
        ]
    alike = next(each for each in mixed.findings if each.kind == "alike")
    assert alike.questions == ("b", "d") and says(alike.text, "a merit's yes", "a fault's no")
    assert mixed.phi.of("b", "d") == pytest.approx(-merits.phi.of("b", "d")), "phi is of yes and no"


def test_a_fault_that_goes_with_good_scores_runs_against_people() -> None:
    examples, verdicts = sample()
    found = diagnose_verdicts(examples, turned(CHECKLIST, ["a"]), verdicts)
    assert next(each for each in found.findings if each.kind == "against_people").questions == ("a",)
    assert says(found.findings[0].text, "answer called good")
    with_faults = json.loads(json.dumps(found.to_dict()))
    assert [each.get("good") for each in with_faults["questions"]] == ["no", None, None, None]
    assert "yes = fault" in found._repr_html_()
    assert "yes = fault" not in diagnose_verdicts(examples, CHECKLIST, verdicts)._repr_html_()


@pytest.mark.parametrize("fit", [fit_thresholds, fit_platt])
def test_calibration_finds_the_same_scores(fit: Any) -> None:
    examples, verdicts = sample(60)
    targets = human_targets(examples, CHECKLIST)
    faults, others = turned(CHECKLIST), turn(verdicts)
    one, other = fit(verdicts, examples, CHECKLIST, targets), fit(others, examples, faults, targets)
    for name, fitted in one.questions.items():
        same = other.questions[name]
        for field in ("threshold", "correlation", "slope", "shift"):
            assert getattr(same, field) == pytest.approx(getattr(fitted, field))
    assert any(each.threshold not in (None, 0.5) or each.slope not in (None, 1) for each in one.questions.values())
    for soft in (True, False):
        before = score_examples(examples, CHECKLIST, one.apply(verdicts), soft=soft)
        after = score_examples(examples, faults, other.apply(others), soft=soft)
        assert [each.overall for each in after] == pytest.approx([each.overall for each in before])
    assert '"good": "no"' in other.to_json() and "good" not in one.to_json()


def test_a_calibration_for_the_other_polarity_is_refused_before_a_call(tmp_path: Path) -> None:
    examples, verdicts = sample()
    fitted = fit_platt(verdicts, examples, CHECKLIST, human_targets(examples, CHECKLIST))
    path = tmp_path / "calibration.json"
    path.write_text(fitted.to_json())
    model = ScriptedModel(lambda request: 0.5, name="m")
    with pytest.raises(InputError, match=naming("yes was", "'b'", "good: no")):
        askance.evaluate(examples, checklist=turned(CHECKLIST), model=model, calibration=str(path), no_cache=True)
    assert not model.requests


@pytest.mark.parametrize("answers", ["soft", "hard", "split"])
def test_the_same_questions_are_chosen(answers: str) -> None:
    examples, verdicts = sample()
    options = {"k": 2, "answers": answers, "halves": 2, "ranking_resamples": 5}
    merits = select(examples, candidates=CHECKLIST, verdicts=verdicts, **options)
    faults = select(examples, candidates=turned(CHECKLIST), verdicts=turn(verdicts), **options)
    one, other = merits.to_dict(), faults.to_dict()
    assert [each.pop("good", "yes") for each in other["questions"]] == ["yes", "no", "yes", "no"]
    for part in ("kept", "curves", "agreement", "questions", "convergence"):
        assert json.dumps(one[part]) == json.dumps(other[part])
    for question in faults.checklist.questions:
        assert (question.good == "no") == (question.id in FAULTS)
    assert "Question b? (yes = fault)" in faults._repr_html_() and "fault" not in merits._repr_html_()


def script(faults: Collection[str] = ()) -> Any:
    """Answers by the number in the output; the questions of ``faults`` the other way."""

    def answer(request: Any) -> Any:
        text = request.messages[-1][1]
        name = next(each for each in "abcd" if f"Question {each}?" in text)
        number = int(text.split("level ")[1].split(".")[0])
        p = ((number * {"a": 5, "b": 9, "c": 13, "d": 3}[name]) % 16 + 0.5) / 16
        p = 1 - p if name in faults else p
        return _number(p) if "number from 1 to 5" in text else p

    return answer


def _number(p: float) -> Answer:
    """A number from 1 to 5, 5 as likely as yes would be."""
    p = min(max(p, 1e-6), 1 - 1e-6)
    return Answer("5", (("5", (("5", log(p)), ("1", log(1 - p)))),))


def levels(count: int = 17) -> list[dict[str, Any]]:
    human = {"x": 1.0, "y": 2.0}
    return [
        {
            "id": f"e{n}",
            "input": "i",
            "output": f"level {n}.",
            "human": {name: n % 5 + by for name, by in human.items()},
        }
        for n in range(count)
    ]


def both(tell: Any) -> tuple[Any, Any]:
    """What is found with merits, and with two of them asked as faults."""
    merits = tell(CHECKLIST, ScriptedModel(script(), name="m"))
    return merits, tell(turned(CHECKLIST), ScriptedModel(script(FAULTS), name="m"))


@pytest.mark.parametrize("scores", ["soft", "hard"])
def test_an_evaluation_agrees_with_people_as_much_and_marks_faults(scores: str) -> None:
    merits, faults = both(
        lambda checklist, model: askance.evaluate(
            levels(), checklist=checklist, model=model, scores=scores, resamples=100, no_cache=True
        )
    )
    one, other = merits.to_dict(), faults.to_dict()
    assert other.pop("faults") == ["b", "d"]
    assert "faults" not in one
    rates, theirs = one.pop("yes_rates"), other.pop("yes_rates")
    assert theirs["a"] == rates["a"] and theirs["b"] != rates["b"], "yes-rates stay what the model said"
    assert _rounded(one) == _rounded(other)
    assert "yes = fault" in faults._repr_html_() and "yes = fault" not in merits._repr_html_()


def _rounded(data: Any) -> Any:
    """Without the digits in which equal numbers may differ, and without what a run took."""
    if isinstance(data, dict):
        return {name: _rounded(value) for name, value in data.items() if name not in ("seconds", "roles")}
    if isinstance(data, list):
        return [_rounded(each) for each in data]
    return round(data, 6) if isinstance(data, float) else data


def test_polarity_is_not_in_what_the_model_is_asked() -> None:
    def ask(checklist: Checklist, model: ScriptedModel) -> list[bytes]:
        askance.evaluate(levels(3), checklist=checklist, model=model, no_cache=True)
        return [request.key for request in model.requests]

    merits, faults = both(ask)
    assert merits == faults


async def test_asking_stops_at_the_same_place() -> None:
    async def ask(checklist: Checklist, model: ScriptedModel) -> Any:
        evaluator = Evaluator(Gateway(VerdictStore(":memory:")), model, Prompt("{output} {question}"), checklist)
        examples = [Example(**row) for row in levels()]
        return await evaluate_adaptively(evaluator, examples, tolerance=0.1, cuts=[0.6])

    merits, faults = both(ask)
    one, other = await merits, await faults
    assert one.saved == other.saved > 0
    for a, b in zip(one.scores, other.scores, strict=True):
        assert (a.asked, a.ended) == (b.asked, b.ended)
        assert (a.score, a.low, a.high) == pytest.approx((b.score, b.low, b.high))


@pytest.mark.parametrize("judge", ["binary", "checkeval_seeds", "unit_tests", "random_k"])
def test_judges_compared_give_the_same_scores(judge: str) -> None:
    merits, faults = both(
        lambda checklist, model: askance.compare(
            levels(), checklist=checklist, model=model, judges=[judge], resamples=100, no_cache=True
        )
    )
    one, other = (_rounded(each.to_dict()["judges"]) for each in (merits, faults))
    assert one == other


def test_a_drop_is_told_of_in_the_words_of_the_question(tmp_path: Path) -> None:
    def check(checklist: Checklist, model: ScriptedModel) -> Any:
        where = {"baseline": tmp_path / f"{len(checklist.faults)}.json", "no_cache": True}
        check_regression(levels(), checklist=checklist, model=model, update=True, **where)
        worse = [row | {"output": "level 0."} for row in levels()]
        return check_regression(worse, checklist=checklist, model=model, **where)

    merits, faults = both(check)
    assert merits.dropped and faults.dropped
    assert faults.difference.value == pytest.approx(merits.difference.value)
    assert faults.p_drop == merits.p_drop
    assert faults.message == merits.message.replace("Question b?", "Question b? (yes = fault)").replace(
        "Question d?", "Question d? (yes = fault)"
    )
    assert "Question d?" in merits.message


def test_a_baseline_of_the_other_polarity_is_of_another_checklist(tmp_path: Path) -> None:
    where = {"model": ScriptedModel(script(), name="m"), "baseline": tmp_path / "kept.json", "no_cache": True}
    check_regression(levels(), checklist=CHECKLIST, update=True, **where)
    with pytest.raises(InputError, match="checklist changed"):
        check_regression(levels(), checklist=turned(CHECKLIST), **where)


def test_weights_are_learned_from_the_same_numbers(tmp_path: Path) -> None:
    pairs, rated = tmp_path / "pairs.jsonl", tmp_path / "rated.jsonl"
    rows = [
        {"id": f"p{n}", "input": "i", "output_a": f"level {n}.", "output_b": f"level {n * 5 % 17}.", "preferred": "a"}
        for n in range(1, 9)
    ]
    pairs.write_text("\n".join(map(json.dumps, rows)))
    rated.write_text("\n".join(json.dumps(row | {"human": {"overall": n}}) for n, row in enumerate(levels())))

    def judge(checklist: Checklist, model: ScriptedModel) -> Any:
        options = {"checklist": checklist, "model": model, "no_cache": True}
        preferences, *_ = prepare_pairs(pairs, **options).run()
        ratings, _ = prepare_ratings(rated, **options).run()
        return preferences.scores_a, preferences.scores_b, ratings.scores

    for one, other in zip(*both(judge), strict=True):
        assert np.allclose(one, other) and len(one)


def test_which_of_two_outputs_does_better_is_not_asked_of_a_fault(tmp_path: Path) -> None:
    row = {"id": "p", "input": "i", "output_a": "level 1.", "output_b": "level 2.", "preferred": "a"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(row))
    with pytest.raises(InputError, match=naming("'b'", "good: no", "--pairwise")):
        prepare_pairs(
            tmp_path / "pairs.jsonl", checklist=turned(CHECKLIST), model=ScriptedModel(script()), pairwise=True
        )
