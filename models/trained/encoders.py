"""Encoders with a head of score levels, which read an output for each question, or once for all questions on it."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ...prompts.errors import InputError, import_optional
from .bases import by_length, device, load, quiet, torch_library
from .scored_text import ScoredText
from .shared_rows import INPUTS, ROWS, columns, inputs_of, lengths_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .bases import Base
    from .scorer_file import NetworkKind, ScorerFile
    from .shared_rows import SharedRow

AT_ONCE = 16
"""Texts that go through the network together."""


class CrossEncoder:
    """A ``transformers`` encoder with a head for sequence classification; see :class:`~.network.Network`."""

    kind: ClassVar[NetworkKind] = "cross-encoder"
    base_weights = None

    def __init__(self, model: Any, tokenizer: Any, longest: int, precision: Literal["bfloat16"] | None = None) -> None:
        """Take the ``model`` and ``tokenizer`` of transformers; ``longest`` is in tokens."""
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
        return text.segments

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level; shape (texts, levels)."""
        lengths = [sum(map(len, each.segments)) for each in texts]
        logits = by_length(lengths, AT_ONCE, lambda places: self._logits([texts[place] for place in places]))
        return self._torch.log_softmax(logits, dim=-1)

    def _logits(self, texts: Sequence[ScoredText]) -> Any:
        inputs = self._tokenizer(
            *columns([self._pair(text) for text in texts]),
            truncation="longest_first",
            max_length=self.longest,
            padding=True,
            return_tensors="pt",
        ).to(self.device)
        torch, halves = self._torch, self.precision == "bfloat16"
        with torch.set_grad_enabled(self._model.training), torch.autocast(self.device, torch.bfloat16, enabled=halves):
            return self._model(**inputs).logits.float()

    def parameters(self) -> list[Any]:
        """All trainable numbers of the network."""
        return [numbers for numbers in self._model.parameters() if numbers.requires_grad]

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


OPSET = 17
"""Version of the operators in an ONNX graph, which ONNX Runtime has read for years."""


class SharedEncoder(CrossEncoder):
    """A BERT encoder that reads an output with its input once, and all questions on it beside it.

    A question's tokens see the output and each other. The output's tokens see only themselves. So the answer to a
    question does not depend on the other questions, and a further question costs no more than its own words. The head
    is given the mean of the question's tokens. An encoder of sentences was trained to put a text's meaning into the
    mean, so it learns from fewer outputs than by the first token (``experiments/results/shared_reading.json``).
    """

    kind: ClassVar[NetworkKind] = "shared-encoder"

    def _pair(self, text: ScoredText) -> tuple[str, str]:
        """The output and its input: the question's tokens are read beside them, and not counted."""
        return text.read

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level; shape (texts, levels)."""
        rows = rows_of(texts, self._cut)
        most = max(len(row.places) for row in rows)
        lengths = [len(row.tokens) for row in rows]
        logits = by_length(lengths, ROWS, lambda numbers: self._logits_of([rows[number] for number in numbers], most))
        # Each text's place in the batch, with the row and the column of its logits.
        cells = [(place, number, at) for number, row in enumerate(rows) for at, place in enumerate(row.places)]
        _, row_numbers, columns_in_row = zip(*sorted(cells), strict=True)
        return self._torch.log_softmax(logits[[*row_numbers], [*columns_in_row]], dim=-1)

    def _cut(self, *columns: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        encoded = self._tokenizer(
            *columns, truncation="longest_first", max_length=self.longest, return_token_type_ids=True
        )
        return [*zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)]

    def _logits_of(self, rows: Sequence[SharedRow], most: int) -> Any:
        """Shape (rows, most, levels); where a row has fewer questions, what stands there means nothing."""
        torch = self._torch
        given = {name: torch.from_numpy(each).to(self.device) for name, each in inputs_of(rows, most).items()}
        with torch.set_grad_enabled(self._model.training):
            return self.logits(**given)

    def logits(self, shares: Any, **given: Any) -> Any:
        """Logits of the levels, shape (rows, questions, levels), from the tensors of
        :func:`~.shared_rows.inputs_of`."""
        torch, model = self._torch, self._model
        with torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16"):
            read = model.bert(**given).last_hidden_state.float()
        return model.classifier(model.dropout(shares @ read))

    def as_onnx(self) -> bytes:
        """Write :meth:`logits` as an ONNX graph with its weights; any number of rows, questions and tokens.

        Raises MissingExtraError where the package onnx, which torch writes it with, is not installed.
        """
        import_optional("onnx", "train", "onnx")
        torch = self._torch
        graph = torch.nn.Module()
        graph.encoder = self._model
        graph.forward = lambda *given: self.logits(**dict(zip(INPUTS, given, strict=True)))
        texts = [ScoredText(asked, output) for output in ("a", "a longer one") for asked in ("b", "c")]
        shown = inputs_of(rows_of(texts, self._cut), 2)
        axes = {**INPUTS, "logits": ("rows", "questions")}
        written = BytesIO()
        with quiet():
            torch.onnx.export(
                graph,
                tuple(torch.from_numpy(values).to(self.device) for values in shown.values()),
                written,
                input_names=[*INPUTS],
                output_names=["logits"],
                dynamic_axes={
                    name: {at: axis for at, axis in enumerate(names) if axis} for name, names in axes.items()
                },
                opset_version=OPSET,
                dynamo=False,
            )
        return written.getvalue()
