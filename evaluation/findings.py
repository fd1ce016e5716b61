"""A diagnosis of the questions of a checklist from one judge's verdicts: figures, and findings in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..prompts.checklist import FAULT
from ..prompts.formatting import MOST_LISTED, Figure, count, names_text
from ..stats.phi import Pair, PhiMatrix, Relatedness
from ..stats.resampling import Statistic, fields_dict, record_dict
from .scoring import Coverage, coverage_line
from .view import Shown, View

if TYPE_CHECKING:
    from ..models.budget import Budget
    from ..prompts.checklist import GoodAnswer
    from ..prompts.verdicts import Verdict
    from .view import Rows

AGAINST_LEVEL = 0.05
"""Chance that any question is said to run against people although none does (Holm's adjustment)."""


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
"""Kinds of findings that are only good to know: they call for no change."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding in words: something worth acting on, or only good to know (``NOTES``)."""

    kind: FindingKind
    questions: tuple[str, ...]
    """Ids of the questions that the finding is about."""
    text: str


@dataclass(frozen=True, slots=True)
class QuestionDiagnosis:
    """Figures of one question."""

    id: str
    dimension: str
    coverage: Coverage
    unasked: int
    """Number of examples without any verdict on the question."""
    yes_rate: float | None
    """Share of yes among the answers, in [0, 1]; None where there are none."""
    p_yes_spread: float | None
    """Largest less smallest P(yes) over the examples; None where fewer than two have one."""
    human_dimension: str | None
    """Name of the human scores that the question is compared with: its own id, its dimension, or ``overall``; None if
    unrated."""
    human_p_yes: Statistic
    """Spearman's correlation with the human score of P(yes), or of P(no) where no is the good answer."""
    human_answer: Statistic
    """Spearman's correlation of the answers with the human score."""
    p_against_people: float | None
    """One-sided p-value of "it does not run against people", Holm-adjusted for the number of questions."""
    flips: float | None
    """Share of pairs of replicates whose answers differ, in [0, 1]; None without replicates."""
    retested_examples: int
    """Number of examples with two or more answers to the question."""
    good: GoodAnswer = "yes"
    """Which answer speaks for the output."""

    @property
    def varies(self) -> bool:
        """Whether both answers occur."""
        return self.yes_rate is not None and 0 < self.yes_rate < 1

    @property
    def runs_against_people(self) -> bool:
        """Whether the good answer goes with lower human scores, beyond chance."""
        return self.p_against_people is not None and self.p_against_people <= AGAINST_LEVEL

    def to_dict(self) -> dict[str, Any]:
        """Return the row for ``--json``."""
        row = fields_dict(self) | {"varies": self.varies, "runs_against_people": self.runs_against_people}
        row["coverage"] |= {"unasked_examples": row.pop("unasked")}
        if self.good == "yes":
            del row["good"]
        return row


@dataclass(frozen=True, slots=True)
class GroupDiagnosis:
    """Figures of the questions of one dimension, or of all questions."""

    name: str
    questions: tuple[str, ...]
    varying: int
    """Number of questions to which both answers occur."""
    yes_rate_low: float | None
    yes_rate_high: float | None
    related: Relatedness
    least_related: Pair | None
    """The pair with the smallest |phi|; None where no pair has a phi."""
    most_related: Pair | None
    """The pair with the largest |phi|."""

    @property
    def yes_rate_spread(self) -> float | None:
        """Largest less smallest yes-rate; None where no question was answered."""
        low, high = self.yes_rate_low, self.yes_rate_high
        return None if low is None or high is None else high - low

    def to_dict(self) -> dict[str, Any]:
        """Return the row for ``--json``."""
        row = fields_dict(self) | {"yes_rate_spread": self.yes_rate_spread}
        del row["name"], row["related"]
        related = self.related
        row |= {"pairs": related.pairs, "mean_phi": related.mean, "weak_pair_share": related.weak_share}
        row["effective_questions"] = related.effective
        return row | {"reason": related.reason} if related.reason else row


@dataclass(frozen=True, repr=False)
class Diagnosis(Shown):
    """Figures of the questions of a checklist, from one judge's verdicts."""

    model: str
    prompt: str
    """Content hash of the evaluator prompt."""
    examples: int
    replicates: int
    questions: tuple[QuestionDiagnosis, ...]
    dimensions: tuple[GroupDiagnosis, ...]
    together: GroupDiagnosis
    """Figures of all questions of the checklist."""
    phi: PhiMatrix = field(repr=False)
    least_related: tuple[Pair, ...]
    """Pairs with the smallest |phi|, within a dimension."""
    most_alike: tuple[Pair, ...]
    """Pairs with the largest phi, whatever their dimensions; between a merit and a fault the smallest."""
    findings: tuple[Finding, ...] = ()
    verdicts: Sequence[Verdict] = field(default=(), repr=False)
    budget: Budget | None = None
    """Budget spent; None where the verdicts came from a file."""

    def _view(self) -> View:
        return diagnosis_view(self.to_dict())

    @property
    def coverage(self) -> Coverage:
        """Coverage over all questions."""
        return sum((question.coverage for question in self.questions), Coverage(0, 0, 0, 0, 0))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the verdicts, for ``--json``."""
        row: dict[str, Any] = {
            "model": self.model,
            "prompt": self.prompt,
            "examples": self.examples,
            "replicates": self.replicates,
            "coverage": self.coverage.to_dict(),
            "findings": record_dict(self.findings),
            "questions": record_dict(self.questions),
            "dimensions": {group.name: group.to_dict() for group in self.dimensions},
            "all_questions": self.together.to_dict(),
            "least_related": record_dict(self.least_related),
            "most_alike": record_dict(self.most_alike),
            "phi": _phi_dict(self.phi),
        }
        if self.budget is not None:
            row |= self.budget.to_dict()
        return row


def _phi_dict(phi: PhiMatrix) -> Mapping[str, Any]:
    """Return the whole matrix with null for an undefined phi, and the reason for questions that have no phi at all."""
    matrix = [[None if value != value else value for value in row] for row in phi.values.tolist()]
    return {
        "questions": list(phi.questions),
        "matrix": matrix,
        "undefined": {question: reason for question in phi.questions if (reason := phi.reason(question, question))},
    }


NOTHING_FOUND = "Nothing here calls for a change."


def sorted_findings(found: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Split findings, as in ``--json``, into texts worth acting on and texts that are only good to know."""
    notes = [each["text"] for each in found if each["kind"] in NOTES]
    return [each["text"] for each in found if each["kind"] not in NOTES], notes


def diagnosis_view(data: Mapping[str, Any]) -> View:
    """View of a diagnosis, from what ``--json`` prints."""
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
    problems, notes = sorted_findings(data["findings"])
    lines = ["Worth acting on:", *(f"- {each}" for each in problems)] if problems else [NOTHING_FOUND]
    return View(
        f"{count(len(data['questions']), 'question')} on {count(data['examples'], 'example')} by {data['model']}"
        + (f", each asked {data['replicates']} times" if data["replicates"] > 1 else ""),
        [coverage_line(data["coverage"]), *lines, *notes],
        tables,
        ("questions", "dimensions", "least_related", "most_alike"),
        problems[0] if problems else NOTHING_FOUND,
        {
            "questions": "question by question; yes rate, and how "
            f"{'the probability of the good answer' if faults else 'the probability of yes'} and the answers agree "
            "with people (Spearman)",
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


STILL = 0.01
"""Spread of P(yes) over the examples below which a question moves no score noticeably."""
ALIKE = 0.8
"""Likeness from which two questions are answered alike; BinEval §5.6 calls .79 inherently related."""
OPPOSED = -0.5
"""Likeness up to which two questions contradict each other: good answers to one go with bad answers to the other."""
UNSTABLE = 0.1
"""Share of changed answers from which a question is called unstable."""
LOW_COVERAGE = 0.95
"""Coverage below which a question is reported."""
FEW = 30
"""Number of examples below which a note says that there are few."""


def findings(found: Diagnosis) -> tuple[Finding, ...]:
    """Return what is worth acting on, the most serious first, then what is good to know; empty if there is nothing."""
    return (
        *_against_people(found),
        *_constant(found),
        *_pairs(found),
        *_unstable(found),
        *_missing(found),
        *_whole(found),
    )


def _against_people(found: Diagnosis) -> Iterator[Finding]:
    questions = [question for question in found.questions if question.runs_against_people]
    text = (
        f"{_verb(questions, 'runs', 'run')} against people (a yes goes with a lower human score, beyond chance): "
        f"rephrase so that yes is good, or drop: {_listed(questions)}."
    )
    if any(question.good == "no" for question in questions):
        text = (
            f"{_verb(questions, 'runs', 'run')} against people (the answer called good goes with a lower human score, "
            f"beyond chance): change which answer is good, rephrase or drop: {_listed(questions)}."
        )
    yield from _finding("against_people", questions, found, text)


def _constant(found: Diagnosis) -> Iterator[Finding]:
    constant_questions = [
        question for question in found.questions if question.yes_rate is not None and not question.varies
    ]
    idle_questions = [
        question for question in constant_questions if question.p_yes_spread is None or question.p_yes_spread < STILL
    ]
    text = (
        f"never {_verb(idle_questions, 'varies', 'vary')} over {found.examples} examples: "
        f"{_verb(idle_questions, 'it costs', 'they cost')} calls and {_verb(idle_questions, 'tells', 'tell')} "
        f"nothing: {_listed(idle_questions)}."
    )
    yield from _finding("never_varies", idle_questions, found, text)
    soft_questions = [question for question in constant_questions if question not in idle_questions]
    text = (
        f"{_verb(soft_questions, 'is', 'are')} answered alike every time, but the probability of yes differs from "
        f"example to example: {_verb(soft_questions, 'it counts', 'they count')} in soft scores only: "
        f"{_listed(soft_questions)}."
    )
    yield from _finding("varies_in_p_yes_only", soft_questions, found, text)


def _pairs(found: Diagnosis) -> Iterator[Finding]:
    faults = {question.id for question in found.questions if question.good == "no"}
    ranked = by_likeness(found.phi.pairs(), faults)
    alike_pairs = [pair for pair in ranked if likeness(pair, faults) >= ALIKE]
    if alike_pairs:
        is_single = len(alike_pairs) == 1
        yield Finding(
            "alike",
            _members(alike_pairs),
            f"{len(alike_pairs)} pair{'' if is_single else 's'} of questions {'is' if is_single else 'are'} answered "
            f"nearly alike{_mirrored(alike_pairs, faults)}, so one of {'the two' if is_single else 'each two'} "
            f"would do: {_named(alike_pairs)}.",
        )
    opposed_pairs = [pair for pair in reversed(ranked) if likeness(pair, faults) <= OPPOSED]
    if opposed_pairs:
        is_single = len(opposed_pairs) == 1
        explanation = "a yes to one goes with a no to the other): see whether yes is good in both"
        if faults.intersection(_members(opposed_pairs)):
            explanation = "what is good in one goes with what is bad in the other): see which answers are good"
        yield Finding(
            "opposed",
            _members(opposed_pairs),
            f"{len(opposed_pairs)} pair{'' if is_single else 's'} of questions contradict{'s' if is_single else ''} "
            f"each other ({explanation}: {_named(opposed_pairs)}.",
        )


def _mirrored(pairs: Sequence[Pair], faults: Collection[str]) -> str:
    mixed = any((pair.first in faults) != (pair.second in faults) for pair in pairs)
    return " (a merit's yes is as good as a fault's no)" if mixed else ""


def _unstable(found: Diagnosis) -> Iterator[Finding]:
    questions = [question for question in found.questions if question.flips is not None and question.flips >= UNSTABLE]
    shares = _listed(questions, lambda question: f"{question.flips:.0%}")
    text = (
        f"{_verb(questions, 'is', 'are')} answered differently when asked again in {UNSTABLE:.0%} or more of the "
        f"repeats: {shares}."
    )
    yield from _finding("unstable", questions, found, text)


def _missing(found: Diagnosis) -> Iterator[Finding]:
    low = [each for each in found.questions if each.coverage.asked and each.coverage.share < LOW_COVERAGE]
    shares = _listed(low, lambda question: f"{question.coverage.share:.0%}")
    text = f"{_verb(low, 'was', 'were')} often not answered; an example without an answer has no score: {shares}."
    yield from _finding("coverage", low, found, text)
    unasked = [question for question in found.questions if question.unasked]
    shares = _listed(unasked, lambda question: f"{question.unasked}")
    text = f"{_verb(unasked, 'has', 'have')} no verdict at all on some of the {found.examples} examples: {shares}."
    yield from _finding("unasked", unasked, found, text)


def _whole(found: Diagnosis) -> Iterator[Finding]:
    effective, varying = found.together.related.effective, found.together.varying
    if effective is not None and varying > 1:
        yield Finding(
            "independent",
            found.together.questions,
            f"The {varying} questions that vary carry about as much as {effective:.1f} independent ones would.",
        )
    if found.examples < FEW:
        yield Finding(
            "few_examples",
            (),
            f"There are only {found.examples} examples: with more of them some of this may look different.",
        )


def _finding(kind: FindingKind, those: Sequence[QuestionDiagnosis], found: Diagnosis, text: str) -> Iterator[Finding]:
    """Yield a finding about some questions, with their number in front; nothing if there are none."""
    if those:
        ids = tuple(question.id for question in those)
        yield Finding(kind, ids, f"{len(those)} of {len(found.questions)} questions {text}")


def _verb(those: Sequence[QuestionDiagnosis], one: str, several: str) -> str:
    return one if len(those) == 1 else several


def _listed(those: Sequence[QuestionDiagnosis], figure: Callable[[QuestionDiagnosis], str] | None = None) -> str:
    """List the first questions, each with its figure if there is one, and count the others."""
    return names_text([each.id if figure is None else f"{each.id} ({figure(each)})" for each in those], MOST_LISTED)


def _named(pairs: Sequence[Pair]) -> str:
    return names_text([f"{pair.first} and {pair.second} (phi {pair.phi:.2f})" for pair in pairs], MOST_LISTED)


def _members(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))


def by_likeness(pairs: Iterable[Pair], faults: Collection[str]) -> list[Pair]:
    """Sort pairs by :func:`likeness`, the most alike first."""
    return sorted(pairs, key=lambda pair: -likeness(pair, faults))


def likeness(pair: Pair, faults: Collection[str]) -> float:
    """Return phi of the good answers, in [-1, 1]: the sign is turned between a merit and a fault."""
    return pair.phi if (pair.first in faults) == (pair.second in faults) else -pair.phi
