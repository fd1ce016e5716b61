"""What a run comes to: the records that ``result.json`` is written from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..memory.run_directory import FinishReason
from ..stats.differences import difference_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation.scoring import ExampleScore
    from ..prompts.lessons import Edit
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict
    from ..stats.differences import Difference
    from .subject import Draft, Observation


@dataclass(frozen=True)
class TriedEdits:
    """A candidate that went through the gate."""

    edits: tuple[Edit, ...]
    accepted: bool
    reason: str
    gain: Difference | None
    iteration: int
    judged: int
    """Validation examples that were judged before the decision."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        return {
            "edits": [edit.model_dump(mode="json") for edit in self.edits],
            "reason": self.reason,
            "gain": difference_dict(self.gain),
            "iteration": self.iteration,
            "judged": self.judged,
        }


@dataclass(frozen=True)
class PrunedEdit:
    """An accepted edit whose removal was tried at the end."""

    edit: Edit
    removed: bool
    reason: str
    gain: Difference | None
    """Of the prompt without it."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        return {
            "edit": self.edit.model_dump(mode="json"),
            "removed": self.removed,
            "reason": self.reason,
            "gain": difference_dict(self.gain),
        }


@dataclass(frozen=True)
class Version:
    """A draft with the edits that led to it and its scores on validation."""

    number: int
    draft: Draft
    scores: Sequence[ExampleScore]
    edits: tuple[Edit, ...] = ()
    parent: int | None = None
    verdicts: Sequence[Verdict] = ()
    """On the same examples as the scores."""

    @property
    def prompt(self) -> Prompt:
        """The prompt of the draft."""
        return self.draft.prompt


@dataclass
class Outcome:
    """What the loop came to, before the test is looked at."""

    baseline: Version
    best: Version
    finish_reason: FinishReason
    iterations: int
    tried: list[TriedEdits] = field(default_factory=list)
    pruned: list[PrunedEdit] = field(default_factory=list)
    seen: dict[int, Observation] = field(default_factory=dict)
    """What versions did on the development examples, by number, as far as they were looked at."""
