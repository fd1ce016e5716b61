"""Choose questions together: what each question adds to the chosen ones, and what a set tells about the rating.

The single best questions often ask the same thing. The answers of a set tell I(y; a_1..a_k) about the rating y. With
five yes/no questions and five rating levels this is a table of 160 cells, so its plug-in value is mostly bias.

*Information of a set* (:func:`chained_information`) follows the chain rule, Σ_j I(y; a_j | a_1..a_{j-1}). Each term is
the plug-in information inside every combination of earlier answers, minus its exact mean over all shuffles of the
ratings inside that combination. So a question that adds nothing adds 0 on average, and a combination seen once adds 0.

*The next question* (:func:`greedy_order`) is chosen by pairs. The value of a question is the least information that it
adds to any one chosen question, min_s I(y; a_q | a_s), mixed with a little of its information alone. The question with
the largest value comes next (Fleuret 2004). Choosing by the whole table is worse below some 300 examples, because its
cells are too thin.

*The k questions* (:func:`joint_order`) begin as the greedy set, or as the k best single questions if these tell more
together. Then a question is exchanged for another if this gains more than its standard error. So on the examples that
choose, the set never tells less than the k best single questions. On other examples it can: the best of many estimates
is too high, and more so the more sets were compared. This is why an exchange has to exceed its noise.

All parts were measured against a known truth and on held-out examples (docs/results/choosing.md, "Choosing questions by
information").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .information import Floats, best_alone, expected_under_shuffling, mutual_information

Codes = NDArray[np.int64]

ALONE = 0.2
"""Weight of a question's information alone, against the least that it adds to any chosen question. The information
alone is estimated with less noise."""
THIN = 5.0
"""Examples per combination of answers below which no question is exchanged."""
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class HardAnswers:
    """Answers and ratings as codes, -1 where missing."""

    answers: Codes
    """(examples, questions), 0 ... options - 1."""
    ratings: Codes
    """(examples,), 0 ... levels - 1."""
    options: int
    levels: int

    def take(self, rows: NDArray[np.bool_] | Codes) -> HardAnswers:
        """Return some of the examples, by a mask or their places."""
        return HardAnswers(self.answers[rows], self.ratings[rows], self.options, self.levels)


def conditional_information(data: HardAnswers, cells: Codes, questions: Sequence[int] | None = None) -> Floats:
    """Return I(y; a_q | cell) in bits for every question (or for ``questions``), corrected inside each cell; 0 where no
    example is complete. ``cells`` has a number for each example; a number below 0 leaves the example out."""
    answers = data.answers if questions is None else data.answers[:, list(questions)]
    used = (cells >= 0) & (data.ratings >= 0)
    _, place = np.unique(cells[used], return_inverse=True)
    number = int(place.max(initial=-1)) + 1
    count = answers.shape[1]
    if not number:
        return np.zeros(count)
    rows = place * data.levels + data.ratings[used]
    given = answers[used]
    column = np.arange(count) * data.options + given
    flat = rows[:, None] * (count * data.options) + column
    size = number * data.levels * count * data.options
    table = np.bincount(flat[given >= 0], minlength=size).reshape(number, data.levels, count, data.options)
    tables = table.transpose(2, 0, 3, 1).reshape(count * number, data.options, data.levels).astype(np.float64)
    examples = tables.sum(axis=(1, 2)).astype(np.int64)
    bits = np.zeros(len(tables))
    mixed = np.flatnonzero(_mixed(tables))  # elsewhere the information and its mean are 0
    bits[mixed] = mutual_information(tables[mixed], examples[mixed]) - expected_under_shuffling(
        tables[mixed], examples[mixed]
    )
    weights = examples.reshape(count, number)
    total = weights.sum(axis=1)
    gains: Floats = (bits.reshape(count, number) * weights).sum(axis=1) / np.maximum(total, 1)
    return gains


def chained_information(data: HardAnswers, order: Sequence[int]) -> Floats:
    """Return the bits that the first 1, 2, ... questions of an order tell together; shape (questions in the order,).

    An example drops out at its first missing answer. Where the combinations of answers have few examples each, further
    questions seem to add nothing: see :func:`occupied`.
    """
    cells = np.zeros(len(data.ratings), dtype=np.int64)
    gains = []
    for question in order:
        gains.append(float(conditional_information(data, cells, [question])[0]))
        cells = _split(cells, data.answers[:, question], data.options)
    total: Floats = np.cumsum(gains)
    return total


def occupied(data: HardAnswers, order: Sequence[int]) -> list[float]:
    """Return the examples per combination of answers that occurs, after the first 1, 2, ... questions."""
    cells = np.zeros(len(data.ratings), dtype=np.int64)
    shares = []
    for question in order:
        cells = _split(cells, data.answers[:, question], data.options)
        here = cells[(cells >= 0) & (data.ratings >= 0)]
        shares.append(len(here) / len(np.unique(here)) if len(here) else 0.0)
    return shares


def joint_order(
    data: HardAnswers, worth: Floats, k: int, *, costs: Floats | None = None
) -> tuple[list[int], list[float]]:
    """Order the questions so that the first k tell together no less than the k best single ones, on these examples.

    Start with the first k of the greedy order or the k best single questions, whichever tell more, and exchange
    questions (:func:`exchange`). After the first k the order is greedy. ``worth`` is the worth of each question alone,
    per cost where there are costs. Returns the same as :func:`greedy_order`.
    """
    greedy, gains = greedy_order(data, worth, costs=costs)
    top = best_alone(worth)[:k]
    begin = max((greedy[:k], top), key=lambda each: _told(data, each, costs))
    better = exchange(data, begin, costs)
    # exchanges go by the whole table, and may lose by the chain rule
    chosen = max((begin, better), key=lambda each: _told(data, each, costs))
    return (greedy, gains) if chosen == greedy[:k] else greedy_order(data, worth, costs=costs, start=chosen)


def exchange(data: HardAnswers, start: Sequence[int], costs: Floats | None = None, least: float = 1.0) -> list[int]:
    """Exchange questions of a set one by one, each for the best one outside, while the set gains by it.

    The gain is the difference in :func:`pointwise_information`, per cost where there are costs. It must exceed
    ``least`` standard errors of this difference.

    A set with fewer than :data:`THIN` examples per combination of answers is left unchanged: its estimates cannot carry
    a search. A new question takes the place of the question that it replaces.
    """
    chosen = list(start)
    if not chosen or occupied(data, chosen)[-1] < THIN:
        return chosen
    bits, points = _per_cost(data, chosen, costs)
    while True:
        outside = [each for each in range(data.answers.shape[1]) if each not in chosen]
        neighbours = [[*chosen[:at], each, *chosen[at + 1 :]] for at in range(len(chosen)) for each in outside]
        if not neighbours:
            return chosen
        new_bits, new_points, questions = max(
            ((*_per_cost(data, each, costs), each) for each in neighbours), key=lambda each: each[0]
        )
        difference = (new_points - points)[~np.isnan(new_points - points)]
        error = difference.std(ddof=1) / len(difference) ** 0.5 if len(difference) > 1 else np.inf
        if new_bits - bits <= max(least * error, _ROUNDING):
            return chosen
        chosen, bits, points = questions, new_bits, new_points


def pointwise_information(data: HardAnswers, questions: Sequence[int]) -> tuple[float, Floats]:
    """Return the information of a set in bits, and each example's part in it, shape (examples,).

    The information is the plug-in value of the whole table, minus its exact mean over all shuffles of the ratings. An
    example's part is log2 p(y, a) / (p(y) p(a)), or NaN where an answer or the rating is missing. The mean of the parts
    is the plug-in information; their spread is its sampling noise.
    """
    cells = np.zeros(len(data.ratings), dtype=np.int64)
    for question in questions:
        cells = _split(cells, data.answers[:, question], data.options)
    used = (cells >= 0) & (data.ratings >= 0)
    points = np.full(len(cells), np.nan)
    if not used.any():
        return 0.0, points
    _, cell = np.unique(cells[used], return_inverse=True)
    rating = data.ratings[used]
    counts = np.bincount(cell * data.levels + rating, minlength=(int(cell.max()) + 1) * data.levels)
    table: Floats = counts.reshape(-1, data.levels).astype(np.float64)
    n = np.array([len(cell)])
    by_chance = table.sum(axis=1)[cell] * table.sum(axis=0)[rating] / len(cell)
    points[used] = np.log2(table[cell, rating] / by_chance)
    return float(np.mean(points[used]) - expected_under_shuffling(table[None], n)[0]), points


def greedy_order(
    data: HardAnswers, ties: Floats, *, costs: Floats | None = None, start: Sequence[int] = ()
) -> tuple[list[int], list[float]]:
    """Order the questions, beginning with ``start``: next comes the question that adds most to the chosen ones.

    Returns the questions' places, and the gain by which each was chosen, in bits. With ``costs`` the gain per cost
    decides. Between questions that add equally much, or nothing, the larger of ``ties`` comes first, NaN last.
    """
    single_bits = conditional_information(data, np.zeros(len(data.ratings), dtype=np.int64))
    price = np.ones(len(single_bits)) if costs is None else costs
    tie_breaks = np.where(np.isnan(ties), -np.inf, ties)
    least_bits = single_bits.copy()
    candidates = list(range(len(single_bits)))
    order: list[int] = []
    gains: list[float] = []
    while candidates:
        worth = (1 - ALONE) * least_bits + ALONE * single_bits
        value = np.maximum(worth, 0.0) / price
        best = (
            start[len(order)]
            if len(order) < len(start)
            else max(candidates, key=lambda each: (value[each], tie_breaks[each], -each))
        )
        order.append(best)
        gains.append(float(worth[best]))
        candidates.remove(best)
        least_bits = np.minimum(least_bits, conditional_information(data, data.answers[:, best]))
    return order, gains


def _told(data: HardAnswers, questions: Sequence[int], costs: Floats | None) -> float:
    bits = float(chained_information(data, questions)[-1])
    return bits if costs is None else bits / float(costs[list(questions)].sum())


def _per_cost(data: HardAnswers, questions: Sequence[int], costs: Floats | None) -> tuple[float, Floats]:
    bits, points = pointwise_information(data, questions)
    price = 1.0 if costs is None else float(costs[list(questions)].sum())
    return bits / price, points / price


def _split(cells: Codes, answers: Codes, options: int) -> Codes:
    """Renumber the combinations of a cell and an answer; -1 where one of the two is missing."""
    there = (cells >= 0) & (answers >= 0)
    finer = np.full(len(cells), -1, dtype=np.int64)
    _, finer[there] = np.unique(cells[there] * options + answers[there], return_inverse=True)
    return finer


def _mixed(tables: Floats) -> NDArray[np.bool_]:
    several: NDArray[np.bool_] = ((tables.sum(axis=2) > 0).sum(axis=1) > 1) & ((tables.sum(axis=1) > 0).sum(axis=1) > 1)
    return several
