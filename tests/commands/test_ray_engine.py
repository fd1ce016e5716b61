"""``--engine ray`` on a cluster of this machine alone: the same results with two and with four workers, whoever is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance import __version__
from askance.models import ray_pool
from askance.models.base import Parameters, make_request
from askance.models.gateway import RetryPolicy
from askance.models.session import ModelOptions, session
from askance.prompts.checklist import dump_checklist
from askance.prompts.errors import AskanceError
from askance.prompts.prompt import Framing
from askance.testing import ScriptedModel, ServerReply, StandInServer
from tests.commands.test_batch_engine import COMMANDS, JUDGE, answer, results_in, without_costs, write_inputs

from ..said import naming, says

os.environ.update(ray_pool.QUIET)
ray = pytest.importorskip("ray", reason="ray is not installed: make test-ray")
MANY = 60
"""Examples, of two questions each, where somebody is killed in the middle."""


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    """One for all of these tests; where RAY_ADDRESS names one already, that."""
    for left in (2, 1, 0):
        try:
            ray.init(include_dashboard=False, log_to_driver=False)
            break
        except Exception:  # a busy machine: Ray gives its own processes 15 s
            ray.shutdown()
            if not left:
                raise
    before = os.environ.get("RAY_ADDRESS")
    os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    yield
    ray.shutdown()
    if before is None:
        del os.environ["RAY_ADDRESS"]


@pytest.fixture
def data(sandbox: Path) -> Path:
    return write_inputs(sandbox)


@pytest.fixture
def many(data: Path) -> Path:
    rows = [{"id": f"e{n}", "input": f"In {n}", "output": f"Out {n}"} for n in range(MANY)]
    (data / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[ray_pool.RayPool]:
    """The pools of the commands of a test."""
    made: list[ray_pool.RayPool] = []
    start = ray_pool.RayPool._start

    def start_and_tell(pool: ray_pool.RayPool) -> None:
        start(pool)
        made.append(pool)

    monkeypatch.setattr(ray_pool.RayPool, "_start", start_and_tell)
    return made


def processes(pool: ray_pool.RayPool) -> list[int]:
    """Of its workers."""
    return [
        ray.get(each.actor.__ray_call__.remote(lambda _: os.getpid())) for each in pool._workers if each.opening.done()
    ]


def times_asked(server: StandInServer) -> Counter[str]:
    return Counter(json.dumps(body) for body in server.bodies)


def ray_with(workers: int) -> tuple[str, ...]:
    return ("--engine", "ray", "--workers", str(workers))


# --- the same as one process ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_comes_to_the_same(
    cli: Callable[..., Any], data: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    arguments, suffix, _ = COMMANDS[command]
    texts, asked = [], []
    for name, engine in (("direct", ()), ("two", ray_with(2)), ("four", ray_with(4))):
        if name == "two" and not command.startswith("evaluate"):
            continue
        monkeypatch.setenv("ASKANCE_CACHE", str(data / name))
        with StandInServer(answer) as server:
            done = cli(*command.split(), *arguments, server.url, *engine, "-o", data / f"{name}.{suffix}", "--seed", 3)
            assert done.code == 0, done.err
            asked.append(times_asked(server))
            texts.append(without_costs((data / f"{name}.{suffix}").read_text()).replace(server.url, "URL"))
    assert all(text == texts[0] for text in texts[1:])
    assert all(each == asked[0] for each in asked[1:])


RUNS = ("migrate", "align", "tune")
LOOP = ("--embedder", "words", "--resamples", "200", "--alpha", "0.2", "--max-iterations", "1", "--yes")


def arguments_of(mode: str, world: Any, letters: Any, folder: Path) -> tuple[Any, list[str]]:
    """The world of a run, and its command line without engine, endpoint and directory."""
    if mode == "tune":
        folder.mkdir()
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in letters.rows))
        (folder / "checklist.yaml").write_text(dump_checklist(letters.checklist))
        (folder / "prompt.md").write_text(letters.prompt.text)
        models = ["--generator", "openai/writer", "--judge", "openai/judge"]
        files = [str(folder / "data.jsonl"), "--checklist", str(folder / "checklist.yaml")]
        return letters, ["tune", *files, "--prompt", str(folder / "prompt.md"), *models, *LOOP]
    arguments = world.write(folder)
    if mode == "migrate":
        return world, ["migrate", *arguments, "--max-iterations", "1", "--yes"]
    models = ["--model", "openai/target", "--prompt", str(folder / "prompt.md")]
    return world, ["align", *arguments[:3], *models, "--no-trial", "--no-prune", "--update", "edits", *LOOP]


@pytest.mark.parametrize("mode", RUNS)
def test_a_run_comes_to_the_same_and_is_not_bought_again(
    cli: Callable[..., Any], world: Any, letters: Any, sandbox: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    asked, arguments = arguments_of(mode, world, letters, sandbox / "files")
    with StandInServer(asked.serve) as server:
        for name, engine in (("direct", ()), ("ray", ray_with(2))):
            monkeypatch.setenv("ASKANCE_CACHE", str(sandbox / name))
            done = cli(*arguments, "--api-base", server.url, "--run", name, *engine)
            assert done.code == 0, done.err
        bought = len(server.bodies)
        again = cli("resume", "ray", *ray_with(4))
        assert again.code == 0 and len(server.bodies) == bought
    results = results_in(sandbox / "direct")
    assert json.loads(results["result.json"])["iterations"] == 1
    assert results_in(sandbox / "ray") == results


# --- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [2, 4])
def test_a_killed_worker_loses_nothing_and_only_what_it_had_under_way_is_bought_twice(
    cli: Callable[..., Any], many: Path, pools: list[ray_pool.RayPool], workers: int
) -> None:
    at_once = 8
    judge = ("evaluate", "many.jsonl", *JUDGE)
    killed = threading.Event()

    def kill_one() -> None:
        while len(server.bodies) < MANY // 2:
            time.sleep(0.01)
        os.kill(processes(pools[0])[0], signal.SIGKILL)
        killed.set()

    with StandInServer(answer, delay=0.1) as server:
        thread = threading.Thread(target=kill_one)
        thread.start()
        done = cli(*judge, server.url, *ray_with(workers), "--max-concurrency", at_once, "-o", "ray.jsonl")
        thread.join()
        assert done.code == 0, done.err
        assert killed.is_set() and says(done.err, "another one", "place")
        asked = times_asked(server)
        assert len(asked) == 2 * MANY and max(asked.values()) <= 2
        assert sum(asked.values()) - 2 * MANY <= at_once, "it may have had nothing under way at that moment"
        assert f"{2 * MANY} calls" in done.out, "each answer is booked once"
        assert "raylet" not in done.out
        whole = cli(*judge, server.url, "--no-cache", "-o", "whole.jsonl")
        assert whole.code == 0
    assert (many / "ray.jsonl").read_bytes() == (many / "whole.jsonl").read_bytes()


def test_a_killed_command_is_gone_on_with_and_its_workers_end(askance_command: Any, many: Path) -> None:
    at_once = 8
    with StandInServer(answer, delay=0.1) as server:
        ask = ("evaluate", "many.jsonl", *JUDGE, server.url, "--max-concurrency", str(at_once))
        whole = askance_command(*ask, "--no-cache", "-o", "whole.jsonl")
        assert whole.returncode == 0, whole.stderr
        server.bodies.clear()
        process = askance_command.start(*ask, *ray_with(2), "-o", "ray.jsonl")
        while len(server.bodies) < MANY // 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        askance_command.finish(process)
        time.sleep(2)
        bought = len(server.bodies)
        second = askance_command(*ask, *ray_with(4), "-o", "ray.jsonl")
        assert second.returncode == 0, second.stderr
        asked = times_asked(server)
        assert bought <= MANY // 2 + 3 * at_once, "the workers went on after their command"
        assert len(asked) == 2 * MANY and sum(asked.values()) - 2 * MANY <= at_once
    assert (many / "ray.jsonl").read_bytes() == (many / "whole.jsonl").read_bytes()


def test_an_interrupt_keeps_what_was_bought(askance_command: Any, many: Path) -> None:
    with StandInServer(answer, delay=0.1) as server:
        ask = ("evaluate", "many.jsonl", *JUDGE, server.url, *ray_with(2), "--max-concurrency", "4", "-o", "ray.jsonl")
        process = askance_command.start(*ask)
        while len(server.bodies) < MANY // 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stopped = askance_command.finish(process)
        assert stopped.returncode == 130 and "Traceback" not in stopped.stderr
        second = askance_command(*ask)
        assert second.returncode == 0, second.stderr
        assert sum(times_asked(server).values()) - 2 * MANY <= 4


async def test_workers_that_end_again_and_again_end_the_run(pools: list[ray_pool.RayPool]) -> None:
    def die(body: Mapping[str, Any]) -> ServerReply:
        os.kill(processes(pools[0])[0], signal.SIGKILL)
        return 0.5

    request = make_request("m", [("user", "poison")], Parameters(5))
    with StandInServer(die) as server:
        options = ModelOptions(api_base=server.url, engine="ray", workers=1, retries=9)
        async with session(options, None) as (models, gateway):
            gateway._retry = RetryPolicy(10, 0.01)
            with pytest.raises(AskanceError, match=naming("one after", "without an answer")):
                await gateway.ask("evaluator", models.get("openai/m"), request)


# --- held over all workers --------------------------------------------------------------------------------------------


def test_a_cap_on_calls_holds_over_all_workers(cli: Callable[..., Any], data: Path) -> None:
    with StandInServer(answer) as server:
        stopped = cli("evaluate", "data.jsonl", *JUDGE, server.url, *ray_with(4), "--call-budget", 7)
        assert stopped.code == 3 and says(stopped.err, "budget", "7 calls")
        assert len(server.bodies) == 7
        went_on = cli("evaluate", "data.jsonl", *JUDGE, server.url, *ray_with(2), "--call-budget", 30)
        assert went_on.code == 0 and len(server.bodies) == 30


def test_the_limit_of_calls_at_once_holds_over_all_workers(cli: Callable[..., Any], data: Path) -> None:
    at_once: list[int] = []

    class Counting(StandInServer):
        now = 0

        async def _complete(self, http: Any) -> Any:
            self.now += 1
            at_once.append(self.now)
            try:
                return await super()._complete(http)
            finally:
                self.now -= 1

    with Counting(answer, delay=0.05) as server:
        done = cli("evaluate", "data.jsonl", *JUDGE, server.url, *ray_with(4), "--max-concurrency", 3)
    assert done.code == 0 and max(at_once) == 3


async def test_an_example_is_asked_on_one_worker_and_new_ones_go_where_least_is_under_way(
    pools: list[ray_pool.RayPool],
) -> None:
    asked_by: dict[str, set[int]] = {}
    examples = [f"example {number}" for number in range(12)]
    with StandInServer(answer, delay=0.05) as server:
        async with session(ModelOptions(api_base=server.url, engine="ray", workers=4), None) as (models, gateway):
            model = models.get("openai/m")
            choose = ray_pool.RayPool._choose

            def note(pool: ray_pool.RayPool, example: str, once: bool) -> Any:
                worker = choose(pool, example, once)
                asked_by.setdefault(example, set()).add(pool._workers.index(worker))
                return worker

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ray_pool.RayPool, "_choose", note)
                asks = [
                    make_request(
                        model.identity,
                        [("user", f"{each}: {question}")],
                        Parameters(5),
                        framing=Framing(None, each, ""),
                    )
                    for each in examples
                    for question in range(3)
                ]
                await asyncio.gather(*(gateway.ask("evaluator", model, each) for each in asks))
    assert all(len(workers) == 1 for workers in asked_by.values())
    assert min(Counter(next(iter(each)) for each in asked_by.values()).values()) >= 1
    assert {next(iter(each)) for each in asked_by.values()} == {0, 1, 2, 3}


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_failure_is_the_one_that_one_process_has(cli: Callable[..., Any], data: Path) -> None:
    with StandInServer(lambda _: (401, {"error": {"message": "no such key"}})) as server:
        texts = [
            cli("evaluate", "data.jsonl", *JUDGE, server.url, *engine, "--max-concurrency", 1)
            for engine in ((), ray_with(1))
        ]
    assert [each.code for each in texts] == [1, 1]
    assert "HTTP 401: no such key" in texts[0].err
    assert texts[1].err.splitlines()[-1] == texts[0].err.splitlines()[-1]


def test_an_endpoint_that_is_busy_is_asked_again_as_often_as_by_one_process(
    cli: Callable[..., Any], data: Path
) -> None:
    seen: Counter[str] = Counter()

    def busy(body: Mapping[str, Any]) -> ServerReply:
        seen[json.dumps(body)] += 1
        return (429, {"error": {"message": "slow down"}}, {"Retry-After": "0"}) if sum(seen.values()) % 5 == 1 else 0.7

    with StandInServer(busy) as server:
        done = cli("evaluate", "data.jsonl", *JUDGE, server.url, *ray_with(2), "-o", "v.jsonl")
    assert done.code == 0 and "slow down" in done.err and len(seen) == 30
    assert "coverage 30/30" in done.out


def test_a_cluster_that_is_not_there_is_said_at_once(askance_command: Any, data: Path) -> None:
    ask = ("evaluate", "data.jsonl", *JUDGE, "http://127.0.0.1:9/v1", "--engine", "ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", "127.0.0.1:1")
        done = askance_command(*ask)
    assert done.returncode == 1 and says(done.stderr, "Ray cluster", "127.0.0.1:1", "RAY_ADDRESS", "not reached")
    assert "Traceback" not in done.stderr


def test_what_stands_on_no_worker_is_said_with_the_machine(
    cli: Callable[..., Any], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_pool, "__version__", "0.0.1")
    done = cli("evaluate", "data.jsonl", *JUDGE, "http://127.0.0.1:9/v1", *ray_with(1))
    assert done.code == 2
    assert says(done.err, f"askance {__version__}", "0.0.1") and "On " in done.err


async def test_a_model_that_is_an_object_is_refused() -> None:
    async with session(ModelOptions(engine="ray", api_base="http://127.0.0.1:9/v1"), None) as (models, _):
        with pytest.raises(AskanceError, match=naming("models by name")):
            models.get(ScriptedModel(lambda _: "Yes"))
        model = models.get("openai/m")
        assert models.get(model) is model


async def test_a_call_that_nobody_waits_for_is_dropped_and_the_next_one_is_answered() -> None:
    with StandInServer(answer, delay=0.3) as server:
        async with session(ModelOptions(api_base=server.url, engine="ray", workers=1), None) as (models, gateway):
            model = models.get("openai/m")
            first, second = (make_request("m", [("user", text)], Parameters(5)) for text in ("first", "second"))
            await gateway.ask("evaluator", model, make_request("m", [("user", "open")], Parameters(5)))
            left = asyncio.ensure_future(gateway.ask("evaluator", model, first))
            await asyncio.sleep(0.1)
            left.cancel()
            assert (await gateway.ask("evaluator", model, second)).text in {"Yes", "No"}
            with pytest.raises(asyncio.CancelledError):
                await left


def test_a_dry_run_starts_nothing(cli: Callable[..., Any], data: Path, pools: list[ray_pool.RayPool]) -> None:
    done = cli("evaluate", "data.jsonl", *JUDGE, "http://127.0.0.1:9/v1", *ray_with(2), "--dry-run", "--json")
    assert done.code == 0 and json.loads(done.out)["calls"] == 30 and pools == []


def test_the_dashboard_and_usage_reports_are_off() -> None:
    from ray._common.usage.usage_lib import usage_stats_enabled

    assert not usage_stats_enabled()
    assert not ray._private.worker._global_node.webui_url
