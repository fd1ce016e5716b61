"""Another tool's run: an environment of its own, a script in it, a server that counts what it asks, and its row in the
table."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askance.evaluation.compare.run_difference import side_of_run
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import AskanceError, InputError
from askance.stats.correlation import correlate
from askance.stats.differences import difference_dict, label_difference, paired_difference
from askance.stats.pass_fail import area_under_curve
from askance.stats.resampling import Resampling

from .counting_server import LEARN, TEST, CountingServer

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
OURS = "askance"
RESAMPLED = Resampling(seed=0)
"""The resampling of a run with seed 0, so that its figures equal those in its own result."""
START = "start"
"""The name under which calls of the starting judge are counted."""
PACKAGES = {
    "mlflow": (
        *("mlflow-skinny==3.17.2", "dspy==3.4.1", "gepa==0.1.4", "litellm==1.104.5"),
        *("jinja2", "pandas", "alembic<2", "sqlalchemy<2.1"),
    ),
    "autochecklist": ("autochecklist==0.2.3", "numpy", "networkx"),
}
"""Packages of each environment."""


def environment(directory: Path, name: str) -> Path:
    """The Python of an environment, which is made where it is not there or was made for other packages.

    Raises:
        AskanceError: pip could not install what it needs.
    """
    home, wanted = directory / "environments" / name, "\n".join(PACKAGES[name])
    python, mark = home / "bin" / "python", home / "packages.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return python
    logger.info("Making the environment %s", home)
    for command in (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "-q", *PACKAGES[name]],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise AskanceError(f"The environment {home} could not be made: {said[-1] if said else 'no word why'}")
    mark.write_text(wanted, encoding="utf-8")
    return python


def peer_run(
    python: Path, script: Path, upstream: str, folder: Path, task: Mapping[str, Any], *, embeddings: str = "minilm"
) -> dict[str, Any]:
    """Let a peer learn and judge, or read what it did before.

    Args:
        python: That of its environment.
        script: What it runs, with the files of task and result.
        upstream: Address of the model's server, with ``/v1``.
        folder: Where the task, the calls, the result and what it printed are kept.
        task: As of :func:`task_file`.
        embeddings: Who answers a peer that asks for embeddings.

    Returns:
        The script's result, and ``counts`` by phase.

    Raises:
        InputError: The folder holds another task.
        AskanceError: The script failed; says where its last words are.
    """
    kept, result = folder / "task.json", folder / "result.json"
    if kept.is_file() and json.loads(kept.read_text(encoding="utf-8")) != task:
        raise InputError(
            f"{folder} holds a run with other data or settings; give another directory, or take this one away."
        )
    if result.is_file():
        return dict(json.loads(result.read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(task, indent=1), encoding="utf-8")
    found, counts = asyncio.run(
        _run(python, script, CountingServer(upstream, folder / "calls.jsonl", embeddings=embeddings), folder, task)
    )
    found |= {"counts": counts}
    result.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


async def _run(
    python: Path, script: Path, counting: CountingServer, folder: Path, task: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    asked, answered, log = (folder / name for name in ("asked.json", "answered.json", "log.txt"))
    for left in (folder / "mlflow.db", answered):  # of an earlier attempt
        left.unlink(missing_ok=True)
    shutil.rmtree(folder / "dspy", ignore_errors=True)  # what it answers from there would not be counted
    async with counting as server:
        asked.write_text(json.dumps({**task, "server": server.url}), encoding="utf-8")
        with log.open("wb") as said:
            child = await asyncio.create_subprocess_exec(
                *(str(each) for each in (python, script, asked, answered)), stdout=said, stderr=said, cwd=folder
            )
            try:
                code = await child.wait()
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if code or not answered.is_file():
            raise AskanceError(f"{script.name} ended with code {code}; what it said last is in {log}.")
        return json.loads(answered.read_text(encoding="utf-8")), {each: server.counted(each) for each in (LEARN, TEST)}


def figures(scores: Mapping[str, float | None], labels: Mapping[str, float]) -> dict[str, Any]:
    """Compare scores with people's labels: Spearman's correlation and area under the curve, with intervals."""
    column, wanted = [scores.get(name) for name in labels], list(labels.values())
    return {
        "n": sum(each is not None for each in column),
        "spearman": _numbers(correlate(column, wanted, RESAMPLED).spearman),
        "auc": _numbers(area_under_curve(column, wanted, RESAMPLED)),
    }


def difference(
    before: Mapping[str, float | None], after: Mapping[str, float | None], labels: Mapping[str, float]
) -> dict[str, Any]:
    """Return the gain of the second on examples that both scored. A constant score ranks nothing: Spearman 0."""
    first, second = ([scores.get(name) for name in labels] for scores in (before, after))
    wanted = list(labels.values())
    found = {
        "spearman": paired_difference(first, second, wanted, RESAMPLED, undefined_as_zero=True),
        "auc": label_difference(first, second, wanted, "auc", RESAMPLED),
    }
    return {name: _short(difference_dict(each) or {}) for name, each in found.items()}


def _numbers(found: Any) -> dict[str, Any]:
    row = {"value": found.value, "low": found.low, "high": found.high}
    return _short(row | ({"reason": found.reason} if found.reason else {}))


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def peer_row(
    about: Mapping[str, Any], start: Mapping[str, Any], found: Mapping[str, Any], labels: Mapping[str, float]
) -> dict[str, Any]:
    """Make the row of a peer.

    Args:
        about: What the row says of it first.
        start: Its run on the judge to start from.
        found: Its run, as of :func:`~tests.measured.peers.runs.peer_run`.
        labels: 1 for pass and 0 for fail, by id of a test example.
    """
    return {
        **about,
        "packages": found["packages"],
        "start": figures(start["scores"], labels),
        "test": figures(found["scores"], labels),
        "gain": difference(start["scores"], found["scores"], labels),
        "missing": found["missing"],
        "counts": found["counts"] | {START: start["counts"][TEST]},
        "learned": found.get("learned"),
        **({"steps": found["steps"]} if "steps" in found else {}),
        "scores": _short(found["scores"]),
    }


def our_row(run: Path, labels: Mapping[str, float]) -> dict[str, Any]:
    """Make the row of a finished run of ``align``, by its scores and by pass or fail at its own threshold.

    Raises:
        InputError: The run is not finished, a file is damaged, or its test is another.
    """
    directory = RunDirectory(run)
    before, after = (side_of_run(directory, accepted=accepted) for accepted in (False, True))
    if dict(after.wanted) != dict(labels):
        raise InputError(f"{run}: its test examples, or their labels, are others than those of this comparison.")
    result = directory.read_result()
    row = {
        "peer": OURS,
        "title": "askance align",
        "model": after.model,
        "score": "its judge's score in [0, 1]",
        "start": figures(before.scores, labels),
        "test": figures(after.scores, labels),
        "gain": difference(before.scores, after.scores, labels),
        "counts": {"run": {"calls": result.calls, "tokens": result.tokens}},
        "learned": [each.criterion for each in result.learned],
        "scores": dict(after.scores),
    }
    if after.threshold is not None:
        passed = _passed(after.scores, after.threshold)
        row["as_pass_or_fail"] = {"threshold": after.threshold, **figures(passed, labels)}
    return row


def _passed(scores: Mapping[str, float | None], threshold: float) -> dict[str, float | None]:
    return {name: None if score is None else float(score >= threshold) for name, score in scores.items()}


def against_ours(row: Mapping[str, Any], ours: Mapping[str, Any], labels: Mapping[str, float]) -> dict[str, Any]:
    """Return the lead of ours on the same test, by its scores and by pass or fail."""
    found = {"scores": difference(row["scores"], ours["scores"], labels)}
    if "as_pass_or_fail" in ours:
        passed = _passed(ours["scores"], ours["as_pass_or_fail"]["threshold"])
        found["pass_or_fail"] = difference(row["scores"], passed, labels)
    return found
