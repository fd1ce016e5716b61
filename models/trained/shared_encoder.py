"""An encoder that reads an output once for all questions on it, where a cross-encoder reads it once for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from .cross_encoder import CrossEncoder, columns
from .torch_tools import by_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scored_text import ScoredText
    from .scorer_file import NetworkKind

QUESTIONS = 16
"""Questions that are read beside one output at most; further ones are read beside it once more."""
ROWS = 8
"""Outputs that go through the network together, each with its questions."""
OUTPUT, NOTHING = 0, -1
"""What a token belongs to; a question's have its number, from 1 on."""


class SharedEncoder(CrossEncoder):
    """A BERT encoder that reads an output, with what it was made from, and beside it every question on it.

    A question's tokens see the output and each other, and the output's see themselves alone. So what is said to a question does not
    depend on what else is asked, and a further one costs no more than its own words. The head is given the mean of the question's tokens: an encoder
    of sentences was trained to say in a mean what a text says, and learns from fewer outputs so than by its first token
    (``experiments/results/shared_reading.json``).
    """

    kind: ClassVar[NetworkKind] = "shared-encoder"

    def _pair(self, text: ScoredText) -> tuple[str, str]:
        """The output with what it was made from: the question's tokens are read beside them, and not counted."""
        return text.read

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of each score level; shape (texts, levels)."""
        rows = self._rows(texts)
        most = max(len(each.places) for each in rows)
        logits = by_length([len(each.tokens) for each in rows], ROWS, lambda some: self._logits_of(rows, some, most))
        found = [(place, row, at) for row, each in enumerate(rows) for at, place in enumerate(each.places)]
        _, row, at = zip(*sorted(found), strict=True)
        return self._torch.log_softmax(logits[[*row], [*at]], dim=-1)

    def _rows(self, texts: Sequence[ScoredText]) -> list[_Row]:
        """The texts by what is read once for all of them."""
        places: dict[tuple[str, str], list[int]] = {}
        for place, each in enumerate(texts):
            places.setdefault(self._pair(each), []).append(place)
        outputs = self._cut(*columns(list(places)))
        asked = {each.asked: None for each in texts}
        question = dict(zip(asked, self._cut(list(asked))["input_ids"], strict=True))
        return [
            _row(tokens, types, [question[texts[each].asked] for each in some], some)
            for tokens, types, of in zip(outputs["input_ids"], outputs["token_type_ids"], places.values(), strict=True)
            for some in (of[begin : begin + QUESTIONS] for begin in range(0, len(of), QUESTIONS))
        ]

    def _cut(self, *columns: Sequence[str]) -> Any:
        return self._tokenizer(
            *columns, truncation="longest_first", max_length=self.longest, return_token_type_ids=True
        )

    def _logits_of(self, rows: Sequence[_Row], some: Sequence[int], most: int) -> Any:
        """Shape (rows, most, levels); where a row has fewer questions, what stands there means nothing."""
        torch, model = self._torch, self._model
        chosen = [rows[each] for each in some]
        width = max(len(each.tokens) for each in chosen)
        tokens = _tensor(torch, [each.tokens for each in chosen], width, self._tokenizer.pad_token_id)
        positions = _tensor(torch, [each.positions for each in chosen], width, 0)
        types = _tensor(torch, [each.types for each in chosen], width, 0)
        parts = _tensor(torch, [each.parts for each in chosen], width, NOTHING)
        own = parts[:, None, :] == torch.arange(1, most + 1)[:, None]
        shares = own / own.sum(-1, keepdim=True).clamp(min=1)
        seen = (parts[:, None, :] == OUTPUT) | (parts[:, None, :] == parts[:, :, None])
        halves = self.precision == "bfloat16"
        with torch.set_grad_enabled(model.training):
            with torch.autocast(self.device, torch.bfloat16, enabled=halves):
                read = model.bert(
                    input_ids=tokens.to(self.device),
                    attention_mask=seen[:, None].to(self.device),
                    token_type_ids=types.to(self.device),
                    position_ids=positions.to(self.device),
                ).last_hidden_state.float()
            return model.classifier(model.dropout(shares.to(self.device) @ read))


class _Row(NamedTuple):
    """An output and the questions on it as they are read together."""

    tokens: list[int]
    positions: list[int]
    """Of each token within the output or within its question."""
    types: list[int]
    """0 of the output's tokens, 1 of those that it was made from and of the questions'."""
    parts: list[int]
    """What each token belongs to."""
    places: list[int]
    """Of the questions' texts, among all that are asked for."""


def _row(output: list[int], types: list[int], questions: Sequence[list[int]], places: list[int]) -> _Row:
    tokens, positions, parts, types = [*output], [*range(len(output))], [OUTPUT] * len(output), [*types]
    for number, each in enumerate(questions, 1):
        tokens += each
        positions += range(len(each))
        parts += [number] * len(each)
        types += [1] * len(each)
    return _Row(tokens, positions, types, parts, places)


def _tensor(torch: Any, rows: Sequence[list[int]], width: int, filled_with: int) -> Any:
    return torch.tensor([[*each, *[filled_with] * (width - len(each))] for each in rows])
