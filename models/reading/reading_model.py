"""Models whose verdicts are read in this process: one token after a long prompt, so that its time is that of reading.

What reads is a :class:`Reader`. Some also write what is longer (:class:`WritingReader`), the likeliest token each time: llama.cpp
writes as fast, but has to read the prompt first. What is drawn at random, or follows a schema, is left to llama.cpp.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..base import Answer, Message, Model, ModelError, Parameters, Request
from ..direct import after_thinking, read_logprobs
from ..prices import FREE

if TYPE_CHECKING:
    from ...prompts.prompt import Framing

BLOCK = 512
"""Tokens that are read, and kept, together, at most."""
OPENING, TEXT = 16, 64
"""Tokens from which on a prompt's fixed text, and one text of an example, is kept as a block of its own: each block is one more way
of the weights through the processor, as long as that of some twenty tokens."""
CONTEXT = 4096
"""Tokens that a prompt may have, as for `askance.models.embedded`."""
CACHE_MIB = 2048


class Reader(Protocol):
    """Reads prompts of one model."""

    def tokens(self, messages: Sequence[Message], framing: Framing | None) -> tuple[list[int], list[int]]:
        """The prompt's tokens, and after how many of them it may part from other prompts, in order."""
        ...

    def next_token(self, tokens: Sequence[int], ends: Sequence[int]) -> NDArray[np.float32]:
        """Log-probability of each token of the vocabulary after these, which are kept in blocks that end at ``ends``."""
        ...

    def text(self, token: int) -> str:
        """What a token is written as."""
        ...


@runtime_checkable
class WritingReader(Reader, Protocol):
    """One that goes on."""

    def after(self, token: int) -> NDArray[np.float32]:
        """Log-probabilities after one token more than was read last."""
        ...

    def ends(self, token: int) -> bool:
        """Whether a token ends an answer."""
        ...

    def words(self, tokens: Sequence[int]) -> str:
        """The text that these tokens are together."""
        ...


class ReadingModel:
    """A model whose verdicts are read in this process, and whose other answers llama.cpp writes, as far as the reader does not.

    The same request gets the same answer: how a prompt is cut into blocks depends on the prompt alone, not on what was
    read before.
    """

    repeats_itself = True
    slots = 1
    price = FREE

    def __init__(
        self, name: str, identity: str, writer: Model, load: Callable[[], Reader], *, writes: bool = False
    ) -> None:
        """``writer`` answers what is not read here; ``load`` makes the reader, when it is first needed, which may write, too."""
        self.name, self.identity = name, identity
        self._writer, self._load, self._writes = writer, load, writes
        self._reader: Reader | None = None
        self._texts: dict[int, str] = {}
        self._thread = ThreadPoolExecutor(1, "askance-reader")
        self._turn = asyncio.Semaphore(1)
        self._closed = False

    async def answer(self, request: Request) -> Answer:
        """Ask once, one at a time.

        Raises:
            ModelError: No usable answer. MissingExtraError, InputError: What reads is not installed, or cannot read the file.
        """
        wanted = request.parameters
        if (wanted.max_tokens != 1 and not self._writes) or wanted.temperature or wanted.schema is not None:
            return await self._writer.answer(request)
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, request)

    def highest_cost(self, request: Request) -> float:
        """Nothing: it runs here."""
        return 0.0

    async def close(self) -> None:
        """Let go of the weights; what is being read is read to its end, what is being written is not written further."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._reader = None

    def _read(self, request: Request) -> Answer:
        if self._reader is None:
            self._reader = self._load()
        tokens, ends = self._reader.tokens(request.messages, request.framing)
        if len(tokens) >= CONTEXT:
            text = f"{self.name}: the prompt has {len(tokens)} tokens; there is room for {CONTEXT}."
            raise ModelError(text, status=413)  # as a server refuses it
        logprobs = self._reader.next_token(tokens, blocks(ends))
        if request.parameters.max_tokens != 1:
            return self._written(request.parameters, tokens, logprobs)
        first = self._alternatives(logprobs, max(request.parameters.top_logprobs, 1))
        kept = read_logprobs({"content": [first]}) if request.parameters.top_logprobs else None
        return Answer(str(first["token"]), kept, len(tokens), 1, 0.0, finish="length")

    def _written(self, wanted: Parameters, prompt: Sequence[int], logprobs: NDArray[np.float32]) -> Answer:
        """The likeliest token each time, until the answer ends."""
        reader = self._reader
        assert isinstance(reader, WritingReader)
        tokens: list[int] = []
        content: list[dict[str, Any]] = []
        finish, room = "length", min(wanted.max_tokens, CONTEXT - len(prompt))
        while len(tokens) < room:
            if tokens:
                logprobs = reader.after(tokens[-1])
            likeliest = int(logprobs.argmax())
            if reader.ends(likeliest):
                finish = "stop"
                break
            tokens.append(likeliest)
            if wanted.top_logprobs:
                content.append(self._alternatives(logprobs, wanted.top_logprobs))
            if self._closed:
                raise ModelError(f"{self.name} was closed while it wrote an answer.")
        kept = read_logprobs({"content": content}) if wanted.top_logprobs else None
        text, kept = after_thinking(reader.words(tokens), kept, apart=False)
        return Answer(text, kept, len(prompt), len(tokens), 0.0, finish=finish)

    def _alternatives(self, logprobs: NDArray[np.float32], count: int) -> dict[str, Any]:
        """The likeliest token and so many that might have been, in the form that endpoints have."""
        likeliest = _likeliest(logprobs, count)
        for each in likeliest:
            if each not in self._texts:
                self._texts[each] = self._reader.text(each)  # type: ignore[union-attr]
        top = [{"token": self._texts[each], "logprob": float(logprobs[each])} for each in likeliest]
        return {"token": top[0]["token"], "top_logprobs": top}


def blocks(ends: Sequence[int]) -> list[int]:
    """Where the blocks end that are kept of a prompt which may part from others at ``ends``.

    It depends on the prompt alone. A place is left out where so little comes after the one before, or before the last, that
    reading it again is faster than one more block.
    """
    kept: list[int] = []
    done = 0
    for place, end in enumerate(ends):
        long_enough = end - done >= (TEXT if place else OPENING) and ends[-1] - end >= OPENING
        if end == ends[-1] or long_enough:
            kept += [*range(done + BLOCK, end, BLOCK), end]
            done = end
    return [each for each in kept if each]


def _likeliest(logprobs: NDArray[np.float32], count: int) -> list[int]:
    """The likeliest tokens in order, without sorting the whole vocabulary for each verdict."""
    some = np.argpartition(-logprobs, min(count, len(logprobs)) - 1)[:count]
    return [int(each) for each in some[np.argsort(-logprobs[some], kind="stable")]]


Block = list[NDArray[Any]]
"""Keys and values that a block's tokens left in every layer."""


class KeptBlocks:
    """What blocks of prompts left, the ones used last within a limit."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[bytes, Block] = OrderedDict()
        self._bytes = 0

    def begun(self, tokens: Sequence[int], ends: Sequence[int]) -> tuple[list[Block], list[bytes]]:
        """The blocks that are known of those that end at ``ends``, from the first on, and the keys of all."""
        keys = [blake2b(np.asarray(tokens[:end], np.int64).tobytes(), digest_size=16).digest() for end in ends]
        known: list[Block] = []
        for key in keys:
            if key not in self._blocks:
                break
            self._blocks.move_to_end(key)
            known.append(self._blocks[key])
        return known, keys

    def keep(self, key: bytes, block: Block) -> None:
        """Keep what a block left."""
        self._blocks[key] = block
        self._bytes += _size(block)
        while self._bytes > CACHE_MIB * 2**20 and len(self._blocks) > 1:
            self._bytes -= _size(self._blocks.popitem(last=False)[1])


def _size(block: Block) -> int:
    return sum(each.nbytes for each in block)


def parted(text: str, framing: Framing | None, encode: Callable[[str], list[int]]) -> tuple[list[int], list[int]]:
    """The tokens of a prompt that stands in its model's form, and after how many of them it may part from other prompts."""
    whole = encode(text)
    shown = "" if framing is None else framing.before.strip()
    place = text.find(shown)
    if framing is None or not shown or place < 0:
        return whole, []
    place -= framing.before.find(shown)  # the template may take white space away
    ends = [_shared(whole, encode(text[: place + end])) for end in (*framing.ends, len(framing.before.rstrip()))]
    return whole, sorted({min(end, len(whole) - 1) for end in ends})


def parted_at_last(text: str, last: str, encode: Callable[[str], list[int]]) -> tuple[list[int], list[int]]:
    """The same of a prompt without a framing, which parts from others where what was said ``last`` begins."""
    whole, place = encode(text), text.rfind(last.strip())
    return whole, [_shared(whole, encode(text[:place]))] if place > 0 else []


def _shared(tokens: Sequence[int], begin: Sequence[int]) -> int:
    """With how many of these tokens both begin: what follows a text may be one token with its last characters."""
    return next((i for i, pair in enumerate(zip(begin, tokens, strict=False)) if pair[0] != pair[1]), len(begin))


def normalised(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-probabilities."""
    return logits - np.float32(np.log(np.exp(logits - logits.max()).sum()) + logits.max())
