"""The texts that a scorer reads, the rationale that may stand beside them, and the rows of tokens made of them.

Torch and ONNX Runtime read the rows alike; :class:`OnnxEncoder` does without torch, from the ``model.onnx`` that
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
    """Tokens, with types (1 for a second text), of texts, or of pairs given as all first and all second texts."""


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One question about one output, as two segments and as a conversation: a network reads the one or the other."""

    asked: str  # the question, with what its rubric and reference answer say
    output: str
    given: str = ""  # the sources of the output: the reference, the input and the context
    messages: tuple[Message, ...] = ()  # that ask a judge the question, for a network that reads them

    @property
    def read(self) -> tuple[str, str]:
        """The output and its input: the same for all questions on it that see the same."""
        return self.output, self.given

    @property
    def segments(self) -> tuple[str, str]:
        """Question and output, and what the output was made from."""
        return f"{self.asked}\n{self.output}", self.given


def scored_text(question: Question, example: Example, messages: tuple[Message, ...] = ()) -> ScoredText:
    """The text of a question about an example's output. The evaluator's prompt is in the messages alone, as an encoder
    has learned how to judge; ``good`` is not there: P(yes) is the network's answer, whatever it speaks for."""
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
    """Why an answer is yes or no, in words: a turn of its own in the judge's conversation."""

    text: str
    is_whole: bool = True  # whether the rationale came to its end; else it was cut off


def asked_for_level(text: ScoredText, levels: int) -> tuple[Message, ...]:
    """The conversation that asks for one of so many score levels: with two for yes or no, else for a number from 0."""
    if levels == 2:
        return text.messages
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{render('answer_level', most=str(levels - 1))}"))


def asked_why(text: ScoredText) -> tuple[Message, ...]:
    """The conversation that asks for the rationale, before the answer."""
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{template('rationale_first')}"))


def after_rationale(text: ScoredText, rationale: str) -> ScoredText:
    """The text whose conversation goes on with a rationale, and then asks for the answer in one word."""
    said: tuple[Message, ...] = (("assistant", rationale), ("user", template("rationale_then")))
    return replace(text, messages=(*asked_why(text), *said))


def asked_for(text: ScoredText) -> tuple[Message, ...]:
    """The conversation that asked for the rationale, from a text made by :func:`after_rationale`."""
    return text.messages[:-2]


QUESTIONS = 16  # questions that are read beside one output at most; further ones are read beside it once more
ROWS = 8  # outputs that go through the network together, each with its questions
OUTPUT, NOTHING = 0, -1  # owner of a token: the output, or nothing. A question's tokens have its number, from 1 on.
INPUTS = {
    "input_ids": ("rows", "tokens"),
    "position_ids": ("rows", "tokens"),
    "token_type_ids": ("rows", "tokens"),
    "attention_mask": ("rows", "", "tokens", "tokens"),
    "shares": ("rows", "questions", "tokens"),
}
"""Inputs of the network (:func:`inputs_of`), with the names of their axes; an axis without a name is 1 long."""


class SharedRow(NamedTuple):
    """An output and the questions on it as they are read together."""

    tokens: list[int]
    positions: list[int]  # position of each token within the output or within its question
    types: list[int]  # 0 for the output's tokens, 1 for the tokens of its input and of the questions
    parts: list[int]  # owner of each token
    places: list[int]  # places of the questions' texts among all that are asked for


def rows_of(texts: Sequence[ScoredText], cut: Encode) -> list[SharedRow]:
    """The texts in rows: each output is read once for all its questions. ``cut`` limits the tokens."""
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
    """The network's inputs for some rows, by the names and in the order of :data:`INPUTS`. ``attention_mask`` says what
    each token sees: the output, and the tokens of its own question. ``shares`` holds each token's share in the mean of
    its question. Rows are filled up with token 0, which no other token sees."""
    width = max(len(row.tokens) for row in rows)
    parts = _filled([row.parts for row in rows], width, NOTHING)
    own = parts[:, None, :] == np.arange(1, questions + 1)[:, None]
    seen = (parts[:, None, :] == OUTPUT) | (parts[:, None, :] == parts[:, :, None])
    return {
        "input_ids": _filled([row.tokens for row in rows], width, 0),
        "position_ids": _filled([row.positions for row in rows], width, 0),
        "token_type_ids": _filled([row.types for row in rows], width, 0),
        "attention_mask": seen[:, None],
        "shares": (own / np.maximum(own.sum(-1, keepdims=True), 1)).astype(np.float32),
    }


def _filled(rows: Sequence[list[int]], width: int, filled_with: int) -> NDArray[np.int64]:
    return np.array([[*each, *[filled_with] * (width - len(each))] for each in rows], dtype=np.int64)


def columns(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Pairs of texts as a tokenizer wants them: all that come first, and all that come second."""
    first, second = zip(*pairs, strict=True)
    return [*first], [*second]


def lengths_of(pairs: Sequence[tuple[str, str]], encode: Callable[..., Sequence[Sequence[int]]]) -> list[int]:
    """Number of tokens of each pair; ``encode`` gets pairs in columns, each pair once, and cuts none."""
    if not pairs:
        return []
    distinct = list(dict.fromkeys(pairs))
    length = dict(zip(distinct, map(len, encode(*columns(distinct))), strict=True))
    return [length[pair] for pair in pairs]


def of_like_length(lengths: Sequence[int], at_once: int) -> Iterator[list[int]]:
    """The places of texts, so many of like length together that little of a batch is padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return (order[begin : begin + at_once] for begin in range(0, len(order), at_once))


EXTRA = "scorer"
TOKENIZER_FILE = "tokenizer.json"


class OnnxEncoder:
    """Reads as :class:`~.network.SharedEncoder` does, on the processor, and cannot be trained."""

    def __init__(self, session: Any, tokenizer: Any, levels: int, longest: int) -> None:
        """Take ONNX Runtime's ``session`` and the ``tokenizer`` of the package tokenizers; ``longest`` is in tokens."""
        self._session, self._tokenizer, self._levels, self.longest = session, tokenizer, levels, longest
        tokenizer.no_padding()

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> OnnxEncoder:
        """The encoder in a folder. Raises MissingExtraError, and InputError for a file that cannot be read."""
        runtime = import_optional("onnxruntime", EXTRA, "onnxruntime")
        tokenizers = import_optional("tokenizers", EXTRA, "tokenizers")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others want the processors too
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
        """Tokens of each text, none cut, the question's not counted."""
        self._tokenizer.no_truncation()
        return lengths_of([each.read for each in texts], lambda *pairs: [ids for ids, _ in self._encoded(*pairs)])

    def levels(self, texts: Sequence[ScoredText]) -> NDArray[np.float32]:
        """Log-probability of each score level; shape (texts, levels)."""
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
    """Number of threads, as for torch: ``OMP_NUM_THREADS``, else one for each processor that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else available_threads()
