"""``--engine batch``: the same results as one by one, at half the price, whatever happens to the process."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.models.batches import batch_model
from askance.testing import ServerReply, StandInServer, completion
from tests.doubles import BatchServer

from ..said import says

QUESTIONS = """questions:
  - {id: a, text: "Is it good?", dimension: quality}
  - {id: b, text: "Is it short?", dimension: quality}
"""


def answer(body: Mapping[str, Any]) -> ServerReply:
    """A number where one is wanted, else a probability of yes; both depend on the texts alone."""
    chance, text = random.Random(json.dumps(body["messages"])), body["messages"][-1]["content"]
    if not re.search(r"number from 1 to \d|1 or 2", text):
        return chance.random()
    reply = completion(body, said := str(chance.randint(1, 2 if "1 or 2" in text else 5)))
    if body.get("logprobs"):
        top = [{"token": str(each), "logprob": -abs(each - int(said)) - 0.5} for each in range(1, 6)]
        reply["choices"][0]["logprobs"] = {"content": [{"token": said, "logprob": -0.5, "top_logprobs": top}]}
    return 200, reply


@pytest.fixture
def data(sandbox: Path) -> Path:
    return write_inputs(sandbox)


def write_inputs(folder: Path) -> Path:
    rows = [{"id": f"e{n}", "input": f"In {n}", "output": f"Out {n}", "human": {"quality": n % 5}} for n in range(15)]
    pairs = [{"id": f"p{n}", "input": f"In {n}", "output_a": f"A {n}", "output_b": f"B {n}"} for n in range(20)]
    for n, pair in enumerate(pairs):
        pair["preferred"] = "ab"[n % 2]
    for name, several in (("data.jsonl", rows), ("prefs.jsonl", pairs)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in several))
    (folder / "c.yaml").write_text(QUESTIONS)
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = batch_model.Pace(still=0.06, first=0.01, longest=0.02)
    monkeypatch.setattr(batch_model, "Pace", lambda: pace)


QUICKLY = """
from askance.models.batches import batch_model
pace = batch_model.Pace(still=0.06, first=0.01, longest=0.02)
batch_model.Pace = lambda: pace
"""
"""The same, in a process that is to be killed."""


JUDGE = ("--checklist", "c.yaml", "--model", "openai/m", "--api-base")
COMMANDS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "evaluate": (("data.jsonl", *JUDGE), "jsonl", 1),
    "evaluate --p-yes sampled --samples 3": (("data.jsonl", *JUDGE), "jsonl", 1),
    "diagnose --repeat 2": (("data.jsonl", *JUDGE), "jsonl", 1),
    "weigh --pairwise": (("prefs.jsonl", *JUDGE), "json", 1),
    "compare --judge binary,direct,random_k": (("data.jsonl", *JUDGE), "json", 2),
    "select -k 1 --halves 2 --ranking-resamples 2": (
        ("data.jsonl", "--candidates", "c.yaml", "--model", "openai/m", "--api-base"),
        "yaml",
        1,
    ),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_comes_to_the_same(
    cli: Callable[..., Any], data: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    arguments, suffix, batches = COMMANDS[command]
    texts = []
    with BatchServer(answer) as server:
        for engine in ("direct", "batch"):
            monkeypatch.setenv("ASKANCE_CACHE", str(data / engine))
            file = data / f"{engine}.{suffix}"
            done = cli(*command.split(), *arguments, server.url, "--engine", engine, "-o", file, "--seed", 3)
            assert done.code == 0, done.err
            texts.append(without_costs(file.read_text()))
        assert len(server.batches) == batches
        half = len(server.bodies) // 2
        assert sorted(map(json.dumps, server.bodies[:half])) == sorted(map(json.dumps, server.bodies[half:]))
    assert texts[0] == texts[1]


def without_costs(text: str) -> str:
    """A result without what it took."""
    return re.sub(r'"(cost_usd|cached_calls|seconds)": [^,}\n]+', "", text)


@pytest.mark.usefixtures("quick")
def test_a_run_comes_to_the_same_and_is_not_bought_again(
    cli: Callable[..., Any], world: Any, sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = world.write(sandbox / "files")
    with BatchServer(world.serve, looks=0) as server:
        for engine in ("direct", "batch"):
            monkeypatch.setenv("ASKANCE_CACHE", str(sandbox / engine))
            where = ("--api-base", server.url, "--engine", engine)
            done = cli("migrate", *arguments, *where, "--run", engine, "--max-iterations", 1, "--yes")
            assert done.code == 0, done.err
        bought = len(server.bodies)
        assert len(server.batches) > 3
        again = cli("resume", "batch", "--engine", "batch")
        assert again.code == 0 and len(server.bodies) == bought
    assert results_in(sandbox / "batch") == results_in(sandbox / "direct")


def results_in(run: Path) -> dict[str, bytes]:
    """What a run came to, verdicts among it, by the name of the file."""
    names = ("result.json", "judge.yaml", "prompt.md", "changes.diff", "lessons.jsonl", "config.yaml")
    folders = [folder for name in ("verdicts", "prompts", "outputs") if (folder := run / name).is_dir()]
    files = [path for folder in folders for path in folder.iterdir()] + [run / name for name in names]
    found = {path.name: path.read_bytes() for path in files if path.exists()}
    assert len(found) > 8 and "result.json" in found
    return found


def killing(
    method: str, path: str, when: str, of: list[subprocess.Popen[str]], how: int
) -> Callable[[BatchServer], None]:
    """Has the server kill its client at the first call of a kind."""
    done: list[int] = []

    def tamper(called: str, where: str) -> None:
        if called == method and re.fullmatch(f"/v1/{path}", where) and not done:
            done.append(of[-1].pid)
            of[-1].send_signal(how)
            if how == signal.SIGKILL:
                of[-1].wait()

    return lambda server: setattr(server, when, tamper)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("method", "path", "when"),
    [
        ("POST", "files", "after"),
        ("POST", "batches", "before"),
        ("POST", "batches", "after"),
        ("GET", r"batches/\w+", "after"),
        ("GET", "files/.*", "before"),
        ("GET", "files/.*", "after"),
    ],
)
def test_a_process_that_is_killed_is_gone_on_with_and_nothing_is_bought_twice(
    cli: Callable[..., Any], askance_command: Any, data: Path, method: str, path: str, when: str
) -> None:
    started: list[subprocess.Popen[str]] = []
    with BatchServer(answer) as server:
        judge = ("data.jsonl", *JUDGE, server.url)
        whole = cli("evaluate", *judge, "--no-cache", "-o", "whole.jsonl")
        assert whole.code == 0, whole.err
        server.bodies.clear()
        batch = ("evaluate", *judge, "--engine", "batch", "-o", "verdicts.jsonl")
        started.append(askance_command.start(*batch, before=QUICKLY))
        killing(method, path, when, started, signal.SIGKILL)(server)
        died = askance_command.finish(started[0])
        assert died.returncode == -signal.SIGKILL
        second = cli(*batch)
        assert second.code == 0, second.err
        assert len(server.batches) == 1
        assert len(server.bodies) == len({json.dumps(body) for body in server.bodies}) == 30
    assert (data / "verdicts.jsonl").read_bytes() == (data / "whole.jsonl").read_bytes()
    assert list((data / "cache" / "batches").iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_killed_in_a_batch_is_resumed_with_it(
    cli: Callable[..., Any], askance_command: Any, world: Any, sandbox: Path
) -> None:
    started: list[subprocess.Popen[str]] = []
    arguments = ("migrate", *world.write(sandbox / "files"), "--max-iterations", "1", "--yes")
    with BatchServer(world.serve, looks=0) as server:
        where = ("--api-base", server.url)
        assert cli(*arguments, *where, "--run", "whole").code == 0
        calls = len(server.bodies)
        server.bodies.clear()
        batch = (*arguments, *where, "--engine", "batch", "--run", "killed")
        started.append(askance_command.start(*batch, before=QUICKLY))
        killing("GET", "files/.*", "after", started, signal.SIGKILL)(server)
        assert askance_command.finish(started[0]).returncode == -signal.SIGKILL
        resumed = cli("resume", "killed", "--engine", "batch")
        assert resumed.code == 0 and says(resumed.err, "Going on", "batch")
        assert len(server.bodies) == calls, "something was bought twice"
    assert results_in(sandbox / "killed") == results_in(sandbox / "whole")


@pytest.mark.usefixtures("quick")
def test_an_interrupt_says_what_goes_on(cli: Callable[..., Any], askance_command: Any, data: Path) -> None:
    started: list[subprocess.Popen[str]] = []
    with BatchServer(answer, looks=10**6) as server:
        batch = ("evaluate", "data.jsonl", *JUDGE, server.url, "--engine", "batch")
        started.append(askance_command.start(*batch, before=QUICKLY))
        killing("GET", r"batches/\w+", "after", started, signal.SIGINT)(server)
        stopped = askance_command.finish(started[0])
        assert stopped.returncode == 130
        assert says(stopped.stderr, "batch_1", "29 requests", "goes on")
        directly = cli(*batch[:-2], "--no-cache")
        assert directly.code == 0
        assert sum(says(line, "openai/m", "batch", "open") for line in directly.err.splitlines()) == 1
        server.looks = 0
        second = cli(*batch)
        assert second.code == 0 and says(second.err, "Going on", "batch")
        assert len(server.batches) == 1
        assert "batch" not in cli(*batch[:-2], "--no-cache").err


def test_bad_input_is_refused_before_anything_is_sent(cli: Callable[..., Any], data: Path) -> None:
    wrong = cli("evaluate", "data.jsonl", "--checklist", "c.yaml", "--model", "local/m", "--engine", "batch")
    assert wrong.code == 2 and says(wrong.err, "--engine batch", "openai/NAME alone")
    idle = cli("evaluate", "data.jsonl", *JUDGE, "http://127.0.0.1:9/v1", "--engine", "batch", "--max-concurrency", 3)
    assert idle.code == 2 and says(idle.err, "max_concurrency", "batch", "as a whole")
    unknown = cli("evaluate", "data.jsonl", *JUDGE, "http://127.0.0.1:9/v1", "--engine", "bulk")
    assert unknown.code == 2 and "'direct', 'batch'" in unknown.err


def test_an_endpoint_without_batches_is_said_to_have_none(cli: Callable[..., Any], data: Path) -> None:
    with StandInServer(answer) as server:
        done = cli("evaluate", "data.jsonl", *JUDGE, server.url, "--engine", "batch")
    assert done.code == 1 and says(done.err, "no batches", "HTTP 404", "--engine batch")


def test_a_dry_run_says_half_the_price(cli: Callable[..., Any], data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-used")
    dry = ("evaluate", "data.jsonl", "--checklist", "c.yaml", "--model", "openai/gpt-4o-mini", "--dry-run", "--json")
    full, half = (json.loads(cli(*dry, "--engine", each).out)["cost_usd"] for each in ("direct", "batch"))
    assert half == pytest.approx(full / 2) and half > 0
