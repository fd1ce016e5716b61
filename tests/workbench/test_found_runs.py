"""Runs under a directory: finished, stopped and damaged ones beside each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from askance.evaluation.judge_file import load_judge
from askance.memory.certificate_file import CertificateRecord
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import InputError
from askance.workbench.found_runs import FoundRuns, run_folders
from askance.workbench.judge_edits import JudgeEdit
from askance.workbench.workbench import AskedJudge, Workbench

from ..bridges.test_requirement_exports import target
from ..said import says

RUN = "team/aligned"


def test_a_finished_run_says_what_it_decided_gained_and_cost(runs: Path) -> None:
    [row] = FoundRuns(runs).rows()
    result = RunDirectory(runs / RUN).read_result()
    assert (row["run"], row["state"], row["command"], row["calls"]) == (RUN, "finished", "align", result.calls)
    assert row["decided"] in ("adopt", "keep", "undecided") and row["judge"]
    assert row["gain"] is None or row["gain"]["n"] > 0


def test_damaged_and_stopped_runs_are_named_and_the_others_work(runs: Path) -> None:
    for name in ("torn", "stopped", "unread"):
        shutil.copytree(runs / RUN, runs / name)
    (runs / "torn" / "result.json").write_text("{")
    (runs / "stopped" / "result.json").unlink()
    (runs / "unread" / "config.yaml").write_text("format: [")
    found = {row["run"]: row for row in FoundRuns(runs).rows()}
    assert {name: row["state"] for name, row in found.items()} == {
        RUN: "finished",
        "torn": "damaged",
        "stopped": "stopped",
        "unread": "damaged",
    }
    assert says(found["torn"]["problem"], "result.json", "damaged")
    assert says(found["unread"]["problem"], "config.yaml", "YAML")
    assert "iteration" in found["stopped"]["line"]


def test_a_run_that_changes_is_read_again(runs: Path) -> None:
    found = FoundRuns(runs)
    assert found.rows()[0]["state"] == "finished"
    (runs / RUN / "result.json").write_text("{")
    assert found.rows()[0]["state"] == "damaged"


def test_folders_of_a_run_and_hidden_ones_are_no_runs_and_links_are_not_followed(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / RUN, runs / ".old" / "aligned")
    (runs / "elsewhere").symlink_to(tmp_path)
    assert [*run_folders(runs)] == [runs / RUN]
    assert FoundRuns(runs / RUN).rows()[0]["run"] == "."


@pytest.mark.parametrize("name", ["../team/aligned", "/etc", "team", "", "team/aligned/inputs"])
def test_a_name_that_is_no_run_leads_nowhere(runs: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}'"):
        FoundRuns(runs).folder(name)


def test_a_directory_without_runs_has_none(tmp_path: Path) -> None:
    assert FoundRuns(tmp_path).rows() == []


def test_a_migration_of_one_target_says_what_it_gained_and_cost(tmp_path: Path) -> None:
    one = target({"valid": 0.9})
    for targets in ({"new": one}, {"new": one, "other": one}):
        record = CertificateRecord(
            kind="generator", source="recorded", max_loss=0.1, level=0.05, targets=targets, calls=12, cost_usd=0.5
        )
        (tmp_path / "moved" / "targets").mkdir(parents=True, exist_ok=True)
        record.save(tmp_path / "moved")
        [row] = FoundRuns(tmp_path).rows()
        assert (row["command"], row["calls"], row["cost"]) == ("migrate", 12, "$0.5000")
        assert row["gain"] == (one.difference.model_dump() if len(targets) == 1 else None)


def test_a_judge_without_a_run_is_found_changed_and_saved_and_nothing_is_measured(runs: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    (alone / "mine").mkdir(parents=True)
    shutil.copy(runs / RUN / "judge.yaml", alone / "mine" / "judge.yaml")
    (alone / "torn").mkdir()
    (alone / "torn" / "judge.yaml").write_text("model: [")
    found = {row["run"]: row for row in FoundRuns(alone).rows()}
    assert {name: row["state"] for name, row in found.items()} == {"mine": "judge", "torn": "damaged"}
    assert found["mine"]["judge"] and says(found["torn"]["problem"], "judge.yaml")
    page = Workbench(alone, "anna")
    told = page.judge("mine", "judge.yaml")
    assert told["questions"] and told["questions"][0]["agreement"] is None and not told["measured"]
    assert says(told["development"]["reason"], "without a run") and told["cannot_ask"] == told["development"]["reason"]
    edit = JudgeEdit.model_validate(told["edit"] | {"threshold": 0.4})
    asked = AskedJudge(run="mine", edit=edit, validation=True)
    figures = page.figures(asked)
    assert figures["what"] and figures["looks"] == 0
    with pytest.raises(InputError, match="without a run"):
        page.test(asked)
    assert page.save(asked)["file"] == "judge-1.yaml"
    [change] = load_judge(alone / "mine" / "judge-1.yaml").history
    assert (change.by, change.looks) == ("anna", 0)
    assert sorted(each.name for each in (alone / "mine").iterdir() if each.suffix != ".lock") == [
        *("judge-1.yaml", "judge.yaml")
    ]
