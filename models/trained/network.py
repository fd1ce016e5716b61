"""The networks that a scorer can be, how one is begun or opened, and the texts that they read.

A text is a unit test u with a prompt p and a response r (LMUnit §3.1), and the rationale that a network may write first
(§3.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ...prompts.templates import template

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...prompts.checklist import Question
    from ...prompts.examples import Example
    from ..base import Message
    from .bases import Base
    from .encoders import CrossEncoder
    from .scorer_file import NetworkKind, ScorerFile


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One question about one output, as two segments and as a conversation: a network reads the one or the other."""

    asked: str
    """The question, with what its rubric and reference answer say."""
    output: str
    given: str = ""
    """The sources of the output: the reference, the input and the context."""
    messages: tuple[Message, ...] = ()
    """The conversation in which a judge is asked the question, for a network that reads that; else none."""

    @property
    def read(self) -> tuple[str, str]:
        """The output and what it was made from: the same for all questions on it that see the same."""
        return self.output, self.given

    @property
    def segments(self) -> tuple[str, str]:
        """Question and output, and what the output was made from."""
        return f"{self.asked}\n{self.output}", self.given


def scored_text(question: Question, example: Example, messages: tuple[Message, ...] = ()) -> ScoredText:
    """The text of a question about an example's output.

    The evaluator's prompt is in the messages alone: an encoder has learned how to judge, it is not told. Neither is
    ``good``, as P(yes) is what it says, whichever answer speaks for the output.
    """
    asked = [question.text, *(each for each in (question.rubric, question.reference) if each)]
    beside = (example.reference, example.input, example.context) if question.sees == "all" else ()
    given = [each for each in beside if each]
    return ScoredText("\n".join(asked), example.output or "", "\n".join(given), messages)


class Rationale(NamedTuple):
    """Why an answer is yes or no, in words: a turn of its own in the judge's conversation."""

    text: str
    is_whole: bool = True
    """Whether it came to its end; else it was cut off."""


def asked_why(text: ScoredText) -> tuple[Message, ...]:
    """The conversation in which the rationale is asked for, before the answer."""
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{template('rationale_first')}"))


def after_rationale(text: ScoredText, rationale: str) -> ScoredText:
    """The text whose conversation goes on with a rationale, and then asks for the answer in one word."""
    said: tuple[Message, ...] = (("assistant", rationale), ("user", template("rationale_then")))
    return replace(text, messages=(*asked_why(text), *said))


def asked_for(text: ScoredText) -> tuple[Message, ...]:
    """The conversation that asked for the rationale, from a text made by :func:`after_rationale`."""
    return text.messages[:-2]


class ReadingNetwork(Protocol):
    """Reads texts and says how likely each score level is."""

    longest: int
    """Tokens that it reads at most."""

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Tokens of each text, none cut."""
        ...

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level, from the worst to the best; shape (texts, levels), float32, on the
        processor.

        They sum to less than 1 where the network could also say something else.
        """
        ...


class Network(ReadingNetwork, Protocol):
    """One of torch's, which can be trained: while it is, gradients go through its levels."""

    device: str
    """Device in torch's terms: ``cpu`` or ``cuda``."""

    @property
    def kind(self) -> NetworkKind:
        """Which network it is."""
        ...

    @property
    def precision(self) -> Literal["bfloat16"] | None:
        """Precision of reading, as in :class:`~.scorer_file.ScorerFile`."""
        ...

    @property
    def base_weights(self) -> str | None:
        """Hash of the weights that are not its own but its base's; None where it has them all."""
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
        """Write the weights (:data:`~.scorer_file.WEIGHTS_FILES`) and all else that :func:`open_network` needs."""
        ...


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

    It is an encoder with a head of ``levels``, or a causal model with LoRA matrices of that ``rank``, which says no or
    yes. An encoder reads in the precision named; one of BERT's kind reads an output once for all questions on it.

    Raises:
        InputError: The base is none that can be trained. MissingExtraError: A package is missing.
    """
    if base.is_causal:
        from .causal import CausalNetwork

        return CausalNetwork.start(base, longest=longest, seed=seed, rank=rank)
    return _encoder("shared-encoder" if base.is_bert else "cross-encoder").start(
        base, levels=levels, longest=longest, seed=seed, precision=None if precision == "float32" else precision
    )


def open_network(folder: Path, file: ScorerFile) -> Network:
    """The network of a trained scorer.

    Raises:
        InputError: The folder's files are damaged, or its base is not there. MissingExtraError: A package is missing.
    """
    if file.kind == "causal":
        from .causal import CausalNetwork

        return CausalNetwork.open(folder, file)
    return _encoder(file.kind).open(folder, file)


def _encoder(kind: NetworkKind) -> type[CrossEncoder]:
    from .encoders import CrossEncoder, SharedEncoder

    return SharedEncoder if kind == "shared-encoder" else CrossEncoder
