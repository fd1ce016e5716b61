"""Conversion of a GGUF file to a network of 8-bit integers for ONNX Runtime, with little loss of precision.

Products of 8-bit integers are three times as fast as products in single precision on every processor with AVX2. But a
decoder's rows have a few channels that are much larger than the rest. With 8 bits for a row, the other channels would
be lost. So one rotation turns all channels. It does not change verdicts, because it is multiplied into the weights on
both sides of a row (QuaRot, Ashkboos et al. 2024, arXiv 2404.00456, section 4). The gate's output is turned in blocks
of 128. The norms' own weights are multiplied in, too.

Weights have 8 bits and one scale for each output. Processors without VNNI add the products of two neighbours in 16
bits. The scale is the finest for which two neighbours of the same sign stay within 16 bits.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.errors import import_optional
from .gguf_decoder import GgufFile, Shape, write_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

WEIGHTS = "weights.data"  # file with the weights, beside the graphs
LARGEST = 127  # largest weight, and sum of two neighbours of one sign, before rounding: 255 times 128 fits 16 bits


class Graph:
    """An ONNX graph under construction. Its weights are in a file beside it."""

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
        """Add a small array to the graph; return its name."""
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, value: NDArray[np.int8]) -> str:
        """Add an array to the file beside the graph; return its name."""
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
        """Add an input; return its name."""
        self._inputs.append(self._info(name, kind, shape))
        return name

    def result(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        """Make a value an output."""
        self._outputs.append(self._info(name, kind, shape))

    def op(self, kind: str, *inputs: str, to: Sequence[str] | None = None, domain: str = "", **settings: Any) -> str:
        """Add an operator; return the name of its first output."""
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
        """Round rows to 8 bits. Returns the rows, in the same shape, and the step of each row, shape (rows,)."""
        low = self.op("Neg", self.op("ReduceMin", x, self.across, keepdims=0))
        most = self.op("Max", self.op("ReduceMax", x, self.across, keepdims=0), low, self.least)
        step = self.op("Mul", most, self.step)
        zeros = self.op("Expand", self.zero, self.op("Shape", step))
        return self.op("QuantizeLinear", x, step, zeros, axis=0), step

    def norm(self, x: str, width: int, epsilon: float) -> str:
        """Root mean square of each row, shape (rows,)."""
        squares = self.op("ReduceSumSquare", x, self.across, keepdims=0)
        mean = self.op("Mul", squares, self.constant(np.float32(1 / width)))
        return self.op("Sqrt", self.op("Add", mean, self.constant(np.float32(epsilon))))

    def product(self, rows: str, weights: NDArray[np.int8], steps: Floats) -> str:
        """Multiply quantised rows by quantised weights (outputs, inputs). ``steps`` are the weights' steps, one for
        each output. The result is in steps of the row."""
        inputs = (rows, self.weight(weights.T), self.one, self.constant(steps), self.zero)
        return self.op("MatMulIntegerToFloat", *inputs, domain="com.microsoft")

    def in_units(self, product: str, *steps: str) -> str:
        """Multiply each row of a product by its ``steps``, so that it is no longer in steps of the row."""
        first, *others = steps
        for each in others:
            first = self.op("Mul", first, each)
        return self.op("Mul", product, self.op("Unsqueeze", first, self.across))

    def _info(self, name: str, kind: str, shape: Sequence[int | str]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, kind), shape)


def eight_bits(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Round weights (outputs, inputs) to 8-bit steps; return them with the step of each output."""
    alone, together = (np.abs(each).max(axis=1) for each in (weights, weights[:, ::2] + weights[:, 1::2]))
    steps = np.maximum(np.maximum(alone, together), np.float32(1e-12)) / np.float32(LARGEST)
    return np.rint(weights / steps[:, None]).astype(np.int8), steps


FORM = 3  # version of the conversion, part of the answers' identity; increase it when answers change
DECODER, HEAD, EMBEDDINGS = "decoder.onnx", "head.onnx", "embeddings.npy"
TOKENIZER, ABOUT = "tokenizer.json", "about.json"
PARTS = 126  # number of finer steps within one step of a weight of the vocabulary's matrix
GATED = 128  # most numbers after the gate that are turned together
ROWS = 8192  # rows of the vocabulary's matrices that are converted together


def convert(path: Path, folder: Path, longest: int, stop: Event | None = None) -> None:
    """Write a GGUF file's network, vocabulary and template into ``folder``, for prompts of ``longest`` tokens. Raises
    CannotReadError for an unknown kind, MissingExtraError without a package, and AskanceError if ``stop`` is set."""
    file = GgufFile(path, stop)
    shape = file.shape(longest)
    shape.text([("user", "Is it?")])  # a template that cannot be filled fails here, not later
    write_tokenizer(file, folder / TOKENIZER)
    turn = _rotation(shape.width)
    _write_embeddings(file, shape, turn, folder / EMBEDDINGS)
    with (folder / WEIGHTS).open("wb") as weights:
        graph = Graph(weights)
        x = graph.given("embedded", "FLOAT", ["tokens", shape.width])
        layers = _Layers(graph, file, shape, turn)
        for layer in range(shape.layers):
            x = layers.gated(layer, layers.attention(layer, x, last=layer == shape.layers - 1))
        graph.op("Identity", x, to=["held"])
        graph.result("held", "FLOAT", [1, shape.width])
        graph.save(folder / DECODER)
        graph = Graph(weights)
        _head(graph, file, shape, turn)
        graph.save(folder / HEAD)
    (folder / ABOUT).write_text(json.dumps(asdict(shape), ensure_ascii=False), encoding="utf-8")


def _write_embeddings(file: GgufFile, shape: Shape, turn: Callable[[Floats], Floats], path: Path) -> None:
    """Write the embeddings, turned and in 16 bits."""
    # not through a memory map: on a full disk the system kills a process that writes to one
    count = file.rows("token_embd.weight")
    with path.open("wb") as written:
        about = {"descr": "<f2", "fortran_order": False, "shape": (count, shape.width)}
        np.lib.format.write_array_header_1_0(written, about)
        for rows in _slices(count):
            written.write(turn(file.tensor("token_embd.weight", rows)).astype("<f2").tobytes())


def _slices(rows: int) -> list[slice]:
    return [slice(begin, begin + ROWS) for begin in range(0, rows, ROWS)]


def _rotation(width: int) -> Callable[[Floats], Floats]:
    """Make a rotation of rows with this width: random signs, a Hadamard matrix for the largest power of two that
    divides the width, and a random rotation for the rest."""
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], np.float32), width)
    two, hadamard = width & -width, _hadamard(width)
    random_rotation = np.linalg.qr(rng.normal(size=(width // two, width // two)))[0].astype(np.float32)

    def turn(rows: Floats) -> Floats:
        parts = ((rows * signs).reshape(-1, two) @ hadamard).reshape(len(rows), -1, two)  # not by row, which is slow
        across = np.ascontiguousarray(parts.transpose(0, 2, 1)).reshape(-1, width // two) @ random_rotation
        turned: Floats = across.reshape(len(rows), two, -1).transpose(0, 2, 1).reshape(rows.shape)
        return turned

    return turn


def _hadamard(width: int, most: int | None = None) -> Floats:
    """Return the largest Hadamard matrix whose size divides the width, not larger than ``most``."""
    two = min(width & -width, most or width)
    made = np.ones((1, 1), np.float32)
    while len(made) < two:
        made = np.block([[made, made], [made, -made]])
    return made / np.float32(np.sqrt(two))


class _Layers:
    """Layers of a decoder. They take embedded tokens (tokens, width), and keys and values of the tokens before."""

    def __init__(self, graph: Graph, file: GgufFile, shape: Shape, turn: Callable[[Floats], Floats]) -> None:
        self._graph, self._file, self._shape = graph, file, shape
        self._turn, self._turn_head = turn, _rotation(shape.head)
        self._until = graph.given("until", "INT32", [1])
        self._total = graph.given("total", "INT32", [])
        self._places = [graph.constant(each(shape.angles)) for each in (np.cos, np.sin)]

    def attention(self, layer: int, x: str, last: bool) -> str:
        """Hidden state after the attention: of all tokens, or only of the last token if ``last``."""
        graph, shape, tensors = self._graph, self._shape, self._file.attention(layer)
        rows, step = graph.quantised(x)
        inverse_norm = graph.op("Reciprocal", graph.norm(x, shape.width, shape.epsilon))
        weights = self._turn(
            np.concatenate(
                [tensors.q * tensors.norm, tensors.k * tensors.norm, _columns(self._by_head, tensors.v * tensors.norm)]
            )
        )
        biases = np.concatenate([tensors.bias_q, tensors.bias_k, self._by_head(tensors.bias_v[None])[0]])
        asked = graph.in_units(self._product(rows, weights), step, inverse_norm)
        asked = graph.op("Add", asked, graph.constant(biases))
        threefold = graph.constant(np.array([1, -1, (shape.heads + 2 * shape.kv_heads) * shape.head], np.int64))
        seen = graph.op(
            "GroupQueryAttention",
            *(graph.op("Reshape", asked, threefold), "", ""),
            *(*self._before(layer), self._until, self._total, *self._places),
            to=[f"seen{layer}", *self._after(layer)],
            domain="com.microsoft",
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            do_rotary=1,
            rotary_interleaved=int(shape.interleaved),
        )
        seen = graph.op("Reshape", seen, graph.constant(np.array([-1, shape.heads * shape.head], np.int64)))
        if last:  # only keys and values of the other tokens are needed
            seen, x = (graph.op("Gather", each, graph.last, axis=0) for each in (seen, x))
        rows, step = graph.quantised(seen)
        weights = _columns(self._turn, self._by_head(tensors.out))
        return graph.op("Add", x, graph.in_units(self._product(rows, weights), step))

    def gated(self, layer: int, x: str) -> str:
        """Hidden state after the gated part."""
        graph, shape, tensors = self._graph, self._shape, self._file.gated(layer)
        inverse_norm = graph.op("Reciprocal", graph.norm(x, shape.width, shape.epsilon))
        rows, step = graph.quantised(x)
        gates, ups = (self._product(rows, self._turn(each * tensors.norm)) for each in (tensors.gate, tensors.up))
        # ups stay in steps of the row; the last line multiplies these in
        gates = graph.in_units(gates, step, inverse_norm)
        gated = graph.op("Mul", graph.op("QuickGelu", gates, domain="com.microsoft", alpha=1.0), ups)
        hadamard = _hadamard(tensors.down.shape[1], GATED)

        def in_blocks(rows: Floats) -> Floats:
            turned: Floats = (rows.reshape(-1, len(hadamard)) @ hadamard).reshape(rows.shape)
            return turned

        parts = graph.op("Reshape", gated, graph.constant(np.array([-1, len(hadamard)], np.int64)))
        parts = graph.op("MatMul", parts, graph.constant(hadamard))
        gated = graph.op("Reshape", parts, graph.constant(np.array([-1, tensors.down.shape[1]], np.int64)))
        rows, gated_step = graph.quantised(gated)
        weights = in_blocks(_columns(self._turn, tensors.down))
        return graph.op("Add", x, graph.in_units(self._product(rows, weights), gated_step, step, inverse_norm))

    def _product(self, rows: str, weights: Floats) -> str:
        """Multiply quantised rows by weights; the result is in steps of the row."""
        return self._graph.product(rows, *eight_bits(weights))

    def _by_head(self, rows: Floats) -> Floats:
        return self._turn_head(rows.reshape(-1, self._shape.head)).reshape(rows.shape)

    def _before(self, layer: int) -> list[str]:
        kept: list[int | str] = [1, self._shape.kv_heads, "before", self._shape.head]
        return [self._graph.given(f"{kind}{layer}", "FLOAT", kept) for kind in ("keys", "values")]

    def _after(self, layer: int) -> list[str]:
        left: list[int | str] = [1, self._shape.kv_heads, "after", self._shape.head]
        names = [f"{each}_after{layer}" for each in ("keys", "values")]
        for each in names:
            self._graph.result(each, "FLOAT", left)
        return names


def _columns(turn: Callable[[Floats], Floats], matrix: Floats) -> Floats:
    """Turn the outputs of a matrix (outputs, inputs)."""
    return np.ascontiguousarray(turn(np.ascontiguousarray(matrix.T)).T)


def _head(graph: Graph, file: GgufFile, shape: Shape, turn: Callable[[Floats], Floats]) -> None:
    """Add the head, from a hidden state to logits."""
    # weights in two parts, coarse and fine, because small differences between logits matter
    name = "output.weight" if file.has("output.weight") else "token_embd.weight"
    norm, count = file.tensor("output_norm.weight"), file.rows(name)
    coarse, fine = (np.empty((count, shape.width), np.int8) for _ in range(2))
    steps = np.empty(count, np.float32)
    for rows in _slices(count):
        weights = turn(file.tensor(name, rows) * norm)
        coarse[rows], steps[rows] = eight_bits(weights)
        left = weights - coarse[rows] * steps[rows, None]
        fine[rows] = np.rint(left / steps[rows, None] * PARTS)
    x = graph.given("held", "FLOAT", [1, shape.width])
    rows8, step = graph.quantised(x)
    both = graph.op("Add", graph.product(rows8, coarse, steps), graph.product(rows8, fine, steps / np.float32(PARTS)))
    over_norm = graph.op("Reciprocal", graph.norm(x, shape.width, shape.epsilon))
    graph.op("Identity", graph.in_units(both, step, over_norm), to=["logits"])
    graph.result("logits", "FLOAT", [1, count])
