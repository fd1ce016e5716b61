"""What a selection is made from: the sample with the judge's prompt, and the answers and ratings that were bought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...evaluation.scoring import Coverage, coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...agents.rating import Rating
    from ...prompts.checklist import Checklist
    from ...prompts.examples import Example
    from ...prompts.prompt import Prompt
    from ...prompts.verdicts import Verdict
    from .pool import Pool


@dataclass(frozen=True)
class Inputs:
    """What a selection works on, checked."""

    examples: list[Example]
    """The sample."""
    candidates: Checklist | None
    prompt: Prompt
    task: str
    dimensions: tuple[str, ...]
    by_people: bool
    """Whether ratings are people's."""


@dataclass(frozen=True)
class Bought:
    """Answers and ratings, as they came."""

    candidates: Checklist
    pool: Pool | None
    verdicts: Sequence[Verdict]
    """Yes/no answers; none where answers are on a scale."""
    degrees: Sequence[Rating]
    """Answers on a scale."""
    ratings: Sequence[Rating]
    """Of the whole; none where people's are used."""
    given: Sequence[Rating]
    """Of the whole, given each answer."""

    @property
    def coverage(self) -> Coverage:
        """Of the answers."""
        return coverage(self.verdicts) + rating_coverage(self.degrees)

    @property
    def problems(self) -> list[str]:
        """Errors, each once."""
        errors = [verdict.error for verdict in self.verdicts]
        errors += [rating.error for rating in (*self.degrees, *self.ratings, *self.given)]
        return list(dict.fromkeys(error for error in errors if error))


def rating_coverage(ratings: Sequence[Rating]) -> Coverage:
    """Count ratings by status."""
    counts = {"ok": 0, "abstained": 0, "parse_error": 0, "api_error": 0}
    for rating in ratings:
        counts[rating.status] += 1
    return Coverage(len(ratings), counts["ok"], counts["abstained"], counts["parse_error"], counts["api_error"])
