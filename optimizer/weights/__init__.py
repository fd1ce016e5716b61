"""Learning how question scores add up, from preference pairs and ratings (LMUnit §3.5)."""

from __future__ import annotations

from ...evaluation.weights_file import ScoreKind, load_weights, weighted_by, with_weights
from .auto import Auto
from .from_pairs import learn_from_pairs
from .from_ratings import RatingWeights, learn_from_ratings
from .learned import WeighResult
from .learners import LearningFailedError, WeightLearner
from .preferences import PreferenceScores, load_preferences, preference_scores
from .ratings import RatingScores, load_ratings, rating_scores
from .registry import find_learner, learners
from .sentences import rating_report, rating_sentences, sentences, weights_report, weights_view

__all__ = [
    "Auto",
    "LearningFailedError",
    "PreferenceScores",
    "RatingScores",
    "RatingWeights",
    "ScoreKind",
    "WeighResult",
    "WeightLearner",
    "find_learner",
    "learn_from_ratings",
    "learners",
    "load_preferences",
    "load_ratings",
    "load_weights",
    "preference_scores",
    "rating_report",
    "rating_scores",
    "rating_sentences",
    "sentences",
    "learn_from_pairs",
    "weighted_by",
    "weights_report",
    "weights_view",
    "with_weights",
]
