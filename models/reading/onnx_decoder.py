"""A GGUF file as a network of 8-bit integers for ONNX Runtime, made so that little is lost.

Products of 8-bit integers are three times as fast as those in single precision on every processor with AVX2. But rows of what a
decoder holds have a few channels that are much larger than the rest, which 8 bits for a row would drown. So all of it is
turned by one rotation, which no verdict depends on: it is multiplied into the weights on both sides of it (QuaRot, Ashkboos et al.
2024, arXiv 2404.00456, section 4). What goes through the gate is turned where it comes out, in blocks of 128. The norms' own weights
are multiplied in, too. What the first token of every prompt leaves is far larger than all else, and all others look at it: it is
computed once and for all in single precision (IntactKV, Liu et al. 2024, arXiv 2403.01241, section 3).

Weights have 7 bits, one scale for each output: two products of a row add up to 16 bits on processors without VNNI.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ...prompts.errors import import_optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinja2 import Template
    from numpy.typing import NDArray

    from ..base import Message

    Floats = NDArray[np.float32]

FORM = 1
"""Counts up when what is made of a file answers differently; a part of the answers' identity."""
DECODER, HEAD, WEIGHTS, EMBEDDINGS, FIRST, TOKENIZER, ABOUT = (
    "decoder.onnx",
    "head.onnx",
    "weights.data",
    "embeddings.npy",
    "first.npy",
    "tokenizer.json",
    "about.json",
)
LARGEST = 63
"""Of a weight in 7 bits."""
GATED = 128
"""Numbers behind the gate that are turned together, at most."""
ROWS = 8192
"""Rows of the vocabulary's matrices that are made together."""
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class CannotReadError(Exception):
    """A GGUF file is of a kind that is not read; the message says of which."""


@dataclass(frozen=True)
class Shape:
    """How large a decoder is, and what its words are framed by."""

    layers: int
    heads: int
    kv_heads: int
    head: int
    """Numbers in one head's key."""
    width: int
    epsilon: float
    rope_base: float
    interleaved: bool
    """Whether neighbours are turned together by their place, not halves."""
    template: str
    bos: str
    eos: str
    longest: int
    first: int
    """The token that every prompt begins with."""

    def text(self, messages: Sequence[Message]) -> str:
        """Messages in the model's form, up to where it answers."""
        said = [{"role": role, "content": content} for role, content in messages]
        return str(self._form.render(messages=said, add_generation_prompt=True, bos_token=self.bos, eos_token=self.eos))

    @cached_property
    def _form(self) -> Template:
        return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(self.template)


class _File:
    """What is in a GGUF file."""

    def __init__(self, path: Path) -> None:
        gguf = import_optional("gguf", "onnx", "gguf")
        self._dequantize = import_optional("gguf.quants", "onnx", "gguf").dequantize
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self._tensors = {each.name: each for each in reader.tensors}

    def value(self, name: str, otherwise: Any = None) -> Any:
        """A field's value."""
        return self.fields[name].contents() if name in self.fields else otherwise

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._tensors

    def tensor(self, name: str, rows: slice = slice(None)) -> Floats:
        """A tensor, or some of its rows, in single precision; shape (outputs, inputs)."""
        found = self._tensors[name]
        floats: Floats = self._dequantize(np.asarray(found.data)[rows], found.tensor_type).astype(np.float32)
        return floats

    def rows(self, name: str) -> int:
        """Rows of a tensor."""
        return len(self._tensors[name].data)


def shape_of(file: _File, longest: int) -> Shape:
    """The shape of the decoder in a file.

    Raises:
        CannotReadError: It is of a kind that is not read here.
    """
    kind = file.value("general.architecture")
    if kind not in ("qwen2", "llama"):
        raise CannotReadError(f"a model of the kind {kind}")
    if (words := file.value("tokenizer.ggml.pre")) not in ("qwen2", "smollm"):
        raise CannotReadError(f"a vocabulary of the kind {words}")
    if file.has("rope_freqs.weight") or file.value(f"{kind}.rope.scaling.type", "none") != "none":
        raise CannotReadError("places that are scaled")
    template = file.value("tokenizer.chat_template")
    if not template:
        raise CannotReadError("no chat template")
    heads, width = file.value(f"{kind}.attention.head_count"), file.value(f"{kind}.embedding_length")
    tokens = file.value("tokenizer.ggml.tokens")
    bos, eos = (tokens[file.value(f"tokenizer.ggml.{each}_token_id", 0)] for each in ("bos", "eos"))
    return Shape(
        layers=file.value(f"{kind}.block_count"),
        heads=heads,
        kv_heads=file.value(f"{kind}.attention.head_count_kv", heads),
        head=file.value(f"{kind}.attention.key_length", width // heads),
        width=width,
        epsilon=float(file.value(f"{kind}.attention.layer_norm_rms_epsilon")),
        rope_base=float(file.value(f"{kind}.rope.freq_base", 10000.0)),
        interleaved=kind == "llama",
        template=template,
        bos=bos,
        eos=eos,
        longest=longest,
        first=-1,
    )


def convert(path: Path, folder: Path, longest: int) -> None:
    """Put a GGUF file's network, vocabulary and template into ``folder``; ``longest`` is the most tokens of a prompt.

    Raises:
        CannotReadError: It is of a kind that is not read here. MissingExtraError: A package is not installed.
    """
    file = _File(path)
    shape = shape_of(file, longest)
    tokenizer = _write_tokenizer(file, folder / TOKENIZER)
    begun = tokenizer.encode(shape.text([("user", "")]), add_special_tokens=False).ids
    shape = replace(shape, first=begun[0])
    turn = _rotation(shape.width)
    embeddings = np.lib.format.open_memmap(
        folder / EMBEDDINGS, "w+", np.float16, (file.rows("token_embd.weight"), shape.width)
    )
    for rows in _slices(len(embeddings)):
        embeddings[rows] = turn(file.tensor("token_embd.weight", rows))
    embeddings.flush()
    with (folder / WEIGHTS).open("wb") as weights:
        graph = _Graph(weights)
        np.save(folder / FIRST, _decoder(graph, file, shape, turn))
        graph.save(folder / DECODER)
        graph = _Graph(weights)
        _head(graph, file, shape, turn)
        graph.save(folder / HEAD)
    (folder / ABOUT).write_text(json.dumps(asdict(shape), ensure_ascii=False), encoding="utf-8")


def _write_tokenizer(file: _File, path: Path) -> Any:
    tokenizers = import_optional("tokenizers", "onnx", "tokenizers")
    tokens, merges = (file.value(f"tokenizer.ggml.{each}") for each in ("tokens", "merges"))
    numbers = {text: number for number, text in enumerate(tokens)}
    try:
        words = tokenizers.models.BPE(vocab=numbers, merges=[tuple(each.split(" ")) for each in merges])
    except Exception as error:  # the package has no kind of its own
        raise CannotReadError(f"a damaged vocabulary: {error}") from error
    made = tokenizers.Tokenizer(words)
    before = tokenizers.pre_tokenizers
    if file.value("tokenizer.ggml.pre") == "qwen2":
        first = before.Split(tokenizers.Regex(_QWEN), "isolated")
    else:
        first = before.Digits(individual_digits=True)
    bytes_ = before.ByteLevel(add_prefix_space=False, use_regex=file.value("tokenizer.ggml.pre") != "qwen2")
    made.pre_tokenizer = before.Sequence([first, bytes_])
    made.decoder = tokenizers.decoders.ByteLevel()
    kinds = file.value("tokenizer.ggml.token_type")
    special = [text for text, kind in zip(tokens, kinds, strict=True) if kind in (3, 4)]  # of control, and the user's
    made.add_special_tokens([tokenizers.AddedToken(each, normalized=False) for each in special])
    made.save(str(path))
    return made


def _slices(rows: int) -> list[slice]:
    return [slice(begin, begin + ROWS) for begin in range(0, rows, ROWS)]


def _rotation(width: int) -> Callable[[Floats], Floats]:
    """What turns rows of this width: random signs, then a Hadamard matrix for the powers of two, a random rotation for what is left."""
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], np.float32), width)
    two, hadamard = width & -width, _hadamard(width)
    rest = np.linalg.qr(rng.normal(size=(width // two, width // two)))[0].astype(np.float32)

    def turn(rows: Floats) -> Floats:
        parts = ((rows * signs).reshape(-1, two) @ hadamard).reshape(len(rows), -1, two)  # not by row, which is slow
        across = np.ascontiguousarray(parts.transpose(0, 2, 1)).reshape(-1, width // two) @ rest
        turned: Floats = across.reshape(len(rows), two, -1).transpose(0, 2, 1).reshape(rows.shape)
        return turned

    return turn


def _hadamard(width: int, most: int | None = None) -> Floats:
    """The largest Hadamard matrix whose size divides the width, not larger than ``most``."""
    two = min(width & -width, most or width)
    made = np.ones((1, 1), np.float32)
    while len(made) < two:
        made = np.block([[made, made], [made, -made]])
    return made / np.float32(np.sqrt(two))


class _Graph:
    """An ONNX graph that is being made, with its large numbers in a file beside it."""

    def __init__(self, weights: Any) -> None:
        self._onnx = import_optional("onnx", "onnx", "onnx")
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self.zero = self.constant(np.uint8(128))
        self.one = self.constant(np.float32(1))
        self.step = self.constant(np.float32(1 / 127))
        self.least = self.constant(np.float32(1e-12))
        self.across = self.constant(np.array([1], np.int64))
        self.last = self.constant(np.array([-1], np.int64))

    def constant(self, value: Any) -> str:
        """A small array that is part of the graph."""
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, value: NDArray[np.int8]) -> str:
        """An array that is put into the file beside the graph."""
        self._weights.write(bytes(-self._weights.tell() % 4096))
        made = self._onnx.TensorProto(
            name=f"c{len(self._constants)}",
            dims=value.shape,
            data_type=self._onnx.TensorProto.INT8,
            data_location=self._onnx.TensorProto.EXTERNAL,
        )
        where = {"location": WEIGHTS, "offset": self._weights.tell(), "length": value.nbytes}
        for key, said in where.items():
            made.external_data.add(key=key, value=str(said))
        self._weights.write(np.ascontiguousarray(value).tobytes())
        self._constants.append(made)
        return str(made.name)

    def given(self, name: str, kind: str, shape: Sequence[int | str]) -> str:
        """An input."""
        self._inputs.append(self._info(name, kind, shape))
        return name

    def result(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        """Make a value an output."""
        self._outputs.append(self._info(name, kind, shape))

    def op(self, kind: str, *inputs: str, to: Sequence[str] | None = None, domain: str = "", **settings: Any) -> str:
        """Add an operator; its (first) output's name."""
        outputs = list(to or [f"v{len(self._nodes)}"])
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), outputs, domain=domain, **settings))
        return outputs[0]

    def save(self, path: Path) -> None:
        """Write the graph."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, path.stem, self._inputs, self._outputs, self._constants)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        path.write_bytes(helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString())

    def quantised(self, x: str) -> tuple[str, str]:
        """Rows in 8 bits, shape as before, and what one step is of each row, shape (rows,)."""
        low = self.op("Neg", self.op("ReduceMin", x, self.across, keepdims=0))
        most = self.op("Max", self.op("ReduceMax", x, self.across, keepdims=0), low, self.least)
        step = self.op("Mul", most, self.step)
        zeros = self.op("Expand", self.zero, self.op("Shape", step))
        return self.op("QuantizeLinear", x, step, zeros, axis=0), step

    def one_over_norm(self, x: str, width: int, epsilon: float) -> str:
        """1 / root mean square of each row, shape (rows,)."""
        squares = self.op("ReduceSumSquare", x, self.across, keepdims=0)
        mean = self.op("Mul", squares, self.constant(np.float32(1 / width)))
        return self.op("Reciprocal", self.op("Sqrt", self.op("Add", mean, self.constant(np.float32(epsilon)))))

    def product(self, rows: str, weights: NDArray[np.int8], steps: Floats) -> str:
        """Quantised rows times weights (outputs, inputs) of so large a step for each output, in steps of the row."""
        inputs = (rows, self.weight(weights.T), self.one, self.constant(steps), self.zero)
        return self.op("MatMulIntegerToFloat", *inputs, domain="com.microsoft")

    def in_units(self, product: str, *steps: str) -> str:
        """A product of rows whose step is the product of ``steps``."""
        first, *others = steps
        for each in others:
            first = self.op("Mul", first, each)
        return self.op("Mul", product, self.op("Unsqueeze", first, self.across))

    def _info(self, name: str, kind: str, shape: Sequence[int | str]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, kind), shape)


def _seven_bits(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    steps = np.maximum(np.abs(weights).max(axis=1), np.float32(1e-12)) / np.float32(LARGEST)
    return np.rint(weights / steps[:, None]).astype(np.int8), steps


def _decoder(graph: _Graph, file: _File, shape: Shape, turn: Callable[[Floats], Floats]) -> Floats:
    """Embedded tokens (tokens, width), and keys and values of those before, to what the decoder holds of the last token.

    Returns keys and values of the first token of all prompts; shape (layers, 2, kv_heads, head).
    """
    turn_head = _rotation(shape.head)
    first = file.tensor("token_embd.weight", slice(shape.first, shape.first + 1))[0]
    kept_of_first = []

    def back(matrix: Floats) -> Floats:
        """Weights whose outputs are what the decoder holds."""
        return np.ascontiguousarray(turn(np.ascontiguousarray(matrix.T)).T)

    def by_head(rows: Floats) -> Floats:
        return turn_head(rows.reshape(-1, shape.head)).reshape(rows.shape)

    def normed(vector: Floats, norm: Floats) -> Floats:
        scaled: Floats = vector / np.sqrt((vector**2).mean() + np.float32(shape.epsilon)) * norm
        return scaled

    x = graph.given("embedded", "FLOAT", ["tokens", shape.width])
    until = graph.given("until", "INT32", [1])
    total = graph.given("total", "INT32", [])
    turns = np.outer(np.arange(shape.longest), shape.rope_base ** -(np.arange(0, shape.head, 2) / shape.head))
    places = [graph.constant(each(turns).astype(np.float32)) for each in (np.cos, np.sin)]
    flat = graph.constant(np.array([-1, shape.heads * shape.head], np.int64))
    threefold = graph.constant(np.array([1, -1, (shape.heads + 2 * shape.kv_heads) * shape.head], np.int64))
    kept: list[int | str] = [1, shape.kv_heads, "before", shape.head]
    left: list[int | str] = [1, shape.kv_heads, "after", shape.head]
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        norm = file.tensor(f"{block}attn_norm.weight")
        q, k, v = (file.tensor(f"{block}attn_{each}.weight") for each in "qkv")
        biased = file.has(f"{block}attn_q.bias")
        bias_q, bias_k, bias_v = (
            file.tensor(f"{block}attn_{each}.bias") if biased else np.zeros(len(rows), np.float32)
            for each, rows in zip("qkv", (q, k, v), strict=True)
        )
        seen_first = normed(first, norm)
        key, value = k @ seen_first + bias_k, v @ seen_first + bias_v  # at place 0, which turns nothing
        kept_of_first.append([each.reshape(shape.kv_heads, -1) for each in (key, by_head(value))])

        rows, step = graph.quantised(x)
        over_norm = graph.one_over_norm(x, shape.width, shape.epsilon)
        v = np.ascontiguousarray(by_head(np.ascontiguousarray((v * norm).T)).T)
        asked = graph.product(rows, *_seven_bits(turn(np.concatenate([q * norm, k * norm, v]))))
        asked = graph.in_units(asked, step, over_norm)
        if biased:
            asked = graph.op("Add", asked, graph.constant(np.concatenate([bias_q, bias_k, by_head(bias_v)])))
        before = [graph.given(f"{each}{layer}", "FLOAT", kept) for each in ("keys", "values")]
        after = [f"{each}_after{layer}" for each in ("keys", "values")]
        for each in after:
            graph.result(each, "FLOAT", left)
        seen = graph.op(
            "GroupQueryAttention",
            *(graph.op("Reshape", asked, threefold), "", "", *before, until, total, *places),
            to=[f"seen{layer}", *after],
            domain="com.microsoft",
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            do_rotary=1,
            rotary_interleaved=int(shape.interleaved),
        )
        seen = graph.op("Reshape", seen, flat)
        if layer == shape.layers - 1:  # of the others only keys and values are needed
            seen, x = (graph.op("Gather", each, graph.last, axis=0) for each in (seen, x))
        out = file.tensor(f"{block}attn_output.weight")
        by_query = np.repeat(value.reshape(shape.kv_heads, -1), shape.heads // shape.kv_heads, axis=0)
        first = first + out @ by_query.ravel()
        rows, step = graph.quantised(seen)
        x = graph.op("Add", x, graph.in_units(graph.product(rows, *_seven_bits(back(by_head(out)))), step))

        norm = file.tensor(f"{block}ffn_norm.weight")
        gate, up, down = (file.tensor(f"{block}ffn_{each}.weight") for each in ("gate", "up", "down"))
        seen_first = normed(first, norm)
        opened = gate @ seen_first
        first = first + down @ (opened / (1 + np.exp(-opened)) * (up @ seen_first))
        rows, step = graph.quantised(x)
        over_norm = graph.one_over_norm(x, shape.width, shape.epsilon)
        gates = graph.in_units(graph.product(rows, *_seven_bits(turn(gate * norm))), step, over_norm)
        ups = graph.product(rows, *_seven_bits(turn(up * norm)))  # in units of the row, whose size goes by below
        gated = graph.op("Mul", graph.op("QuickGelu", gates, domain="com.microsoft", alpha=1.0), ups)
        blocks = _hadamard(down.shape[1], GATED)
        parts = graph.op("Reshape", gated, graph.constant(np.array([-1, len(blocks)], np.int64)))
        parts = graph.op("MatMul", parts, graph.constant(blocks))
        gated = graph.op("Reshape", parts, graph.constant(np.array([-1, down.shape[1]], np.int64)))
        rows, gated_step = graph.quantised(gated)
        down = (back(down).reshape(-1, len(blocks)) @ blocks).reshape(down.shape)
        x = graph.op("Add", x, graph.in_units(graph.product(rows, *_seven_bits(down)), gated_step, step, over_norm))
    graph.op("Identity", x, to=["held"])
    graph.result("held", "FLOAT", [1, shape.width])
    return np.array(kept_of_first, np.float32)


def _head(graph: _Graph, file: _File, shape: Shape, turn: Callable[[Floats], Floats]) -> None:
    """What the decoder holds of a token to logits. The weights are twice 7 bits, as their differences are what counts."""
    name = "output.weight" if file.has("output.weight") else "token_embd.weight"
    norm, count = file.tensor("output_norm.weight"), file.rows(name)
    coarse, fine = (np.empty((count, shape.width), np.int8) for _ in range(2))
    steps = np.empty(count, np.float32)
    for rows in _slices(count):
        weights = turn(file.tensor(name, rows) * norm)
        coarse[rows], steps[rows] = _seven_bits(weights)
        left = weights - coarse[rows] * steps[rows, None]
        fine[rows] = np.rint(left / steps[rows, None] * (2 * LARGEST))
    x = graph.given("held", "FLOAT", [1, shape.width])
    rows8, step = graph.quantised(x)
    both = graph.op(
        "Add", graph.product(rows8, coarse, steps), graph.product(rows8, fine, steps / np.float32(2 * LARGEST))
    )
    graph.op("Identity", graph.in_units(both, step, graph.one_over_norm(x, shape.width, shape.epsilon)), to=["logits"])
    graph.result("logits", "FLOAT", [1, count])
