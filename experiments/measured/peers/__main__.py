"""What a call costs with each tool's own client, beside askance with its store: processor time, import, memory, installed size.

Run ``python -m askance.experiments.measured.peers --directory DIR`` (ten minutes and 2 GB of packages the first time). Each tool has an
environment of its own in DIR, made by pip, and a fresh process a run; all ask one server in another process, which takes
20 ms, and take turns. Times are processor times of the client: another program that is busy does not count.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from ....prompts.errors import AskanceError
from ...command_line import RESULTS, machine, says_errors, write_result
from ..overhead_processes import (
    CHECKLIST,
    CONCURRENCY,
    EXAMPLES,
    QUESTIONS,
    STORE,
    judged,
    make_checklist,
    make_examples,
    peak_memory,
    stand_in,
    write_data,
)
from .runs import environment

PACKAGE = __package__ or ""
RESULT = RESULTS / "peers.json"
CLIENT = Path(__file__).with_name("client.py")
TOOLS = ("aiohttp", "openai", "litellm", "dspy", "deepeval", "autorubric", "autochecklist")
OURS = "askance, with its store"
COLUMNS = ("cpu_ms_a_call", "import_cpu_s", "peak_mb", "installed_mb")
NOT_PACKAGED = {"tests", "docs", "build", "node_modules"}


def measured(command: Sequence[str], calls: int) -> dict[str, Any]:
    """The figures that a process prints in its last line.

    Raises:
        AskanceError: It failed, or not every call was answered with yes or no.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise AskanceError(f"{' '.join(command)} failed: {done.stderr.strip()[-1000:]}")
    figures: dict[str, Any] = json.loads(lines[-1])
    if figures["answered"] != calls:
        raise AskanceError(f"{' '.join(command)}: {figures['answered']} of {calls} calls were answered")
    return figures


def run(pythons: Mapping[str, Path], calls: int, runs: int) -> dict[str, Any]:
    """Measure askance and the tools whose environments are given, in turn; medians of the runs. One that fails has no figures but its reason.

    Args:
        pythons: The Python of each tool's environment, by a name of :data:`TOOLS`.
        calls: A run.
        runs: Of each.
    """
    failed: dict[str, str] = {}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (*pythons, OURS)}
    with stand_in() as url:
        for _ in range(runs):
            for name, python in pythons.items():
                command = [str(python), str(CLIENT), name, url, str(calls), str(CONCURRENCY)]
                try:
                    rows[name].append(measured(command, calls))
                except AskanceError as error:  # the others are still worth their minutes
                    failed[name] = str(error)
            rows[OURS].append(measured([sys.executable, "-m", PACKAGE, "--ours", url, str(calls)], calls))
    return {
        "command": f"python -m {PACKAGE} --directory DIR --calls {calls} --runs {runs}",
        "machine": machine(),
        "calls": calls,
        "at_once": CONCURRENCY,
        "clients": {
            name: {
                "version": several[0]["version"],
                **{column: round(statistics.median(each[column] for each in several), 3) for column in COLUMNS},
                "cpu_ms_of_runs": [each["cpu_ms_a_call"] for each in several],
            }
            for name, several in rows.items()
            if name not in failed
        },
        "failed": failed,
    }


def ours(url: str, calls: int) -> dict[str, Any]:
    """The figures of askance in this process: an evaluation with a new store, of examples that are read from a file."""
    before = time.process_time()
    import_module("....evaluation.evaluate", __package__)
    import_cpu_s = time.process_time() - before
    spent, answered = 0.0, 0
    with tempfile.TemporaryDirectory() as name:
        for examples in (CONCURRENCY // QUESTIONS, calls // QUESTIONS):  # connections are made anew, imports are not
            folder = Path(name) / str(examples)
            write_data(folder, make_examples(examples, rated=False), make_checklist(QUESTIONS))
            began = time.process_time()
            found = judged(folder / EXAMPLES, folder / CHECKLIST, url, folder / STORE)
            spent, answered = time.process_time() - began, found.coverage.answered
    return {
        "version": version("askance"),
        "answered": answered,
        "cpu_ms_a_call": round(spent / calls * 1000, 3),
        "import_cpu_s": round(import_cpu_s, 3),
        "peak_mb": round(peak_memory(), 1),
        "installed_mb": round(_own_size("askance"), 1),
    }


def _own_size(package: str) -> float:
    """askance and what it needs without extras, as installed here, without what Python compiles; MB of 10**6 bytes."""
    root = Path(__file__).parents[2]
    files = [each for each in root.rglob("*") if not NOT_PACKAGED & {*each.relative_to(root).parts}]
    total = sum(each.stat().st_size for each in files if each.is_file() and _is_kept(each.relative_to(root)))
    seen, left = {package}, _needs(package)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            try:
                found = distribution(name)
            except PackageNotFoundError:  # of another system
                continue
            left += _needs(name)
            places = (Path(str(found.locate_file(each))) for each in found.files or () if each.suffix != ".pyc")
            total += sum(each.stat().st_size for each in places if each.is_file())
    return total / 1e6


def _is_kept(path: Path) -> bool:
    return path.suffix != ".pyc" and not any(part.startswith(".") for part in path.parts)


def _needs(package: str) -> list[str]:
    """Names of the packages that one requires, extras aside."""
    wanted = [each for each in distribution(package).requires or () if "extra ==" not in each]
    return [re.match(r"[\w.-]+", each)[0] for each in wanted]  # type: ignore[index]


def as_text(result: dict[str, Any]) -> str:
    """Lay the figures out as a table."""
    lines = [f"{'':<28}{'CPU ms a call':>14}{'import CPU s':>14}{'peak MB':>10}{'installed MB':>14}"]
    for name, row in sorted(result["clients"].items(), key=lambda each: each[1]["cpu_ms_a_call"]):
        shown = name if name == OURS else f"{name} {row['version']}"
        lines.append(
            f"{shown:<28}{row['cpu_ms_a_call']:>14.2f}{row['import_cpu_s']:>14.2f}{row['peak_mb']:>10.0f}"
            f"{row['installed_mb']:>14.0f}"
        )
    lines += [f"{name}: not measured. {why}" for name, why in result["failed"].items()]
    return "\n".join(lines)


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Make the environments, measure, print the table, write the result."""
    parser = argparse.ArgumentParser(prog=f"python -m {PACKAGE}", description=__doc__)
    parser.add_argument("--directory", type=Path, help="where the environments are made and kept")
    parser.add_argument("--calls", type=int, default=2_000, help="a run, a multiple of 10 (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=TOOLS, help="this tool; may be given several times")
    parser.add_argument("--ours", nargs=2, metavar=("ADDRESS", "CALLS"), help="only measure askance, in this process")
    parser.add_argument("-o", "--output", type=Path, help=f"default: {RESULT.name}; nothing with --only")
    chosen = parser.parse_args(arguments)
    if chosen.ours:
        print(json.dumps(ours(chosen.ours[0], int(chosen.ours[1]))))
        return 0
    if chosen.directory is None:
        parser.error("--directory is needed: 2 GB of packages are kept there")
    if chosen.calls < 10 or chosen.calls % QUESTIONS or chosen.runs < 1:
        parser.error("--calls: a multiple of 10; --runs: 1 at least")
    pythons = {name: environment(chosen.directory.absolute(), name) for name in chosen.only or TOOLS}
    result = run(pythons, chosen.calls, chosen.runs)
    output = chosen.output or (None if chosen.only else RESULT)
    if output is not None:
        write_result(output, result)
    print(as_text(result))
    return int(bool(result["failed"]))


if __name__ == "__main__":
    raise SystemExit(main())
