"""Settings of ``weigh``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .options import EvaluateOptions

UNUSED = ("weights", "scale", "human_scale")
"""Settings of ``evaluate`` that learning weights has no use for; a project's file may hold them for other commands."""


class WeighOptions(EvaluateOptions):
    """Settings of ``weigh``: how weights are learned, and how outputs without scores are judged."""

    method: str = Field("auto", description="Learner; auto chooses by cross-validation.")
    level: Literal["global", "dataset", "section"] = Field(
        "global", description="One set of weights, or one for each data set or section."
    )
    pooling: Literal["partial", "none"] = Field(
        "partial", description="Whether small data sets and sections lean on the whole."
    )
    rating_dimension: str | None = Field(
        None, description="Human dimension that is the rating; default: the only one, or overall."
    )
    pair_share: float = Field(
        0.5, ge=0, le=1, description="Share of the pairs in what is maximised, where ratings are given too."
    )
    pairwise: bool = Field(False, description="Show the judge both outputs of a pair: which does better on each test?")
    resamples: int = Field(
        200, ge=1, description="Bootstrap resamples of the weights; unless given, fewer or none where they take long."
    )
    swap: bool = Field(False, description="Show them in both orders, take the mean, and report the position bias.")

    @property
    def for_judging(self) -> dict[str, object]:
        """Those that :func:`~askance.optimizer.evaluate.evaluate` takes, where they were given."""
        names = set(EvaluateOptions.model_fields).difference(UNUSED, ("resamples",))
        return self.model_dump(include=names, exclude_unset=True)

    @property
    def asked_resamples(self) -> dict[str, int]:
        """The number of resamples, where it was given; learners have defaults of their own."""
        return {"resamples": self.resamples} if "resamples" in self.model_fields_set else {}
