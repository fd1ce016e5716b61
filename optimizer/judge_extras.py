"""What a run says of a judge beside its correlation: what calibration alone would have done, and how it drifted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.scoring import dimension_errors, yes_rates
from .compare_calibrations import compare_calibrations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .bench import Bench
    from .results import Outcome, Version
    from .subject import Observation, Subject
    from .yardsticks import CorrelationYardstick


async def judge_extras(
    bench: Bench,
    subject: Subject,
    yardstick: CorrelationYardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Calibration and drift of the first and the best version, measured on the test examples.

    Thresholds and Platt scaling are fitted on the development examples; verdicts on those that are not there yet are
    bought. ``calibration-platt.json`` and ``calibration-thresholds.json`` of the best version are kept.

    Raises:
        BudgetExceededError: A cap was reached.
    """
    sides: dict[str, Version] = {"baseline": outcome.baseline, "best": outcome.best}
    calibration: dict[str, Any] = {}
    drift: dict[str, Any] = {}
    for side, version in sides.items():
        if version.number not in outcome.seen:
            bench.events.phase("judging the development examples, to calibrate")
            outcome.seen[version.number] = await subject.observe(
                version.draft, bench.splits.development, bench.events.advance
            )
        held_out = tests[version.number]
        assert version.draft.checklist is not None, "a judge answers a checklist"
        compared = compare_calibrations(
            outcome.seen[version.number].verdicts,
            held_out.verdicts,
            development=bench.splits.development,
            held_out=bench.splits.test,
            checklist=version.draft.checklist,
            targets=yardstick.targets,
            soft=bench.job.options.soft,
            resamples=bench.job.options.resamples,
            seed=bench.job.options.seed,
        )
        calibration[side] = compared.to_dict()
        drift[side] = {
            "mean_errors": {
                name: each.drift for name, each in dimension_errors(held_out.scores, yardstick.targets).items()
            },
            "yes_rates": yes_rates(held_out.verdicts),
        }
    for figures in (compared.thresholds, compared.platt):
        if figures.calibration is not None:
            name = f"calibration-{figures.calibration.method}.json"
            bench.run.write(name, figures.calibration.to_json())
    return {"calibration": calibration, "drift": drift}
