"""What calibrations gain on examples that they were not fitted on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from askance.evaluation.scoring import human_targets
from askance.optimizer.acceptance import CorrelationYardstick
from askance.optimizer.modes.judge import compare_calibrations
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from tests.said import naming, says

from .conftest import ONE, answers, lenient, names, verdict, wanted

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def split(p_yes: np.ndarray, truth: np.ndarray, at: int = 40, **settings: Any) -> Any:
    examples = names(len(truth))
    return compare_calibrations(
        answers(a=p_yes),
        answers(a=p_yes),
        development=examples[:at],
        held_out=examples[at:],
        checklist=ONE,
        yardstick=CorrelationYardstick(wanted(one=truth), resamples=200, seed=42),
        **settings,
    )


def test_calibration_takes_a_lenient_judge_s_drift_away_and_leaves_its_ranking() -> None:
    found = split(*lenient(120))
    assert found["uncalibrated"].errors.bias > 0.4
    assert abs(found["platt"].errors.bias) < 0.1
    assert found["platt"].errors.mean_absolute < found["uncalibrated"].errors.mean_absolute / 2
    assert found["platt"].measure["spearman"] == pytest.approx(found["uncalibrated"].measure["spearman"], abs=1e-12)
    assert found["platt"].gain.value == pytest.approx(0.0, abs=1e-12)


def test_the_figures_are_those_of_the_held_out_examples() -> None:
    p_yes, truth = lenient(120)
    found = split(p_yes, truth)
    threshold = found["thresholds"].calibration.questions["a"].threshold
    yes = (p_yes[40:] > threshold).astype(float)
    assert found["thresholds"].measure["spearman"] == pytest.approx(stats.spearmanr(yes, truth[40:])[0])
    assert found["thresholds"].errors.mean_absolute == pytest.approx(np.abs(yes - truth[40:]).mean())
    assert found["thresholds"].errors.bias == pytest.approx(yes.mean() - truth[40:].mean())
    assert found["uncalibrated"].measure["spearman"] == pytest.approx(stats.spearmanr(p_yes[40:], truth[40:])[0])
    assert found["uncalibrated"].dimensions["one"].n == 80


def test_with_hard_scores_thresholds_win_over_a_judge_that_says_yes_to_everything() -> None:
    found = split(*lenient(120), soft=False)
    row = {name: each.to_dict() for name, each in found.items()}
    assert row["uncalibrated"]["spearman"] is None
    assert "constant" in row["uncalibrated"]["reason"]
    assert row["thresholds"]["gain"]["value"] > 0.4  # a judge that ranks nothing counts as 0
    assert row["thresholds"]["gain"]["p_value"] < 0.05


def test_the_comparison_is_plain_json_with_a_reason_beside_every_undefined_number() -> None:
    p_yes, truth = lenient(60)
    row = json.loads(json.dumps({name: each.to_dict() for name, each in split(p_yes, truth).items()}, allow_nan=False))
    assert set(row) == {"uncalibrated", "thresholds", "platt"}
    assert {"spearman", "low", "high", "n", "errors", "dimensions", "gain", "fit"} <= set(row["platt"])
    assert set(row["platt"]["fit"]["questions"]["a"]) == {"slope", "shift", "n"}
    assert row["platt"]["dimensions"]["one"] == {
        name: row["platt"][name] for name in ("spearman", "kendall", "pearson", "n", "low", "high", "errors")
    }
    examples = names(60)
    unrated = wanted(one=[*truth[:40], *[None] * 20])
    figures = compare_calibrations(
        answers(a=p_yes),
        answers(a=p_yes),
        development=examples[:40],
        held_out=examples[40:],
        checklist=ONE,
        yardstick=CorrelationYardstick(unrated, resamples=200, seed=42),
    )["platt"].to_dict()
    assert says(figures["errors"].pop("reason"), "no example", "wanted score")
    assert figures["errors"] == {"mean_absolute": None, "drift": None, "n": 0}
    assert figures["spearman"] is None and figures["reason"]
    assert figures["gain"]["value"] is None and figures["gain"]["reason"]


def test_an_example_in_both_splits_is_refused() -> None:
    p_yes, truth = lenient(40)
    with pytest.raises(InputError, match=naming("'e20'", "fitted on", "measured on")):
        compare_calibrations(
            answers(a=p_yes),
            answers(a=p_yes),
            development=names(21),
            held_out=names(40)[20:],
            checklist=ONE,
            yardstick=CorrelationYardstick(wanted(one=truth), resamples=200, seed=42),
        )


def test_scores_of_unieval_are_brought_to_people_s_scale_on_held_out_dialogues() -> None:
    path = DATA / "topical_chat.jsonl"
    if not path.exists():
        pytest.skip(f"the rated dialogues are not here ({path.name})")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    asked = ("naturalness", "coherence", "groundedness", "understandability")
    checklist = Checklist(questions=tuple(Question(id=name, text=f"{name}?", dimension=name) for name in asked))
    examples = [
        Example(id=row["id"], input=row["input"], output=row["output"], human={n: row["human"][n] for n in asked})
        for row in rows
    ]
    judged = [verdict(row["id"], name, float(row["unieval"][name])) for row in rows for name in asked]
    order = np.random.default_rng(0).permutation(len(examples))
    found = compare_calibrations(
        judged,
        judged,
        development=[examples[place] for place in order[:100]],
        held_out=[examples[place] for place in order[100:]],
        checklist=checklist,
        yardstick=CorrelationYardstick(human_targets(examples, checklist), resamples=200, seed=42),
    )
    assert found["uncalibrated"].measure["spearman"] > 0.5
    assert found["platt"].measure["spearman"] > found["uncalibrated"].measure["spearman"] - 0.05
    assert found["platt"].errors.mean_absolute < found["uncalibrated"].errors.mean_absolute - 0.02
    for name in asked:
        assert abs(found["platt"].dimensions[name].bias) < 0.08


def test_calibration_imports_no_heavy_library() -> None:
    code = (
        "import sys, askance.optimizer.modes.judge; "
        "print([name for name in ('scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
