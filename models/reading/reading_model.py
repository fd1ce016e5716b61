"""Models whose verdicts are read in this process: one token after a long prompt, so reading the prompt takes the time.

A :class:`SideBySideReader` reads several questions on one output side by side, because one pass over the weights takes
as long as twenty tokens or more. Answers longer than a token are left to llama.cpp, which writes as fast or faster.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..base import Answer, Message, Model, ModelError, Request
from ..budget import FREE
from ..direct import read_logprobs
from ..replies.thoughts import opens_thought

if TYPE_CHECKING:
    from ...prompts.prompt import Framing

BLOCK = 512  # tokens that are read, and kept, together, at most
OPENING, TEXT = 16, 64
"""Fewest tokens of a prompt's fixed text, and of one text of an example, for a block of its own.

Each block costs one more pass over the weights, which takes as long as some twenty tokens.
"""
CONTEXT = 4096  # tokens that a prompt may have, as for `askance.models.embedded.servers`
CACHE_MIB = 2048
TOGETHER = 8  # prompts that are read side by side, at most
STEP = 8  # the differing part of a prompt is filled up with masked tokens to a multiple of this
TAG_TOKENS = 8  # tokens at the end of a prompt that are searched for a tag
GATHERED = 0.002  # seconds for answered callers to ask their next question; reading takes a hundred times as long


class Reader(Protocol):
    """A reader of prompts for one model."""

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        """Return the prompt's tokens, and the numbers of tokens after which it may part from other prompts."""

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        """Return each vocabulary token's log-probability after ``tokens``. Blocks that end at ``ends`` are kept."""

    def text(self, token: int) -> str:
        """Return the text of a token."""

    def forget(self) -> None:
        """Drop all kept blocks."""


@runtime_checkable
class SideBySideReader(Reader, Protocol):
    """A reader that reads several prompts side by side."""

    rows: int
    """The number of prompts is filled up to a multiple of this by repeating one; 0 reads them one after the other
    (:mod:`.consistency`)."""

    def next_tokens(self, prompts: Sequence[Sequence[int]], ends: Sequence[int]) -> list[NDArray[np.float32]]:
        """Return the log-probabilities of each prompt, equal to those when it is read alone. All prompts have the same
        blocks, and remainders of the same length (:func:`as_long`)."""


@dataclass(eq=False)
class _Waiting:
    """A request and the future of its answer."""

    request: Request
    answer: asyncio.Future[Answer]
    tokens: Sequence[int] = ()
    ends: Sequence[int] = ()  # ends of the prompt's blocks

    @property
    def beside(self) -> object:
        """Key that is equal for requests that can be read side by side; None for a request that is read alone."""
        if not self.ends or (width := as_long(len(self.tokens) - self.ends[-1])) > BLOCK:
            return None
        return tuple(self.ends), width, tuple(self.tokens[: self.ends[-1]])


class ReadingModel:
    """A model whose verdicts are read in this process; llama.cpp writes its longer answers. The blocks of a prompt
    depend on the prompt alone, so the same request gets the same answer."""

    repeats_itself = True
    takes_images = False
    reads_one_token = True  # answers of one token are read here; another program writes longer ones
    price = FREE
    thinking_room = ()  # empty: one token is read, so there is no room to think

    def __init__(
        self,
        name: str,
        identity: str,
        writer: Model,
        load: Callable[[], Reader],
        *,
        beside: bool = False,
        choice: Callable[[], object] = lambda: None,
    ) -> None:
        """``writer`` gives answers longer than a token. ``load`` makes the reader; with ``beside`` this is a
        :class:`SideBySideReader`. ``choice`` looks up the settings for this processor
        (:class:`~.consistency.ReaderSettings`); None if no settings were tried yet."""
        self.name, self.identity = name, identity
        self.slots = 2 * TOGETHER if beside else 1  # twice, as requests may be on two outputs, or of two lengths
        self._writer, self._load, self._beside = writer, load, beside
        self.choice = choice
        self._reader: Reader | None = None
        self._texts: dict[int, str] = {}
        self._thread = ThreadPoolExecutor(1, "askance-reader")
        self._waiting: list[_Waiting] = []
        self._working: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Answer:
        """Ask once. Requests are read one after the other, or several side by side. Raises ModelError without a usable
        answer, MissingExtraError if the reader is not installed, and InputError if it cannot read the file."""
        wanted = request.parameters
        if wanted.max_tokens != 1 or wanted.temperature or wanted.schema is not None:
            return await self._writer.answer(request)
        waiting = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._answer_all())
        return await waiting.answer

    async def close(self) -> None:
        """Let go of the weights, after the reading that is under way."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._reader = None

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                if self._beside:
                    await asyncio.sleep(GATHERED)
                self._waiting = [each for each in self._waiting if not each.answer.done()]  # others were cancelled
                batch = self._waiting[: self.slots]
                if not batch:
                    return
                for caller, said in await loop.run_in_executor(self._thread, self._answers, batch):
                    self._waiting.remove(caller)
                    _tell(caller, said)
        except BaseException as error:
            unanswered, self._waiting = self._waiting, []
            for caller in unanswered:
                _tell(caller, error)
            if not isinstance(error, Exception):
                raise

    def _answers(self, waiting: Sequence[_Waiting]) -> list[tuple[_Waiting, Answer | Exception]]:
        """Answer the first request, and the requests that are read beside it."""
        if self._reader is None:
            self._reader = self._load()
        for caller in waiting:
            if not caller.tokens:
                caller.tokens, ends = self._reader.tokens(caller.request.messages, caller.request.framing)
                caller.ends = blocks(ends)
        first = waiting[0]
        if opens_thought("".join(self._text(token) for token in first.tokens[-TAG_TOKENS:])):  # in the template
            return [(first, self._thinks())]
        if len(first.tokens) >= CONTEXT:
            text = f"{self.name}: the prompt has {len(first.tokens)} tokens; there is room for {CONTEXT}."
            return [(first, ModelError(text, status=413))]  # the status with which a server refuses it
        group = first.beside
        if not isinstance(self._reader, SideBySideReader) or group is None:
            return [(first, self._read(first, self._reader.next_token(first.tokens, first.ends)))]
        together = [other for other in waiting if other.beside == group and len(other.tokens) < CONTEXT][:TOGETHER]
        read = self._reader.next_tokens([request.tokens for request in together], first.ends)
        return [(request, self._read(request, logprobs)) for request, logprobs in zip(together, read, strict=True)]

    def _read(self, asked: _Waiting, logprobs: NDArray[np.float32]) -> Answer | ModelError:
        """Return the likeliest token with its alternatives, or an error if that token opens a thought."""
        wanted = asked.request.parameters
        likeliest = _likeliest(logprobs, max(wanted.top_logprobs, 1))
        top = [{"token": self._text(each), "logprob": float(logprobs[each])} for each in likeliest]
        token = self._text(likeliest[0])
        if opens_thought(token):
            return self._thinks()
        kept = read_logprobs({"content": [{"token": token, "top_logprobs": top}]}, wanted)
        return Answer(token, kept, len(asked.tokens), 1, 0.0, finish="length")

    def _text(self, token: int) -> str:
        assert self._reader is not None
        if token not in self._texts:
            self._texts[token] = self._reader.text(token)
        return self._texts[token]

    def _thinks(self) -> ModelError:
        """Return the error that ends the command: a thought is longer than the one token that is read here."""
        text = "this model thinks before it answers, and only its first token is read here. Name it as local/…, which"
        return ModelError(f"{self.name}: {text} gives it room to think.", fatal=True)


def _tell(waiting: _Waiting, said: Answer | BaseException) -> None:
    if waiting.answer.done():
        return
    if isinstance(said, asyncio.CancelledError):
        waiting.answer.cancel()
    elif isinstance(said, BaseException):
        waiting.answer.set_exception(said)
    else:
        waiting.answer.set_result(said)


def as_long(tokens: int) -> int:
    """Round the length of a prompt's remainder up to a multiple of ``STEP``. Masked tokens fill the gap, so that
    remainders of other lengths can be read beside it."""
    return -(-tokens // STEP) * STEP


def blocks(ends: Sequence[int]) -> list[int]:
    """Return the ends of a prompt's kept blocks, from the ``ends`` where it may part from other prompts. An end is left
    out if rereading the few tokens before or after it is faster than one more block."""
    kept, done = list[int](), 0
    for place, end in enumerate(ends):
        long_enough = end - done >= (TEXT if place else OPENING) and ends[-1] - end >= OPENING
        if end == ends[-1] or long_enough:
            kept += [*range(done + BLOCK, end, BLOCK), end]
            done = end
    return [each for each in kept if each]


def _likeliest(logprobs: NDArray[np.float32], count: int) -> list[int]:
    """Return the ``count`` likeliest tokens, the likeliest first."""
    # the whole vocabulary is not sorted for each verdict
    tokens = np.argpartition(-logprobs, min(count, len(logprobs)) - 1)[:count]
    return [int(token) for token in tokens[np.argsort(-logprobs[tokens], kind="stable")]]


Block = list[NDArray[Any]]  # keys and values that a block's tokens left in every layer


class KeptBlocks:
    """Cache for keys and values of prompts' blocks. Above ``CACHE_MIB`` the least recently used blocks are dropped."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[bytes, Block] = OrderedDict()
        self._bytes = 0

    def begun(self, tokens: Sequence[int], ends: Sequence[int]) -> tuple[list[Block], list[bytes]]:
        """Return the kept blocks with which a prompt begins, and the keys of all its blocks, which end at ``ends``."""
        keys = [blake2b(np.asarray(tokens[:end], np.int64).tobytes(), digest_size=16).digest() for end in ends]
        known: list[Block] = []
        for key in keys:
            if key not in self._blocks:
                break
            self._blocks.move_to_end(key)
            known.append(self._blocks[key])
        return known, keys

    def keep(self, key: bytes, block: Block) -> None:
        """Keep the keys and values of a block."""
        self._blocks[key] = block
        self._bytes += _size(block)
        while self._bytes > CACHE_MIB * 2**20 and len(self._blocks) > 1:
            self._bytes -= _size(self._blocks.popitem(last=False)[1])


def _size(block: Block) -> int:
    return sum(each.nbytes for each in block)


def parted(text: str, framing: Framing | None, encode: Callable[[str], list[int]]) -> tuple[list[int], list[int]]:
    """Return the tokens of a prompt in its model's form, and the places where it may part from other prompts."""
    whole = encode(text)
    shown = "" if framing is None else framing.before.strip()
    place = text.find(shown)
    if framing is None or not shown or place < 0:
        return whole, []
    place -= framing.before.find(shown)  # the template may take white space away
    ends = [_shared(whole, encode(text[: place + end])) for end in (*framing.ends, len(framing.before.rstrip()))]
    return whole, sorted({min(end, len(whole) - 1) for end in ends})


def _shared(tokens: Sequence[int], begin: Sequence[int]) -> int:
    """Number of common first tokens. The last characters of ``begin`` may form one token with the text after it."""
    return next((i for i, pair in enumerate(zip(begin, tokens, strict=False)) if pair[0] != pair[1]), len(begin))


def normalised(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return log-probabilities for logits."""
    return logits - np.float32(np.log(np.exp(logits - logits.max()).sum()) + logits.max())
