"""Several learners on the same held-out pairs, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time

import numpy as np

from ...prompts.errors import MissingExtraError
from .comparisons import Codes, Comparisons, Floats, margins_to_credits
from .heldout import ACCURACY_RESAMPLES, Split, interval, paired_standard_error, resample_shares
from .intervals import Power, pairs_needed
from .protocol import LearningFailedError, WeightLearner
from .result import LearnerScore, Verdict
from .sections import Pooling, prepare

UNLEARNED = ("uniform", "decay", "best-single")
"""Learners that set no several weights from the pairs."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One learner on all splits."""

    name: str
    credits: Floats | None = None
    seconds: float = 0.0
    weights: list[Floats] = field(default_factory=list)
    failure: str | None = None


def try_learner(
    learner: WeightLearner,
    pairs: Comparisons,
    splits: list[Split],
    sections: int,
    pooling: Pooling,
    seed: int,
) -> Trial:
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
            return Trial(learner.name, failure=str(error))
        seconds += process_time() - began
        credits.append(margins_to_credits(fitted.margins(test)))
        weights.append(fitted.overall)
    return Trial(learner.name, np.concatenate(credits), seconds / len(splits), weights)


def score_trials(
    trials: list[Trial], baseline: Trial, groups: Codes, confidence: float, seed: int
) -> list[LearnerScore]:
    """Every learner on the same resamples of the same held-out pairs."""
    assert baseline.credits is not None
    worked = [trial for trial in trials if trial.credits is not None]
    credits = np.column_stack([baseline.credits, *(trial.credits for trial in worked if trial.credits is not None)])
    shares = resample_shares(credits, groups, ACCURACY_RESAMPLES, seed)
    lows, highs = interval(shares, confidence)
    gain_lows, gain_highs = interval(shares - shares[:, :1], confidence)
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


def against_uniform(trial: Trial, baseline: Trial, score: LearnerScore) -> Verdict:
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


def pairs_to_tell(trials: list[Trial], baseline: Trial, groups: Codes, pairs: int) -> Power:
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
