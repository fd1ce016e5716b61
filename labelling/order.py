"""Which output is asked about next."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from ..memory.embedders import embedder
from ..prompts.errors import InputError
from ..prompts.examples import Example
from .labels_file import Why
from .opinions import Opinions
from .options import Order

SHARE_AT_RANDOM = 1 / 3
"""Of the outputs, where others are chosen: nothing but them tells how well the judge does on all."""
SEEN_OFTEN = 3
"""Labelled outputs on which the judge gave an answer to a question, from which on that answer counts as tested."""
MOST_SPREAD = 200
"""Outputs that are spread out; what comes after them is drawn at random."""
MOST_COMPARED = 5_000
"""Outputs that are compared with each other for that."""
SIGNALS: dict[Why, str] = {
    "disagreement": "the judges disagree",
    "uncertain": "the judge is unsure",
    "untested": "questions are untested",
}
WORDS: dict[Why, str] = {
    **SIGNALS,
    "random": "drawn at random",
    "spread": "unlike those before",
    "file": "next in the file",
    "skipped": "skipped before",
}
"""Why an output is asked about, as the page says it."""

Places = NDArray[np.intp]


class Queue:
    """Says which output comes next; the same labels always lead to the same output.

    A fixed share of the outputs, drawn by a hash of seed and id, is asked about in random order and for no other reason:
    they are a random sample of all, whatever is chosen beside them.
    """

    def __init__(self, order: Order, examples: Sequence[Example], opinions: Opinions | None, seed: int) -> None:
        """Prepare the order.

        Raises:
            InputError: The order needs judges that are not there.
        """
        self.order: Order = ("spread" if opinions is None else "informative") if order == "auto" else order
        self._opinions = opinions
        self._chance = np.array([_chance(seed, each.id) for each in examples])
        self._signals: dict[Why, Callable[[NDArray[np.bool_]], NDArray[np.float64]]] = {}
        if self.order in ("informative", *SIGNALS):
            self._signals = self._signals_of(self.order)
        self._at_random = self._chance < (SHARE_AT_RANDOM if self._signals else 1.0)
        self._rank = np.argsort(np.argsort(self._chance, kind="stable"), kind="stable")
        if self.order == "file":
            self._rank = np.arange(len(examples))
        elif self.order == "spread":
            self._rank = _spread([each.output or "" for each in examples], self._rank)

    @property
    def sentence(self) -> str:
        """The order in words."""
        if not self._signals:
            return {
                "spread": "outputs that are unlike each other first",
                "random": "outputs in random order",
                "file": "outputs in the order of the file",
            }[self.order]
        named = " or ".join(SIGNALS[each] for each in self._signals)
        return f"outputs first on which {named}; every third is drawn at random, to tell how well the judge does on all"

    def pick(self, open_places: Places, labelled: NDArray[np.bool_], asked: dict[Why, int]) -> tuple[int, Why]:
        """The next output and why.

        Args:
            open_places: Positions of the outputs that may be asked about; at least one.
            labelled: Which outputs have a label; shape (examples,).
            asked: How many outputs were asked about so far, by reason.
        """
        if not self._signals:
            why: Why = "random" if self.order == "random" else "file" if self.order == "file" else "spread"
            return int(open_places[np.argmin(self._rank[open_places])]), why
        drawn = open_places[self._at_random[open_places]]
        chosen = open_places[~self._at_random[open_places]]
        at_random = asked.get("random", 0)
        others = sum(count for why, count in asked.items() if why != "random")
        turn = (at_random + 1) / (at_random + others + 1) <= SHARE_AT_RANDOM + 1e-9
        if len(drawn) and (turn or not len(chosen)):
            return int(drawn[np.argmin(self._chance[drawn])]), "random"
        values = np.vstack([signal(labelled)[chosen] for signal in self._signals.values()])
        total = values.sum(axis=0)
        best = int(np.lexsort((self._chance[chosen], -total))[0])
        why = list(self._signals)[int(values[:, best].argmax())]
        return int(chosen[best]), why

    def _signals_of(self, order: Order) -> dict[Why, Callable[[NDArray[np.bool_]], NDArray[np.float64]]]:
        found = self._opinions
        if found is None:
            raise InputError(f"order {order}: a judge's verdicts are needed (--judge RUN_OR_VERDICTS).")
        apart, doubt = found.disagreement, found.doubt
        if order == "disagreement" and apart is None:
            raise InputError("order disagreement: the verdicts of two judges are needed (--judge twice).")
        signals: dict[Why, Callable[[NDArray[np.bool_]], NDArray[np.float64]]] = {}
        if apart is not None:
            signals["disagreement"] = lambda labelled: apart
        signals["uncertain"] = lambda labelled: doubt
        signals["untested"] = self._untested
        return {each: signal for each, signal in signals.items() if order in ("informative", each)}

    def _untested(self, labelled: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Share of the questions whose answer on an output is one that too few labelled outputs have, in [0, 1]."""
        assert self._opinions is not None
        answers = self._opinions.judges[0].answers
        known = answers[labelled]
        share: NDArray[np.float64] = np.zeros(len(answers))
        for value in (0.0, 1.0):
            rare = (known == value).sum(axis=0) < SEEN_OFTEN
            share += ((answers == value) & rare).mean(axis=1)
        return share


def _chance(seed: int, name: str) -> float:
    return int.from_bytes(sha256(f"{seed}/{name}".encode()).digest()[:6], "big") / 2**48


def _spread(texts: Sequence[str], rank: Places) -> Places:
    """Ranks in which each output is the one least like all before it (farthest first), by words; then as in ``rank``."""
    order = np.argsort(rank)
    among = order[:MOST_COMPARED]
    words = [texts[place] if re.search(r"\w", texts[place]) else "nothing" for place in among]
    vectors = embedder("words").embed(words)
    first = int(np.argmax(vectors @ vectors.mean(axis=0)))
    chosen, nearest = [first], vectors @ vectors[first]
    while len(chosen) < min(MOST_SPREAD, len(among)):
        nearest[chosen[-1]] = np.inf
        far = int(np.argmin(nearest))
        chosen.append(far)
        nearest = np.maximum(nearest, vectors @ vectors[far])
    front = among[chosen]
    rest = order[~np.isin(order, front)]
    ranks = np.empty(len(texts), dtype=np.intp)
    ranks[np.concatenate([front, rest])] = np.arange(len(texts))
    return ranks
