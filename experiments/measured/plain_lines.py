"""What a generator's prompt leaves out, stated in its own words first: the gain of ``tune``, and of each line.

Run ``python -m askance.experiments.measured.plain_lines`` (the embedded 1.5B model writes; ten minutes a seed on two busy cores). A
made-up ferry company's prompt says nothing of its house rules, six of which are checks in code. With ``--judged SEED`` the same
model also judges two rules as questions, one of which looks for a fault; ``--notes-only SEED`` leaves the plain lines out.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...evaluation.progress import Silent
from ...memory.run_directory import RunDirectory
from ...models.base import Model
from ...optimizer.events import Event
from ...optimizer.modes import tune
from ...optimizer.modes.checker import Check
from ...optimizer.runner import run_job
from ...prompts.examples import Example
from ..command_line import RESULTS, says_errors, write_result

DATA = Path(__file__).parents[1] / "ferry"
RESULT = RESULTS / "plain_lines.json"
MODEL = "local/qwen2.5-coder-1.5b-instruct"
SETTINGS: dict[str, Any] = {
    "max_output_tokens": 80,
    "max_iterations": 1,
    "max_notes": 4,
    "split": (0.25, 0.3, 0.45),
    "prune": False,
    "embedder": "words",
}
CHECKS_ARE_IN = "askance.experiments.measured.plain_lines"
ARMS = ("plain lines", "judged", "notes only")
SHOWN = 4
"""Test messages whose replies before and after are kept in the result."""


def checks(example: Example) -> list[Check]:
    """The house rules that code can check; their names are the rules."""
    reply = (example.output or "").strip()
    begins, ends = re.match(r"dear traveller\b", reply, re.I), re.search(r"your harbour desk\W*$", reply, re.I)
    return [
        Check("Does the reply begin with the words Dear traveller?", bool(begins)),
        Check("Does the reply end with the words Your harbour desk?", bool(ends)),
        Check("Does the reply give the phone number 555 0134?", "555 0134" in reply.replace("-", " ")),
        Check("Does the reply thank the traveller for the message?", bool(re.search(r"\bthank", reply, re.I))),
        Check("Is the reply free of exclamation marks?", "!" not in reply),
        Check("asks_for_date", "date" in reply.lower(), "it does not ask the traveller for the date of the crossing"),
    ]


def run_once(arm: str, seed: int, folder: Path, *, model: str | Model = MODEL) -> dict[str, Any]:
    """One run of ``tune`` in a directory of its own; it goes on where it stopped.

    Args:
        arm: One of ``ARMS``.
        seed: Of the split and of everything else.
        folder: The run's directory.
        model: Writes, and judges where the arm has questions.

    Returns:
        The start's and the accepted prompt's mean score on test with the gain, and each instruction with its effect.
    """
    settings = SETTINGS | {"seed": seed, "plain_first": arm != "notes only"}
    judged = arm == "judged"
    job = tune.prepare(
        DATA / "messages.jsonl",
        DATA / "checklist.yaml" if judged else None,
        model,
        model if judged else None,
        DATA / "prompt.md",
        None,
        f"{CHECKS_ARE_IN}:{checks.__name__}",
        settings | {"no_cache": True},  # calls are counted
    )
    began = time.perf_counter()
    done = run_job(job, RunDirectory(folder), Silent(), [_tell])
    found = done.require_coverage().record
    row = found.to_dict()
    outputs = _outputs(folder)
    return {
        "arm": arm,
        "seed": seed,
        "finish_reason": found.finish_reason,
        "iterations": found.iterations,
        "test": {side: row[side]["test"] for side in ("baseline", "best")} | {"gain": row["gain"]["test"]},
        "validation": {side: row[side]["validation"] for side in ("baseline", "best")}
        | {"gain": row["gain"]["validation"]},
        "instructions": row.get("instructions", []),
        "candidates": [each.to_dict() for each in (*found.accepted_edits, *found.rejected_edits)],
        "lessons": row["lessons"],
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
    parser.add_argument("--judged", nargs="*", type=int, default=[], metavar="SEED", help="with questions, too")
    parser.add_argument("--notes-only", nargs="*", type=int, default=[], metavar="SEED", help="without plain lines")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--runs", type=Path, default=Path("plain-lines-runs"), help="directory of the runs")
    parser.add_argument("--output", type=Path, default=RESULT)
    parsed = parser.parse_args(arguments)
    arms = dict(zip(ARMS, (parsed.seeds, parsed.judged, parsed.notes_only), strict=True))
    runs = []
    for arm, seed in ((arm, seed) for arm, seeds in arms.items() for seed in seeds):
        folder = parsed.runs / f"{arm.replace(' ', '-')}-{seed}"
        runs.append(run_once(arm, seed, folder, model=parsed.model))
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
