"""How near the embedded model's readers are to the same weights in single precision.

Run ``python -m askance.experiments.measured.beside_single_precision`` (some five minutes on two cores and 8 GB of memory; what a reader
makes of the file has to be there). Four questions are asked of some made-up news summaries by each reader, and once more by the plain
products of the file's own weights, in numpy.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.evaluate import evaluate
from ...models.embedded.download import pull
from ...models.embedded.registry import RegisteredModel, resolve
from ...models.reading.onnx_decoder import GgufFile
from ...models.reading.onnx_reader import load_onnx_reader
from ...models.reading.reading_model import CONTEXT, Reader, ReadingModel, normalised
from ...models.reading.single_precision import SamplePrompts
from ...models.resolve import Models
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.examples import load_examples
from ..command_line import RESULTS, machine, says_errors, write_result
from .readers import Place, alike, log_odds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...models.base import Message, Model
    from ...prompts.prompt import Framing

RESULT = RESULTS / "beside_single_precision.json"
DATA = Path(__file__).parents[1] / "made_up" / "news_summaries"
QUESTIONS = (
    "Does the summary give a date?",
    "Does the summary say who said it?",
    "Does the summary give advice?",
    "Does the summary say that something is good or bad?",
)


class SinglePrecision:
    """A reader that multiplies a file's weights as they are, all of which it holds in single precision."""

    def __init__(self, path: Path, like: Reader) -> None:
        """``like`` has the same tokens."""
        file = GgufFile(path)
        self._shape = file.shape(CONTEXT)
        self._like = like
        self._layers = [(file.attention(layer), file.gated(layer)) for layer in range(self._shape.layers)]
        self._embeddings = file.tensor("token_embd.weight")
        self._head = file.tensor("output.weight") if file.has("output.weight") else self._embeddings
        self._norm = file.tensor("output_norm.weight")

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        """As of :class:`Reader`."""
        return self._like.tokens(messages, framing)

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        """As of :class:`Reader`; nothing is kept."""
        sample = SamplePrompts(self._shape, [tokens], lambda token: self._embeddings[token][None])
        for attention, gated in self._layers:
            sample.attend(attention)
            sample.pass_gate(gated)
        return normalised(self._head @ (sample.normed()[-1] * self._norm))

    def text(self, token: int) -> str:
        """As of :class:`Reader`."""
        return self._like.text(token)

    def forget(self) -> None:
        """Keep nothing, as ever."""


def judged_by(data: Path, limit: int, model: str | Model) -> dict[Place, float]:
    """Log-odds of yes by a model."""
    checklist = Checklist(
        questions=tuple(Question(id=f"q{place}", text=text, sees="output") for place, text in enumerate(QUESTIONS))
    )
    examples = load_examples(data / "examples.jsonl")[:limit]
    judged = evaluate(
        examples,
        checklist=checklist,
        prompt=data / "prompt.md",
        model=model,
        explain="never",
        no_cache=True,
        progress=False,
    )
    return log_odds(judged.verdicts)


async def in_single_precision(registered: RegisteredModel, data: Path, limit: int) -> dict[Place, float]:
    """Log-odds of yes by the weights as they are."""
    path = pull(registered)
    like = await asyncio.to_thread(load_onnx_reader, f"onnx/{registered.name}", path, registered.sha256)
    async with Models() as models:
        writer = models.get(f"local/{registered.name}")
        model = ReadingModel(
            "exact/m", f"single-precision:{registered.sha256}", writer, partial(SinglePrecision, path, like)
        )
        return await asyncio.to_thread(judged_by, data, limit, model)


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b-instruct")
    parser.add_argument("--readers", default="local,onnx")
    parser.add_argument("--limit", type=int, default=10, help="summaries")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    registered = resolve(given.model)
    if given.limit < 1 or not isinstance(registered, RegisteredModel):
        raise InputError("At least one summary and a registered model are needed; see: askance models")
    exact = asyncio.run(in_single_precision(registered, DATA, given.limit))
    rows: list[dict[str, Any]] = []
    for reader in given.readers.split(","):
        found = judged_by(DATA, given.limit, f"{reader}/{given.model}")
        places = [each for each in found if each in exact]
        correlation = float(np.corrcoef([found[each] for each in places], [exact[each] for each in places])[0, 1])
        rows.append({"reader": reader, **alike(found, exact), "correlation": correlation})
        print(rows[-1], flush=True)
    write_result(
        given.output,
        {
            "command": f"python -m {__spec__.name} --readers {given.readers} --limit {given.limit}",
            "machine": machine(),
            "model": given.model,
            "deviation_of_log_odds": float(np.std(list(exact.values()))),
            "readers": rows,
        },
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
