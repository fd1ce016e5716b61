"""Settings of ``compare``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ..optimizer.options import EvaluateOptions


class CompareOptions(EvaluateOptions):
    """Settings of ``compare``; those of ``evaluate`` hold for the judges that ask yes/no questions."""

    points: int = Field(
        5, ge=2, le=9, description="Rating judges rate from 1 to this; agreement and kappas are counted on this scale."
    )
    agreement_tolerance: int | None = Field(
        None, ge=0, description="Points that scores may differ by and still agree; default: a fifth of the scale."
    )
    k: int = Field(5, ge=1, description="Questions that random_k draws for each dimension.")
    panel_size: int = Field(3, ge=2, description="Members of poll where no models are named with --panel.")
    panel_by: Literal["seeds", "prompts"] = Field(
        "seeds", description="What members of the same model differ in: the seed, or the wording of the prompt."
    )
    panel_vote: Literal["majority", "mean"] = Field(
        "majority", description="How a panel decides: the score most members give (mean of tied ones), or the mean."
    )
    em_dim: bool = Field(
        False,
        description="Measure dimension drift: the share of aspects that a judge looks at again (needs --repeat 2; two "
        "calls an example for cot).",
    )
    cot_tokens: int = Field(300, ge=20, description="Longest answer of cot, in tokens.")

    @model_validator(mode="after")
    def _drift_needs_a_second_time(self) -> CompareOptions:
        if self.em_dim and self.repeat < 2:
            raise ValueError("em_dim: whether a judge looks at the same again takes a second judging (repeat 2)")
        return self

    @property
    def tolerance(self) -> int:
        """Points of the scale that count as agreement: 1 on 5 points, 2 on 10 (EIG paper §4.1)."""
        return max(self.points // 5, 0) if self.agreement_tolerance is None else self.agreement_tolerance
