"""``askance evaluate --judge``: the judge of a run in place of its parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine


class Place(CommandLine):
    """A finished run of align, and the command line."""

    def judge(self, *more: str, judge: str = "run") -> tuple[int, str, str]:
        return self("evaluate", self.data, "--judge", judge, "--api-base", self.server.url, *more)


@pytest.fixture
def place(world: Any, sandbox: Path, server: StandInServer, cli: Any) -> Place:
    data, _, checklist, *_ = world.write(sandbox / "files")
    here = Place(cli, server, data)
    align = ["align", data, "--checklist", checklist, "--model", "openai/target", "--prompt", "files/prompt.md"]
    align += ["--embedder", "words", "--resamples", "200", "--alpha", "0.2", "--no-trial", "--no-prune"]
    assert here(*align, "--run", "run", "--api-base", server.url, "--quiet")[0] == 0
    return here


def test_the_data_of_the_run_is_judged_without_a_call(place: Place, caplog: Any) -> None:
    asked = len(place.server.bodies)
    code, out, _ = place.judge("--json")
    assert code == 0 and len(place.server.bodies) == asked
    assert "as it was kept" not in caplog.text
    found = json.loads(out)
    assert found["calls"] == 0 and found["coverage"]["share"] == 1
    code, dry, _ = place.judge("--dry-run", "--json")
    assert code == 0 and json.loads(dry)["calls"] == 0


def test_it_gives_what_its_parts_give(place: Place) -> None:
    _, out, _ = place.judge("--json")
    parts = ["--checklist", "files/checklist.yaml", "--prompt", "run/prompt.md", "--model", "openai/target"]
    code, same, _ = place("evaluate", place.data, *parts, "--api-base", place.server.url, "--json")
    assert code == 0
    assert {**json.loads(out), "calls": 0} | spent(same) == json.loads(same)


def spent(out: str) -> dict[str, Any]:
    found = json.loads(out)
    judged = {"model", "prompt", "coverage", "scale", "means", "yes_rates", "agreement", "scores"}
    return {name: value for name, value in found.items() if name not in judged}


def test_another_model_is_said_on_standard_error(place: Place, askance_command: Any) -> None:
    judge = ("evaluate", place.data, "--judge", "run", "--api-base", place.server.url, "--model", "openai/other")
    done = askance_command(*judge, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["model"] == "openai/other"
    assert says(done.stderr, "openai/other", "in place of", "openai/target")
    assert askance_command(*judge, "--json", "--quiet").stderr == ""


@pytest.mark.parametrize("name", ["checklist", "prompt"])
def test_a_part_beside_a_judge_is_a_usage_error(place: Place, name: str) -> None:
    code, _, err = place.judge(f"--{name}", "files/x")
    assert code == 2 and says(err, "--judge", name, f"--{name}")


def test_the_file_of_a_project_does_not_change_the_judge(place: Place, caplog: Any) -> None:
    kept = "checklist: nowhere.yaml\nmodel: openai/other\nmode: batched\nresamples: 300\njudge: openai/another\n"
    Path("askance.yaml").write_text(kept, encoding="utf-8")
    code, out, _ = place.judge("--config", "askance.yaml", "--json")
    assert code == 0 and json.loads(out)["calls"] == 0 and "as it was kept" not in caplog.text
    Path("askance.yaml").write_text(kept + "judge_file: run\n", encoding="utf-8")
    code, again, _ = place("evaluate", place.data, "--config", "askance.yaml", "--api-base", place.server.url, "--json")
    assert code == 0 and json.loads(again) == json.loads(out)


def test_a_setting_of_the_command_line_goes_beyond_the_judge_and_is_said(place: Place, caplog: Any) -> None:
    code, out, _ = place.judge("--scores", "hard", "--json")
    assert code == 0 and json.loads(out)["calls"] == 0
    assert "scores hard in place of soft" in caplog.text


def test_a_damaged_file_and_a_missing_one_end_with_2_and_are_named(place: Place) -> None:
    file = Path("run/judge.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("  mode: each", "  mode: never"), encoding="utf-8")
    asked = len(place.server.bodies)
    code, out, err = place.judge()
    assert code == 2 and not out
    assert "run/judge.yaml, field 'settings': mode: must be 'auto', 'each' or 'batched', not never." in err
    code, _, err = place.judge(judge="nowhere")
    assert code == 2 and says(err, "nowhere", "no such judge")
    assert len(place.server.bodies) == asked


def test_no_address_and_no_key_is_in_the_file(place: Place) -> None:
    text = Path("run/judge.yaml").read_text(encoding="utf-8")
    assert place.server.url not in text and "api_base" not in text and "127.0.0.1" not in text


def test_show_and_the_report_name_the_file_where_it_is_there(place: Place) -> None:
    line, mention = "Judge: run/judge.yaml, for askance evaluate DATA --judge run\n", "The whole judge is in judge.yaml"
    report = Path("run/report.html")
    shown = place("show", "run")[1]
    assert shown.endswith(line) and mention in report.read_text(encoding="utf-8")
    Path("run/judge.yaml").unlink()
    assert place("show", "run")[1] == shown.removesuffix(line)
    assert place("report", "run")[0] == 0
    assert mention not in report.read_text(encoding="utf-8")
    assert place("resume", "run", "--quiet")[0] == 0
    assert Path("run/judge.yaml").is_file(), "a run that is gone on with writes it again, without a call"
