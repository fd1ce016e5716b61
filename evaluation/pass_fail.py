"""People's labels that say pass or fail, and the agreement of a judge's scores with them at a threshold.

The threshold is fitted on the development examples of a run (:func:`~askance.stats.pass_fail.fit_threshold`) and kept
with the judge. On outputs that nobody labelled, the judge's pass rate is corrected for its known errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..prompts.errors import AskanceError, CoverageError
from ..prompts.examples import documents
from ..prompts.formatting import Figure
from ..prompts.human_feedback import are_labels, known_ratings
from ..stats.correlation import statistic_dict
from ..stats.pass_fail import (
    CorrectedPassRate,
    fit_threshold,
    pass_fail_figures,
    passes,
    prediction_powered,
    rate,
    rogan_gladen,
)
from ..stats.resampling import Resampling, Statistic, fields_dict
from .scoring import score_on

if TYPE_CHECKING:
    from ..prompts.examples import Example
    from ..stats.pass_fail import FittedThreshold, PassFailFigures
    from .scoring import ExampleScore, Targets

FIGURES = ("accuracy", "true_positive_rate", "true_negative_rate", "kappa", "auc")
"""Names of figures, in the order of :class:`~askance.stats.pass_fail.PassFailFigures`."""
NAMES = {
    "accuracy": "agreed",
    "true_positive_rate": "true positive rate",
    "true_negative_rate": "true negative rate",
    "kappa": "Cohen's kappa",
    "auc": "area under the curve",
}
RATES = FIGURES[:3]
CELLS = ("true_positive", "false_positive", "false_negative", "true_negative")
"""Cells of the confusion matrix; positive is a pass."""

Column = list[float | None]
Origin = Literal["judge", "given", "pass_mark", "default"]


def form_of(name: str) -> str:
    """Return the number format of a figure: rates are in percent."""
    return ".1%" if name in RATES or name.endswith("pass_rate") else ".3f"


@dataclass(frozen=True)
class PassLabels:
    """People's labels of the examples, by example id: 1 for pass, 0 for fail, None where they gave none or disagree."""

    passed: Mapping[str, float | None]

    def of(self, examples: Iterable[str]) -> Column:
        """Return the labels of examples, by their ids."""
        return [self.passed[each] for each in examples]


def pass_labels(examples: Sequence[Example], targets: Targets) -> PassLabels | None:
    """Return the labels if people gave labels, or 0 and 1, on every wanted dimension; None otherwise.

    Several raters count by majority, or by the rule that combined them. With several dimensions an output passes if it
    passes each of them.
    """
    if targets.kind != "human":
        return None
    for name in targets.dimensions:
        ratings = [rating for each in examples for rating in known_ratings(each.human.get(name, ()))]
        is_unchanged = all(
            each.id in targets.combined or targets.wanted[each.id].get(name) == each.human_score(name)
            for each in examples
        )
        if not is_unchanged or not (are_labels(ratings) or set(ratings) == {0, 1}):
            return None
    return PassLabels(
        {each.id: _majority([targets.wanted[each.id].get(name) for name in targets.dimensions]) for each in examples}
    )


def _majority(shares: Sequence[float | None]) -> float | None:
    # raters who are evenly split give no label
    known = [each for each in shares if each is not None and each != 0.5]
    return float(min(known) > 0.5) if len(known) == len(shares) else None


def threshold_for(
    scores: Sequence[ExampleScore], examples: Sequence[Example], targets: Targets, labels: PassLabels
) -> FittedThreshold:
    """Fit the threshold to the scores of development examples, each of which is among ``examples``."""
    by_id = {each.id: each for each in examples}
    groups = documents([by_id[each.example] for each in scores])
    return fit_threshold([targets.score(each) for each in scores], labels.of(each.example for each in scores), groups)


def fitted_dict(threshold: FittedThreshold) -> dict[str, Any]:
    """Return a threshold as in ``result.json``."""
    row: dict[str, Any] = {"value": threshold.value, "fitted_on": "development", "n": threshold.n}
    return row if threshold.reason is None else {**row, "fitted_on": None, "reason": threshold.reason}


def figures_of(
    scores: Sequence[ExampleScore],
    examples: Sequence[Example],
    targets: Targets,
    labels: PassLabels,
    threshold: float,
    *,
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    """Return agreement, error rates, kappa, area under the curve and confusion matrix, as in result files.

    ``scores`` and ``examples`` are in the same order. Examples of one document are not taken for independent.
    """
    resampling = Resampling(documents(examples), resamples, seed=seed)
    found = pass_fail_figures(
        [targets.score(each) for each in scores], labels.of(each.example for each in scores), threshold, resampling
    )
    return figures_dict(found)


def figures_dict(found: PassFailFigures) -> dict[str, Any]:
    """Return the figures as in result files."""
    rows: dict[str, Any] = {name: statistic_dict(getattr(found, name)) for name in FIGURES}
    return rows | {"confusion": dict(zip(CELLS, found.confusion, strict=True))}


@dataclass(frozen=True)
class PassThreshold:
    """A score from which on an output passes, and what is known of the judge that uses it."""

    value: float
    """In [0, 1]."""
    origin: Origin
    """Who set the threshold; ``default`` if nobody did and people's labels ask for one."""
    true_positive_rate: Statistic | None = None
    """The judge's true positive rate on test examples that it was not chosen on."""
    true_negative_rate: Statistic | None = None
    fitted_on: str | None = None
    dimensions: tuple[str, ...] = ()
    """Dimensions whose mean score is compared with the threshold; empty: the score over all questions."""

    def score(self, scores: ExampleScore) -> float | None:
        """Return the score that passes or fails; None if one is missing."""
        return score_on(scores, self.dimensions) if self.dimensions else scores.overall

    def passes(self, scores: ExampleScore) -> bool | None:
        """Return whether the score reaches the threshold; None if the score is missing."""
        value = self.score(scores)
        return None if value is None else bool(passes(np.array([value]), self.value)[0])


@dataclass(frozen=True)
class PassFail:
    """Passing outputs, their share, and how far that share can be trusted."""

    threshold: PassThreshold
    passed: Mapping[str, bool | None]
    """Whether each output passes, by example id; None without a score."""
    pass_rate: Statistic
    """Pass rate by the judge."""
    figures: PassFailFigures | None = None
    """Agreement with people on the examples that they labelled."""
    people: Statistic | None = None
    """People's pass rate on the examples that they labelled."""
    corrected: CorrectedPassRate | None = None
    """Corrected pass rate, if not all examples are labelled."""

    def to_dict(self) -> dict[str, Any]:
        """Return the part of ``evaluate --json`` about passes."""
        threshold: dict[str, Any] = {"value": self.threshold.value, "from": self.threshold.origin}
        if self.threshold.fitted_on is not None:
            threshold["fitted_on"] = self.threshold.fitted_on
        row: dict[str, Any] = {"threshold": threshold, "pass_rate": statistic_dict(self.pass_rate)}
        if self.people is not None:
            row["people_pass_rate"] = statistic_dict(self.people)
        if self.corrected is not None:
            found = fields_dict(self.corrected)
            row["corrected_pass_rate"] = {name: each for name, each in found.items() if name != "reason" or each}
        return row if self.figures is None else row | figures_dict(self.figures)


def judge_passes(
    scores: Sequence[ExampleScore],
    examples: Sequence[Example],
    threshold: PassThreshold,
    labels: PassLabels | None,
    resampling: Resampling,
) -> PassFail:
    """Compare the scores with a threshold, and the outcomes with people's labels if there are any.

    If people labelled a part of the examples, these labels correct the pass rate. If they labelled none, the known
    error rates of the judge correct it.
    """
    values: Column = [threshold.score(each) for each in scores]
    reached = passes(np.array(values, dtype=np.float64), threshold.value).tolist()
    verdicts = [None if value is None else is_pass for value, is_pass in zip(values, reached, strict=True)]
    passed = {each.example: verdict for each, verdict in zip(scores, verdicts, strict=True)}
    column: Column = [None if each is None else float(each) for each in verdicts]
    found = rate(column, resampling)
    wanted: Column = [] if labels is None else labels.of(each.id for each in examples)
    if all(each is None for each in wanted):
        corrected = None
        if threshold.true_positive_rate is not None and threshold.true_negative_rate is not None:
            corrected = rogan_gladen(found, threshold.true_positive_rate, threshold.true_negative_rate)
        return PassFail(threshold, passed, found, corrected=corrected)
    figures = pass_fail_figures(values, wanted, threshold.value, resampling)
    part = None if None not in wanted else prediction_powered(column, wanted, resampling)
    return PassFail(threshold, passed, found, figures, rate(wanted, resampling), part)


ORIGINS = {
    "judge": "kept with the judge",
    "given": "--pass-threshold",
    "pass_mark": "--pass-mark",
    "default": "nobody set one: --pass-threshold, or a judge of align",
}


def pass_fail_lines(data: Mapping[str, Any]) -> list[str]:
    """Return the first sentences on ``evaluate --json``; none without a threshold."""
    if "threshold" not in data:
        return []
    threshold, own = data["threshold"], data["pass_rate"]
    fitted = f", fitted on {threshold['fitted_on']} examples" if threshold.get("fitted_on") else ""
    lines = [
        f"pass rate by the judge {Figure.of(own, '.1%')}, n = {own['n']} (a score of {threshold['value']:g} passes: "
        f"{ORIGINS[threshold['from']]}{fitted})"
    ]
    if "corrected_pass_rate" in data:
        lines.append(_corrected_line(data["corrected_pass_rate"]))
    if "accuracy" not in data:
        return lines
    people = data["people_pass_rate"]
    return [f"{lines[0]}; by people {Figure.of(people, '.1%')}, n = {people['n']}", *lines[1:], *figures_lines(data)]


def figures_lines(row: Mapping[str, Any]) -> list[str]:
    """Return agreement, error rates and the confusion matrix in three sentences."""
    figures = {name: f"{NAMES[name]} {Figure.of(row[name], form_of(name))}" for name in FIGURES}
    return [
        f"with people: {figures['accuracy']}, {figures['kappa']}, {figures['auc']}, n = {row['accuracy']['n']}",
        f"{figures['true_positive_rate']} (n = {row['true_positive_rate']['n']}), "
        f"{figures['true_negative_rate']} (n = {row['true_negative_rate']['n']})",
        confusion_text(row["confusion"]),
    ]


def confusion_text(matrix: Mapping[str, int]) -> str:
    """Put a confusion matrix into words."""
    return (
        f"both pass {matrix['true_positive']}, the judge alone {matrix['false_positive']}, people alone "
        f"{matrix['false_negative']}, both fail {matrix['true_negative']}"
    )


def _corrected_line(found: Mapping[str, Any]) -> str:
    method = {
        "rogan_gladen": "from its error rates on {} labelled test examples (Rogan-Gladen)",
        "ppi": "from the {} labelled examples here (prediction-powered)",
    }[found["method"]].format(found["labelled"])
    if found["value"] is None:
        return f"the pass rate of people cannot be estimated {method}: {found['reason']}"
    more = f"; {found['reason']}" if found.get("reason") else ""
    return f"pass rate that people would give {Figure.of(found, '.1%')}, {method}{more}"


def require_at_least(data: Mapping[str, Any], least: float, option: str = "--fail-under") -> str:
    """Check ``--fail-under`` against the pass rate, or without a threshold the mean score in [0, 1], and return the
    outcome in words. Examples without a score and questions left out may have any possible value. Raises AskanceError
    if the rate is too low with all of these values, and CoverageError if that depends on them."""
    low, high = data["scale"]

    def unit(score: float) -> float:
        return float((score - low) / (high - low))

    if "pass_rate" in data:
        quantity = "pass rate"
        values = [None if each["pass"] is None else float(each["pass"]) for each in data["scores"]]
        possible: list[tuple[float, float] | None] = [None] * len(values)
    else:
        quantity = "mean score"
        values = [None if each["overall"] is None else unit(each["overall"]) for each in data["scores"]]
        possible = [(unit(each["low"]), unit(each["high"])) if "low" in each else None for each in data["scores"]]
    ends = [
        known or ((0.0, 1.0) if value is None else (value, value))
        for value, known in zip(values, possible, strict=True)
    ]
    known = [each for each in values if each is not None]
    missing, n = len(values) - len(known), len(values)
    mean = sum(known) / len(known) if known else None
    finding = (
        f"The {quantity} is {mean:.3f} on {len(known)} examples" if mean is not None else f"There is no {quantity}"
    )
    worst, best = sum(map(min, ends)) / n, sum(map(max, ends)) / n
    if worst >= least - 1e-9:
        return f"{finding}, not below {option} {least:g}."
    if best < least - 1e-9:
        raise AskanceError(f"{finding}, below {option} {least:g}.")
    reason, whole, advice = "questions were left out", "all of them", "Leave out --stop-within, or give a smaller one."
    if missing:
        reason, whole = f"{missing} of {n} have no score", "them"
        advice = "Run the command again to ask for the missing verdicts."
    raise CoverageError(
        f"{finding}, but {reason}: with {whole} it would be between {worst:.3f} and {best:.3f}, so whether "
        f"it is below {option} {least:g} is not known. {advice}"
    )
