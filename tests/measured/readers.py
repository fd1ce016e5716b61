"""Speed of the embedded model's readers on this machine, and how alike they judge.

Run ``python -m tests.measured.readers --data qags_cnndm.jsonl`` on idle processors (some ten minutes on
two cores; what a reader makes of the file has to be there). Five questions are asked of each of some articles with
their summaries by ``askance evaluate``, as a user would, once of one article and once of all: the difference is what
the others took, with nothing of starting. ``--first FOLDER`` puts an earlier version of askance beside, whose package
the folder holds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import askance
from askance.experiments.command_line import RESULTS, machine, says_errors, write_result
from askance.models.embedded.servers import available_threads
from askance.prompts.checklist import dump_checklist, load_checklist
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.verdicts import Verdict, read_verdicts
from askance.stats.correlation import spearman

RESULT = RESULTS / "readers.json"
QUESTIONS = RESULTS.parent / "qags" / "ten_questions.yaml"
PROMPT = QUESTIONS.with_name("prompt.md")
ASKED = 5
"""Questions on each example: the first of QAGS's ten."""
PACKAGES = Path(askance.__file__).parents[1]
"""The folder in which the package stands."""
Place = tuple[str, str]
"""Example and question."""


def evaluated(packages: Path, data: Path, checklist: Path, model: str, limit: int) -> tuple[float, dict[Place, float]]:
    """Seconds of ``askance evaluate``, and log-odds of yes.

    Raises:
        AskanceError: It failed.
    """
    with tempfile.TemporaryDirectory() as work:
        output = Path(work) / "verdicts.jsonl"
        options = ["--checklist", checklist, "--prompt", PROMPT, "--model", model, "--limit", limit, "-o", output]
        command = [sys.executable, "-m", "askance", "evaluate", data, *options, "--explain", "never", "--no-cache"]
        began = time.monotonic()
        done = subprocess.run(
            [str(each) for each in command],
            env=os.environ | {"PYTHONPATH": str(packages)},
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
        if done.returncode:
            raise AskanceError(f"{model}: {done.stderr.strip()[-500:]}")
        return took, log_odds(read_verdicts(output))


def log_odds(verdicts: Iterable[Verdict]) -> dict[Place, float]:
    """Log-odds of yes, where both answers have some probability."""
    return {
        (each.example, each.question): log(each.p_yes / (1 - each.p_yes))
        for each in verdicts
        if each.p_yes is not None and 0 < each.p_yes < 1
    }


def alike(one: Mapping[Place, float], other: Mapping[Place, float]) -> dict[str, Any]:
    """Compare two readers' log-odds."""
    both = [each for each in one if each in other]
    values, others = [one[each] for each in both], [other[each] for each in both]
    off = [a - b for a, b in zip(values, others, strict=True)]
    return {
        "n": len(both),
        "spearman": spearman(values, others).value,
        "mean_difference": fmean(off),
        "deviation": pstdev(off),
        "other_answer": sum((a > 0) != (b > 0) for a, b in zip(values, others, strict=True)),
    }


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="QAGS's file, which is not part of this project")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b-instruct")
    parser.add_argument("--readers", default="local,onnx", help="the first is what the others are held beside")
    parser.add_argument("--limit", type=int, default=15, help="articles with their summaries")
    parser.add_argument("--first", type=Path, metavar="FOLDER", help="holds an earlier version of the package askance")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if given.limit < 1:
        raise InputError(f"--limit {given.limit}: at least one article is needed.")
    readers = given.readers.split(",")
    asked = [(reader, PACKAGES) for reader in readers]
    if given.first:
        asked.append((f"{readers[0]}, first version", given.first.absolute()))
    rows: list[dict[str, Any]] = []
    first: dict[Place, float] = {}
    with tempfile.TemporaryDirectory() as work:
        checklist = Path(work) / "questions.yaml"
        whole = load_checklist(QUESTIONS)
        asked_here = whole.model_copy(update={"questions": whole.questions[:ASKED], "section_weights": {}})
        checklist.write_text(dump_checklist(asked_here), encoding="utf-8")
        for name, packages in asked:
            where = packages, given.data.absolute(), checklist, f"{name.partition(',')[0]}/{given.model}"
            start, _ = evaluated(*where, 1)
            took, odds = evaluated(*where, given.limit + 1)
            first = first or odds
            row = {"reader": name, "start": start, "seconds": took - start}
            rows.append(row | {"verdicts_a_second": given.limit * ASKED / (took - start), "beside": alike(odds, first)})
            print(f"{name:<22}{rows[-1]['verdicts_a_second']:.2f} verdicts a second, {rows[-1]['beside']}", flush=True)
    command = f"python -m {__spec__.name} --data {given.data.name} --readers {given.readers} --limit {given.limit}"
    about = {"model": given.model, "threads": available_threads(), "examples": given.limit, "questions": ASKED}
    write_result(
        given.output,
        {
            "command": command + (" --first FOLDER" if given.first else ""),
            "machine": machine(),
            **about,
            "readers": rows,
        },
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
