"""MLflow's MemAlign, GEPA and SIMBA, and AutoChecklist, learning from the same comments as a run of ours.

Run ``python -m tests.measured.peers.beside --directory DIR --ours RUN_DIR``. Each peer learns from what a
run of ``align`` on the made-up release notes may see (development and validation, labels and comments) and judges its
test, by the same embedded model, behind a server that counts every call. Each has an environment of its own in DIR,
made with pip where it is not there; a run that was stopped goes on where it was, and one that is finished is read.
Every peer has its own defaults; ``--set gepa.max_metric_calls=120`` changes one, and the row of the result says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askance.experiments.command_line import RESULTS, says_errors, write_result
from askance.models.embedded.download import pull
from askance.models.embedded.registry import RegisteredModel, resolve
from askance.models.embedded.servers import EmbeddedServer, ServerSettings
from askance.optimizer.job import split_examples
from askance.optimizer.modes import align
from askance.optimizer.modes.judge import strata_of_people
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, load_examples

from ..learned_questions import DATA, MODEL
from .runs import HERE, OURS, START, against_ours, environment, our_row, peer_row, peer_run

logger = logging.getLogger(__name__)
RESULT = RESULTS / "beside_peers.json"
DATA_SET = "release_notes"
CONTEXT = 16_384
"""Tokens that a prompt and its answer may have: MemAlign shows 50 examples at once."""


@dataclass(frozen=True)
class Peer:
    """Another tool, and how it is run."""

    title: str
    environment: str
    """A name in ``PACKAGES``; the script is ``NAME_peer.py``."""
    score: str
    """The score that its verdict on an output stands for."""


_BOOLEAN = "its verdict, true = 1 and false = 0"
_SHARE = "share of its questions answered yes, all asked in one call; it counts one left unanswered as no"
PEERS = {
    "memalign": Peer("MLflow align, MemAlign", "mlflow", _BOOLEAN),
    "autochecklist": Peer("AutoChecklist, questions from feedback", "autochecklist", _SHARE),
    "gepa": Peer("MLflow align, GEPA", "mlflow", _BOOLEAN),
    "simba": Peer("MLflow align, SIMBA", "mlflow", _BOOLEAN),
}
INSTRUCTIONS = {
    "mlflow": (
        "A developer described a change, and this release note was written for the users. "
        "Is the release note good to publish?\n\n"
        "Change: {{ inputs }}\n\nRelease note: {{ outputs }}"
    ),
    "autochecklist": "Is the release note good to publish?",
}
"""The starting judge's instructions, in the words of the data's own prompt and question."""


@dataclass(frozen=True)
class Task:
    """Examples to learn from, and examples that are judged once."""

    learn: tuple[Example, ...]
    test: tuple[Example, ...]
    labels: Mapping[str, float]
    """1 for pass and 0 for fail, by id of a test example."""


def task_of(seed: int) -> Task:
    """Divide the examples as ``align`` does: development and validation to learn from, test to judge."""
    folder = DATA[DATA_SET]
    job = align.prepare(
        load_examples(folder / "examples.jsonl"), folder / "checklist.yaml", MODEL, folder / "prompt.md", {"seed": seed}
    )
    parts = split_examples(job, strata_of_people(job))
    learn = {each.id for each in (*parts.development, *parts.validation)}
    labels = {each.id: label_of(each) for each in parts.test}
    return Task(tuple(each for each in job.examples if each.id in learn), tuple(parts.test), labels)


def label_of(example: Example) -> float:
    """1 where people passed it, 0 where they failed it; all of these data have a label."""
    score = example.human_score("overall")
    assert score in (0.0, 1.0), f"{example.id}: {score}"
    return score


def task_file(task: Task, method: str, environment: str, model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a peer's script, without the server's address."""
    learn = [_shown(each) | {"passed": bool(label_of(each)), "comment": _comment(each)} for each in task.learn]
    return {
        "method": method,
        "model": model,
        "instructions": INSTRUCTIONS[environment],
        "settings": dict(settings),
        "learn": learn,
        "test": [_shown(each) for each in task.test],
    }


def _shown(example: Example) -> dict[str, Any]:
    return {"id": example.id, "input": example.input, "output": example.output}


def _comment(example: Example) -> str | None:
    return "\n".join(each.text for each in example.comment) or None


def measured(
    name: str, task: Task, directory: Path, upstream: str, model: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Measure a peer's own judge before and after it learned, as a row of the table."""
    peer = PEERS[name]
    python, script = environment(directory, peer.environment), HERE / f"{peer.environment}_peer.py"

    def run(method: str, label: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
        given = task_file(task, method, peer.environment, model, chosen)
        return peer_run(python, script, upstream, directory / "runs" / label, given)

    start = run(START, f"{peer.environment}-{START}", {})
    found = run(name, name, settings)
    about = {"peer": name, "title": peer.title, "settings": dict(settings), "score": peer.score}
    return peer_row(about, start, found, task.labels)


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of the embedded model's server, which runs until the block ends."""
    server = EmbeddedServer(path, ServerSettings(context=CONTEXT))
    asyncio.run(server.start())
    try:
        yield server.base_url
    finally:
        asyncio.run(server.stop())


def settings_of(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Settings by peer, from ``PEER.NAME=VALUE``, the value as JSON.

    Raises:
        InputError: A text is none of these, or there is no such peer.
    """
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        whole, _, value = text.partition("=")
        peer, _, name = whole.partition(".")
        try:
            read = json.loads(value)
        except ValueError as error:
            raise InputError(f"--set {text}: '{value}' is no JSON value; write PEER.NAME=VALUE.") from error
        if peer not in PEERS or not name:
            raise InputError(f"--set {text}: write PEER.NAME=VALUE, with a peer of {', '.join(PEERS)}.")
        found.setdefault(peer, {})[name] = read
    return found


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; rows of other peers in the result file stay."""
    parser = argparse.ArgumentParser(prog="python -m tests.measured.peers.beside", description=__doc__)
    parser.add_argument("--peer", nargs="*", choices=list(PEERS), default=list(PEERS), help="none: our row alone")
    parser.add_argument("--directory", type=Path, required=True, help="of environments and runs")
    parser.add_argument("--ours", type=Path, help="a finished run of align on the same data and seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--set", nargs="*", default=[], metavar="PEER.NAME=VALUE", help="another setting of a peer's")
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    settings, task = settings_of(given.set), task_of(given.seed)
    known = json.loads(given.output.read_text(encoding="utf-8")) if given.output.is_file() else {"rows": []}
    rows = {row["peer"]: row for row in known["rows"]}
    if given.ours:
        rows[OURS] = our_row(given.ours, task.labels)
    about = {
        "command": f"{parser.prog} --directory DIR --ours RUN_DIR",
        "model": given.model,
        "data": DATA_SET,
        "seed": given.seed,
        "learned_from": len(task.learn),
        "test": len(task.test),
    }
    write_result(given.output, about | {"rows": list(rows.values())})
    if not given.peer:
        return 0
    registered = resolve(given.model.removeprefix("local/"))
    path = pull(registered) if isinstance(registered, RegisteredModel) else registered
    with served(path) as upstream:
        for name in given.peer:
            rows[name] = measured(name, task, given.directory.resolve(), upstream, path.stem, settings.get(name, {}))
            if OURS in rows:
                rows[name]["askance_minus_peer"] = against_ours(rows[name], rows[OURS], task.labels)
            write_result(given.output, about | {"rows": list(rows.values())})
            logger.info("%s: %s", name, json.dumps({part: rows[name][part] for part in ("start", "test", "counts")}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
