"""Models ``openvino/NAME``: OpenVINO reads verdicts from a GGUF file, on processors where it is faster than llama.cpp.

OpenVINO reads the same 4-bit weights with integer and bfloat16 instructions of newer processors. llama.cpp's wheel is
built without these instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError, MissingExtraError, import_optional
from ..embedded.servers import available_threads
from ..files import cache_directory, made_whole
from .consistency import ALONE, CONSISTENCY, consistent_reader
from .reading_model import BLOCK, Block, KeptBlocks, Reader, as_long, normalised, parted

if TYPE_CHECKING:
    from threading import Event

    from ...prompts.prompt import Framing
    from ..base import Message

LIBRARY = "openvino"
PRECISIONS: dict[str, dict[str, str]] = {
    "bfloat16": {"INFERENCE_PRECISION_HINT": "bf16", "KV_CACHE_PRECISION": "bf16"},
    "single precision": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    "single precision without 8-bit steps": {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    },
}
"""Settings by the name of the precision, fastest first. Keys and values in 8 bits, OpenVINO's default, would move
log-odds by .5 or more. By default it also rounds the inputs of products with 4-bit weights to 8 bits."""
AS_LARGE = 1.2  # largest size of a converted model, as a multiple of the GGUF file's size


def reads_faster_here() -> bool:
    """Whether OpenVINO is installed and faster here than llama.cpp's wheel: the processor has bfloat16."""
    try:
        openvino = import_optional("openvino", "openvino", "openvino")
        import_optional("openvino_genai", "openvino", "openvino-genai")
    except MissingExtraError:
        return False
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def identity_of(sha256: str) -> str:
    """Return the identity of a model that OpenVINO reads: the hash of its weights, and a version of the reading."""
    return f"openvino-3:{sha256}"


def load_reader(name: str, path: Path, sha256: str, stop: Event | None = None) -> Reader:
    """Make the reader of a GGUF file; ``stop`` is not used, as this is quick. Raises like :func:`made_ready`."""
    openvino = import_optional("openvino", "openvino", "openvino")
    genai = import_optional("openvino_genai", "openvino", "openvino-genai")
    folder = made_ready(name, path, sha256)
    makers = {precision: partial(_OpenVinoReader, openvino, genai, folder, precision) for precision in PRECISIONS}
    if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        makers.pop("bfloat16", None)
    with _said_of(name, path, folder):
        return consistent_reader(name, makers, folder / CONSISTENCY, LIBRARY)


def folder_of(sha256: str) -> Path:
    """Return the folder with a GGUF file in OpenVINO's form."""
    return cache_directory() / "openvino" / sha256


def made_ready(name: str, path: Path, sha256: str) -> Path:
    """Return the folder with a GGUF file in OpenVINO's form, made the first time (half a minute, as large as the file).
    Raises MissingExtraError without OpenVINO, and InputError if it cannot read this kind of model."""
    folder = folder_of(sha256)
    if not folder.is_dir():
        genai = import_optional("openvino_genai", "openvino", "openvino-genai")
        with _said_of(name, path, folder):
            made_whole(folder, lambda part: _convert(genai, path, part), needed=AS_LARGE * path.stat().st_size)
    return folder


@contextmanager
def _said_of(name: str, path: Path, folder: Path) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, OSError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise InputError(
            f"{name}: OpenVINO cannot use {path.name} ({first.strip()[:200]}). It reads models of the kinds Llama, "
            f"Qwen2 and Qwen3; for others write local/ in place of openvino/. What it made of the file is in "
            f"{folder}, if anything."
        ) from error


def _convert(genai: Any, path: Path, folder: Path) -> None:
    link = folder / "model.gguf"  # the converter writes beside the file
    link.symlink_to(path.resolve())
    genai.LLMPipeline(str(link), "CPU", enable_save_ov_model=True)
    link.unlink()


class _OpenVinoReader:
    def __init__(self, openvino: Any, genai: Any, folder: Path, precision: str) -> None:
        core = openvino.Core()
        model = core.read_model(folder / "openvino_model.xml")
        head = _split_off_head(openvino, model)
        common = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": available_threads()}
        self._tensor = openvino.Tensor
        self._request = core.compile_model(model, "CPU", common | PRECISIONS[precision]).create_infer_request()
        self._head = core.compile_model(
            head, "CPU", common | {"INFERENCE_PRECISION_HINT": "f32"}
        ).create_infer_request()
        self._tokenizer = genai.Tokenizer(str(folder))
        self._kept = KeptBlocks()
        self.rows = ALONE

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        history = [{"role": role, "content": content} for role, content in messages]
        text = self._tokenizer.apply_chat_template(history, add_generation_prompt=True)
        return parted(text, framing, self._encode)

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        self._blocks(tokens, ends)
        for begin in range(ends[-1] if ends else 0, len(tokens), BLOCK):
            held = self._infer_one(tokens[begin : begin + BLOCK], begin)
        return self._logprobs(held)[0]

    def next_tokens(self, prompts: Sequence[Sequence[int]], ends: Sequence[int]) -> list[NDArray[np.float32]]:
        known, _ = self._kept.begun(prompts[0], ends)
        if len(known) < len(ends):
            known = self._blocks(prompts[0], ends)
        if self.rows == ALONE:
            return [self._logprobs(self._held_of([each], ends[-1], known))[0] for each in prompts]
        filled = [*prompts, *[prompts[0]] * (-len(prompts) % self.rows)]
        return self._logprobs(self._held_of(filled, ends[-1], known))[: len(prompts)]

    def forget(self) -> None:
        self._kept = KeptBlocks()

    def _held_of(self, prompts: Sequence[Sequence[int]], start: int, known: Sequence[Block]) -> NDArray[np.float32]:
        """Hidden state of the last token of each prompt. All prompts begin with the known blocks, up to ``start``."""
        width = as_long(len(prompts[0]) - start)
        tokens, places = np.zeros((2, len(prompts), width), np.int64)
        seen = np.ones((len(prompts), start + width), np.int64)
        for row, prompt in enumerate(prompts):
            end = prompt[start:]
            begin = width - len(end)
            tokens[row, begin:], places[row, begin:] = end, np.arange(start, len(prompt))
            seen[row, start : start + begin] = 0
        self._request.reset_state()
        self._set(known, len(prompts))
        return self._infer(tokens, seen, places)

    def text(self, token: int) -> str:
        return str(self._tokenizer.decode([token], skip_special_tokens=False))

    def _encode(self, text: str) -> list[int]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False).input_ids.data[0]
        return [int(each) for each in encoded]

    def _blocks(self, tokens: Sequence[int], ends: Sequence[int]) -> list[Block]:
        """Return the keys and values of each block of a prompt. Blocks that are not kept are read now."""
        known, keys = self._kept.begun(tokens, ends)
        self._request.reset_state()
        if known:
            self._set(known)
        start = ends[len(known) - 1] if known else 0
        for end, key in zip(ends[len(known) :], keys[len(known) :], strict=True):
            self._infer_one(tokens[start:end], start)
            known.append(self._left(start))
            self._kept.keep(key, known[-1])
            start = end
        return known

    def _logprobs(self, held: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Log-probabilities of the next token for each row of ``held``, shape (prompts, 1, width)."""
        logits = np.array(self._head.infer([held])[0], np.float32)
        return [normalised(row) for row in logits.reshape(len(held), -1)]

    def _infer_one(self, tokens: Sequence[int], past: int) -> NDArray[np.float32]:
        end = past + len(tokens)
        return self._infer(np.asarray([tokens], np.int64), np.ones((1, end), np.int64), np.arange(past, end)[None])

    def _infer(
        self, tokens: NDArray[np.int64], seen: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Hidden states of prompts side by side, (prompts, 1, width), with a mask ``seen`` and positions ``places``."""
        prompts, count = tokens.shape
        inputs = {
            "input_ids": tokens,
            "attention_mask": seen,
            "position_ids": places,
            "beam_idx": np.arange(prompts, dtype=np.int32),
            "last": np.asarray([count - 1], np.int64),
        }
        return np.array(self._request.infer(inputs)[0], np.float32)

    def _left(self, start: int) -> Block:
        """Keys and values of the tokens from ``start`` on, in 16 bits if 16 bits hold them exactly."""
        return [_halved(np.ascontiguousarray(each.state.data[:, :, start:])) for each in self._request.query_state()]

    def _set(self, blocks: Sequence[Block], prompts: int = 1) -> None:
        for place, state in enumerate(self._request.query_state()):
            values = np.concatenate([_whole(block[place]) for block in blocks], axis=2)
            state.state = self._tensor(np.repeat(values, prompts, axis=0))


def _halved(values: NDArray[np.float32]) -> NDArray[Any]:
    """Return the upper 16 bits of each number (a bfloat16) if all lower bits are 0; else the numbers unchanged."""
    bits = values.view(np.uint32)
    return values if (bits & 0xFFFF).any() else (bits >> 16).astype(np.uint16)


def _whole(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return the numbers that were given to :func:`_halved`."""
    return values if values.dtype == np.float32 else (values.astype(np.uint32) << 16).view(np.float32)


def _split_off_head(openvino: Any, model: Any) -> Any:
    """Let the model end with the hidden state of one token (``last``), and return its head as a separate model."""
    # The head then runs for one token only, which saves a sixth of the work, and logits are not rounded to bfloat16.
    operators = openvino.opset13
    result = model.get_results()[0]
    product = result.input_value(0).get_node()
    if product.get_type_name() != "MatMul":
        raise RuntimeError("its form of this model does not end as expected")
    hidden_state = product.input_value(0)
    held = operators.parameter(hidden_state.get_partial_shape(), openvino.Type.f32, name="held")
    product.input(0).replace_source_output(held.output(0))
    head = openvino.Model([operators.result(product.output(0))], [held], "head")
    last = operators.parameter(openvino.PartialShape([-1]), openvino.Type.i64, name="last")
    last.output(0).set_names({"last"})
    axis = operators.constant(np.array(1, np.int64))
    model.remove_result(result)
    model.add_results([operators.result(operators.gather(hidden_state, last, axis).output(0))])
    model.add_parameters([last])
    model.validate_nodes_and_infer_types()
    return head
