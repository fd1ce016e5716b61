"""What a diagnosis comes to: questions, dimensions, and what there is to see of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..prompts.checklist import FAULT
from ..prompts.formatting import Figure, count
from ..stats.correlation import statistic_dict
from ..stats.phi import Pair, PhiMatrix, Relatedness
from ..stats.resampling import Statistic
from .scoring import Coverage, coverage_line
from .shown import Shown, View

if TYPE_CHECKING:
    from ..models.budget import Budget
    from ..prompts.checklist import GoodAnswer
    from ..prompts.verdicts import Verdict
    from .shown import Rows


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
NOTES: tuple[FindingKind, ...] = ("independent", "few_examples")
"""Kinds of findings that are good to know and call for no change."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth acting on, or (``NOTES``) good to know, in words."""

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
    """What it is compared with: its own id where people answered it, else its dimension, else ``overall``; None where
    people rated none of these."""
    soft: Statistic
    """Spearman's correlation with the human score of P(yes), or of P(no) where no is the good answer."""
    hard: Statistic
    """The same of the answers."""
    p_against: float | None
    """One-sided p-value of "it does not run against people", Holm-adjusted for the number of questions."""
    flips: float | None
    """Share of pairs of answers to the same thing, asked again, that differ; in [0, 1], None without replicates."""
    retested: int
    """Examples with two or more answers to the question."""
    good: GoodAnswer = "yes"
    """Which answer speaks for the output."""

    @property
    def varies(self) -> bool:
        """Whether both answers occur."""
        return self.yes_rate is not None and 0 < self.yes_rate < 1

    @property
    def runs_against_people(self) -> bool:
        """Whether the good answer goes with lower human scores, beyond chance."""
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
            **({} if self.good == "yes" else {"good": self.good}),
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
            "least_related": None if self.least is None else asdict(self.least),
            "most_related": None if self.most is None else asdict(self.most),
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
    """Pairs with the largest phi, whatever their dimensions; between a merit and a fault the smallest."""
    findings: tuple[Finding, ...] = ()
    verdicts: Sequence[Verdict] = field(default=(), repr=False)
    budget: Budget | None = None
    """What was spent; None where the verdicts came from a file."""

    def _view(self) -> View:
        return diagnosis_view(self.to_dict())

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
            "findings": [asdict(each) for each in self.findings],
            "questions": [question.to_dict() for question in self.questions],
            "dimensions": {group.name: group.to_dict() for group in self.dimensions},
            "all_questions": self.together.to_dict(),
            "least_related": [asdict(pair) for pair in self.least_related],
            "most_alike": [asdict(pair) for pair in self.most_alike],
            "phi": _phi_dict(self.phi),
        }
        if self.budget is not None:
            row |= self.budget.to_dict()
        return row


def _phi_dict(phi: PhiMatrix) -> Mapping[str, Any]:
    """The whole matrix; null where phi is undefined, with the reason for questions that have none at all."""
    matrix = [[None if value != value else value for value in row] for row in phi.values.tolist()]
    return {
        "questions": list(phi.questions),
        "matrix": matrix,
        "undefined": {question: reason for question in phi.questions if (reason := phi.reason(question, question))},
    }


NOTHING_FOUND = "Nothing here calls for a change."


def sorted_findings(found: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """The texts of what is worth acting on, and of what is only good to know.

    Args:
        found: As in ``--json``.
    """
    notes = [each["text"] for each in found if each["kind"] in NOTES]
    return [each["text"] for each in found if each["kind"] not in NOTES], notes


def diagnosis_view(data: Mapping[str, Any]) -> View:
    """What there is to see of a diagnosis.

    Args:
        data: As :meth:`Diagnosis.to_dict` gives it and ``--json`` prints it.
    """
    groups = data["dimensions"] if len(data["dimensions"]) < 2 else data["dimensions"] | {"all": data["all_questions"]}
    phi, faults = data["phi"], any(each.get("good") == "no" for each in data["questions"])
    tables: dict[str, Callable[[], Rows]] = {
        "questions": lambda: [_question_row(each, marked=faults) for each in data["questions"]],
        "dimensions": lambda: [_group_row(name, each) for name, each in groups.items()],
        "least_related": lambda: [_pair_row(pair) for pair in data["least_related"]],
        "most_alike": lambda: [_pair_row(pair) for pair in data["most_alike"]],
        "phi": lambda: [
            {"question": name} | dict(zip(phi["questions"], row, strict=True))
            for name, row in zip(phi["questions"], phi["matrix"], strict=True)
        ],
    }
    said, notes = sorted_findings(data["findings"])
    lines = ["Worth acting on:", *(f"- {each}" for each in said)] if said else [NOTHING_FOUND]
    return View(
        f"{count(len(data['questions']), 'question')} on {count(data['examples'], 'example')} by {data['model']}"
        + (f", each asked {data['replicates']} times" if data["replicates"] > 1 else ""),
        [coverage_line(data["coverage"]), *lines, *notes],
        tables,
        ("questions", "dimensions", "least_related", "most_alike"),
        said[0] if said else NOTHING_FOUND,
        {
            "questions": "question by question; yes rate, and how "
            f"{'the probability of the good answer' if faults else 'the probability of yes'} and the answers agree with people (Spearman)",
            "dimensions": "dimensions (criteria)",
            "least_related": "least related, within a dimension (criterion)",
        },
    )


def _question_row(each: Mapping[str, Any], *, marked: bool) -> dict[str, Any]:
    rated, seen = each["human_dimension"] is not None, each["coverage"]
    return {
        "question": each["id"],
        **({"good": FAULT if each.get("good") == "no" else "yes"} if marked else {}),
        "dimension": each["dimension"],
        "yes": Figure(each["yes_rate"], form=".1%"),
        "spread": each["p_yes_spread"],
        "spearman": Figure.of(each["human_p_yes"]) if rated else None,
        "answer": Figure(each["human_answer"]["value"]) if rated else None,
        "flips": None if each["flips"] is None else Figure(each["flips"], form=".1%"),
        "coverage": Figure(seen["share"] if seen["asked"] else None, form=".1%"),
    }


def _group_row(name: str, each: Mapping[str, Any]) -> dict[str, Any]:
    low, high = Figure(each["yes_rate_low"], form=".0%"), Figure(each["yes_rate_high"], form=".0%")
    return {
        "dimension": name,
        "varying": f"{each['varying']} of {len(each['questions'])}",
        "yes": low if low.value is None else f"{low} to {high}",
        "mean phi": Figure(each["mean_phi"], form=".2f"),
        "|phi| < 0.3": Figure(each["weak_pair_share"], form=".0%"),
        "pairs": each["pairs"],
        "independent": Figure(each["effective_questions"], form=".1f"),
    }


def _pair_row(pair: Mapping[str, Any]) -> dict[str, Any]:
    names = {"questions": f"{pair['first']}, {pair['second']}"}
    return names | {"phi": Figure(pair["phi"], form=".2f"), "n": pair["n"]}
