"""The records of a diagnosis: questions, dimensions, and what is worth acting on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..stats.correlation import statistic_dict
from ..stats.phi import Pair, PhiMatrix, Relatedness
from ..stats.resampling import Statistic
from .scoring import Coverage
from .shown import Shown, View

if TYPE_CHECKING:
    from ..models.budget import Budget
    from ..prompts.verdicts import Verdict

AGAINST_LEVEL = 0.05
"""Chance of calling any question one that runs against people although none does (Holm's adjustment)."""

FindingKind = Literal[
    "against_people",
    "never_varies",
    "varies_in_p_yes_only",
    "alike",
    "opposed",
    "unstable",
    "coverage",
    "unasked",
    "independent",
    "few_examples",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth acting on, in words."""

    kind: FindingKind
    questions: tuple[str, ...]
    """Those that it is about."""
    text: str


@dataclass(frozen=True, slots=True)
class QuestionDiagnosis:
    """One question."""

    id: str
    dimension: str
    coverage: Coverage
    unasked: int
    """Examples without any verdict on the question."""
    yes_rate: float | None
    """Share of yes among the answers, in [0, 1]; None where there are none."""
    p_yes_spread: float | None
    """Largest less smallest P(yes) over the examples; None where fewer than two have one."""
    human: str | None
    """The rated dimension it is compared with: its own, else ``overall``; None where people rated neither."""
    soft: Statistic
    """Spearman's correlation of P(yes) with the human score."""
    hard: Statistic
    """The same of the yes/no answers."""
    p_against: float | None
    """One-sided p-value of "P(yes) does not run against people", Holm-adjusted for the number of questions."""
    flips: float | None
    """Share of pairs of answers to the same thing, asked again, that differ; in [0, 1], None without replicates."""
    retested: int
    """Examples with two or more answers to the question."""

    @property
    def varies(self) -> bool:
        """Whether both answers occur."""
        return self.yes_rate is not None and 0 < self.yes_rate < 1

    @property
    def runs_against_people(self) -> bool:
        """Whether yes goes with lower human scores, beyond chance."""
        return self.p_against is not None and self.p_against <= AGAINST_LEVEL

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "id": self.id,
            "dimension": self.dimension,
            "coverage": self.coverage.to_dict() | {"unasked_examples": self.unasked},
            "yes_rate": self.yes_rate,
            "varies": self.varies,
            "p_yes_spread": self.p_yes_spread,
            "human_dimension": self.human,
            "human_p_yes": statistic_dict(self.soft),
            "human_answer": statistic_dict(self.hard),
            "p_against_people": self.p_against,
            "runs_against_people": self.runs_against_people,
            "flips": self.flips,
            "retested_examples": self.retested,
        }


@dataclass(frozen=True, slots=True)
class GroupDiagnosis:
    """The questions of one dimension, or all of them."""

    name: str
    questions: tuple[str, ...]
    varying: int
    """Questions to which both answers occur."""
    yes_low: float | None
    yes_high: float | None
    related: Relatedness
    least: Pair | None
    """The pair with the smallest |phi|; None where no pair has a phi."""
    most: Pair | None
    """The pair with the largest |phi|."""

    @property
    def yes_spread(self) -> float | None:
        """Largest less smallest yes-rate; None where no question was answered."""
        return None if self.yes_low is None or self.yes_high is None else self.yes_high - self.yes_low

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        related = self.related
        row: dict[str, Any] = {
            "questions": list(self.questions),
            "varying": self.varying,
            "yes_rate_low": self.yes_low,
            "yes_rate_high": self.yes_high,
            "yes_rate_spread": self.yes_spread,
            "pairs": related.pairs,
            "mean_phi": related.mean,
            "weak_pair_share": related.weak_share,
            "effective_questions": related.effective,
            "least_related": None if self.least is None else pair_dict(self.least),
            "most_related": None if self.most is None else pair_dict(self.most),
        }
        return row | {"reason": related.reason} if related.reason else row


@dataclass(frozen=True, repr=False)
class Diagnosis(Shown):
    """What one judge's verdicts say about the questions of a checklist."""

    model: str
    prompt: str
    """Content hash of the evaluator prompt."""
    examples: int
    replicates: int
    questions: tuple[QuestionDiagnosis, ...]
    dimensions: tuple[GroupDiagnosis, ...]
    together: GroupDiagnosis
    """All questions of the checklist."""
    phi: PhiMatrix = field(repr=False)
    least_related: tuple[Pair, ...]
    """Pairs with the smallest |phi|, within a dimension."""
    most_alike: tuple[Pair, ...]
    """Pairs with the largest phi, whatever their dimensions."""
    findings: tuple[Finding, ...] = ()
    verdicts: Sequence[Verdict] = field(default=(), repr=False)
    budget: Budget | None = None
    """What was spent; None where the verdicts came from a file."""

    def _view(self) -> View:
        questions = [
            {"question": each.id, "dimension": each.dimension, "yes": each.yes_rate, "spread": each.p_yes_spread}
            | {"spearman": each.soft.value, "low": each.soft.low, "high": each.soft.high, "flips": each.flips}
            | {"coverage": each.coverage.share}
            for each in self.questions
        ]
        names = self.phi.questions
        phi = [
            {"question": name}
            | {other: None if value != value else value for other, value in zip(names, row, strict=True)}
            for name, row in zip(names, self.phi.values.tolist(), strict=True)
        ]
        title = f"{len(self.questions)} questions on {self.examples} examples by {self.model}"
        return View(
            title,
            [each.text for each in self.findings],
            {"questions": lambda: questions, "phi": lambda: phi},
            ("questions",),
        )

    @property
    def coverage(self) -> Coverage:
        """Over all questions."""
        return sum((question.coverage for question in self.questions), Coverage(0, 0, 0, 0, 0))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the verdicts, for ``--json``."""
        row: dict[str, Any] = {
            "model": self.model,
            "prompt": self.prompt,
            "examples": self.examples,
            "replicates": self.replicates,
            "coverage": self.coverage.to_dict(),
            "findings": [
                {"kind": each.kind, "questions": list(each.questions), "text": each.text} for each in self.findings
            ],
            "questions": [question.to_dict() for question in self.questions],
            "dimensions": {group.name: group.to_dict() for group in self.dimensions},
            "all_questions": self.together.to_dict(),
            "least_related": [pair_dict(pair) for pair in self.least_related],
            "most_alike": [pair_dict(pair) for pair in self.most_alike],
            "phi": _phi_dict(self.phi),
        }
        if self.budget is not None:
            row |= self.budget.to_dict()
        return row


def pair_dict(pair: Pair) -> dict[str, Any]:
    """Two questions with their phi."""
    return {"first": pair.first, "second": pair.second, "phi": pair.phi, "n": pair.n}


def _phi_dict(phi: PhiMatrix) -> Mapping[str, Any]:
    """The whole matrix; null where phi is undefined, with the reason for questions that have none at all."""
    matrix = [[None if value != value else value for value in row] for row in phi.values.tolist()]
    return {
        "questions": list(phi.questions),
        "matrix": matrix,
        "undefined": {question: reason for question in phi.questions if (reason := phi.reason(question, question))},
    }
