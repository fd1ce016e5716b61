"""What a comparison of judges comes to: agreement with people, with themselves, and cost, judge by judge.

Everything is computed on the same examples: those that every judge scored on every dimension in every repeat; a judge
that scored no example so is left out. With repeated judgings the first one is compared with people; the others serve
κ_self alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...prompts.formatting import Figure, count, number_text
from ...stats.correlation import METHODS, correlations_dict, statistic_dict
from ...stats.differences import difference_dict
from ..shown import Shown, View, correlation_figures
from .costs import UNKNOWN, Costs, Spent, cost_row, is_costed

if TYPE_CHECKING:
    from ...prompts.checklist import Question
    from ...stats.correlation import Correlations, PerGroup
    from ...stats.differences import Difference
    from ...stats.distribution import ScoreDistribution
    from ...stats.resampling import Statistic
    from ..scoring import Coverage
    from ..shown import Rows
    from .aspects import Named
    from .line_up import Entrant
    from .protocol import JudgeScore


@dataclass(frozen=True)
class JudgeOutput:
    """What one judge said and what that took."""

    entrant: Entrant
    ratings: Sequence[JudgeScore]
    """One per example, replicate and dimension."""
    upfront: Spent
    """Once, however many examples there are."""
    rating: Spent
    """For all examples and repeats."""
    named: Named | None = None
    """What a free-form judge looked at, where that was asked for."""
    written: tuple[Question, ...] = ()
    """Questions that the judge wrote itself."""

    @property
    def name(self) -> str:
        """Its label in the table."""
        return self.entrant.label


@dataclass(frozen=True)
class WithPeople:
    """How a judge's scores on one dimension agree with people's."""

    pooled: Correlations
    per_document: Mapping[str, PerGroup] | None
    """Each correlation inside each document; None where every example has a document of its own."""
    per_system: Correlations | None
    """None where examples name no system, or fewer than three."""
    observed: Statistic
    """Share of examples within the tolerance."""
    qwk: Statistic
    distribution: ScoreDistribution
    """How far the judge's scores are spread as people's are, and how many of each are at the maximum."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON result."""
        row: dict[str, Any] = {"pooled": {name: statistic_dict(getattr(self.pooled, name)) for name in METHODS}}
        if self.per_document is not None:
            row["per_document"] = {name: statistic_dict(each.average) for name, each in self.per_document.items()} | {
                "documents": self.per_document["spearman"].used,
                "undefined": self.per_document["spearman"].undefined,
            }
        if self.per_system is not None:
            row["per_system"] = correlations_dict(self.per_system, all_ends=True)
        return row | {
            "observed_agreement": statistic_dict(self.observed),
            "qwk": statistic_dict(self.qwk),
            "distribution": self.distribution.to_dict(),
        }


@dataclass(frozen=True)
class OnDimension:
    """One judge on one dimension."""

    people: WithPeople | None
    """None where nobody rated the examples."""
    kappa_self: Statistic
    mean: float | None
    """Mean score, in [0, 1]."""
    em_dim: Statistic | None = None
    """Share of the aspects looked at that the second judging keeps (EIG paper §4.4); None where not asked for."""


@dataclass(frozen=True)
class JudgeRow:
    """One judge's row of the table."""

    entrant: Entrant
    coverage: Coverage
    dimensions: Mapping[str, OnDimension]
    costs: Costs
    average: Mapping[str, float | None]
    """Mean over the dimensions of each correlation; None where one is undefined."""
    written: tuple[Question, ...] = ()
    """Questions that the judge wrote itself."""

    @property
    def name(self) -> str:
        """Its label in the table."""
        return self.entrant.label

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON result."""
        return {
            "judge": self.name,
            "kind": self.entrant.judge,
            "model": self.entrant.model_name,
            "prompt": self.entrant.prompt_name,
            "coverage": {
                "scored" if name == "answered" else name: value for name, value in self.coverage.to_dict().items()
            },
            "average": dict(self.average),
            "questions": [{"id": e.id, "dimension": e.dimension, "text": e.text} for e in self.written],
            "dimensions": {
                name: {
                    "mean": each.mean,
                    **(each.people.to_dict() if each.people else {}),
                    "kappa_self": statistic_dict(each.kappa_self),
                    **({} if each.em_dim is None else {"em_dim": statistic_dict(each.em_dim)}),
                }
                for name, each in self.dimensions.items()
            },
            "cost": self.costs.to_dict(),
        }


@dataclass(frozen=True)
class AgainstFirst:
    """How much better a judge ranks than the first one, on one dimension."""

    judge: str
    dimension: str
    difference: Difference
    """Of the Spearman correlations; its p-value is two-sided here."""
    p_adjusted: float | None
    """After Holm, over all judges and dimensions."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON result."""
        row = difference_dict(self.difference) or {}
        return {"judge": self.judge, "dimension": self.dimension, **row, "p_holm": self.p_adjusted}


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Judges side by side."""

    model: str
    """The models' names, with commas."""
    examples: int
    """All examples."""
    common: tuple[str, ...]
    """Ids of those that every judge but those ``left_out`` scored; all statistics but coverage and cost are about these."""
    dimensions: tuple[str, ...]
    points: int
    tolerance: int
    repeat: int
    temperature: float
    rows: Sequence[JudgeRow]
    among_people: Mapping[str, Mapping[str, Statistic]]
    """By dimension: each rater's correlations with the mean of the others, where several people rated."""
    differences: Sequence[AgainstFirst]
    ratings: Mapping[str, Sequence[JudgeScore]]
    """By judge."""
    human: Mapping[str, Mapping[str, float | None]]
    """Example to dimension to human score in [0, 1]; empty where nobody rated them."""
    paid: Spent
    """What this run bought."""
    cached_calls: int
    left_out: tuple[str, ...] = ()
    """Judges that scored no example on every dimension in every repeat: they have coverage and costs only."""

    @property
    def cheaper_than_first(self) -> list[str | None]:
        """For how many examples each judge is cheaper than the first, in words; None for the first itself."""
        first, *others = self.rows
        known = [is_costed(row.coverage.to_dict()) for row in self.rows]
        return [
            None,
            *(
                row.costs.cheaper_than(first.costs) if known[0] and told else UNKNOWN
                for row, told in zip(others, known[1:], strict=True)
            ),
        ]

    def _view(self) -> View:
        return comparison_view(self.to_dict(ratings=True))

    def to_dict(self, *, ratings: bool = False) -> dict[str, Any]:
        """Everything, for ``--json``; with ``ratings`` also every score."""
        row: dict[str, Any] = {
            "model": self.model,
            "examples": self.examples,
            "compared_on": len(self.common),
            "left_out": list(self.left_out),
            "dimensions": list(self.dimensions),
            "points": self.points,
            "tolerance": self.tolerance,
            "repeat": self.repeat,
            "temperature": self.temperature,
            "judges": [
                row.to_dict() | {"cheaper_than_first": said}
                for row, said in zip(self.rows, self.cheaper_than_first, strict=True)
            ],
            "among_people": {
                dimension: {name: statistic_dict(found) for name, found in each.items()}
                for dimension, each in self.among_people.items()
            },
            "differences": [each.to_dict() for each in self.differences],
            **asdict(self.paid),
            "cached_calls": self.cached_calls,
        }
        if ratings:
            row["common"] = list(self.common)
            row["human"] = {name: dict(each) for name, each in self.human.items()}
            row["ratings"] = {name: [_rating_dict(each) for each in said] for name, said in self.ratings.items()}
        return row


FIXED = "; EM_dim is 1 by construction where the questions are fixed"


def comparison_view(data: Mapping[str, Any]) -> View:
    """What there is to see of a comparison.

    Args:
        data: As :meth:`Comparison.to_dict` gives it and ``compare`` writes it.
    """
    first = data["judges"][0]["judge"]
    cells = [(row["judge"], name, each) for row in data["judges"] for name, each in row["dimensions"].items()]
    rated = [(judge, name, each) for judge, name, each in cells if "pooled" in each]
    among = [("one person and the others", name, {"pooled": each}) for name, each in data["among_people"].items()]
    tables: dict[str, Callable[[], Rows]] = {
        "judges": lambda: [_judge_row(row) for row in data["judges"]],
        "agreement": lambda: [_correlations(judge, name, each["pooled"]) for judge, name, each in [*rated, *among]],
        "per_document": lambda: [
            _correlations(judge, name, inside, documents=inside["documents"], undefined=inside["undefined"])
            for judge, name, each in rated
            if (inside := each.get("per_document"))
        ],
        "per_system": lambda: [
            {"judge": judge, "dimension": name, "n": systems["n"], **correlation_figures(systems)}
            for judge, name, each in rated
            if (systems := each.get("per_system"))
        ],
        "dimensions": lambda: [_points_row(judge, name, each, data) for judge, name, each in cells],
        "cost": lambda: [cost_row(row) for row in data["judges"]],
        "differences": lambda: [
            {"judge": each["judge"], "dimension": each["dimension"], "value": Figure.of(each, "+.3f")}
            | {"p_value": Figure(each["p_value"]), "p (Holm)": Figure(each["p_holm"])}
            for each in data["differences"]
        ],
        "questions": lambda: [
            {"judge": row["judge"], **each} for row in data["judges"] for each in row.get("questions", ())
        ],
        "ratings": lambda: [{"judge": name, **each} for name, said in data.get("ratings", {}).items() for each in said],
    }
    means = [(row["judge"], row["average"].get("spearman")) for row in data["judges"]] if rated else []
    lines = [f"compared on {_on(data)}"]
    told = ", ".join(f"{name} {number_text(value)}" for name, value in means)
    captions = {
        "judges": "the judges; correlations with people are means over the dimensions (criteria)",
        "agreement": "human agreement",
        "per_document": "human agreement inside documents; mean over those where it is defined",
        "per_system": "human agreement of systems' means",
        "dimensions": f"on {data['points']} points{FIXED if any('em_dim' in each for _, _, each in cells) else ''}",
        "cost": "cost of an example; as if each judge were alone and nothing were in the store",
        "differences": f"Spearman against {first}; on the same examples",
        "questions": "questions that a judge wrote itself",
    }
    title = f"{count(len(data['judges']), 'judge')} on {count(data['examples'], 'example')} by {data['model']}"
    brief = f"{lines[0]}; Spearman with people: {told}" if told else None
    return View(title, lines, tables, tuple(captions), brief, captions)


def _on(data: Mapping[str, Any]) -> str:
    """The examples compared on, and what is missing of the others."""
    missing = [
        f"{row['judge']} {seen['scored']}/{seen['asked']}"
        for row in data["judges"]
        if (seen := row["coverage"])["share"] < 1
    ]
    left_out = data.get("left_out")
    but = f", but {', '.join(left_out)}: no example has all its scores" if left_out else ""
    scored = f"; scores that are there: {', '.join(missing)}" if missing else ""
    return f"{data['compared_on']} examples that every judge scored{but}{scored}"


def _judge_row(row: Mapping[str, Any]) -> dict[str, Any]:
    rated = any("pooled" in each for each in row["dimensions"].values())
    each = row["cost"]["per_example"]
    return {
        "judge": row["judge"],
        **{name: Figure(row["average"][name]) if rated else None for name in METHODS},
        "coverage": Figure(row["coverage"]["share"], form=".1%"),
        "calls per example": Figure(each["calls"], form=".3g"),
        "tokens per example": Figure(each["tokens"], form=",.0f"),
    }


def _correlations(judge: str, name: str, found: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    row = {"judge": judge, "dimension": name, **more, "n": found["spearman"]["n"]}
    return row | {method: Figure.of(found[method]) for method in METHODS}


def _points_row(judge: str, name: str, each: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"judge": judge, "dimension": name, "mean": Figure(each["mean"])}
    if "pooled" in each:
        spread = each["distribution"]
        top = [Figure(spread[name]["value"], form=".1%") for name in ("at_maximum", "human_at_maximum")]
        row |= {
            "at the top (people)": f"{top[0]} ({top[1]})",
            f"agreement ±{data['tolerance']}": Figure(each["observed_agreement"]["value"], form=".1%"),
            "QWK": Figure.of(each["qwk"]),
            "distance": Figure.of(spread["distance"]),
            "bias": Figure(spread["severity"]["value"], form="+.3f"),
        }
    return row | {
        "kappa_self": Figure.of(each["kappa_self"]) if data["repeat"] > 1 else None,
        "EM_dim": Figure.of(each["em_dim"]) if "em_dim" in each else None,
    }


def _rating_dict(rating: JudgeScore) -> dict[str, Any]:
    row = asdict(rating)
    return {name: value for name, value in row.items() if value or name not in ("error", "replicate", "reasons")}
