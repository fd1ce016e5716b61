"""The learners by name."""

from __future__ import annotations

from ...prompts.errors import InputError, did_you_mean
from .auto import Auto
from .bradley_terry import Logistic, Robust
from .learners import BestSingle, Uniform, WeightLearner
from .searches import Bayes, OptunaSearch

QUICK = ("uniform", "best-single", "logistic", "robust")
"""Learners shown beside the chosen method unless others are named."""


ALIASES = {"optuna": "optuna-tpe"}
"""Other names under which a learner can be asked for."""
GONE = {
    "local-search": "robust, which was never worse on held-out pairs and has intervals that hold",
    "decay": "uniform, or a file with the weights that you want: --weights of evaluate",
    "optuna-gp": "bayes, which is a Gaussian process too, or optuna-tpe",
}
"""Learners of earlier versions, and what takes the place of each."""


def learners() -> dict[str, WeightLearner]:
    """Every learner with its usual settings, by name."""
    known: list[WeightLearner] = [
        Uniform(), BestSingle(), Logistic(), Robust(), Auto(), Bayes(), OptunaSearch(),
    ]  # fmt: skip
    return {learner.name: learner for learner in known}


def find_learner(learner: str | WeightLearner) -> WeightLearner:
    """A learner by its name; a learner is returned as it is.

    Raises:
        InputError: There is no learner of that name.
    """
    if not isinstance(learner, str):
        return learner
    refuse_gone(learner)
    known = learners()
    learner = ALIASES.get(learner, learner)
    if learner not in known:
        raise InputError(
            f"There is no weight learner '{learner}'.{did_you_mean(learner, known)} Choose from: {', '.join(known)}."
        )
    return known[learner]


def refuse_gone(method: str) -> None:
    """Raise InputError for a learner of an earlier version; it names what takes its place."""
    if method in GONE:
        raise InputError(f"The weight learner '{method}' is gone. In its place: {GONE[method]}.")
