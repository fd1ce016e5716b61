"""Similarities of an output and another text, by the sentence embedder of the lesson memory.

Each sentence is embedded once, and its vector is kept. A text is represented by the vectors of its pieces, so no text
is too long for an embedder that reads 256 tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from ...memory.embedders import DEFAULT_EMBEDDER, Embedder, embedder
from ...prompts.errors import MissingExtraError
from ...prompts.text import sentences

Vectors = NDArray[np.float32]
Parts = Callable[[str], tuple[str, ...]]
PIECE = 120
"""Most words of a piece: about 160 tokens of English, within the 256 that the embedder reads."""
KEPT = 60_000
"""Number of vectors that are kept, about 90 MB. The oldest are removed first."""
WORKERS, AT_ONCE = 2, 64
"""Number of threads, and of texts in a batch."""


class KeptVectors:
    """Vectors of texts; each text is embedded once."""

    def __init__(self, using: Embedder) -> None:
        self.embedder = using
        self._known: dict[str, Vectors] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Embed unknown texts, in batches on two threads. Before, remove the oldest beyond :data:`KEPT`."""
        for text in list(self._known)[: max(0, len(self._known) - KEPT)]:
            del self._known[text]
        new = sorted({each for each in texts if each not in self._known}, key=len)
        batches = [new[start : start + AT_ONCE] for start in range(0, len(new), AT_ONCE)]
        with ThreadPoolExecutor(WORKERS) as pool:
            for batch, vectors in zip(batches, pool.map(self.embedder.embed, batches), strict=True):
                self._known.update(zip(batch, vectors, strict=True))

    def of(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, shape (n, d)."""
        self.learn(texts)
        return np.stack([self._known[each] for each in texts])


@lru_cache(maxsize=1)
def kept_vectors() -> KeptVectors:
    """Return the vectors of this process. Raises MissingExtraError if the extra ``memory`` is not installed."""
    return KeptVectors(embedder(DEFAULT_EMBEDDER))


def can_embed() -> bool:
    """Return whether the embedder of similarities is installed."""
    if find_spec("onnxruntime") is None:
        return False
    try:
        kept_vectors()
    except MissingExtraError:
        return False
    return True


@lru_cache(maxsize=4096)
def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that have a letter or digit. Sentences over :data:`PIECE` words are split."""
    parts = (_cut(each) for each in sentences(text) if any(sign.isalnum() for sign in each))
    return tuple(each for some in parts for each in some)


@lru_cache(maxsize=4096)
def pieces_of(text: str) -> tuple[str, ...]:
    """Return the text in pieces of whole sentences, each with at most :data:`PIECE` words."""
    pieces: list[list[str]] = []
    for sentence in sentences_of(text):
        if pieces and _length(" ".join([*pieces[-1], sentence])) <= PIECE:
            pieces[-1].append(sentence)
        else:
            pieces.append([sentence])
    return tuple(map(" ".join, pieces))


Found = tuple[float, str | None]
"""A similarity, with the output's sentence that it belongs to; None if it belongs to the whole output."""


def similarity(output: str, text: str, vectors: KeptVectors) -> Found | None:
    """Return the cosine of the output and the text; None if one of them has no words."""
    mine, theirs = _whole(output, vectors), _whole(text, vectors)
    return None if mine is None or theirs is None else (float(mine @ theirs), None)


def nearest_sentence(output: str, text: str, vectors: KeptVectors) -> Found | None:
    """Return the cosine of the text and the output's nearest sentence."""
    theirs = _whole(text, vectors)
    if theirs is None or not (mine := sentences_of(output)):
        return None
    near = vectors.of(mine) @ theirs
    return float(near.max()), mine[int(near.argmax())]


def least_supported(output: str, text: str, vectors: KeptVectors) -> Found | None:
    """Return the lowest cosine of an output's sentence with its nearest sentence in the text."""
    found = _supports(output, text, vectors)
    return None if found is None else (float(found.min()), sentences_of(output)[int(found.argmin())])


def mean_supported(output: str, text: str, vectors: KeptVectors) -> Found | None:
    """Return the mean cosine of the output's sentences with their nearest sentences in the text."""
    found = _supports(output, text, vectors)
    return None if found is None else (float(found.mean()), None)


SIMILARITIES: dict[str, tuple[Callable[[str, str, KeptVectors], Found | None], Parts, Parts]] = {
    "similarity": (similarity, pieces_of, pieces_of),
    "nearest_sentence": (nearest_sentence, sentences_of, pieces_of),
    "least_supported": (least_supported, sentences_of, sentences_of),
    "mean_supported": (mean_supported, sentences_of, sentences_of),
}
"""Similarities by name: the function, then the functions for the parts of output and text that must be embedded."""


def _supports(output: str, text: str, vectors: KeptVectors) -> Vectors | None:
    mine, theirs = sentences_of(output), sentences_of(text)
    if not mine or not theirs:
        return None
    nearest: Vectors = (vectors.of(mine) @ vectors.of(theirs).T).max(axis=1)
    return nearest


def _whole(text: str, vectors: KeptVectors) -> Vectors | None:
    """Return the unit vector of a whole text: the mean of its pieces, weighted by length; None without words."""
    if not (pieces := pieces_of(text)):
        return None
    mean: Vectors = np.array([len(each) for each in pieces], dtype=np.float32) @ vectors.of(pieces)
    return mean / np.linalg.norm(mean)


def _cut(sentence: str) -> list[str]:
    """Split a sentence into parts of at most :data:`PIECE` words; a short sentence is one part."""
    if _length(sentence) <= PIECE:
        return [sentence]
    words = sentence.split()
    if len(words) < PIECE:  # a script without spaces
        return [sentence[start : start + PIECE] for start in range(0, len(sentence), PIECE)]
    return [" ".join(words[start : start + PIECE]) for start in range(0, len(words), PIECE)]


def _length(text: str) -> float:
    """Estimate the number of words: at least one per 8 characters, and one per character from U+0E01 (Thai) on."""
    return max(len(text.split()), len(text) / 8, sum(ord(each) > 0x0E00 for each in text))
