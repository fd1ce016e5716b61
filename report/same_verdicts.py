"""Which answers a migrated judge has in common with its source, question by question, and how each was worded anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..memory.result_parts import ParityRecord, QuestionWordingsRecord
    from .run_data import RunData


@dataclass(frozen=True)
class SameVerdictsRow:
    """One question, or all of them."""

    name: str
    text: str
    """As the accepted judge is asked it; empty for all questions together."""
    before: ParityRecord
    after: ParityRecord


@dataclass(frozen=True)
class SameVerdicts:
    """With the source, on one split."""

    split: str
    rows: Sequence[SameVerdictsRow]


def same_verdicts(data: RunData) -> list[SameVerdicts]:
    """Test first; empty where the source's verdicts on held-out examples were not bought."""
    made = []
    for split in ("test", "validation"):
        sides = data.result.parity.get(split)
        if sides is None or not {"baseline", "best"} <= sides.keys():
            continue
        before, after = sides["baseline"], sides["best"]
        rows = [SameVerdictsRow("All questions", "", before, after)]
        rows += [
            SameVerdictsRow(name, data.shared_questions.get(name, (name, ""))[0], was, after.questions[name])
            for name, was in before.questions.items()
            if name in after.questions
        ]
        made.append(SameVerdicts(split, rows))
    return made


def wordings(data: RunData) -> Sequence[QuestionWordingsRecord]:
    """What became of each question, those that are asked in other words first."""
    return sorted(data.result.wordings, key=lambda each: not each.accepted)
