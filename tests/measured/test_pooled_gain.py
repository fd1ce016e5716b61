"""The mean gain of several runs, on scores that are written here."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from askance.prompts.errors import InputError
from askance.stats.correlation import spearman
from tests.measured.pooled_gain import by_data, main, pooled_gain

from ..said import says


def write_run(folder: Path, outputs: range, noise: float, changed: bool = True) -> Path:
    """A run whose start says nothing and whose accepted judge is right but for noise."""
    chance = random.Random(str(folder.name))
    rows = []
    for version in (0, 1) if changed else (0,):
        for number in outputs:
            wanted = number % 2
            score = 0.4 + number % 5 / 50 if version == 0 else (1 - noise) * wanted + noise * chance.random()
            rows.append({"version": version, "example": f"e{number}", "score": score, "wanted": wanted})
    (folder / "verdicts").mkdir(parents=True)
    (folder / "verdicts" / "scores.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def test_runs_on_the_same_outputs_are_no_more_evidence_than_one(tmp_path: Path) -> None:
    once = write_run(tmp_path / "notes-0-with", range(60), 0.7)
    [found] = pooled_gain({"notes": [once]})["data"].values()
    twice = pooled_gain({"notes": [once, once]})["data"]["notes"]
    assert {name: twice[name] for name in ("mean_gain", "low", "high")} == {
        name: found[name] for name in ("mean_gain", "low", "high")
    }
    rows = [json.loads(line) for line in (once / "verdicts" / "scores.jsonl").read_text().splitlines()]
    wanted = [row["wanted"] for row in rows[:60]]
    before, after = (spearman([row["score"] for row in some], wanted).value for some in (rows[:60], rows[60:]))
    assert found["mean_gain"] == pytest.approx(after - before, abs=1e-4)
    assert 0 < found["low"] < found["mean_gain"] < found["high"]


def test_other_outputs_and_other_data_narrow_the_interval(tmp_path: Path) -> None:
    first = write_run(tmp_path / "notes-0-with", range(60), 0.7)
    apart = write_run(tmp_path / "notes-1-with", range(60, 120), 0.7)
    other = write_run(tmp_path / "news-0-with", range(60), 0.7)
    alone = pooled_gain({"notes": [first]})["all"]["standard_error"]
    assert pooled_gain({"notes": [first, apart]})["all"]["standard_error"] < 0.85 * alone
    assert pooled_gain({"notes": [first], "news": [other]})["all"]["standard_error"] < 0.85 * alone


def test_a_run_that_changed_nothing_has_gained_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    won, lost = (
        write_run(tmp_path / "notes-0-with", range(60), 0.5),
        write_run(tmp_path / "notes-1-with", range(60), 0.5, changed=False),
    )
    assert main([str(lost), str(won), "--output", str(tmp_path / "pooled.json")]) == 0
    found = json.loads((tmp_path / "pooled.json").read_text())["data"]["notes"]
    assert found["runs"]["notes-1-with"] == 0
    assert found["mean_gain"] == pytest.approx(found["runs"]["notes-0-with"] / 2, abs=1e-4)
    assert list(by_data([lost, won])) == ["notes"]


def test_a_run_without_a_test_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "notes-0-with"
    (folder / "verdicts").mkdir(parents=True)
    with pytest.raises(InputError, match="no such file"):
        pooled_gain({"notes": [folder]})
    (folder / "verdicts" / "scores.jsonl").write_text("")
    assert main([str(folder)]) == 2
    assert says(capsys.readouterr().err, "the run finished?")
