"""What the experiments on weights say of pairs beside ``learn_from_pairs`` itself: the slow learners, and each test alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...optimizer.weights import PreferenceScores, WeighResult, learn_from_pairs
from ...optimizer.weights.pairs import ACCURACY_RESAMPLES, interval, margins_to_credits, resample_shares
from ...optimizer.weights.registry import QUICK

SLOW = ("optuna-tpe", "bayes")
"""Learners that need minutes; optuna-gp, which needs PyTorch, is not among them."""


def split_with_slow_learners(pairs: PreferenceScores, seed: int) -> dict[str, Any]:
    """All learners, the slow ones too, on the held-out half of one split.

    Raises:
        InputError: As :func:`~askance.optimizer.weights.from_pairs`.
    """
    result = learn_from_pairs(pairs, compare=(*QUICK, *SLOW), folds=1, resamples=2, seed=seed)
    learners = [
        {name: value for name, value in asdict(score).items() if name != "weights"} for score in result.learners
    ]
    return {"seed": seed, "held_out": result.counts.held_out, "learners": learners}


def beating_uniform(result: WeighResult) -> list[str]:
    """The learners whose gain on uniform weights has an interval above 0, on the same held-out pairs."""
    return [score.name for score in result.learners if score.difference_low is not None and score.difference_low > 0]


def accuracy_of_each_test(pairs: PreferenceScores, *, seed: int = 42) -> list[dict[str, Any]]:
    """How many decided pairs each test puts in the right order by itself, a score tie being half."""
    compared = pairs.differences()
    decided = compared.take(~compared.is_tie)
    credits = margins_to_credits(decided.differences)
    low, high = interval(resample_shares(credits, decided.groups, ACCURACY_RESAMPLES, seed))
    return [
        {
            "test": test,
            "accuracy": float(credits[:, number].mean()),
            "low": float(low[number]),
            "high": float(high[number]),
            "right": int((credits[:, number] == 1.0).sum()),
            "score_ties": int((credits[:, number] == 0.5).sum()),
            "wrong": int((credits[:, number] == 0.0).sum()),
        }
        for number, test in enumerate(pairs.tests)
    ]
