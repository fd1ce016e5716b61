"""A trained encoder as a graph of ONNX in its scorer's folder: read without torch (``models/trained/shared_rows.py``)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ..models.files import sha256_of_file
from ..models.trained.scorer_file import ONNX_FILE, read_scorer
from ..prompts.text_files import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from ..models.trained.encoders import SharedEncoder


def has_onnx(folder: Path) -> bool:
    """Whether a scorer's folder has such a file, of its weights and undamaged."""
    file = read_scorer(folder)
    place = file.onnx_file(folder)
    return place is not None and sha256_of_file(place) == file.onnx


def write_onnx(network: SharedEncoder, folder: Path) -> None:
    """Write the file beside the weights of the network, and its hash into ``scorer.json``.

    Raises:
        InputError: The weights in the folder are not those that ``scorer.json`` is about. AskanceError: The file cannot be written.
        MissingExtraError: onnx is not installed.
    """
    file = read_scorer(folder)
    file.check_weights(folder)
    graph = network.as_onnx()
    with whole_file(folder / ONNX_FILE) as out:
        out.write(graph)
        file.model_copy(update={"onnx": sha256(graph).hexdigest()}).write(folder)
