"""An ONNX graph of 8-bit integers that is being made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.errors import import_optional

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

WEIGHTS = "weights.data"
"""The file beside the graphs that holds their weights."""
LARGEST = 127
"""Of a weight, and of two neighbours of one sign together, before rounding: 255 times 128 are 16 bits."""
CONSTANT = 0.25
"""Of a row's norm: so large that rounding it to the row's step is little, and so small that rounding its weights is."""


class Graph:
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

    def norm(self, x: str, width: int, epsilon: float) -> str:
        """Root mean square of each row, shape (rows,)."""
        squares = self.op("ReduceSumSquare", x, self.across, keepdims=0)
        mean = self.op("Mul", squares, self.constant(np.float32(1 / width)))
        return self.op("Sqrt", self.op("Add", mean, self.constant(np.float32(epsilon))))

    def with_constant(self, x: str, norm: str) -> str:
        """Rows with two channels more, each a quarter of the row's norm: what is added to a product of rows of norm 1
        is a weight of theirs."""
        channel = self.op("Unsqueeze", self.op("Mul", norm, self.constant(np.float32(CONSTANT))), self.across)
        return self.op("Concat", x, channel, channel, axis=1)

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


def eight_bits(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Weights (outputs, inputs) in steps of each output, and these steps."""
    alone, together = (np.abs(each).max(axis=1) for each in (weights, weights[:, ::2] + weights[:, 1::2]))
    steps = np.maximum(np.maximum(alone, together), np.float32(1e-12)) / np.float32(LARGEST)
    return np.rint(weights / steps[:, None]).astype(np.int8), steps


def for_constant(lost: Floats, steps: Floats) -> NDArray[np.int8]:
    """Weights of the two constant channels that add ``lost`` (outputs,), in steps of each output; shape (outputs,
    2)."""
    both = np.clip(np.rint(lost / CONSTANT / steps), -LARGEST, LARGEST).astype(np.int8)
    return np.stack([both // 2, both - both // 2], axis=1)
