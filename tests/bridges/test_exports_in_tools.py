"""An exported judge in the tool that it is for: promptfoo, Inspect, DeepEval and MLflow."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from askance.bridges.exports import ADAPTERS, export_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.prompts.checklist import Checklist, Question
from askance.prompts.messages import text_of
from tests.said import says

from .conftest import FILLED, PLAIN, QUESTIONS, ROWS, as_module, kept, ours, texts, with_logprobs

PROMPTFOO = os.environ.get("ASKANCE_TEST_PROMPTFOO") or shutil.which("promptfoo")


def test_promptfoo_s_result_says_what_the_judge_says(serve: Any) -> None:
    judge = kept(threshold=0.5)
    server = serve(with_logprobs)
    module = as_module(judge, "promptfoo")
    context = {"vars": {"question": "Who wrote it?", "context": ROWS[0]["context"]}, "config": {"input": "question"}}
    found, said = module.get_assert(ROWS[0]["output"], context), module.judge(**texts(ROWS[0]))
    assert (found["score"], found["pass"]) == (said["score"], said["passed"])
    assert (
        found["pass"]
        is not module.get_assert(
            ROWS[0]["output"],
            context | {"config": {"input": "question", "threshold": 0.0 if not said["passed"] else 1.0}},
        )["pass"]
    )
    with pytest.raises(module.JudgeError, match="no output"):
        module.get_assert(None, context)
    bought = len(server.bodies)
    with pytest.raises(RuntimeError, match="no threshold"):
        as_module(kept(), "promptfoo").get_assert("x", {"prompt": "Say x.", "vars": {}})
    assert len(server.bodies) == bought, "verdicts are bought that nothing can be said from"


def test_a_threshold_in_promptfoo_s_config_is_reached_by_a_score_that_is_below_by_rounding_alone(serve: Any) -> None:
    weights = {"a": 0.1, "b": 0.7, "c": 0.2}
    asked = tuple(Question(id=name, text=f"{name}?", weight=weight) for name, weight in weights.items())
    judge = KeptJudge(model="openai/judge", prompt=PLAIN, checklist=Checklist(task="t", questions=asked))
    serve(lambda body: float("c?" not in str(body["messages"])))
    found = as_module(judge, "promptfoo").get_assert("x", {"vars": {"input": "i"}, "config": {"threshold": 0.8}})
    assert found["score"] < 0.8 and found["pass"]


@pytest.mark.parametrize("to", ["promptfoo", "deepeval", "mlflow"])
def test_values_that_are_no_texts_are_shown_as_askance_reads_them_in_traces(to: str, serve: Any) -> None:
    server = serve(with_logprobs)
    module = ModuleType("exported")
    without_the_tool = export_judge(kept(FILLED, threshold=0.5), to).text.partition(ADAPTERS[to])[0]
    exec(compile(without_the_tool, f"{to}.py", "exec"), module.__dict__)
    asked = {"mail": "Wo ist Paket 7, Größe 3?"}
    talk = [{"role": "user", "content": "Und?"}, {"role": "assistant", "content": "Hier."}]
    values: dict[str, Any] = {
        "input": asked,
        "output": {"stars": 3, "note": "schön"},
        "context": talk,
        "reference": 0.5,
    }
    module.judge_of_values(**values)
    said = server.bodies[-1]["messages"][-1]["content"]
    shown = {name: text_of(value) for name, value in values.items() if name in ("input", "output", "context")}
    assert all(f">\n{each}\n</" in said for each in shown.values())
    assert shown["input"] == asked["mail"]
    for nothing in (None, {}, []):
        with pytest.raises(module.JudgeError, match="no output"):
            module.judge_of_values(**values | {"output": nothing})


@pytest.mark.skipif(
    PROMPTFOO is None, reason="promptfoo is not installed: make test-promptfoo, or ASKANCE_TEST_PROMPTFOO=PATH"
)
def test_promptfoo_itself_gives_the_judge_s_scores(serve: Any, tmp_path: Path) -> None:
    assert PROMPTFOO is not None
    server = serve(lambda body: "I would rather not say." if "Nobody." in str(body) else with_logprobs(body))
    judge = kept(FILLED, threshold=0.3)
    (tmp_path / "promptfoo_judge.py").write_text(export_judge(judge, "promptfoo").text, encoding="utf-8")
    check = {"type": "python", "value": "file://promptfoo_judge.py"}
    tests = [{"vars": {"answer": row["output"], **texts(row)}, "assert": [check]} for row in ROWS]
    named = check | {"config": {"input": "question", "threshold": 1.0}}
    first = {"answer": ROWS[0]["output"], "question": ROWS[0]["input"], "context": ROWS[0]["context"]}
    tests += [{"vars": first, "assert": [named]}, {"vars": {"answer": "Nobody.", "input": "Who?"}, "assert": [check]}]
    config = {"prompts": ["{{answer}}"], "providers": ["echo"], "tests": tests}
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    names = ("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE", "PROMPTFOO_DISABLE_REMOTE_GENERATION")
    kept_apart = {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"), "PROMPTFOO_PYTHON": sys.executable}
    command = [PROMPTFOO, "eval", "-c", "promptfooconfig.json", "--no-cache", "-o", "out.json"]
    environment = os.environ | dict.fromkeys(names, "1") | kept_apart
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=300)
    results = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]["results"]
    assert len(results) == len(tests)
    *judged, strict, silent = sorted(results, key=lambda each: each["testIdx"])
    here, _ = ours(judge, server)
    assert [each["score"] for each in judged] == pytest.approx([each.overall for each in here.scores])
    assert [each["success"] for each in judged] == [(each.overall or 0) >= 0.3 for each in here.scores]
    for each, score in zip(judged, here.scores, strict=True):
        assert each["namedScores"] == pytest.approx(dict(score.dimensions))
        _, *parts = each["gradingResult"]["componentResults"]
        assert [one["reason"] for one in parts] == [question.text for question in QUESTIONS], (
            "each question is shown with its answer"
        )
    assert strict["score"] == pytest.approx(here.scores[0].overall) and not strict["success"], "its config counts"
    assert not silent["success"] and says(silent["error"], "yes nor no"), "a verdict that is missing is said"


def test_inspect_scores_as_the_judge_does(serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.solver import solver

    monkeypatch.setenv("INSPECT_TRACE_FILE", str(tmp_path / "trace.log"))
    serve(with_logprobs)
    module = as_module(kept(), "inspect")
    outputs = {row["id"]: row["output"] for row in ROWS}

    @solver
    def write() -> Any:
        """Writes the outputs without a model: the mock model counts tokens with a file from the network."""

        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("mockllm/model", outputs[str(state.sample_id)])
            return state

        return solve

    samples = [Sample(id=row["id"], input=row["input"], metadata={"page": row.get("context", "")}) for row in ROWS]
    task = inspect_ai.Task(dataset=samples, solver=write(), scorer=module.askance_judge(context="page"))
    model = get_model("mockllm/model")
    (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=str(tmp_path / "logs"), max_samples=1)
    assert log.status == "success", log.error
    for sample, row in zip(log.samples, ROWS, strict=True):
        assert sample.scores["askance_judge"].value == pytest.approx(module.judge(**texts(row))["score"])
    with pytest.raises(module.JudgeError, match="no output"):
        asyncio.run(module.askance_judge()(SimpleNamespace(output=ModelOutput()), None))


def test_deepeval_measures_as_the_judge_does(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    pytest.importorskip("deepeval")
    from deepeval import evaluate
    from deepeval.test_case import LLMTestCase

    serve(with_logprobs)
    module = as_module(kept(threshold=0.6, threshold_of=("tone",)), "deepeval")
    cases = [
        LLMTestCase(
            input=row["input"], actual_output=row["output"], context=[row["context"]] if "context" in row else None
        )
        for row in ROWS
    ]
    found = evaluate(cases, [module.AskanceJudge()])
    for result, row in zip(sorted(found.test_results, key=lambda each: each.index), ROWS, strict=True):
        said = module.judge(**texts(row))
        assert result.metrics_data[0].score == pytest.approx(said["score"])
        assert result.success is said["passed"]
    assert not all(each.success for each in found.test_results if each.metrics_data[0].score >= 0.6), (
        "one dimension decides"
    )
    with pytest.raises(module.JudgeError, match="no output"):
        module.AskanceJudge().measure(LLMTestCase(input="x", actual_output=None))
    with pytest.raises(RuntimeError, match="no threshold"):
        as_module(kept(), "deepeval").AskanceJudge()


def test_mlflow_scores_as_the_judge_does(serve: Any, tmp_path: Path) -> None:
    pytest.importorskip("mlflow.genai", exc_type=ImportError)
    serve(with_logprobs)
    module = as_module(kept(threshold=0.5), "mlflow")
    found = module.askance_judge(inputs=texts(ROWS[0]), outputs=ROWS[0]["output"])
    said = module.judge(**texts(ROWS[0]))
    with pytest.raises(module.JudgeError, match="no output"):
        module.askance_judge(inputs="x", outputs=None)
    assert {each.name: each.value for each in found} == {
        "askance": said["score"],
        "askance/passed": said["passed"],
        **{f"askance/{name}": each for name, each in said["dimensions"].items()},
    }
