"""Settings of ``evaluate``."""

from __future__ import annotations

from pydantic import Field, model_validator

from .options import EvaluateOptions


class EvaluationOptions(EvaluateOptions):
    """How a data set is judged, and when no further question is asked about an example."""

    stop_within: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Stop asking about an example when its score is known to be within this (in [0, 1]) of what all "
        "questions would give.",
    )
    pass_mark: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Stop asking about an example when it is settled whether its score (in [0, 1]) reaches this.",
    )

    @property
    def adaptive(self) -> bool:
        """Whether questions may be left out."""
        return self.stop_within is not None or self.pass_mark is not None

    @model_validator(mode="after")
    def _one_by_one(self) -> EvaluationOptions:
        if self.adaptive:
            name = "stop_within" if self.stop_within is not None else "pass_mark"
            if self.mode != "each":
                raise ValueError(f"{name}: questions are then asked one after another (mode each)")
            if self.calibration is not None:
                raise ValueError(f"{name}: a calibration moves scores after they were asked for; leave one of them out")
        return self
