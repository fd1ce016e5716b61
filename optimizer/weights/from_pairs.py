"""Learn weights from preference pairs, and say by several learners on the same held-out pairs whether it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import process_time

import numpy as np

from ...prompts.errors import InputError, MissingExtraError
from .intervals import Power, WeightSamples, bootstrap_weights, pairs_needed, rank_stability, too_few
from .learned import Conclusion, LearnerScore, PairCounts, SectionWeights, WeighResult
from .learners import LearningFailedError, Uniform, WeightLearner
from .pairs import (
    ACCURACY_RESAMPLES,
    CONFIDENCE,
    SCORE_TIE,
    Codes,
    Floats,
    PairDifferences,
    PairFold,
    grouped_folds,
    interval,
    interval_of_means,
    margins_to_credits,
    paired_standard_error,
    require_groups,
    resample_shares,
    single_split,
)
from .preferences import Level, PreferenceScores
from .registry import QUICK, find_learner
from .sections import Pooling, Recipe, Weighting, prepare

UNLEARNED = ("uniform", "best-single")
"""Learners that set no several weights from the pairs."""
MANY_PAIRS = 20_000
"""With more pairs one half is held out once; with fewer, every pair is held out once, in five folds."""
HELD_OUT = 0.5
"""Share of the pairs that one split holds out."""
MANY_SCORES = 500_000
"""With more pairs times tests, weights get 50 bootstrap resamples instead of 200 unless a number is given."""


@dataclass(frozen=True, eq=False)
class HeldOutTrial:
    """One learner on all splits."""

    name: str
    credits: Floats | None = None
    seconds: float = 0.0
    weights: list[Floats] = field(default_factory=list)
    failure: str | None = None


def try_learner(
    learner: WeightLearner,
    pairs: PairDifferences,
    splits: list[PairFold],
    sections: int,
    pooling: Pooling,
    seed: int,
) -> HeldOutTrial:
    """Learn on the development part of every split and collect the credits on the decided held-out pairs.

    A learner that fails, or whose package is missing, gives a trial with the failure in words.
    """
    credits, weights, seconds = [], [], 0.0
    for number, split in enumerate(splits):
        development, test = pairs.take(split.development), pairs.take(split.test[~pairs.is_tie[split.test]])
        began = process_time()
        try:
            recipe, _ = prepare(development, learner, sections=sections, pooling=pooling, seed=seed + number)
            fitted = recipe.fit(development, seed=seed + number)
        except (LearningFailedError, MissingExtraError) as error:
            return HeldOutTrial(learner.name, failure=str(error))
        seconds += process_time() - began
        credits.append(margins_to_credits(fitted.margins(test)))
        weights.append(fitted.overall)
    return HeldOutTrial(learner.name, np.concatenate(credits), seconds / len(splits), weights)


def score_trials(trials: list[HeldOutTrial], baseline: HeldOutTrial, groups: Codes, seed: int) -> list[LearnerScore]:
    """Every learner on the same resamples of the same held-out pairs."""
    assert baseline.credits is not None
    worked = [trial for trial in trials if trial.credits is not None]
    credits = np.column_stack([baseline.credits, *(trial.credits for trial in worked if trial.credits is not None)])
    shares = resample_shares(credits, groups, ACCURACY_RESAMPLES, seed)
    lows, highs = interval_of_means(credits, shares, groups, 0.5)
    gain_lows, gain_highs = interval_of_means(credits - credits[:, :1], shares - shares[:, :1], groups, 0.0)
    scores = []
    for trial in trials:
        if trial.credits is None:
            scores.append(LearnerScore(trial.name, failure=trial.failure))
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


def against_uniform(trial: HeldOutTrial, baseline: HeldOutTrial, score: LearnerScore) -> Conclusion:
    """What the paired comparison of the method with uniform weights on the same held-out pairs says."""
    if trial.credits is None or baseline.credits is None:
        return "undefined"
    if np.array_equal(trial.credits, baseline.credits):
        return "same"
    if score.difference_low is not None and score.difference_low > 0.0:
        return "better"
    if score.difference_high is not None and score.difference_high < 0.0:
        return "worse"
    return "cannot tell"


def pairs_to_tell(trials: list[HeldOutTrial], baseline: HeldOutTrial, groups: Codes, pairs: int) -> Power:
    """How many pairs would tell learned from uniform weights.

    The method comes first among ``trials``. Where it chooses between learners (``auto``), its choices lean
    on uniform weights and hide the difference, so the best of the others that learn several weights is
    asked instead.

    Args:
        trials: The method and those beside it.
        baseline: Uniform weights.
        groups: Group of each held-out pair, shape (held-out pairs,).
        pairs: Decided pairs in all.
    """
    asked = trials[0]
    others = [trial for trial in trials[1:] if trial.credits is not None and trial.name not in UNLEARNED]
    if asked.name == "auto" and others:
        asked = max(others, key=lambda trial: 0.0 if trial.credits is None else float(trial.credits.mean()))
    if asked.credits is None or baseline.credits is None:
        return Power(asked.name, None, None, None, f"{asked.name} could not be judged: {asked.failure}")
    gains = asked.credits - baseline.credits
    return pairs_needed(asked.name, float(gains.mean()), paired_standard_error(gains, groups), pairs)


def learn_from_pairs(
    prefs: PreferenceScores,
    *,
    method: str | WeightLearner = "auto",
    compare: Sequence[str | WeightLearner] = QUICK,
    level: Level = "global",
    pooling: Pooling = "partial",
    folds: int | None = None,
    resamples: int | None = None,
    seed: int = 42,
) -> WeighResult:
    """Learn how test scores add up, judged on held-out pairs beside simpler ways (LMUnit §3.5, A.3.5).

    The accuracy is that of learning from the development part of each split; the weights returned are then
    learned from all pairs in the same way.

    Args:
        prefs: Pairs with scores.
        method: A learner or its name (see ``learners()``) that gives the weights.
        compare: Learners shown beside it on the same held-out pairs; ``uniform`` is always among them.
        level: One set of weights, or one for each data set or section.
        pooling: For data sets and sections: ``partial`` leans small ones on the whole, ``none`` keeps them
            apart.
        folds: 1 for one split into halves, more for cross-validation; None: 5, or 1 with a slow learner or over 20,000
            pairs.
        resamples: Bootstrap resamples for the weights; None: 200, or 50 over 500,000 scores, or none for a
            slow learner.
        seed: Decides splits, searches and resamples.

    Raises:
        InputError: An unknown learner, no decided pair, only one group, or an option out of range.
        LearningFailedError: The method finds no weights for these pairs.
        MissingExtraError: The method needs a package that is not installed.
    """
    if folds is not None and folds < 1:
        raise InputError(f"folds is {folds}; it must be at least 1.")
    chosen = find_learner(method)
    others = [each for each in map(find_learner, compare) if each.name not in (chosen.name, "uniform")]
    pairs, names = check_pairs(prefs, level), prefs.section_names(level)
    if folds is None:
        slow = not all(each.quick for each in (chosen, *others))
        folds = 1 if slow or len(pairs) > MANY_PAIRS else 5
    splits = grouped_folds(pairs.groups, folds, seed) if folds > 1 else single_split(pairs.groups, HELD_OUT, seed)
    tested = np.concatenate([split.test[~pairs.is_tie[split.test]] for split in splits])
    if not len(tested):
        raise InputError("No decided pair is held out; give more pairs or another seed.")
    baseline = try_learner(Uniform(), pairs, splits, 0, pooling, seed)
    trials = [try_learner(each, pairs, splits, len(names), pooling, seed) for each in (chosen, *others)]
    trials = [baseline, *trials[1:]] if chosen.name == "uniform" else [trials[0], baseline, *trials[1:]]
    scores = score_trials(trials, baseline, pairs.groups[tested], seed)

    recipe, reason = prepare(pairs, chosen, sections=len(names), pooling=pooling, seed=seed)
    fitted = recipe.fit(pairs, seed=seed)
    if resamples is None:
        resamples = (50 if pairs.differences.size > MANY_SCORES else 200) if recipe.quick else 0
    samples = None
    if resamples and recipe.learns:
        samples = bootstrap_weights(recipe, pairs, fitted, resamples=resamples, seed=seed)
    usable = samples if samples is not None and samples.usable else None
    low, high = interval(usable.overall) if usable else (None, None)
    return WeighResult(
        method=chosen.name,
        learner=recipe.overall.name,
        reason=reason,
        level=level,
        tests=prefs.tests,
        weights=fitted.overall,
        low=low,
        high=high,
        no_interval=_no_interval(samples, recipe),
        sections=_section_weights(names, pairs, fitted, usable),
        stability=rank_stability(fitted.overall, usable.overall) if usable else None,
        learners=tuple(scores),
        verdict=against_uniform(trials[0], baseline, scores[0]),
        power=pairs_to_tell(trials, baseline, pairs.groups[tested], pairs.decided_pairs),
        counts=_count(prefs, pairs, fitted, len(tested)),
        folds=len(splits),
        resamples=resamples,
        failed_resamples=samples.failed if samples else 0,
        confidence=CONFIDENCE,
        seed=seed,
    )


def check_pairs(prefs: PreferenceScores, level: Level) -> PairDifferences:
    """What is learned from; pairs from which nothing can be learned, whatever their scores, are refused.

    Raises:
        InputError: No decided pair, only one group, or sections or data sets that no pair names.
    """
    pairs = prefs.differences(level)
    if not pairs.decided_pairs:
        with_scores, left_out = "", ""
        if prefs.left_out:
            with_scores = " with all scores"
            left_out = f" {len(prefs.left_out)} pairs were left out because scores are missing."
        raise InputError(f"In none of the {len(pairs)} pairs{with_scores} did people prefer one output.{left_out}")
    require_groups(pairs.groups)
    return pairs


def _no_interval(samples: WeightSamples | None, recipe: Recipe) -> str | None:
    if not recipe.learns:
        return f"{recipe.overall.name} weights are the same whatever the pairs"
    if samples is None and not recipe.quick:
        return "learning again on resamples takes too long with this learner; ask for resamples to have it done"
    few = too_few(0 if samples is None else len(samples.overall) + samples.failed)
    if samples is None or few or samples.usable:
        return few
    return f"nothing could be learned on {samples.failed} of the resamples"


def _section_weights(
    names: tuple[str, ...],
    pairs: PairDifferences,
    fitted: Weighting,
    samples: WeightSamples | None,
) -> tuple[SectionWeights, ...]:
    if fitted.by_section is None:
        return ()
    low = high = None
    if samples is not None and samples.by_section is not None:
        low, high = interval(samples.by_section)
    decided = np.bincount(pairs.sections[~pairs.is_tie], minlength=len(names))
    return tuple(
        SectionWeights(
            name,
            int(decided[number]),
            fitted.by_section[number],
            None if low is None else low[number],
            None if high is None else high[number],
        )
        for number, name in enumerate(names)
    )


def _count(prefs: PreferenceScores, pairs: PairDifferences, fitted: Weighting, held_out: int) -> PairCounts:
    margins = np.abs(fitted.margins(pairs))
    ties = margins[pairs.is_tie]
    return PairCounts(
        read=len(pairs) + len(prefs.left_out),
        left_out=len(prefs.left_out),
        missing_by_test=prefs.missing_by_test,
        decided=pairs.decided_pairs,
        data_ties=len(ties),
        data_ties_tied_by_score=int((ties <= SCORE_TIE).sum()),
        mean_margin_data_ties=float(ties.mean()) if len(ties) else None,
        mean_margin_decided=float(margins[~pairs.is_tie].mean()),
        groups=len(set(pairs.groups.tolist())),
        held_out=held_out,
    )
