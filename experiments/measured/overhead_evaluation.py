"""One evaluation, for :mod:`askance.experiments.measured.overhead`: its data, and its figures from a process that did nothing else.

``python -m askance.experiments.measured.overhead_evaluation FOLDER URL`` judges the data in FOLDER against the server at URL,
answers kept in FOLDER/verdicts.db, and prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...prompts.checklist import Checklist, Question, dump_checklist
from ...prompts.examples import Example

MODEL = "openai/stand-in"
CONCURRENCY = 64
TEXT_CHARACTERS = 1_000
EXAMPLES, CHECKLIST, STORE = "examples.jsonl", "checklist.yaml", "verdicts.db"
_WORDS = [
    "the",
    "council",
    "voted",
    "on",
    "a",
    "plan",
    "to",
    "keep",
    "the",
    "old",
    "bridge",
    "open",
    "after",
    "engineers",
    "warned",
    "that",
    "repairs",
    "would",
    "take",
    "years",
    "and",
    "residents",
    "asked",
    "for",
    "a",
    "ferry",
    "while",
    "the",
    "mayor",
    "promised",
    "money",
    "from",
    "next",
    "spring",
]


def make_checklist(questions: int) -> Checklist:
    """Questions on two dimensions."""
    return Checklist(
        task="Judge the summary of an article.",
        questions=tuple(
            Question(
                id=f"question-{number}",
                text=f"Is what the summary says about point {number} supported by the article?",
                dimension="consistency" if number % 2 else "relevance",
            )
            for number in range(questions)
        ),
    )


def make_examples(count: int, *, rated: bool) -> list[Example]:
    """Articles of 1,000 characters with summaries of some 150, each of its own; ratings from 1 to 5 where ``rated``."""
    return [_example(number, rated) for number in range(count)]


def _example(number: int, rated: bool) -> Example:
    words = (_WORDS[(number + place * (1 + number % 7)) % len(_WORDS)] for place in range(TEXT_CHARACTERS // 5))
    article = f"Report {number}: {' '.join(words)}"[:TEXT_CHARACTERS]
    rating = 1 + number * 7 % 5
    return Example(
        id=f"example-{number}",
        input=article,
        output=f"Summary {number}: {article[:130]}",
        system=f"system-{number % 16}" if rated else None,
        metadata={"document": number // 16} if rated else {},
        human={"consistency": (rating,), "relevance": (6 - rating,)} if rated else {},
    )


def write_data(folder: Path, examples: Sequence[Example], checklist: Checklist) -> None:
    """Put the inputs of an evaluation into a folder."""
    folder.mkdir(exist_ok=True)
    with (folder / EXAMPLES).open("w", encoding="utf-8") as file:
        file.writelines(example.model_dump_json(exclude_defaults=True) + "\n" for example in examples)
    (folder / CHECKLIST).write_text(dump_checklist(checklist), encoding="utf-8")


def fresh_evaluation(folder: Path, url: str) -> dict[str, Any]:
    """Figures of one evaluation in a fresh process.

    Raises:
        RuntimeError: It failed; the message is what it printed.
    """
    command = [sys.executable, "-m", f"{__package__}.overhead_evaluation", str(folder), url]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def peak_memory() -> float:
    """Largest resident size of this process so far, in MB of 10**6 bytes.

    On Linux from the kernel's own mark for this program: ``ru_maxrss`` there begins at the size of the process that
    started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate once and print the figures."""
    from ...evaluation.evaluate import evaluate

    folder, url = arguments or sys.argv[1:]
    imported = peak_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    found = evaluate(
        Path(folder) / EXAMPLES,
        checklist=Path(folder) / CHECKLIST,
        model=MODEL,
        api_base=url,
        max_concurrency=CONCURRENCY,
        p_yes="logprob",
        cache=Path(folder) / STORE,
    )
    figures = {
        "verdicts": found.coverage.answered,
        "calls": found.budget.calls,
        "reused": found.budget.cached_calls,
        "correlations": sum(each.pooled.kendall.value is not None for each in found.agreement),
        "wall_s": round(time.perf_counter() - wall, 3),
        "cpu_s": round(time.process_time() - cpu, 3),
        "peak_mb": round(peak_memory(), 1),
        "imported_mb": round(imported, 1),
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
