"""From verdicts to scores: per dimension and overall, soft or hard, weighted, on any scale (BinEval §3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class ExampleScore:
    """The scores of one example, in [0, 1]. None where a verdict is missing: part of a checklist is no score."""

    example: str
    overall: float | None
    dimensions: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the verdicts that were asked for are there."""

    asked: int
    answered: int
    abstained: int
    parse_errors: int
    api_errors: int
    not_asked: int = 0
    """Verdicts that were not asked for because they could not matter; not among ``asked``."""

    @property
    def share(self) -> float:
        """Answered / asked, in [0, 1]; 1 where nothing was asked."""
        return self.answered / self.asked if self.asked else 1.0

    def to_dict(self) -> dict[str, float]:
        """As in results; without ``not_asked``, which few have."""
        counts = ("asked", "answered", "abstained", "parse_errors", "api_errors")
        return {name: getattr(self, name) for name in counts} | {"share": self.share}

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def coverage(verdicts: Iterable[Verdict]) -> Coverage:
    """Count verdicts by status."""
    counts = {"ok": 0, "abstained": 0, "parse_error": 0, "api_error": 0}
    for verdict in verdicts:
        counts[verdict.status] += 1
    return Coverage(sum(counts.values()), counts["ok"], counts["abstained"], counts["parse_error"], counts["api_error"])


def score_examples(
    examples: Sequence[Example], checklist: Checklist, verdicts: Iterable[Verdict], *, soft: bool = True
) -> list[ExampleScore]:
    """Score every example: weighted means of its verdicts, S = Σ w f / Σ w (BinEval §3.2).

    Replicates of a question are averaged first. A dimension with a missing verdict has no score, and then the
    example has none overall. The weights are those of the example's section, where the checklist has some for it.
    """
    answers: dict[str, dict[str, list[float | None]]] = {example.id: {} for example in examples}
    for verdict in verdicts:
        answers[verdict.example].setdefault(verdict.question, []).append(verdict.score(soft=soft))
    sections: list[str | None] = [None, *checklist.section_weights]
    tables = {section: _weights_by_dimension(checklist, section) for section in sections}
    names = [name for name in checklist.dimensions if any(name in table for _, table in tables.values())]
    scores = []
    for example in examples:
        weights, by_dimension = tables[checklist.section_of(example.metadata)]
        means = {question: complete_mean(values) for question, values in answers[example.id].items()}
        dimensions = {name: _weighted(means, by_dimension.get(name, {})) for name in names}
        scores.append(ExampleScore(example.id, _weighted(means, weights), dimensions))
    return scores


def to_scale(score: float | None, low: float, high: float) -> float | None:
    """Map a score from [0, 1] to [low, high]: S·(high - low) + low."""
    return None if score is None else score * (high - low) + low


def mean_score(values: Iterable[float | None]) -> float | None:
    """Mean of the scores that are there; None where there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def yes_rates(verdicts: Iterable[Verdict]) -> dict[str, float]:
    """Share of yes among the answers to each question; questions without an answer are left out."""
    counts: dict[str, list[int]] = {}
    for verdict in verdicts:
        if verdict.answer is not None:
            count = counts.setdefault(verdict.question, [0, 0])
            count[0] += verdict.answer
            count[1] += 1
    return {question: yes / n for question, (yes, n) in counts.items()}


def complete_mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values; None where one is missing or there are none: part of a whole is no score."""
    if len(values) == 1:
        return values[0]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _weights_by_dimension(
    checklist: Checklist, section: str | None
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The weights above 0 by question in a section (None: elsewhere), all together and by dimension."""
    given = checklist.weights(section)
    weights = {question: weight for question, weight in given.items() if weight > 0}
    by_dimension: dict[str, dict[str, float]] = {}
    for question in checklist.questions:
        if question.id in weights:
            by_dimension.setdefault(question.dimension, {})[question.id] = weights[question.id]
    return weights, by_dimension


def _weighted(means: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    total = weight_sum = 0.0
    for question, weight in weights.items():
        value = means.get(question)
        if value is None:
            return None
        total += value * weight
        weight_sum += weight
    return total / weight_sum if weight_sum else None
