"""The texts that a scorer reads, rationales for them, and the rows of tokens made from the texts.

Torch and ONNX Runtime read the same rows. :class:`OnnxEncoder` needs no torch: it reads the ``model.onnx`` that
``askance train --onnx`` wrote.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...prompts.conversations.chat import seen_of
from ...prompts.errors import InputError, import_optional
from ...prompts.templates import render, template
from ..embedded.servers import available_threads
from .scorer_file import ONNX_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ...prompts.checklist import Question
    from ...prompts.examples import Example
    from ..base import Message
    from .scorer_file import ScorerFile

    Encode = Callable[..., list[tuple[list[int], list[int]]]]
    """Function that returns tokens and their types (1 for a second text) for texts, or for pairs in two columns."""


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One question about one output, as two segments and as a conversation. A network reads one of these forms."""

    asked: str  # the question, with its rubric and reference answer
    output: str
    given: str = ""  # the sources of the output: the reference, the input and the context
    messages: tuple[Message, ...] = ()  # messages that ask a judge the question, for a causal network

    @property
    def read(self) -> tuple[str, str]:
        """The output and its sources: equal for all questions on an output that see the same sources."""
        return self.output, self.given

    @property
    def segments(self) -> tuple[str, str]:
        """Two segments: question with output, and the output's sources."""
        return f"{self.asked}\n{self.output}", self.given


def scored_text(question: Question, example: Example, messages: tuple[Message, ...] = ()) -> ScoredText:
    """Return the text of a question about an example's output."""
    # The evaluator's prompt is only in the messages: an encoder has learned how to judge. The question's ``good`` is
    # left out: P(yes) is the network's answer, whether yes is good or bad.
    asked = [question.text, *(text for text in (question.rubric, question.reference) if text)]
    sources: tuple[str | None, ...] = ()
    if question.sees == "all":
        sources = (example.reference, example.input, example.context)
    elif question.is_relation:
        sources = (getattr(example, question.sees),)
    given = [text for text in sources if text]
    output = seen_of(example.output or "", example.input, question.sees)
    return ScoredText("\n".join(asked), output, "\n".join(given), messages)


class Rationale(NamedTuple):
    """Reasons for an answer, in words: a separate turn in the judge's conversation."""

    text: str
    is_whole: bool = True  # whether the rationale is complete; else it was cut off


def asked_for_level(text: ScoredText, levels: int) -> tuple[Message, ...]:
    """Return the conversation that asks for a score level: for yes or no with two levels, else for a number from 0."""
    if levels == 2:
        return text.messages
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{render('answer_level', most=str(levels - 1))}"))


def asked_why(text: ScoredText) -> tuple[Message, ...]:
    """Return the conversation that asks for the rationale, before the answer."""
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{template('rationale_first')}"))


def after_rationale(text: ScoredText, rationale: str) -> ScoredText:
    """Return the text with a longer conversation: the rationale, then the request for the answer in one word."""
    said: tuple[Message, ...] = (("assistant", rationale), ("user", template("rationale_then")))
    return replace(text, messages=(*asked_why(text), *said))


def asked_for(text: ScoredText) -> tuple[Message, ...]:
    """Return the conversation that asked for the rationale, from a text made by :func:`after_rationale`."""
    return text.messages[:-2]


QUESTIONS = 16  # most questions that are read beside one output; for more, the output is read again
ROWS = 8  # outputs that go through the network together, each with its questions
OUTPUT, NOTHING = 0, -1  # owners of tokens: the output, or nothing (padding). Question tokens have numbers from 1 on.
INPUTS = {
    "input_ids": ("rows", "tokens"),
    "position_ids": ("rows", "tokens"),
    "token_type_ids": ("rows", "tokens"),
    "attention_mask": ("rows", "", "tokens", "tokens"),
    "shares": ("rows", "questions", "tokens"),
}
"""Inputs of the network (:func:`inputs_of`), with the names of their axes; an axis without a name is 1 long."""


class SharedRow(NamedTuple):
    """One row for the network: the tokens of an output, and of questions on it."""

    tokens: list[int]
    positions: list[int]  # position of each token within the output or within its question
    types: list[int]  # 0 for the output's tokens, 1 for the tokens of its input and of the questions
    parts: list[int]  # owner of each token
    places: list[int]  # places of the questions' texts among all texts


def rows_of(texts: Sequence[ScoredText], cut: Encode) -> list[SharedRow]:
    """Put texts into rows: each output is read once for up to ``QUESTIONS`` questions. ``cut`` limits the tokens."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, text in enumerate(texts):
        places.setdefault(text.read, []).append(place)
    asked = list(dict.fromkeys(text.asked for text in texts))
    question = dict(zip(asked, (tokens for tokens, _ in cut(asked)), strict=True))
    return [
        _row(tokens, types, [question[texts[place].asked] for place in part], part)
        for (tokens, types), all_places in zip(cut(*columns(list(places))), places.values(), strict=True)
        for part in (all_places[begin : begin + QUESTIONS] for begin in range(0, len(all_places), QUESTIONS))
    ]


def _row(output: list[int], types: list[int], questions: Sequence[list[int]], places: list[int]) -> SharedRow:
    tokens, positions, parts, types = [*output], [*range(len(output))], [OUTPUT] * len(output), [*types]
    for number, question in enumerate(questions, 1):
        tokens += question
        positions += range(len(question))
        parts += [number] * len(question)
        types += [1] * len(question)
    return SharedRow(tokens, positions, types, parts, places)


def inputs_of(rows: Sequence[SharedRow], questions: int) -> dict[str, NDArray[Any]]:
    """Return the network's inputs for some rows, with the names and order of :data:`INPUTS`. ``attention_mask`` says
    which tokens each token sees: the output, and its own question. ``shares`` holds each token's share in the mean of
    its question. Rows are filled up with token 0, which no other token sees."""
    width = max(len(row.tokens) for row in rows)
    parts = _filled([row.parts for row in rows], width, NOTHING)
    membership = parts[:, None, :] == np.arange(1, questions + 1)[:, None]
    seen = (parts[:, None, :] == OUTPUT) | (parts[:, None, :] == parts[:, :, None])
    return {
        "input_ids": _filled([row.tokens for row in rows], width, 0),
        "position_ids": _filled([row.positions for row in rows], width, 0),
        "token_type_ids": _filled([row.types for row in rows], width, 0),
        "attention_mask": seen[:, None],
        "shares": (membership / np.maximum(membership.sum(-1, keepdims=True), 1)).astype(np.float32),
    }


def _filled(rows: Sequence[list[int]], width: int, filled_with: int) -> NDArray[np.int64]:
    return np.array([[*each, *[filled_with] * (width - len(each))] for each in rows], dtype=np.int64)


def columns(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Turn pairs of texts into two columns for a tokenizer: all first texts, and all second texts."""
    first, second = zip(*pairs, strict=True)
    return [*first], [*second]


def lengths_of(pairs: Sequence[tuple[str, str]], encode: Callable[..., Sequence[Sequence[int]]]) -> list[int]:
    """Return the number of tokens of each pair. ``encode`` gets the distinct pairs in columns; it must not cut them."""
    if not pairs:
        return []
    distinct = list(dict.fromkeys(pairs))
    length = dict(zip(distinct, map(len, encode(*columns(distinct))), strict=True))
    return [length[pair] for pair in pairs]


def of_like_length(lengths: Sequence[int], at_once: int) -> Iterator[list[int]]:
    """Return batches of up to ``at_once`` places of texts with similar lengths, so that there is little padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return (order[begin : begin + at_once] for begin in range(0, len(order), at_once))


EXTRA = "scorer"
TOKENIZER_FILE = "tokenizer.json"


class OnnxEncoder:
    """An encoder that reads like :class:`~.network.SharedEncoder`, on the processor. It cannot be trained."""

    def __init__(self, session: Any, tokenizer: Any, levels: int, longest: int) -> None:
        """Take ONNX Runtime's ``session`` and the ``tokenizer`` of the package tokenizers; ``longest`` is in tokens."""
        self._session, self._tokenizer, self._levels, self.longest = session, tokenizer, levels, longest
        tokenizer.no_padding()

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> OnnxEncoder:
        """Open the encoder in a folder. Raises MissingExtraError, and InputError for a file that cannot be read."""
        runtime = import_optional("onnxruntime", EXTRA, "onnxruntime")
        tokenizers = import_optional("tokenizers", EXTRA, "tokenizers")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # leave the processors to others
        place = folder / ONNX_FILE
        try:
            session = runtime.InferenceSession(str(place), options, providers=["CPUExecutionProvider"])
            place = folder / TOKENIZER_FILE
            tokenizer = tokenizers.Tokenizer.from_file(str(place))
        except Exception as error:  # the errors of both packages share no other class
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"{place}: cannot be read ({why[:200]}). Copy the whole folder again.") from error
        return cls(session, tokenizer, file.levels, file.longest)

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Return the number of tokens of each uncut text, without the question's tokens."""
        self._tokenizer.no_truncation()
        return lengths_of([each.read for each in texts], lambda *pairs: [ids for ids, _ in self._encoded(*pairs)])

    def levels(self, texts: Sequence[ScoredText]) -> NDArray[np.float32]:
        """Return the log-probability of each score level; shape (texts, levels)."""
        rows = rows_of(texts, self._cut)
        logits = np.empty((len(texts), self._levels), dtype=np.float32)
        for some in of_like_length([len(each.tokens) for each in rows], ROWS):
            chosen = [rows[each] for each in some]
            given = inputs_of(chosen, max(len(each.places) for each in chosen))
            for row, said in zip(chosen, self._session.run(None, given)[0], strict=True):
                logits[row.places] = said[: len(row.places)]
        said_at_all: NDArray[np.float32] = np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        return logits - said_at_all

    def _cut(self, *columns: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        self._tokenizer.enable_truncation(self.longest, strategy="longest_first")
        return self._encoded(*columns)

    def _encoded(self, *columns: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        texts = list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))
        return [(each.ids, each.type_ids) for each in self._tokenizer.encode_batch(texts)]


def threads() -> int:
    """Return the number of threads, by torch's rule: ``OMP_NUM_THREADS``, else one for each available processor."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else available_threads()
