"""A million verdicts on one machine: processor time and peak memory of evaluate, diagnose and report, each as a
process.

Run ``python -m tests.measured.million`` (some ten minutes; ``--quick`` only shows that it works). Texts,
people's scores and answers are **made up**, and the answers are all in the store before anything is measured: what is
in the figures is askance alone. Times are processor times of the process, its start included.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from askance.agents.requests import EachAsking
from askance.evaluation.evaluate import load_inputs
from askance.evaluation.options import ScoreOptions
from askance.experiments.command_line import RESULTS, machine, write_result
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer
from askance.models.direct import read_logprobs
from askance.models.session import session
from askance.prompts.errors import AskanceError
from askance.settings import parse_options

from .overhead_processes import (
    CHECKLIST,
    EXAMPLES,
    MODEL,
    QUESTIONS,
    STORE,
    answer,
    make_checklist,
    make_examples,
    write_data,
)

RESULT = RESULTS / "million.json"
NOWHERE = "http://127.0.0.1:9/v1"
"""The judge's address, where nobody answers: a verdict that is not in the store would be an error."""
AIMS = {"cpu_s": 20.0, "peak_mb": 300.0}
"""Limits for each command at a million verdicts."""
ANSWERS = 10_007
"""Different answers; which of them a question gets, its key says."""
RATED, UNRATED, FILLED = EXAMPLES, "unrated.jsonl", "filled"
ALIKE = {"system", "metadata", "human"}
"""Fields of the examples that a judge is not shown: without them the answers are the same."""


def prepare(folder: Path, examples: int) -> None:
    """Write data, checklist and a store with an answer to every question on every example."""
    made, checklist = make_examples(examples, rated=True), make_checklist(QUESTIONS)
    write_data(folder, made, checklist)
    with (folder / UNRATED).open("w", encoding="utf-8") as file:
        file.writelines(each.model_dump_json(exclude_defaults=True, exclude=ALIKE) + "\n" for each in made)
    asyncio.run(_fill(folder))
    (folder / FILLED).touch()


async def _fill(folder: Path) -> None:
    settings = parse_options(ScoreOptions, {"api_base": NOWHERE})
    examples, checklist, prompt = load_inputs(folder / RATED, folder / CHECKLIST, None, settings)
    answers = [_made_up(number) for number in range(ANSWERS)]
    async with session(settings, None) as (models, _):
        judge, judging = models.get(MODEL), settings.judging
        asking = EachAsking(prompt, checklist.questions, False, True, judging.temperature, judging.seed)
        keys = [ask.key for example in examples for ask in asking.asks(judge.identity, example, 0, 0)]
    with VerdictStore(folder / STORE) as store:
        for key in sorted(keys):
            store.put(key, answers[int.from_bytes(key[-4:], "big") % ANSWERS])


def _made_up(number: int) -> Answer:
    """An answer as a real server's is kept."""
    body = {"messages": [{"content": f"Question {number}"}], "logprobs": True, "top_logprobs": 20}
    [said] = answer(body)["choices"]
    return Answer(said["message"]["content"], read_logprobs(said["logprobs"]), 400, 1)


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands to measure, by name and in order."""
    judging = [f"--checklist={folder / CHECKLIST}", f"--model={MODEL}", f"--api-base={NOWHERE}", "--quiet"]
    verdicts = str(folder / "verdicts.jsonl")
    rated, unrated = str(folder / RATED), str(folder / UNRATED)
    beside = [f"--checklist={folder / CHECKLIST}"]
    return {
        "evaluate": ["evaluate", unrated, *judging],
        "evaluate, human scores": ["evaluate", rated, *judging],
        "evaluate -o verdicts.jsonl": ["evaluate", unrated, *judging, "-o", verdicts],
        "diagnose": ["diagnose", unrated, *judging],
        "diagnose --verdicts": ["diagnose", rated, *beside, "--verdicts", verdicts, "--quiet"],
        "report": ["report", verdicts, "--data", rated, *beside, "-o", str(folder / "report.html")],
    }


def measured(arguments: Sequence[str], folder: Path) -> dict[str, float]:
    """Processor and wall seconds and peak memory (MB of 10**6 bytes) of a command in a process of its own.

    Raises:
        AskanceError: It failed; the message is what it printed.
    """
    began = time.perf_counter()
    with (folder / "said.txt").open("w+b") as said:
        command, caches = [sys.executable, "-m", "askance", *arguments], {"ASKANCE_CACHE": str(folder)}
        process = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | caches)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise AskanceError(f"askance {arguments[0]} failed: {said.read().decode(errors='replace')[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "wall_s": round(time.perf_counter() - began, 2),
        "peak_mb": round(used.ru_maxrss * unit / 1e6, 1),
    }


def run(examples: int, folder: Path, only: Sequence[str] = ()) -> dict[str, Any]:
    """Measure the commands over a store that :func:`prepare` filled, or fill it."""
    if not (folder / FILLED).exists():
        # in a process of its own: the peak of this one would be that of the measured ones
        subprocess.run(
            [sys.executable, "-m", __spec__.name, "--fill", str(folder), f"--examples={examples}"], check=True
        )
    verdicts = examples * QUESTIONS
    figures = {name: measured(each, folder) for name, each in commands(folder).items() if not only or name in only}
    return {
        "machine": machine(),
        "made_up": "texts, people's scores and answers; nothing was asked of a model",
        "examples": examples,
        "verdicts": verdicts,
        "store_mb": round((folder / STORE).stat().st_size / 1e6, 1),
        "commands": figures,
    }


def as_text(result: dict[str, Any]) -> str:
    """Lay the figures out as a table."""
    lines = [f"{result['verdicts']:,} verdicts, store {result['store_mb']:,} MB", f"{'':<30}{'CPU s':>9}{'peak MB':>9}"]
    lines += [f"{name:<30}{row['cpu_s']:>9.1f}{row['peak_mb']:>9.0f}" for name, row in result["commands"].items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--examples", type=int, default=100_000, help=f"of {QUESTIONS} questions each")
    parser.add_argument("--quick", action="store_true", help="a small run; its figures mean nothing")
    parser.add_argument("--folder", type=Path, help="where data and store are made and kept; default: a temporary one")
    parser.add_argument("--only", action="append", default=[], help="a command to measure, as the table calls it")
    parser.add_argument("--fill", type=Path, help="only make data and store, in this folder")
    parser.add_argument("-o", "--output", type=Path, help=f"default: {RESULT.name}; nothing with --quick or --only")
    chosen = parser.parse_args(arguments)
    if chosen.fill:
        prepare(chosen.fill, chosen.examples)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        examples = 40 if chosen.quick else chosen.examples
        result = run(examples, chosen.folder or Path(temporary), chosen.only)
    output = chosen.output or (None if chosen.quick or chosen.only else RESULT)
    if output is not None:
        write_result(output, result)
    print(as_text(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
