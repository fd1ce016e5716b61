"""Answers as rows of a store: the same rows for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pydantic_core import from_json

from ..models.base import Answer, ThinkingFacts

COLUMNS = "key, text, logprobs, prompt_tokens, completion_tokens, cost_usd, finish"
"""Columns of the table of answers; a row holds them in this order."""
UNKNOWN = "unknown"
"""Text in place of an unknown cost; a sum over the column counts it as 0."""
_THOUGHT = " thought="
"""Mark before the number of thinking tokens, at the end of ``finish``. This way the table needs no new column."""
Row = tuple[bytes, str | bytes, str | bytes | None, int, int, float | str, str]
"""An answer with its key. A text with half a surrogate pair is kept as bytes, because databases refuse it as text."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def row_of(key: bytes, answer: Answer) -> Row:
    """Make the row of an answer."""
    logprobs = None
    if answer.logprobs is not None:
        flat = [
            [token, [part for name, logprob in alternatives for part in (name, logprob)]]
            for token, alternatives in answer.logprobs
        ]
        logprobs = storable(_encode(flat))
    cost = UNKNOWN if answer.cost_usd is None else answer.cost_usd
    finish = f"{answer.finish}{_THOUGHT}{answer.reasoning_tokens}" if answer.reasoning_tokens else answer.finish
    return key, storable(answer.text), logprobs, answer.prompt_tokens, answer.completion_tokens, cost, finish


def answer_of(row: Row) -> Answer:
    """Make the answer of a row."""
    _, text, logprobs, sent, written, cost, finish = row
    tokens = None
    if logprobs is not None:
        decoded = from_json(logprobs) if isinstance(logprobs, str) else json.loads(_stored(logprobs))
        tokens = tuple([(token, _pairs(flat)) for token, flat in decoded])
    why, mark, thought = finish.rpartition(_THOUGHT)
    known = None if isinstance(cost, str) else cost
    if mark and thought.isdecimal():
        return Answer(_stored(text), tokens, sent, written, known, why, int(thought))
    return Answer(_stored(text), tokens, sent, written, known, finish)


def _pairs(flat: list[Any]) -> tuple[tuple[str, float], ...]:
    """Pair the elements of a flat list: token and log-probability alternate in it."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))


class ReadableStore(Protocol):
    """A store that can be read."""

    def rows(self, keys: Sequence[bytes]) -> list[Row]:
        """Return the rows of the stored answers to these keys."""

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Return facts about a model that thinks; None if there are none."""

    def close(self) -> None:
        """End the remaining claims and close the store."""


class KeptAnswers(Mapping[bytes, Answer]):
    """Answers by key, kept as rows and decoded on access: ten thousand rows take 5 MB, ten thousand answers 25 MB."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = {row[0]: row for row in rows}

    def __getitem__(self, key: bytes) -> Answer:
        return answer_of(self._rows[key])

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def left_of(keys: Sequence[bytes], rows: Iterable[Row]) -> list[bytes]:
    """Return the keys that have no row, without repeats."""
    there = {row[0] for row in rows}
    return [key for key in dict.fromkeys(keys) if key not in there]


def is_empty(row: Row) -> bool:
    """Return whether a row holds an empty answer. Earlier versions stored empty answers; they count as missing."""
    return row[2] is None and not row[1].strip()


def storable(text: str) -> str | bytes:
    """Return the text, or its bytes if it contains half a surrogate pair."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _stored(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")
