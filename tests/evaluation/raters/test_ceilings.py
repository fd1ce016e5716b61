"""One rater with another, beside the figures of every command that holds something against people."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import askance
from askance.evaluation.raters.agreement_view import BETWEEN, PERFECT
from askance.optimizer.weights.score_tables import load_ratings
from askance.optimizer.weights.weigh import learn_weights, weigh
from askance.optimizer.weights.weights_result import sentences, weights_report
from askance.prompts.checklist import Checklist, Question
from askance.testing import ScriptedModel
from askance.training.measured import ScorerReader, figures_on_test
from askance.training.scorer_folder import TrainResult
from tests.said import says
from tests.training.conftest import CHECKLIST, made, options
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
QUESTIONS = Checklist(questions=(Question(id="good", text="Is it good?"), Question(id="short", text="Is it short?")))


def place_of(request: Any) -> int:
    return int(str(request.messages[-1][1]).split("out ")[1].split()[0])


def judge() -> ScriptedModel:
    return ScriptedModel(lambda request: 0.1 + 0.2 * (place_of(request) % 5), name="world/judge")


def rows(*, labels: bool = False, raters: int = 2) -> list[dict[str, Any]]:
    """Forty outputs; the first rater is right, the others are off now and then."""
    found = []
    for k in range(40):
        steps = [1 + k % 5, *(min(5, max(1, 1 + k % 5 + round(2.4 * share(n, k) - 1.2))) for n in range(1, raters))]
        given = [each >= 3 for each in steps] if labels else steps
        found.append({"id": f"e{k}", "input": f"in {k}", "output": f"out {k}", "human": {"overall": given}})
    return found


def test_pass_or_fail_stands_beside_the_agreement_of_two_people() -> None:
    found = askance.evaluate(rows(labels=True), checklist=QUESTIONS, model=judge(), resamples=100)
    [pair] = found.to_dict()["rater_agreement"]["overall"]["pairs"]
    lines = found.view().lines
    assert any(says(line, f"{pair['agreed']['value']:.1%}", f"{pair['kappa']['value']:.3f}") for line in lines)
    alone = askance.evaluate(rows(labels=True, raters=1), checklist=QUESTIONS, model=judge(), resamples=100)
    assert not any(BETWEEN in line for line in alone.view().lines)


def test_a_selection_says_what_people_reach_with_each_other() -> None:
    given = {
        "candidates": QUESTIONS,
        "k": 1,
        "no_cache": True,
        "halves": 2,
        "embedder": "words",
        "ranking_resamples": 2,
    }
    found = askance.select(rows(), model=judge(), **given)
    row = found.to_dict()["rater_agreement"]["overall"]
    shown = found.view().tables["agreement"]()[0]
    assert (shown[BETWEEN].value, shown[PERFECT].value) == (row["one_rater"]["value"], row["ceiling"]["value"])
    assert any(says(line, f"{row['one_rater']['value']:.3f}") for line in found.sentences())
    alone = askance.select(rows(raters=1), model=judge(), **given)
    assert "rater_agreement" not in alone.to_dict() and BETWEEN not in alone.view().tables["agreement"]()[0]


@pytest.mark.parametrize("judged", [False, True])
def test_weights_of_ratings_say_what_people_reach_with_each_other(judged: bool, tmp_path: Path) -> None:
    if judged:
        result = weigh(None, ratings=rows(), checklist=QUESTIONS, model=judge(), resamples=20).result
    else:
        scored = [each | {"scores": {"one": (k % 5) / 4, "two": share("two", k)}} for k, each in enumerate(rows())]
        scored[0]["human"] = {"overall": [1, None]}
        file = tmp_path / "rated.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in scored), encoding="utf-8")
        result = learn_weights(ratings=load_ratings(file), resamples=20)
    [row] = weights_report(result)["rater_agreement"].values()
    wanted = askance.rater_agreement(rows(), resamples=20).to_dict()["rater_agreement"]["overall"]
    assert row["one_rater"]["value"] == pytest.approx(wanted["one_rater"]["value"], abs=0 if judged else 0.02)
    assert any(says(line, f"{row['one_rater']['value']:.3f}") for line in sentences(result))


def test_weights_of_single_ratings_say_nothing_of_raters() -> None:
    result = weigh(None, ratings=rows(raters=1), checklist=QUESTIONS, model=judge(), resamples=20).result
    assert "rater_agreement" not in weights_report(result)


class Level:
    """A network that finds every output equally likely at each level."""

    def levels(self, texts: Any) -> Any:
        return np.log(np.full((len(texts), 5), 0.2) + 0.01 * np.arange(len(texts))[:, None])


def test_a_scorer_stands_beside_one_rater_with_another() -> None:
    several = [
        each.model_copy(update={"human": {"quality": (each.human["quality"][0], share("other", each.id))}})
        for each in made(40)
    ]
    reader: Any = ScorerReader(Level())  # type: ignore[arg-type]
    given: Any = SimpleNamespace(calibrated=lambda p: p)
    test = figures_on_test(reader, given, several, [], CHECKLIST, None, {}, options())
    row = test["rater_agreement"]["quality"]
    data = {
        "scorer": "s", "base": "b", "remarks": [], "curve": {"best_epoch": 1, "stopped_early": False, "validation": []},
        "mixture": {"units": {"training": 1}, "rows": []}, "calibration": {"n": 0}, "test": test,
        "speed": {"cpu_ms": 1.0, "cpu_ms_alone": 1.0},
        "price": {"break_even_money": {"verdicts": None}, "break_even_time": {"verdicts": None}},
    }  # fmt: skip
    view = TrainResult(data)._view()
    assert view.tables["test"]()[0][BETWEEN].value == row["one_rater"]["value"]
    assert any(says(line, "quality", f"{row['one_rater']['value']:.3f}") for line in view.lines)
    assert "rater_agreement" not in figures_on_test(reader, given, made(40), [], CHECKLIST, None, {}, options())
