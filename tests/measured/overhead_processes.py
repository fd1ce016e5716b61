"""The two processes beside :mod:`tests.measured.overhead`: the endpoint of a judge, and one evaluation
alone.

``python -m tests.measured.overhead_processes serve DELAY`` is a stand-in for a judge's endpoint in a
process of its own, so that a client's processor time can be told apart: it prints its address and serves until its
standard input is closed, so it ends with the process that started it. The answers depend on the question and the judged
text alone.

``... evaluate FOLDER URL`` judges the data in FOLDER against the server at URL in a process that did nothing else,
answers kept in FOLDER/verdicts.db, and prints its figures as one JSON object.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.examples import Example

if TYPE_CHECKING:
    from askance.evaluation.evaluation_result import Evaluation

_ITSELF = [sys.executable, "-m", f"{__package__}.overhead_processes"]
MODEL = "openai/stand-in"
QUESTIONS = 10
CONCURRENCY = 64
TEXT_CHARACTERS = 1_000
EXAMPLES, CHECKLIST, STORE = "examples.jsonl", "checklist.yaml", "verdicts.db"
_STORY = (
    "the council voted on a plan to keep the old bridge open after engineers warned that repairs would take "
    "years and residents asked for a ferry while the mayor promised money from next spring"
)
_WORDS = _STORY.split()
DELAY = 0.02
"""Seconds that an answer takes."""
SPELLINGS = ("Yes", "yes", " Yes", "YES"), ("No", "no", " No", "NO")
SHARES = (0.9, 0.07, 0.02, 0.01)
"""Shares of the probability of an answer for each of its spellings."""
OTHERS = ("The", "It", "In", "Based", "Not", "Question", "Un", "There", "This", "A", "**", "<", "Partially", "Answer")


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """A completion with as many alternatives as were asked for, as a real server gives them."""
    asked = body["messages"][-1]["content"]
    p_yes = (int.from_bytes(sha256(asked.encode()).digest()[:4], "big") + 0.5) / 2**32
    from askance.testing import completion

    content = completion(body, p_yes)
    wanted = body.get("top_logprobs", 0)
    if wanted:
        both = [
            (token, math.log(0.98 * p * share))
            for p, tokens in zip((p_yes, 1 - p_yes), SPELLINGS, strict=True)
            for token, share in zip(tokens, SHARES, strict=True)
        ]
        rest = [(token, math.log(0.01 / 2**place)) for place, token in enumerate(OTHERS, 1)]
        ranked = sorted(both + rest, key=lambda each: -each[1])[:wanted]
        top = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in ranked]
        content["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        content["choices"][0]["message"]["content"] = top[0]["token"]
    return content


@contextmanager
def stand_in(delay: float = DELAY) -> Iterator[str]:
    """Start the server in another process; its address, for ``--api-base``.

    Raises:
        RuntimeError: It did not start.
    """
    command = [*_ITSELF, "serve", str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the stand-in server did not start: {' '.join(command)}")
            yield url
        finally:
            process.stdin.close()
            process.wait(10)


def serve(delay: float) -> None:
    """Serve until standard input is closed."""
    from askance.testing import StandInServer

    def script(body: Mapping[str, Any]) -> tuple[int, Any]:
        server.bodies.clear()  # nobody reads them, and 100,000 of them are large
        return 200, answer(body)

    with StandInServer(script, delay=delay) as server:
        print(server.url, flush=True)
        sys.stdin.read()


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


def judged(
    examples: Sequence[Example] | Path, checklist: Checklist | Path, url: str, store: Path, **settings: Any
) -> Evaluation:
    """The verdicts of the stand-in at an address, kept in a store."""
    from askance.evaluation.evaluate import evaluate

    settings = {"max_concurrency": CONCURRENCY, "p_yes": "logprob", **settings}
    return evaluate(examples, checklist=checklist, model=MODEL, api_base=url, store=store, **settings)


def bought(examples: Sequence[Example], url: str, **settings: Any) -> Evaluation:
    """Judge with a new store; everything that ``askance evaluate`` does but reading files and printing.

    Raises:
        RuntimeError: Not every verdict was bought once.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = judged(examples, make_checklist(QUESTIONS), url, Path(folder) / STORE, **settings)
    if found.budget.calls != len(examples) * QUESTIONS or found.coverage.share < 1:
        raise RuntimeError(f"the run did not buy every verdict once: {found.budget.calls} calls, {found.coverage}")
    return found


def fresh_evaluation(folder: Path, url: str) -> dict[str, Any]:
    """Figures of one evaluation in a fresh process.

    Raises:
        RuntimeError: It failed; the message is what it printed.
    """
    done = subprocess.run([*_ITSELF, "evaluate", str(folder), url], capture_output=True, text=True)
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


def evaluate_once(folder: Path, url: str) -> dict[str, Any]:
    """Evaluate, and the figures of this process."""
    import_module("askance.evaluation.evaluate")
    imported = peak_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    found = judged(folder / EXAMPLES, folder / CHECKLIST, url, folder / STORE)
    return {
        "verdicts": found.coverage.answered,
        "calls": found.budget.calls,
        "reused": found.budget.cached_calls,
        "correlations": sum(each.pooled.kendall.value is not None for each in found.agreement),
        "wall_s": round(time.perf_counter() - wall, 3),
        "cpu_s": round(time.process_time() - cpu, 3),
        "peak_mb": round(peak_memory(), 1),
        "imported_mb": round(imported, 1),
    }


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", delay]:
            serve(float(delay))
        case ["evaluate", folder, url]:
            print(json.dumps(evaluate_once(Path(folder), url)))
        case _:
            sys.exit(__doc__)
