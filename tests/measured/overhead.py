"""The cost of askance itself: processor time a judged question, warm verdicts a second, start-up, memory.

Run ``python -m tests.measured.overhead`` (some four minutes; ``--quick`` is a small run that only shows
that it works). The judge is a stand-in server in another process, so that no model's time is in the figures, and times
are processor times of the client unless they are called wall times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from askance.agents.evaluator import Evaluator
from askance.evaluation.evaluate import load_inputs
from askance.evaluation.options import ScoreOptions
from askance.evaluation.scoring import score_examples
from askance.experiments.command_line import RESULTS, machine, write_result
from askance.memory.journal import Journal
from askance.memory.verdict_store import VerdictStore
from askance.models.event_loops import run_sync
from askance.models.session import session
from askance.prompts.checklist import Checklist
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import VerdictColumns, save_verdicts
from askance.settings import parse_options
from askance.testing import StandInServer

from .overhead_processes import (
    CHECKLIST,
    CONCURRENCY,
    DELAY,
    EXAMPLES,
    MODEL,
    QUESTIONS,
    STORE,
    answer,
    bought,
    fresh_evaluation,
    make_checklist,
    make_examples,
    stand_in,
    write_data,
)

RESULT = RESULTS / "overhead.json"
EVENTS = 200
JUDGE = "judge: keys, SQLite, Verdict records"
AIMS = {
    "cpu_ms_per_question": ("at most", 0.4),
    "warm_verdicts_per_cpu_s": ("at least", 30_000),
    "help_wall_s": ("at most", 0.3),
    "peak_mb": ("at most", 150),
}
HEAVY = ("numpy", "pydantic", "aiohttp", "rich", "yaml", "scipy", "litellm", "torch", "xllamacpp")
STARTED = {
    "python alone": ["-c", "pass"],
    "import askance": ["-c", "import askance"],
    "askance --help": ["-m", "askance", "--help"],
    "askance evaluate --help": ["-m", "askance", "evaluate", "--help"],
    "from askance import evaluate": ["-c", "from askance import evaluate"],
}

Result = TypeVar("Result")


@dataclass(frozen=True)
class Size:
    """The size of a measurement."""

    calls: int = 2_000
    runs: int = 5
    examples: int = 10_000
    starts: int = 7


QUICK = Size(calls=60, runs=1, examples=40, starts=1)


def timed(work: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The result of some work, with its wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {
        "wall_s": round(time.perf_counter() - wall, 4),
        "cpu_s": round(time.process_time() - cpu, 4),
    }


def per_question(size: Size) -> dict[str, Any]:
    """Processor time of a bought verdict, store included, against the same posts with aiohttp alone, alternating."""
    examples = make_examples(size.calls // QUESTIONS, rated=False)
    bodies = _bodies(examples)
    ours: list[float] = []
    raw: list[float] = []
    with stand_in(DELAY) as url:
        bought(examples, url)
        for _ in range(size.runs):
            raw.append(timed(lambda: asyncio.run(_post(url, bodies)))[1]["cpu_s"])
            ours.append(timed(lambda: bought(examples, url))[1]["cpu_s"])
    unit = 1_000 / size.calls
    return {
        "calls": size.calls,
        "concurrency": CONCURRENCY,
        "server_delay_s": DELAY,
        "askance_cpu_ms": [round(seconds * unit, 4) for seconds in ours],
        "aiohttp_cpu_ms": [round(seconds * unit, 4) for seconds in raw],
        "askance_cpu_ms_median": round(statistics.median(ours) * unit, 4),
        "aiohttp_cpu_ms_median": round(statistics.median(raw) * unit, 4),
        "ratio": round(statistics.median(ours) / statistics.median(raw), 2),
    }


def _bodies(examples: Sequence[Example]) -> list[bytes]:
    """The bodies that judging these examples sends, as a server gets them."""
    with StandInServer(lambda body: (200, answer(body))) as server:
        bought(examples, server.url)
        return [json.dumps(body).encode() for body in server.bodies]


async def _post(url: str, bodies: Sequence[bytes]) -> None:
    import aiohttp

    waiting = iter(bodies)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), headers={"Content-Type": "application/json"}
    ) as session:

        async def work() -> None:
            for body in waiting:
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    await response.read()

        await asyncio.gather(*[work() for _ in range(CONCURRENCY)])


def large(size: Size) -> dict[str, Any]:
    """A large data set: bought, then warm, with and without human scores, each in a fresh process; then its stages."""
    checklist = make_checklist(QUESTIONS)
    with tempfile.TemporaryDirectory() as name, stand_in(0.0) as url:
        folder = Path(name)
        write_data(folder, make_examples(size.examples, rated=False), checklist)
        runs = {"cold": fresh_evaluation(folder, url), "warm": fresh_evaluation(folder, url)}
        stages = warm_stages(folder, url)
        write_data(folder, make_examples(size.examples, rated=True), checklist)
        runs["warm, human scores"] = fresh_evaluation(folder, url)
        verdicts = size.examples * QUESTIONS
        return {
            "examples": size.examples,
            "questions": QUESTIONS,
            "verdicts": verdicts,
            "store_bytes_per_verdict": round((folder / STORE).stat().st_size / verdicts, 1),
            "runs": runs,
            "stages": stages,
        }


def warm_stages(folder: Path, url: str) -> dict[str, dict[str, float]]:
    """Seconds of each step over a data set whose answers are all in the store."""
    stages: dict[str, dict[str, float]] = {}
    chosen = {"api_base": url, "p_yes": "logprob", "max_concurrency": CONCURRENCY}
    settings = parse_options(ScoreOptions, chosen)
    inputs, stages["read the inputs"] = timed(
        lambda: load_inputs(folder / EXAMPLES, folder / CHECKLIST, None, settings)
    )
    examples, checklist, _ = inputs
    with VerdictStore(folder / STORE) as store:
        judged = _judge_warm(store, settings, *inputs)
        (verdicts, longest), stages[JUDGE] = timed(lambda: run_sync(judged))
    stages[JUDGE]["longest_hold_of_event_loop_s"] = round(longest, 4)
    _, stages["score"] = timed(lambda: score_examples(examples, checklist, verdicts))
    _, stages["write verdicts.jsonl"] = timed(lambda: save_verdicts(folder / "verdicts.jsonl", verdicts))
    _, cost = timed(lambda: _write_events(Journal(folder / "journal.jsonl")))
    stages["one journal event"] = {name: round(seconds / EVENTS, 6) for name, seconds in cost.items()}
    return stages


def _write_events(journal: Journal) -> None:
    for each in range(EVENTS):
        journal.write("measured", version=each, scores=[0.5] * 10)


async def _judge_warm(
    store: VerdictStore, settings: ScoreOptions, examples: Sequence[Example], checklist: Checklist, prompt: Prompt
) -> tuple[VerdictColumns, float]:
    """All verdicts, and the longest processor time for which nothing else on the event loop had its turn."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            last, before = time.thread_time(), last
            longest = max(longest, last - before)

    async with session(settings, store) as (models, gateway):
        evaluator = Evaluator(gateway, models.get(MODEL), prompt, checklist, settings.judging)
        watching = asyncio.ensure_future(watch())
        verdicts = await evaluator.judge(examples)
        watching.cancel()
    if gateway.budget.calls:
        raise RuntimeError(f"the warm run bought {gateway.budget.calls} calls")
    return verdicts, longest


def start_up(size: Size) -> dict[str, Any]:
    """Wall and processor time of starting, median; and which large packages ``import askance`` and --help load."""
    figures: dict[str, Any] = {}
    for name, arguments in STARTED.items():
        walls, cpus = [], []
        for _ in range(size.starts):
            before = _children_cpu()
            _, cost = timed(lambda arguments=arguments: _python(*arguments))  # type: ignore[misc]
            walls.append(cost["wall_s"])
            cpus.append(_children_cpu() - before)
        figures[name] = {"wall_s": statistics.median(walls), "cpu_s": round(statistics.median(cpus), 4)}
    for name, code in {
        "import askance": "import askance",
        "askance --help": "from askance.cli import cli; cli.main(['--help'], standalone_mode=False)",
    }.items():
        listed = _python("-c", f"{code}; import sys; print(*sys.modules, sep='\\n')").split()
        figures[name]["heavy_packages"] = [package for package in HEAVY if package in listed]
    return figures


def _python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(size: Size) -> dict[str, Any]:
    """Measure everything and compare it with the aims."""
    question, started, big = per_question(size), start_up(size), large(size)
    warm = big["runs"]["warm"]
    reached = {
        "cpu_ms_per_question": question["askance_cpu_ms_median"],
        "warm_verdicts_per_cpu_s": round(warm["verdicts"] / warm["cpu_s"]),
        "help_wall_s": started["askance --help"]["wall_s"],
        "peak_mb": max(each["peak_mb"] for each in big["runs"].values()),
    }
    return {
        "machine": machine(aiohttp=metadata.version("aiohttp")),
        "aims": {
            name: {
                "aim": f"{word} {value}",
                "reached": reached[name],
                "met": reached[name] <= value if word == "at most" else reached[name] >= value,
            }
            for name, (word, value) in AIMS.items()
        },
        "question": question,
        "start_up": started,
        "large": big,
    }


def as_text(result: dict[str, Any]) -> str:
    """Lay out which aims are met; everything else is in the result file."""
    return "\n".join(
        f"{name:<24}{row['aim']:<18}{row['reached']:>10}  {'met' if row['met'] else 'NOT met'}"
        for name, row in result["aims"].items()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print which aims are met, write the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.measured.overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run; its figures mean nothing")
    parser.add_argument("-o", "--output", type=Path, help=f"default: {RESULT.name}; nothing with --quick")
    chosen = parser.parse_args(arguments)
    result = run(QUICK if chosen.quick else Size())
    output = chosen.output or (None if chosen.quick else RESULT)
    if output is not None:
        write_result(output, result)
    print(as_text(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
