"""The remembered cases that are nearest to an output, found by embedding when it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..prompts.examples import Example
from ..prompts.shown_examples import FixedExamples, RememberedCase, ShownExamples, Shows, Texts, allowed, cut
from .embedders import Embedder, embedder


@dataclass(frozen=True)
class NearestExamples:
    """Shows with each output the cases nearest to it, the nearest last, right before it."""

    record: ShownExamples
    embedder: Embedder = field(compare=False)
    _known: dict[Texts, NDArray[np.float32]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """By what was embedded: an output is laid out more than once."""

    def cases_for(self, example: Example) -> Sequence[RememberedCase]:
        """The nearest ones by cosine; of equally near ones those that come first in the record."""
        those = allowed(self.record.cases, example)
        if not those:
            return []
        places = {each.id: place for place, each in enumerate(self.record.cases)}
        texts = cut(example)
        if texts not in self._known:
            self._known[texts] = self.embedder.embed([embedded(texts)])[0]
        near = {each.id: float(self._vectors[places[each.id]] @ self._known[texts]) for each in those}
        chosen = sorted(those, key=lambda each: (-round(near[each.id], 6), places[each.id]))
        return chosen[: self.record.at_once][::-1]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self.embedder.embed([embedded((each.input, each.context, each.output)) for each in self.record.cases])


def embedded(texts: Texts) -> str:
    """What is embedded of an example: its output first, as an embedder may read the beginning alone."""
    return f"Output: {texts[2]}\nInput: {texts[0]}"


def shown_by(record: ShownExamples) -> Shows:
    """What shows these examples, wherever they are used.

    Raises:
        InputError: There is no such embedder.
        MissingExtraError: Its packages are not installed.
    """
    return FixedExamples(record) if record.embedder is None else NearestExamples(record, embedder(record.embedder))
