"""How much an answer tells about the rating: expected information gain in bits, with its small-sample bias.

There are two estimates. ``pooled_information`` is the estimate of the EIG paper (§3.3, equations 4 to 8). Answers and
ratings of all examples make one joint table p(y, a | q). EIG(q) = Σ_a p(a|q) (H[p(y)] - H[p(y|q,a)]) is then the mutual
information of answer and rating over examples. ``expected_information_gain`` applies the formula example by example. It
needs a judge to rate each example once more under every answer.

The plug-in estimate is biased upward, by about (A - 1)(K - 1) / 2n nats for A answers, K levels and n examples. So its
mean over all shuffles of the ratings among the examples is subtracted. In simulations with known truth this was as good
as Miller and Madow's correction or better, at every size and number of answers (docs/results/choosing.md).

:func:`ranking_convergence` says whether the ranking of the questions settles as examples are added (EIG §4.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...stats.correlation import kendall
from ...stats.resampling import MAX_UNDEFINED_SHARE

Floats = NDArray[np.float64]

SHUFFLES = 20
"""Random shuffles of the ratings where answers or ratings are soft. For hard ones the mean of all is exact."""
_WINDOW = 12.0
"""Range of the sum over a hypergeometric count: so many standard deviations, and so many counts, around the mean."""


@dataclass(frozen=True, eq=False)
class Information:
    """Bits that the answer to each question gives about the rating; each array has shape (questions,)."""

    bits: Floats
    """The corrected estimate. May be a little below 0 if an answer tells nothing; NaN where no example is complete."""
    plugin: Floats
    """The estimate before the correction: the EIG as the paper has it."""
    bias: Floats
    """Bits subtracted for chance."""
    examples: NDArray[np.int64]
    """Examples with both the answer and a rating."""


def entropy(probabilities: Floats) -> Floats:
    """Shannon entropy in bits along the last axis; 0 log 0 is 0."""
    p = np.asarray(probabilities, dtype=np.float64)
    logs = np.log2(p, out=np.zeros_like(p), where=p > 0)
    total: Floats = -(p * logs).sum(axis=-1)
    return total


def one_hot(codes: NDArray[np.int64], levels: int) -> Floats:
    """Return the probabilities of hard answers, shape (..., levels): 1 at the code; NaN for a code below 0, which means
    missing. Raises ValueError where a code is not below ``levels``."""
    codes = np.asarray(codes)
    if codes.size and codes.max() >= levels:
        raise ValueError(f"There are {levels} levels, so the highest code is {levels - 1}, not {codes.max()}.")
    table: Floats = (codes[..., None] == np.arange(levels)).astype(np.float64)
    table[codes < 0] = np.nan
    return table


def pooled_information(answers: Floats, ratings: Floats, *, seed: int = 0) -> Information:
    """Return the mutual information of the answer to each question with the rating, over examples (EIG §3.3 and §3.4).

    Answers p(a|q,I) have shape (examples, questions, answers), ratings p(y|I) (examples, levels). An example with a
    missing answer or rating (NaN) is left out of that question's estimate. ``seed`` is for the shuffles of soft answers
    or ratings. Raises ValueError where the shapes do not fit together."""
    if answers.ndim != 3 or ratings.ndim != 2 or len(answers) != len(ratings):
        raise ValueError(f"Answers of shape {answers.shape} and ratings of shape {ratings.shape} do not fit together.")
    rated = ~np.isnan(ratings[:, 0])
    given, levels = answers[rated], ratings[rated]
    present = ~np.isnan(given[:, :, 0])
    if not present.all():
        given = np.where(present[:, :, None], given, 0.0)
    counts = _counts(given, levels)
    examples = present.sum(axis=0)
    plugin = mutual_information(counts, examples)
    if _hard(given) and _hard(levels):
        bias = expected_under_shuffling(counts, examples)
    else:
        bias = _shuffled(given, levels, examples, seed)
    return Information(plugin - bias, plugin, bias, examples)


def expected_information_gain(answers: Floats, prior: Floats, conditional: Floats) -> Information:
    """Return EIG(q) = mean over examples of Σ_a p(a|q,I) (H[p(y|I)] - H[p(y|I,q,a)]) (EIG Algorithm 1, line 11).

    Nothing is counted over examples, so there is no counting bias. Inconsistent ratings of a judge can make it
    negative. An example is left out where its answer or rating is missing, or the rating under an answer whose
    probability is not 0. Shapes: (examples, questions, answers), (examples, levels), (examples, questions, answers,
    levels).
    """
    conditional_entropy = entropy(conditional)
    needed = ~(answers == 0)  # also at NaN, a missing answer, which drops the example
    under = np.where(needed, answers * conditional_entropy, 0.0).sum(axis=2)
    gains = entropy(prior)[:, None] - under
    present = ~np.isnan(gains)
    examples = present.sum(axis=0)
    sums = np.where(present, gains, 0.0).sum(axis=0)
    bits: Floats = np.divide(sums, examples, out=np.full(len(sums), np.nan), where=examples > 0)
    return Information(bits, bits.copy(), np.zeros_like(bits), examples)


def information_of(answers: Floats, ratings: Floats, conditional: Floats | None, *, seed: int) -> Information:
    """Return the EIG of every question: example by example with ``conditional`` ratings, else from the joint table."""
    if conditional is not None:
        return expected_information_gain(answers, ratings, conditional)
    return pooled_information(answers, ratings, seed=seed)


def worth_alone(bits: Floats, costs: Floats | None) -> Floats:
    """Return what each question is worth alone: its bits, per cost where there are costs, and -inf where undefined."""
    known = np.nan_to_num(bits, nan=-np.inf)
    # bits below 0 are not divided, which would favour expensive questions
    return known if costs is None else np.where(known > 0, known / costs, known)


def best_alone(worth: Floats) -> list[int]:
    """Return the questions' places, the largest worth first, NaN last."""
    places: list[int] = np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable").tolist()
    return places


def _counts(answers: Floats, ratings: Floats) -> Floats:
    """Joint counts, shape (questions, answers, levels); missing answers are rows of 0."""
    examples, questions, options = answers.shape
    flat = answers.reshape(examples, questions * options).T @ ratings
    table: Floats = flat.reshape(questions, options, ratings.shape[1])
    return table


def mutual_information(counts: Floats, examples: NDArray[np.int64]) -> Floats:
    """Return the plug-in mutual information in bits of each table of counts (tables, answers, levels); NaN if empty."""
    total = np.maximum(examples, 1)[:, None, None]
    joint = counts / total
    by_answer, by_level = joint.sum(axis=2), joint.sum(axis=1)
    bits = entropy(by_answer) + entropy(by_level) - entropy(joint.reshape(len(joint), joint.shape[1] * joint.shape[2]))
    return np.where(examples > 0, np.maximum(bits, 0.0), np.nan)


def _hard(probabilities: Floats) -> bool:
    return bool(((probabilities == 0.0) | (probabilities == 1.0)).all())


def expected_under_shuffling(counts: Floats, examples: NDArray[np.int64]) -> Floats:
    """Return the exact mean of the mutual information over all shuffles with these margins, in bits, shape (tables,).
    It sums over hypergeometric counts. ``counts`` are whole, (tables, answers, levels); NaN for an empty table."""
    n = np.repeat(examples, counts.shape[1] * counts.shape[2])
    shape = counts.shape
    a = np.rint(np.broadcast_to(counts.sum(axis=2)[:, :, None], shape)).astype(np.int64).ravel()
    b = np.rint(np.broadcast_to(counts.sum(axis=1)[:, None, :], shape)).astype(np.int64).ravel()
    cells = np.zeros(len(n))
    used = np.flatnonzero((a > 0) & (b > 0))
    if used.size:
        cells[used] = _expected_cells(n[used], a[used], b[used])
    bias: Floats = cells.reshape(shape).sum(axis=(1, 2))
    return np.where(examples > 0, bias, np.nan)


def _expected_cells(n: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]) -> Floats:
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(n.max()) + 1)))])
    mean = a * b / n
    spread = np.sqrt(mean * (n - a) / n * (n - b) / np.maximum(n - 1, 1))
    reach = _WINDOW * spread + _WINDOW
    lowest = np.maximum(np.maximum(1, a + b - n), np.floor(mean - reach).astype(np.int64))
    highest = np.minimum(np.minimum(a, b), np.ceil(mean + reach).astype(np.int64))
    steps = np.arange(int((highest - lowest).max(initial=-1)) + 1)
    t = np.minimum(lowest[:, None] + steps, highest[:, None])
    inside = lowest[:, None] + steps <= highest[:, None]
    n, a, b = n[:, None], a[:, None], b[:, None]
    log_p = (
        (log_factorial[a] + log_factorial[b] + log_factorial[n - a] + log_factorial[n - b] - log_factorial[n])
        - (log_factorial[t] + log_factorial[a - t] + log_factorial[b - t])
        - log_factorial[np.maximum(n - a - b + t, 0)]
    )
    terms = t / n * np.log2(n * t / (a * b)) * np.exp(log_p)
    total: Floats = np.where(inside, terms, 0.0).sum(axis=1)
    return total


def _shuffled(answers: Floats, ratings: Floats, examples: NDArray[np.int64], seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    total = np.zeros(answers.shape[1])
    for _ in range(SHUFFLES):
        total += mutual_information(_counts(answers, ratings[rng.permutation(len(ratings))]), examples)
    mean: Floats = total / SHUFFLES
    return mean


STABLE = 0.9
"""Kendall's tau with the full ranking at which a ranking counts as settled."""
_FEWEST = 10


@dataclass(frozen=True)
class RankingAt:
    """Agreement of the rankings from resamples of m examples with the ranking from all examples."""

    m: int
    tau: float | None
    """Mean Kendall's tau over the resamples; None where more than a fifth of them have no ranking (see ``reason``)."""
    low: float | None
    """5 % of the resamples have a lower tau."""
    high: float | None
    """5 % of the resamples have a higher tau."""
    same_top: float
    """Mean share of the k best questions by all examples that are also among the k best by the resample, in [0, 1]."""
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as in ``selection.json``."""
        row = asdict(self)
        if self.reason is None:
            del row["reason"]
        return row


@dataclass(frozen=True)
class Convergence:
    """Agreement of rankings with the full ranking, by number of examples."""

    steps: tuple[RankingAt, ...]
    settled: int | None
    """Fewest examples from which on the mean tau stays at :data:`STABLE` or above; None where it never does."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as in ``selection.json``."""
        return {"steps": [each.to_dict() for each in self.steps], "settled": self.settled, "stable_from": STABLE}


def ranking_convergence(
    answers: Floats,
    ratings: Floats,
    *,
    k: int,
    resamples: int = 60,
    seed: int = 42,
    conditional: Floats | None = None,
    costs: Floats | None = None,
) -> Convergence:
    """Rank the questions on bootstrap resamples of m = 10, 20, 40, ... examples, and compare with the full ranking.

    Examples are drawn with replacement, also for m = all examples. So the last step says how stable the full ranking
    itself is. Answers and ratings are as in :func:`pooled_information`. With ``conditional`` the ranking is by
    :func:`expected_information_gain`, with ``costs`` (questions,) by information per cost.
    """

    def rank(rows: NDArray[np.int64]) -> Floats:
        given = None if conditional is None else conditional[rows]
        bits = information_of(answers[rows], ratings[rows], given, seed=seed).bits
        return np.where(np.isnan(bits), np.nan, worth_alone(bits, costs))

    size = len(answers)
    every = rank(np.arange(size))
    best = set(best_alone(every)[:k])
    steps = [_at(m, every, best, rank, resamples, seed, size) for m in default_sizes(size)]
    settled = None
    for step in reversed(steps):
        if step.tau is None or step.tau < STABLE:
            break
        settled = step.m
    return Convergence(tuple(steps), settled)


def default_sizes(size: int) -> list[int]:
    """Return 10, 20, 40, ... below ``size``, and ``size`` itself."""
    sizes = []
    m = _FEWEST
    while m < size:
        sizes.append(m)
        m *= 2
    return [*sizes, size]


def _at(
    m: int,
    every: Floats,
    best: set[int],
    rank: Callable[[NDArray[np.int64]], Floats],
    resamples: int,
    seed: int,
    size: int,
) -> RankingAt:
    rng = np.random.default_rng([seed, m])
    taus, shares, reason = [], [], ""
    for _ in range(resamples):
        bits = rank(rng.integers(0, size, m))
        tau = kendall(bits, every)
        if tau.value is None:
            reason = str(tau.reason)
        else:
            taus.append(tau.value)
        shares.append(len(best.intersection(best_alone(bits)[: len(best)])) / len(best))
    same = float(np.mean(shares))
    if (none := resamples - len(taus)) > MAX_UNDEFINED_SHARE * resamples:
        return RankingAt(
            m, None, None, None, same, f"no ranking to compare on {none} of {resamples} resamples: {reason}"
        )
    low, high = np.quantile(taus, [0.05, 0.95])
    return RankingAt(m, float(np.mean(taus)), float(low), float(high), same, None)
