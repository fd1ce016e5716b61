"""Preference pairs: which of two outputs people liked better."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


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
    group: str | None = None
    """Pairs of one group are never divided between learning and testing."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _labels_may_be_metadata(cls, row: Any) -> Any:
        """``section``, ``dataset`` and ``group`` are also found under ``metadata``, as where scores are given."""
        metadata = row.get("metadata") if isinstance(row, dict) else None
        if not isinstance(metadata, dict):
            return row
        return {name: metadata[name] for name in ("section", "dataset", "group") if name in metadata} | row
