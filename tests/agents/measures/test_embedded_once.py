"""The texts that relation measures embed: each once, whatever the measures, and none a second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from askance.agents.measures import values
from askance.agents.measures.similarity import KEPT, KeptVectors
from askance.evaluation.measures import fitting
from askance.evaluation.measures.fitting import MeasureTable
from askance.prompts.criteria.measures import SIMILAR
from askance.prompts.examples import Example

SENTENCES = 10


class Counting:
    """Embeds a text by its length, and counts the texts."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.update(texts)
        rows = np.array([[1.0, len(each) % 7 + 1, len(each) % 11] for each in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def examples(size: int) -> list[Example]:
    """Outputs of ten sentences each, no two alike."""
    return [
        Example(
            id=f"e{number}",
            input=f"What is known of street {number}?",
            output=" ".join(f"House {place} of street {number} has {place + 2} doors." for place in range(SENTENCES)),
        )
        for number in range(size)
    ]


def test_every_text_is_embedded_once_for_all_similarities_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    kept = KeptVectors(counting)  # type: ignore[arg-type]
    monkeypatch.setattr(values, "kept_vectors", lambda: kept)
    monkeypatch.setattr(fitting, "can_embed", lambda: True)
    some = examples(60)
    table = MeasureTable.of(some)
    assert {f"{name}-input" for name in SIMILAR} & set(table.measures)
    assert set(counting.asked.values()) == {1}
    # ten sentences, the whole output in a piece or two, and the question
    assert len(counting.asked) <= len(some) * (SENTENCES + 3)
    assert 1000 * (SENTENCES + 3) < KEPT, "the vectors of 1,000 such examples are all kept"
    before = counting.asked.total()
    MeasureTable.of(some)
    assert counting.asked.total() == before
    MeasureTable.of(examples(61))
    assert 0 < counting.asked.total() - before <= SENTENCES + 3
