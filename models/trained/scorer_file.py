"""``scorer.json``: the description of a trained scorer, beside its weights."""

from __future__ import annotations

import os
from hashlib import sha256
from math import exp, log
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...prompts.errors import InputError
from ...prompts.rows import validate_row
from ...prompts.text_files import read_object, write_whole
from ..files import file_identity

SCHEMA: Literal["askance.scorer/1"] = "askance.scorer/1"
SCORER_FILE = "scorer.json"
GGUF_FILE = "model.gguf"  # a causal scorer as one file for the embedded server, if it was asked for
ONNX_FILE = "model.onnx"  # a shared encoder as one file that is read without torch, if it was asked for
NetworkKind = Literal["cross-encoder", "shared-encoder", "causal"]
Precision = Literal["bfloat16"] | None  # precision of a network's reading; None is single precision
WEIGHTS_FILES = {
    "cross-encoder": "model.safetensors",
    "shared-encoder": "model.safetensors",
    "causal": "adapter_model.safetensors",
}
"""Weights files by kind. A causal model has LoRA matrices, under peft's file name."""
CLIP = 1e-6  # P(yes) is kept this far from 0 and 1 before its log-odds are computed
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ScorerFile(BaseModel):
    """A scorer without its weights: the content of ``scorer.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)

    schema_: Annotated[Literal["askance.scorer/1"], Field(alias="schema")] = SCHEMA
    kind: NetworkKind
    """Kind of the network; ``models/trained/network.py`` opens it."""
    base: str = Field(min_length=1)
    """The base that was trained. A causal scorer needs its base again when it is opened."""
    base_weights: Hash | None = None
    """Hash of a causal scorer's base weights."""
    levels: int = Field(ge=2, le=11)
    """Number of score levels; 2 levels are no and yes."""
    longest: int = Field(ge=16)
    """Most tokens of a text that the scorer reads."""
    precision: Precision = None
    rationale_tokens: int | None = Field(None, ge=4)
    """Most tokens of the rationale that the scorer writes before each answer; None if it answers at once."""
    slope: float = Field(1.0, gt=0)
    """a in the calibration P(yes) = sigmoid(a·logit(p) + b), where p is the network's value; fitted on validation."""
    shift: float = 0.0
    """b in the calibration."""
    weights: Hash
    """SHA-256 of the weights."""
    onnx: Hash | None = None
    """SHA-256 of ``model.onnx``, which has the same weights."""
    questions: tuple[str, ...] = ()
    """Ids of the questions that the scorer was trained on."""

    def calibrated(self, p: float) -> float:
        """Return the calibrated P(yes), in [0, 1], for the network's value ``p``."""
        if self.slope == 1.0 and self.shift == 0.0:
            return p
        p = min(max(p, CLIP), 1.0 - CLIP)
        return 1.0 / (1.0 + exp(-(self.slope * log(p / (1.0 - p)) + self.shift)))

    @property
    def identity(self) -> str:
        """Hash of the weights and the settings that answers depend on. It is the same with torch and ONNX Runtime."""
        without = {"base", "questions", "onnx"}
        return sha256(self.model_dump_json(exclude=without, exclude_none=True).encode()).hexdigest()

    def weights_file(self, folder: Path) -> Path:
        """Return the file of the weights."""
        return folder / WEIGHTS_FILES[self.kind]

    def check_weights(self, folder: Path) -> None:
        """Raise InputError if the weights in a folder are not this scorer's."""
        weights = self.weights_file(folder)
        if file_identity(weights) != self.weights:
            raise InputError(f"{weights}: these weights do not belong to scorer.json; copy the whole folder.")

    def onnx_file(self, folder: Path) -> Path | None:
        """Return the file that is read without torch, or None if there is none."""
        place = folder / ONNX_FILE
        return place if self.kind == "shared-encoder" and place.is_file() else None

    def write(self, folder: Path) -> None:
        """Write ``scorer.json`` into the scorer's folder, whole or not at all. Raises AskanceError if it cannot."""
        write_whole(folder / SCORER_FILE, self.model_dump_json(indent=1) + "\n")


def is_scorer(name: str | Path) -> bool:
    """Whether a name is the folder of a trained scorer."""
    return bool(str(name)) and os.path.isfile(Path(name) / SCORER_FILE)  # Path.is_file fails if a name is too long


def read_scorer(folder: Path) -> ScorerFile:
    """Read a folder's ``scorer.json``. Raises InputError if the file is damaged, or the weights are missing."""
    file = folder / SCORER_FILE
    scorer = validate_row(ScorerFile, read_object(file, "scorer"), str(file))
    if not scorer.weights_file(folder).is_file() and scorer.onnx_file(folder) is None:
        raise InputError(
            f"{scorer.weights_file(folder)}: the scorer's weights are not there; train it again, or copy them."
        )
    return scorer
