"""Learn weights from ratings, or from ratings and pairs, and say whether they beat uniform weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError
from ...stats.kernels import correlation_kernel
from ...stats.resampling import Kernel, percentile_interval, resample, resample_weights, tied
from .intervals import MOST_FAILED, too_few
from .learned import Conclusion
from .learners import LearningFailedError
from .pairs import (
    CONFIDENCE,
    Floats,
    PairDifferences,
    codes_of,
    compact,
    interval,
    margins_to_credits,
    require_groups,
)
from .preferences import PreferenceScores
from .rating_plan import (
    METHODS,
    RatingData,
    RatingMethod,
    development_groups,
    learn_plan,
    plan_for,
    rating_method,
    resampled_weights,
)
from .ratings import RatingScores

CORRELATION_RESAMPLES = 1_000


@dataclass(frozen=True)
class RatingLearnerScore:
    """What one learner reaches on held-out outputs (and pairs); None, with a reason, where undefined."""

    name: str
    spearman: float | None = None
    """Within the held-out part of each fold, averaged over the folds whose ratings differ."""
    low: float | None = None
    high: float | None = None
    kendall: float | None = None
    difference: float | None = None
    """Spearman minus that of uniform weights on the same outputs."""
    difference_low: float | None = None
    difference_high: float | None = None
    pair_accuracy: float | None = None
    """Share of held-out decided pairs in the right order; None when there are no such pairs."""
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class RatingWeights:
    """Weights learned from ratings, and whether they beat uniform ones."""

    method: RatingMethod
    learner: str
    """What the method settled on, e.g. ``least-squares (25% uniform)``."""
    tests: tuple[str, ...]
    weights: Floats
    """Shape (tests,), sum 1, learned from everything."""
    low: Floats | None
    """Shape (tests,); None where there are no intervals."""
    high: Floats | None
    no_interval: str | None
    """Why there are no intervals for the weights."""
    learners: tuple[RatingLearnerScore, ...]
    verdict: Conclusion
    outputs: int
    without_order: int
    """Outputs held out in folds whose ratings are all the same: they have no right order and are in no correlation."""
    pairs: int
    left_out: int
    pairs_decided: int
    """Those of ``pairs`` in which people preferred one output."""
    pairs_left_out: int
    """Pairs without some score; never filled in."""
    pair_share: float
    """How much of the objective is pairs: 0 ratings alone."""
    resamples: int
    confidence: float
    seed: int


def learn_from_ratings(
    ratings: RatingScores,
    *,
    pairs: PreferenceScores | None = None,
    method: RatingMethod = "auto",
    pair_share: float = 0.5,
    folds: int = 5,
    resamples: int = 100,
    seed: int = 42,
) -> RatingWeights:
    """Learn weights from ratings, or from ratings and pairs together, judged on held-out data beside
    simpler ways.

    The objective is (1 - s)·Spearman + s·(2·share of right pairs - 1), both on [-1, 1], s being
    ``pair_share`` (0 without decided pairs). Groups of the same name in ratings and pairs are one group.

    Args:
        ratings: Rated outputs with scores.
        pairs: Preference pairs scored by the same tests.
        method: What gives the weights; all methods are compared.
        pair_share: Weight of the pairs in the objective, in [0, 1].
        folds: Cross-validation folds, whole groups at a time.
        resamples: Bootstrap resamples for the weights (whole groups).
        seed: Decides folds and resamples.

    Raises:
        InputError: Tests differ, an option is out of range, or there are too few outputs or groups.
        LearningFailedError: The method finds no weights.
    """
    rating_method(method)
    if not 0.0 <= pair_share <= 1.0:
        raise InputError(f"pair_share is {pair_share}; it must lie in [0, 1].")
    data = check_ratings(ratings, pairs)
    decided = 0 if data.pairs is None else data.pairs.decided_pairs
    share = pair_share if decided else 0.0
    scores, verdict, without_order = _held_out(data, method, share, folds, seed)
    plan = plan_for(data, method, share, seed)
    weights = learn_plan(data, plan, share)
    low = high = why = None
    if plan.method == "uniform":
        why = "uniform weights are the same whatever the ratings"
    elif resamples < 2:
        why = too_few(resamples)
    else:
        samples = resampled_weights(data, plan, share, resamples, seed)
        failed = resamples - len(samples)
        if failed > MOST_FAILED * resamples:
            why = f"nothing could be learned on {failed} of the {resamples} resamples"
        else:
            low, high = interval(samples)
    return RatingWeights(
        method=method,
        learner=plan.name,
        tests=ratings.tests,
        weights=weights,
        low=low,
        high=high,
        no_interval=why,
        learners=scores,
        verdict=verdict,
        outputs=len(data.ratings),
        without_order=without_order,
        pairs=len(data.pairs) if data.pairs is not None else 0,
        left_out=len(ratings.left_out),
        pairs_decided=decided,
        pairs_left_out=0 if pairs is None else len(pairs.left_out),
        pair_share=share,
        resamples=resamples,
        confidence=CONFIDENCE,
        seed=seed,
    )


def check_ratings(ratings: RatingScores, pairs: PreferenceScores | None) -> RatingData:
    """What is learned from; what nothing can be learned from, whatever its scores, is refused.

    Raises:
        InputError: Tests differ, or there are too few outputs or groups, or all are rated the same.
    """
    data = _together(ratings, pairs)
    if len(data.ratings) < 3 or np.ptp(data.ratings) == 0:
        raise InputError("Learning from ratings needs at least three rated outputs that are not all rated the same.")
    require_groups(data.every_group)
    return data


def _together(ratings: RatingScores, pairs: PreferenceScores | None) -> RatingData:
    if pairs is None:
        return RatingData(ratings.scores, ratings.ratings, codes_of(ratings.groups), None)
    if set(pairs.tests) != set(ratings.tests):
        raise InputError(
            f"Ratings and pairs were scored by different tests ({', '.join(ratings.tests)}; {', '.join(pairs.tests)})."
        )
    codes = codes_of([*ratings.groups, *pairs.groups])
    outputs = len(ratings.groups)
    order = [pairs.tests.index(test) for test in ratings.tests]
    rows = pairs.differences()
    differences = PairDifferences(rows.differences[:, order], rows.is_tie, codes[outputs:], rows.sections, rows.counts)
    return RatingData(ratings.scores, ratings.ratings, codes[:outputs], differences)


@dataclass
class _Trial:
    """One method on all folds."""

    predicted: Floats
    """Score of each output by weights learned without its group, shape (outputs,)."""
    credits: list[Floats] = field(default_factory=list)
    """Of the held-out decided pairs, by fold."""
    failure: str | None = None


def _held_out(
    data: RatingData, method: RatingMethod, share: float, folds: int, seed: int
) -> tuple[tuple[RatingLearnerScore, ...], Conclusion, int]:
    """Each method's scores for every output (and pair) from weights learned without its group; and how many outputs have no order."""
    trials = {name: _Trial(np.full(len(data.ratings), np.nan)) for name in METHODS}
    parts: list[NDArray[np.intp]] = []
    for inside in development_groups(data, folds, seed):
        development = data.part(inside)
        rows = np.flatnonzero(~inside[data.groups])
        if len(rows):
            parts.append(rows)
        for name, trial in trials.items():
            try:
                weights = learn_plan(development, plan_for(development, name, share, seed), share)
            except LearningFailedError as error:
                trial.failure = str(error)
                continue
            trial.predicted[rows] = data.scores[rows] @ weights
            if data.pairs is not None:
                held = data.pairs.take(~inside[data.pairs.groups] & ~data.pairs.is_tie)
                trial.credits.append(margins_to_credits(held.differences @ weights))
    ordered = [rows for rows in parts if np.ptp(tied(data.ratings[rows])) > 0]
    scores = _compare(data, ordered, trials, seed)
    verdict = _verdict(next(score for score in scores if score.name == method))
    return scores, verdict, len(data.ratings) - sum(map(len, ordered))


def _compare(
    data: RatingData, parts: list[NDArray[np.intp]], trials: Mapping[RatingMethod, _Trial], seed: int
) -> tuple[RatingLearnerScore, ...]:
    """Correlations of all methods, within the held-out part of each fold, on the same resamples of whole groups.

    ``parts`` are those in which ratings differ; there may be none.
    """
    if not parts:
        flat = "no fold holds out outputs that are rated differently"
        return tuple(RatingLearnerScore(name, reason=trial.failure or flat) for name, trial in trials.items())
    kernels = {
        name: _mean_correlation("spearman", trial.predicted, data.ratings, parts)
        for name, trial in trials.items()
        if trial.failure is None
    }
    codes = compact(data.groups)
    weights = resample_weights(int(codes.max()) + 1, CORRELATION_RESAMPLES, seed, codes)
    draws = dict(zip(kernels, resample(list(kernels.values()), weights), strict=True))
    ones = np.ones((len(data.ratings), 1))
    points = {name: float(kernel(ones)[0]) for name, kernel in kernels.items()}
    scores = []
    for name, trial in trials.items():
        point = points.get(name, np.nan)
        if np.isnan(point):
            constant = "in one of the folds the score is the same for every output"
            scores.append(RatingLearnerScore(name, reason=trial.failure or constant))
            continue
        low, high, why = percentile_interval(draws[name], CONFIDENCE)
        gain_low, gain_high, no_gain = percentile_interval(draws[name] - draws["uniform"], CONFIDENCE)
        credits = np.concatenate([np.empty(0), *trial.credits])
        scores.append(
            RatingLearnerScore(
                name=name,
                spearman=point,
                low=low,
                high=high,
                kendall=float(_mean_correlation("kendall", trial.predicted, data.ratings, parts)(ones)[0]),
                difference=None if np.isnan(points["uniform"]) else point - points["uniform"],
                difference_low=gain_low,
                difference_high=gain_high,
                pair_accuracy=float(credits.mean()) if len(credits) else None,
                reason=why or no_gain,
            )
        )
    return tuple(scores)


def _mean_correlation(
    method: Literal["spearman", "kendall"], predicted: Floats, ratings: Floats, parts: list[NDArray[np.intp]]
) -> Kernel:
    """Mean over the folds' held-out parts, by size: scores of different folds come from different weights.

    A part in which a resample has one rating alone has no order, and is left out of that resample's mean.
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
    """Whether the values, shape (items, 1), that a resample drew differ; shape (resamples,)."""
    highest = np.where(drawn > 0, values, -np.inf).max(axis=0)
    lowest = np.where(drawn > 0, values, np.inf).min(axis=0)
    differ: NDArray[np.bool_] = highest > lowest
    return differ


def _verdict(score: RatingLearnerScore) -> Conclusion:
    if score.difference is None or score.difference_low is None or score.difference_high is None:
        return "undefined"
    if score.difference_low == score.difference_high == 0.0:
        return "same"
    return "better" if score.difference_low > 0 else "worse" if score.difference_high < 0 else "cannot tell"
