"""A shared encoder without torch: ``model.onnx``, which ``askance train --onnx`` wrote, read by ONNX Runtime."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.errors import InputError, import_optional
from ..embedded.servers import available_threads
from .scorer_file import ONNX_FILE
from .shared_rows import ROWS, inputs_of, lengths_of, of_like_length, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from .scored_text import ScoredText
    from .scorer_file import ScorerFile

EXTRA = "scorer"
TOKENIZER_FILE = "tokenizer.json"


class OnnxEncoder:
    """Reads as :class:`~.shared_encoder.SharedEncoder` does, on the processor; see
    :class:`~.network.ReadingNetwork`."""

    def __init__(self, session: Any, tokenizer: Any, levels: int, longest: int) -> None:
        """``session`` is that of ONNX Runtime, ``tokenizer`` that of the package tokenizers; ``longest`` is in
        tokens."""
        self._session, self._tokenizer, self._levels, self.longest = session, tokenizer, levels, longest
        tokenizer.no_padding()

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> OnnxEncoder:
        """The encoder in a scorer's folder.

        Raises:
            MissingExtraError: A package is missing. InputError: A file is missing or cannot be read.
        """
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
        except Exception as error:  # what both packages raise has no other class in common
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
    """Number of threads, as torch takes it: ``OMP_NUM_THREADS``, else one for each processor that this process may
    use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else available_threads()
