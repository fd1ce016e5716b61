"""People's labels are pass or fail: the threshold that a run fits and keeps, and the figures that people act on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import askance
from askance.commands.show_run import show_command as show
from askance.evaluation.pass_fail import FIGURES
from askance.evaluation.scoring import human_targets
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.formatting import interval
from tests.said import naming, says

from .conftest import Desk


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> askance.RunResult:
    return Desk().align(tmp_path_factory.mktemp("run") / "run")


def judged(run: Path, rows: Any, **options: Any) -> askance.Evaluation:
    return askance.load_judge(run).evaluate(rows, model=Desk().model(), no_cache=True, **options)


def test_the_figures_of_both_judges_stand_in_the_result_and_the_judge_file(learned: askance.RunResult) -> None:
    found = learned.result
    assert found["baseline"]["threshold"]["fitted_on"] == found["best"]["threshold"]["fitted_on"] == "development"
    for side in ("baseline", "best"):
        row = found[side]["test"]
        assert sum(row["confusion"].values()) == row["accuracy"]["n"] == row["n"]
        assert set(FIGURES) < set(row) and row["spearman"] is not None
        assert found["crossed"] and "confusion" not in found[side]["validation"], "it has taught the judge as well"
    before, after = found["baseline"]["test"], found["best"]["test"]
    assert after["kappa"]["value"] > before["kappa"]["value"] + 0.3
    assert after["auc"]["value"] > before["auc"]["value"]
    kept = yaml.safe_load((learned.directory / "judge.yaml").read_text(encoding="utf-8"))
    assert kept["threshold"] == found["best"]["threshold"]["value"] and "threshold_of" not in kept
    assert kept["figures"]["test"]["kappa"]["value"] == pytest.approx(after["kappa"]["value"], abs=1e-4)


def test_the_threshold_comes_from_the_development_examples_alone(learned: askance.RunResult) -> None:
    run = RunDirectory(learned.directory)
    config = run.read_config()["config"]
    examples = run.read_inputs()[0]
    targets = human_targets(examples, askance.load_judge(learned.directory).checklist)
    assert config["update"] == "questions" and targets.dimensions == ("overall",)
    fitted_on = learned.record.best.threshold
    assert fitted_on is not None and fitted_on.n == round(0.3 * len(examples))


def test_show_says_it_before_the_correlations(learned: askance.RunResult) -> None:
    out = CliRunner().invoke(show, [str(learned.directory)], env={"COLUMNS": "160"}).output
    assert out.index("Pass or fail,") < out.index("Spearman with people")
    table = out.partition("Pass or fail")[2]
    assert "true negative rate" in table and "both pass" in table and "Cohen's kappa" in table


def test_the_kept_judge_gives_the_same_verdicts_and_figures(learned: askance.RunResult) -> None:
    splits = next(
        json.loads(line)
        for line in (learned.directory / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        if '"test"' in line and '"development"' in line
    )
    rows = [row for row in Desk().rows if row["id"] in splits["test"]]
    found = judged(learned.directory, rows, resamples=400)
    data, wanted = found.to_dict(), learned.result["best"]["test"]
    assert data["threshold"] == {
        "value": learned.result["best"]["threshold"]["value"],
        "from": "judge",
        "fitted_on": "development",
    }
    assert data["confusion"] == wanted["confusion"]
    for name in ("accuracy", "true_positive_rate", "true_negative_rate"):
        assert data[name] == wanted[name]
    assert "corrected_pass_rate" not in data, "where all are labelled nothing is left to estimate"
    assert sum(each["pass"] for each in data["scores"]) == round(data["pass_rate"]["value"] * len(rows))
    said = str(found)
    assert said.index("by the judge") < said.index("mean score") and "by people" in said


def test_a_threshold_that_was_not_fitted_is_not_said_to_be(tmp_path: Path) -> None:
    desk = Desk(24)
    done = desk.align(tmp_path / "run", max_iterations=1)
    reason = done.result["best"]["threshold"]["reason"]
    assert says(reason, 8, "development examples")
    kept = yaml.safe_load((tmp_path / "run" / "judge.yaml").read_text(encoding="utf-8"))
    assert (kept["threshold"], kept["run"]["unfitted"]) == (0.5, reason)
    found = judged(tmp_path / "run", desk.rows)
    assert found.to_dict()["threshold"] == {"value": 0.5, "from": "judge"}
    assert "fitted on" not in str(found)


def unlabelled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("id", "input", "output")} for row in rows]


def test_outputs_without_labels_get_a_corrected_pass_rate(learned: askance.RunResult) -> None:
    desk = Desk(300)
    data = judged(learned.directory, unlabelled(desk.rows[120:])).to_dict()
    found = data["corrected_pass_rate"]
    truth = sum(desk.passed(each) for each in desk.ids[120:]) / 180
    assert found["method"] == "rogan_gladen" and found["low"] <= truth <= found["high"]
    assert found["labelled"] == learned.result["best"]["test"]["n"]
    told = str(judged(learned.directory, unlabelled(desk.rows[120:])))
    assert "accuracy" not in data and says(told, "pass rate", "people would give")


def test_labels_of_a_part_are_used_in_place_of_the_known_errors(learned: askance.RunResult) -> None:
    desk = Desk(300)
    rows = [*desk.rows[120:180], *unlabelled(desk.rows[180:])]
    data = judged(learned.directory, rows).to_dict()
    found = data["corrected_pass_rate"]
    assert (found["method"], found["labelled"], found["n"]) == ("ppi", 60, 180)
    assert found["low"] <= found["value"] <= found["high"] and data["accuracy"]["n"] == 60


def test_another_model_has_neither_the_threshold_nor_the_error_rates(learned: askance.RunResult) -> None:
    other = Desk().model()
    other.name = "desk/other"
    data = askance.load_judge(learned.directory).evaluate(unlabelled(Desk().rows), model=other, no_cache=True).to_dict()
    assert "threshold" not in data and "pass_rate" not in data


def test_a_judge_used_otherwise_keeps_its_threshold_but_is_not_corrected(learned: askance.RunResult) -> None:
    data = judged(learned.directory, unlabelled(Desk().rows), scores="hard").to_dict()
    assert data["threshold"]["from"] == "judge" and "corrected_pass_rate" not in data


def test_a_threshold_of_ones_own_wins(learned: askance.RunResult) -> None:
    data = judged(learned.directory, Desk().rows, pass_threshold=0.0).to_dict()
    assert data["threshold"] == {"value": 0.0, "from": "given"} and data["pass_rate"]["value"] == 1
    assert data["true_negative_rate"]["value"] == 0


def test_a_threshold_in_a_file_is_checked(learned: askance.RunResult, tmp_path: Path) -> None:
    text = (learned.directory / "judge.yaml").read_text(encoding="utf-8")
    line = next(each for each in text.splitlines() if each.startswith("threshold: "))
    for wrong in ("threshold: 1.5", "threshold: high", f"{line}\nthreshold_of: [tone]"):
        (tmp_path / "judge.yaml").write_text(text.replace(line, wrong), encoding="utf-8")
        with pytest.raises(InputError, match=r"judge\.yaml.*threshold"):
            askance.load_judge(tmp_path / "judge.yaml")
    with pytest.raises(AskanceError, match=naming("stop_within", "not exact")):
        replace(askance.load_judge(learned.directory), calibration=None).prepare(
            Desk().rows, None, {"stop_within": 0.1}
        )


@pytest.mark.parametrize(("metric", "name"), [("kappa", "kappa"), ("auc", "AUC")])
def test_the_gate_can_compare_another_figure(metric: str, name: str, tmp_path: Path) -> None:
    done = Desk().align(tmp_path / "run", optimise_for=metric, max_iterations=1)
    found = done.result
    assert found["yardstick"] == name and found["accepted_edits"], "these comments help whatever is measured"
    assert name in found["accepted_edits"][0]["reason"]
    before, after = (found[side]["test"]["optimised"]["value"] for side in ("baseline", "best"))
    assert found["gain"]["test"]["value"] == pytest.approx(after - before)
    out = CliRunner().invoke(show, [str(done.directory)], env={"COLUMNS": "160"}).output
    assert f"{name} with people" in out and f"({name})" in out
    page = (done.directory / "report.html").read_text(encoding="utf-8")
    assert f"{name} of the judge" in page and "Pass or fail" in page
    ends = (found["best"]["test"]["optimised"][end] for end in ("low", "high"))
    tile = page.partition(f"<dt>{name[:1].upper()}{name[1:]} with people</dt>")[2].partition("</div>")[0]
    assert f"interval {interval(*ends, sign=False)} now" in tile and "Spearman with people" not in page


def test_labels_are_needed_for_figures_of_labels(tmp_path: Path) -> None:
    class Rated(Desk):
        @property
        def rows(self) -> list[dict[str, Any]]:
            return [row | {"human": {"overall": 1 + place % 5}} for place, row in enumerate(super().rows)]

    with pytest.raises(InputError, match=naming("optimise_for kappa", "labels", "pass or fail")):
        Rated().align(tmp_path / "run", optimise_for="kappa")
    assert not (tmp_path / "run").exists()
