from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from askance.evaluation.options import EvaluateOptions, ScoreOptions, WriterOptions
from askance.optimizer.options import LoopOptions
from askance.prompts.errors import InputError
from askance.settings import load_config, parse_options
from tests.said import naming


def test_what_interface_promises_is_the_default() -> None:
    loop = LoopOptions()
    assert (loop.max_iterations, loop.max_lessons, loop.seed, loop.temperature, loop.repeat) == (5, 10, 42, 0.0, 1)
    assert loop.split == (0.3, 0.3, 0.4)
    assert loop.explain == "needed"


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (LoopOptions, {"max_iteration": 3}, "no setting 'max_iteration'. Did you mean 'max_iterations'?"),
        (LoopOptions, {"xyzzy": 3}, "no setting 'xyzzy'."),
        (LoopOptions, {"max_iterations": 0}, "max_iterations: must be greater than or equal to 1"),
        (LoopOptions, {"split": [0.5, 0.5]}, "split"),
        (LoopOptions, {"split": (0.5, 0.4, 0.4)}, "split: three shares above 0 that add up to 1"),
        (LoopOptions, {"split": (0.5, 0.5, 0.0)}, "split: three shares above 0 that add up to 1"),
        (LoopOptions, {"margin": float("nan")}, "margin"),
        (LoopOptions, {"alpha": 1}, "alpha"),
        (ScoreOptions, {"human_scale": (5, 5)}, "human_scale: the worst and the best score must differ"),
        (ScoreOptions, {"scale": (1, 1)}, "scale: its two ends must differ"),
        (ScoreOptions, {"temperature": True}, "temperature: must be a number, not true"),
        (ScoreOptions, {"limit": False}, "limit: must be a number, not false"),
        (ScoreOptions, {"p_yes": "sampled"}, "p_yes sampled needs samples of 2 or more"),
        (ScoreOptions, {"mode": "eech"}, "mode: must be 'auto', 'each' or 'batched'"),
        (ScoreOptions, {"call_budget": -1}, "call_budget"),
        (ScoreOptions, {"min_coverage": 1.5}, "min_coverage"),
        (ScoreOptions, {"limit": "many"}, "limit: must be a valid integer"),
        (WriterOptions, {"max_requirements": 0}, "max_requirements"),
    ],
)
def test_a_setting_that_cannot_be_is_a_sentence(kind: type[BaseModel], values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_options(kind, values, "here")
    assert str(error.value).startswith("here: ")
    assert message in str(error.value)
    assert str(error.value).endswith((".", "?"))


def test_from_python_a_file_may_be_a_path_as_those_of_the_data_may() -> None:
    assert parse_options(LoopOptions, {"memory": Path("kept") / "memory"}).memory == str(Path("kept") / "memory")
    assert parse_options(EvaluateOptions, {"weights": Path("weights.json")}).weights == "weights.json"


def test_several_problems_are_told_at_once() -> None:
    with pytest.raises(InputError, match=r"timeout: .*; retries: "):
        parse_options(LoopOptions, {"timeout": 0, "retries": -1})


def test_the_settings_of_a_judge_reach_the_evaluator() -> None:
    options = parse_options(ScoreOptions, {"mode": "batched", "repeat": 3, "seed": 7, "p_yes": "hard"})
    judging = options.judging
    assert (judging.mode, judging.repeat, judging.seed, judging.p_yes) == ("batched", 3, 7, "hard")


def test_hyphens_in_a_config_file_are_underscores(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("call-budget: 3\nsplit: [0.2, 0.2, 0.6]\n")
    assert load_config(tmp_path / "c.yaml") == {"call_budget": 3, "split": [0.2, 0.2, 0.6]}


def test_an_empty_config_file_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("# nothing yet\n")
    assert load_config(tmp_path / "c.yaml") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"- a\n- b\n", "a mapping from setting to value is needed"),
        (b"a: [1,\n", "line 2: not valid YAML"),
        (b"\xff\xfe\x00", "line 1: not UTF-8 text; there is a byte in it that cannot be. Save the file as UTF-8."),
    ],
)
def test_a_config_file_that_cannot_be_used_is_a_sentence(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "c.yaml").write_bytes(text)
    with pytest.raises(InputError, match=message):
        load_config(tmp_path / "c.yaml")


def test_a_config_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("nothing.yaml", "no such")):
        load_config(tmp_path / "nothing.yaml")
