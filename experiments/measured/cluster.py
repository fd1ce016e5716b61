"""What workers of a Ray cluster cost and bring: calls a second, and the command's processor time a verdict.

``python -m askance.experiments.measured.cluster`` (extra ``ray``; some four minutes, of which Ray takes one to start). The same
examples are judged by one process and by 1, 2 and 4 workers, with as many calls under way, against a stand-in server in
another process that takes 100 ms for each. All of it is on one machine: the figures show what the way through a worker costs
and that the limit holds over all of them, not what more machines would bring.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ...models.cluster.ray_pool import QUIET
from ...prompts.errors import import_optional
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ..command_line import RESULTS, machine, write_result
from .overhead_processes import QUESTIONS, bought, make_examples, stand_in

RESULT = RESULTS / "cluster.json"
DELAY = 0.1
"""Seconds that the server takes for an answer."""
EACH = 16
"""Calls under way at once, for each worker."""
WORKERS = (1, 2, 4)
FIRST = 20
"""Examples of a small run, whose time is taken from that of a large one."""


def judged(
    examples: Sequence[Example], url: str, at_once: int, workers: int | None
) -> tuple[Sequence[Verdict], float, float]:
    """The verdicts, and the wall and processor seconds they took; by this process where ``workers`` is None.

    Raises:
        RuntimeError: Not every verdict was bought once.
    """
    engine: dict[str, Any] = {} if workers is None else {"engine": "ray", "workers": workers}
    wall, cpu = time.perf_counter(), time.process_time()
    found = bought(examples, url, max_concurrency=at_once, **engine)
    return found.verdicts, time.perf_counter() - wall, time.process_time() - cpu


def measured(examples: Sequence[Example], url: str, at_once: int, workers: int | None) -> dict[str, float]:
    """What the first :data:`FIRST` examples take, the start of workers among it, and the pace of those after them."""
    _, first_wall, first_cpu = judged(examples[:FIRST], url, at_once, workers)
    _, wall, cpu = judged(examples, url, at_once, workers)
    calls = (len(examples) - FIRST) * QUESTIONS
    return {
        "first_s": round(first_wall, 2),
        "calls_per_s": round(calls / (wall - first_wall), 1),
        "cpu_ms_per_verdict": round((cpu - first_cpu) / calls * 1000, 3),
    }


def run(calls: int, runs: int) -> dict[str, Any]:
    """Measure each arm in turn, ``runs`` times, and give the medians.

    Raises:
        RuntimeError: The verdicts of an arm are not those of one process.
    """
    os.environ.update(QUIET)
    ray = import_optional("ray", "ray", "ray")
    examples = make_examples(calls // QUESTIONS, rated=False)
    arms = [(EACH * number, workers) for number in WORKERS for workers in (None, number)]
    taken: dict[tuple[int, int | None], list[dict[str, float]]] = {arm: [] for arm in arms}
    ray.init(
        include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )  # once, so that its start is in no figure
    try:
        with stand_in(DELAY) as url:
            wanted = list(judged(examples[:FIRST], url, EACH, None)[0])
            for workers in WORKERS:
                if list(judged(examples[:FIRST], url, EACH, workers)[0]) != wanted:
                    raise RuntimeError(f"{workers} workers gave other verdicts than one process")
            for _ in range(runs):
                for arm in arms:
                    taken[arm].append(measured(examples, url, *arm))
    finally:
        ray.shutdown()
    return {
        "machine": machine(ray=metadata.version("ray")),
        "calls": calls,
        "runs": runs,
        "server_delay_s": DELAY,
        "arms": [
            {
                "at_once": at_once,
                "workers": workers,
                **{name: statistics.median(each[name] for each in figures) for name in figures[0]},
                "all": figures,
            }
            for (at_once, workers), figures in taken.items()
        ],
    }


def as_text(result: dict[str, Any]) -> str:
    """The arms as a table."""
    lines = [
        f"{'calls at once':<16}{'workers':<16}{'first 200, s':>14}{'calls/s':>10}{'at most':>10}{'CPU ms a verdict':>20}"
    ]
    for row in result["arms"]:
        who = "none" if row["workers"] is None else row["workers"]
        most = row["at_once"] / result["server_delay_s"]
        lines.append(
            f"{row['at_once']:<16}{who:<16}{row['first_s']:>14.1f}{row['calls_per_s']:>10.0f}{most:>10.0f}{row['cpu_ms_per_verdict']:>20.2f}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.cluster", description=__doc__)
    parser.add_argument("--calls", type=int, default=1200, help="of each arm (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=2, help="of each arm (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=RESULT, help="default: %(default)s")
    chosen = parser.parse_args(arguments)
    if chosen.calls < 400 or chosen.runs < 1:
        parser.error("--calls must be 400 at least, --runs 1")
    result = run(chosen.calls, chosen.runs)
    write_result(chosen.output, result)
    print(as_text(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
