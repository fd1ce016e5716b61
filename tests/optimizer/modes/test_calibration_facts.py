"""A calibration is fitted on some examples and measured on others, and neither hears of the other."""

from __future__ import annotations

import random

import pytest

from askance.evaluation.scoring import Targets
from askance.optimizer.acceptance import CorrelationYardstick
from askance.optimizer.modes.judge import CalibrationFigures, compare_calibrations
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict

NAMES = [f"e{place:02d}" for place in range(60)]
CHECKLIST = Checklist(
    questions=[
        Question(id="merit", text="Is it so?", dimension="d"),
        Question(id="fault", text="Is it wrong?", dimension="d", good="no"),
    ]
)


def compared(told_otherwise: str = "", *, both: bool = True) -> dict[str, CalibrationFigures]:
    """The first thirty are fitted on; of ``development`` or ``held out`` ones labels and answers are told otherwise."""
    wanted: dict[str, dict[str, float | None]] = {}
    verdicts: dict[str, list[Verdict]] = {}
    for place, name in enumerate(NAMES):
        is_other = told_otherwise == ("development" if place < 30 else "held out")
        draw = random.Random(place + 1000 * is_other)
        liked = draw.random()
        wanted[name] = {"d": liked}
        answers = {"merit": 0.7 * liked + 0.3 * draw.random(), "fault": 1 - 0.4 * liked - 0.3 * draw.random()}
        verdicts[name] = [Verdict(name, each, "m", "0" * 12, p >= 0.5, p) for each, p in answers.items()]
    examples = [Example(id=name, input="i") for name in NAMES]
    whole = [each for several in verdicts.values() for each in several]
    parts = [[each for each in whole if (each.example < "e30") is early] for early in (True, False)]
    return compare_calibrations(
        *((whole, whole) if both else parts),
        development=examples[:30],
        held_out=examples[30:],
        checklist=CHECKLIST,
        yardstick=CorrelationYardstick(Targets("human", ("d",), wanted), resamples=100, seed=1),
    )


@pytest.mark.parametrize("way", ["thresholds", "platt"])
def test_what_is_fitted_hears_nothing_of_the_held_out_examples_and_their_figures_nothing_of_the_fitted_ones(
    way: str,
) -> None:
    usual, held_out, development = (compared(each) for each in ("", "held out", "development"))
    fits = [each[way].calibration for each in (usual, held_out, development)]
    assert fits[0] == fits[1] != fits[2] and fits[0].n == 30
    figures = [each["uncalibrated"].to_dict() for each in (usual, development, held_out)]
    assert figures[0] == figures[1] != figures[2] and figures[0]["n"] == 30
    assert usual[way].to_dict() != development[way].to_dict()


def test_verdicts_on_other_examples_are_not_looked_at() -> None:
    usual, alone = compared(), compared(both=False)
    assert {name: each.to_dict() for name, each in usual.items()} == {
        name: each.to_dict() for name, each in alone.items()
    }
