"""Models ``onnx/NAME``: ONNX Runtime reads verdicts from a GGUF file in 8-bit integers (:mod:`.onnx_decoder`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import AskanceError, InputError, MissingExtraError, import_optional
from ..embedded.servers import available_threads
from ..files import cache_directory, made_whole
from .consistency import CONSISTENCY, PROCESSOR, consistent_reader
from .gguf_decoder import CannotReadError, Shape
from .onnx_decoder import ABOUT, DECODER, EMBEDDINGS, FORM, HEAD, TOKENIZER, convert
from .reading_model import BLOCK, CONTEXT, Block, KeptBlocks, Reader, normalised, parted

if TYPE_CHECKING:
    from threading import Event

    from ...prompts.prompt import Framing
    from ..base import Message

LIBRARY = "onnxruntime"
PRECISIONS = {"8-bit integers": 0, "8-bit integers on one thread": 1}  # threads, fastest first; 0: all
logger = logging.getLogger(__name__)


def identity_of(sha256: str) -> str:
    """Return the identity of a model that ONNX Runtime reads: the hash of its weights and :data:`FORM`."""
    return f"onnx-{FORM}:{sha256}"


def reads_faster_here() -> bool:
    """Whether the extra ``onnx`` is installed and faster here than llama.cpp's wheel: the processor has AVX2."""
    try:
        for package in ("onnx", "gguf", "onnxruntime", "tokenizers"):
            import_optional(package, "onnx", package)
    except MissingExtraError:
        return False
    return "avx2" in PROCESSOR.read_text(encoding="utf-8").split() if PROCESSOR.exists() else False


def load_reader(name: str, path: Path, sha256: str, stop: Event | None = None) -> Reader:
    """Make the reader of a GGUF file. Raises like :func:`made_ready`, and InputError for damaged files."""
    runtime, tokenizers = (import_optional(each, "onnx", each) for each in ("onnxruntime", "tokenizers"))
    folder = made_ready(name, path, sha256, stop)
    makers = {
        settings: partial(_OnnxReader, runtime, tokenizers, folder, threads or available_threads())
        for settings, threads in PRECISIONS.items()
    }
    try:
        return consistent_reader(name, makers, folder / CONSISTENCY, LIBRARY)
    except AskanceError:
        raise
    except Exception as error:  # both packages have kinds of their own, without one for all
        first = next(iter(str(error).splitlines()), "no reason given")
        raise InputError(
            f"{name}: ONNX Runtime cannot use what was made of {path.name} ({first[:200]}). Delete {folder} and run "
            "the same again: it is made anew."
        ) from error


def folder_of(sha256: str) -> Path:
    """Return the folder with a GGUF file in ONNX Runtime's form."""
    return cache_directory() / "onnx" / f"{sha256}-{FORM}"


def made_ready(name: str, path: Path, sha256: str, stop: Event | None = None) -> Path:
    """Return the folder with a GGUF file in ONNX Runtime's form. It is made once, in two minutes of two cores, and has
    twice the file's size. Raises MissingExtraError without a package, InputError for a file that cannot be read, and
    AskanceError if there is no room or ``stop`` is set."""
    folder = folder_of(sha256)
    if not folder.is_dir():
        logger.info("%s: making it ready for ONNX Runtime, which takes some minutes the first time", name)
        try:
            made_whole(folder, lambda part: convert(path, part, CONTEXT, stop))
        except AskanceError:
            raise
        except Exception as error:  # gguf raises whatever a damaged file leads it to
            advice = (
                "" if isinstance(error, CannotReadError) else " If the file is damaged or cut short, fetch it again."
            )
            raise InputError(
                f"{name}: {path.name} is not read by ONNX Runtime ({error}).{advice} It reads models of the kinds "
                "Qwen2 and Llama with the vocabularies of Qwen2 and SmolLM; for others write local/ in place of onnx/."
            ) from error
    return folder


class _OnnxReader:
    def __init__(self, runtime: Any, tokenizers: Any, folder: Path, threads: int) -> None:
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.log_severity_level = 3
        self._decoder, self._head = (
            runtime.InferenceSession(folder / file, settings, providers=["CPUExecutionProvider"])
            for file in (DECODER, HEAD)
        )
        self._shape = Shape(**json.loads((folder / ABOUT).read_text(encoding="utf-8")))
        self._embeddings = np.load(folder / EMBEDDINGS, mmap_mode="r")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
        layers = range(self._shape.layers)
        self._before = [f"{kind}{layer}" for layer in layers for kind in ("keys", "values")]
        self._after = [f"{kind}_after{layer}" for layer in layers for kind in ("keys", "values")]
        nothing = np.zeros((1, self._shape.kv_heads, 0, self._shape.head), np.float32)
        self._begun: Block = [nothing] * len(self._before)  # keys and values before a prompt's first token
        self._kept = KeptBlocks()

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        return parted(self._shape.text(messages), framing, self._encode)

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        known, keys = self._kept.begun(tokens, ends)
        start = ends[len(known) - 1] if known else 0
        state = [np.concatenate(values, axis=2) for values in zip(*known, strict=True)] or self._begun
        for end, key in zip(ends[len(known) :], keys[len(known) :], strict=True):
            _, state = self._read(tokens[:end], state)
            self._kept.keep(key, [np.ascontiguousarray(values[:, :, start:]) for values in state])
            start = end
        for end in range(start + BLOCK, len(tokens) + BLOCK, BLOCK):
            held, state = self._read(tokens[:end], state)
        return normalised(self._head.run(["logits"], {"held": held})[0].ravel())

    def text(self, token: int) -> str:
        return str(self._tokenizer.decode([token], skip_special_tokens=False))

    def forget(self) -> None:
        self._kept = KeptBlocks()

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _read(self, tokens: Sequence[int], left: Block) -> tuple[NDArray[Any], Block]:
        """Return the last token's hidden state, and all keys and values. ``left`` has those of the first tokens."""
        new = list(tokens[left[0].shape[2] :])
        inputs = {
            "embedded": self._embeddings[new].astype(np.float32),
            "until": np.array([len(tokens) - 1], np.int32),
            "total": np.array(len(tokens), np.int32),
            **dict(zip(self._before, left, strict=True)),
        }
        held, *after = self._decoder.run(["held", *self._after], inputs)
        return held, after
