"""What calibration gains on held-out examples: what a prompt update must beat to be worth its price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.calibration import Calibration
from ...evaluation.calibration_fit import fit_platt, fit_thresholds
from ...evaluation.scoring import ExampleScore, ScoreErrors, dimension_errors, overall_errors, score_examples
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ...stats.differences import Difference, difference_dict
from ..yardsticks import CorrelationYardstick


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """What the held-out examples say of one way to read the same verdicts."""

    measure: Mapping[str, Any]
    """Correlations with the wanted scores, over all dimensions and on each (:meth:`~askance.evaluation.scoring.TargetCorrelations.to_dict`)."""
    errors: ScoreErrors
    """Of the score over all wanted dimensions."""
    dimensions: Mapping[str, ScoreErrors]
    """On each wanted dimension."""
    gain: Difference | None
    """Spearman beyond that of the uncalibrated verdicts, paired; None for those themselves. A constant score counts as
    a correlation of 0 here."""
    calibration: Calibration | None
    """What was applied; None for the uncalibrated verdicts."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        by_dimension = {
            name: {**self.measure["dimensions"][name], "errors": errors.to_dict()}
            for name, errors in self.dimensions.items()
        }
        row = {**self.measure, "errors": self.errors.to_dict(), "dimensions": by_dimension}
        if self.calibration is None:
            return row
        parameters = self.calibration.model_dump(mode="json", include={"n", "questions"}, exclude_none=True)
        return row | {"gain": difference_dict(self.gain), "fit": parameters}


@dataclass(frozen=True, slots=True)
class CalibrationComparison:
    """The same held-out verdicts as they are, thresholded, and Platt-scaled."""

    uncalibrated: CalibrationFigures
    thresholds: CalibrationFigures
    platt: CalibrationFigures

    def to_dict(self) -> dict[str, Any]:
        """As under ``calibration`` in ``result.json``."""
        return {name: getattr(self, name).to_dict() for name in self.__slots__}


def compare_calibrations(
    development_verdicts: Iterable[Verdict],
    held_out_verdicts: Iterable[Verdict],
    *,
    development: Sequence[Example],
    held_out: Sequence[Example],
    checklist: Checklist,
    yardstick: CorrelationYardstick,
    soft: bool = True,
) -> CalibrationComparison:
    """Fit both calibrations on the development verdicts and measure them, beside no calibration, on held-out ones.

    Args:
        development_verdicts: One judge's; those on other examples are not looked at, here and below, so that the
            verdicts of all splits may be given for both.
        held_out_verdicts: The same judge's.
        development: Examples to fit on.
        held_out: Examples to measure on.
        checklist: What was asked.
        yardstick: What measures; its targets must know all of these examples.
        soft: Score from P(yes), else from the answers.

    Raises:
        InputError: An example is in both splits, or as :func:`fit_thresholds` and :meth:`~.calibration.Calibration.apply`.
    """
    names = {example.id for example in held_out}
    if both := next((example.id for example in development if example.id in names), None):
        raise InputError(f"The example '{both}' is to be fitted on and measured on; a split must have it once.")
    fitted_on = list(development_verdicts)
    verdicts = [verdict for verdict in held_out_verdicts if verdict.example in names]
    targets = yardstick.targets
    before = score_examples(held_out, checklist, verdicts, soft=soft)

    def calibrated(calibration: Calibration) -> CalibrationFigures:
        after = score_examples(held_out, checklist, calibration.apply(verdicts), soft=soft)
        gain = yardstick.difference(before, after, held_out)
        return _figures(after, held_out, yardstick, gain, calibration)

    return CalibrationComparison(
        _figures(before, held_out, yardstick),
        calibrated(fit_thresholds(fitted_on, development, checklist, targets)),
        calibrated(fit_platt(fitted_on, development, checklist, targets)),
    )


def _figures(
    scores: Sequence[ExampleScore],
    examples: Sequence[Example],
    yardstick: CorrelationYardstick,
    gain: Difference | None = None,
    calibration: Calibration | None = None,
) -> CalibrationFigures:
    targets = yardstick.targets
    return CalibrationFigures(
        yardstick.measure(scores, examples),
        overall_errors(scores, targets),
        dimension_errors(scores, targets),
        gain,
        calibration,
    )
