"""Which questions are worth asking: selection by expected information gain (EIG §3)."""

from __future__ import annotations

from ...evaluation.adaptive import AdaptiveEvaluation, AdaptiveScore, evaluate_adaptively
from ...evaluation.options import SelectOptions
from .information import entropy, expected_information_gain, one_hot, pooled_information, ranking_convergence
from .joint import HardAnswers, chained_information, greedy_order, joint_order
from .select import select
from .selected import Selection

__all__ = [
    "AdaptiveEvaluation",
    "AdaptiveScore",
    "HardAnswers",
    "SelectOptions",
    "Selection",
    "chained_information",
    "entropy",
    "evaluate_adaptively",
    "expected_information_gain",
    "greedy_order",
    "joint_order",
    "one_hot",
    "pooled_information",
    "ranking_convergence",
    "select",
]
