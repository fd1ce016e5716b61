"""A decoder's shape, and a sample of prompts that goes through it in single precision, a layer at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinja2 import Template
    from numpy.typing import NDArray

    from ..base import Message

    Floats = NDArray[np.float32]

PROMPTS = (
    "Read the text and answer the question with yes or no.\n\nText:\nThe new bus timetable starts on Monday. Route 12 "
    "will run every ten minutes until seven in the evening, and the night line stops at the hospital again.\n\nDoes "
    "the text name a day?",
    "Question: Is the text polite?\n\n<text>\nThanks for your order! Your parcel left our warehouse this morning and "
    "should be with you by Thursday. If nobody is in, the driver leaves it with a neighbour.\n</text>\n\nAnswer with "
    "one word: yes or no.",
    "Read the text and answer the question with yes or no.\n\nText:\nFixed a crash when the settings page was opened "
    "without a network. The search box now remembers the last five queries. Removed the old export format.\n\nDoes "
    "the text ask the reader to do something?",
    "Question: Is there a number in the text?\n\n<text>\nI'm sorry, but I can't say how long the repair will take. "
    "Please call again next week, maybe somebody knows more by then.\n</text>\n\nAnswer with one word: yes or no.",
    "Read the text and answer the question with yes or no.\n\nText:\nBoil the potatoes in salted water for twenty "
    "minutes, then mash them with butter and warm milk. Season to taste, and serve at once.\n\nIs the text free of "
    "errors?",
    "Question: Does the text say who wrote it?\n\n<text>\nIn 1869 a chemist from Tobolsk put the known elements in "
    "order of their weight and left gaps for those that had not been found yet.\n</text>\n\nAnswer with one word: yes "
    "or no.",
)
"""What verdicts are asked of, in short: made up for this."""


@dataclass(frozen=True)
class Shape:
    """How large a decoder is, and what its words are framed by."""

    layers: int
    heads: int
    kv_heads: int
    head: int
    """Numbers in one head's key."""
    width: int
    epsilon: float
    rope_base: float
    interleaved: bool
    """Whether neighbours are turned together by their place, not halves."""
    template: str
    bos: str
    eos: str
    longest: int
    first: int
    """The token that every prompt begins with."""

    def text(self, messages: Sequence[Message]) -> str:
        """Messages in the model's form, up to where it answers."""
        said = [{"role": role, "content": content} for role, content in messages]
        return str(self._form.render(messages=said, add_generation_prompt=True, bos_token=self.bos, eos_token=self.eos))

    @cached_property
    def _form(self) -> Template:
        return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(self.template)


@dataclass(frozen=True)
class Attention:
    """The weights (outputs, inputs) and biases of a layer's attention."""

    norm: Floats
    q: Floats
    k: Floats
    v: Floats
    bias_q: Floats
    bias_k: Floats
    bias_v: Floats
    out: Floats


@dataclass(frozen=True)
class Gated:
    """The weights (outputs, inputs) of a layer's gated part."""

    norm: Floats
    gate: Floats
    up: Floats
    down: Floats


class SamplePrompts:
    """Prompts of tokens, and what a decoder holds of them, shape (tokens of all, width)."""

    def __init__(self, shape: Shape, prompts: Sequence[Sequence[int]], embedded: Callable[[int], Floats]) -> None:
        """``embedded`` gives a token's row."""
        self._shape = shape
        self._ends = np.cumsum([len(each) for each in prompts])
        self._starts = [0, *self._ends[:-1]]
        self.held = np.concatenate([embedded(token) for each in prompts for token in each])
        turns = np.arange(shape.longest)[:, None] * shape.rope_base ** -(np.arange(0, shape.head, 2) / shape.head)
        self.angles = turns.astype(np.float32)
        """Rotation of a pair of numbers at each place; shape (longest, head / 2)."""

    def normed(self) -> Floats:
        """The hidden state, scaled to a root mean square of 1."""
        normed: Floats = self.held / np.sqrt(
            (self.held**2).mean(axis=1, keepdims=True) + np.float32(self._shape.epsilon)
        )
        return normed

    def attend(self, layer: Attention) -> tuple[Floats, Floats, Floats]:
        """Go through a layer's attention; keys and values there, not yet turned by their places, and what each token
        sees."""
        rows = self.normed() * layer.norm
        keys, values = np.add(rows @ layer.k.T, layer.bias_k), np.add(rows @ layer.v.T, layer.bias_v)
        seen = self._seen(np.add(rows @ layer.q.T, layer.bias_q), keys, values)
        self.held += seen @ layer.out.T
        return keys, values, seen

    def pass_gate(self, layer: Gated) -> Floats:
        """Go through a layer's gated part; what is behind the gate."""
        rows = self.normed() * layer.norm
        gates = rows @ layer.gate.T
        with np.errstate(over="ignore"):  # far below 0 SiLU is 0
            passed: Floats = gates / (1 + np.exp(-gates)) * (rows @ layer.up.T)
        self.held += passed @ layer.down.T
        return passed

    def mean(self, rows: Floats) -> Floats:
        """The mean of the tokens' rows, shape (1, width); without the first of each prompt, which is like no other."""
        others = np.delete(rows, self._starts, axis=0)
        mean: Floats = others.mean(axis=0, keepdims=True)
        return mean

    def _seen(self, queries: Floats, keys: Floats, values: Floats) -> Floats:
        """Attention of each token over those up to it; shape as that of the queries."""
        shape = self._shape
        seen = np.empty_like(queries)
        for start, end in zip(self._starts, self._ends, strict=True):
            length = end - start
            q, k, v = (
                each[start:end].reshape(length, shape.kv_heads, -1, shape.head) for each in (queries, keys, values)
            )
            q, k = self._turned(q), self._turned(k)
            scores = np.einsum("ighd,jgod->ghij", q, k) / np.float32(np.sqrt(shape.head))
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
            share = np.exp(scores - scores.max(axis=-1, keepdims=True))
            share /= share.sum(axis=-1, keepdims=True)
            seen[start:end] = np.einsum("ghij,jgod->ighd", share, v).reshape(length, -1)
        return seen

    def _turned(self, rows: Floats) -> Floats:
        """Rows (tokens, ..., head) by their places."""
        pairs = (
            rows.reshape(*rows.shape[:-1], -1, 2) if self._shape.interleaved else rows.reshape(*rows.shape[:-1], 2, -1)
        )
        one, other = (pairs[..., 0], pairs[..., 1]) if self._shape.interleaved else (pairs[..., 0, :], pairs[..., 1, :])
        cos, sin = (each(self.angles[: len(rows), None, None]) for each in (np.cos, np.sin))
        both = one * cos - other * sin, other * cos + one * sin
        turned: Floats = np.stack(both, axis=-1 if self._shape.interleaved else -2).reshape(rows.shape)
        return turned
