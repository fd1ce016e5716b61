"""History of a judge that a person changed by hand: what, when, and whether validation had been looked at."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field


class JudgeChange(BaseModel):
    """One change that a person made of a judge, as ``judge.yaml`` keeps it under ``history``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str = Field(min_length=1)
    """Name of the person."""
    time: str
    """When it was saved, in ISO format."""
    of: str
    """The :attr:`~askance.evaluation.kept_judge.KeptJudge.hash` of the judge before the change."""
    what: tuple[str, ...] = Field(min_length=1)
    """Sentences, one a change."""
    looks: int = Field(0, ge=0)
    """Changed judges whose agreement on validation had been looked at when this one was saved, itself among them."""
    shaped_on_validation: bool = False
    """Whether validation had been looked at for another judge before this one was saved: it says nothing of it now."""


def shaped_said(history: Sequence[JudgeChange]) -> str | None:
    """A sentence on a judge that a person shaped on validation; None where nobody did."""
    shaped = [each for each in history if each.shaped_on_validation]
    if not shaped:
        return None
    return (
        f"{shaped[-1].by} shaped this judge on validation examples ({shaped[-1].looks} looks), so its agreement there "
        "is too good. Measure it on other labelled examples."
    )
