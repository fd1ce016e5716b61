"""The networks that a scorer can be: functions that start or open one, and the encoders.

A network has ``tokens``, ``levels``, ``parameters``, ``training``, ``state``, ``restore`` and ``save``; the docstrings
of :class:`CrossEncoder` describe each.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ...prompts.errors import InputError, import_optional
from .bases import by_length, device, load, quiet, torch_library
from .causal import CausalNetwork
from .scored_text import INPUTS, ROWS, ScoredText, columns, inputs_of, lengths_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .bases import Base
    from .scored_text import SharedRow
    from .scorer_file import NetworkKind, Precision, ScorerFile

AT_ONCE = 16  # texts that go through the network together


class CrossEncoder:
    """A ``transformers`` encoder with a classification head, which reads the output again for each question."""

    kind: ClassVar[NetworkKind] = "cross-encoder"
    base_weights = None

    def __init__(self, model: Any, tokenizer: Any, longest: int, precision: Precision = None) -> None:
        """Take the ``model`` and ``tokenizer`` of transformers; ``longest`` is in tokens."""
        self.device, self.precision = device(), precision
        self._model, self._tokenizer, self.longest = model.to(self.device), tokenizer, longest
        self._torch = torch_library()
        self.training(False)

    @classmethod
    def start(cls, base: Base, *, levels: int, longest: int, seed: int, precision: Precision) -> Self:
        """See :func:`start_network`."""
        torch_library().manual_seed(seed)
        model, tokenizer = _load(base.place, base.name, num_labels=levels, ignore_mismatched_sizes=True)
        most = getattr(model.config, "max_position_embeddings", longest)
        if longest > most:
            raise InputError(f"--longest {longest}: the base {base.name} reads {most} tokens at most.")
        return cls(model, tokenizer, longest, precision)

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> Self:
        """See :func:`open_network`."""
        model, tokenizer = _load(str(folder), str(folder))
        if model.config.num_labels != file.levels:
            raise InputError(
                f"{folder}: the weights tell {model.config.num_labels} levels apart, scorer.json says {file.levels}."
            )
        return cls(model, tokenizer, file.longest, file.precision)

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Return the number of tokens of each uncut text."""
        pairs = [self._pair(each) for each in texts]
        return lengths_of(pairs, lambda *them: self._tokenizer(*them, truncation=False, verbose=False)["input_ids"])

    def _pair(self, text: ScoredText) -> tuple[str, str]:
        return text.segments

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Return the log-probability of each score level, worst first; shape (texts, levels), float32, on the
        processor. The probabilities may sum to less than 1. In training, gradients flow through the result."""
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
        """Return the tensors that are trained."""
        return [numbers for numbers in self._model.parameters() if numbers.requires_grad]

    def training(self, on: bool) -> None:
        """Begin or end training. Dropout and gradients are on only in training."""
        self._model.train(on)

    def state(self) -> dict[str, Any]:
        """Return all tensors that training changes, by name; they are not copied."""
        state: dict[str, Any] = self._model.state_dict()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Set the tensors of :meth:`state`."""
        self._model.load_state_dict(state)

    def save(self, folder: Path) -> None:
        """Write the weights (:data:`~.scorer_file.WEIGHTS_FILES`) and the other files for :func:`open_network`."""
        with quiet():
            self._model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)


def _load(place: str, name: str, **options: Any) -> tuple[Any, Any]:
    def both(use: Any) -> tuple[Any, Any]:
        tokenizer = use.AutoTokenizer.from_pretrained(place)
        return use.AutoModelForSequenceClassification.from_pretrained(place, **options), tokenizer

    found: tuple[Any, Any] = load(both, name, "an encoder")
    return found


OPSET = 17  # version of the operators in an ONNX graph, which ONNX Runtime has read for years


class SharedEncoder(CrossEncoder):
    """A BERT encoder that reads an output with its sources once, and all questions on it beside it.

    A question's tokens see the output and each other. The output's tokens see only each other. So the answer to a
    question does not depend on the other questions, and a further question costs no more than its own words. The head
    gets the mean of the question's tokens. A sentence encoder was trained to put a text's meaning into the mean, so it
    learns from fewer outputs than with the first token (``experiments/results/shared_reading.json``)."""

    kind: ClassVar[NetworkKind] = "shared-encoder"

    def _pair(self, text: ScoredText) -> tuple[str, str]:
        """The output and its sources. The question's tokens are read beside them, and not counted."""
        return text.read

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Return the log-probability of each score level; shape (texts, levels)."""
        rows = rows_of(texts, self._cut)
        most = max(len(row.places) for row in rows)
        lengths = [len(row.tokens) for row in rows]
        logits = by_length(lengths, ROWS, lambda numbers: self._logits_of([rows[number] for number in numbers], most))
        # each text's place in the batch, with the row and the column of its logits
        cells = [(place, number, at) for number, row in enumerate(rows) for at, place in enumerate(row.places)]
        _, row_numbers, columns_in_row = zip(*sorted(cells), strict=True)
        return self._torch.log_softmax(logits[[*row_numbers], [*columns_in_row]], dim=-1)

    def _cut(self, *columns: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        encoded = self._tokenizer(
            *columns, truncation="longest_first", max_length=self.longest, return_token_type_ids=True
        )
        return [*zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)]

    def _logits_of(self, rows: Sequence[SharedRow], most: int) -> Any:
        """Logits, shape (rows, most, levels). Values beyond a row's number of questions have no meaning."""
        torch = self._torch
        given = {name: torch.from_numpy(each).to(self.device) for name, each in inputs_of(rows, most).items()}
        with torch.set_grad_enabled(self._model.training):
            return self.logits(**given)

    def logits(self, shares: Any, **given: Any) -> Any:
        """Logits, (rows, questions, levels), from the tensors of :func:`~.scored_text.inputs_of`."""
        torch, model = self._torch, self._model
        with torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16"):
            read = model.bert(**given).last_hidden_state.float()
        return model.classifier(model.dropout(shares @ read))

    def as_onnx(self) -> bytes:
        """Return :meth:`logits` as an ONNX graph with weights, for inputs of any sizes. Raises MissingExtraError
        without onnx."""
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


Network = CrossEncoder | CausalNetwork  # a network of torch, which can be trained


def start_network(
    base: Base,
    *,
    levels: int,
    longest: int,
    seed: int,
    rank: int,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> Network:
    """Start a network for training; its new weights come from the seed. A BERT base becomes an encoder that reads all
    questions on an output at once, another encoder reads one question at a time; both get a head of ``levels``. A
    causal base gets LoRA matrices of ``rank``, and says a level in one token. Raises InputError for a base that cannot
    be trained or has no token for a level, and MissingExtraError without a package."""
    options: dict[str, Any] = {"levels": levels, "longest": longest, "seed": seed}
    options["precision"] = None if precision == "float32" else precision
    if base.is_causal:
        return CausalNetwork.start(base, rank=rank, **options)
    return _encoder("shared-encoder" if base.is_bert else "cross-encoder").start(base, **options)


def open_network(folder: Path, file: ScorerFile) -> Network:
    """Open a trained scorer's network. Raises InputError for bad files or a wrong base, and MissingExtraError."""
    if file.kind == "causal":
        return CausalNetwork.open(folder, file)
    return _encoder(file.kind).open(folder, file)


def _encoder(kind: NetworkKind) -> type[CrossEncoder]:
    return SharedEncoder if kind == "shared-encoder" else CrossEncoder
