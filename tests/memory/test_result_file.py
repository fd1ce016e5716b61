"""``result.json`` as this askance and the ones before it wrote it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import askance
from askance.cli import main
from askance.commands.report import command as report
from askance.commands.show_run import show_command as show
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import InputError
from askance.testing import StandInServer
from tests.said import says

RELEASED = Path(__file__).parent.parent / "data" / "released_run"
"""An alignment of the world of letters and numbers, as the first release left it; without its report."""
OPTIONAL = ("gain", "pruned_edits", "roles", "min_coverage", "missing", "test_looked_at", "calibration", "drift")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(RELEASED, tmp_path / "run"))


def change(run: RunDirectory, **changes: Any) -> dict[str, Any]:
    result = json.loads((RELEASED / "result.json").read_text(encoding="utf-8")) | changes
    run.write("result.json", json.dumps(result))
    return dict(result)


def said(*arguments: str) -> str:
    done = CliRunner().invoke({"show": show, "report": report}[arguments[0]], arguments[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_what_is_read_is_written_byte_for_byte(run: RunDirectory) -> None:
    run.save_result(run.read_result())
    assert (run.path / "result.json").read_bytes() == (RELEASED / "result.json").read_bytes()


def test_a_candidate_says_whether_it_was_taken_by_the_list_that_it_stands_in(run: RunDirectory) -> None:
    result = run.read_result()
    assert result.accepted_edits and all(each.accepted for each in result.accepted_edits)
    assert not any(each.accepted for each in result.rejected_edits)
    assert "accepted" not in result.to_dict()["accepted_edits"][0]


def test_a_released_run_can_be_shown_and_reported(run: RunDirectory) -> None:
    path = str(run.path)
    assert "Accepted: better on validation (Spearman +0." in said("show", path)
    assert json.loads(said("show", path, "--json")) == json.loads((RELEASED / "result.json").read_text())
    assert said("show", path, "--diff") == (RELEASED / "changes.diff").read_text()
    lesson = run.read_result().accepted_edits[0].lessons[0]
    assert f"Lesson {lesson} (" in said("show", path, "--why", run.read_result().best.prompt.splitlines()[-1])
    assert said("report", path).strip() == str(run.path / "report.html")


@pytest.mark.parametrize(
    ("accepted", "known"),
    [
        (True, "what did change is told by askance show"),
        (False, "nothing was accepted, and why is told by askance show"),
    ],
)
def test_a_diff_without_a_change_says_so_beside_the_empty_patch(run: RunDirectory, accepted: bool, known: str) -> None:
    result = json.loads((RELEASED / "result.json").read_text(encoding="utf-8"))
    edits = result["accepted_edits"] if accepted else []
    change(run, best={**result["best"], "prompt": result["baseline"]["prompt"]}, accepted_edits=edits)
    run.write("changes.diff", "")
    done = CliRunner().invoke(show, [str(run.path), "--diff"], catch_exceptions=False)
    assert done.stdout == ""
    assert says(done.stderr, "askance show") and says(done.stderr, "nothing") is not accepted


def test_a_released_run_can_be_followed_to_its_end(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["watch", str(run.path)])
    assert not ended.value.code and says(capsys.readouterr().out, "The run", "finished")


def test_a_released_run_can_be_resumed(
    world: Any, run: RunDirectory, sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run.read_result()
    (run.path / "result.json").unlink()
    with StandInServer(world.serve) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = askance.resume(run.path)
    assert (done.prompt, done.finish_reason) == (before.best.prompt, before.finish_reason)
    assert done.result["gain"] == before.gain.to_dict()


def test_unknown_fields_are_kept_and_missing_ones_are_no_harm(run: RunDirectory) -> None:
    result = change(run, mood="sunny")
    for name in OPTIONAL:
        del result[name]
    for side in ("baseline", "best"):
        result[side]["validation"]["charm"] = {"value": 0.5}
        del result[side]["hash"]
    result["lessons"] = [{**each, "colour": "red"} for each in result["lessons"]]
    for each in result["lessons"]:
        del each["kind"], each["kind_reason"]
    run.write("result.json", json.dumps(result))
    assert json.loads(said("show", str(run.path), "--json")) == result
    assert "Spearman with people" in said("show", str(run.path))
    assert said("report", str(run.path)).strip().endswith("report.html")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", r"result\.json: damaged\. Make it again without a call: askance resume "),
        ("[]", r"result\.json: damaged, or not written by askance: "),
        ("{}", "the field 'mode' is missing"),
        ({"best": {"prompt": 3}}, r"field 'best\.prompt': input should be a valid string"),
        ({"gain": {"test": {"value": "much", "n": 3}}}, r"field 'gain\.test\.value': input should be a valid number"),
        ({"lessons": [{"id": "L1"}]}, "entry 1 of 'lessons': the field 'text' is missing"),
    ],
)
def test_a_damaged_file_is_one_sentence_with_the_file_and_the_field(
    run: RunDirectory, text: str | dict[str, Any], says: str
) -> None:
    if isinstance(text, str):
        run.write("result.json", text)
    else:
        change(run, **text)
    with pytest.raises(InputError, match=says):
        run.read_result()
