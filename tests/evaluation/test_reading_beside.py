"""A question read beside the others: what a model says of an output whatever it is asked is taken off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.evaluation.calibration import Calibration, load_calibration, logit, sigmoid
from askance.evaluation.calibration_fit import MOST_LEANING, fit_accepted, leaning
from askance.evaluation.scoring import Targets, score_examples
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from askance.stats.correlation import spearman
from tests.said import naming

NAMES = ("date", "price", "person", "place")
FAULTS = Checklist(questions=tuple(Question(id=each, text=f"A {each}?", dimension="one", good="no") for each in NAMES))
N = 120


def examples(n: int = N) -> list[Example]:
    return [Example(id=f"e{number}", input="in", output="out") for number in range(n)]


def answers(log_odds: dict[str, Any]) -> list[Verdict]:
    return [
        Verdict(f"e{number}", question, "m", "p", bool(value > 0), float(sigmoid(np.array([value]))[0]), "logprob")
        for question, values in log_odds.items()
        for number, value in enumerate(values)
    ]


def world(shared: float) -> tuple[dict[str, Any], Targets]:
    """Every third output has one of four faults; ``shared`` is the deviation of what belongs to the output."""
    rng = np.random.default_rng(3)
    fault = np.where(np.arange(N) % 3 == 0, rng.integers(0, 4, N), -1)
    lean = shared * rng.normal(size=N)
    said = {name: -2 + 2.5 * (fault == place) + lean + rng.normal(size=N) for place, name in enumerate(NAMES)}
    wanted = {f"e{number}": {"one": float(each < 0)} for number, each in enumerate(fault)}
    return said, Targets("human", ("one",), wanted)


def correlation(calibration: Calibration, said: dict[str, Any], wanted: Targets) -> float:
    scores = score_examples(examples(), FAULTS, calibration.apply(answers(said)))
    found = spearman([each.overall or 0.0 for each in scores], [wanted.wanted[each.id]["one"] for each in examples()])
    assert found.value is not None
    return found.value


def without_lean(calibration: Calibration, said: dict[str, Any], wanted: Targets) -> Calibration:
    """The same reading of each question alone."""
    fits = {
        name: fit_accepted(
            answers({name: said[name]}),
            examples(),
            FAULTS.model_copy(update={"questions": (FAULTS.question(name),)}),
            wanted,
        ).questions[name]
        for name in NAMES
    }
    return calibration.model_copy(update={"questions": fits})


def test_what_belongs_to_the_output_is_taken_off() -> None:
    said, wanted = world(shared=2.0)
    calibration = fit_accepted(answers(said), examples(), FAULTS, wanted)
    assert all((fit.lean or 0) > 0.6 for fit in calibration.questions.values())
    alone = without_lean(calibration, said, wanted)
    assert correlation(calibration, said, wanted) > correlation(alone, said, wanted) + 0.2


def test_outputs_that_people_score_all_the_same_are_all_accepted() -> None:
    said, _ = world(shared=2.0)
    alike = [7 / 9, 1.0]  # the mean of the first, added up, is above it by rounding
    fits = [
        fit_accepted(
            answers(said), examples(), FAULTS, Targets("human", ("one",), {f"e{n}": {"one": each} for n in range(N)})
        )
        for each in alike
    ]
    assert fits[0] == fits[1] and not fits[0].reasons


def test_where_nothing_is_shared_next_to_nothing_is_taken_off() -> None:
    said, wanted = world(shared=0.0)
    calibration = fit_accepted(answers(said), examples(), FAULTS, wanted)
    assert all((fit.lean or 0) < 0.25 for fit in calibration.questions.values())
    alone = without_lean(calibration, said, wanted)
    assert correlation(calibration, said, wanted) > correlation(alone, said, wanted) - 0.05


def test_the_formula_is_that_of_the_docs() -> None:
    said, wanted = world(shared=2.0)
    calibration = fit_accepted(answers(said), examples(), FAULTS, wanted)
    fit = calibration.questions["date"]
    assert fit.slope is not None and fit.shift is not None and fit.lean is not None
    others = np.mean([said[name][:1] for name in NAMES[1:]], axis=0)
    good = sigmoid(-fit.slope * (said["date"][:1] - fit.lean * others) + fit.shift)
    found = next(each for each in calibration.apply(answers(said)) if (each.example, each.question) == ("e0", "date"))
    assert found.p_yes == pytest.approx(1 - float(good[0]))
    table = {name: logit(sigmoid(values)) for name, values in said.items()}
    assert calibration.p_good("date", table)[0] == pytest.approx(float(good[0]))


def test_a_verdict_without_the_others_has_no_answer_and_says_which_is_missing() -> None:
    said, wanted = world(shared=2.0)
    calibration = fit_accepted(answers(said), examples(), FAULTS, wanted)
    failed = Verdict("e0", "place", "m", "p", None, status="api_error", error="down")
    some = [failed if (each.example, each.question) == ("e0", "place") else each for each in answers(said)]
    read = {(each.example, each.question): each for each in calibration.apply(some)}
    assert read["e0", "place"] is failed
    for name in NAMES[:3]:
        one = read["e0", name]
        assert (one.answer, one.p_yes, one.status) == (None, None, "abstained")
        assert one.error is not None and "that to 'place' is missing" in one.error
        assert read["e1", name].answer is not None
    scores = score_examples(examples(), FAULTS, calibration.apply(some))
    assert scores[0].overall is None and scores[1].overall is not None


def test_an_example_with_a_missing_verdict_is_left_out_of_the_fit_alone() -> None:
    said, wanted = world(shared=2.0)
    some = [each for each in answers(said) if (each.example, each.question) != ("e1", "place")]
    whole, part = (fit_accepted(each, examples(), FAULTS, wanted) for each in (answers(said), some))
    assert part.questions["date"].lean == pytest.approx(whole.questions["date"].lean, abs=0.1)


def test_one_question_has_nothing_to_lean_on() -> None:
    said, wanted = world(shared=2.0)
    one = FAULTS.model_copy(update={"questions": FAULTS.questions[:1]})
    fit = fit_accepted(answers({"date": said["date"]}), examples(), one, wanted).questions["date"]
    assert fit.lean is None and fit.slope is not None


@pytest.mark.parametrize("values", [np.zeros(20), np.arange(20.0)])
def test_the_slope_is_within_its_bounds(values: Any) -> None:
    assert leaning(values, np.zeros(20)) == 0.0, "others that say the same of every output"
    assert leaning(values, -values) == 0.0
    assert leaning(values, values / 9) <= MOST_LEANING


def test_the_file_keeps_it_and_other_methods_have_none(tmp_path: Path) -> None:
    said, wanted = world(shared=2.0)
    calibration = fit_accepted(answers(said), examples(), FAULTS, wanted)
    file = tmp_path / "calibration.json"
    file.write_text(calibration.to_json(), encoding="utf-8")
    assert load_calibration(file) == calibration
    data = json.loads(calibration.to_json())
    data["questions"] = {"date": data["questions"]["date"]}
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=naming("calibration.json", "'questions.date.lean'", "two questions")):
        load_calibration(file)
