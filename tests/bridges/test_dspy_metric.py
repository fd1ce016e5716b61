from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.agents.judging import Judging
from askance.evaluation.kept_judge import KeptJudge
from askance.models.base import ModelError, Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError, CoverageError, InputError
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel

dspy = pytest.importorskip("dspy", reason="needs the extra: pip install 'askance[dspy]'")

from askance.agents.dspy.lm import Stopped  # noqa: E402
from askance.bridges.dspy_metric import ChecklistMetric, OpenGateway, checklist_metric, open_gateway  # noqa: E402
from tests.said import naming, says  # noqa: E402

CHECKLIST = Checklist(
    task="Answer briefly.",
    questions=[
        Question(id="right", text="Is it right?", weight=3),
        Question(id="brief", text="Is it brief?"),
    ],
)


def judge(request: Request) -> Reply:
    """Says yes to what is right and brief; fails on what is said to fail."""
    said = "\n".join(content for _, content in request.messages)
    if "decides" in said:
        return "The word Rome decides."
    if "unreadable" in said:
        return ModelError("no answer", status=400)
    if "Is it brief?" in said:
        return 0.9
    return 0.8 if "Paris" in said.rsplit("Output:", 1)[1] else 0.2


@pytest.fixture
def opened() -> Iterator[OpenGateway]:
    with open_gateway(no_cache=True) as opened:
        yield opened


def metric_over(opened: OpenGateway, **options: Any) -> tuple[ChecklistMetric, ScriptedModel]:
    model = ScriptedModel(judge, name="scripted/judge")
    return checklist_metric(CHECKLIST, model, opened, **options), model


def asked(question: str = "Capital of France?", **fields: str | None) -> Any:
    return dspy.Example(question=question, **fields).with_inputs("question")


def test_the_score_is_that_of_the_checklist(opened: OpenGateway) -> None:
    metric, model = metric_over(opened)
    assert metric(asked(), dspy.Prediction(answer="Paris")) == pytest.approx((3 * 0.8 + 0.9) / 4, abs=1e-4)
    hard, _ = metric_over(opened, soft=False, judging=Judging(p_yes="hard"))
    assert hard(asked(), dspy.Prediction(answer="Rome"), None) == pytest.approx(1 / 4)
    assert "Input:" in model.requests[0].messages[-1][1] and "Context:" not in model.requests[0].messages[-1][1]


def test_gepa_is_told_which_questions_failed_and_why(opened: OpenGateway) -> None:
    metric, _ = metric_over(opened)
    told = metric(asked(), dspy.Prediction(answer="Rome"), None, "predict", [])
    assert told.score == pytest.approx((3 * 0.2 + 0.9) / 4, abs=1e-4)
    assert "- Is it right? The word Rome decides." in told.feedback and "brief" not in told.feedback
    good = metric(asked(), dspy.Prediction(answer="Paris"), None, "p", []).feedback
    assert says(good, "every question", "yes")
    plain, _ = metric_over(opened, judging=Judging(explain="never"))
    assert "decides" not in plain(asked(), dspy.Prediction(answer="Rome"), None, "p", []).feedback


def test_a_yes_to_a_fault_is_what_failed_and_what_is_explained(opened: OpenGateway) -> None:
    fault = Checklist(questions=[Question(id="brief", text="Is it brief?", good="no")])
    metric = checklist_metric(fault, ScriptedModel(judge, name="scripted/judge"), opened)
    told = metric(asked(), dspy.Prediction(answer="Rome"), None, "predict", [])
    assert told.score == pytest.approx(0.1, abs=1e-4)
    assert "answered against it:\n- Is it brief? (yes = fault) The word Rome decides." in told.feedback
    right = Checklist(questions=[Question(id="right", text="Is it right?", good="no")])
    metric = checklist_metric(right, ScriptedModel(judge, name="scripted/judge"), opened)
    assert "answered in its favour" in metric(asked(), dspy.Prediction(answer="Rome"), None, "predict", []).feedback


def test_fields_are_taken_as_they_are_named(opened: OpenGateway) -> None:
    metric, model = metric_over(opened, output="answer", input="question", context="passage", reference="gold")
    example = dspy.Example(question="Which?", passage="On cities.", gold="Paris.").with_inputs("question", "passage")
    metric(example, dspy.Prediction(reasoning="Rome?", hint="Rome", answer="Paris"))
    shown = model.requests[0].messages[-1][1]
    assert all(part in shown for part in ("Which?", "On cities.", "Paris.")) and "Rome" not in shown
    both, model = metric_over(opened)
    both(example, dspy.Prediction(reasoning="Rome?", answer="Paris"))
    assert "question:\nWhich?\n\npassage:\nOn cities." in model.requests[0].messages[-1][1]


def test_a_context_that_is_none_is_not_shown_as_a_word(opened: OpenGateway) -> None:
    metric, model = metric_over(opened, context="passage", reference="gold")
    metric(asked(passage=None, gold=None), dspy.Prediction(answer="Paris"))
    assert not any("None" in content for _, content in model.requests[0].messages)


def test_an_evaluation_gives_the_mean_and_costs_nothing_the_second_time(tmp_path: Path) -> None:
    class Always(dspy.Module):  # type: ignore[misc]
        def forward(self, question: str) -> Any:
            return dspy.Prediction(answer="Paris" if "France" in question else "Rome")

    examples = [asked(), asked("Capital of Spain?")]
    for calls in (4, 0):
        with open_gateway(store=tmp_path / "cache.db") as opened:
            metric, _ = metric_over(opened)
            result = dspy.Evaluate(devset=examples, metric=metric, num_threads=2)(Always())
            assert result.score == pytest.approx(100 * (3.3 + 1.5) / 8, abs=0.01)
            assert opened.budget.role("evaluator").calls == calls


class Answers(dspy.Module):  # type: ignore[misc]
    def forward(self, question: str) -> Any:
        return dspy.Prediction(answer=question)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_missing_verdict_is_an_error_and_never_a_score(threads: int) -> None:
    examples = [asked("Paris"), asked("unreadable")]
    with pytest.raises(CoverageError, match=naming("scripted/judge", "Is it right?")):  # noqa: SIM117
        with open_gateway(no_cache=True, retries=0) as opened:
            dspy.Evaluate(devset=examples, metric=metric_over(opened)[0], num_threads=threads)(Answers())


def optimise(question: str, **options: Any) -> None:
    with open_gateway(no_cache=True, retries=0, **options) as opened:
        lm = opened.lm(ScriptedModel(lambda _: f"[[ ## answer ## ]]\n{question}"))
        metric, _ = metric_over(opened, judging=Judging(p_yes="hard"))
        with dspy.context(lm=lm):
            optimiser = dspy.BootstrapFewShot(metric=metric, metric_threshold=0.5, max_labeled_demos=0)
            optimiser.compile(dspy.Predict("question -> answer"), trainset=[asked(), asked("Other?")])


def test_optimisers_are_ended_by_a_missing_verdict_and_a_used_up_budget() -> None:
    with pytest.raises(CoverageError, match="Run it again"):
        optimise("unreadable")
    with pytest.raises(BudgetExceededError, match="1 calls"):
        optimise("Paris", call_budget=1)
    optimise("Paris")


def test_what_cannot_be_judged_is_said(opened: OpenGateway) -> None:
    for fields, options, message in (
        ({"answer": "a", "hint": "b"}, {}, "say which to judge"),
        ({"answer": "a"}, {"output": "reply"}, "prediction has no field 'reply'"),
        ({"answer": "a"}, {"context": "passage"}, "example has no field 'passage'"),
    ):
        with pytest.raises(Stopped, match=message) as stop:
            metric_over(opened, **options)[0](asked(), dspy.Prediction(**fields))
        assert isinstance(stop.value.error, InputError)


def test_a_setting_that_there_is_not_is_named() -> None:
    with pytest.raises(InputError, match=r"cal_budget.*call_budget"), open_gateway(cal_budget=3):
        pass


def test_a_kept_judge_is_asked_as_it_was_kept(opened: OpenGateway, tmp_path: Path) -> None:
    KeptJudge("scripted/judge", Prompt("Be strict."), CHECKLIST, {"scores": "hard"}).save(tmp_path / "judge.yaml")
    model = ScriptedModel(judge, name="scripted/judge")
    metric = checklist_metric(None, model, opened, judge=tmp_path / "judge.yaml")
    assert metric(asked(), dspy.Prediction(answer="Rome")) == pytest.approx(1 / 4)
    assert "Be strict." in model.requests[0].messages[0][1]
    with pytest.raises(InputError, match=naming("checklist", "judge")):
        checklist_metric(CHECKLIST, model, opened, judge=tmp_path / "judge.yaml")
    with pytest.raises(InputError, match="A model is needed"):
        checklist_metric(CHECKLIST, None, opened)
