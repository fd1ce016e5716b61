"""The learners by name."""

from __future__ import annotations

from ...prompts.errors import InputError, did_you_mean
from .auto import Auto
from .bradley_terry import Logistic, Robust
from .learners import BestSingle, Decay, Uniform, WeightLearner
from .searches import Bayes, LocalSearch, OptunaSearch

QUICK = ("uniform", "best-single", "decay", "logistic", "robust", "local-search")
"""Learners shown beside the chosen method unless others are named."""


ALIASES = {"optuna": "optuna-tpe"}
"""Other names under which a learner can be asked for."""


def learners() -> dict[str, WeightLearner]:
    """Every learner with its usual settings, by name."""
    known: list[WeightLearner] = [
        Uniform(), BestSingle(), Decay(), Logistic(), Robust(), LocalSearch(), Auto(), Bayes(),
        OptunaSearch("tpe"), OptunaSearch("gp"),
    ]  # fmt: skip
    return {learner.name: learner for learner in known}


def find_learner(learner: str | WeightLearner) -> WeightLearner:
    """A learner by its name; a learner is returned as it is.

    Raises:
        InputError: There is no learner of that name.
    """
    if not isinstance(learner, str):
        return learner
    known = learners()
    learner = ALIASES.get(learner, learner)
    if learner not in known:
        raise InputError(
            f"There is no weight learner '{learner}'.{did_you_mean(learner, known)} Choose from: {', '.join(known)}."
        )
    return known[learner]
