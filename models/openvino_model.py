"""``openvino/NAME``: a GGUF file whose verdicts are read by OpenVINO, in this process, on processors where that is faster.

A verdict is one token after a long prompt, so its time is that of reading. OpenVINO reads the same 4-bit weights with the
integer and bfloat16 instructions of newer processors, which llama.cpp's wheel is not built for; it writes no faster than
llama.cpp, so all that is longer than a token is left to that.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, MissingExtraError, import_optional
from .base import Answer, Message, Model, ModelError, Request
from .direct import read_logprobs
from .embedded import available_threads
from .files import cache_directory
from .prices import FREE

if TYPE_CHECKING:
    from ..prompts.prompt import Framing

Block = list[NDArray[Any]]
"""Keys and values that a block's tokens left in every layer."""
BLOCK = 512
"""Tokens that are read, and kept, together, at most."""
OPENING, TEXT = 16, 64
"""Tokens from which on a prompt's fixed text, and one text of an example, is kept as a block of its own: each block is one more way
of the weights through the processor, as long as that of some twenty tokens."""
CONTEXT = 4096
"""Tokens that a prompt may have, as for `askance.models.embedded`."""
CACHE_MIB = 2048


class Reader(Protocol):
    """Reads prompts of one model."""

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        """The prompt's tokens, and after how many of them it may part from other prompts, in order."""
        ...

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        """Log-probability of each token of the vocabulary after these, which are kept in blocks that end at ``ends``."""
        ...

    def text(self, token: int) -> str:
        """What a token is written as."""
        ...


class OpenVinoModel:
    """A model that reads with OpenVINO and writes with llama.cpp.

    The same request gets the same answer: how a prompt is cut into blocks depends on the prompt alone, not on what was
    read before.
    """

    repeats_itself = True
    slots = 1
    price = FREE

    def __init__(self, name: str, path: Path, sha256: str, writer: Model, reader: Reader | None = None) -> None:
        """``writer`` answers what is longer than a token; ``sha256`` is that of the weights, ``reader`` for tests."""
        self.name = name
        self.identity = f"openvino:{sha256}"
        self._path, self._sha256, self._writer, self._reader = path, sha256, writer, reader
        self._thread = ThreadPoolExecutor(1, "askance-openvino")
        self._turn = asyncio.Semaphore(1)

    async def answer(self, request: Request) -> Answer:
        """Ask once, one at a time.

        Raises:
            ModelError: No usable answer. MissingExtraError, InputError: OpenVINO is not there, or cannot read the file.
        """
        wanted = request.parameters
        if wanted.max_tokens != 1 or wanted.temperature or wanted.schema is not None:
            return await self._writer.answer(request)
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, request)

    def highest_cost(self, request: Request) -> float:
        """Nothing: it runs here."""
        return 0.0

    async def close(self) -> None:
        """Let go of the weights; what is being read is read to its end."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._reader = None

    def _read(self, request: Request) -> Answer:
        if self._reader is None:
            self._reader = load_reader(self.name, self._path, self._sha256)
        tokens, ends = self._reader.tokens(request.messages, request.framing)
        if len(tokens) >= CONTEXT:
            raise ModelError(f"{self.name}: the prompt has {len(tokens)} tokens; there is room for {CONTEXT}.")
        logprobs = self._reader.next_token(tokens, blocks(ends))
        likeliest = _likeliest(logprobs, max(request.parameters.top_logprobs, 1))
        top = [{"token": self._reader.text(each), "logprob": float(logprobs[each])} for each in likeliest]
        content = [{"token": top[0]["token"], "top_logprobs": top}]
        kept = read_logprobs({"content": content}) if request.parameters.top_logprobs else None
        return Answer(str(top[0]["token"]), kept, len(tokens), 1, 0.0, finish="length")


def blocks(ends: Sequence[int]) -> list[int]:
    """Where the blocks end that are kept of a prompt which may part from others at ``ends``.

    It depends on the prompt alone. A place is left out where so little comes after the one before, or before the last, that
    reading it again is faster than one more block.
    """
    kept: list[int] = []
    done = 0
    for place, end in enumerate(ends):
        long_enough = end - done >= (TEXT if place else OPENING) and ends[-1] - end >= OPENING
        if end == ends[-1] or long_enough:
            kept += [*range(done + BLOCK, end, BLOCK), end]
            done = end
    return [each for each in kept if each]


def _likeliest(logprobs: NDArray[np.float32], count: int) -> list[int]:
    """The likeliest tokens in order, without sorting the whole vocabulary for each verdict."""
    some = np.argpartition(-logprobs, min(count, len(logprobs)) - 1)[:count]
    return [int(each) for each in some[np.argsort(-logprobs[some], kind="stable")]]


def reads_faster_here() -> bool:
    """Whether OpenVINO is installed and this processor has the bfloat16 instructions that make it faster than llama.cpp's wheel."""
    try:
        openvino = import_optional("openvino", "openvino", "openvino")
        import_optional("openvino_genai", "openvino", "openvino-genai")
    except MissingExtraError:
        return False
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def load_reader(name: str, path: Path, sha256: str) -> Reader:
    """The reader of a GGUF file, as :func:`converted` has it.

    Raises:
        MissingExtraError: OpenVINO is not installed. InputError: It cannot read this kind of model.
    """
    openvino = import_optional("openvino", "openvino", "openvino")
    genai = import_optional("openvino_genai", "openvino", "openvino-genai")
    folder = converted(name, path, sha256)
    with _said_of(name, path, folder):
        return _OpenVinoReader(openvino, genai, folder)


def converted(name: str, path: Path, sha256: str) -> Path:
    """Where a GGUF file is in OpenVINO's form, which is made the first time (about half a minute, as large as the file).

    Raises:
        MissingExtraError: OpenVINO is not installed. InputError: It cannot read this kind of model.
    """
    folder = cache_directory() / "openvino" / sha256
    if not folder.is_dir():
        genai = import_optional("openvino_genai", "openvino", "openvino-genai")
        with _said_of(name, path, folder):
            _convert(genai, path, folder)
    return folder


@contextmanager
def _said_of(name: str, path: Path, folder: Path) -> Iterator[None]:
    """What OpenVINO fails with, in words that help."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise InputError(
            f"{name}: OpenVINO cannot use {path.name} ({first.strip()[:200]}). It reads models of the kinds Llama, Qwen2 and "
            f"Qwen3; for others write local/ in place of openvino/. What it made of the file is in {folder}, if anything."
        ) from error


def _convert(genai: Any, path: Path, folder: Path) -> None:
    """Put OpenVINO's form of a GGUF file into ``folder``, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as work:
        made = Path(work) / "made"
        made.mkdir()
        link = made / "model.gguf"  # what is made is put beside the file
        link.symlink_to(path.resolve())
        genai.LLMPipeline(str(link), "CPU", enable_save_ov_model=True)
        link.unlink()
        try:
            os.replace(made, folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
            shutil.rmtree(made)


class _OpenVinoReader:
    """A compiled model with the blocks that it has read."""

    def __init__(self, openvino: Any, genai: Any, folder: Path) -> None:
        core = openvino.Core()
        model = core.read_model(folder / "openvino_model.xml")
        head = _split_off_head(openvino, model)
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": available_threads()}
        self._halves = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        # 8 bits, the default, move log-odds by .5 and more
        settings["KV_CACHE_PRECISION"] = "bf16" if self._halves else "f32"
        self._tensor = openvino.Tensor
        self._request = core.compile_model(model, "CPU", settings).create_infer_request()
        self._head = core.compile_model(
            head, "CPU", settings | {"INFERENCE_PRECISION_HINT": "f32"}
        ).create_infer_request()
        self._tokenizer = genai.Tokenizer(str(folder))
        self._texts: dict[int, str] = {}
        self._blocks: OrderedDict[bytes, Block] = OrderedDict()
        self._bytes = 0

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        history = [{"role": role, "content": content} for role, content in messages]
        text = self._tokenizer.apply_chat_template(history, add_generation_prompt=True)
        whole = self._encode(text)
        shown = "" if framing is None else framing.before.strip()
        place = text.find(shown)
        if framing is None or not shown or place < 0:
            return whole, []
        place -= framing.before.find(shown)  # the template may take white space away
        ends = [self._shared(whole, text[: place + end]) for end in (*framing.ends, len(framing.before.rstrip()))]
        return whole, sorted({min(end, len(whole) - 1) for end in ends})

    def _shared(self, tokens: Sequence[int], beginning: str) -> int:
        """With how many of these tokens a text begins: what follows it may be one token with its last characters."""
        begin = self._encode(beginning)
        return next((i for i, pair in enumerate(zip(begin, tokens, strict=False)) if pair[0] != pair[1]), len(begin))

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        keys = [blake2b(np.asarray(tokens[:end], np.int64).tobytes(), digest_size=16).digest() for end in ends]
        known = 0
        while known < len(keys) and keys[known] in self._blocks:
            self._blocks.move_to_end(keys[known])
            known += 1
        self._request.reset_state()
        if known:
            self._set([self._blocks[key] for key in keys[:known]])
        start = ends[known - 1] if known else 0
        for end, key in zip(ends[known:], keys[known:], strict=True):
            self._infer(tokens[start:end], start)
            self._keep(key, start)
            start = end
        for begin in range(start, len(tokens), BLOCK):
            held = self._infer(tokens[begin : begin + BLOCK], begin)
        logits = np.array(self._head.infer([held])[0], np.float32).ravel()
        return logits - np.float32(np.log(np.exp(logits - logits.max()).sum()) + logits.max())

    def text(self, token: int) -> str:
        if token not in self._texts:
            self._texts[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return self._texts[token]

    def _encode(self, text: str) -> list[int]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False).input_ids.data[0]
        return [int(each) for each in encoded]

    def _infer(self, tokens: Sequence[int], past: int) -> NDArray[np.float32]:
        """What the model holds of the last of these tokens."""
        count = len(tokens)
        given = {
            "input_ids": np.asarray([tokens], np.int64),
            "attention_mask": np.ones((1, past + count), np.int64),
            "position_ids": np.arange(past, past + count, dtype=np.int64)[None],
            "beam_idx": np.zeros(1, np.int32),
            "last": np.asarray([count - 1], np.int64),
        }
        return np.array(self._request.infer(given)[0], np.float32)

    def _keep(self, key: bytes, start: int) -> None:
        """Keep what the tokens from ``start`` on left."""
        layers = [np.ascontiguousarray(each.state.data[:, :, start:]) for each in self._request.query_state()]
        if self._halves:  # bfloat16 is the upper half of single precision
            layers = [(each.view(np.uint32) >> 16).astype(np.uint16) for each in layers]
        self._blocks[key] = layers
        self._bytes += _size(layers)
        while self._bytes > CACHE_MIB * 2**20 and len(self._blocks) > 1:
            self._bytes -= _size(self._blocks.popitem(last=False)[1])

    def _set(self, blocks: Sequence[Block]) -> None:
        for place, state in enumerate(self._request.query_state()):
            values = np.concatenate([block[place] for block in blocks], axis=2)
            state.state = self._tensor((values.astype(np.uint32) << 16).view(np.float32) if self._halves else values)


def _size(block: Block) -> int:
    return sum(each.nbytes for each in block)


def _split_off_head(openvino: Any, model: Any) -> Any:
    """Have the model end with what it holds of one token (``last``), and return what makes logits of that, as a model of its own.

    So the vocabulary is gone through once and not for every token, a sixth of the work; and logits, whose differences are what
    counts, are not rounded to the 8 bits that bfloat16 has for a number.
    """
    operators = openvino.opset13
    result = model.get_results()[0]
    product = result.input_value(0).get_node()
    if product.get_type_name() != "MatMul":
        raise RuntimeError("its form of this model does not end as expected")
    before = product.input_value(0)
    held = operators.parameter(before.get_partial_shape(), openvino.Type.f32, name="held")
    product.input(0).replace_source_output(held.output(0))
    head = openvino.Model([operators.result(product.output(0))], [held], "head")
    last = operators.parameter(openvino.PartialShape([-1]), openvino.Type.i64, name="last")
    last.output(0).set_names({"last"})
    axis = operators.constant(np.array(1, np.int64))
    model.remove_result(result)
    model.add_results([operators.result(operators.gather(before, last, axis).output(0))])
    model.add_parameters([last])
    model.validate_nodes_and_infer_types()
    return head
