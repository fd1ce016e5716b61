"""Compare learners with uniform weights on held-out data, and measure how sure weights and accuracies are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from time import process_time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError, MissingExtraError
from ...stats.correlation import correlation_kernel
from ...stats.resampling import Kernel, percentile_interval, resample, resample_weights, tied
from .evidence import (
    Codes,
    Evidence,
    Floats,
    PairDifferences,
    PairFold,
    RatedScores,
    compact,
    margins_to_credits,
    paired_standard_error,
)
from .learner_choice import Pooling, choose_recipe
from .learners import LearningFailedError, Uniform, WeightLearner
from .weights_result import Conclusion, LearnerScore, Power, RankOfTest, Stability

UNLEARNED = ("uniform", "best-single")
"""Learners that do not learn several weights from the pairs."""
CONFIDENCE = 0.95
"""Coverage of all intervals."""
ACCURACY_RESAMPLES, CORRELATION_RESAMPLES = 2_000, 1_000
"""Resamples behind an interval of a held-out accuracy, and of a correlation."""
MOST_FAILED = 0.1
"""Largest share of resamples on which learning may fail. Above this share no interval is given."""
Z_TWO_SIDED_05, Z_POWER_80 = 1.959964, 0.841621  # normal quantiles: two-sided 5 % test, 80 % power


def resample_shares(credits: Floats, groups: Codes, resamples: int, seed: int) -> Floats:
    """Bootstrap the share of right pairs of several learners on the same resamples of whole groups.

    ``credits`` has shape (pairs, learners); the result has shape (resamples, learners). Groups with equal credits are
    drawn together, so the cost depends on the number of different outcomes.
    """
    used, codes = np.unique(groups, return_inverse=True)
    earned = np.column_stack(
        [np.bincount(codes, weights=column, minlength=len(used)) for column in (*credits.T, np.ones(len(codes)))]
    )
    outcomes, times = np.unique(earned, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    block = max(1, 4_000_000 // len(outcomes))  # bounds the memory: at most 4 million counts are drawn at a time
    shares = []
    for start in range(0, resamples, block):
        draws = rng.multinomial(len(used), times / times.sum(), size=min(block, resamples - start))
        totals = draws @ outcomes
        shares.append(totals[:, :-1] / totals[:, -1:])
    return np.concatenate(shares)


def interval(samples: Floats) -> tuple[Floats, Floats]:
    """Percentile interval along the first axis of ``samples``, with the coverage :data:`CONFIDENCE`."""
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(samples, [tail, 1.0 - tail], axis=0)
    return low, high


def interval_of_means(items: Floats, means: Floats, groups: Codes, centre: float) -> tuple[Floats, Floats]:
    """Return :func:`interval` of resampled means, widened where all items are equal and so no resample differs.

    Equal items are no certainty: two right pairs of two prove little. There the share of items on the other side of
    ``centre`` may be as high as the upper end of Clopper and Pearson's interval (Biometrika 26, 1934) for none of the
    groups. Items are (pairs, columns), means (resamples, columns).
    """
    low, high = interval(means)
    unseen = 1.0 - ((1.0 - CONFIDENCE) / 2.0) ** (1.0 / len(np.unique(groups)))
    alike, reached = np.ptp(items, axis=0) == 0, items[0] + unseen * 2.0 * (centre - items[0])
    return (np.where(alike, np.minimum(items[0], reached), low), np.where(alike, np.maximum(items[0], reached), high))


@dataclass(frozen=True, eq=False)
class HeldOutTrial:
    """Held-out results of one learner on all splits."""

    name: str
    credits: Floats | None = None
    """Credit on each decided held-out pair, split by split; None when the learner failed."""
    predicted: Floats | None = None
    """Score of each rated output by weights learned without its group, shape (outputs,); None without ratings."""
    seconds: float = 0.0
    weights: list[Floats] = field(default_factory=list)
    failure: str | None = None


def try_learner(
    learner: WeightLearner,
    data: Evidence,
    splits: list[PairFold],
    *,
    sections: int = 0,
    pooling: Pooling = "partial",
    seed: int,
) -> HeldOutTrial:
    """Learn on the development part of every split and judge the weights on the held-out part. A learner that fails, or
    whose package is missing, gives a trial with the failure in words."""
    credits, weights, seconds = [np.empty(0)], [], 0.0
    is_rated = isinstance(data, RatedScores)
    predicted = np.full(len(data.ratings), np.nan) if isinstance(data, RatedScores) else None
    for number, split in enumerate(splits):
        development, test = data.take(split.development), data.take(split.test)
        own_seed = seed if is_rated else seed + number  # the choices of ``auto`` draw folds of their own
        began = process_time()
        try:
            recipe, _ = choose_recipe(development, learner, sections=sections, pooling=pooling, seed=own_seed)
            fitted = recipe.fit(development, seed=own_seed)
        except (LearningFailedError, MissingExtraError) as error:
            return HeldOutTrial(learner.name, failure=str(error))
        seconds += process_time() - began
        weights.append(fitted.overall)
        if isinstance(data, RatedScores) and predicted is not None:
            rows = split.test[split.test < len(data.ratings)]
            predicted[rows] = data.scores[rows] @ fitted.overall
        pairs = test.pairs if isinstance(test, RatedScores) else test
        if pairs is not None:
            credits.append(margins_to_credits(fitted.margins(pairs.take(~pairs.is_tie))))
    return HeldOutTrial(learner.name, np.concatenate(credits), predicted, seconds / len(splits), weights)


def score_trials(trials: list[HeldOutTrial], baseline: HeldOutTrial, groups: Codes, seed: int) -> list[LearnerScore]:
    """Return every learner's share of right pairs, on the same resamples of the same held-out pairs."""
    assert baseline.credits is not None
    worked = [trial for trial in trials if trial.credits is not None]
    credits = np.column_stack([baseline.credits, *(trial.credits for trial in worked if trial.credits is not None)])
    shares = resample_shares(credits, groups, ACCURACY_RESAMPLES, seed)
    lows, highs = interval_of_means(credits, shares, groups, 0.5)
    gain_lows, gain_highs = interval_of_means(credits - credits[:, :1], shares - shares[:, :1], groups, 0.0)
    scores = []
    for trial in trials:
        if trial.credits is None:
            scores.append(LearnerScore(trial.name, reason=trial.failure))
            continue
        column = 1 + worked.index(trial)
        accuracy = float(trial.credits.mean())
        scores.append(
            LearnerScore(
                name=trial.name,
                accuracy=accuracy,
                low=float(lows[column]),
                high=float(highs[column]),
                right=int((trial.credits == 1.0).sum()),
                score_ties=int((trial.credits == 0.5).sum()),
                wrong=int((trial.credits == 0.0).sum()),
                difference=accuracy - float(baseline.credits.mean()),
                difference_low=float(gain_lows[column]),
                difference_high=float(gain_highs[column]),
                seconds=trial.seconds,
                weights=tuple(np.mean(trial.weights, axis=0).tolist()),
            )
        )
    return scores


def score_correlations(
    data: RatedScores, parts: list[NDArray[np.intp]], trials: list[HeldOutTrial], seed: int
) -> list[LearnerScore]:
    """Return every learner's rank correlation with the ratings within the held-out part of each fold, on the same
    resamples of whole groups. ``parts`` are the held-out parts in which ratings differ; there may be none."""
    if not parts:
        flat = "no fold holds out outputs that are rated differently"
        return [LearnerScore(trial.name, reason=trial.failure or flat) for trial in trials]
    kernels = {
        trial.name: _mean_correlation("spearman", trial.predicted, data.ratings, parts)
        for trial in trials
        if trial.predicted is not None
    }
    codes = compact(data.output_groups)
    weights = resample_weights(int(codes.max()) + 1, CORRELATION_RESAMPLES, seed, codes)
    draws = dict(zip(kernels, resample(list(kernels.values()), weights), strict=True))
    ones = np.ones((len(data.ratings), 1))
    points = {name: float(kernel(ones)[0]) for name, kernel in kernels.items()}
    scores = []
    for trial in trials:
        name, point = trial.name, points.get(trial.name, np.nan)
        if np.isnan(point) or trial.predicted is None or trial.credits is None:
            constant = "in one of the folds the score is the same for every output"
            scores.append(LearnerScore(name, reason=trial.failure or constant))
            continue
        low, high, reason = percentile_interval(draws[name], CONFIDENCE)
        gain_low, gain_high, no_gain = percentile_interval(draws[name] - draws["uniform"], CONFIDENCE)
        scores.append(
            LearnerScore(
                name=name,
                spearman=point,
                low=low,
                high=high,
                kendall=float(_mean_correlation("kendall", trial.predicted, data.ratings, parts)(ones)[0]),
                difference=None if np.isnan(points["uniform"]) else point - points["uniform"],
                difference_low=gain_low,
                difference_high=gain_high,
                pair_accuracy=float(trial.credits.mean()) if len(trial.credits) else None,
                reason=reason or no_gain,
            )
        )
    return scores


def _mean_correlation(
    method: Literal["spearman", "kendall"], predicted: Floats, ratings: Floats, parts: list[NDArray[np.intp]]
) -> Kernel:
    """Return the mean correlation over the folds' held-out parts, weighted by their size.

    Each part has a correlation of its own, because scores of different folds come from different weights. If a resample
    draws only one rating value in a part, that part has no order and is left out of this resample's mean.
    """
    kernels = [correlation_kernel(method, predicted[rows], ratings[rows]) for rows in parts]
    rated = [tied(ratings[rows])[:, None] for rows in parts]

    def kernel(weights: Floats) -> Floats:
        drawn = [weights[rows] for rows in parts]
        has_order = np.array([_differ(each, some) for each, some in zip(rated, drawn, strict=True)])
        sizes = np.where(has_order, [some.sum(axis=0) for some in drawn], 0.0)
        values = np.array([each(some) for each, some in zip(kernels, drawn, strict=True)])
        with np.errstate(invalid="ignore"):
            mean: Floats = (sizes * np.where(has_order, values, 0.0)).sum(axis=0) / sizes.sum(axis=0)
        return mean

    return kernel


def _differ(values: Floats, drawn: Floats) -> NDArray[np.bool_]:
    """Say for each resample whether its values differ. Shapes: (items, 1), (items, resamples) and (resamples,)."""
    highest = np.where(drawn > 0, values, -np.inf).max(axis=0)
    lowest = np.where(drawn > 0, values, np.inf).min(axis=0)
    differ: NDArray[np.bool_] = highest > lowest
    return differ


def against_uniform(trial: HeldOutTrial, baseline: HeldOutTrial, score: LearnerScore) -> Conclusion:
    """Conclude from the paired comparison of the method with uniform weights on the same held-out data."""
    if trial.credits is None or score.difference_low is None or score.difference_high is None:
        return "undefined"
    if trial.predicted is None:
        is_same = np.array_equal(trial.credits, baseline.credits)  # type: ignore[arg-type]
    else:
        is_same = score.difference_low == score.difference_high == 0.0
    if is_same:
        return "same"
    if score.difference_low > 0.0:
        return "better"
    return "worse" if score.difference_high < 0.0 else "cannot tell"


def pairs_needed(learner: str, difference: float, standard_error: float, pairs: int) -> Power:
    """Count the pairs needed to tell a difference in held-out accuracy from 0. The held-out share of ``pairs`` is
    assumed to stay as it is. The standard error takes groups into account."""
    if not np.isfinite(standard_error):
        return Power(learner, None, None, None, "the held-out pairs are all of one group")
    if standard_error <= 0.0:
        alike = "both weightings order every held-out pair alike"
        same = "the difference is the same on every held-out pair, so how it varies is not known"
        return Power(learner, None, None, None, same if difference else alike)
    # the standard error shrinks with the square root of the number of pairs
    per_pair = (standard_error * (Z_TWO_SIDED_05 + Z_POWER_80)) ** 2 * pairs
    one_point = ceil(per_pair / 0.01**2)
    if abs(difference) < 1e-12:
        return Power(learner, None, one_point, None, "the observed difference is exactly 0")
    observed = ceil(per_pair / difference**2)
    return Power(learner, observed, one_point, max(0, observed - pairs))


def pairs_to_tell(trials: list[HeldOutTrial], baseline: HeldOutTrial, groups: Codes, pairs: int) -> Power:
    """Count the pairs that would tell learned weights from uniform ones. The method comes first among ``trials``.

    For ``auto`` the count is about the best of the other learners that learn several weights. The choices of ``auto``
    itself lean towards uniform weights and hide the difference.
    """
    asked = trials[0]
    others = [trial for trial in trials[1:] if trial.credits is not None and trial.name not in UNLEARNED]
    if asked.name == "auto" and others:
        asked = max(others, key=lambda trial: 0.0 if trial.credits is None else float(trial.credits.mean()))
    if asked.credits is None or baseline.credits is None:
        return Power(asked.name, None, None, None, f"{asked.name} could not be judged: {asked.failure}")
    gains = asked.credits - baseline.credits
    return pairs_needed(asked.name, float(gains.mean()), paired_standard_error(gains, groups), pairs)


def compare_held_out(
    asked: list[WeightLearner],
    data: Evidence,
    splits: list[PairFold],
    *,
    sections: int = 0,
    pooling: Pooling = "partial",
    seed: int,
) -> tuple[list[LearnerScore], Conclusion, Power | None, int]:
    """Try the learners (the method comes first) and uniform weights; say whether the method beats uniform weights.

    Returns the learners' scores, the method first, then uniform weights; the conclusion; the number of pairs that would
    tell (None for ratings); and the number of held-out decided pairs, or of held-out outputs that have an order. Raises
    InputError where no decided pair is held out."""
    tested = np.empty(0, dtype=np.intp)
    if isinstance(data, PairDifferences):
        tested = np.concatenate([split.test[~data.is_tie[split.test]] for split in splits])
        if not len(tested):
            raise InputError("No decided pair is held out; give more pairs or another seed.")
    baseline = try_learner(Uniform(), data, splits, pooling=pooling, seed=seed)
    trials = [
        baseline
        if each.name == "uniform"
        else try_learner(each, data, splits, sections=sections, pooling=pooling, seed=seed)
        for each in asked
    ]
    if asked[0].name != "uniform":
        trials.insert(1, baseline)
    if isinstance(data, PairDifferences):
        groups = data.groups[tested]
        scores, held_out = score_trials(trials, baseline, groups, seed), len(tested)
        power = pairs_to_tell(trials, baseline, groups, data.decided_pairs)
    else:
        outputs = data.ratings
        parts = [split.test[split.test < len(outputs)] for split in splits]
        parts = [rows for rows in parts if len(rows) and np.ptp(tied(outputs[rows])) > 0]
        scores, held_out, power = score_correlations(data, parts, trials, seed), sum(map(len, parts)), None
    return scores, against_uniform(trials[0], baseline, scores[0]), power, held_out


@dataclass(frozen=True, eq=False)
class WeightSamples:
    """Weights learned again on resamples of the pairs."""

    overall: Floats
    """Shape (resamples, tests)."""
    by_section: Floats | None
    """Shape (resamples, sections, tests), or None."""
    failed: int
    """Number of resamples on which the learner found no weights. The arrays leave them out."""

    @property
    def usable(self) -> bool:
        """Whether at least two resamples worked, and few enough failed, for an interval."""
        total = len(self.overall) + self.failed
        return len(self.overall) >= 2 and self.failed <= MOST_FAILED * total


def bootstrap_counts(groups: Codes, resamples: int, seed: int) -> Iterator[Floats]:
    """Draw groups with replacement; yields how often each pair was drawn, shape (pairs,)."""
    codes = compact(groups)
    count = int(codes.max()) + 1
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = np.bincount(rng.integers(0, count, count), minlength=count)
        yield drawn[codes].astype(np.float64)


def rank_stability(weights: Floats, samples: Floats) -> Stability:
    """Compare the ranking of tests by ``weights`` (tests,) with the rankings by ``samples`` (resamples, tests)."""
    ranks = _ranks(samples)
    low, high = interval(ranks.astype(np.float64))
    leaders = ranks == 1
    first = (leaders / leaders.sum(axis=1, keepdims=True)).mean(axis=0)
    weight_ranks = _ranks(weights[None, :])[0]
    tests = tuple(
        RankOfTest(int(weight_ranks[test]), int(np.floor(low[test])), int(np.ceil(high[test])), float(first[test]))
        for test in range(len(weights))
    )
    upper = np.triu_indices(len(weights), 1)
    signs = np.sign(weight_ranks[upper[0]] - weight_ranks[upper[1]])
    sample_signs = np.sign(ranks[:, upper[0]] - ranks[:, upper[1]])
    untied, sample_untied = np.count_nonzero(signs), np.count_nonzero(sample_signs, axis=1)
    if len(weights) < 2 or untied == 0 or (sample_untied == 0).any():
        return Stability(tests, None, "all weights are equal, so there is no ranking")
    return Stability(tests, float((sample_signs @ signs / np.sqrt(untied * sample_untied)).mean()))


def _ranks(weights: Floats) -> Codes:
    """Rank the weights of each row; the heaviest has rank 1. Weights that are equal to 1e-9 share the better rank."""
    rounded = np.round(weights, 9)
    ranks: Codes = 1 + (rounded[:, None, :] > rounded[:, :, None]).sum(axis=2)
    return ranks
