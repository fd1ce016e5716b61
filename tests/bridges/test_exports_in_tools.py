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

from askance.agents.checks import compute
from askance.bridges.exports import ADAPTERS, export_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.prompts.checklist import Checklist, ComputedCheck, Question, dump_checklist
from askance.prompts.examples import Example
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


def by_promptfoo(folder: Path, config: dict[str, Any]) -> list[dict[str, Any]]:
    """Results of promptfoo in a folder, in the order of the tests; each test's output is its variable ``answer``."""
    config = {"prompts": ["{{answer}}"], "providers": ["echo"], **config}
    (folder / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    names = ("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE", "PROMPTFOO_DISABLE_REMOTE_GENERATION")
    kept_apart = {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_PYTHON": sys.executable}
    command = [str(PROMPTFOO), "eval", "-c", "promptfooconfig.json", "--no-cache", "-o", "out.json"]
    environment = os.environ | dict.fromkeys(names, "1") | kept_apart
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=300)
    results = json.loads((folder / "out.json").read_text(encoding="utf-8"))["results"]["results"]
    return sorted(results, key=lambda each: each["testIdx"])


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
    results = by_promptfoo(tmp_path, {"tests": tests})
    assert len(results) == len(tests)
    *judged, strict, silent = results
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


FACTS = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 12},
        "kind": {"enum": ["news", "Größe", None]},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 2},
        "n": {"type": ["integer", "null"], "minimum": 0},
        "more": {"anyOf": [{"const": 1}, {"type": "object", "additionalProperties": {"type": "boolean"}}]},
    },
    "required": ["title"],
    "additionalProperties": False,
}
CONTRACT = (
    ComputedCheck(id="words", kind="length", value="at most 4 words"),
    ComputedCheck(id="odd", kind="matches", value=r"\w+ \{output\}", good="no"),
    ComputedCheck(id="web", kind="matches", value="https?://", good="no"),
    ComputedCheck(id="ada", kind="begins", value="Ada"),
    ComputedCheck(id="end", kind="ends", value="."),
    ComputedCheck(id="chars", kind="length", value="at most 22 characters"),
    ComputedCheck(id="json", kind="json"),
    ComputedCheck(id="object", kind="schema", value='{"type": "object", "required": ["a"], "maxProperties": 1}'),
    ComputedCheck.model_validate({"id": "facts", "kind": "schema", "value": FACTS}),
    ComputedCheck(id="short", kind="schema", value='{"properties": {"a": {"type": "string", "maxLength": 2}}}'),
)
WRITTEN = [
    *(row["output"] for row in ROWS),
    *(
        '{"a": "ab"}',
        '{"a": "abc"}',
        '{"b": 1}',
        "[1]",
        "\u2028Ada.\x1f",
        "😀😀. https://x.test",
        '{"a": "😀é"}',
        "NaN",
    ),
]
"""Outputs of a prompt that is migrated."""


def contract(folder: Path, *questions: Question) -> Path:
    """A migration's directory with these requirements, and what askance says of the outputs."""
    (folder / "requirements.yaml").write_text(dump_checklist(Checklist(questions=(*questions, *CONTRACT))), "utf-8")
    certificate = {"kind": "generator", "source": "recorded", "max_loss": 0.05, "level": 0.05, "targets": {}}
    (folder / "certificate.json").write_text(json.dumps(certificate | {"judge": "openai/judge"}), "utf-8")
    return folder


def kept_by(output: str) -> dict[str, bool]:
    """Whether an output keeps each check, as askance says."""
    example = Example(id="e", input="x", output=output)
    return {each.id: each.is_good(compute(each, example).answer) for each in CONTRACT}


@pytest.mark.skipif(PROMPTFOO is None, reason="promptfoo is not installed: make test-promptfoo")
def test_promptfoo_itself_decides_a_contract_as_askance_does(tmp_path: Path) -> None:
    made = export_judge(contract(tmp_path), "promptfoo")
    (tmp_path / made.name).write_text(made.text, encoding="utf-8")
    for name, text in made.beside.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    tests = [{"vars": {"answer": each}} for each in WRITTEN]
    results = by_promptfoo(tmp_path, {"tests": tests, "defaultTest": f"file://{made.name}"})
    for output, result in zip(WRITTEN, results, strict=True):
        parts = {each["assertion"]["metric"]: each["pass"] for each in result["gradingResult"]["componentResults"]}
        assert parts == kept_by(output), output


def test_inspect_itself_gets_a_value_for_each_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.solver import solver

    monkeypatch.setenv("INSPECT_TRACE_FILE", str(tmp_path / "trace.log"))
    made = export_judge(contract(tmp_path), "inspect")
    module = ModuleType("inspect_requirements")
    exec(compile(made.text, made.name, "exec"), module.__dict__)

    @solver
    def write() -> Any:
        """Writes the outputs without a model."""

        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("mockllm/model", WRITTEN[int(state.sample_id)])
            return state

        return solve

    samples = [Sample(id=str(place), input="x") for place in range(len(WRITTEN))]
    task = inspect_ai.Task(dataset=samples, solver=write(), scorer=module.askance_checks())
    model = get_model("mockllm/model")
    (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=str(tmp_path / "logs"), max_samples=1)
    assert log.status == "success", log.error
    for sample in log.samples:
        found = sample.scores["askance_checks"].value
        assert {name: bool(each) for name, each in found.items()} == kept_by(WRITTEN[int(sample.id)])
    means = {each.name: each.metrics["mean"].value for each in log.results.scores}
    assert means == pytest.approx(
        {each.id: sum(kept_by(output)[each.id] for output in WRITTEN) / len(WRITTEN) for each in CONTRACT}
    )


def test_deepeval_itself_gets_a_metric_for_each_check_and_one_for_the_questions(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    pytest.importorskip("deepeval")
    from deepeval import evaluate
    from deepeval.test_case import LLMTestCase

    serve(lambda body: "Yes" if "Ada" in str(body["messages"]) else "No")
    made = export_judge(contract(tmp_path, Question(id="ada?", text="Is it about her?")), "deepeval")
    module = ModuleType("deepeval_requirements")
    exec(compile(made.text, made.name, "exec"), module.__dict__)
    cases = [LLMTestCase(input="x", actual_output=each) for each in WRITTEN]
    found = evaluate(cases, module.REQUIREMENTS)
    for result, output in zip(sorted(found.test_results, key=lambda each: each.index), WRITTEN, strict=True):
        passed = {each.name: each.success for each in result.metrics_data}
        assert passed.pop("askance judge") is ("Ada" in output)
        assert passed == kept_by(output)


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
