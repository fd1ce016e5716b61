"""Exact nearest neighbours by cosine: an index for a memory that grows, and blocked products for bulk.

Exact on purpose: on 10,000 sentences an HNSW graph missed 17 % of the duplicates and was no faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..prompts.errors import import_optional

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-6
"""Slack on every threshold: in single precision a vector's product with itself may be 0.9999999."""

BLOCK = 1024
AHEAD = 4
"""So many times what is wanted is looked up at once, and again so many times where too few of these fit."""
UNIT_ROUNDING = 2.0**-23
"""Times the dimension: at most so far apart are two single-precision products of the same unit vectors."""
MOST_REMOVED = 1.25
"""Vectors for one entry; where there are more, those of removed entries are cleared away."""


@dataclass(frozen=True)
class Neighbour:
    """One entry of the index near the one that was looked up."""

    id: str
    similarity: float
    """Cosine, in [-1, 1]."""


@dataclass(frozen=True)
class Ahead:
    """What an index found of vectors that were looked up before they were asked for."""

    rows: dict[bytes, int]
    """The number of each vector."""
    near: NDArray[np.int64]
    """Places of the nearest, shape (n, m)."""
    rest: NDArray[np.float32]
    """No other vector that was there has a higher cosine, rounding aside; shape (n,)."""
    count: int
    """Vectors that were there."""
    cleared: int
    """The state of the index in which the places hold."""

    def __contains__(self, vector: NDArray[np.float32]) -> bool:
        """Whether a vector of single precision is among them."""
        return vector.tobytes() in self.rows


class NeighbourIndex:
    """Cosine search among unit vectors that carry ids; exact, over FAISS's flat index.

    Raises:
        MissingExtraError: The package faiss-cpu is not installed.
    """

    def __init__(self, dimension: int) -> None:
        self._faiss: Any = import_optional("faiss", "memory", "faiss-cpu")
        self._index: Any = self._faiss.IndexFlatIP(dimension)
        self._ids: list[str | None] = []
        """By position; None where an entry was removed and its vector is still there."""
        self._places: dict[str, int] = {}
        self._dimension = dimension
        self._cleared = 0
        """How often vectors of removed entries were cleared away: places from before hold no longer."""

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._places)

    def __contains__(self, id: object) -> bool:
        """Say whether there is an entry with this id."""
        return id in self._places

    def add(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add entries; all or, on an error, none.

        Args:
            ids: n ids, none of them in the index yet.
            vectors: Unit vectors, shape (n, d).

        Raises:
            ValueError: An id is taken or given twice, the shape is not (n, d), or a row is not a unit vector.
        """
        rows = _unit_vectors(vectors, self._dimension)
        if len(rows) != len(ids):
            raise ValueError(f"{len(ids)} ids were given for {len(rows)} vectors; give one id per vector.")
        new: dict[str, int] = {}
        for place, id in enumerate(ids, len(self._ids)):
            if id in self._places or id in new:
                raise ValueError(f"The id '{id}' is in the index already; remove it first to replace it.")
            new[id] = place
        self._index.add(rows)
        self._ids.extend(ids)
        self._places |= new

    def remove(self, ids: Sequence[str]) -> None:
        """Take entries out, e.g. a lesson whose text a merge has changed; the order of the others stays.

        Raises:
            KeyError: One of the ids is not in the index; then nothing is removed.
        """
        gone = set(ids)
        if missing := gone.difference(self._places):
            raise KeyError(f"Not in the index: {', '.join(sorted(missing))}.")
        for id in gone:
            self._ids[self._places.pop(id)] = None
        if len(self._ids) > MOST_REMOVED * len(self._places):
            self._index.remove_ids(np.array([i for i, id in enumerate(self._ids) if id is None], dtype=np.int64))
            self._ids = [id for id in self._ids if id is not None]
            self._places = {id: place for place, id in enumerate(self._ids) if id is not None}
            self._cleared += 1

    def look_ahead(self, vectors: NDArray[np.float32], k: int) -> Ahead:
        """Look up together what :meth:`search` will be asked for soon; with it the results are the same, at less cost.

        One product of many vectors with the index reads it once. A search then computes again only what came near in
        it, and what was added since, as it does without.

        Args:
            vectors: Unit vectors, shape (n, d).
            k: How many of the nearest each search will want.

        Raises:
            ValueError: The shape is not (n, d), or a row is not a unit vector.
        """
        rows, count = _unit_vectors(vectors, self._dimension), len(self._ids)
        most = min(AHEAD * k, count)
        near, rest = np.empty((len(rows), 0), dtype=np.int64), np.full(len(rows), -np.inf, dtype=np.float32)
        if most:
            similarities, near = self._index.search(rows, most)
            if most < count:
                rest = similarities[:, -1]
        return Ahead({row.tobytes(): number for number, row in enumerate(rows)}, near, rest, count, self._cleared)

    def search(
        self,
        vector: NDArray[np.float32],
        k: int,
        at_least: float = -1.0,
        fits: Callable[[str], bool] = lambda _: True,
        ahead: Ahead | None = None,
    ) -> list[Neighbour]:
        """Return up to ``k`` entries whose cosine with ``vector`` is at least ``at_least``, nearest first.

        Args:
            vector: A unit vector, shape (d,).
            k: At least 1.
            at_least: In [-1, 1]. Equally near entries come in the order in which they were added.
            fits: Whether the entry with an id counts; it is asked of the nearest ones until there are ``k``.
            ahead: What :meth:`look_ahead` of this index gave; it saves most of the work where ``vector`` is in it.

        Raises:
            ValueError: ``k`` or ``at_least`` is out of range, or ``vector`` is no unit vector of d numbers.
        """
        _check_cosine(at_least)
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}.")
        if np.ndim(vector) != 1:
            raise ValueError(f"One vector is looked up at a time, of shape ({self._dimension},).")
        query = _unit_vectors(vector[None, :], self._dimension)
        is_ahead = ahead is not None and ahead.cleared == self._cleared and vector in ahead
        most = AHEAD * k
        while True:
            if ahead is not None and is_ahead:
                ordered, is_all = self._nearest_of(ahead, query, at_least)
            else:
                ordered, is_all = self._nearest(query, most, at_least)
                most *= AHEAD
            found = ((self._ids[place], similarity) for place, similarity in ordered)
            near = (Neighbour(id, _clipped(each)) for id, each in found if id is not None and fits(id))
            nearest = list(islice(near, k))
            if is_all or len(nearest) == k:
                return nearest
            is_ahead = False

    def _nearest(
        self, query: NDArray[np.float32], most: int, at_least: float
    ) -> tuple[Iterator[tuple[int, float]], bool]:
        """Places and cosines of the nearest vectors, in order, and whether that is all that are near enough."""
        most = min(most, len(self._ids))
        if not most:
            return iter(()), True
        (similarities,), (places,) = self._index.search(query, most)
        kept = similarities >= at_least - ROUNDING
        is_all = most == len(self._ids) or not kept[-1]
        if not is_all:  # others may be as near as the last one, and may have come before it
            kept = similarities > similarities[-1]
        return _in_order(places[kept], similarities[kept]), is_all

    def _nearest_of(
        self, ahead: Ahead, query: NDArray[np.float32], at_least: float
    ) -> tuple[Iterator[tuple[int, float]], bool]:
        """As :meth:`_nearest`, among what came near when it was looked up ahead and what was added since."""
        number = ahead.rows[query.tobytes()]
        candidates = np.concatenate([ahead.near[number], np.arange(ahead.count, len(self._ids), dtype=np.int64)])
        only = self._faiss.SearchParameters(sel=self._faiss.IDSelectorArray(candidates))
        (similarities,), (places,) = self._index.search(query, len(candidates), params=only)
        rest = float(ahead.rest[number]) + self._dimension * UNIT_ROUNDING
        kept = (similarities >= at_least - ROUNDING) & (similarities > rest)
        return _in_order(places[kept], similarities[kept]), rest < at_least - ROUNDING


def _in_order(places: NDArray[np.int64], similarities: NDArray[np.float32]) -> Iterator[tuple[int, float]]:
    ordered = np.lexsort((places, -similarities))
    return zip(places[ordered].tolist(), similarities[ordered].tolist(), strict=True)


def greedy_unique(vectors: NDArray[np.float32], threshold: float, block: int = BLOCK) -> list[int]:
    """Keep each row unless its cosine with an earlier kept row is at least ``threshold``.

    Fit for identical wording only: sentences that differ in one decisive word ("at least" / "at most") come
    out nearer than most paraphrases, so no threshold can stand in for a model's decision.

    Args:
        vectors: Unit vectors, shape (n, d), the preferred ones first.
        threshold: In [-1, 1].
        block: Rows in one product, at least 1; the result does not depend on it.

    Returns:
        The numbers of the kept rows, ascending.

    Raises:
        ValueError: An argument is out of range or a row is not a unit vector.
    """
    _check_cosine(threshold)
    rows = _unit_vectors(vectors)
    limit = threshold - ROUNDING
    kept: list[int] = []
    for start in _starts(len(rows), block):
        part = rows[start : start + block]
        dropped = np.zeros(len(part), dtype=bool)
        for some in range(0, len(kept), block):
            dropped |= (part @ rows[kept[some : some + block]].T >= limit).any(axis=1)
        within = part @ part.T >= limit
        for i in range(len(part)):
            if not dropped[i]:
                kept.append(start + i)
                dropped |= within[i]
    return kept


def _starts(count: int, block: int) -> Iterator[int]:
    if block < 1:
        raise ValueError(f"block must be at least 1, not {block}.")
    return iter(range(0, count, block))


def _unit_vectors(vectors: NDArray[np.float32], dimension: int | None = None) -> NDArray[np.float32]:
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or (dimension is not None and rows.shape[1] != dimension):
        wanted = "n, d" if dimension is None else f"n, {dimension}"
        raise ValueError(f"Vectors of shape ({wanted}) are needed, not {rows.shape}.")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    good = np.abs(lengths - 1) < 1e-3
    if not good.all():
        bad = np.flatnonzero(~good)
        raise ValueError(f"Row {bad[0]} has length {lengths[bad[0]]:.4g}; normalise the rows to length 1.")
    return rows


def _check_cosine(value: float) -> None:
    if not -1 <= value <= 1:
        raise ValueError(f"A cosine threshold lies in [-1, 1]; {value} does not.")


def _clipped(similarity: float) -> float:
    return min(1.0, max(-1.0, similarity))
