"""A checklist as a scorer of Inspect AI, run by Inspect itself on its mock model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.kept_judge import KeptJudge
from askance.models.base import ModelError, Request
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.errors import CoverageError, InputError
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel, StandInServer

inspect_ai = pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'askance[inspect]'")

from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput, get_model  # noqa: E402
from inspect_ai.solver import solver  # noqa: E402

from askance.bridges.inspect_scorer import checklist_scorer  # noqa: E402
from tests.said import naming, says  # noqa: E402

CHECKLIST = Checklist(
    task="Answer briefly.",
    questions=[
        Question(id="right", text="Is it right?", dimension="facts", weight=3),
        Question(id="brief", text="Is it brief?", dimension="style"),
    ],
)


def judge(request: Request) -> Reply:
    """Says yes to what is brief and, where it says Paris, right; gives no answer on what is unreadable."""
    said = "\n".join(content for _, content in request.messages)
    if "decides" in said:
        return "It says Rome."
    if "unreadable" in said:
        return ModelError("no answer", status=400)
    if "Is it brief?" in said:
        return 0.9
    return 0.8 if "Paris" in said.rsplit("Output:", 1)[1] else 0.2


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Inspect's eval of some outputs with a scorer; returns its log."""
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("INSPECT_TRACE_FILE", str(tmp_path / "trace.log"))
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))

    def run(outputs: list[str | None], scorer: Any, **options: Any) -> Any:
        samples = [
            Sample(id=f"s{number}", input="The capital of France?", target="Paris", metadata={"page": "Page 7."})
            for number, _ in enumerate(outputs)
        ]

        @solver
        def write() -> Any:
            """Writes the outputs without a model: the mock model counts tokens with a file from the network."""

            async def solve(state: Any, generate: Any) -> Any:
                if (output := outputs[int(str(state.sample_id)[1:])]) is not None:
                    state.output = ModelOutput.from_content("mockllm/model", output)
                return state

            return solve

        model = get_model("mockllm/model")
        task = inspect_ai.Task(dataset=samples, solver=write(), scorer=scorer)
        options = {"display": "none", "max_samples": 1} | options
        return inspect_ai.eval(task, model=model, log_dir=str(tmp_path / "logs"), **options)[0]

    return run


def scores(log: Any) -> list[Any]:
    return [sample.scores["checklist_scorer"] for sample in log.samples]


def test_the_score_is_that_of_the_checklist_with_failing_questions_and_verdicts(run: Any) -> None:
    log = run(["Paris.", "Rome."], checklist_scorer(CHECKLIST, ScriptedModel(judge), no_cache=True))
    assert log.status == "success", log.error
    right, wrong = scores(log)
    assert right.value == pytest.approx((3 * 0.8 + 0.9) / 4, abs=1e-4)
    assert wrong.value == pytest.approx((3 * 0.2 + 0.9) / 4, abs=1e-4)
    assert says(right.explanation, "question", "yes")
    assert wrong.explanation == "Answered no:\n- Is it right? It says Rome."
    assert [each["question"] for each in wrong.metadata["verdicts"]] == ["right", "brief"]
    assert wrong.metadata["dimensions"] == pytest.approx({"facts": 0.2, "style": 0.9}, abs=1e-4)
    mean = log.results.scores[0].metrics["mean"].value
    assert mean == pytest.approx((right.value + wrong.value) / 2)


def test_a_yes_to_a_fault_is_what_failed(run: Any) -> None:
    faults = [Question(id="right", text="Is it right?"), Question(id="brief", text="Is it brief?", good="no")]
    log = run(["Paris."], checklist_scorer(Checklist(questions=faults), ScriptedModel(judge), no_cache=True))
    (score,) = scores(log)
    assert score.value == pytest.approx((0.8 + 0.1) / 2, abs=1e-4)
    assert score.explanation == "Answered against it:\n- Is it brief? (yes = fault) It says Rome."


def test_a_missing_verdict_is_an_error_of_the_sample_and_no_score(run: Any) -> None:
    scorer = checklist_scorer(CHECKLIST, ScriptedModel(judge), no_cache=True, retries=0)
    log = run(["Paris.", "unreadable"], scorer, fail_on_error=False)
    good, bad = log.samples
    assert good.scores["checklist_scorer"].value > 0.5
    assert not bad.scores
    assert says(bad.error.message, "no verdict", "Is it right?")
    assert run(["unreadable"], scorer).status == "error"


def test_a_missing_verdict_can_be_unscored_and_is_in_no_metric(run: Any) -> None:
    scorer = checklist_scorer(CHECKLIST, ScriptedModel(judge), no_cache=True, retries=0, on_missing="unscored")
    log = run(["Paris.", "unreadable"], scorer)
    good, bad = scores(log)
    assert math.isnan(bad.value) and bad.reason == "grader_failed" and "gave no verdict" in bad.explanation
    assert log.results.scores[0].metrics["mean"].value == good.value


def test_a_sample_without_an_output_has_no_score(run: Any) -> None:
    model = ScriptedModel(judge)
    (bad,) = run([None], checklist_scorer(CHECKLIST, model, no_cache=True), fail_on_error=False).samples
    assert not bad.scores and says(bad.error.message, "s0", "no output")
    (score,) = scores(run([None], checklist_scorer(CHECKLIST, model, no_cache=True, on_missing="unscored")))
    assert math.isnan(score.value) and score.reason == "no_response" and not model.requests


def test_target_and_metadata_are_shown_only_where_asked_for(run: Any) -> None:
    plain, full = ScriptedModel(judge), ScriptedModel(judge, name="scripted/full")
    run(["Rome."], checklist_scorer(CHECKLIST, plain, no_cache=True))
    run(["Rome."], checklist_scorer(CHECKLIST, full, no_cache=True, reference=True, context="page"))
    without, with_them = (str(model.requests[0].messages) for model in (plain, full))
    assert "Page 7." not in without and "Paris" not in without
    assert "Page 7." in with_them and "Paris" in with_them


def test_inspect_can_make_the_scorer_again_from_what_it_logs(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "checklist.yaml"
    file.write_text(dump_checklist(CHECKLIST), encoding="utf-8")
    with StandInServer(lambda body: 0.9) as server:
        log = run(["Paris."], checklist_scorer(str(file), "openai/judge", api_base=server.url, no_cache=True))
        assert log.status == "success", log.error
        logged = log.eval.scorers[0]
        assert logged.options["checklist"] == str(file)
        assert logged.options["model"] == "openai/judge"


def test_what_cannot_be_used_is_said_at_once(run: Any) -> None:
    with pytest.raises(InputError, match=naming("modes")):
        checklist_scorer(CHECKLIST, ScriptedModel(judge), modes="each")
    with pytest.raises(InputError, match=naming("error", "unscored")):
        checklist_scorer(CHECKLIST, ScriptedModel(judge), on_missing="zero")
    log = run(["Rome."], checklist_scorer(CHECKLIST, ScriptedModel(judge), no_cache=True, context="pages"))
    assert log.status == "error" and "has no field 'pages'" in log.error.message
    assert issubclass(CoverageError, Exception)


def test_a_kept_judge_scores_as_it_was_kept(run: Any, tmp_path: Path) -> None:
    KeptJudge("scripted/judge", Prompt("Be strict."), CHECKLIST, {"scores": "hard"}).save(tmp_path / "judge.yaml")
    model = ScriptedModel(judge, name="scripted/judge")
    log = run(["Paris", "Rome"], checklist_scorer(model=model, judge=str(tmp_path / "judge.yaml"), no_cache=True))
    scores = [next(iter(sample.scores.values())).value for sample in log.samples]
    assert scores == pytest.approx([1.0, 0.25])
    assert "Be strict." in model.requests[0].messages[0][1]
    with pytest.raises(InputError, match=naming("prompt", "judge")):
        checklist_scorer(judge=str(tmp_path / "judge.yaml"), prompt=Prompt("Mine."))
