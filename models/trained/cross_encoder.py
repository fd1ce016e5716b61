"""A small encoder that reads question, output and input at once (a cross-encoder), with a head of score levels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ...prompts.errors import InputError
from .shared_rows import columns, lengths_of
from .torch_tools import by_length, device, load, quiet, torch_library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .bases import Base
    from .scored_text import ScoredText
    from .scorer_file import NetworkKind, ScorerFile

AT_ONCE = 16
"""Texts that go through the network together."""


class CrossEncoder:
    """A ``transformers`` encoder with a head for sequence classification; see :class:`~.network.Network`."""

    kind: ClassVar[NetworkKind] = "cross-encoder"
    base_weights = None

    def __init__(self, model: Any, tokenizer: Any, longest: int, precision: Literal["bfloat16"] | None = None) -> None:
        """``model`` and ``tokenizer`` are those of transformers; ``longest`` is in tokens."""
        self.device, self.precision = device(), precision
        self._model, self._tokenizer, self.longest = model.to(self.device), tokenizer, longest
        self._torch = torch_library()
        self.training(False)

    @classmethod
    def start(cls, base: Base, *, levels: int, longest: int, seed: int, precision: Literal["bfloat16"] | None) -> Self:
        """See :func:`~.network.start_network`."""
        torch_library().manual_seed(seed)
        model, tokenizer = _load(base.place, base.name, num_labels=levels, ignore_mismatched_sizes=True)
        most = getattr(model.config, "max_position_embeddings", longest)
        if longest > most:
            raise InputError(f"--longest {longest}: the base {base.name} reads {most} tokens at most.")
        return cls(model, tokenizer, longest, precision)

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> Self:
        """See :func:`~.network.open_network`."""
        model, tokenizer = _load(str(folder), str(folder))
        if model.config.num_labels != file.levels:
            raise InputError(
                f"{folder}: the weights tell {model.config.num_labels} levels apart, scorer.json says {file.levels}."
            )
        return cls(model, tokenizer, file.longest, file.precision)

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Tokens of each text, none cut."""
        pairs = [self._pair(each) for each in texts]
        return lengths_of(pairs, lambda *them: self._tokenizer(*them, truncation=False, verbose=False)["input_ids"])

    def _pair(self, text: ScoredText) -> tuple[str, str]:
        """The pair of texts that the tokenizer gets."""
        return text.segments

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level; shape (texts, levels)."""
        lengths = [sum(map(len, each.segments)) for each in texts]
        logits = by_length(lengths, AT_ONCE, lambda places: self._logits([texts[place] for place in places]))
        return self._torch.log_softmax(logits, dim=-1)

    def _logits(self, texts: Sequence[ScoredText]) -> Any:
        given = self._tokenizer(
            *columns([self._pair(each) for each in texts]),
            truncation="longest_first",
            max_length=self.longest,
            padding=True,
            return_tensors="pt",
        ).to(self.device)
        torch, halves = self._torch, self.precision == "bfloat16"
        with torch.set_grad_enabled(self._model.training), torch.autocast(self.device, torch.bfloat16, enabled=halves):
            return self._model(**given).logits.float()

    def parameters(self) -> list[Any]:
        """All of its numbers."""
        return [each for each in self._model.parameters() if each.requires_grad]

    def training(self, on: bool) -> None:
        """Dropout and gradients on or off."""
        self._model.train(on)

    def state(self) -> dict[str, Any]:
        """Every number by name."""
        state: dict[str, Any] = self._model.state_dict()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Set them."""
        self._model.load_state_dict(state)

    def save(self, folder: Path) -> None:
        """Write weights, configuration and tokenizer, as transformers does."""
        with quiet():
            self._model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)


def _load(place: str, name: str, **options: Any) -> tuple[Any, Any]:
    def both(use: Any) -> tuple[Any, Any]:
        tokenizer = use.AutoTokenizer.from_pretrained(place)
        return use.AutoModelForSequenceClassification.from_pretrained(place, **options), tokenizer

    found: tuple[Any, Any] = load(both, name, "an encoder")
    return found
