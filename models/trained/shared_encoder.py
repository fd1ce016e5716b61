"""An encoder that reads an output once for all questions on it, where a cross-encoder reads it once for each."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

from ...prompts.errors import import_optional
from .cross_encoder import CrossEncoder
from .scored_text import ScoredText
from .shared_rows import INPUTS, ROWS, inputs_of, rows_of
from .torch_tools import by_length, quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scorer_file import NetworkKind
    from .shared_rows import SharedRow

OPSET = 17
"""Version of the operators in an ONNX graph, which ONNX Runtime has read for years."""


class SharedEncoder(CrossEncoder):
    """A BERT encoder that reads an output, with what it was made from, and beside it every question on it.

    A question's tokens see the output and each other, and the output's see themselves alone. So what is said to a
    question does not depend on what else is asked, and a further one costs no more than its own words. The head is
    given the mean of the question's tokens: an encoder of sentences was trained to say in a mean what a text says, and
    learns from fewer outputs so than by its first token (``experiments/results/shared_reading.json``).
    """

    kind: ClassVar[NetworkKind] = "shared-encoder"

    def _pair(self, text: ScoredText) -> tuple[str, str]:
        """The output with what it was made from: the question's tokens are read beside them, and not counted."""
        return text.read

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level; shape (texts, levels)."""
        rows = rows_of(texts, self._cut)
        most = max(len(each.places) for each in rows)
        logits = by_length(
            [len(each.tokens) for each in rows], ROWS, lambda some: self._logits_of([rows[each] for each in some], most)
        )
        found = [(place, row, at) for row, each in enumerate(rows) for at, place in enumerate(each.places)]
        _, row, at = zip(*sorted(found), strict=True)
        return self._torch.log_softmax(logits[[*row], [*at]], dim=-1)

    def _cut(self, *columns: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        found = self._tokenizer(
            *columns, truncation="longest_first", max_length=self.longest, return_token_type_ids=True
        )
        return [*zip(found["input_ids"], found["token_type_ids"], strict=True)]

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
        """:meth:`logits` as a graph of ONNX with its weights; rows, questions and tokens may be as many as there are.

        Raises:
            MissingExtraError: The package onnx, which torch writes it with, is not installed.
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
                tuple(torch.from_numpy(each).to(self.device) for each in shown.values()),
                written,
                input_names=[*INPUTS],
                output_names=["logits"],
                dynamic_axes={name: {at: axis for at, axis in enumerate(each) if axis} for name, each in axes.items()},
                opset_version=OPSET,
                dynamo=False,
            )
        return written.getvalue()
