"""Replayed verdicts say what leaving out questions saves and costs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askance.experiments.measured import adaptive_asking
from askance.prompts.checklist import dump_checklist
from askance.prompts.verdicts import write_verdicts


def test_no_score_is_off_by_more_than_its_bound_and_no_pass_mark_comes_out_differently() -> None:
    found = adaptive_asking.measure(*adaptive_asking.as_verdicts(adaptive_asking.simulated(80, 10)))
    assert (found["examples"], found["questions"]) == (80, 10)
    for rule in found["rules"]:
        assert rule["largest_error"] <= rule["bound"]
        assert rule["not_asked"] > 0
        assert rule.get("other_side", 0) == 0
    by_tolerance = {rule["stop_within"]: rule for rule in found["rules"] if "stop_within" in rule}
    assert [by_tolerance[each]["not_asked"] for each in (0.05, 0.1, 0.2)] == pytest.approx([0.1, 0.2, 0.4])
    assert all(rule["bound"] <= tolerance + 1e-9 for tolerance, rule in by_tolerance.items())


def test_verdicts_of_a_file_are_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples, checklist, verdicts = adaptive_asking.as_verdicts(np.linspace(0.05, 0.95, 40).reshape(10, 4))
    rows = [json.dumps({"id": each.id, "input": "i", "output": "o"}) for each in examples]
    (tmp_path / "data.jsonl").write_text("\n".join(rows))
    (tmp_path / "checklist.yaml").write_text(dump_checklist(checklist))
    with (tmp_path / "kept.jsonl").open("w") as file:
        write_verdicts(verdicts, file)
    names = {"--data": "data.jsonl", "--checklist": "checklist.yaml", "--verdicts": "kept.jsonl"}
    given = [part for flag, name in names.items() for part in (flag, str(tmp_path / name))]
    assert adaptive_asking.main([*given, "-o", str(tmp_path / "r.json")]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["data"]["kept.jsonl"]["questions"] == 4
    assert "kept.jsonl: {'stop_within': 0.05" in capsys.readouterr().out
    (tmp_path / "kept.jsonl").write_text("")
    assert adaptive_asking.main([*given, "-o", str(tmp_path / "r.json")]) == 2
