"""What the networks have in common: torch, quiet loading, and reading texts of like length together."""

from __future__ import annotations

import importlib
import logging
import warnings
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...prompts.errors import InputError, import_optional
from .shared_rows import of_like_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def torch_library() -> Any:
    """The module ``torch``.

    Raises:
        MissingExtraError: It is not installed.
    """
    return import_optional("torch", "train", "torch")


def device() -> str:
    """``cuda`` where torch finds a GPU, else ``cpu``."""
    return "cuda" if torch_library().cuda.is_available() else "cpu"


def by_length(lengths: Sequence[int], at_once: int, read: Callable[[list[int]], Any]) -> Any:
    """Read texts of like length together, so that little of a batch is padding.

    Args:
        lengths: Of each text.
        at_once: Texts in a batch.
        read: Given the places of some texts, a tensor with a row for each.

    Returns:
        The rows of all texts, in their order, on the processor.
    """
    torch = torch_library()
    batches = [*of_like_length(lengths, at_once)]
    rows = torch.cat([read(each).cpu() for each in batches])
    back = torch.empty(len(lengths), dtype=torch.long)
    back[torch.tensor([*chain(*batches)], dtype=torch.long)] = torch.arange(len(lengths))
    return rows[back]


def load(what: Callable[[Any], Any], name: str, kind: str) -> Any:
    """Call a function with the module ``transformers``, without its progress bars and reports.

    Raises:
        InputError: transformers cannot load ``name`` as a ``kind``.
    """
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
    """Without transformers' bars and warnings, and its report that a head is new, which it has to be."""
    tools = import_optional("transformers.utils.logging", "train", "transformers")
    reading: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    level, root, bar = tools.get_verbosity(), logging.getLogger("transformers"), reading.tqdm
    before = root.level
    tools.set_verbosity_error()
    tools.disable_progress_bar()
    reading.tqdm = lambda each, **_: each
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        reading.tqdm = bar
        tools.set_verbosity(level)
        root.setLevel(before)
