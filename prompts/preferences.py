"""Preference pairs: which of two outputs people liked better."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Preference(BaseModel):
    """Two outputs for one input, and which one was preferred. Columns that are not ours are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    input: str
    output_a: str
    output_b: str
    preferred: Literal["a", "b", "tie"]
    section: str | None = None
    dataset: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def group(self) -> str | None:
        """Pairs of one group are never divided between learning and testing (``metadata.group``)."""
        group = self.metadata.get("group")
        return None if group is None else str(group)
