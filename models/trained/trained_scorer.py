"""A trained scorer as a model of the gateway: ``--model scorer/``, the folder that ``askance train`` wrote."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ...prompts.errors import InputError, MissingExtraError
from ..base import Answer, ModelError
from ..budget import FREE
from ..files import file_identity
from ..replies.answer_words import expected_score
from .network import open_network
from .scored_text import OnnxEncoder, scored_text
from .scorer_file import CLIP, GGUF_FILE, ONNX_FILE, read_scorer

if TYPE_CHECKING:
    from ..base import Request
    from .causal import CausalNetwork
    from .network import Network
    from .scored_text import ScoredText

AT_ONCE = 64  # texts that are answered together
DIGITS = 6  # decimals of P(yes); further ones depend on the other texts in a batch (in bfloat16 already the third)


_Said = tuple[float, int, str]  # P(yes), the tokens that were read, and the rationale, if there is one


class TrainedScorer:
    """A model that answers yes-or-no questions with P(yes), in this process. Simultaneous requests are answered
    together. An encoder reads the question and the example, not the evaluator's prompt. A causal model reads the
    messages; its rationale, if any, follows the answer's word on the next line."""

    repeats_itself = True
    takes_images = False
    price = FREE
    thinking_room = ()
    gathers = 4 * AT_ONCE  # most callers that may await their answers at once

    def __init__(self, name: str) -> None:
        """``name`` is the scorer's folder; its weights are read at the first call. Raises InputError."""
        self.name = name
        self._folder = Path(name)
        self._file = read_scorer(self._folder)
        self.identity = f"scorer:{self._file.identity}"
        self._network: Network | OnnxEncoder | None = None
        self._thread = ThreadPoolExecutor(1, "askance-scorer")
        self._waiting: list[tuple[ScoredText, asyncio.Future[_Said]]] = []
        self._work: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Answer:
        """Ask once. Raises ModelError for a request that is no yes-or-no question, MissingExtraError without the
        package that reads the weights, and InputError if they cannot be read."""
        if request.about is None or request.parameters.temperature:
            raise ModelError(
                f"{self.name} is a trained scorer: it answers single yes-or-no questions with their probability and "
                "nothing else. Leave out --mode batched, --explain always, --scores expected, --p-yes sampled and "
                "--temperature, and name another model for roles that write.",
                fatal=True,
            )
        future: asyncio.Future[_Said] = asyncio.get_running_loop().create_future()
        self._waiting.append((scored_text(*request.about, request.messages), future))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        p, tokens, rationale = await future
        word = "Yes" if p >= 0.5 else "No"
        text = f"{word}\n{rationale}" if rationale else word
        p = min(max(p, CLIP), 1.0 - CLIP)
        odds = (("Yes", log(p)), ("No", log(1.0 - p)))
        logprobs = ((word, odds),) if request.parameters.top_logprobs else None
        return Answer(text, logprobs, tokens, 1, 0.0)

    async def close(self) -> None:
        """Let go of the weights, after the reading that is under way."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._network = None

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # requests of one round are answered together
        while self._waiting:
            asked, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            try:
                answers = await loop.run_in_executor(self._thread, self._read, [text for text, _ in asked])
            except BaseException as error:
                for _, future in asked:
                    if not future.done():
                        future.set_exception(error) if isinstance(error, Exception) else future.cancel()
                if not isinstance(error, Exception):
                    raise
                continue
            for (_, future), answer in zip(asked, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    def _read(self, texts: list[ScoredText]) -> list[_Said]:
        if self._network is None:
            self._network = self._opened()
        network, limit = self._network, self._file.rationale_tokens
        if limit is None:
            levels, rationales = network.levels(texts), [""] * len(texts)
        else:
            levels, rationales = cast("CausalNetwork", network).levels_after_rationales(texts, limit)
        expected = expected_scores(levels.tolist())
        return [
            (round(self._file.calibrated(p), DIGITS), min(tokens, network.longest), rationale)
            for p, tokens, rationale in zip(expected, network.tokens(texts), rationales, strict=True)
        ]

    def _opened(self) -> Network | OnnxEncoder:
        """Open the network. If the folder has a file for ONNX Runtime, that file is preferred, so that answers are
        equal on all machines. Torch reads the other weights only if torch is installed and ONNX Runtime is not."""
        folder, file = self._folder, self._file
        onnx, weights = file.onnx_file(folder), file.weights_file(folder)
        torch_alone = find_spec("onnxruntime") is None and find_spec("torch") is not None and weights.is_file()
        if onnx is not None and not torch_alone:
            if file_identity(onnx) != file.onnx:
                raise InputError(
                    f"{onnx}: damaged, or not of the weights that scorer.json is about. Copy the whole folder, or run "
                    "the `askance train --onnx` that wrote it again."
                )
            return OnnxEncoder.open(folder, file)
        file.check_weights(folder)
        try:
            return open_network(folder, file)
        except MissingExtraError as error:
            if (folder / GGUF_FILE).is_file():
                advice = f"ask its GGUF file: --model local/{folder / GGUF_FILE}"
            elif file.kind == "shared-encoder":
                advice = f"run the `askance train` that made it again with --onnx: {ONNX_FILE} is read without torch."
            else:
                raise
            raise InputError(f"{error}, or {advice}") from None


def expected_scores(levels: list[list[float]]) -> list[float]:
    """Return Σ k·P(k) / (K - 1), in [0, 1], per row of K log-probabilities, scaled to sum 1 (LMUnit §3.3, eq. 2)."""
    return [expected_score([exp(value) for value in each]) for each in levels]
