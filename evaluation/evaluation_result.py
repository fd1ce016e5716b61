"""The result of an evaluation: verdicts, scores and agreement with people, as JSON, as a view, and by slice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..prompts.checklist import FAULT
from ..prompts.errors import InputError, did_you_mean
from ..prompts.formatting import Figure, count, coverage_text, number_text
from ..prompts.rows import column
from ..stats.correlation import correlate, correlations_dict, statistic_dict
from ..stats.resampling import Resampling, mean_with_interval
from .pass_fail import FIGURES, NAMES, form_of, judge_passes, pass_fail_lines
from .raters.agreement_view import CAPTIONS, alpha_rows, beside, cases_lines, ceiling_cells, labels_lines
from .raters.rater_by_rater import by_rater_lines, by_rater_rows
from .raters.steps import StepThresholds, steps_line
from .scoring import coverage_line, mean_score, score_on, to_scale, whole_name, whole_of, yes_rates
from .view import Shown, View, correlation_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models.budget import Budget
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict
    from ..stats.correlation import Correlations, PerGroup
    from .adaptive import AdaptiveEvaluation
    from .pass_fail import PassFail, PassLabels, PassThreshold
    from .raters.agreement import RaterAgreement
    from .scoring import Coverage, ExampleScore, Targets
    from .view import Rows


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
    """Questions asked about each example, if some were left out; ``scores`` are then the result of its ``known``."""
    faults: Sequence[str] = ()
    """Ids of the questions to which yes speaks against the output."""
    passing: PassFail | None = None
    """Pass or fail of each output; None without a threshold."""
    slices: Mapping[str, Any] | None = None
    """Figures of each value of a metadata field, if asked for."""
    own: Mapping[str, Checklist] | None = None
    """Each example's own questions, by its id; None if all examples share a checklist."""
    raters: RaterAgreement | None = None
    """Agreement of people with each other, if several rated."""
    by_rater: Mapping[str, Any] | None = None
    """The judge compared with each rater, by dimension, if asked for."""
    steps: Mapping[str, Any] | None = None
    """Steps of an ordinal label with the judge's thresholds, and their agreement with people's steps."""

    def means(self) -> dict[str, float | None]:
        """Return the mean score by dimension and over all questions (:func:`whole_name`), on the scale asked for."""
        dimensions = list(self.scores[0].dimensions) if self.scores else []
        means = {name: mean_score(each.dimensions[name] for each in self.scores) for name in dimensions}
        means[whole_name(dimensions)] = mean_score(each.overall for each in self.scores)
        return {name: to_scale(value, *self.scale) for name, value in means.items()}

    def _view(self) -> View:
        view = evaluation_view(self._data(MadeRows(len(self.scores), self.score_row)))
        return replace(view, tables={**view.tables, "verdicts": lambda: [each.to_dict() for each in self.verdicts]})

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the verdicts, for ``--json``."""
        return self._data([self.score_row(place) for place in range(len(self.scores))])

    def _data(self, scores: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": self.prompt,
            "coverage": self.coverage.to_dict()
            | ({} if self.asking is None else {"not_asked": self.coverage.not_asked}),
            "scale": list(self.scale),
            "means": self.means(),
            "yes_rates": yes_rates(self.verdicts) if self.own is None else {},
            **({} if self.own is None else {"own_questions": {name: _own(each) for name, each in self.own.items()}}),
            **({"faults": list(self.faults)} if self.faults else {}),
            "agreement": {each.dimension: _agreement_dict(each) for each in self.agreement},
            **({} if self.raters is None else {"rater_agreement": self.raters.by_dimension()}),
            **({} if self.by_rater is None else {"by_rater": dict(self.by_rater)}),
            **({} if self.steps is None else {"steps": dict(self.steps)}),
            **({} if self.passing is None else self.passing.to_dict()),
            **({} if self.slices is None else {"by": dict(self.slices)}),
            "scores": scores,
            **({} if self.asking is None else {"largest_error": self.largest_error, "asked": self._asked()}),
            **self.budget.to_dict(),
        }

    def _asked(self) -> dict[str, int]:
        return dict(Counter(column(self.verdicts, "question")))

    @property
    def largest_error(self) -> float | None:
        """Largest possible error of a score from questions left out, on the scale asked for; None if unknown."""
        error = None if self.asking is None else self.asking.largest_error
        return None if error is None else error * abs(self.scale[1] - self.scale[0])

    def score_row(self, place: int) -> dict[str, Any]:
        """Return one of the ``scores`` of :meth:`to_dict`."""
        score = self.scores[place]
        return {
            "example": score.example,
            "overall": to_scale(score.overall, *self.scale),
            "dimensions": {name: to_scale(value, *self.scale) for name, value in score.dimensions.items()},
            **({} if self.passing is None else {"pass": self.passing.passed[score.example]}),
            **({} if self.steps is None else {"step": self._step(score)}),
            **self._range(place),
        }

    def _step(self, score: ExampleScore) -> float | None:
        """Return the step that a score reaches."""
        steps = StepThresholds.model_validate({name: (self.steps or {})[name] for name in StepThresholds.model_fields})
        return steps.step(score_on(score, [steps.of]))

    def _range(self, place: int) -> dict[str, Any]:
        """Return the range of an example's score if all questions were asked; empty if no questions were left out."""
        if self.asking is None:
            return {}
        found = self.asking.scores[place]
        ends = (found.low, found.high) if self.scale[0] < self.scale[1] else (found.high, found.low)
        low, high = (to_scale(each, *self.scale) for each in ends)
        return {"low": low, "high": high, "asked": found.asked, "ended": found.ended}


@dataclass(frozen=True)
class MadeRows(Sequence[dict[str, Any]]):
    """Rows of a result. Each is made when it is asked for, because few readers ask for all."""

    length: int
    make: Callable[[int], dict[str, Any]]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: Any) -> Any:
        return self.make(range(self.length)[place])


def _own(checklist: Checklist) -> list[dict[str, Any]]:
    return [each.model_dump(include={"id", "text", "weight"}) for each in checklist.questions]


def _agreement_dict(agreement: Agreement) -> dict[str, Any]:
    row: dict[str, Any] = {"pooled": correlations_dict(agreement.pooled, all_ends=True)}
    if agreement.per_document is not None:
        row["per_document"] = statistic_dict(agreement.per_document.average) | {
            "documents": agreement.per_document.used,
            "undefined": agreement.per_document.undefined,
        }
    if agreement.per_system is not None:
        row["per_system"] = correlations_dict(agreement.per_system, all_ends=True)
    return row


def evaluation_view(data: Mapping[str, Any]) -> View:
    """View of an evaluation, from what ``--json`` prints."""
    seen, means, (low, high) = data["coverage"], data["means"], data["scale"]
    asked, found, faults = data.get("asked", {}), data["agreement"], data.get("faults", ())
    raters = data.get("rater_agreement", {})
    pooled = {name: each["pooled"] for name, each in found.items()}
    tables: dict[str, Callable[[], Rows]] = {
        "scores": lambda: [
            {"example": each["example"], whole_name(each["dimensions"]): each["overall"], **each["dimensions"]}
            | {name: each[name] for name in ("pass", "step") if name in each}
            for each in data["scores"]
        ],
        "means": lambda: [{"dimension": name, "mean": value} for name, value in means.items()],
        "yes_rates": lambda: [
            {
                "question": name,
                **({"good": FAULT if name in faults else "yes"} if faults else {}),
                "asked": asked.get(name),
                "yes": Figure(rate, form=".1%"),
            }
            for name, rate in data["yes_rates"].items()
        ],
        "agreement": lambda: [
            {"dimension": name, "n": row["n"], **correlation_figures(row), **ceiling_cells(raters, name)}
            for name, row in pooled.items()
        ],
        "rater_agreement": lambda: alpha_rows(raters),
        "by_rater": lambda: by_rater_rows(data.get("by_rater", {})),
        "per_document": lambda: [
            {"dimension": name, "documents": row["documents"], "undefined": row["undefined"], "n": row["n"]}
            | {"spearman": Figure.of(row)}
            for name, each in found.items()
            if (row := each.get("per_document"))
        ],
        "per_system": lambda: [
            {"dimension": name, "n": row["n"], **correlation_figures(row)}
            for name, each in found.items()
            if (row := each.get("per_system"))
        ],
        "slices": lambda: slice_table(data["by"]) if "by" in data else [],
    }
    captions = {
        "means": f"mean score by dimension (criterion), from {low:g} to {high:g}",
        "yes_rates": "yes rate",
        "agreement": "human agreement",
        "rater_agreement": CAPTIONS["rater_agreement"],
        "by_rater": "Spearman with each rater, of the judge and of another rater on the same outputs",
        "per_document": "human agreement inside documents; mean over those where it is defined",
        "per_system": "human agreement of systems' means",
        "slices": f"by {data['by']['field']}; scores are from 0 to 1" if "by" in data else "slices",
    }
    mean = number_text(whole_of(means))
    correlations = [f"{name} {number_text(row['spearman'])}" for name, row in pooled.items()]
    return View(
        f"{count(len(data['scores']), 'example')} by {data['model']}",
        [
            *pass_fail_lines(data),
            *(labels_lines(raters) if "accuracy" in data else ()),
            *([steps_line(data["steps"])] if "steps" in data else []),
            f"mean score {mean} on a scale from {low:g} to {high:g}",
            *([_own_line(data["own_questions"])] if "own_questions" in data else []),
            coverage_line(seen),
            *([_not_asked(seen, data.get("largest_error"))] if "not_asked" in seen else []),
            *(
                f"Spearman with people, {name}: {Figure.of(row, key='spearman')}{beside(raters, name)}"
                for name, row in pooled.items()
            ),
            *cases_lines(raters),
            *by_rater_lines(data.get("by_rater", {})),
        ],
        tables,
        tuple(captions),
        f"mean score {mean}, coverage {coverage_text(seen['share'])}"
        + (f", Spearman with people: {', '.join(correlations)}" if correlations else ""),
        captions,
        {"slices": MOST_SHOWN},
    )


def _own_line(own: Mapping[str, Sequence[Any]]) -> str:
    number = sum(map(len, own.values()))
    each = f", {number / len(own):.1f} each" if own else ""
    return f"{number} questions of their own for {len(own)} examples{each}"


def _not_asked(seen: Mapping[str, Any], error: float | None) -> str:
    share = seen["not_asked"] / (seen["asked"] + seen["not_asked"])
    text = f"Not asked, as it could not matter: {seen['not_asked']} verdicts ({share:.1%} of all)."
    if error is None:
        return text
    return f"{text} No score is further than {error:.3f} from that of all questions."


SMALL = 20
"""Examples below which a slice is marked as small: Wilson's interval of a rate of .5 is then wider than .4."""
ABSENT = "(none)"
"""The slice of the examples that lack the field."""
MOST_SHOWN = 30
"""Most slices in the terminal, the largest first; results, pages and data frames have them all."""
OWN = ("system",)
"""Fields of an example, outside its metadata, by which it may be sliced."""


def slice_values(examples: Sequence[Example], field: str) -> list[str]:
    """Return each example's value of a field, as a text. Raises InputError if no example has the field."""

    def value(example: Example) -> Any:
        return example.metadata.get(field, example.system if field in OWN else None)

    found = [value(each) for each in examples]
    if all(each is None for each in found):
        known = list(dict.fromkeys([name for each in examples for name in each.metadata]))
        has = f"there are {', '.join(known)}" if known else "the examples have no metadata"
        raise InputError(f"by: no example has a metadata field '{field}' ({has}).{did_you_mean(field, known)}")
    return [ABSENT if each is None else _as_text(each) for each in found]


def _as_text(value: Any) -> str:
    """Write numbers, booleans, lists and mappings as JSON, others as Python shows them (e.g. a period of pandas)."""
    return json.dumps(value, default=str) if isinstance(value, (bool, int, float, list, dict)) else str(value)


def slice_rows(
    field: str,
    examples: Sequence[Example],
    scores: Sequence[ExampleScore],
    targets: Targets | None,
    labels: PassLabels | None,
    threshold: PassThreshold | None,
    resampling: Resampling,
) -> dict[str, Any]:
    """Return number of examples, mean score in [0, 1], pass rate and agreement with people by slice, the largest first.

    ``scores``, ``examples`` and the groups of ``resampling`` are in the same order. Raises InputError where no example
    has the field.
    """
    parts: dict[str, list[int]] = {}
    for place, value in enumerate(slice_values(examples, field)):
        parts.setdefault(value, []).append(place)
    rows = []
    for name, places in parts.items():
        members, judged = [examples[place] for place in places], [scores[place] for place in places]
        here = np.zeros(len(examples), dtype=np.bool_)
        here[places] = True
        slice_resampling = resampling.only(here)
        row: dict[str, Any] = {"value": name, "n": len(places), "small": len(places) < SMALL}
        row["score"] = statistic_dict(
            mean_with_interval([each.overall for each in judged], slice_resampling, "no example has a score")
        )
        if threshold is not None:
            found = judge_passes(judged, members, threshold, labels, slice_resampling).to_dict()
            row |= {each: found[each] for each in ("pass_rate", "people_pass_rate", *FIGURES) if each in found}
        if targets is not None and labels is None:
            wanted = [targets.overall(each.id) for each in members]
            row["spearman"] = statistic_dict(
                correlate([targets.score(each) for each in judged], wanted, slice_resampling).spearman
            )
        rows.append(row)
    return {"field": field, "slices": sorted(rows, key=lambda row: -row["n"])}


def slice_table(found: Mapping[str, Any]) -> Rows:
    """Return the slices as rows of a table."""
    return [
        slice_row(
            found["field"],
            row["value"],
            {
                "n": row["n"],
                "score": Figure.of(row["score"]),
                "pass rate": Figure.of(row["pass_rate"], ".1%") if "pass_rate" in row else None,
                **{NAMES[name]: Figure.of(row[name], form_of(name)) for name in ("accuracy", "kappa") if name in row},
                "Spearman with people": Figure.of(row["spearman"]) if "spearman" in row else None,
                "": "small" if row["small"] else None,
            },
        )
        for row in found["slices"]
    ]


def slice_row(field: str, value: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table row of a slice: its value under the field's name (``metadata.NAME`` if a figure has it)."""
    return {f"metadata.{field}" if field in figures else field: value, **figures}
