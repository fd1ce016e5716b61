"""A trained causal model as one GGUF file: the base's file, with the matrices that training changed in their place."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..prompts.errors import AskanceError, InputError, import_optional

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

HEADS = re.compile(r"\.attention\.head_count(_kv)?$")
CLOSE = 1e-3
"""Largest difference between a matrix as transformers has it and as the file does, by which it is known to be the same one."""


def write_gguf(base: Path, merged: Iterable[tuple[str, NDArray[Any], NDArray[Any]]], target: Path) -> None:
    """Copy a GGUF file with some of its matrices changed; all else, the tokenizer too, stays as it is.

    A changed matrix is written in 16 bits (F16), whatever it was in: the steps of 4 bits are wider than what LoRA changes. So
    is the one that yes and no are read from: llama.cpp rounds what it multiplies with a coarser one to 8 bits.

    Args:
        base: The file.
        merged: Name of each changed matrix as transformers has it, e.g. ``model.layers.0.mlp.up_proj``, with its numbers before
            and after.
        target: The new file, written whole or not at all.

    Raises:
        InputError: A matrix is not found in the file. AskanceError: The new file cannot be written.
        MissingExtraError: gguf is not installed.
    """
    gguf = import_optional("gguf", "train", "gguf")
    reader = gguf.GGUFReader(base)
    fields = {name: each.contents() for name, each in reader.fields.items() if not name.startswith("tokenizer.")}
    there = {each.name: each for each in reader.tensors}
    names = _names(gguf, fields)
    changed: dict[str, NDArray[Any]] = {}
    for name, before, after in merged:
        tensor = there.get(f"{names.get_name(name) or name}.weight")
        if tensor is None:
            raise InputError(f"{base}: there is no matrix {name} in this file, so it cannot be written anew.")
        turned = _arranged_as(gguf.dequantize(tensor.data, tensor.tensor_type), before, after, fields)
        if turned is None:
            raise InputError(
                f"{base}: {tensor.name} is kept in an order that is not known here, so it cannot be written anew."
            )
        changed[tensor.name] = turned.astype(np.float16)
    last = there.get("output.weight", there["token_embd.weight"])
    changed[last.name] = gguf.dequantize(last.data, last.tensor_type).astype(np.float16)
    partial = target.with_suffix(".part")
    try:
        _write(gguf, reader, fields["general.architecture"], changed, partial)
        os.replace(partial, target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise AskanceError(
            f"{target}: cannot be written ({error}). Make room, and run the same command again."
        ) from None


def _names(gguf: Any, fields: dict[str, Any]) -> Any:
    """From transformers' names to those of the file."""
    wanted = fields["general.architecture"]
    kind = next(each for each, name in gguf.MODEL_ARCH_NAMES.items() if name == wanted)
    return gguf.get_tensor_name_map(kind, int(fields[f"{wanted}.block_count"]))


def _arranged_as(
    there: NDArray[Any], before: NDArray[Any], after: NDArray[Any], fields: dict[str, Any]
) -> NDArray[Any] | None:
    """``after`` in the order in which the file has ``before``; None where that is not known."""
    for order in _orders(len(before), fields):
        if np.abs(before[order] - there).max() < CLOSE:
            turned: NDArray[Any] = after[order]
            return turned
    return None


def _orders(rows: int, fields: dict[str, Any]) -> Iterator[NDArray[Any]]:
    """Rows as they are, and with the two halves of each attention head interleaved, as Llama's files have queries and keys."""
    yield np.arange(rows)
    for heads in {each for name, each in fields.items() if HEADS.search(name) and isinstance(each, int)}:
        if rows % (2 * heads) == 0:
            yield np.arange(rows).reshape(heads, 2, rows // heads // 2).swapaxes(1, 2).reshape(rows)


def _write(gguf: Any, reader: Any, architecture: str, changed: dict[str, NDArray[Any]], target: Path) -> None:
    writer = gguf.GGUFWriter(target, architecture, endianess=reader.endianess)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    half = gguf.GGMLQuantizationType.F16
    tensors = [
        (each.name, changed[each.name], half) if each.name in changed else (each.name, each.data, each.tensor_type)
        for each in reader.tensors
    ]
    for name, data, kind in tensors:
        writer.add_tensor_info(name, data.shape, data.dtype, data.nbytes, kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for _, data, _ in tensors:
            writer.write_tensor_data(data, tensor_endianess=reader.endianess)
    finally:
        writer.close()
