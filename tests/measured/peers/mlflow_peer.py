"""MLflow's ``judge.align`` on examples from a file. Stands alone: an environment with MLflow and DSPy runs it, without
askance.

``python mlflow_peer.py TASK RESULT``, both JSON files; :mod:`~tests.measured.peers.beside` writes the one
and reads the other.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import Any

NAME = "good_to_publish"
PACKAGES = ("mlflow-skinny", "dspy", "gepa", "litellm")


def begin(server: str, phase: str) -> None:
    """Say what the next calls are for."""
    urllib.request.urlopen(urllib.request.Request(f"{server}/phase/{phase}", method="POST")).read()


def reach(server: str, folder: Path) -> None:
    """Let everything ask our server, keep nothing between runs, and wait as long as it takes."""
    os.environ |= {
        "OPENAI_API_KEY": "none",
        "OPENAI_API_BASE": f"{server}/v1",
        "OPENAI_BASE_URL": f"{server}/v1",
        "DSPY_CACHEDIR": str(folder / "dspy"),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
        "MLFLOW_GATEWAY_ROUTE_TIMEOUT_SECONDS": "3600",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def labelled_traces(examples: list[dict[str, Any]]) -> list[Any]:
    """One trace an example in a local store, with the person's label and, as rationale, the comment."""
    import mlflow
    from mlflow.entities import AssessmentSource

    mlflow.set_experiment("peers")
    traces = []
    for each in examples:
        with mlflow.start_span(name="write") as span:
            span.set_inputs(each["input"])
            span.set_outputs(each["output"])
        mlflow.log_feedback(
            trace_id=span.trace_id,
            name=NAME,
            value=each["passed"],
            rationale=each["comment"],
            source=AssessmentSource("HUMAN", "reviewers"),
        )
        traces.append(mlflow.get_trace(span.trace_id))
    return traces


def optimizer_of(method: str, model: str, settings: dict[str, Any]) -> Any:
    """MLflow's optimizer, with its defaults but for the model and what is in ``settings``."""
    from mlflow.genai.judges import optimizers

    if method == "memalign":
        given = {"reflection_lm": model, "embedding_model": "openai:/text-embedding-3-small", **settings}
        return optimizers.MemAlignOptimizer(**given)
    names = {"gepa": "GEPAAlignmentOptimizer", "simba": "SIMBAAlignmentOptimizer"}
    return getattr(optimizers, names[method])(model=model, **settings)


def judged(judge: Any, examples: list[dict[str, Any]]) -> tuple[dict[str, float | None], dict[str, str]]:
    """Each example's verdict as 1 (true) or 0 (false), or None with the reason where the judge gave none."""
    scores: dict[str, float | None] = {}
    missing: dict[str, str] = {}
    for each in examples:
        scores[each["id"]] = None
        try:
            found = judge(inputs=each["input"], outputs=each["output"])
        except Exception as error:
            missing[each["id"]] = f"{type(error).__name__}: {error}"[:300]
            continue
        if isinstance(found.value, bool):
            scores[each["id"]] = float(found.value)
        else:
            missing[each["id"]] = f"no verdict: {found.value!r} {found.error or ''}"[:300]
    return scores, missing


def run(task: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Judge the test, or learn and then judge it."""
    reach(task["server"], folder)
    import mlflow
    from mlflow.genai.judges import make_judge

    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    model = f"openai:/{task['model']}"
    judge = make_judge(NAME, task["instructions"], model=model, feedback_value_type=bool)
    found: dict[str, Any] = {"packages": {name: version(name) for name in PACKAGES}}
    if task["method"] != "start":
        begin(task["server"], "learn")
        judge = judge.align(labelled_traces(task["learn"]), optimizer_of(task["method"], model, task["settings"]))
        found["learned"] = judge.instructions
    begin(task["server"], "test")
    found["scores"], found["missing"] = judged(judge, task["test"])
    return found


if __name__ == "__main__":
    target = Path(sys.argv[2])
    result = run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), target.parent)
    target.write_text(json.dumps(result, indent=1), encoding="utf-8")
