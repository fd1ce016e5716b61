"""The benchmarks of question selection run, and say what they say of worlds in which the truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askance.experiments.measured import eig_bias, eig_selection
from askance.optimizer.selection.joint import HardAnswers


def test_the_true_information_of_a_set_is_that_of_very_many_examples() -> None:
    world = eig_bias.Sets(3, 4)
    data = world.draw(40_000)
    estimate = eig_bias._whole_table(data, "shuffle")
    for chosen in ([0], [0, 1], [0, 3, 7], [2, 5, 6, 8, 11]):
        assert world.truth(chosen) == pytest.approx(estimate(chosen), abs=0.01)


@pytest.mark.parametrize("options", [2, 3, 5])
def test_the_true_information_of_single_questions_is_that_of_very_many_examples(options: int) -> None:
    truth, answers, ratings = eig_bias.singles(options, 30_000, 1)
    data = HardAnswers(answers, ratings, options, 5)
    found = eig_bias.pooled_information(
        eig_bias.one_hot(data.answers, options), eig_bias.one_hot(data.ratings, 5), correction="shuffle"
    )
    assert found.bits == pytest.approx(truth, abs=0.012)


def test_the_shuffle_is_the_less_biased_correction() -> None:
    row = eig_bias.measure_singles(3, 60, 12)
    assert abs(row["shuffle"]["bias"]) < abs(row["miller-madow"]["bias"]) < abs(row["none"]["bias"])
    assert row["shuffle"]["rmse"] < row["none"]["rmse"]


def test_where_questions_repeat_each_other_the_joint_set_tells_more_on_held_out_outputs() -> None:
    found = eig_selection.compare(eig_selection.simulated(300, 5, 4), 1)
    at_5 = found["by_k"][4]
    assert at_5["joint"] > at_5["top"] + 0.05
    assert found["by_k"][0]["joint"] == found["by_k"][0]["top"]


@pytest.mark.parametrize("copies", [1, 4])
def test_on_the_outputs_that_choose_the_joint_set_never_tells_less_than_the_best_alone(copies: int) -> None:
    found = eig_selection.compare(eig_selection.simulated(120, 12 // copies, copies, seed=3), 2)
    for row in found["by_k"]:
        assert row["where_chosen"]["least_joint_less_top"] >= 0


def test_a_folder_without_the_data_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert eig_selection.main([str(tmp_path), "-o", str(tmp_path / "r.json")]) == 2
    assert "topical_chat.jsonl" in capsys.readouterr().err


def test_the_bias_benchmark_writes_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eig_bias, "SIZES", (30,))
    assert eig_bias.main(["--worlds", "2", "-o", str(tmp_path / "r.json")]) == 0
    result = json.loads((tmp_path / "r.json").read_text())
    assert [row["answers"] for row in result["singles"]] == [2, 3, 5]
    assert set(result["sets"][0]["true_bits_of_chosen"]) >= {"top", "joint"}
    assert np.isfinite(result["sets"][0]["estimates"]["chained"]["bias"])
