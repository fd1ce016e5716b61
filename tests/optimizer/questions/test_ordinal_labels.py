"""Ordinal labels: thresholds between steps, from ``align`` through ``judge.yaml`` to ``evaluate --judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import askance
from askance.evaluation.raters.steps import STEP_FIGURES, StepThresholds, steps_of_people
from askance.evaluation.scoring import human_targets
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.testing import ScriptedModel
from tests.said import naming
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
CHECKLIST = Checklist(questions=(Question(id="good", text="Is it good?"),))


def rated(n: int = 100) -> list[dict[str, Any]]:
    """People's steps from 1 to 4; the judge gives .05, .15, .25 and .95 for them, and is wrong now and then."""
    return [
        {"id": f"e{k}", "input": "i", "output": f"out {k}", "human": {"overall": 1 + int(4 * share("step", k))}}
        for k in range(n)
    ]


def judge() -> ScriptedModel:
    def said(request: Any) -> float:
        number = int(request.messages[-1][1].split("out ")[1].split()[0])
        wrong = share("wrong", number) < 0.1
        step = int(4 * share("other" if wrong else "step", number))
        return [0.05, 0.15, 0.25, 0.95][step] + 0.02 * share("noise", number)

    return ScriptedModel(said, name="world/judge")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> askance.RunResult:
    run = tmp_path_factory.mktemp("run") / "run"
    return askance.align(
        rated(), checklist=CHECKLIST, model=judge(), run=run, calibrate=True, embedder="words", resamples=200
    )


def test_the_run_fits_thresholds_and_measures_the_steps(done: askance.RunResult) -> None:
    steps = done.result["best"]["steps"]
    assert steps["values"] == [1, 2, 3, 4] and steps["of"] == "overall"
    assert all(
        low < cut < high
        for cut, low, high in zip(steps["thresholds"], (0.05, 0.15, 0.25), (0.17, 0.27, 0.97), strict=True)
    )
    assert steps["test"]["agreed"]["value"] > 0.8 and steps["test"]["kappa"]["value"] > 0.6
    assert len(done.view().tables["steps"]()) == 3


def test_the_judge_keeps_them_and_evaluate_gives_each_output_a_step(done: askance.RunResult) -> None:
    kept = yaml.safe_load((done.directory / "judge.yaml").read_text())
    assert [float(each) for each in kept["steps"]["thresholds"]] == done.result["best"]["steps"]["thresholds"]
    loaded = askance.load_judge(done.directory)
    assert loaded.steps == StepThresholds.model_validate(
        {name: kept["steps"][name] for name in ("of", "values", "thresholds")}
    )
    found = loaded.evaluate(rated(60), model=judge(), no_cache=True, resamples=200)
    data = found.to_dict()
    same = [row["step"] == each["human"]["overall"] for row, each in zip(data["scores"], rated(60), strict=True)]
    assert data["steps"]["agreed"]["value"] == pytest.approx(sum(same) / 60)
    assert any("quadratic kappa" in line for line in found.view().lines)
    unrated = [{name: row[name] for name in ("id", "input", "output")} for row in rated(5)]
    alone = loaded.evaluate(unrated, model=judge(), no_cache=True).to_dict()
    assert [row["step"] for row in alone["scores"]] == [row["step"] for row in data["scores"][:5]]
    assert not set(STEP_FIGURES) & set(alone["steps"])


def test_damaged_thresholds_are_refused_by_name(done: askance.RunResult, tmp_path: Path) -> None:
    file = tmp_path / "judge.yaml"
    whole = yaml.safe_load((done.directory / "judge.yaml").read_text())
    for steps, said in (({"thresholds": [0.5]}, "thresholds"), ({"of": "tone"}, "tone")):
        file.write_text(yaml.safe_dump({**whole, "steps": {**whole["steps"], **steps}}))
        with pytest.raises(InputError, match=naming("judge.yaml", "steps", said)):
            askance.load_judge(file)


@pytest.mark.parametrize(
    ("ratings", "scale", "values"),
    [
        ([1, 2, 4], None, (1, 2, 3, 4)),
        ([2, 3], (1, 5), (1, 2, 3, 4, 5)),
        ([2, 3], (5, 1), (5, 4, 3, 2, 1)),
        ([0, 1 / 3, 2 / 3, 1], None, (0, 1 / 3, 2 / 3, 1)),
        ([True, False], None, None),
        ([0, 100], None, None),
        ([1, 2], None, None),
    ],
)
def test_the_steps_of_people(ratings: list[float], scale: Any, values: Any) -> None:
    examples = [Example(id=f"e{k}", input="i", output="o", human={"overall": each}) for k, each in enumerate(ratings)]
    assert steps_of_people(examples, human_targets(examples, CHECKLIST, scale), scale) == values
