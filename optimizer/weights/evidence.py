"""Pairs and ratings in the form that learners take, and splits of their rows into development and test.

Pairs (:class:`PairDifferences`) and ratings (:class:`RatedScores`, alone or with pairs beside them) have the same
methods, so that one pipeline learns from either: ``tests``, ``groups``, ``take``, ``reweighted``, ``objective``,
``held_out_values``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

SCORE_TIE = 1e-9
"""Two outputs tie in the score when their weighted means (scores in [0, 1]) differ by no more than this."""


def codes_of(names: Sequence[str]) -> Codes:
    """Number the names 0, 1, ... in order of first appearance; shape (names,)."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.int64)


def compact(groups: Codes) -> Codes:
    """Renumber the groups that occur as 0, 1, ..., in ascending order; the shape stays the same."""
    codes: Codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return codes


@dataclass(frozen=True, eq=False)
class PairDifferences:
    """Pairs of outputs as score differences; one row a pair, one column a test."""

    differences: Floats
    """Shape (pairs, tests), in [-1, 1]: scores of the preferred output minus scores of the other (a - b for
    a data tie)."""
    is_tie: NDArray[np.bool_]
    """Shape (pairs,): whether people called it a tie. Such a pair has no right order and counts in no accuracy."""
    groups: Codes
    """Shape (pairs,): pairs of one context share a number and never straddle development and test."""
    sections: Codes
    """Shape (pairs,): number of the pair's section (or data set); 0 everywhere for global weights."""
    counts: Floats
    """Shape (pairs,): how often each pair counts; 1, or the draws of a bootstrap resample."""

    def __len__(self) -> int:
        """Number of pairs, data ties included."""
        return len(self.differences)

    @property
    def tests(self) -> int:
        """Number of tests."""
        return int(self.differences.shape[1])

    @property
    def decided_pairs(self) -> int:
        """Number of pairs in which people preferred one output (rows, whatever their counts)."""
        return len(self) - int(self.is_tie.sum())

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> PairDifferences:
        """The pairs in ``rows`` (indices or a mask)."""
        return PairDifferences(
            self.differences[rows], self.is_tie[rows], self.groups[rows], self.sections[rows], self.counts[rows]
        )

    def reweighted(self, counts: Floats) -> PairDifferences:
        """Return the pairs with other ``counts``, shape (pairs,); no score is copied."""
        return replace(self, counts=counts)

    def decided(self) -> tuple[Floats, Floats]:
        """Differences (pairs, tests) and counts (pairs,) of the pairs in which people preferred one output."""
        if not self.is_tie.any():
            return self.differences, self.counts
        return self.differences[~self.is_tie], self.counts[~self.is_tie]

    @property
    def can_be_learned(self) -> bool:
        """Whether there is a decided pair."""
        return self.decided_pairs > 0

    @property
    def teaching_groups(self) -> Codes:
        """Group of each decided pair; shape (decided pairs,)."""
        return self.groups[~self.is_tie]

    def objective(self, candidates: Floats) -> Floats:
        """Return the share of right pairs under each row of ``candidates`` (candidates, tests)."""
        differences, counts = self.decided()
        share: Floats = margins_to_credits(candidates @ differences.T) @ counts / counts.sum()
        return share

    def held_out_values(self, candidates: Floats, fold: int) -> tuple[Floats, Codes]:
        """Credit of each candidate on each decided pair, shape (candidates, pairs), and the pairs' groups."""
        return margins_to_credits(candidates @ self.decided()[0].T), self.teaching_groups

    def with_ties_as_halves(self) -> tuple[Floats, Floats]:
        """Return :meth:`decided` with each data tie added as half a win for either side: two mirrored rows that count
        1/2."""
        if not self.is_tie.any():
            return self.differences, self.counts
        won, won_counts = self.decided()
        tied, half = self.differences[self.is_tie], self.counts[self.is_tie] / 2
        return np.concatenate([won, tied, -tied]), np.concatenate([won_counts, half, half])


@dataclass(frozen=True, eq=False)
class RatedScores:
    """Rated outputs, and preference pairs beside them if there are any. The rows are the outputs, then the pairs."""

    scores: Floats
    """Shape (outputs, tests), in [0, 1]."""
    ratings: Floats
    """Shape (outputs,); higher is better."""
    output_groups: Codes
    """Shape (outputs,): group of each output."""
    pairs: PairDifferences | None = None
    pair_share: float = 0.0
    """Share of the pairs in the objective: 0 for ratings alone."""

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.ratings) + (0 if self.pairs is None else len(self.pairs))

    @property
    def tests(self) -> int:
        """Number of tests."""
        return int(self.scores.shape[1])

    @property
    def groups(self) -> Codes:
        """Group of each output, then of each pair."""
        return self.output_groups if self.pairs is None else np.concatenate([self.output_groups, self.pairs.groups])

    @property
    def can_be_learned(self) -> bool:
        """Whether there are at least three outputs that are not all rated the same."""
        return len(self.ratings) >= 3 and bool(np.ptp(self.ratings) > 0)

    @property
    def teaching_groups(self) -> Codes:
        """Group of each rated output; shape (outputs,)."""
        return self.output_groups

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> RatedScores:
        """The outputs and pairs in ``rows`` (indices, which may repeat, or a mask)."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        outputs = at[at < len(self.ratings)]
        pairs = None if self.pairs is None else self.pairs.take(at[at >= len(self.ratings)] - len(self.ratings))
        return replace(
            self,
            scores=self.scores[outputs],
            ratings=self.ratings[outputs],
            output_groups=self.output_groups[outputs],
            pairs=pairs,
        )

    def reweighted(self, counts: Floats) -> RatedScores:
        """Repeat each row ``counts`` times, shape (rows,); ranks need the rows themselves, not counts."""
        return self.take(np.repeat(np.arange(len(self)), counts.astype(np.int64)))

    @cached_property
    def _ranks(self) -> Floats:
        return _centred_ranks(self.ratings)

    def objective(self, candidates: Floats) -> Floats:
        """Return each candidate's rank correlation (Spearman) with the ratings, alone or mixed with the share of right
        pairs.

        The mixture is (1 - s)·Spearman + s·(2·share of right pairs - 1), both on [-1, 1], where s is ``pair_share``. A
        constant score has no correlation and gives -inf, whatever the pairs say.
        """
        ranks = _centred_ranks(np.round(self.scores @ candidates.T, 12))  # rounding errors must not break ties
        spread = np.sqrt((ranks**2).sum(axis=0) * (self._ranks**2).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            spearman: Floats = np.where(spread > 0, self._ranks @ ranks / spread, -np.inf)
        if self.pairs is None or not self.pairs.decided_pairs or self.pair_share == 0:
            return spearman
        right, ranked = self.pairs.objective(candidates), np.isfinite(spearman)
        share = self.pair_share
        mixed: Floats = (1.0 - share) * np.where(ranked, spearman, 0.0) + share * (2.0 * right - 1.0)
        return np.where(ranked, mixed, -np.inf)

    def held_out_values(self, candidates: Floats, fold: int) -> tuple[Floats, Codes]:
        """The objective of each candidate, shape (candidates, 1), and the fold as its group."""
        return self.objective(candidates)[:, None], np.array([fold])


Evidence = PairDifferences | RatedScores


def _centred_ranks(values: Floats) -> Floats:
    """Return the ranks along the first axis, minus their mean."""
    from scipy.stats import rankdata

    ranks: Floats = rankdata(values, axis=0) - (len(values) + 1) / 2
    return ranks


def margins_to_credits(margins: Floats) -> Floats:
    """Turn margins of normalised weights into credits: 1 right, 1/2 for a score tie, 0 wrong; any shape."""
    return np.where(margins > SCORE_TIE, 1.0, np.where(margins < -SCORE_TIE, 0.0, 0.5))


def share_right(differences: Floats, counts: Floats, weights: Floats) -> float:
    """Return the share of pairs whose preferred output has the higher score; a score tie counts half (LMUnit eq. 8).
    Shapes: (pairs, tests), (pairs,) and (tests,); the scale of the weights does not matter."""
    credits = margins_to_credits(differences @ (weights / weights.sum()))
    return float(counts @ credits / counts.sum())


@dataclass(frozen=True, eq=False)
class PairFold:
    """Rows to learn from and rows to be judged on; no group is in both."""

    development: NDArray[np.intp]
    test: NDArray[np.intp]


def grouped_folds(groups: Codes, folds: int, seed: int) -> list[PairFold]:
    """Cut the pairs into folds of about equal size, whole groups at a time; each fold is the test part once. There are
    no more folds than groups. Raises InputError where there are fewer than two groups."""
    place = _places(groups, seed)
    folds = min(folds, int(groups.max()) + 1)
    fold = np.minimum((place * folds).astype(np.int64), folds - 1)
    splits = [PairFold(np.flatnonzero(fold != part), np.flatnonzero(fold == part)) for part in range(folds)]
    return [split for split in splits if len(split.test) and len(split.development)]


def single_split(groups: Codes, test_share: float, seed: int) -> list[PairFold]:
    """One split with about ``test_share`` of the pairs held out, whole groups at a time. Raises InputError where there
    are fewer than two groups, or one side would be empty."""
    held_out = _places(groups, seed) < test_share
    if held_out.all() or not held_out.any():
        raise InputError(f"Holding out a share of {test_share} of these pairs leaves one side empty; choose another.")
    return [PairFold(np.flatnonzero(~held_out), np.flatnonzero(held_out))]


def _places(groups: Codes, seed: int) -> Floats:
    """Put the groups in a random order; return the place of each pair's group in it, in (0, 1), shape (pairs,)."""
    count = require_groups(groups)
    order = np.random.default_rng(seed).permutation(count)
    sizes = np.bincount(groups, minlength=count)[order]
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    place = np.empty(count)
    place[order] = middle
    located: Floats = place[groups]
    return located


def require_groups(groups: Codes) -> int:
    """Count the groups, which are numbered from 0. Raises InputError where there are fewer than two, so nothing can be
    held out."""
    count = int(groups.max()) + 1 if len(groups) else 0
    if count < 2:
        if len(groups) == 1:
            raise InputError("There is only one pair or rated output with all its scores, so none can be held out.")
        raise InputError(
            f"All {len(groups)} pairs or rated outputs belong to one group, so none can be held out. Those of one "
            "'metadata.document', or without one with the same 'input', are one group unless each line names a 'group';"
            " give different groups to those that do not share a context."
        )
    return count


ABOUT_AS_GOOD = 0.5
"""Within this many standard errors of the best option, cross-validation prefers the more careful option."""


def paired_standard_error(differences: Floats, groups: Codes) -> float:
    """Return the standard error of the mean difference between two learners' credits (pairs,); groups are
    independent."""
    sums = np.bincount(compact(groups), weights=differences - differences.mean())
    count = len(sums)
    if count < 2:
        return float("inf")
    return float(np.sqrt((sums**2).sum() * count / (count - 1)) / len(differences))


def close_to_best(credits: Floats, groups: Codes) -> tuple[int, list[int]]:
    """Return the option with the best share of right pairs, and all options about as good, the best one included.
    ``credits`` has shape (options, pairs)."""
    shares = credits.mean(axis=1)
    best = int(np.argmax(shares))
    close = [
        option
        for option in range(len(credits))
        if option == best
        or shares[best] - shares[option]
        <= ABOUT_AS_GOOD * paired_standard_error(credits[best] - credits[option], groups)
    ]
    return best, close
