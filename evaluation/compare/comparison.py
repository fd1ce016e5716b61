"""The result of a comparison of judges: agreement with people, with themselves, and cost, in figures and in words.

All statistics but coverage and cost use the examples that every judge scored on every dimension in every repeat. A
judge without any such example is left out. Only the first of repeated judgings is compared with people; the others
serve κ_self. The conclusion depends on the corrected differences and the intervals alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...prompts.errors import InputError
from ...prompts.formatting import Figure, count, interval, number, number_text, signed
from ...stats.correlation import METHODS, correlations_dict, statistic_dict
from ...stats.differences import difference_dict
from ...stats.resampling import record_dict
from ..view import Shown, View, agreement_headline, correlation_figures
from .costs import UNKNOWN, Costs, Spent, cost_row, is_costed

if TYPE_CHECKING:
    from ...prompts.checklist import Question
    from ...stats.correlation import Correlations, PerGroup
    from ...stats.differences import Difference, ScoreDistribution
    from ...stats.resampling import Statistic
    from ..raters.agreement import RaterAgreement
    from ..raters.comment_coverage import CommentCoverage
    from ..scoring import Coverage
    from ..view import Rows
    from .protocol import Entrant, JudgeScore


@dataclass(frozen=True)
class WithPeople:
    """How a judge's scores on one dimension agree with people's."""

    pooled: Correlations
    per_document: Mapping[str, PerGroup] | None
    """Each correlation inside each document; None where every example has a document of its own."""
    per_system: Correlations | None
    """None where examples name no system, or fewer than three."""
    observed_agreement: Statistic
    """Share of examples within the tolerance."""
    qwk: Statistic
    distribution: ScoreDistribution
    """Distance between the judge's and people's scores as distributions, bias, and the share of each at the maximum."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row of the JSON result."""
        row: dict[str, Any] = {"pooled": record_dict(self.pooled)}
        if self.per_document is not None:
            row["per_document"] = {name: statistic_dict(each.average) for name, each in self.per_document.items()} | {
                "documents": self.per_document["spearman"].used,
                "undefined": self.per_document["spearman"].undefined,
            }
        if self.per_system is not None:
            row["per_system"] = correlations_dict(self.per_system, all_ends=True)
        names = ("observed_agreement", "qwk", "distribution")
        return row | {name: record_dict(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class OnDimension:
    """One judge on one dimension."""

    people: WithPeople | None
    """None where nobody rated the examples."""
    kappa_self: Statistic
    mean: float | None
    """Mean score, in [0, 1]."""
    em_dim: Statistic | None = None
    """Share of the first judging's aspects that the second one keeps (EIG paper §4.4); None if not asked for."""


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
    comments: CommentCoverage | None = None
    """Coverage of people's comments by the judge's questions; None without such questions or comments."""

    @property
    def name(self) -> str:
        """Label in the table."""
        return self.entrant.label

    def to_dict(self, first: Costs) -> dict[str, Any]:
        """Return the row of the JSON result; ``first`` are the costs of the first judge."""
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
            "cost": self.costs.to_dict(first),
            **({} if self.comments is None else {"comment_coverage": self.comments.to_dict()}),
        }


@dataclass(frozen=True)
class AgainstFirst:
    """How much better a judge ranks the examples than the first judge does, on one dimension."""

    judge: str
    dimension: str
    difference: Difference
    """Difference of the Spearman correlations; its p-value is two-sided here."""
    p_adjusted: float | None
    """The p-value after Holm's adjustment over all judges and dimensions."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row of the JSON result."""
        row = difference_dict(self.difference) or {}
        return {"judge": self.judge, "dimension": self.dimension, **row, "p_holm": self.p_adjusted}


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Judges side by side."""

    model: str
    """Names of the models, separated by commas."""
    examples: int
    """Number of all examples."""
    common: tuple[str, ...]
    """Ids of the examples that every judge but those ``left_out`` scored; all statistics but coverage and cost use
    these."""
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
    """Scores by judge."""
    human: Mapping[str, Mapping[str, float | None]]
    """Human scores in [0, 1] by example and dimension; empty if nobody rated the examples."""
    paid: Spent
    """Calls, tokens and money of this run."""
    cached_calls: int
    raters: RaterAgreement | None = None
    """Agreement of people with each other on the examples compared, where several rated."""
    left_out: tuple[str, ...] = ()
    """Judges that scored no example on every dimension in every repeat: they have coverage and costs only."""

    @property
    def cheaper_than_first(self) -> list[str | None]:
        """For how many examples each judge is cheaper than the first, in words; None for the first itself."""
        first, *rivals = self.rows
        known = is_costed(first.coverage.to_dict())
        savings = [
            row.costs.cheaper_than(first.costs) if known and is_costed(row.coverage.to_dict()) else UNKNOWN
            for row in rivals
        ]
        return [None, *savings]

    def _view(self) -> View:
        return comparison_view(self.to_dict(ratings=True))

    def to_dict(self, *, ratings: bool = False) -> dict[str, Any]:
        """Return everything for ``--json``; with ``ratings`` also every score."""
        as_they_are = ("model", "examples", "left_out", "dimensions", "points", "tolerance", "repeat", "temperature")
        row: dict[str, Any] = {
            **{name: record_dict(getattr(self, name)) for name in as_they_are},
            "compared_on": len(self.common),
            "judges": [
                row.to_dict(self.rows[0].costs) | {"cheaper_than_first": said}
                for row, said in zip(self.rows, self.cheaper_than_first, strict=True)
            ],
            "among_people": record_dict(self.among_people),
            **({} if self.raters is None else {"rater_agreement": self.raters.by_dimension()}),
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
    """View of a comparison, from what ``compare`` writes."""
    first = data["judges"][0]["judge"]
    cells = [(row["judge"], name, each) for row in data["judges"] for name, each in row["dimensions"].items()]
    rated = [(judge, name, each) for judge, name, each in cells if "pooled" in each]
    among = [("one person and the others", name, {"pooled": each}) for name, each in data["among_people"].items()]
    raters = data.get("rater_agreement", {})
    commented = any("comment_coverage" in row for row in data["judges"])
    tables: dict[str, Callable[[], Rows]] = {
        "judges": lambda: [_judge_row(row, commented=commented) for row in data["judges"]],
        "agreement": lambda: [
            *(_correlations(judge, name, each["pooled"]) for judge, name, each in [*rated, *among]),
            *(
                {"judge": label, "dimension": name, "n": row[key]["n"], "spearman": Figure.of(row[key])}
                for name, row in raters.items()
                for key, label in (("one_rater", "one person and another"), ("ceiling", "a perfect judge"))
            ),
        ],
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
    correlations = ", ".join(f"{name} {number_text(value)}" for name, value in means)
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
    brief = f"{lines[0]}; Spearman with people: {correlations}" if correlations else None
    return View(title, lines, tables, tuple(captions), brief, captions)


def _on(data: Mapping[str, Any]) -> str:
    missing = [
        f"{row['judge']} {seen['scored']}/{seen['asked']}"
        for row in data["judges"]
        if (seen := row["coverage"])["share"] < 1
    ]
    left_out = data.get("left_out")
    but = f", but {', '.join(left_out)}: no example has all its scores" if left_out else ""
    scored = f"; scores that are there: {', '.join(missing)}" if missing else ""
    return f"{data['compared_on']} examples that every judge scored{but}{scored}"


def _judge_row(row: Mapping[str, Any], *, commented: bool) -> dict[str, Any]:
    rated = any("pooled" in figures for figures in row["dimensions"].values())
    figures = row["cost"]["per_example"]
    return {
        "judge": row["judge"],
        **{name: Figure(row["average"][name]) if rated else None for name in METHODS},
        "coverage": Figure(row["coverage"]["share"], form=".1%"),
        **(_comments(row) if commented else {}),
        "calls per example": Figure(figures["calls"], form=".3g"),
        "tokens per example": Figure(figures["tokens"], form=",.0f"),
    }


def _comments(row: Mapping[str, Any]) -> dict[str, Figure | None]:
    """Return cells on the comments that a judge sees; None for a judge that asks no yes/no questions."""
    found = row.get("comment_coverage")
    seen = found and Figure(found["value"], form=".1%")
    return {"comments seen": seen, "more than by chance": found and Figure.of(found["gain"], "+.3f")}


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
    row, unsaid = asdict(rating), ("error", "replicate", "reasons", "finds_fault")
    return {name: value for name, value in row.items() if value or name not in unsaid}


Choice = Literal["adopt", "keep", "undecided"]

LEVEL = 0.05
"""Chance of calling any judge better or worse although none is (Holm's adjustment)."""


def best_judge(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the judge with the highest mean Spearman correlation; None if no judge has one."""
    known = [row for row in data["judges"] if row["average"]["spearman"] is not None]
    return max(known, key=lambda row: row["average"]["spearman"], default=None)


def rated_on(data: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many compared examples people rated, on the dimension with the fewest and on the one with the most."""
    left_out = data.get("left_out") or ()
    rows = [each for row in data["judges"] if row["judge"] not in left_out for each in row["dimensions"].values()]
    known = [each["pooled"]["spearman"]["n"] for each in rows if "pooled" in each] or [data["compared_on"]]
    return min(known), max(known)


def conclude(data: Mapping[str, Any]) -> tuple[Choice, str, str]:
    """Return choice, headline and reason from a ``compare`` result: is another judge preferable to the first?"""
    first, best = data["judges"][0], best_judge(data)
    lead, n_rivals = first["judge"], len(data["judges"]) - 1
    left_out = data.get("left_out") or []
    have = "has" if len(left_out) == 1 else "have"
    but = f" (but {listed(left_out)}, which {have} no example with all its scores)" if left_out else ""
    basis = f"On the {data['compared_on']} of {count(data['examples'], 'example')} that every judge scored{but}"
    if best is None or not data["compared_on"]:
        return "undecided", *_nothing_compared(data, basis)
    sentence = (
        f"{basis}{_rated(data)}, {best['judge']} reaches a Spearman of {number(best['average']['spearman'])}"
        f"{_over(data)}"
    )
    if not n_rivals:
        return _alone(data, best["judge"], sentence)
    if best is not first and first["average"]["spearman"] is not None:
        sentence += f", {lead} {number(first['average']['spearman'])}"
    tested = sum(each["p_holm"] is not None for each in data["differences"])
    corrected = f"after correction for {count(tested, 'comparison')}"
    evidence = f"{sentence}. Beyond noise {corrected}"
    several = len(data["dimensions"]) > 1
    better, worse = _beyond_noise(data, 1), _beyond_noise(data, -1)
    gains = [each for each in _clear(data, 1) if each["judge"] in better]
    # A judge can beat the first and still not agree with people, so its own interval must be above zero too.
    if shown := [each for each in gains if _own(data, each["judge"], each["dimension"]).side == 1]:
        names = list(dict.fromkeys(each["judge"] for each in shown))
        where = list(dict.fromkeys(each["dimension"] for each in shown))
        scope = f" on {listed(where)}" if len(where) < len(data["dimensions"]) else ""
        verb = "agrees" if len(names) == 1 else "agree"
        return (
            "adopt",
            f"{_few(names, n_rivals)} {verb} better with people than {lead}{scope}",
            f"{evidence}: {_with_ends(shown, several=several)}.{_dearer(data, names, first)}",
        )
    if gains:
        return (
            "undecided",
            f"{_few(better, n_rivals)} {_be(better)} ahead of {lead}, but not shown to agree with people",
            f"{evidence}: {_with_ends(gains, several=several)}; but the interval of its own correlation with people "
            "has zero in it.",
        )
    if mixed := _beyond_noise(data, 1, mixed=True):
        differences = [each for sign in (1, -1) for each in _clear(data, sign) if each["judge"] in mixed]
        return (
            "undecided",
            f"{_few(mixed, n_rivals)} {_be(mixed)} better than {lead} on some dimensions and worse on others",
            f"{evidence}: {_with_ends(differences, several=several)}.",
        )
    headline = f"No judge is shown to agree better with people than {lead}"
    lower = f" {listed(worse)} {_be(worse)} worse beyond noise." if worse else ""
    if best is not first:
        reason = f"{sentence}. No difference in its favour is beyond noise {corrected}.{lower}"
        return "keep" if worse else "undecided", headline, reason
    known = [row["average"]["spearman"] for row in data["judges"][1:] if row["average"]["spearman"] is not None]
    most = "the only one that is defined" if not known else "the highest"
    if first["average"]["spearman"] in known:
        most = "and no other judge reaches more"
    return "keep", headline, f"{sentence}, {most}.{lower or ' No other judge is shown to be worse.' * bool(known)}"


def _nothing_compared(data: Mapping[str, Any], on: str) -> tuple[str, str]:
    """Return headline and reason if no judge has a correlation with people."""
    if not data["compared_on"]:
        why = "There is no example that every judge scored. What each judge lacks, and why, is below."
        return "Nothing could be compared", why
    if data["differences"]:
        return "No judge's agreement with people is defined", f"{on}; the reasons are below."
    which = f"which of the {len(data['judges'])} judges is right, only people can say"
    return "No human scores to compare the judges with", f"{on}, cost and self-agreement are below; {which}."


def _alone(data: Mapping[str, Any], judge: str, told: str) -> tuple[Choice, str, str]:
    own = {name: _own(data, judge, name) for name in data["dimensions"]}
    known = {name: each for name, each in own.items() if each.value is not None}
    agrees = any(each.side == 1 for each in known.values())
    return "keep" if agrees else "undecided", agreement_headline(known, f"The scores of {judge}"), f"{told}."


def _own(data: Mapping[str, Any], judge: str, dimension: str) -> Figure:
    """Return a judge's correlation with people on a dimension. Raises InputError if the file has no such judge."""
    row = next((each for each in data["judges"] if each["judge"] == judge), None)
    if row is None:
        raise InputError(f"differences: there is no judge '{judge!s:.60}' in this file.")
    pooled = row["dimensions"][dimension].get("pooled")
    return Figure.of(pooled["spearman"]) if pooled else Figure(None)


def _dearer(data: Mapping[str, Any], names: Sequence[str], first: Mapping[str, Any]) -> str:
    """Return a reservation about the better judges: they take at least 10 % more tokens. Empty if they do not, or if
    costs are unknown."""
    rows = [first, *(row for row in data["judges"] if row["judge"] in names)]
    cost, *others = (row["cost"]["amortised_tokens"] for row in rows)
    if not cost or not all(is_costed(row["coverage"]) for row in rows):
        return ""
    told = {row["judge"]: each / cost for row, each in zip(rows[1:], others, strict=True) if each >= 1.1 * cost}
    if len(names) == 1 and told:
        return f" But it takes {told[names[0]]:.1f} times the tokens of {first['judge']}."
    dearer = "; ".join(f"{name} {times:.1f} times" for name, times in told.items())
    return f" But some take more tokens than {first['judge']}: {dearer}." if dearer else ""


MOST_NAMED = 2
"""Most judges that a headline names."""


def _few(names: Sequence[str], of: int) -> str:
    return listed(names) if len(names) <= MOST_NAMED else f"{len(names)} of the {of} other judges"


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _rated(data: Mapping[str, Any]) -> str:
    """Say how many of the compared examples people rated, if not all."""
    fewest, most = rated_on(data)
    if fewest == data["compared_on"]:
        return ""
    return f", {fewest if fewest == most else f'{fewest} to {most}'} of them rated by people"


def _over(data: Mapping[str, Any]) -> str:
    several = len(data["dimensions"]) > 1
    return f" with people, the mean over {len(data['dimensions'])} dimensions" if several else " with people"


def _clear(data: Mapping[str, Any], sign: int) -> list[Mapping[str, Any]]:
    """Return the differences from the first judge that are beyond noise in one direction."""
    return [
        each
        for each in data["differences"]
        if each["value"] is not None and each["value"] * sign > 0
        if each["p_holm"] is not None and each["p_holm"] <= LEVEL
    ]


def _beyond_noise(data: Mapping[str, Any], sign: int, *, mixed: bool = False) -> list[str]:
    """Return the judges that differ from the first beyond noise in one direction on some dimension and in the other
    direction on none. With ``mixed``, return those that differ in both directions."""
    against = {each["judge"] for each in _clear(data, -sign)}
    return list(dict.fromkeys(each["judge"] for each in _clear(data, sign) if (each["judge"] in against) is mixed))


def _with_ends(differences: Sequence[Mapping[str, Any]], *, several: bool) -> str:
    return "; ".join(
        f"{each['judge']}{' on ' + each['dimension'] if several else ''} {signed(each['value'])} "
        f"({interval(each['low'], each['high'])})"
        for each in differences
    )


def listed(names: Sequence[str]) -> str:
    """List names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
