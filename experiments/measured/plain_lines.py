"""What a generator's prompt leaves out, stated in its own words first: the gain of ``tune``, and of each line.

Run ``python -m askance.experiments.measured.plain_lines`` (the embedded 1.5B model writes and judges; ten minutes a seed on two
cores). A made-up ferry company's prompt says nothing of six house rules: two are questions for the judge, one of which
looks for a fault, and four are checks in code. ``--notes-only`` leaves the plain lines out, for comparison.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...evaluation.progress import Silent
from ...memory.run_directory import RunDirectory
from ...optimizer.modes import tune
from ...optimizer.modes.checker import Check
from ...optimizer.runner import run_job
from ..command_line import RESULTS, says_errors, write_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...optimizer.events import Event
    from ...prompts.examples import Example

DATA = Path(__file__).parents[1] / "ferry"
RESULT = RESULTS / "plain_lines.json"
MODEL = "local/qwen2.5-coder-1.5b-instruct"
SETTINGS: dict[str, Any] = {
    "max_output_tokens": 70,
    "max_iterations": 1,
    "max_notes": 4,
    "split": (0.25, 0.3, 0.45),
    "explain": "never",
    "prune": False,
    "embedder": "words",
}
CHECKS_ARE_IN = "askance.experiments.measured.plain_lines"
SHOWN = 4
"""Test messages whose replies before and after are kept in the result."""


def checks(example: Example) -> list[Check]:
    """The house rules that code can check; their names are the rules."""
    reply = (example.output or "").strip()
    return [
        Check("Does the reply begin with the words Dear traveller?", bool(re.match(r"dear traveller\b", reply, re.I))),
        Check("Does the reply end with the words Your harbour desk?", bool(re.search(r"your harbour desk\W*$", reply, re.I))),
        Check("Does the reply give the phone number 555 0134?", "555 0134" in reply.replace("-", " ")),
        Check("Is the reply free of exclamation marks?", "!" not in reply),
    ]


def run_once(seed: int, folder: Path, *, notes_only: bool = False, model: str = MODEL) -> dict[str, Any]:
    """One run of ``tune`` in a directory of its own; it goes on where it stopped.

    Returns:
        The start's and the accepted prompt's mean score on test with the gain, and each instruction with its effect.
    """
    settings = SETTINGS | {"seed": seed, "plain_first": not notes_only}
    job = tune.prepare(
        DATA / "messages.jsonl",
        DATA / "checklist.yaml",
        model,
        model,
        DATA / "prompt.md",
        None,
        f"{CHECKS_ARE_IN}:{checks.__name__}",
        settings,
    )
    began = time.perf_counter()
    done = run_job(job, RunDirectory(folder), Silent(), [_tell])
    found = done.require_coverage().record
    row = found.to_dict()
    outputs = _outputs(folder)
    return {
        "seed": seed,
        "plain_first": not notes_only,
        "finish_reason": found.finish_reason,
        "iterations": found.iterations,
        "test": {side: row[side]["test"] for side in ("baseline", "best")} | {"gain": row["gain"]["test"]},
        "validation": {side: row[side]["validation"] for side in ("baseline", "best")}
        | {"gain": row["gain"]["validation"]},
        "instructions": row.get("instructions", []),
        "candidates": [each.to_dict() for each in (*found.accepted_edits, *found.rejected_edits)],
        "lessons": [each.to_dict() for each in found.lessons],
        "prompt": done.prompt,
        "calls": found.calls,
        "tokens": found.tokens,
        "seconds": round(time.perf_counter() - began),
        "replies": outputs,
    }


def _tell(event: Event) -> None:
    if event.sentence:
        print(time.strftime("%H:%M:%S"), event.sentence, flush=True)


def _outputs(folder: Path) -> list[dict[str, Any]]:
    """The first test messages' replies, by version."""
    from ...prompts.rows import read_rows

    split = next(row for _, row in read_rows(folder / "journal.jsonl") if row["event"] == "split")
    shown = split["test"][:SHOWN]
    rows = [row for _, row in read_rows(folder / "verdicts" / "outputs.jsonl") if row["example"] in shown]
    return sorted(rows, key=lambda row: (shown.index(row["example"]), row["version"]))


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and write the result."""
    parser = argparse.ArgumentParser(description="What plain lines gain on a prompt that leaves its house rules out.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--notes-only", nargs="*", type=int, default=[], metavar="SEED", help="seeds without plain lines")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--runs", type=Path, default=Path("plain-lines-runs"), help="directory of the runs")
    parser.add_argument("--output", type=Path, default=RESULT)
    parsed = parser.parse_args(arguments)
    arms = [(seed, False) for seed in parsed.seeds] + [(seed, True) for seed in parsed.notes_only]
    runs = []
    for seed, notes_only in arms:
        folder = parsed.runs / f"{'notes' if notes_only else 'plain'}-{seed}"
        runs.append(run_once(seed, folder, notes_only=notes_only, model=parsed.model))
        write_result(
            parsed.output,
            {
                "what": "tune with plain lines first on a made-up ferry company's messages (experiments/ferry)",
                "command": "python -m askance.experiments.measured.plain_lines",
                "model": parsed.model,
                "settings": SETTINGS,
                "python": platform.python_version(),
                "runs": runs,
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
