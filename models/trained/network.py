"""The networks that a scorer can be, and how one is begun or opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .scored_text import ScoredText
    from .scorer_file import ScorerFile


class Network(Protocol):
    """Reads texts and says how likely each score level is. Tensors are those of torch."""

    kind: str
    longest: int
    """Tokens that it reads at most."""

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Tokens of each text, none cut."""
        ...

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level, from the worst to the best; shape (texts, levels), float32.

        While the network is trained, gradients go through it.
        """
        ...

    def parameters(self) -> list[Any]:
        """The numbers that are trained."""
        ...

    def training(self, on: bool) -> None:
        """Begin or end training: dropout and gradients are on in it alone."""
        ...

    def state(self) -> dict[str, Any]:
        """Every number that training changes, by name; not copied."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Set the numbers of :meth:`state`."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights (``model.safetensors``) and all else that :func:`open_network` needs."""
        ...


def start_network(base: str, *, levels: int, longest: int, seed: int) -> Network:
    """A network that is to be trained: the weights of a base with a head of ``levels`` whose numbers come from the seed.

    Raises:
        InputError: The base is not there or is none that can be trained. MissingExtraError: A package is missing.
    """
    from .cross_encoder import CrossEncoder

    return CrossEncoder.start(base, levels=levels, longest=longest, seed=seed)


def open_network(folder: Path, file: ScorerFile) -> Network:
    """The network of a trained scorer.

    Raises:
        InputError: The folder's files are damaged. MissingExtraError: A package is missing.
    """
    from .cross_encoder import CrossEncoder

    return CrossEncoder.open(folder, file)
