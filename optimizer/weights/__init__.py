"""Learning how question scores add up, from preference pairs and ratings (LMUnit §3.5)."""

from __future__ import annotations

from ...evaluation.weights_file import ScoreKind, load_weights, weighted_by, with_weights
from .fit_weights import learn_weights
from .learner_choice import Auto, find_learner, learners
from .learners import LearningFailedError, WeightLearner
from .score_tables import (
    PreferenceScores,
    RatingScores,
    load_preferences,
    load_ratings,
    preference_scores,
    rating_scores,
)
from .weights_result import WeighResult, sentences, weights_report, weights_view

__all__ = [
    "Auto",
    "LearningFailedError",
    "PreferenceScores",
    "RatingScores",
    "ScoreKind",
    "WeighResult",
    "WeightLearner",
    "find_learner",
    "learn_weights",
    "learners",
    "load_preferences",
    "load_ratings",
    "load_weights",
    "preference_scores",
    "rating_scores",
    "sentences",
    "weighted_by",
    "weights_report",
    "weights_view",
    "with_weights",
]
