"""Logging to MLflow: a callback for runs, and a function for results of ``evaluate``.

.. code-block:: python

    import askance
    from askance.bridges import MLflowCallback

    askance.align("data.jsonl", checklist="checklist.yaml", model="openai/gpt-4o-mini", run="run",
                  callbacks=[MLflowCallback("sqlite:///mlflow.db")])
    found = askance.evaluate("later.jsonl", judge="run")
    log_evaluation(found, "run", tracking_uri="sqlite:///mlflow.db")

This needs the extra: ``pip install 'askance[mlflow]'``. MLflow itself sends usage figures to its makers unless
``MLFLOW_DISABLE_TELEMETRY=true`` is set.
"""

from __future__ import annotations

import atexit
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..evaluation.evaluation_result import Evaluation
from ..evaluation.judge_file import load_judge
from ..evaluation.kept_judge import KeptJudge
from ..memory.run_directory import SUFFIXES, RunDirectory
from ..optimizer.events import DisagreementsFound, Event, RunBegan, RunWritten, VersionDecided
from ..prompts.errors import import_optional

logger = logging.getLogger(__name__)

FILES = (
    "config.yaml",
    *(f"prompt{suffix}" for suffix in SUFFIXES),
    "judge.yaml",
    "changes.diff",
    "result.json",
    "lessons.jsonl",
    "report.html",
)
"""Files that are logged as artifacts if they exist."""
LONGEST_PARAMETER = 500
"""Most characters of a parameter. Every MLflow server takes this many. ``config.yaml`` has every setting in full."""
MOST_METRICS = 900
"""Most metrics in one call; a server takes 1,000 entries."""
TAG = "askance.run"
_UNNAMEABLE = re.compile(r"[^\w\-. /:]", re.ASCII)
"""Characters that MLflow refuses in a name. Names of dimensions may have any characters."""


class MLflowCallback:
    """Logs a run of ``migrate``, ``align`` or ``tune`` to one MLflow run.

    Parameters are the run's settings. Metrics, by step: ``gain``, ``p_value``, ``accepted`` (0 or 1) and ``judged`` at
    each candidate's version number; ``disagreements`` and ``disagreements_read`` at each iteration. When the run is
    written: ``best.test.spearman`` with its interval (``best.test.low``, ``best.test.high``), all other numbers in
    ``result.json``, and the files as artifacts, among them the judge (``judge.yaml``). Undefined numbers are left out.
    A resumed run continues in its first MLflow run. A run that ends without a result is marked as killed when Python
    exits or when another run begins with the same callback.

    The run waits while MLflow is called between its steps. After one failure the server is not called again; the run
    continues without it, and the log says so.
    """

    def __init__(
        self, tracking_uri: str | None = None, experiment: str = "askance", run_name: str | None = None
    ) -> None:
        """Take the settings; a connection is made when a run begins.

        Args:
            tracking_uri: MLflow's tracking URI, e.g. ``sqlite:///mlflow.db`` or ``http://localhost:5000``; default:
                MLflow's own setting (``MLFLOW_TRACKING_URI``).
            experiment: Name of the experiment; it is created if it does not exist.
            run_name: Name of the MLflow run; default: the name of the run's directory.

        Raises:
            MissingExtraError: MLflow is not installed.
        """
        mlflow = import_optional("mlflow", "mlflow", "mlflow-skinny")
        self._connect: Callable[[], Any] = lambda: mlflow.MlflowClient(tracking_uri=tracking_uri)
        self._experiment = experiment
        self._run_name = run_name
        self._client: Any = None
        self._id: str | None = None

    def __call__(self, event: Event) -> None:
        """Log an event of a run."""
        if isinstance(event, RunBegan):
            self._begin(event)
            return
        if self._id is None:
            return
        try:
            self._log(event)
        except Exception:
            self._id = None  # each try may take minutes
            raise

    def _begin(self, event: RunBegan) -> None:
        """Continue the MLflow run of this directory, or create one."""
        from mlflow.entities import Param

        self._give_up()
        self._client = self._connect()
        experiment = _experiment(self._client, self._experiment)
        key = f"{event.fingerprint[:16]}-{sha256(str(event.directory.resolve()).encode()).hexdigest()[:16]}"
        known = self._client.search_runs([experiment], filter_string=f"tags.`{TAG}` = '{key}'", max_results=1)
        if known:
            run_id = str(known[0].info.run_id)
            self._client.update_run(run_id, status="RUNNING")
        else:
            name = self._run_name or event.directory.resolve().name
            made = self._client.create_run(experiment, tags={TAG: key}, run_name=name)
            run_id = str(made.info.run_id)
            parameters = [Param(name, text) for name, text in _parameters(event.config)]
            self._client.log_batch(run_id, params=parameters)
        self._id = run_id
        atexit.register(self._give_up)

    def _log(self, event: Event) -> None:
        if isinstance(event, DisagreementsFound):
            found = {"disagreements": event.found, "disagreements_read": len(event.read)}
            self._metrics(found, event.iteration)
        elif isinstance(event, VersionDecided):
            gain = event.tried.gain
            decided: dict[str, float | None] = {"accepted": int(event.tried.accepted), "judged": event.tried.judged}
            decided |= {} if gain is None else {"gain": gain.value, "p_value": gain.p_value}
            self._metrics(decided, event.version)
        elif isinstance(event, RunWritten):
            self._finish(event.directory)

    def _finish(self, directory: Path) -> None:
        result = RunDirectory(directory).read_result().to_dict()
        self._metrics(dict(_numbers(result)), 0)
        for name in ("mode", "finish_reason", "yardstick"):
            if result.get(name) is not None:
                self._client.set_tag(self._id, f"askance.{name}", str(result[name]))
        for name in FILES:
            if (directory / name).is_file():
                self._client.log_artifact(self._id, str(directory / name))
        self._client.set_terminated(self._id)
        self._id = None
        atexit.unregister(self._give_up)

    def _metrics(self, values: Mapping[str, float | None], step: int) -> None:
        _log_metrics(self._client, self._id, values, step)

    def _give_up(self) -> None:
        """Mark a run without a result as killed, when Python ends or another run begins."""
        run_id, self._id = self._id, None
        if run_id is not None:
            self._client.set_terminated(run_id, status="KILLED")


def log_evaluation(
    found: Evaluation,
    judge: str | Path | KeptJudge | None = None,
    *,
    tracking_uri: str | None = None,
    experiment: str = "askance",
    run_name: str | None = None,
    run_id: str | None = None,
) -> str:
    """Log the result of ``evaluate``, and its judge, to one MLflow run.

    Parameters are the model and the hash of the prompt. Metrics are all defined figures of ``evaluate --json``
    (``means.overall``, ``agreement.overall.pooled.spearman``, ``pass_rate.value``, ``coverage.share``, ``calls``, …)
    and ``examples``. Artifacts are ``evaluation.json``, ``verdicts.jsonl`` and ``judge.yaml``.

    Args:
        found: Result of ``askance.evaluate`` or of a judge's ``evaluate``.
        judge: A run's directory, a ``judge.yaml`` or a judge.
        tracking_uri: See :class:`MLflowCallback`.
        experiment: Name of the experiment; it is created if it does not exist.
        run_name: Name of the run; default: a name by MLflow.
        run_id: MLflow run to log to, e.g. ``mlflow.active_run().info.run_id``. It stays open. Without an id a new run
            is created.

    Returns:
        The id of the MLflow run.

    Raises:
        InputError: There is no such judge.
        MissingExtraError: MLflow is not installed.
    """
    kept = None if judge is None else load_judge(judge)
    client = import_optional("mlflow", "mlflow", "mlflow-skinny").MlflowClient(tracking_uri=tracking_uri)
    from mlflow.entities import Param

    used = run_id or str(client.create_run(_experiment(client, experiment), run_name=run_name).info.run_id)
    data = found.to_dict()
    figures = dict(_numbers({name: value for name, value in data.items() if not isinstance(value, list)}))
    client.log_batch(used, params=[Param(name, data[name]) for name in ("model", "prompt")])
    _log_metrics(client, used, figures | {"examples": len(found.scores)}, 0)
    client.log_dict(used, data, "evaluation.json")
    verdicts = "".join(json.dumps(verdict.to_dict(), ensure_ascii=False) + "\n" for verdict in found.verdicts)
    client.log_text(used, verdicts, "verdicts.jsonl")
    if kept is not None:
        client.log_text(used, kept.to_yaml(), "judge.yaml")
    if run_id is None:
        client.set_terminated(used)
    return used


def _experiment(client: Any, name: str) -> str:
    """Return the id of an experiment, which is created if it does not exist."""
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found else client.create_experiment(name))


def _log_metrics(client: Any, run_id: str | None, values: Mapping[str, float | None], step: int) -> None:
    """Log the defined values, in parts that a server takes."""
    from mlflow.entities import Metric
    from mlflow.utils.time import get_current_time_millis

    now = get_current_time_millis()
    metrics = [
        Metric(_UNNAMEABLE.sub("_", name), float(value), now, step)
        for name, value in values.items()
        if value is not None
    ]
    for start in range(0, len(metrics), MOST_METRICS):
        client.log_batch(run_id, metrics=metrics[start : start + MOST_METRICS])


def _parameters(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings that have a value, as texts."""
    for name, value in config.items():
        if value is not None and value != {}:
            text = str(value)
            yield name, text if len(text) <= LONGEST_PARAMETER else text[: LONGEST_PARAMETER - 1] + "…"


def _numbers(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in nested objects, named by their paths, and the lengths of top-level lists."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{before}{name}.")
        elif isinstance(value, list) and not before:
            yield name, len(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield before + name, value
