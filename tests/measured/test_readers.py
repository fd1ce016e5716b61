"""What the readers' table is made of, with a stand-in for the command that it times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.measured import readers


def test_log_odds_are_held_beside_those_of_the_first_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odds = {("a", "q"): -0.1, ("a", "r"): 0.5, ("b", "q"): 1.0}
    seconds = {"local": 75.0, "onnx": 25.0}
    asked = []

    def evaluated(
        packages: Path, data: Path, checklist: Path, model: str, limit: int
    ) -> tuple[float, dict[readers.Place, float]]:
        asked.append((packages, model, limit))
        reader = model.partition("/")[0]
        moved = {place: value + 0.2 * (reader == "onnx") for place, value in odds.items()}
        return 5 + (seconds[reader] if limit > 1 else 0), moved

    monkeypatch.setattr(readers, "evaluated", evaluated)
    output = tmp_path / "readers.json"
    given = [
        "--data",
        str(tmp_path / "qags.jsonl"),
        "--limit",
        "15",
        "--first",
        str(tmp_path / "old"),
        "-o",
        str(output),
    ]
    assert readers.main(given) == 0
    rows = {each["reader"]: each for each in json.loads(output.read_text())["readers"]}
    assert list(rows) == ["local", "onnx", "local, first version"]
    assert [each["verdicts_a_second"] for each in rows.values()] == [1.0, 3.0, 1.0]
    assert rows["onnx"]["beside"] == pytest.approx(
        {"n": 3, "spearman": 1.0, "mean_difference": 0.2, "deviation": 0.0, "other_answer": 1}, abs=1e-9
    )
    assert asked[-1] == (tmp_path / "old", "local/qwen2.5-coder-1.5b-instruct", 16)
    assert asked[0][0] == readers.PACKAGES
    assert "3.00 verdicts a second" in capsys.readouterr().out
