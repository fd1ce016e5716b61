"""A run in MLflow. Without MLflow only the error that names the extra is tested."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.bridges.mlflow_callback import MLflowCallback, log_evaluation
from askance.evaluation.kept_judge import KeptJudge
from askance.models.base import Request
from askance.optimizer.events import Event, RunBegan, RunWritten
from askance.prompts.errors import MissingExtraError
from askance.testing import StandInServer

needs_mlflow = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("mlflow", "sqlalchemy", "alembic"))),
    reason="the extra mlflow is not installed (pip install 'askance[mlflow]')",
)
TRIAL_AND_PRUNING = {"trial": True, "prune": True}


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One local store for all tests: making its tables takes a second or two."""
    folder = tmp_path_factory.mktemp("mlflow")
    return f"sqlite:///{folder / 'mlflow.db'}"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)  # artifacts of a local store go into the working directory


def client(store: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=store)


def runs(store: str, experiment: str) -> list[Any]:
    found = client(store).get_experiment_by_name(experiment)
    return list(client(store).search_runs([found.experiment_id]))


def test_without_mlflow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'askance\[mlflow\]'"):
        MLflowCallback()


def test_callbacks_are_told_where_the_run_is_and_when_it_is_written(world: Any, tmp_path: Path) -> None:
    told: list[Event] = []
    there: list[bool] = []

    def listen(event: Event) -> None:
        told.append(event)
        if isinstance(event, RunWritten):
            there.append((event.directory / "result.json").is_file())

    world.migrate(tmp_path / "run", callbacks=[listen])
    assert isinstance(told[0], RunBegan) and told[0].config["command"] == "migrate"
    assert isinstance(told[-1], RunWritten) and there == [True]
    journal = (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8")
    assert '"began"' not in journal and '"written"' not in journal


@needs_mlflow
def test_a_run_is_logged_with_settings_decisions_figures_and_files(world: Any, tmp_path: Path, store: str) -> None:
    done = world.migrate(tmp_path / "first", callbacks=[MLflowCallback(store, "whole")], **TRIAL_AND_PRUNING)
    (run,) = runs(store, "whole")
    assert (run.info.status, run.info.run_name) == ("FINISHED", "first")
    assert run.data.params["target"] == "world/target" and run.data.params["alpha"] == "0.2"
    assert "note_taker" not in run.data.params, "what is not set is left out"
    history = client(store).get_metric_history(run.info.run_id, "accepted")
    decided = [*done.result["accepted_edits"], *done.result["rejected_edits"]]
    assert len(history) == len(decided) and sum(each.value for each in history) == len(done.result["accepted_edits"])
    gains = {each.step: each.value for each in client(store).get_metric_history(run.info.run_id, "gain")}
    assert gains[1] == pytest.approx(done.result["accepted_edits"][0]["gain"]["value"])
    found = client(store).get_metric_history(run.info.run_id, "disagreements")
    assert found[0].step == 1 and found[0].value > 0
    assert run.data.metrics["best.test.spearman"] == pytest.approx(done.result["best"]["test"]["spearman"])
    assert run.data.metrics["calls"] == done.result["calls"]
    assert run.data.tags["askance.finish_reason"] == done.finish_reason
    names = {each.path for each in client(store).list_artifacts(run.info.run_id)}
    assert {"prompt.md", "changes.diff", "result.json", "config.yaml", "lessons.jsonl"} <= names


@needs_mlflow
def test_a_run_that_was_finished_without_it_is_logged_afterwards(world: Any, tmp_path: Path, store: str) -> None:
    done = world.migrate(tmp_path / "run")
    world.migrate(tmp_path / "run", callbacks=[MLflowCallback(store, "afterwards")])
    (run,) = runs(store, "afterwards")
    assert run.info.status == "FINISHED" and run.data.params["target"] == "world/target"
    for name in ("spearman", "low", "high"):
        assert run.data.metrics[f"best.test.{name}"] == pytest.approx(done.result["best"]["test"][name])
    names = {each.path for each in client(store).list_artifacts(run.info.run_id)}
    assert {"judge.yaml", "result.json", "report.html"} <= names


@needs_mlflow
def test_a_resumed_run_goes_on_in_the_same_mlflow_run(world: Any, tmp_path: Path, store: str) -> None:
    asked = 0

    def crash(request: Request) -> None:
        nonlocal asked
        asked += 1
        if asked > 150:
            raise Crash

    with pytest.raises(Crash):
        world.migrate(tmp_path / "run", before=crash, callbacks=[MLflowCallback(store, "resumed")])
    (begun,) = runs(store, "resumed")
    assert begun.info.status == "RUNNING"
    world.migrate(tmp_path / "run", callbacks=[MLflowCallback(store, "resumed")])
    (run,) = runs(store, "resumed")
    assert run.info.run_id == begun.info.run_id and run.info.status == "FINISHED"
    steps = [each.step for each in client(store).get_metric_history(run.info.run_id, "disagreements")]
    assert steps == sorted(set(steps)) and steps[0] == 1, "each iteration is logged once"


@needs_mlflow
def test_an_evaluation_is_logged_with_its_figures_verdicts_and_judge(tmp_path: Path, store: str) -> None:
    checklist = askance.Checklist(questions=[askance.Question(id="kind", text="Is it kind?", dimension="tone (all)")])
    rows = [{"id": str(n), "input": "Hi.", "output": "x" * n, "human": {"overall": n % 2 == 0}} for n in range(1, 13)]
    kept = KeptJudge(model="openai/judge", prompt=askance.Prompt("Judge."), checklist=checklist)
    with StandInServer(lambda body: 0.9 if len(body["messages"][-1]["content"]) % 2 else 0.2) as server:
        found = kept.evaluate(rows, api_base=server.url, no_cache=True, explain="never", resamples=100)
    made = log_evaluation(found, kept, tracking_uri=store, experiment="judged", run_name="june")
    (run,) = runs(store, "judged")
    assert (run.info.run_id, run.info.status, run.info.run_name) == (made, "FINISHED", "june")
    said = found.to_dict()
    assert run.data.params["model"] == "openai/judge"
    assert run.data.metrics["means.overall"] == pytest.approx(said["means"]["overall"])
    assert run.data.metrics["means.tone _all_"] == pytest.approx(said["means"]["tone (all)"])
    assert run.data.metrics["pass_rate.value"] == pytest.approx(said["pass_rate"]["value"])
    assert run.data.metrics["agreement.overall.pooled.spearman"] == pytest.approx(
        said["agreement"]["overall"]["pooled"]["spearman"]
    )
    assert (run.data.metrics["calls"], run.data.metrics["examples"]) == (12, 12)
    log = client(store)
    assert {each.path for each in log.list_artifacts(made)} == {"evaluation.json", "verdicts.jsonl", "judge.yaml"}
    (folder := tmp_path / "got").mkdir()
    assert askance.load_judge(log.download_artifacts(made, "judge.yaml", str(folder))).checklist == checklist
    verdicts = Path(log.download_artifacts(made, "verdicts.jsonl", str(folder))).read_text(encoding="utf-8")
    assert [json.loads(line)["example"] for line in verdicts.splitlines()] == [row["id"] for row in rows]
    open_run = log.create_run(run.info.experiment_id).info.run_id
    assert log_evaluation(found, tracking_uri=store, run_id=open_run) == open_run
    assert log.get_run(open_run).info.status == "RUNNING", "a run that was given is not ended"


@needs_mlflow
def test_a_run_that_ends_without_a_result_is_marked_when_python_exits(tmp_path: Path, store: str) -> None:
    program = f"""
from pathlib import Path
from askance.optimizer.events import RunBegan
from askance.bridges.mlflow_callback import MLflowCallback
MLflowCallback({store!r}, "killed")(RunBegan(Path("run"), {{"seed": 1}}, "abc"))
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=tmp_path)
    assert [each.info.status for each in runs(store, "killed")] == ["KILLED"]


@needs_mlflow
def test_a_run_that_ends_without_a_result_is_marked_when_the_callback_is_given_to_another(
    tmp_path: Path, store: str
) -> None:
    callback = MLflowCallback(store, "another")
    for name in ("first", "second", "second"):
        callback(RunBegan(tmp_path / name, {"seed": 1}, "abc"))
    assert {each.info.run_name: each.info.status for each in runs(store, "another")} == {
        "first": "KILLED",
        "second": "RUNNING",
    }


@needs_mlflow
def test_a_store_that_fails_is_given_up_and_the_run_goes_on(
    world: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    def fail(*arguments: Any, **options: Any) -> None:
        raise ConnectionError("nobody there")

    callback = MLflowCallback(store, "broken")
    monkeypatch.setattr(MlflowClient, "log_batch", fail)
    with caplog.at_level(logging.ERROR):
        done = world.migrate(tmp_path / "run", callbacks=[callback])
    assert done.finish_reason != "" and askance.Prompt(done.prompt)
    assert len([each for each in caplog.records if each.name == "askance.optimizer.events"]) == 1
