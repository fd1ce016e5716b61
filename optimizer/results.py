"""What a run comes to: the records that ``result.json`` is written from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..memory.run_directory import FinishReason
from ..prompts.examples import documents
from ..stats.correlation import correlate, correlations_dict
from ..stats.differences import difference_dict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..prompts.examples import Example
    from ..prompts.lessons import Edit
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import Verdict
    from ..stats.differences import Difference
    from .scoring import ExampleScore
    from .subject import Draft, Observation
    from .targets import Targets


@dataclass(frozen=True)
class Measure:
    """The correlation of one prompt version with the targets on one split."""

    overall: Mapping[str, Any]
    dimensions: Mapping[str, Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        return {**self.overall, "dimensions": {name: dict(values) for name, values in self.dimensions.items()}}


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


def measure(
    scores: Sequence[ExampleScore], targets: Targets, examples: Sequence[Example], *, resamples: int, seed: int
) -> Measure:
    """Correlate scores with targets, over all dimensions and on each, with intervals.

    Examples of the same document (``metadata.document``) are resampled together.
    """
    groups = documents(examples)

    def one(values: list[float | None], wanted: list[float | None]) -> dict[str, Any]:
        return correlations_dict(correlate(values, wanted, groups=groups, resamples=resamples, seed=seed))

    overall = one([targets.score(each) for each in scores], [targets.overall(each.example) for each in scores])
    dimensions = {
        name: one(
            [targets.dimension_score(each, name) for each in scores],
            [targets.wanted[each.example].get(name) for each in scores],
        )
        for name in targets.dimensions
    }
    return Measure(overall, dimensions)
