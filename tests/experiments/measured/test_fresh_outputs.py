"""Judges of a finished run on outputs that came later, in a simulated world."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import askance
from askance.experiments.measured import fresh_outputs
from askance.experiments.measured.learned_questions import DATA, MORE
from askance.experiments.measured.simulated_world import COMMENTED, UNSEEN
from askance.prompts.errors import InputError
from askance.testing import SimulatedJudge, SimulatedWorld

from ...said import naming


def test_a_true_gain_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SimulatedWorld(size=240, seed=1_000, **COMMENTED, **UNSEEN)
    judge = SimulatedJudge(world)
    rated = [row | {"human": {"overall": row["human"]["quality"]}} for row in world.rows[150:]]
    (tmp_path / MORE).write_text("".join(json.dumps(row) + "\n" for row in rated))
    monkeypatch.setitem(DATA, "world", tmp_path)
    done = askance.align(
        world.rows[:150],
        checklist=world.checklist,
        model=judge,
        prompt=world.prompt,
        run=tmp_path / "world-0-with",
        embedder="words",
        resamples=200,
        seed=1_000,
    )
    row = fresh_outputs.on_fresh_outputs(tmp_path / "world-0-with", judge)
    assert done.record.gain.test is not None
    assert row["test_gain"] == done.record.gain.test.value
    assert row["start"]["n"] == row["accepted"]["n"] == 90
    assert row["gain"]["spearman"]["low"] > 0
    together = row["gain_with_test"]["spearman"]
    assert together["n"] == 90 + done.record.best.test.n
    assert together["high"] - together["low"] < row["gain"]["spearman"]["high"] - row["gain"]["spearman"]["low"]
    gains = sorted([row["gain"]["spearman"]["value"], row["test_gain"]])
    assert gains[0] - 0.05 < together["value"] < gains[1] + 0.05
    assert row["accepted"]["spearman"]["value"] - row["start"]["spearman"]["value"] == pytest.approx(
        row["gain"]["spearman"]["value"], abs=2e-4
    )


def test_data_without_further_outputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("name", "begin with")):
        fresh_outputs.on_fresh_outputs(tmp_path / "nothing-0-with")
