"""What a judge has learned from people's comments: each question with its origin and its worth, and what was set aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .scores import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..memory.records import CriterionRecord
    from ..prompts.shown_examples import ShownExamples
    from ..stats.differences import Difference
    from .run_data import RunData


SHOWN_COMMENTS = 8
"""Comments quoted of one question; the others are counted."""
SHOWN_EXAMPLES = 12
"""Example ids named of one question."""
SHOWN_SET_ASIDE = 200
"""Questions that did not join which the page names."""


@dataclass(frozen=True)
class LearnedQuestion:
    """A question that the accepted judge asks, and did not ask before."""

    found: CriterionRecord
    weight: float | None
    """None where the run's checklist was not kept."""
    comments: Sequence[tuple[str, Sequence[str]]]
    """What was written, and the ids of the question's examples that it was written of."""
    other_examples: Sequence[str]
    """Examples that it comes from on which none of the comments stands in the run's inputs."""
    worth: Sequence[tuple[str, Difference]]
    """The gain over the same judge without it, by split."""

    @property
    def more_comments(self) -> int:
        """Comments that are not quoted."""
        return max(0, len(self.comments) - SHOWN_COMMENTS)


@dataclass(frozen=True)
class WhatWasLearned:
    """Everything that came of the comments."""

    questions: Sequence[LearnedQuestion]
    set_aside: Sequence[CriterionRecord]
    """Proposed, and not in the accepted judge."""
    why_none: str | None
    """Why none was proposed; None where some were, or where the run was not to learn any."""
    scale: Scale
    """The axis on which what they are worth is drawn."""
    shown: ShownExamples | None
    """The judged examples that the accepted judge is shown from now on."""

    @property
    def left_out(self) -> int:
        """Questions set aside that are not named."""
        return max(0, len(self.set_aside) - SHOWN_SET_ASIDE)


def what_was_learned(data: RunData) -> WhatWasLearned | None:
    """None where the run was not to learn questions, or went on without them: edits are told of elsewhere."""
    result = data.result
    if not result.questions and result.thing == "prompt":
        return None
    new = result.best.checklist
    weights = {each.id: each.weight for each in new.questions} if new else {}
    rows = [_question(data, each, weights.get(each.id)) for each in result.learned]
    ends = [end for row in rows for _, gain in row.worth for end in (gain.low, gain.high, gain.value)]
    return WhatWasLearned(rows, result.not_learned, result.why_no_questions, Scale.over(ends), result.shown)


def _question(data: RunData, found: CriterionRecord, weight: float | None) -> LearnedQuestion:
    said = {name: data.comments.get(name, ()) for name in found.sources}
    comments = [(text, [name for name, texts in said.items() if text in texts]) for text in found.comments]
    told = {name for _, names in comments for name in names}
    others = [name for name in found.sources if name not in told]
    worth = [
        (split, gain) for split, gain in (("test", found.worth.test), ("validation", found.worth.validation)) if gain
    ]
    return LearnedQuestion(found, weight, comments, others, worth)
