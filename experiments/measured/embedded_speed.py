"""How fast the embedded model reads verdicts, beside llama.cpp's own benchmark of the same file with the same threads.

Run ``python -m askance.experiments.measured.embedded_speed --data qags_cnndm.jsonl --llama-bench BINARY`` on idle processors (some ten
minutes on two cores). Five questions are asked of each of some articles with their summaries. Tokens *computed* are those that
the server had not read before, by its own timings; those that were sent are some four times as many. ``llama-bench`` (built from llama.cpp's
sources, ``cmake --build . --target llama-bench``) then reads as many tokens at once, at the same depth, as the first question on an example takes and as
a later one does: what an example would take if nothing but the reading took time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...evaluation.evaluate import evaluate
from ...models.base import Answer, Request
from ...models.embedded.download import pull
from ...models.embedded.local_model import EmbeddedModel
from ...models.embedded.registry import RegisteredModel, resolve
from ...models.embedded.servers import EmbeddedServerPool, ServerSettings, available_threads
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import AskanceError, InputError
from ...prompts.examples import Example
from ..command_line import RESULTS, machine, says_errors, write_result
from ..datasets import load_rated

RESULT = RESULTS / "embedded_speed.json"
QUESTIONS = Path(__file__).parents[1] / "qags" / "ten_questions.yaml"
ASKED = 5
"""Questions on each example."""
REPEATS = 5
"""Of each of llama-bench's figures; it gives their mean."""


@dataclass(frozen=True)
class PromptRead:
    """What the server says of one answer."""

    sent: int
    """Tokens of the prompt."""
    computed: int
    """Those of them that it had not read before."""
    ms: float
    """What reading them took, as the server says."""
    at: float
    """When it was there, in seconds of a clock that only goes forward."""


class TimedModel(EmbeddedModel):
    """The embedded model, with the server's own timings kept."""

    def __init__(self, name: str, path: Path, sha256: str, servers: EmbeddedServerPool, timeout: float) -> None:
        """As of the class above."""
        super().__init__(name, path, sha256, servers, timeout)
        self.readings: list[PromptRead] = []

    def _read(self, payload: bytes, request: Request) -> Answer:
        answer = super()._read(payload, request)
        took = json.loads(payload)["timings"]
        self.readings.append(PromptRead(answer.prompt_tokens, took["prompt_n"], took["prompt_ms"], time.monotonic()))
        return answer


def bench(binary: Path, path: Path, threads: int, tokens: int, depth: int = 0) -> float:
    """Tokens a second by llama-bench, of a prompt of so many tokens, after ``depth`` others.

    Raises:
        AskanceError: It failed.
    """
    command = [str(binary), "-m", str(path), "-t", str(threads), "-p", str(tokens), "-n", "0", "-d", str(depth)]
    done = subprocess.run([*command, "-r", str(REPEATS), "-o", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AskanceError(f"{binary.name} failed: {done.stderr.strip()[-500:]}")
    return float(json.loads(done.stdout)[0]["avg_ts"])


def beside(readings: Sequence[PromptRead], binary: Path | None, path: Path, threads: int) -> dict[str, Any]:
    """What an example took, and what it would take by llama-bench's figures.

    Args:
        readings: Of all answers, after one that only begins the time; the first on an example are those that read more than half of what
            was sent.
        binary: llama-bench; None where it is not there.
        path: The model's file.
        threads: Of both.
    """
    wall, readings = readings[-1].at - readings[0].at, readings[1:]
    first = [each for each in readings if 2 * each.computed > each.sent]
    later = [each for each in readings if 2 * each.computed <= each.sent]
    if not (first and later):
        raise AskanceError("Every question was read in the same way; what was read of an example is not kept.")
    tokens = {
        "first": round(statistics.mean(each.computed for each in first)),
        "later": round(statistics.mean(each.computed for each in later)),
        "depth": round(statistics.mean(each.sent - each.computed for each in later)),
    }
    computed = sum(each.computed for each in readings)
    read = sum(each.ms for each in readings) / 1000
    found: dict[str, Any] = {
        "verdicts": len(readings),
        "verdicts_a_second": len(readings) / wall,
        "tokens_sent": sum(each.sent for each in readings),
        "tokens_computed": computed,
        "tokens_a_question": tokens,
        "seconds": {"wall": wall, "reading": read},
        "tokens_a_second": {
            "reading": computed / read,
            "first": 1000 * sum(each.computed for each in first) / sum(each.ms for each in first),
            "later": 1000 * sum(each.computed for each in later) / sum(each.ms for each in later),
        },
    }
    if binary is None:
        return found
    by_bench = {
        "first": bench(binary, path, threads, tokens["first"]),
        "later": bench(binary, path, threads, tokens["later"], tokens["depth"]),
    }
    would = sum(
        sum(each.computed for each in some) / by_bench[name] for name, some in (("first", first), ("later", later))
    )
    return found | {
        "llama_bench": {"tokens_a_second": by_bench, "seconds": would},
        "reading_by_llama_bench": read / would,
        "wall_by_llama_bench": wall / would,
    }


def as_text(result: Mapping[str, Any]) -> str:
    """Lay the figures out."""
    rows = [("askance", result["tokens_a_second"])]
    if "llama_bench" in result:
        rows.append(("llama-bench", result["llama_bench"]["tokens_a_second"]))
    lines = [f"{name:<12}{speeds['first']:>9.1f} tokens/s first{speeds['later']:>9.1f} later" for name, speeds in rows]
    lines.append(f"{result['verdicts_a_second']:.2f} verdicts a second")
    if "llama_bench" in result:
        lines.append(
            f"reading takes {result['reading_by_llama_bench']:.2f}, all of it {result['wall_by_llama_bench']:.2f} of llama-bench's time"
        )
    return "\n".join(lines)


def asked_questions() -> Checklist:
    """The first of QAGS's questions, as many as are asked."""
    whole = load_checklist(QUESTIONS)
    return whole.model_copy(update={"questions": whole.questions[:ASKED], "section_weights": {}})


def measured(name: str, examples: Sequence[Example], threads: int, binary: Path | None) -> dict[str, Any]:
    """What the examples took, the first of them not counted.

    Raises:
        InputError: There is no such model.
        AskanceError: A verdict is missing, or llama-bench failed.
    """
    registered = resolve(name)
    path = pull(registered) if isinstance(registered, RegisteredModel) else registered
    checklist = asked_questions()
    servers = EmbeddedServerPool(replace(ServerSettings(), threads=threads))
    model = TimedModel(f"local/{name}", path, name, servers, timeout=600)
    asyncio.run(servers.url_for(path))  # loads it
    try:
        judged = evaluate(examples, checklist=checklist, model=model, no_cache=True, progress=False)
    finally:
        asyncio.run(model.close())
        asyncio.run(servers.close())
    if judged.coverage.share < 1:
        raise AskanceError(f"{judged.model}: verdicts are missing; nothing can be said of its speed.")
    figures = beside(model.readings[ASKED - 1 :], binary, path, threads)
    return {"model": name, "threads": threads, "examples": len(examples) - 1, "questions": ASKED, **figures}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="QAGS's file, which is not part of this project")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b-instruct")
    parser.add_argument("--limit", type=int, default=20, help="articles with their summaries")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--llama-bench", type=Path, metavar="BINARY", help="without it only our side is measured")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if given.limit < 1:
        raise InputError(f"--limit {given.limit}: at least one article is needed.")
    examples = load_rated("qags", given.data)[: given.limit + 1]  # one is read before the clock starts
    result = measured(given.model, examples, given.threads, given.llama_bench)
    command = f"python -m {__spec__.name} --data {given.data.name} --limit {given.limit} --threads {given.threads}"
    if given.llama_bench:
        command += f" --llama-bench {given.llama_bench.name}"
    write_result(given.output, {"command": command, "machine": machine(), **result})
    print(as_text(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
