"""What ``evaluate`` comes to: verdicts, scores, and how far people agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..stats.correlation import correlations_dict, statistic_dict
from .scoring import mean_score, to_scale, yes_rates
from .shown import Shown, View, number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..models.budget import Budget
    from ..prompts.verdicts import Verdict
    from ..stats.correlation import Correlations, PerGroup
    from .scoring import Coverage, ExampleScore
    from .selection.adaptive import AdaptiveEvaluation


@dataclass(frozen=True)
class Agreement:
    """How the scores of one dimension agree with people's."""

    dimension: str
    pooled: Correlations
    per_document: PerGroup | None
    """None where every example has a document of its own."""
    per_system: Correlations | None
    """None where examples name no system, or fewer than three."""


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Verdicts with the scores and correlations derived from them."""

    model: str
    prompt: str
    verdicts: Sequence[Verdict] = field(repr=False)
    scores: Sequence[ExampleScore] = field(repr=False)
    agreement: Sequence[Agreement]
    coverage: Coverage
    budget: Budget
    scale: tuple[float, float]
    asking: AdaptiveEvaluation | None = None
    """What was asked about each example, where questions were left out; ``scores`` are then what its ``known`` gives."""

    def means(self) -> dict[str, float | None]:
        """Mean score by dimension, and ``overall``, on the scale asked for."""
        dimensions = list(self.scores[0].dimensions) if self.scores else []
        means = {name: mean_score(each.dimensions[name] for each in self.scores) for name in dimensions}
        means["overall"] = mean_score(each.overall for each in self.scores)
        return {name: to_scale(value, *self.scale) for name, value in means.items()}

    def _view(self) -> View:
        seen, means = self.coverage, self.means()
        agreement: list[dict[str, Any]] = [
            {"dimension": each.dimension, "n": each.pooled.spearman.n}
            | {name: getattr(each.pooled, name).value for name in ("spearman", "kendall", "pearson")}
            | {"low": each.pooled.spearman.low, "high": each.pooled.spearman.high}
            for each in self.agreement
        ]
        tables: dict[str, Callable[[], Sequence[Mapping[str, Any]]]] = {
            "scores": lambda: [
                {"example": each.example, "overall": to_scale(each.overall, *self.scale)}
                | {name: to_scale(value, *self.scale) for name, value in each.dimensions.items()}
                for each in self.scores
            ],
            "means": lambda: [{"dimension": name, "mean": value} for name, value in means.items()],
            "yes_rates": lambda: [{"question": name, "yes": rate} for name, rate in yes_rates(self.verdicts).items()],
            "agreement": lambda: agreement,
            "verdicts": lambda: [each.to_dict() for each in self.verdicts],
        }
        low, high = self.scale
        lines = [f"mean score {number_text(means['overall'])} on a scale from {low:g} to {high:g}"]
        lines.append(f"coverage {seen.answered} of {seen.asked} verdicts = {seen.share:.1%}")
        if self.asking is not None:
            lines.append(f"{seen.not_asked} verdicts were not asked for, as they could not matter")
        lines += [
            f"Spearman with people, {row['dimension']}: {number_text(row['spearman'], row['low'], row['high'])}"
            for row in agreement
        ]
        brief = f"mean score {number_text(means['overall'])}, coverage {seen.share:.1%}"
        if agreement:
            told = (f"{row['dimension']} {number_text(row['spearman'])}" for row in agreement)
            brief += f", Spearman with people: {', '.join(told)}"
        title = f"{len(self.scores)} examples by {self.model}"
        return View(title, lines, tables, ("means", "yes_rates", "agreement"), brief)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the verdicts, for ``--json``."""
        return {
            "model": self.model,
            "prompt": self.prompt,
            "coverage": self.coverage.to_dict()
            | ({} if self.asking is None else {"not_asked": self.coverage.not_asked}),
            "scale": list(self.scale),
            "means": self.means(),
            "yes_rates": yes_rates(self.verdicts),
            "agreement": {each.dimension: _agreement_dict(each) for each in self.agreement},
            "scores": [
                {
                    "example": each.example,
                    "overall": to_scale(each.overall, *self.scale),
                    "dimensions": {name: to_scale(v, *self.scale) for name, v in each.dimensions.items()},
                    **self._range(place),
                }
                for place, each in enumerate(self.scores)
            ],
            **({} if self.asking is None else {"largest_error": self.largest_error}),
            **self.budget.to_dict(),
        }

    @property
    def largest_error(self) -> float | None:
        """How far a score can be from that of all questions at most, on the scale asked for; None where unknown."""
        error = None if self.asking is None else self.asking.largest_error
        return None if error is None else error * (self.scale[1] - self.scale[0])

    def _range(self, place: int) -> dict[str, Any]:
        """Between what an example's score would lie if all questions were asked, where some were not."""
        if self.asking is None:
            return {}
        found = self.asking.scores[place]
        low, high = (to_scale(each, *self.scale) for each in (found.low, found.high))
        return {"low": low, "high": high, "asked": found.asked, "ended": found.ended}


def _agreement_dict(agreement: Agreement) -> dict[str, Any]:
    row: dict[str, Any] = {"pooled": correlations_dict(agreement.pooled)}
    if agreement.per_document is not None:
        row["per_document"] = statistic_dict(agreement.per_document.average) | {
            "documents": agreement.per_document.used,
            "undefined": agreement.per_document.undefined,
        }
    if agreement.per_system is not None:
        row["per_system"] = correlations_dict(agreement.per_system)
    return row
