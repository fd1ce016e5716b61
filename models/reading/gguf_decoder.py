"""A decoder in a GGUF file: weights, tokenizer and shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ...prompts.errors import AskanceError, import_optional

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from jinja2 import Template
    from numpy.typing import NDArray

    from ..base import Message

    Floats = NDArray[np.float32]

_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder, and the template that frames its messages."""

    layers: int
    heads: int
    kv_heads: int
    head: int  # numbers in one head's key
    width: int
    epsilon: float
    rope_base: float
    interleaved: bool  # whether rotary positions turn pairs of neighbours; else pairs from the two halves
    template: str
    bos: str
    eos: str
    longest: int

    @property
    def angles(self) -> Floats:
        """Angle by which each pair of numbers is turned at each place; shape (longest, head / 2)."""
        turns = np.arange(self.longest)[:, None] * self.rope_base ** -(np.arange(0, self.head, 2) / self.head)
        angles: Floats = turns.astype(np.float32)
        return angles

    def text(self, messages: Sequence[Message]) -> str:
        """Return messages in the model's form, up to the beginning of its answer."""
        said = [{"role": role, "content": content} for role, content in messages]
        return str(self._form.render(messages=said, add_generation_prompt=True, bos_token=self.bos, eos_token=self.eos))

    @cached_property
    def _form(self) -> Template:
        return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(self.template)


@dataclass(frozen=True)
class Attention:
    """The weights (outputs, inputs) and biases of a layer's attention."""

    norm: Floats
    q: Floats
    k: Floats
    v: Floats
    bias_q: Floats
    bias_k: Floats
    bias_v: Floats
    out: Floats


@dataclass(frozen=True)
class Gated:
    """The weights (outputs, inputs) of a layer's gated part."""

    norm: Floats
    gate: Floats
    up: Floats
    down: Floats


class CannotReadError(Exception):
    """Error for a GGUF file of a kind that cannot be read; the message names the kind."""


class GgufFile:
    """Weights and tokenizer of a decoder in a GGUF file."""

    def __init__(self, path: Path, stop: Event | None = None) -> None:
        self._stop = stop
        gguf = import_optional("gguf", "onnx", "gguf")
        self._dequantize = import_optional("gguf.quants", "onnx", "gguf").dequantize
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self._tensors = {each.name: each for each in reader.tensors}

    def value(self, name: str, otherwise: Any = None) -> Any:
        """Return a field's value."""
        return self.fields[name].contents() if name in self.fields else otherwise

    def has(self, name: str) -> bool:
        """Whether there is a tensor with this name."""
        return name in self._tensors

    def tensor(self, name: str, rows: slice = slice(None)) -> Floats:
        """Return a tensor, or some rows, as float32, (outputs, inputs). Raises AskanceError if ``stop`` is set."""
        if self._stop is not None and self._stop.is_set():
            raise AskanceError("The model was not made ready, as the command was ended meanwhile.")
        found = self._tensors[name]
        floats: Floats = self._dequantize(np.asarray(found.data)[rows], found.tensor_type).astype(np.float32)
        return floats

    def rows(self, name: str) -> int:
        """Return the number of rows of a tensor."""
        return len(self._tensors[name].data)

    def shape(self, longest: int) -> Shape:
        """Return the decoder's shape, for prompts of ``longest`` tokens. Raises CannotReadError for an unknown kind."""
        kind = self.value("general.architecture")
        if kind not in ("qwen2", "llama"):
            raise CannotReadError(f"a model of the kind {kind}")
        if (words := self.value("tokenizer.ggml.pre")) not in ("qwen2", "smollm"):
            raise CannotReadError(f"a vocabulary of the kind {words}")
        if self.has("rope_freqs.weight") or self.value(f"{kind}.rope.scaling.type", "none") != "none":
            raise CannotReadError("places that are scaled")
        template = self.value("tokenizer.chat_template")
        if not template:
            raise CannotReadError("no chat template")
        heads, width = self.value(f"{kind}.attention.head_count"), self.value(f"{kind}.embedding_length")
        tokens = self.value("tokenizer.ggml.tokens")
        bos, eos = (tokens[self.value(f"tokenizer.ggml.{each}_token_id", 0)] for each in ("bos", "eos"))
        return Shape(
            layers=self.value(f"{kind}.block_count"),
            heads=heads,
            kv_heads=self.value(f"{kind}.attention.head_count_kv", heads),
            head=self.value(f"{kind}.attention.key_length", width // heads),
            width=width,
            epsilon=float(self.value(f"{kind}.attention.layer_norm_rms_epsilon")),
            rope_base=float(self.value(f"{kind}.rope.freq_base", 10000.0)),
            interleaved=kind == "llama",
            template=template,
            bos=bos,
            eos=eos,
            longest=longest,
        )

    def attention(self, layer: int) -> Attention:
        """Return the weights of a layer's attention."""
        block = f"blk.{layer}.attn_"
        norm, q, k, v, out = (self.tensor(f"{block}{part}.weight") for part in ("norm", "q", "k", "v", "output"))
        bias_q, bias_k, bias_v = (
            self.tensor(name) if self.has(name := f"{block}{part}.bias") else np.zeros(len(of), np.float32)
            for part, of in zip("qkv", (q, k, v), strict=True)
        )
        return Attention(norm, q, k, v, bias_q, bias_k, bias_v, out)

    def gated(self, layer: int) -> Gated:
        """Return the weights of a layer's gated part."""
        return Gated(*(self.tensor(f"blk.{layer}.ffn_{each}.weight") for each in ("norm", "gate", "up", "down")))


def write_tokenizer(file: GgufFile, path: Path) -> None:
    """Write the file's tokenizer in the form of the package tokenizers."""
    tokenizers = import_optional("tokenizers", "onnx", "tokenizers")
    tokens, merges = (file.value(f"tokenizer.ggml.{part}") for part in ("tokens", "merges"))
    numbers = {text: number for number, text in enumerate(tokens)}
    try:
        words = tokenizers.models.BPE(vocab=numbers, merges=[tuple(merge.split(" ")) for merge in merges])
    except Exception as error:  # the package has no kind of its own
        raise CannotReadError(f"a damaged vocabulary: {error}") from error
    made = tokenizers.Tokenizer(words)
    splitters = tokenizers.pre_tokenizers
    if file.value("tokenizer.ggml.pre") == "qwen2":
        first = splitters.Split(tokenizers.Regex(_QWEN), "isolated")
    else:
        first = splitters.Digits(individual_digits=True)
    bytes_ = splitters.ByteLevel(add_prefix_space=False, use_regex=file.value("tokenizer.ggml.pre") != "qwen2")
    made.pre_tokenizer = splitters.Sequence([first, bytes_])
    made.decoder = tokenizers.decoders.ByteLevel()
    kinds = file.value("tokenizer.ggml.token_type")
    special = [text for text, kind in zip(tokens, kinds, strict=True) if kind in (3, 4)]  # control and user tokens
    made.add_special_tokens([tokenizers.AddedToken(text, normalized=False) for text in special])
    made.save(str(path))
