"""The networks that a scorer can be, how one is begun or opened, and the texts that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from .scored_text import ScoredText

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .bases import Base
    from .encoders import CrossEncoder
    from .scorer_file import NetworkKind, Precision, ScorerFile


class ReadingNetwork(Protocol):
    """Reads texts and says how likely each score level is."""

    longest: int
    """Tokens that it reads at most."""

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Tokens of each text, none cut."""

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each level, worst first; shape (texts, levels), float32, on the processor; the sum may be
        below 1."""


class Network(ReadingNetwork, Protocol):
    """A network of torch, which can be trained. In training, gradients go through its levels."""

    device: str
    """Device in torch's terms: ``cpu`` or ``cuda``."""

    @property
    def kind(self) -> NetworkKind:
        """Kind of the network."""

    @property
    def precision(self) -> Precision:
        """Precision of reading, in training too."""

    @property
    def base_weights(self) -> str | None:
        """Hash of the weights that are not its own but its base's; None where it has them all."""

    def parameters(self) -> list[Any]:
        """The numbers that are trained."""

    def training(self, on: bool) -> None:
        """Begin or end training: dropout and gradients are on in it alone."""

    def state(self) -> dict[str, Any]:
        """Every number that training changes, by name; not copied."""

    def restore(self, state: dict[str, Any]) -> None:
        """Set the numbers of :meth:`state`."""

    def save(self, folder: Path) -> None:
        """Write the weights (:data:`~.scorer_file.WEIGHTS_FILES`) and all else that :func:`open_network` needs."""


def start_network(
    base: Base,
    *,
    levels: int,
    longest: int,
    seed: int,
    rank: int,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> Network:
    """A network that is to be trained, whose new numbers come from the seed.

    It is an encoder with a head of ``levels``, or a causal model with LoRA matrices of that ``rank``, which says a
    level in one token: no or yes, or a number. An encoder of BERT's kind reads an output once for all questions on
    it. Raises InputError where the base is none that can be trained, or has no token for a level, and
    MissingExtraError where a package is missing.
    """
    how: dict[str, Any] = {"levels": levels, "longest": longest, "seed": seed}
    how["precision"] = None if precision == "float32" else precision
    if base.is_causal:
        from .causal import CausalNetwork

        return CausalNetwork.start(base, rank=rank, **how)
    return _encoder("shared-encoder" if base.is_bert else "cross-encoder").start(base, **how)


def open_network(folder: Path, file: ScorerFile) -> Network:
    """The network of a trained scorer. Raises InputError where the folder's files are damaged, or its base is not
    there, and MissingExtraError where a package is missing."""
    if file.kind == "causal":
        from .causal import CausalNetwork

        return CausalNetwork.open(folder, file)
    return _encoder(file.kind).open(folder, file)


def _encoder(kind: NetworkKind) -> type[CrossEncoder]:
    from .encoders import CrossEncoder, SharedEncoder

    return SharedEncoder if kind == "shared-encoder" else CrossEncoder
