"""A small encoder that reads question, output and input at once (a cross-encoder), with a head of score levels."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...prompts.errors import InputError, import_optional
from .bases import base_folder, torch_library
from .scorer_file import WEIGHTS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .scored_text import ScoredText
    from .scorer_file import ScorerFile

AT_ONCE = 16
"""Texts that go through the network together; of like length, so that little of it is padding."""


class CrossEncoder:
    """A ``transformers`` encoder with a head for sequence classification; see :class:`~.network.Network`."""

    kind = "cross-encoder"

    def __init__(self, model: Any, tokenizer: Any, longest: int) -> None:
        """``model`` and ``tokenizer`` are those of transformers; ``longest`` is in tokens."""
        self._model, self._tokenizer, self.longest = model, tokenizer, longest
        self._torch = torch_library()
        self.training(False)

    @classmethod
    def start(cls, base: str, *, levels: int, longest: int, seed: int) -> CrossEncoder:
        """See :func:`~.network.start_network`."""
        torch_library().manual_seed(seed)
        model, tokenizer = _load(base_folder(base), base, num_labels=levels, ignore_mismatched_sizes=True)
        most = getattr(model.config, "max_position_embeddings", longest)
        if longest > most:
            raise InputError(f"--longest {longest}: the base {base} reads {most} tokens at most.")
        return cls(model, tokenizer, longest)

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> CrossEncoder:
        """See :func:`~.network.open_network`."""
        model, tokenizer = _load(str(folder), str(folder))
        if model.config.num_labels != file.levels:
            raise InputError(
                f"{folder}: the weights tell {model.config.num_labels} levels apart, scorer.json says {file.levels}."
            )
        return cls(model, tokenizer, file.longest)

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Tokens of each text, none cut."""
        if not texts:
            return []
        first, second = zip(*(each.segments for each in texts), strict=True)
        encoded = self._tokenizer(list(first), list(second), truncation=False, verbose=False)
        return [len(each) for each in encoded["input_ids"]]

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level; shape (texts, levels)."""
        torch = self._torch
        lengths = [sum(map(len, each.segments)) for each in texts]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        parts = []
        for begin in range(0, len(order), AT_ONCE):
            first, second = zip(*(texts[place].segments for place in order[begin : begin + AT_ONCE]), strict=True)
            given = self._tokenizer(
                list(first),
                list(second),
                truncation="longest_first",
                max_length=self.longest,
                padding=True,
                return_tensors="pt",
            )
            with torch.set_grad_enabled(self._model.training):
                parts.append(self._model(**given).logits.float())
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order, dtype=torch.long)] = torch.arange(len(order))
        return torch.log_softmax(torch.cat(parts)[back], dim=-1)

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
        with _quiet():
            self._model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)
        assert (folder / WEIGHTS_FILE).is_file()


def _load(place: str, name: str, **options: Any) -> tuple[Any, Any]:
    transformers = import_optional("transformers", "train", "transformers")
    with _quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(place)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(place, **options)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise InputError(
                f"{name}: transformers cannot load it as an encoder ({first.strip()[:200]}). Name minilm, the folder of a "
                "model, or one on the hub that this machine reaches."
            ) from error
    return model, tokenizer


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' bars, and its report that the head is new, which it has to be."""
    tools = import_optional("transformers.utils.logging", "train", "transformers")
    level, root = tools.get_verbosity(), logging.getLogger("transformers")
    before = root.level
    tools.set_verbosity_error()
    tools.disable_progress_bar()
    try:
        yield
    finally:
        tools.set_verbosity(level)
        root.setLevel(before)
